"""Comparisons in a query whose sides have different types -> findings. If a type is unknown, nothing is reported."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.graph.model import ModelNode, NodeId, TableNode
from mvbuild.lint.facts import Facts
from mvbuild.lint.model import Found, Options, Rule
from mvbuild.lint.statement import Statement, cte_of, name_of, qualifier_of, relations

_FAMILIES = {
    **dict.fromkeys(("tinyint", "smallint", "int", "integer", "bigint", "long", "short", "byte", "float", "real", "double"), "number"),
    **dict.fromkeys(("decimal", "dec", "numeric"), "number"),
    **dict.fromkeys(("string", "varchar", "char", "text"), "string"),
    "boolean": "boolean",
    "date": "date",
    **dict.fromkeys(("timestamp", "timestamp_ntz", "timestamp_ltz", "timestampntz", "timestampltz", "timestamptz"), "timestamp"),
}
_COMPARED = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_CALLS: Mapping[type[exp.Expr], str] = {
    **dict.fromkeys((exp.Lower, exp.Upper, exp.Trim, exp.Substring, exp.Concat, exp.DPipe, exp.ConcatWs), "string"),
    **dict.fromkeys((exp.Count, exp.Length, exp.Year, exp.Month, exp.Day), "int"),
    **dict.fromkeys((exp.CurrentDate, exp.TsOrDsToDate), "date"),
    exp.CurrentTimestamp: "timestamp",
}
_CONSTANT = (exp.Literal,)


def check(facts: Facts, node: ModelNode, options: Options) -> Iterator[Found]:  # noqa: ARG001
    statement = facts.statement(node)
    if statement.is_piped:
        return
    types = _Types(facts, node, statement)
    for place, left, right in _comparisons(statement.tree):
        one, other = types.of(left), types.of(right)
        if one and other and _are_unlike(left, one, right, other):
            message = f"{_shown(left)} is {_article(one)} and {_shown(right)} is {_article(other)}"
            yield Found(message=message, span=statement.span_of(place))
    yield from _merged(statement, types)


def family(type_: str) -> str | None:
    """None for a type that is not judged: an array, a struct, binary..."""
    match = re.match(r"\s*([a-z_]+)\s*(?:\([^<>]*\))?\s*\Z", type_.lower())
    return _FAMILIES.get(match[1]) if match else None


def _comparisons(tree: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr, exp.Expr]]:
    for node in tree.walk():
        if isinstance(node, _COMPARED):
            yield node, node.this, node.expression
        elif isinstance(node, exp.In):
            for value in node.expressions:
                yield node, node.this, value
        elif isinstance(node, exp.Between):
            for key in ("low", "high"):
                yield node, node.this, node.args[key]


def _are_unlike(left: exp.Expr, one: str, right: exp.Expr, other: str) -> bool:
    kinds = family(one), family(other)
    if None in kinds or kinds[0] == kinds[1] or set(kinds) == {"date", "timestamp"}:
        return False
    if any(isinstance(side.unnest(), _CONSTANT) for side in (left, right)):
        # Comparing a date with text is usual, and two literals are not the fault of a column.
        both = all(isinstance(side.unnest(), _CONSTANT) for side in (left, right))
        return not both and not (set(kinds) & {"date", "timestamp"} and "string" in kinds)
    return True


def _shown(side: exp.Expr) -> str:
    """Never the value of a literal, which may be a secret."""
    side = side.unnest()
    if isinstance(side, exp.Column):
        return f"'{side.name}'"
    return "the literal" if isinstance(side, _CONSTANT) else "the expression"


def _article(type_: str) -> str:
    return f"{'an' if type_[0] in 'aeiou' else 'a'} {type_}"


def _merged(statement: Statement, types: _Types) -> Iterator[Found]:
    """JOIN ... USING compares columns with the same name."""
    for join in statement.tree.find_all(exp.Join):
        select = join.find_ancestor(exp.Select)
        joins: list[exp.Expr] = (select.args.get("joins") or []) if select else []
        if select is None or len(joins) != 1 or joins[0] is not join:
            continue
        sides = relations(select)
        for name in join.args.get("using") or ():
            found = [types.column(side, name.name) for side in sides]
            if len(found) == 2 and found[0] and found[1] and _are_unlike(name, found[0], name, found[1]):
                message = f"'{name.name}' is {_article(found[0])} on one side and {_article(found[1])} on the other"
                yield Found(message=message, span=statement.span_of(name))


@dataclass(frozen=True)
class _Types:
    """The certain types in one query."""

    facts: Facts
    node: ModelNode
    statement: Statement
    _columns: dict[int, Mapping[str, str | None] | None] = field(default_factory=dict)

    def of(self, value: exp.Expr) -> str | None:
        value = value.unnest()
        if isinstance(value, exp.Literal):
            return "string" if value.is_string else "decimal" if "." in value.name else "int"
        if isinstance(value, exp.Boolean):
            return "boolean"
        if isinstance(value, (exp.Cast, exp.TryCast)):
            return str(value.to.sql("spark")).lower()
        if isinstance(value, exp.Neg):
            return self.of(value.this)
        if isinstance(value, exp.Column):
            return self._of_column(value)
        return _CALLS.get(type(value))

    def column(self, relation: exp.Expr, name: str) -> str | None:
        return (self._columns_of(relation) or {}).get(name.lower())

    def _of_column(self, column: exp.Column) -> str | None:
        if column.args.get("db") or not isinstance(column.this, exp.Identifier):
            return None
        qualifier = qualifier_of(column)
        select = column.find_ancestor(exp.Select)
        while select is not None:
            inner = relations(select)
            if qualifier:
                named = [r for r in inner if name_of(r) == qualifier]
                if named:
                    return self.column(named[0], column.name) if len(named) == 1 else None
            else:
                return self._of_bare(column, select, inner)
            select = select.find_ancestor(exp.Select)
        return None

    def _of_bare(self, column: exp.Column, select: exp.Select, inner: list[exp.Expr]) -> str | None:
        """Only if all columns that the name could mean are known, and one of them has the name."""
        known = [self._columns_of(r) for r in inner]
        is_alias = any(isinstance(p, exp.Alias) and p.alias.lower() == column.name.lower() for p in select.expressions)
        merges = any(join.args.get("using") or join.args.get("method") for join in select.args.get("joins") or ())
        if is_alias or merges or select.args.get("laterals") or any(k is None for k in known):
            return None
        found = [k for k in known if k is not None and column.name.lower() in k]
        return found[0][column.name.lower()] if len(found) == 1 else None

    def _columns_of(self, relation: exp.Expr) -> Mapping[str, str | None] | None:
        """Column in lower case -> type, None if it is not known; None instead of the mapping if the columns are not known."""
        key = id(relation)
        if key not in self._columns:
            self._columns[key] = None  # for a recursive one, while it is computed
            self._columns[key] = self._computed(relation)
        return self._columns[key]

    def _computed(self, relation: exp.Expr) -> Mapping[str, str | None] | None:
        alias = relation.args.get("alias")
        if relation.args.get("pivots") or (isinstance(alias, exp.TableAlias) and alias.columns):
            return None
        read = self.statement.read_of(relation)
        if read is not None:
            return self._of_node(self.node.reads[read[0]]) if read[1].travel is None else None
        cte = cte_of(relation)
        if cte is not None:
            named = cte.args["alias"].columns or (cte.parent and cte.parent.args.get("recursive"))
            return None if named else self._selected(cte.this)
        return self._selected(relation.this) if isinstance(relation, exp.Subquery) else None

    def _of_node(self, id_: NodeId) -> Mapping[str, str | None] | None:
        """All columns of a node. For a source otherwise those declared in YAML: a name that is found there is the one that is meant."""
        known = self.facts.columns.get(id_)
        if known:
            return {column.key: column.type for column in known}
        node = self.facts.graph.nodes[id_]
        source = node.source if isinstance(node, TableNode) else None
        return {column.name.lower(): column.data_type for column in source.properties.columns} if source else None

    def _selected(self, query: exp.Expr) -> Mapping[str, str | None] | None:
        while isinstance(query, exp.Subquery):
            query = query.this
        if not isinstance(query, exp.Select):
            return None
        found: dict[str, str | None] = {}
        for projection in query.expressions:
            name = projection.alias_or_name.lower()
            if not name or isinstance(projection, exp.Aliases) or projection.is_star or name in found:
                return None
            found[name] = self.of(projection.unalias())
        return found


_TYPED = {
    "seeds/visits.csv": "customer,day\nc1,2026-01-01\n",
    "seeds/visits.yml": "seeds: [{name: visits, columns: [{name: day, data_type: date}]}]\n",
}

RULE = Rule(
    code="unlike-types",
    level="warning",
    title="Two values of different types are compared: a number with text, a date with a number.",
    why=(
        "Spark converts one of them, which fails at the first value that does not fit, or compares something other than you meant "
        "(`'10' < '9'`). Reported only if both types are known: of seeds, of models, and of sources with known schemas. Comparing a "
        "date with a text literal is fine."
    ),
    help="Convert one of the two with CAST, or fix the type where the column is made.",
    check=check,
    needs="types",
    wrong={
        **_TYPED,
        "models/days.sql": "SELECT v.day\nFROM {{ ref('visits') }} AS v\nJOIN {{ ref('customers') }} AS c ON v.customer = c.id\n",
    },
    right={
        **_TYPED,
        "models/days.sql": "SELECT v.day FROM {{ ref('visits') }} AS v WHERE v.day >= '2026-01-01' AND v.customer <> 'c0'\n",
    },
)
