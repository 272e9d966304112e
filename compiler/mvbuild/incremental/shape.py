"""SQL text with a marker for every table -> Shape: the query as a tree of relational algebra.

A part that the tree cannot express is refused and never ignored. Even so, this module alone is not trusted: before a rewrite is used, Spark
confirms that the tree, written as SQL again, is the query that the user wrote (refresh/round_trip.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Literal

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from mvbuild.incremental.algebra import (
    Aggregate,
    Distinct,
    Explode,
    Filter,
    Item,
    Join,
    JoinKind,
    Limit,
    OneRow,
    Project,
    Relation,
    Scalar,
    Scan,
    SetOperation,
    Union,
    column,
    conjunction,
    conjuncts,
    names_in,
    renamed,
    substituted,
)
from mvbuild.incremental.alike import marked
from mvbuild.incremental.column_pruning import pruned
from mvbuild.incremental.functions import EXACT_AGGREGATES, NULL_OF_NOTHING, called, is_generator, is_scalar, unwrapped
from mvbuild.incremental.parsing import parsed
from mvbuild.incremental.push_filters import filtered
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.scopes import (
    Block,
    Scope,
    Source,
    aliased,
    field_of,
    is_known,
    known_column,
    marked_known,
    one_column,
    only_child,
    placed,
)
from mvbuild.incremental.select_parts import SelectParts
from mvbuild.incremental.stars import common_names, joined_by, starred
from mvbuild.incremental.syntax import (
    aggregates_in,
    has_query,
    is_one,
    is_strict,
    join_kind,
    require,
    require_join_hints,
    unsupported,
    with_windows,
)
from mvbuild.lineage.expression_type import Types, generated_types, type_of
from mvbuild.lineage.types import Type, common, of_iceberg

MARKER = "mvbuild_leaf_"
"""The prefix of tables in the text, followed by the number of the leaf."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafColumns:
    """The columns of a table: its names as they are, each with its type in Spark."""

    types: Types
    required: frozenset[str] = frozenset()
    """The columns that cannot be NULL."""

    @staticmethod
    def of_iceberg(types: Mapping[str, Any], required: frozenset[str] = frozenset()) -> LeafColumns:
        """`types`: in the JSON of an Iceberg schema."""
        return LeafColumns(types={name: of_iceberg(type_) for name, type_ in types.items()}, required=required)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A query as a tree. `outputs`: (name in the tree, column of the result), in order."""

    root: Relation
    outputs: tuple[tuple[str, str], ...]
    types: Types
    """The type of each column in the tree."""
    origins: Mapping[str, tuple[int, str]]
    """Name of a scanned column -> leaf and column."""
    required: frozenset[str]
    """Names of scanned columns that cannot be NULL in their table."""


def plain_name(unique: str) -> str:
    """The name in the query from which a name in the tree was made."""
    plain, _, number = unique.rpartition("_")
    return plain if plain and number.isdigit() else unique


def readable(message: str, shape: Shape) -> str:
    """A message without the internal names of columns in the tree."""
    return re.sub(r"`(\w+)`", lambda found: plain_name(found[1]) if found[1] in shape.types else found[0], message)


def shape_of(sql: str, leaves: Sequence[LeafColumns], outputs: Sequence[str] | None) -> Shape:
    """`outputs`: the columns of the result; None: as the text names them. Raises Refused for a query that the tree cannot express."""
    try:
        tree = parsed(sql)
    except (ParseError, TokenError, ValueError) as exc:
        raise Refused("unsupported-operator", f"the query cannot be parsed: {str(exc).splitlines()[0]}") from exc
    if tree is None:
        raise Refused("unsupported-operator", "the query cannot be parsed")
    builder = _Builder(leaves=leaves)
    block = builder.query(tree, Scope())
    outputs = [name for name, _ in block.columns] if outputs is None else outputs
    if len(block.columns) != len(outputs):
        raise Refused("unsupported-operator", "the columns of the result are unknown", tree)
    pairs = tuple((unique, name) for (_, unique), name in zip(block.columns, outputs, strict=True))
    # A column that is selected twice needs two names.
    seen: dict[str, str] = {}
    items = []
    for unique, name in pairs:
        again = builder.fresh(name, builder.types.get(unique)) if unique in seen else unique
        seen[again] = unique
        items.append(Item(again, column(unique)))
    root = block.relation if [i.name for i in items] == list(block.relation.columns) else Project(block.relation, tuple(items))
    named = tuple((item.name, name) for item, name in zip(items, outputs, strict=True))
    root = pruned(marked(root, builder.types))
    return Shape(root=root, outputs=named, types=builder.types, origins=builder.origins, required=frozenset(builder.required))


@dataclass
class _Builder:
    leaves: Sequence[LeafColumns]
    types: dict[str, Type | None] = field(default_factory=dict)
    origins: dict[str, tuple[int, str]] = field(default_factory=dict)
    required: set[str] = field(default_factory=set)
    numbers: count[int] = field(default_factory=count)

    def fresh(self, name: str, type_: Type | None) -> str:
        plain = "".join(c if c.isalnum() else "_" for c in name.lower()) or "column"
        unique = f"{plain}_{next(self.numbers)}"
        self.types[unique] = type_
        return unique

    # --- queries ------------------------------------------------------------------------------------------------------------------

    def query(self, tree: exp.Expr, scope: Scope) -> Block:
        if isinstance(tree, exp.Subquery | exp.Paren):
            require(tree, {"this", "alias"}, "unsupported-operator")
            return self.query(tree.this, scope)
        scope = self._with_ctes(tree, scope)
        if isinstance(tree, exp.SetOperation):
            block = self._set_operation(tree, scope)
        elif isinstance(tree, exp.Select):
            block = self._select(tree, scope)
        else:
            raise unsupported(tree)
        return self._limited(tree, block)

    def _with_ctes(self, tree: exp.Expr, scope: Scope) -> Scope:
        with_ = tree.args.get("with_")
        if with_ is None:
            return scope
        if with_.args.get("recursive"):
            raise Refused("unsupported-operator", "WITH RECURSIVE is not refreshed incrementally", with_)
        for cte in with_.expressions:
            names = tuple(c.name for c in cte.args["alias"].columns)
            scope = replace(scope, ctes={**scope.ctes, cte.alias.lower(): (cte.this, replace(scope, sources=(), outer=None), names)})
        return scope

    def _limited(self, tree: exp.Expr, block: Block) -> Block:
        limit, offset, order = (tree.args.get(key) for key in ("limit", "offset", "order"))
        if limit is None and offset is None:
            # If all rows are kept, their order has no meaning for readers.
            return block
        parts = tuple(self._ordered(one, block) for one in (order.expressions if order else ()))
        limited = Limit(block.relation, parts, limit.expression if limit else None, offset.expression if offset else None)
        return Block(limited, block.columns)

    def _ordered(self, ordered: exp.Expr, block: Block) -> exp.Expr:
        """A part of ORDER BY, over the columns of the result."""
        made = ordered.copy()
        value = made.this
        if isinstance(value, exp.Literal) and not value.is_string:
            made.set("this", column(block.columns[int(value.name) - 1][1]))
            return made
        try:
            resolved = self.resolved(value, Scope(sources=(Source("", block.columns),)))
            self.require_scalar(resolved)
        except Refused as exc:
            raise Refused("limit", "LIMIT depends on every row", ordered) from exc
        made.set("this", resolved)
        return made

    def _set_operation(self, tree: exp.SetOperation, scope: Scope) -> Block:
        require(tree, {"this", "expression", "distinct", "with_", "order", "limit", "offset", "side", "kind"}, "unsupported-operator")
        if tree.args.get("by_name") or tree.args.get("side") or tree.args.get("kind"):
            raise unsupported(tree)
        left, right = self.query(tree.left, scope), self.query(tree.right, scope)
        if len(left.columns) != len(right.columns):
            raise Refused("unsupported-operator", "the two sides have different numbers of columns", tree)
        names = tuple(
            (name, self.fresh(name, common((self.types.get(one), self.types.get(other)))))
            for (name, one), (_, other) in zip(left.columns, right.columns, strict=True)
        )
        columns = tuple(unique for _, unique in names)
        sides: tuple[Relation, ...] = tuple(
            renamed(side.relation, tuple(zip(columns, (u for _, u in side.columns), strict=True))) for side in (left, right)
        )
        distinct = tree.args.get("distinct") is not False
        if isinstance(tree, exp.Union):
            both: Relation = Union(sides, columns)
            return Block(Distinct(both) if distinct else both, names)
        kind: Literal["intersect", "except"] = "intersect" if isinstance(tree, exp.Intersect) else "except"
        return Block(SetOperation(sides[0], sides[1], kind, not distinct, columns), names)

    # --- SELECT -------------------------------------------------------------------------------------------------------------------

    def _select(self, tree: exp.Select, scope: Scope) -> Block:
        require(
            tree,
            {
                "expressions",
                "from_",
                "joins",
                "laterals",
                "where",
                "group",
                "having",
                "qualify",
                "distinct",
                "order",
                "limit",
                "offset",
                "with_",
                "hint",
                "windows",
            },
            "unsupported-operator",
        )
        require_join_hints(tree)
        tree = with_windows(tree)
        if isinstance(tree.args.get("distinct"), exp.Distinct) and tree.args["distinct"].args.get("on"):
            raise unsupported(tree.args["distinct"])
        relation, inner = self._from(tree, scope)
        where = tree.args.get("where")
        relation = self._filtered(relation, where.this if where else None, inner)
        relation, tree = self._generated(relation, inner, tree)
        selected = self._selected(tree, inner)
        block = SelectParts(self, inner, tree)
        relation, values = block.compute(relation, selected)
        items: list[Item] = []
        columns = []
        for (name, _), value in zip(selected, values, strict=True):
            if isinstance(value, exp.Column) and value.name not in [i.name for i in items]:
                unique = value.name
            else:
                unique = self.fresh(name, type_of(value, self.types))
            items.append(Item(unique, value))
            columns.append((name, unique))
        result: Relation = Project(relation, tuple(items))
        if tree.args.get("distinct") is not None:
            result = Distinct(result)
        return Block(result, tuple(columns))

    def _selected(self, tree: exp.Select, scope: Scope) -> list[tuple[str, exp.Expr]]:
        """The columns of SELECT, with stars expanded and expressions as written."""
        found: list[tuple[str, exp.Expr]] = []
        for one in tree.expressions:
            if isinstance(one, exp.Star) or (isinstance(one, exp.Column) and isinstance(one.this, exp.Star)):
                found.extend(starred(scope, one))
            else:
                found.append((one.alias_or_name, one.unalias()))
        return found

    def _generated(self, relation: Relation, scope: Scope, tree: exp.Select) -> tuple[Relation, exp.Select]:
        """A generator in the SELECT list is a LATERAL VIEW behind WHERE."""
        found = [one for one in tree.expressions if is_generator(one.this if isinstance(one, exp.Alias | exp.Aliases) else one)]
        if not found:
            return relation, tree
        if len(found) > 1 or tree.args.get("group") or tree.args.get("having") or aggregates_in(tree) or tree.find(exp.Window):
            raise unsupported(found[0])
        one = found[0]
        aliases = one.expressions if isinstance(one, exp.Aliases) else [one.args["alias"]] if isinstance(one, exp.Alias) else []
        names = [alias.name for alias in aliases]
        if not names:
            raise Refused("unsupported-operator", "the columns of a generator in SELECT need names", one)
        relation, columns = self._exploded(relation, scope, one.this, names, outer=False)
        made = tree.copy()
        expressions = [
            part
            for at, written in enumerate(made.expressions)
            for part in ([exp.alias_(known_column(u), n) for n, u in columns] if tree.expressions[at] is one else [written])
        ]
        made.set("expressions", expressions)
        return relation, made

    def _exploded(
        self, relation: Relation, scope: Scope, node: exp.Expr, names: Sequence[str], *, outer: bool
    ) -> tuple[Relation, tuple[tuple[str, str], ...]]:
        """Each row with every row that the generator makes of it, and (name, name in the tree) of the columns."""
        generator = self.resolved(node, scope)
        for part in generator.iter_expressions():
            self.require_scalar(part)
        types = generated_types(generator, names, self.types)
        columns = tuple((name, self.fresh(name, type_)) for name, type_ in zip(names, types, strict=True))
        return Explode(relation, generator, tuple(unique for _, unique in columns), outer), columns

    # --- FROM ---------------------------------------------------------------------------------------------------------------------

    def _from(self, tree: exp.Select, scope: Scope) -> tuple[Relation, Scope]:
        start = tree.args.get("from_")
        if start is None:
            return OneRow(), Scope(ctes=scope.ctes, outer=scope.outer)
        relation, sources = self._table(start.this, scope)
        inner = Scope(sources=sources, ctes=scope.ctes, outer=scope.outer)
        for join in tree.args.get("joins") or ():
            relation, inner = self._join(relation, inner, join, scope)
        for lateral in tree.args.get("laterals") or ():
            relation, inner = self._lateral(relation, inner, lateral)
        return relation, inner

    def _table(self, node: exp.Expr, scope: Scope) -> tuple[Relation, tuple[Source, ...]]:
        if isinstance(node, exp.Subquery):
            require(node, {"this", "alias", "joins"}, "unsupported-operator")
            if isinstance(node.this, exp.Table):  # (a JOIN b)
                relation, sources = self._table(node.this, scope)
                inner = Scope(sources=sources, ctes=scope.ctes, outer=scope.outer)
                for join in node.this.args.get("joins") or ():
                    relation, inner = self._join(relation, inner, join, scope)
                return relation, inner.sources
            block = self.query(node.this, replace(scope, sources=(), outer=None, merged={}))
            return block.relation, (aliased(node, block.columns),)
        if not isinstance(node, exp.Table):
            raise unsupported(node)
        require(node, {"this", "alias", "joins"}, "unsupported-operator")
        if not isinstance(node.this, exp.Identifier):
            raise unsupported(node)
        name = node.name
        if name.lower() in scope.ctes:
            body, around, names = scope.ctes[name.lower()]
            block = self.query(body, around)
            columns = tuple(zip(names, (u for _, u in block.columns), strict=True)) if names else block.columns
            return block.relation, (aliased(node, columns, name),)
        if not name.startswith(MARKER):
            raise Refused("unsupported-operator", f"{name} is not a table that mvbuild knows", node)
        return self._scan(int(name[len(MARKER) :]), node)

    def _scan(self, leaf: int, node: exp.Table) -> tuple[Relation, tuple[Source, ...]]:
        found = self.leaves[leaf]
        columns = tuple((name, self.fresh(name, type_)) for name, type_ in found.types.items())
        for name, unique in columns:
            self.origins[unique] = (leaf, name)
            if name in found.required:
                self.required.add(unique)
        scan = Scan(leaf, tuple((unique, name) for name, unique in columns))
        return scan, (aliased(node, columns, node.name),)

    def _join(self, left: Relation, scope: Scope, join: exp.Join, outer: Scope) -> tuple[Relation, Scope]:
        require(join, {"this", "on", "using", "side", "kind", "method"}, "unsupported-operator")
        kind = join_kind(join)
        if isinstance(join.this, exp.Lateral):
            on = join.args.get("on")
            if kind != "inner" or join.args.get("using") or (on is not None and on != exp.true()):
                raise unsupported(join)
            return self._lateral(left, scope, join.this)
        right, sources = self._table(join.this, outer)
        added = Scope(sources=sources)
        both = scope.with_sources(sources)
        using = join.args.get("using") or (common_names(scope, added) if join.args.get("method") else None)
        if using:
            on, merged = self._using(scope, added, using, kind)
            both = joined_by([name.name for name in using], scope, added, replace(both, merged={**scope.merged, **merged}), kind)
        else:
            written = join.args.get("on")
            on = self.resolved(written, both) if written is not None else None
        self.require_scalar(on)
        if kind == "right":
            return Join(right, left, "left", on), both
        if kind in ("semi", "anti"):
            shown = tuple(one for one in both.star if one.alias in {s.alias for s in scope.sources}) if using else scope.shown
            both = replace(both, sources=scope.sources, shown=shown, hidden=scope.hidden)
        kept = both
        return Join(left, right, kind, on, "join" if kind in ("semi", "anti") else ""), kept  # type: ignore[arg-type]

    def _using(self, left: Scope, right: Scope, names: list[exp.Expr], kind: str) -> tuple[exp.Expr | None, dict[str, exp.Expr]]:
        parts, merged = [], {}
        for name in names:
            one, other = (self._column(exp.column(name.name), side) for side in (left, right))
            parts.append(exp.EQ(this=one, expression=other))
            merged[name.name.lower()] = (
                exp.Coalesce(this=one.copy(), expressions=[other.copy()]) if kind == "full" else (other if kind == "right" else one).copy()
            )
        return conjunction(parts), merged

    def _lateral(self, relation: Relation, scope: Scope, lateral: exp.Lateral) -> tuple[Relation, Scope]:
        require(lateral, {"this", "view", "outer", "alias"}, "unsupported-operator")
        alias = lateral.args.get("alias")
        names = tuple(c.name for c in alias.columns) if alias else ()
        name = alias.name.lower() if alias and alias.this else ""
        if isinstance(lateral.this, exp.Subquery):
            return self._computed(relation, scope, lateral.this.this, name, names)
        if not is_generator(lateral.this):
            raise unsupported(lateral)
        if not names:
            raise Refused("unsupported-operator", "the columns of LATERAL VIEW need names", lateral)
        made, columns = self._exploded(relation, scope, lateral.this, names, outer=bool(lateral.args.get("outer")))
        return made, scope.with_sources((Source(name, columns),))

    def _computed(self, relation: Relation, scope: Scope, select: exp.Expr, name: str, names: tuple[str, ...]) -> tuple[Relation, Scope]:
        """LATERAL (SELECT ...) without FROM: more columns of each row."""
        if not isinstance(select, exp.Select):
            raise unsupported(select)
        require(select, {"expressions"}, "unsupported-operator")
        items = []
        for one in select.expressions:
            value = self.resolved(one.unalias(), scope)
            self.require_scalar(value)
            items.append(Item(self.fresh(one.alias_or_name, type_of(value, self.types)), value))
        shown = names or tuple(one.alias_or_name for one in select.expressions)
        if len(shown) != len(items):
            raise unsupported(select)
        kept = tuple(Item(own, column(own)) for own in relation.columns)
        source = Source(name, tuple((known, item.name) for known, item in zip(shown, items, strict=True)))
        return Project(relation, (*kept, *items)), scope.with_sources((source,))

    # --- WHERE --------------------------------------------------------------------------------------------------------------------

    def _filtered(self, relation: Relation, where: exp.Expr | None, scope: Scope) -> Relation:
        """Conditions without subqueries first: they are cheaper, and help to find what the others can affect."""
        parts = conjuncts(where)
        plain = [self.resolved(part, scope) for part in parts if not has_query(part)]
        for part in plain:
            self.require_scalar(part)
        relation = filtered(relation, plain)
        for part in parts:
            if has_query(part):
                relation = self._subquery(relation, part, scope)
        return relation

    def _subquery(self, relation: Relation, part: exp.Expr, scope: Scope) -> Relation:
        negated = isinstance(part, exp.Not)
        inside = part.this.unnest() if negated else part.unnest()
        if isinstance(inside, exp.Exists):
            return self._exists(relation, inside.this, scope, "anti" if negated else "semi", None)
        if isinstance(inside, exp.In) and inside.args.get("query") is not None and not has_query(inside.this):
            value = self.resolved(inside.this, scope)
            self.require_scalar(value)
            return self._exists(relation, inside.args["query"], scope, "null-aware-anti" if negated else "semi", value)
        relation, resolved = self.scalars(relation, part, scope, is_condition=True)
        self.require_scalar(resolved)
        return Filter(relation, resolved)

    def _exists(self, relation: Relation, tree: exp.Expr, scope: Scope, kind: JoinKind, value: exp.Expr | None) -> Join:
        """EXISTS and IN: a join with the subquery, whose conditions on the outer query become conditions of the join."""
        select = tree.unnest()
        correlated: list[exp.Expr] = []
        if isinstance(select, exp.SetOperation):
            block = self.query(select, replace(scope, sources=(), outer=None))
        elif isinstance(select, exp.Select):
            block, correlated = self._correlated(select, scope)
        else:
            raise unsupported(tree)
        parts = list(correlated)
        if value is not None:
            if len(block.columns) != 1:
                raise unsupported(tree)
            parts.insert(
                0, exp.EQ(this=exp.paren(value) if not isinstance(value, exp.Column) else value, expression=column(block.columns[0][1]))
            )
        if kind == "null-aware-anti" and correlated:
            raise Refused("unsupported-operator", "NOT IN with a subquery that refers to the query around it", tree)
        return Join(relation, block.relation, kind, conjunction(parts), "in" if value is not None and len(parts) == 1 else "")

    def _correlated(self, select: exp.Select, scope: Scope) -> tuple[Block, list[exp.Expr]]:
        """A subquery without its conditions on the outer query, and these conditions with the names of both."""
        around = replace(scope, outer=None)
        bare = select.copy()
        where = bare.args.get("where")
        parts = conjuncts(where.this if where else None)
        inner_scope = self._scope_only(bare, scope)
        outer = [p for p in parts if not has_query(p) and self._refers_out(p, inner_scope, around)]
        if not outer:
            return self.query(bare, replace(scope, sources=(), outer=None, merged={})), []
        if bare.args.get("group") or bare.args.get("having") or bare.args.get("limit") or aggregates_in(bare):
            raise Refused("unsupported-operator", "a correlated subquery with an aggregate in EXISTS or IN", select)
        require(bare, {"expressions", "from_", "joins", "laterals", "where", "distinct", "order"}, "unsupported-operator")
        inner = conjunction([p for p in parts if p not in outer])
        bare.set("where", exp.Where(this=inner) if inner is not None else None)
        # The columns that the conditions need are known only once the tables have names: all are kept, and Spark omits the others.
        relation, made = self._from(bare, replace(scope, sources=(), outer=None, merged={}))
        relation = self._filtered(relation, inner, made)
        both = replace(made, outer=around)
        correlated = [self.resolved(p, both) for p in outer]
        for part in correlated:
            self.require_scalar(part)
        values = []
        for name, written in self._selected(bare, made) if not is_one(bare) else ():
            value = self.resolved(written, made)
            self.require_scalar(value)
            if not isinstance(value, exp.Column):
                unique = self.fresh(name, type_of(value, self.types))
                relation = Project(relation, (*(Item(n, column(n)) for n in relation.columns), Item(unique, value)))
                value = column(unique)
            values.append((name, value.name))
        return Block(relation, tuple(values)), correlated

    def _scope_only(self, select: exp.Select, scope: Scope) -> Scope:
        """The names of a subquery's tables, to distinguish its own columns from others."""
        return self._from(select, replace(scope, sources=(), outer=None, merged={}))[1]

    def _refers_out(self, part: exp.Expr, inner: Scope, outer: Scope) -> bool:
        for found in part.find_all(exp.Column):
            try:
                self._column(found, inner)
            except Refused:
                self._column(found, outer)
                return True
        return False

    # --- scalar subqueries ----------------------------------------------------------------------------------------------------------

    def scalars(self, relation: Relation, part: exp.Expr, scope: Scope, *, is_condition: bool = False) -> tuple[Relation, exp.Expr]:
        """An expression with columns in the place of its subqueries, and the relation that has those columns. `is_condition`: of WHERE,
        where NULL is as good as false."""
        copy = part.copy()
        holder = exp.paren(copy, copy=False)
        for test in [one for one in holder.find_all(exp.Exists, exp.In) if one.find_ancestor(exp.Query) is None]:
            if isinstance(test, exp.Exists) or (is_condition and test.args.get("query") is not None and _is_alternative(test, holder)):
                relation, mark = self._marked(relation, test, scope)
                test.replace(mark)
        for found in list(holder.find_all(exp.Subquery)):
            if found.find_ancestor(exp.Subquery) is not None:
                continue
            parent = found.parent
            if isinstance(parent, exp.In | exp.Exists):
                raise Refused("unsupported-operator", "IN or EXISTS as a part of another condition", part)
            relation, value = self.scalar_subquery(relation, found.this, scope)
            found.replace(marked_known(value))
        if holder.find(exp.Exists) is not None or holder.find(exp.Select) is not None:
            raise Refused("unsupported-operator", "IN or EXISTS as a part of another condition", part)
        return relation, self.resolved(holder.this, scope)

    def _marked(self, relation: Relation, found: exp.Expr, scope: Scope) -> tuple[Relation, exp.Expr]:
        """EXISTS or IN as a column."""
        value = None
        if isinstance(found, exp.In):
            value = self.resolved(found.this, scope)
            self.require_scalar(value)
        made = self._exists(relation, found.args["query"] if value is not None else found.this, scope, "mark", value)
        unique = self.fresh("exists", "boolean")
        return replace(made, mark=unique), known_column(unique)

    def scalar_subquery(self, relation: Relation, tree: exp.Expr, scope: Scope) -> tuple[Relation, exp.Expr]:
        select = tree.unnest()
        around = replace(scope, outer=None)
        if isinstance(select, exp.Select):
            where = select.args.get("where")
            inner = self._scope_only(select, self._with_ctes(select, scope))
            parts = conjuncts(where.this if where else None)
            outer = [p for p in parts if not has_query(p) and self._refers_out(p, inner, around)]
            if outer:
                return self._correlated_scalar(relation, select, outer, scope)
        block = self.query(select, replace(scope, sources=(), outer=None, merged={}))
        if len(block.columns) != 1:
            raise unsupported(tree)
        unique = self.fresh("scalar", self.types.get(block.columns[0][1]))
        return Scalar(relation, block.relation, unique), column(unique)

    def _correlated_scalar(self, relation: Relation, select: exp.Select, outer: list[exp.Expr], scope: Scope) -> tuple[Relation, exp.Expr]:
        """An aggregate for each row of the outer query: a left join with the aggregate by the compared columns."""
        require(select, {"expressions", "from_", "joins", "where"}, "unsupported-operator")
        if len(select.expressions) != 1:
            raise unsupported(select)
        bare = select.copy()
        where = bare.args["where"].this
        kept = conjunction([p for p in conjuncts(where) if p not in outer])
        inner, made = self._from(bare, replace(scope, sources=(), outer=None, merged={}))
        inner = self._filtered(inner, kept, made)
        keys, on = [], []
        for part in outer:
            if not isinstance(part, exp.EQ):
                raise Refused("unsupported-operator", "a correlated subquery whose condition is not an equality", part)
            sides = [part.left, part.right]
            own = [s for s in sides if not self._refers_out(s, made, replace(scope, outer=None))]
            if len(own) != 1:
                raise Refused("unsupported-operator", "a correlated subquery whose condition mixes both sides", part)
            other = sides[1] if own[0] is sides[0] else sides[0]
            value, theirs = self.resolved(own[0], made), self.resolved(other, replace(scope, outer=None))
            self.require_scalar(value)
            self.require_scalar(theirs)
            unique = self.fresh("key", type_of(value, self.types))
            keys.append(Item(unique, value))
            outside: exp.Expr = theirs if isinstance(theirs, exp.Column) else exp.paren(theirs)
            # In the order in which it was written, which Spark's plans keep.
            pair = (column(unique), outside) if own[0] is sides[0] else (outside, column(unique))
            on.append(exp.EQ(this=pair[0], expression=pair[1]))
        parts = SelectParts(self, made, bare)
        aggregate, (value,) = parts.aggregated(inner, tuple(keys), [select.expressions[0].unalias()])
        if not isinstance(aggregate, Aggregate) or not aggregate.values:
            raise Refused("unsupported-operator", "a correlated subquery without an aggregate", select)
        self.require_scalar(value)
        if names_in(value) & {key.name for key in keys}:
            raise Refused("unsupported-operator", "a column that is neither grouped nor aggregated", select)
        functions = {i.name: unwrapped(i.expression) for i in aggregate.values}
        for function in functions.values():
            if not (isinstance(function, EXACT_AGGREGATES) or called(function) in NULL_OF_NOTHING):
                raise unsupported(function)
        # If the join finds nothing, the aggregates have their values for no rows, NULL or 0 for counts, and the value is computed from
        # those.
        counts = [name for name, function in functions.items() if isinstance(function, exp.Count | exp.CountIf)]
        if isinstance(value, exp.Column) or (not counts and is_strict(value)):
            unique = self.fresh("scalar", type_of(value, self.types))
            right: Relation = Project(aggregate, (*(Item(k.name, column(k.name)) for k in keys), Item(unique, value)))
            made_of, form = {value.name: column(unique)}, "scalar"
            if not isinstance(value, exp.Column):
                return Join(relation, right, "left", conjunction(on), "scalar"), column(unique)
        else:
            right, made_of, form = aggregate, {name: column(name) for name in counts}, ""
        for name in made_of:
            if name in counts:
                made_of[name] = exp.Coalesce(this=made_of[name], expressions=[exp.Literal.number(0)])
        return Join(relation, right, "left", conjunction(on), form), substituted(value, made_of).unnest()  # type: ignore[arg-type]

    # --- names --------------------------------------------------------------------------------------------------------------------

    def resolved(self, expression: exp.Expr, scope: Scope) -> exp.Expr:
        """The expression with the names of the tree. Names that the scope does not know are looked up in its `outer` scope."""
        holder = exp.paren(expression.copy(), copy=False)
        bound = {p.name.lower() for found in holder.find_all(exp.Lambda) for p in found.expressions}
        for found in list(holder.find_all(exp.Column)):
            if is_known(found) or (found.name.lower() in bound and not found.table):
                continue
            try:
                value = self._column(found, scope)
            except Refused:
                if scope.outer is None:
                    raise
                value = self._column(found, scope.outer)
            found.replace(placed(value, found))
        return only_child(holder)

    def _column(self, node: exp.Expr, scope: Scope) -> exp.Expr:
        """The one column with that name; a name with several parts may refer to a field of a struct."""
        parts = [part.name for part in node.parts]  # type: ignore[attr-defined]
        lowered = [p.lower() for p in parts]
        if len(parts) > 1:
            found = [s for s in scope.sources if s.alias == lowered[0]]
            if len(found) == 1:
                return field_of(one_column(found[0].columns, lowered[1], node), parts[2:])
        if lowered[0] in scope.merged:
            return field_of(scope.merged[lowered[0]].copy(), parts[1:])
        columns = [pair for source in scope.sources for pair in source.columns]
        return field_of(one_column(columns, lowered[0], node), parts[1:])

    def require_scalar(self, expression: exp.Expr | None) -> None:
        for node in expression.walk() if expression is not None else ():
            if not is_scalar(node) and not isinstance(node, exp.Lambda | exp.Star):
                raise unsupported(node)


def _is_alternative(found: exp.Expr, holder: exp.Expr) -> bool:
    """Whether nothing but AND and OR are around it: these take NULL for false where the whole is a condition."""
    node = found.parent
    while node is not None and node is not holder:
        if not isinstance(node, exp.And | exp.Or | exp.Paren):
            return False
        node = node.parent
    return True
