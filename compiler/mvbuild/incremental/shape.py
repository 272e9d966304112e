"""SQL text with a marker for every table -> Shape: the query as a tree of relational algebra.

What the tree cannot say is refused and never ignored. Even so nothing relies on this module alone: before a rewrite is used, Spark shows
that the tree, written as SQL again, is the query that the user wrote (refresh/round_trip.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Literal

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
    Window,
    column,
    conjunction,
    conjuncts,
    names_in,
    renamed,
    substituted,
    walk,
)
from mvbuild.incremental.functions import GENERATORS, POSITIONS, RANKINGS, is_aggregate, is_scalar
from mvbuild.incremental.kinds import Kind, of_expression
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.restrict import UNLIKE
from mvbuild.parse.dialect import parse, tokenize

MARKER = "mvbuild_leaf_"
"""Tables are called so in the text, each with the number of its leaf."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafColumns:
    """The columns of a table: its names as they are, each with the kind of its type."""

    kinds: Mapping[str, Kind]
    required: frozenset[str] = frozenset()
    """Those that cannot be NULL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A query as a tree. `outputs`: (name in the tree, column of the result), in order."""

    root: Relation
    outputs: tuple[tuple[str, str], ...]
    kinds: Mapping[str, Kind]
    origins: Mapping[str, tuple[int, str]]
    """Name of a scanned column -> leaf and column."""
    required: frozenset[str]
    """Names of scanned columns that cannot be NULL in their table."""


def plain_name(unique: str) -> str:
    """The name in the query that a name in the tree was made of."""
    plain, _, number = unique.rpartition("_")
    return plain if plain and number.isdigit() else unique


def readable(message: str, shape: Shape) -> str:
    """A message without the names that columns have in the tree."""
    return re.sub(r"`(\w+)`", lambda found: plain_name(found[1]) if found[1] in shape.kinds else found[0], message)


def shape_of(sql: str, leaves: Sequence[LeafColumns], outputs: Sequence[str] | None) -> Shape:
    """`outputs`: the columns of the result; None: as the text names them. Refused for what cannot be said."""
    try:
        (tree,) = parse(tokenize(sql), sql)
    except (ParseError, TokenError, ValueError) as exc:
        raise Refused("unsupported-operator", f"the query cannot be read: {str(exc).splitlines()[0]}") from exc
    if tree is None:
        raise Refused("unsupported-operator", "the query cannot be read")
    builder = _Builder(leaves=leaves)
    block = builder.query(tree, _Scope())
    outputs = [name for name, _ in block.columns] if outputs is None else outputs
    if len(block.columns) != len(outputs):
        raise Refused("unsupported-operator", "the columns of the result cannot be told", tree)
    pairs = tuple((unique, name) for (_, unique), name in zip(block.columns, outputs, strict=True))
    # A column that is selected twice needs two names.
    seen: dict[str, str] = {}
    items = []
    for unique, name in pairs:
        again = builder.fresh(name, builder.kinds.get(unique, "unknown")) if unique in seen else unique
        seen[again] = unique
        items.append(Item(again, column(unique)))
    root = block.relation if [i.name for i in items] == list(block.relation.columns) else Project(block.relation, tuple(items))
    named = tuple((item.name, name) for item, name in zip(items, outputs, strict=True))
    _mark_unlike(root, builder.kinds)
    return Shape(root=root, outputs=named, kinds=builder.kinds, origins=builder.origins, required=frozenset(builder.required))


@dataclass(frozen=True, slots=True)
class _Block:
    """A query that was turned into a tree: (name as the user knows it, name in the tree) of its columns."""

    relation: Relation
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Source:
    """A table of FROM: what it is called, and its columns."""

    alias: str
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Scope:
    """What names mean: the tables of FROM, common table expressions, and the scope of the query around."""

    sources: tuple[_Source, ...] = ()
    ctes: Mapping[str, tuple[exp.Expr, _Scope, tuple[str, ...]]] = field(default_factory=dict)
    outer: _Scope | None = None
    merged: Mapping[str, exp.Expr] = field(default_factory=dict)
    """Columns of USING: lower-case name -> the one value of both sides."""


@dataclass
class _Builder:
    leaves: Sequence[LeafColumns]
    kinds: dict[str, Kind] = field(default_factory=dict)
    origins: dict[str, tuple[int, str]] = field(default_factory=dict)
    required: set[str] = field(default_factory=set)
    numbers: count[int] = field(default_factory=count)

    def fresh(self, name: str, kind: Kind) -> str:
        plain = "".join(c if c.isalnum() else "_" for c in name.lower()) or "column"
        unique = f"{plain}_{next(self.numbers)}"
        self.kinds[unique] = kind
        return unique

    # --- queries ------------------------------------------------------------------------------------------------------------------

    def query(self, tree: exp.Expr, scope: _Scope) -> _Block:
        if isinstance(tree, exp.Subquery | exp.Paren):
            _require(tree, {"this", "alias"}, "unsupported-operator")
            return self.query(tree.this, scope)
        scope = self._with_ctes(tree, scope)
        if isinstance(tree, exp.SetOperation):
            block = self._set_operation(tree, scope)
        elif isinstance(tree, exp.Select):
            block = self._select(tree, scope)
        else:
            raise _unsupported(tree)
        return self._limited(tree, block)

    def _with_ctes(self, tree: exp.Expr, scope: _Scope) -> _Scope:
        with_ = tree.args.get("with_")
        if with_ is None:
            return scope
        if with_.args.get("recursive"):
            raise Refused("unsupported-operator", "WITH RECURSIVE is not refreshed incrementally", with_)
        for cte in with_.expressions:
            names = tuple(c.name for c in cte.args["alias"].columns)
            scope = replace(scope, ctes={**scope.ctes, cte.alias.lower(): (cte.this, replace(scope, sources=(), outer=None), names)})
        return scope

    def _limited(self, tree: exp.Expr, block: _Block) -> _Block:
        limit, offset, order = (tree.args.get(key) for key in ("limit", "offset", "order"))
        if limit is None and offset is None:
            # Where all rows are kept, their order says nothing to who reads them.
            return block
        parts = tuple(self._ordered(one, block) for one in (order.expressions if order else ()))
        limited = Limit(block.relation, parts, limit.expression if limit else None, offset.expression if offset else None)
        return _Block(limited, block.columns)

    def _ordered(self, ordered: exp.Expr, block: _Block) -> exp.Expr:
        """A part of ORDER BY, over the columns of the result."""
        made = ordered.copy()
        value = made.this
        if isinstance(value, exp.Literal) and not value.is_string:
            made.set("this", column(block.columns[int(value.name) - 1][1]))
            return made
        try:
            resolved = self._resolved(value, _Scope(sources=(_Source("", block.columns),)))
            self._require_scalar(resolved)
        except Refused as exc:
            raise Refused("limit", "LIMIT depends on every row", ordered) from exc
        made.set("this", resolved)
        return made

    def _set_operation(self, tree: exp.SetOperation, scope: _Scope) -> _Block:
        _require(tree, {"this", "expression", "distinct", "with_", "order", "limit", "offset", "side", "kind"}, "unsupported-operator")
        if tree.args.get("by_name") or tree.args.get("side") or tree.args.get("kind"):
            raise _unsupported(tree)
        left, right = self.query(tree.left, scope), self.query(tree.right, scope)
        if len(left.columns) != len(right.columns):
            raise Refused("unsupported-operator", "the two sides have different numbers of columns", tree)
        names = tuple(
            (name, self.fresh(name, _common(self.kinds.get(one, "unknown"), self.kinds.get(other, "unknown"))))
            for (name, one), (_, other) in zip(left.columns, right.columns, strict=True)
        )
        columns = tuple(unique for _, unique in names)
        sides: tuple[Relation, ...] = tuple(
            renamed(side.relation, tuple(zip(columns, (u for _, u in side.columns), strict=True))) for side in (left, right)
        )
        distinct = tree.args.get("distinct") is not False
        if isinstance(tree, exp.Union):
            both: Relation = Union(sides, columns)
            return _Block(Distinct(both) if distinct else both, names)
        kind: Literal["intersect", "except"] = "intersect" if isinstance(tree, exp.Intersect) else "except"
        return _Block(SetOperation(sides[0], sides[1], kind, not distinct, columns), names)

    # --- SELECT -------------------------------------------------------------------------------------------------------------------

    def _select(self, tree: exp.Select, scope: _Scope) -> _Block:
        _require(
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
            },
            "unsupported-operator",
        )
        if isinstance(tree.args.get("distinct"), exp.Distinct) and tree.args["distinct"].args.get("on"):
            raise _unsupported(tree.args["distinct"])
        relation, inner = self._from(tree, scope)
        where = tree.args.get("where")
        relation = self._filtered(relation, where.this if where else None, inner)
        selected = self._selected(tree, inner)
        block = _SelectParts(self, inner, tree)
        relation, values = block.compute(relation, selected)
        items: list[Item] = []
        columns = []
        for (name, _), value in zip(selected, values, strict=True):
            if isinstance(value, exp.Column) and value.name not in [i.name for i in items]:
                unique = value.name
            else:
                # NULL is of any type.
                unique = self.fresh(name, "unknown" if isinstance(value, exp.Null) else of_expression(value, self.kinds))
            items.append(Item(unique, value))
            columns.append((name, unique))
        result: Relation = Project(relation, tuple(items))
        if tree.args.get("distinct") is not None:
            result = Distinct(result)
        return _Block(result, tuple(columns))

    def _selected(self, tree: exp.Select, scope: _Scope) -> list[tuple[str, exp.Expr]]:
        """The columns of SELECT, stars expanded; expressions as they were written."""
        found: list[tuple[str, exp.Expr]] = []
        for one in tree.expressions:
            if isinstance(one, exp.Star):
                _require(one, set(), "unsupported-operator")
                found.extend(self._starred(scope, None, one))
            elif isinstance(one, exp.Column) and isinstance(one.this, exp.Star):
                _require(one.this, set(), "unsupported-operator")
                found.extend(self._starred(scope, one.table, one))
            else:
                found.append((one.alias_or_name, one.unalias()))
        return found

    def _starred(self, scope: _Scope, alias: str | None, node: exp.Expr) -> list[tuple[str, exp.Expr]]:
        if scope.merged and alias is None:
            raise Refused("unsupported-operator", "* with JOIN ... USING is not refreshed incrementally: name the columns", node)
        chosen = [s for s in scope.sources if alias is None or s.alias == alias.lower()]
        if not chosen:
            raise Refused("unsupported-operator", "the columns of a star cannot be told", node)
        return [(name, _known(unique)) for source in chosen for name, unique in source.columns]

    # --- FROM ---------------------------------------------------------------------------------------------------------------------

    def _from(self, tree: exp.Select, scope: _Scope) -> tuple[Relation, _Scope]:
        start = tree.args.get("from_")
        if start is None:
            return OneRow(), _Scope(ctes=scope.ctes, outer=scope.outer)
        relation, sources = self._table(start.this, scope)
        inner = _Scope(sources=sources, ctes=scope.ctes, outer=scope.outer)
        for join in tree.args.get("joins") or ():
            relation, inner = self._join(relation, inner, join, scope)
        for lateral in tree.args.get("laterals") or ():
            relation, inner = self._lateral(relation, inner, lateral)
        return relation, inner

    def _table(self, node: exp.Expr, scope: _Scope) -> tuple[Relation, tuple[_Source, ...]]:
        if isinstance(node, exp.Subquery):
            _require(node, {"this", "alias", "joins"}, "unsupported-operator")
            if isinstance(node.this, exp.Table):  # (a JOIN b)
                relation, sources = self._table(node.this, scope)
                inner = _Scope(sources=sources, ctes=scope.ctes, outer=scope.outer)
                for join in node.this.args.get("joins") or ():
                    relation, inner = self._join(relation, inner, join, scope)
                return relation, inner.sources
            block = self.query(node.this, replace(scope, sources=(), outer=None, merged={}))
            return block.relation, (_aliased(node, block.columns),)
        if not isinstance(node, exp.Table):
            raise _unsupported(node)
        _require(node, {"this", "alias", "joins"}, "unsupported-operator")
        if not isinstance(node.this, exp.Identifier):
            raise _unsupported(node)
        name = node.name
        if name.lower() in scope.ctes:
            body, around, names = scope.ctes[name.lower()]
            block = self.query(body, around)
            columns = tuple(zip(names, (u for _, u in block.columns), strict=True)) if names else block.columns
            return block.relation, (_aliased(node, columns, name),)
        if not name.startswith(MARKER):
            raise Refused("unsupported-operator", f"{name} is no table that mvbuild knows", node)
        return self._scan(int(name[len(MARKER) :]), node)

    def _scan(self, leaf: int, node: exp.Table) -> tuple[Relation, tuple[_Source, ...]]:
        found = self.leaves[leaf]
        columns = tuple((name, self.fresh(name, kind)) for name, kind in found.kinds.items())
        for name, unique in columns:
            self.origins[unique] = (leaf, name)
            if name in found.required:
                self.required.add(unique)
        scan = Scan(leaf, tuple((unique, name) for name, unique in columns))
        return scan, (_aliased(node, columns, node.name),)

    def _join(self, left: Relation, scope: _Scope, join: exp.Join, outer: _Scope) -> tuple[Relation, _Scope]:
        _require(join, {"this", "on", "using", "side", "kind", "hint"}, "unsupported-operator")
        if isinstance(join.this, exp.Lateral):
            return self._lateral(left, scope, join.this)
        right, sources = self._table(join.this, outer)
        both = _Scope(sources=(*scope.sources, *sources), ctes=scope.ctes, outer=scope.outer, merged=scope.merged)
        kind = _kind(join)
        if join.args.get("using"):
            on, merged = self._using(scope, _Scope(sources=sources), join.args["using"], kind)
            both = replace(both, merged={**scope.merged, **merged})
        else:
            written = join.args.get("on")
            on = self._resolved(written, both) if written is not None else None
        self._require_scalar(on)
        if kind == "right":
            return Join(right, left, "left", on), both
        kept = replace(both, sources=scope.sources) if kind in ("semi", "anti") else both
        return Join(left, right, kind, on, "join" if kind in ("semi", "anti") else ""), kept  # type: ignore[arg-type]

    def _using(self, left: _Scope, right: _Scope, names: list[exp.Expr], kind: str) -> tuple[exp.Expr | None, dict[str, exp.Expr]]:
        parts, merged = [], {}
        for name in names:
            one, other = (self._column(exp.column(name.name), side) for side in (left, right))
            parts.append(exp.EQ(this=one, expression=other))
            merged[name.name.lower()] = (
                exp.Coalesce(this=one.copy(), expressions=[other.copy()]) if kind == "full" else (other if kind == "right" else one).copy()
            )
        return conjunction(parts), merged

    def _lateral(self, relation: Relation, scope: _Scope, lateral: exp.Lateral) -> tuple[Relation, _Scope]:
        _require(lateral, {"this", "view", "outer", "alias"}, "unsupported-operator")
        if not isinstance(lateral.this, GENERATORS):
            raise _unsupported(lateral)
        generator = self._resolved(lateral.this, scope)
        for part in generator.iter_expressions():
            self._require_scalar(part)
        alias = lateral.args.get("alias")
        names = tuple(c.name for c in alias.columns) if alias else ()
        if len(names) != (2 if "pos" in type(generator).__name__.lower() else 1):
            raise Refused("unsupported-operator", "the columns of LATERAL VIEW need names", lateral)
        columns = tuple((name, self.fresh(name, "unknown")) for name in names)
        source = _Source(alias.name.lower() if alias and alias.this else "", columns)
        made = Explode(relation, generator, tuple(unique for _, unique in columns), bool(lateral.args.get("outer")))
        return made, replace(scope, sources=(*scope.sources, source))

    # --- WHERE --------------------------------------------------------------------------------------------------------------------

    def _filtered(self, relation: Relation, where: exp.Expr | None, scope: _Scope) -> Relation:
        """Conditions without subqueries first: they are the cheaper, and help to find what the others can affect."""
        parts = conjuncts(where)
        plain = [self._resolved(part, scope) for part in parts if not _has_query(part)]
        for part in plain:
            self._require_scalar(part)
        relation = filtered(relation, plain)
        for part in parts:
            if _has_query(part):
                relation = self._subquery(relation, part, scope)
        return relation

    def _subquery(self, relation: Relation, part: exp.Expr, scope: _Scope) -> Relation:
        negated = isinstance(part, exp.Not)
        inside = part.this.unnest() if negated else part.unnest()
        if isinstance(inside, exp.Exists):
            return self._exists(relation, inside.this, scope, "anti" if negated else "semi", None)
        if isinstance(inside, exp.In) and inside.args.get("query") is not None and not _has_query(inside.this):
            value = self._resolved(inside.this, scope)
            self._require_scalar(value)
            return self._exists(relation, inside.args["query"], scope, "null-aware-anti" if negated else "semi", value)
        relation, resolved = self.scalars(relation, part, scope)
        self._require_scalar(resolved)
        return Filter(relation, resolved)

    def _exists(self, relation: Relation, tree: exp.Expr, scope: _Scope, kind: JoinKind, value: exp.Expr | None) -> Relation:
        """EXISTS and IN: a join with the subquery, whose conditions on the query around it are conditions of the join."""
        select = tree.unnest()
        correlated: list[exp.Expr] = []
        if isinstance(select, exp.SetOperation):
            block = self.query(select, replace(scope, sources=(), outer=None))
        elif isinstance(select, exp.Select):
            block, correlated = self._correlated(select, scope)
        else:
            raise _unsupported(tree)
        parts = list(correlated)
        if value is not None:
            if len(block.columns) != 1:
                raise _unsupported(tree)
            parts.insert(
                0, exp.EQ(this=exp.paren(value) if not isinstance(value, exp.Column) else value, expression=column(block.columns[0][1]))
            )
        if kind == "null-aware-anti" and correlated:
            raise Refused("unsupported-operator", "NOT IN with a subquery that refers to the query around it", tree)
        return Join(relation, block.relation, kind, conjunction(parts), "in" if value is not None and len(parts) == 1 else "")

    def _correlated(self, select: exp.Select, scope: _Scope) -> tuple[_Block, list[exp.Expr]]:
        """A subquery without its conditions on the query around it, which are given by the names of both."""
        around = replace(scope, outer=None)
        bare = select.copy()
        where = bare.args.get("where")
        parts = conjuncts(where.this if where else None)
        inner_scope = self._scope_only(bare, scope)
        outer = [p for p in parts if not _has_query(p) and self._refers_out(p, inner_scope, around)]
        if not outer:
            return self.query(bare, replace(scope, sources=(), outer=None, merged={})), []
        if bare.args.get("group") or bare.args.get("having") or bare.args.get("limit") or _aggregates_in(bare):
            raise Refused("unsupported-operator", "a correlated subquery with an aggregate in EXISTS or IN", select)
        _require(bare, {"expressions", "from_", "joins", "laterals", "where", "distinct", "order"}, "unsupported-operator")
        inner = conjunction([p for p in parts if p not in outer])
        bare.set("where", exp.Where(this=inner) if inner is not None else None)
        # Which columns the conditions need is known only when the tables have their names: all are kept, Spark leaves out the others.
        relation, made = self._from(bare, replace(scope, sources=(), outer=None, merged={}))
        relation = self._filtered(relation, inner, made)
        both = replace(made, outer=around)
        correlated = [self._resolved(p, both) for p in outer]
        for part in correlated:
            self._require_scalar(part)
        values = []
        for name, written in self._selected(bare, made) if not _is_one(bare) else ():
            value = self._resolved(written, made)
            self._require_scalar(value)
            if not isinstance(value, exp.Column):
                unique = self.fresh(name, of_expression(value, self.kinds))
                relation = Project(relation, (*(Item(n, column(n)) for n in relation.columns), Item(unique, value)))
                value = column(unique)
            values.append((name, value.name))
        return _Block(relation, tuple(values)), correlated

    def _scope_only(self, select: exp.Select, scope: _Scope) -> _Scope:
        """The names of a subquery's tables, to tell its own columns from others."""
        saved = self.numbers
        _, made = self._from(select, replace(scope, sources=(), outer=None, merged={}))
        self.numbers = saved
        return made

    def _refers_out(self, part: exp.Expr, inner: _Scope, outer: _Scope) -> bool:
        for found in part.find_all(exp.Column):
            try:
                self._column(found, inner)
            except Refused:
                self._column(found, outer)
                return True
        return False

    # --- scalar subqueries ----------------------------------------------------------------------------------------------------------

    def scalars(self, relation: Relation, part: exp.Expr, scope: _Scope) -> tuple[Relation, exp.Expr]:
        """An expression with columns in the place of its scalar subqueries, and the relation that has those columns."""
        copy = part.copy()
        holder = exp.paren(copy, copy=False)
        for found in list(holder.find_all(exp.Subquery)):
            if found.find_ancestor(exp.Subquery) is not None:
                continue
            parent = found.parent
            if isinstance(parent, exp.In | exp.Exists):
                raise Refused("unsupported-operator", "IN or EXISTS as a part of another condition", part)
            relation, value = self._scalar(relation, found.this, scope)
            found.replace(_marked(value))
        if holder.find(exp.Exists) is not None or holder.find(exp.Select) is not None:
            raise Refused("unsupported-operator", "IN or EXISTS as a part of another condition", part)
        return relation, self._resolved(holder.this, scope)

    def _scalar(self, relation: Relation, tree: exp.Expr, scope: _Scope) -> tuple[Relation, exp.Expr]:
        select = tree.unnest()
        around = replace(scope, outer=None)
        if isinstance(select, exp.Select):
            where = select.args.get("where")
            inner = self._scope_only(select, self._with_ctes(select, scope))
            parts = conjuncts(where.this if where else None)
            outer = [p for p in parts if not _has_query(p) and self._refers_out(p, inner, around)]
            if outer:
                return self._correlated_scalar(relation, select, outer, scope)
        block = self.query(select, replace(scope, sources=(), outer=None, merged={}))
        if len(block.columns) != 1:
            raise _unsupported(tree)
        unique = self.fresh("scalar", self.kinds.get(block.columns[0][1], "unknown"))
        return Scalar(relation, block.relation, unique), column(unique)

    def _correlated_scalar(self, relation: Relation, select: exp.Select, outer: list[exp.Expr], scope: _Scope) -> tuple[Relation, exp.Expr]:
        """An aggregate for each row of the query around it: a left join with the aggregate by the columns that are compared."""
        _require(select, {"expressions", "from_", "joins", "where"}, "unsupported-operator")
        if len(select.expressions) != 1:
            raise _unsupported(select)
        bare = select.copy()
        where = bare.args["where"].this
        kept = conjunction([p for p in conjuncts(where) if p not in outer])
        inner, made = self._from(bare, replace(scope, sources=(), outer=None, merged={}))
        inner = self._filtered(inner, kept, made)
        keys, on = [], []
        for part in outer:
            if not isinstance(part, exp.EQ):
                raise Refused("unsupported-operator", "a correlated subquery whose condition is no equality", part)
            sides = [part.left, part.right]
            own = [s for s in sides if not self._refers_out(s, made, replace(scope, outer=None))]
            if len(own) != 1:
                raise Refused("unsupported-operator", "a correlated subquery whose condition mixes both sides", part)
            other = sides[1] if own[0] is sides[0] else sides[0]
            value, theirs = self._resolved(own[0], made), self._resolved(other, replace(scope, outer=None))
            self._require_scalar(value)
            self._require_scalar(theirs)
            unique = self.fresh("key", of_expression(value, self.kinds))
            keys.append(Item(unique, value))
            outside: exp.Expr = theirs if isinstance(theirs, exp.Column) else exp.paren(theirs)
            # In the order in which it was written: Spark's plans keep it.
            pair = (column(unique), outside) if own[0] is sides[0] else (outside, column(unique))
            on.append(exp.EQ(this=pair[0], expression=pair[1]))
        parts = _SelectParts(self, made, bare)
        aggregate, (value,) = parts.aggregated(inner, tuple(keys), [select.expressions[0].unalias()])
        if not isinstance(aggregate, Aggregate) or not aggregate.values:
            raise Refused("unsupported-operator", "a correlated subquery without an aggregate", select)
        self._require_scalar(value)
        if names_in(value) & {key.name for key in keys}:
            raise Refused("unsupported-operator", "a column that is neither grouped nor aggregated", select)
        functions = {i.name: i.expression.this if isinstance(i.expression, exp.Filter) else i.expression for i in aggregate.values}
        for function in functions.values():
            if isinstance(function, exp.ArrayAgg | exp.ArrayUniqueAgg):
                raise _unsupported(function)
        # Where the join finds nothing, the aggregates are what they are of no rows, NULL or 0 for counts, and the value is made of those.
        counts = [name for name, function in functions.items() if isinstance(function, exp.Count | exp.CountIf)]
        if isinstance(value, exp.Column) or (not counts and _is_strict(value)):
            unique = self.fresh("scalar", of_expression(value, self.kinds))
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

    def _resolved(self, expression: exp.Expr, scope: _Scope) -> exp.Expr:
        """The expression with the names of the tree. `outer` of the scope is asked for what the scope does not know."""
        holder = exp.paren(expression.copy(), copy=False)
        bound = {p.name.lower() for found in holder.find_all(exp.Lambda) for p in found.expressions}
        for found in list(holder.find_all(exp.Column)):
            if _is_known(found) or (found.name.lower() in bound and not found.table):
                continue
            try:
                value = self._column(found, scope)
            except Refused:
                if scope.outer is None:
                    raise
                value = self._column(found, scope.outer)
            found.replace(_placed(value, found))
        return _only(holder)

    def _column(self, node: exp.Expr, scope: _Scope) -> exp.Expr:
        """The one column of that name; a name of several parts may go into a struct."""
        parts = [part.name for part in node.parts]  # type: ignore[attr-defined]
        lowered = [p.lower() for p in parts]
        if len(parts) > 1:
            found = [s for s in scope.sources if s.alias == lowered[0]]
            if len(found) == 1:
                return _field(_one(found[0].columns, lowered[1], node), parts[2:])
        if lowered[0] in scope.merged:
            return _field(scope.merged[lowered[0]].copy(), parts[1:])
        columns = [pair for source in scope.sources for pair in source.columns]
        return _field(_one(columns, lowered[0], node), parts[1:])

    def _require_scalar(self, expression: exp.Expr | None) -> None:
        for node in expression.walk() if expression is not None else ():
            if not is_scalar(node) and not isinstance(node, exp.Lambda | exp.Star):
                raise _unsupported(node)


@dataclass
class _SelectParts:
    """Aggregates and window functions of one SELECT."""

    builder: _Builder
    scope: _Scope
    tree: exp.Select

    def compute(self, relation: Relation, selected: list[tuple[str, exp.Expr]]) -> tuple[Relation, list[exp.Expr]]:
        """The relation that has everything the selected values are made of, and those values."""
        group, having, qualify = (self.tree.args.get(key) for key in ("group", "having", "qualify"))
        aliases = {name.lower(): value for name, value in selected if not isinstance(value, exp.Column) or _is_known(value) or True}
        written = [value for _, value in selected]
        own = {name.lower() for source in self.scope.sources for name, _ in source.columns} | set(self.scope.merged)
        written = [self._with_aliases(value, dict(list(aliases.items())[:at]), own) for at, value in enumerate(written)]
        if group is not None or having is not None or any(_aggregates_in(value) for value in written):
            keys = self._group_keys(group, selected, own)
            relation, values = self._grouped(relation, keys, written, having, aliases, own)
        else:
            values = []
            for value in written:
                relation, made = self.builder.scalars(relation, value, self.scope)
                values.append(made)
        filters = [self._with_aliases(q, aliases, own) for q in conjuncts(qualify.this if qualify else None)]
        if qualify is not None and group is not None:
            raise _unsupported(qualify)
        conditions = [self.builder._resolved(q, self.scope) for q in filters]
        relation, computed = self._windowed(relation, [*values, *conditions])
        values, conditions = computed[: len(values)], computed[len(values) :]
        for value in (*values, *conditions):
            self.builder._require_scalar(value)
        return filtered(relation, conditions), values

    def _with_aliases(self, expression: exp.Expr, aliases: Mapping[str, exp.Expr], own: set[str]) -> exp.Expr:
        """Names of the SELECT list where no table has a column of that name."""
        holder = exp.paren(expression.copy(), copy=False)
        for _ in range(8):
            found = [
                c
                for c in holder.find_all(exp.Column)
                if not c.table and not _is_known(c) and c.name.lower() in aliases and c.name.lower() not in own
            ]
            if not found:
                break
            for one in found:
                value = aliases[one.name.lower()].copy()
                one.replace(value if isinstance(value, exp.Column) else exp.paren(value))
        return _only(holder)

    def _group_keys(self, group: exp.Expr | None, selected: list[tuple[str, exp.Expr]], own: set[str]) -> list[exp.Expr]:
        if group is None:
            return []
        _require(group, {"expressions", "all"}, "unsupported-operator")
        if group.args.get("all"):
            return [value for _, value in selected if not _aggregates_in(value)]
        aliases = {name.lower(): value for name, value in selected}
        keys = []
        for one in group.expressions:
            if isinstance(one, exp.Literal) and not one.is_string:
                keys.append(selected[int(one.name) - 1][1])
            elif isinstance(one, exp.Rollup | exp.Cube | exp.GroupingSets):
                raise Refused("unsupported-operator", "ROLLUP, CUBE and GROUPING SETS are not refreshed incrementally", one)
            else:
                keys.append(self._with_aliases(one, aliases, own))
        return keys

    def _grouped(
        self,
        relation: Relation,
        keys: list[exp.Expr],
        selected: list[exp.Expr],
        having: exp.Expr | None,
        aliases: Mapping[str, exp.Expr],
        own: set[str],
    ) -> tuple[Relation, list[exp.Expr]]:
        items: list[Item] = []
        for key in keys:
            value = self.builder._resolved(key, self.scope)
            self.builder._require_scalar(value)
            if any(value == item.expression for item in items):
                continue
            items.append(Item(self.builder.fresh(key.alias_or_name or "key", of_expression(value, self.builder.kinds)), value))
        conditions = [self._with_aliases(c, aliases, own) for c in conjuncts(having.this if having else None)]
        made, values = self.aggregated(relation, tuple(items), [*selected, *conditions])
        chosen, filters = values[: len(selected)], values[len(selected) :]
        return filtered(made, filters), chosen

    def aggregated(self, relation: Relation, keys: tuple[Item, ...], written: list[exp.Expr]) -> tuple[Relation, list[exp.Expr]]:
        """The aggregate, and the expressions over its columns. Scalar subqueries are asked for after it."""
        values: list[Item] = []
        results: list[exp.Expr] = []
        subqueries: list[tuple[int, exp.Expr]] = []
        for at, one in enumerate(written):
            holder = exp.paren(one.copy(), copy=False)
            for number, found in enumerate(list(holder.find_all(exp.Subquery))):
                if found.find_ancestor(exp.Subquery) is not None:
                    continue
                marker = f"mvbuild_subquery_{at}_{number}"
                subqueries.append((at, found.this))
                found.replace(_known(marker))
                subqueries[-1] = (at, exp.alias_(found.this, marker, copy=False))
            resolved = self.builder._resolved(holder.this, self.scope)
            results.append(self._over(resolved, keys, values))
        made: Relation = Aggregate(relation, keys, tuple(values))
        for at, subquery in subqueries:
            made, scalar = self.builder._scalar(made, subquery.this, _Scope(ctes=self.scope.ctes))
            results[at] = _replaced(results[at], subquery.alias, scalar)
        allowed = set(made.columns)
        for result in results:
            missing = [n for n in names_in(result) if n not in allowed]
            if missing and not result.find(exp.Window):
                raise Refused("unsupported-operator", "a column that is neither grouped nor aggregated", result)
        return made, results

    def _over(self, expression: exp.Expr, keys: tuple[Item, ...], values: list[Item]) -> exp.Expr:
        """The expression with the aggregate's columns in the place of keys and aggregate functions."""
        holder = exp.paren(expression, copy=False)
        pending = [holder.this]
        while pending:
            node = pending.pop()
            key = next((k for k in keys if k.expression == node), None)
            if key is not None:
                node.replace(_placed(column(key.name), node))
                continue
            if isinstance(node, exp.Filter) and is_aggregate(node.this) and not isinstance(node.parent, exp.Window):
                node.replace(_placed(self._value(node, values), node))
                continue
            if is_aggregate(node) and not isinstance(node.parent, exp.Window | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
                node.replace(_placed(self._value(node, values), node))
                continue
            pending.extend(node.iter_expressions())
        return _only(holder)

    def _value(self, node: exp.Expr, values: list[Item]) -> exp.Expr:
        found = next((v for v in values if v.expression == node), None)
        if found is None:
            for part in node.walk():
                if part is node or isinstance(part, exp.Star | exp.Where | exp.Ordered | exp.Order):
                    continue
                if isinstance(node, exp.Filter) and part is node.this:
                    continue
                if not is_scalar(part):
                    raise _unsupported(part)
            found = Item(self.builder.fresh(type(node).__name__, of_expression(node, self.builder.kinds)), node.copy())
            values.append(found)
        return column(found.name)

    def _windowed(self, relation: Relation, expressions: list[exp.Expr]) -> tuple[Relation, list[exp.Expr]]:
        items: list[Item] = []
        results = []
        for one in expressions:
            holder = exp.paren(one.copy(), copy=False)
            for found in list(holder.find_all(exp.Window)):
                if isinstance(found.parent, exp.Expr) and found.find_ancestor(exp.Window) is not None:
                    raise _unsupported(found)
                self._require_window(found)
                known = next((i for i in items if i.expression == found), None)
                if known is None:
                    known = Item(self.builder.fresh("window", of_expression(found.this, self.builder.kinds)), found.copy())
                    items.append(known)
                found.replace(column(known.name))
            results.append(holder.this)
        return (Window(relation, tuple(items)) if items else relation), results

    def _require_window(self, window: exp.Window) -> None:
        _require(window, {"this", "partition_by", "order", "spec", "over"}, "unsupported-operator")
        function = window.this.this if isinstance(window.this, exp.Filter) else window.this
        if not (is_aggregate(function) or isinstance(function, RANKINGS + POSITIONS)):
            raise _unsupported(window.this)
        for part in window.walk():
            if part in (window, function) or isinstance(part, exp.Ordered | exp.Order | exp.WindowSpec | exp.Star | exp.Filter | exp.Where):
                continue
            if not is_scalar(part) and part is not function:
                raise _unsupported(part)


def filtered(relation: Relation, parts: Sequence[exp.Expr]) -> Relation:
    """A filter, each condition as far down as inner joins let it: equalities of comma joins become conditions of the joins."""
    left = []
    for part in parts:
        pushed = _pushed(relation, part)
        if pushed is None:
            left.append(part)
        else:
            relation = pushed
    condition = conjunction(left)
    return relation if condition is None else Filter(relation, condition)


def _pushed(relation: Relation, part: exp.Expr) -> Relation | None:
    """None if nothing below is the place for it."""
    needed = names_in(part)
    if not needed or not isinstance(relation, Join) or relation.kind == "full":
        return None
    for side, name in ((relation.left, "left"), (relation.right, "right")):
        if needed <= set(side.columns) and (name == "left" or relation.kind == "inner"):
            inner = _pushed(side, part) or filtered_here(side, part)
            return replace(relation, left=inner) if name == "left" else replace(relation, right=inner)
    if relation.kind != "inner":
        return None
    return replace(relation, on=conjunction([*conjuncts(relation.on), part]))


def filtered_here(relation: Relation, part: exp.Expr) -> Relation:
    if isinstance(relation, Filter):
        merged = conjunction([*conjuncts(relation.predicate), part])
        assert merged is not None
        return Filter(relation.child, merged)
    return Filter(relation, part.copy())


def _mark_unlike(root: Relation, kinds: Mapping[str, Kind]) -> None:
    """Equalities of a string and something else hold after a cast, so that keys cannot go from one side to the other."""
    for node in walk(root):
        for part in conjuncts(node.on) if isinstance(node, Join) else ():
            if isinstance(part, exp.EQ | exp.NullSafeEQ) and _are_unlike(*(of_expression(side, kinds) for side in (part.left, part.right))):
                part.meta[UNLIKE] = True
        if isinstance(node, Union | SetOperation):
            for columns in zip(*(child.columns for child in node.children), strict=True):
                found = [_kind_below(child, name, kinds) for child, name in zip(node.children, columns, strict=True)]
                if any(_are_unlike(found[0], other) for other in found[1:]):
                    raise Refused("unsupported-operator", "a set operation of strings and something else")


def _kind_below(relation: Relation, name: str, kinds: Mapping[str, Kind]) -> Kind:
    """Of a column that has the same name in all parts of a set operation."""
    items = relation.items if isinstance(relation, Project) else ()
    return next((of_expression(item.expression, kinds) for item in items if item.name == name), "unknown")


def _are_unlike(one: Kind, other: Kind) -> bool:
    return (one == "string") != (other == "string") and "unknown" not in (one, other)


# --- small questions ---------------------------------------------------------------------------------------------------------------


def _kind(join: exp.Join) -> str:
    side, kind, method = join.side.upper(), join.kind.upper(), join.args.get("method")
    if method or (side, kind) not in _KINDS:
        raise _unsupported(join)
    return _KINDS[(side, kind)]


_KINDS = {
    ("", ""): "inner",
    ("", "INNER"): "inner",
    ("", "CROSS"): "inner",
    ("LEFT", ""): "left",
    ("LEFT", "OUTER"): "left",
    ("RIGHT", ""): "right",
    ("RIGHT", "OUTER"): "right",
    ("FULL", ""): "full",
    ("FULL", "OUTER"): "full",
    ("LEFT", "SEMI"): "semi",
    ("", "SEMI"): "semi",
    ("LEFT", "ANTI"): "anti",
    ("", "ANTI"): "anti",
}


def _require(node: exp.Expr, known: set[str], code: str) -> None:
    """Refused if the node has a part that is not among the known ones: a clause that nobody thought of changes what it means."""
    for key, value in node.args.items():
        if key not in known and value not in (None, False, [], ""):
            where = value[0] if isinstance(value, list) else value
            raise Refused(code, f"{key.strip('_').upper()} is not refreshed incrementally", where if isinstance(where, exp.Expr) else node)


def _unsupported(node: exp.Expr) -> Refused:
    text = node.sql("spark")
    return Refused("unsupported-operator", f"`{text if len(text) < 60 else text[:57] + '...'}` is not refreshed incrementally", node)


def _has_query(node: exp.Expr) -> bool:
    return node.find(exp.Query) is not None


def _aggregates_in(node: exp.Expr) -> bool:
    """Aggregate functions outside of subqueries and of OVER."""
    pending = list(node.expressions) if isinstance(node, exp.Select) else [node]
    while pending:
        one = pending.pop()
        if isinstance(one, exp.Query):
            continue
        if isinstance(one, exp.Window):
            function = one.this
            pending.extend(p for p in one.iter_expressions() if p is not function)
            pending.extend(function.iter_expressions())
            continue
        if is_aggregate(one):
            return True
        pending.extend(one.iter_expressions())
    return False


def _is_strict(value: exp.Expr) -> bool:
    """Whether it is NULL where a column in it is."""
    return all(isinstance(node, _STRICT) for node in value.walk()) and value.find(exp.Column) is not None


_STRICT = (exp.Column, exp.Identifier, exp.Literal, exp.Paren, exp.Mul, exp.Add, exp.Sub, exp.Div, exp.Neg)


def _is_one(select: exp.Select) -> bool:
    """SELECT * or SELECT 1, as in EXISTS."""
    return all(isinstance(e, exp.Star | exp.Literal) for e in select.expressions)


def _aliased(node: exp.Expr, columns: tuple[tuple[str, str], ...], name: str = "") -> _Source:
    alias = node.args.get("alias")
    names = tuple(c.name for c in alias.columns) if alias else ()
    if names and len(names) != len(columns):
        raise _unsupported(node)
    named = tuple(zip(names, (unique for _, unique in columns), strict=True)) if names else columns
    return _Source((node.alias or name).lower(), named)


def _one(columns: Sequence[tuple[str, str]], name: str, node: exp.Expr) -> exp.Expr:
    found = [unique for known, unique in columns if known.lower() == name]
    if len(found) != 1:
        raise Refused("unsupported-operator", f"column {node.sql('spark')} cannot be told", node)
    return _known(found[0])


def _field(value: exp.Expr, path: list[str]) -> exp.Expr:
    for part in path:
        value = exp.Dot(this=value, expression=exp.to_identifier(part, quoted=True))
    return value


def _known(name: str) -> exp.Expr:
    found = column(name)
    found.meta["known"] = True
    return found


def _placed(value: exp.Expr, node: exp.Expr) -> exp.Expr:
    """With the place in the text of what it stands for."""
    places = [(n.meta["start"], n.meta["end"]) for n in node.walk() if "start" in n.meta and "end" in n.meta]
    if places:
        value.meta.update(start=min(start for start, _ in places), end=max(end for _, end in places))
    return value


def _marked(value: exp.Expr) -> exp.Expr:
    for found in value.find_all(exp.Column):
        found.meta["known"] = True
    return value


def _is_known(node: exp.Expr) -> bool:
    return bool(node.meta.get("known"))


def _replaced(expression: exp.Expr, name: str, value: exp.Expr) -> exp.Expr:
    holder = exp.paren(expression, copy=False)
    for found in list(holder.find_all(exp.Column)):
        if found.name == name:
            found.replace(value.copy())
    return _only(holder)


def _only(holder: exp.Expr) -> exp.Expr:
    """What is in a parenthesis that was put around it so that it can be replaced."""
    found: exp.Expr = holder.this
    return found


def _common(one: Kind, other: Kind) -> Kind:
    return one if one == other else "unknown"
