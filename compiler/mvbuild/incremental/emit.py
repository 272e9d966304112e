"""Relation -> SQL: one SELECT for each operator, which Spark's optimizer combines again."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from mvbuild.incremental.algebra import (
    Aggregate,
    Distinct,
    Expand,
    Explode,
    Filter,
    Item,
    Join,
    Limit,
    OneRow,
    Pivot,
    Project,
    Recursion,
    Ref,
    Relation,
    Scalar,
    Scan,
    Sessions,
    SetOperation,
    TimeWindow,
    Union,
    Unpivot,
    Window,
    column,
    conjunction,
    conjuncts,
    has_one_row,
    substituted,
)

Source = Callable[[Scan | Ref], str]
"""The SQL after FROM for a table at one version, or for the result of an earlier statement."""

_MARK = "mvbuild_from_{}"
_MARKS = re.compile(r"[`\"]mvbuild_from_(\d+)[`\"]")


def sql_of(relation: Relation, source: Source, *, outputs: Sequence[tuple[str, str]] | None = None, dialect: str = "spark") -> str:
    """`outputs`: (name in the tree, name in the result), in order; None keeps the names of the tree.

    >>> sql_of(Scan(0, (("id_0", "id"),)), lambda table: "raw.orders", outputs=[("id_0", "id")])
    'SELECT `id_0` AS `id` FROM (SELECT `id` AS `id_0` FROM raw.orders AS s1) AS t1'
    """
    emitter = _Emitter(dialect)
    chosen = outputs if outputs is not None else [(name, name) for name in relation.columns]
    tree = _select([_named(column(name), shown) for name, shown in chosen], emitter.derived(relation))
    text = tree.sql(dialect, comments=False, copy=False)
    return _MARKS.sub(lambda match: source(emitter.reads[int(match[1])]), text)


class _Emitter:
    """One statement. Tables are written as markers and replaced in the final text, because they may be anything that the engine reads."""

    def __init__(self, dialect: str) -> None:
        self._dialect = dialect
        self.reads: list[Scan | Ref] = []
        self._aliases = 0

    def derived(self, relation: Relation) -> exp.Expr:
        self._aliases += 1
        return exp.Subquery(this=self.select(relation), alias=exp.TableAlias(this=exp.to_identifier(f"t{self._aliases}")))

    def select(self, relation: Relation) -> exp.Expr:
        return _WRITERS[type(relation)](self, relation)

    def _over(self, relation: Relation, columns: Sequence[str], *more: exp.Expr, **clauses: object) -> exp.Select:
        return _select([*(column(name) for name in columns), *more], self.derived(relation), **clauses)

    def _table(self, relation: Scan | Ref) -> exp.Table:
        self.reads.append(relation)
        return exp.Table(
            this=exp.to_identifier(_MARK.format(len(self.reads) - 1), quoted=True),
            alias=exp.TableAlias(this=exp.to_identifier(f"s{len(self.reads)}")),
        )

    def scan(self, node: Scan) -> exp.Expr:
        return _select([_named(column(source), name) for name, source in node.sources], self._table(node))

    def ref(self, node: Ref) -> exp.Expr:
        return _select([column(name) for name in node.columns], self._table(node))

    def one_row(self, _: OneRow) -> exp.Expr:
        return _select([], None)

    def project(self, node: Project) -> exp.Expr:
        if not isinstance(node.child, Window):
            return _select(_items(node.items), self.derived(node.child))
        # In one SELECT, as written: Spark computes neighbouring expressions before a window.
        windows = {i.name: i.expression for i in node.child.values}
        items = [_named(_inlined(i.expression, windows), i.name) for i in node.items]
        return _select(items, self.derived(node.child.child))

    def filter(self, node: Filter) -> exp.Expr:
        return self._over(node.child, node.columns, where=_where(node.predicate.copy()))

    def join(self, node: Join) -> exp.Expr:
        if node.kind == "null-aware-anti" or (node.form == "in" and node.kind == "semi"):
            (on,) = conjuncts(node.on)
            subquery = exp.Subquery(this=_select([on.expression.copy()], self.derived(node.right)))
            found = exp.In(this=on.this.copy(), query=subquery)
            negated = node.kind == "null-aware-anti"
            return self._over(node.left, node.columns, where=_where(exp.Not(this=found) if negated else found))
        if node.kind == "mark":
            return self._over(node.left, node.left.columns, _named(self._exists(node), node.mark))
        if node.form == "value" and has_one_row(node.right) and node.on is not None:
            (name,) = node.right.columns
            value = exp.Subquery(this=self._over(node.right, node.right.columns))
            return self._over(node.left, node.columns, where=_where(substituted(node.on, {name: value})))
        if node.form == "scalar" and (made := self._correlated(node)) is not None:
            return made
        if node.form == "join" and node.kind in ("semi", "anti") and self._dialect == "spark":
            join = exp.Join(this=self.derived(node.right), side="LEFT", kind=node.kind.upper(), on=_copied(node.on) or exp.true())
            return self._over(node.left, node.columns, joins=[join])
        if node.kind in ("semi", "anti"):
            exists = self._exists(node)
            return self._over(node.left, node.columns, where=_where(exp.Not(this=exists) if node.kind == "anti" else exists))
        right = self.derived(node.right)
        if node.kind == "inner" and node.on is None:
            join = exp.Join(this=right, kind="CROSS")
        elif node.kind == "inner":
            join = exp.Join(this=right, kind="INNER", on=_copied(node.on))
        else:
            join = exp.Join(this=right, side=_SIDES[node.kind], on=_copied(node.on) or exp.true())
        return self._over(node.left, node.columns, joins=[join])

    def _exists(self, node: Join) -> exp.Expr:
        """EXISTS, or IN where it was written so."""
        if node.form == "in":
            (on,) = conjuncts(node.on)
            return exp.In(this=on.this.copy(), query=exp.Subquery(this=_select([on.expression.copy()], self.derived(node.right))))
        condition = _where(node.on.copy()) if node.on is not None else None
        return exp.Exists(this=_select([exp.Literal.number(1)], self.derived(node.right), where=condition))

    def _correlated(self, node: Join) -> exp.Expr | None:
        """The subquery as it was written; None if it was transformed."""
        project = _as_one(node.right)
        if node.kind != "left" or not isinstance(project, Project) or not isinstance(project.child, Aggregate):
            return None
        aggregate, item = project.child, project.items[-1]
        keys = {key.name: key.expression for key in aggregate.keys}
        values = {value.name: value.expression for value in aggregate.values}
        if item.name in keys or not {i.name for i in project.items[:-1]} <= keys.keys():
            return None
        conditions = conjunction([substituted(part, keys) for part in conjuncts(node.on)])
        assert conditions is not None
        inner = _select([substituted(item.expression, values)], self.derived(aggregate.child), where=_where(conditions))
        # The keys themselves are not read: they are equal to columns of the other side.
        nulls = [_named(exp.Null(), i.name) for i in project.items[:-1]]
        return self._over(node.left, node.left.columns, *nulls, _named(exp.Subquery(this=inner), item.name))

    def scalar(self, node: Scalar) -> exp.Expr:
        value = exp.Subquery(this=self._over(node.subquery, node.subquery.columns))
        return self._over(node.child, node.child.columns, _named(value, node.name))

    def aggregate(self, node: Aggregate) -> exp.Expr:
        if isinstance(node.child, Expand) and node.child.source is not None and self._dialect == "spark":
            return self._grouping_sets(node, node.child, node.child.source)
        # Without GROUP BY, only an aggregate makes one row of everything.
        items = _items((*node.keys, *node.values)) or [_named(exp.Count(this=exp.Star()), "one_row")]
        # A number would be a position.
        keys = [exp.Literal.number(at + 1) if i.expression.is_number else i.expression.copy() for at, i in enumerate(node.keys)]
        return _select(items, self.derived(node.child), group=exp.Group(expressions=keys) if keys else None)

    def _grouping_sets(self, node: Aggregate, expand: Expand, source: Relation) -> exp.Expr:
        """As it was written: Spark has no other text for this plan."""
        values = {**{key.name: key.expression for key in expand.keys}, expand.number: exp.GroupingId()}
        items = [_named(values[item.expression.name].copy(), item.name) for item in node.keys]
        sets = [exp.Tuple(expressions=[values[name].copy() for name in names]) for names in expand.sets]
        keys = [key.expression.copy() for key in expand.keys]
        group = exp.Group(expressions=keys, grouping_sets=[exp.GroupingSets(expressions=sets)])
        return _select([*items, *_items(node.values)], self.derived(source), group=group)

    def sessions(self, node: Sessions) -> exp.Expr:
        keys = [*node.keys, node.session]
        group = exp.Group(expressions=[item.expression.copy() for item in keys])
        return _select(_items((*keys, *node.values)), self.derived(node.child), group=group)

    def window(self, node: Window) -> exp.Expr:
        return self._over(node.child, node.child.columns, *_items(node.values))

    def explode(self, node: Explode) -> exp.Expr:
        self._aliases += 1
        alias = exp.TableAlias(
            this=exp.to_identifier(f"g{self._aliases}"), columns=[exp.to_identifier(name, quoted=True) for name in node.names]
        )
        lateral = exp.Lateral(this=node.generator.copy(), view=True, outer=node.outer, alias=alias)
        return self._over(node.child, node.columns, laterals=[lateral])

    def recursion(self, node: Recursion) -> exp.Expr:
        clause = node.generator.copy()
        (cte,) = clause.expressions
        # sqlglot writes such clauses at the top of the statement, where each needs a name of its own.
        self._aliases += 1
        name = f"recursion_{self._aliases}"
        for table in cte.this.find_all(exp.Table):
            table.replace(exp.to_table(name, alias=table.alias_or_name))
        cte.args["alias"].set("this", exp.to_identifier(name))
        (own,), (unique,) = cte.args["alias"].columns, node.names
        made = _select([_named(column(own.name), unique)], exp.to_table(name))
        made.set("with_", clause)
        return made

    def time_window(self, node: TimeWindow) -> exp.Expr:
        return self._over(node.child, node.child.columns, _named(node.generator.copy(), node.names[0]))

    def unpivot(self, node: Unpivot) -> exp.Expr:
        label, value = (exp.to_identifier(name, quoted=True) for name in node.names)
        columns = [
            exp.PivotAlias(this=one.copy(), alias=exp.to_identifier(text, quoted=True))
            for one, text in zip(node.generator.expressions, node.labels, strict=True)
        ]
        made = exp.Pivot(
            expressions=[value], fields=[exp.In(this=label, expressions=columns)], unpivot=True, include_nulls=node.outer or None
        )
        source = self.derived(node.child)
        source.set("pivots", [made])
        return _select([column(name) for name in node.columns], source)

    def pivot(self, node: Pivot) -> exp.Expr:
        groups = node.child
        if self._dialect != "spark" or not isinstance(groups, Aggregate) or not set(node.used) <= set(groups.child.columns):
            return self.project(node)
        several = len(node.functions) > 1
        functions = [_named(one.copy(), f"f{at}") if several else one.copy() for at, one in enumerate(node.functions)]
        cases = [exp.PivotAlias(this=case.copy(), alias=exp.to_identifier(f"c{at}")) for at, case in enumerate(node.cases)]
        made = exp.Pivot(expressions=functions, fields=[exp.In(this=column(node.by), expressions=cases)], unpivot=False)
        # Every column below is a key, or one that it names.
        below = _select([*_items(groups.keys), *(column(name) for name in node.used)], self.derived(groups.child))
        self._aliases += 1
        source = exp.Subquery(this=below, alias=exp.TableAlias(this=exp.to_identifier(f"t{self._aliases}")), pivots=[made])
        names = [f"c{case}_f{at}" if several else f"c{case}" for case in range(len(cases)) for at in range(len(functions))]
        values = {**{key.name: column(key.name) for key in groups.keys}, **dict(zip(node.results, map(exp.column, names), strict=True))}
        return _select([_named(values[item.name], item.name) for item in node.items], source)

    def union(self, node: Union) -> exp.Expr:
        return self._combined(exp.Union, [self._by_name(p, node.columns) for p in node.parts], distinct=False)

    def distinct(self, node: Distinct) -> exp.Expr:
        return self._over(node.child, node.columns, distinct=exp.Distinct())

    def set_operation(self, node: SetOperation) -> exp.Expr:
        kind = exp.Intersect if node.kind == "intersect" else exp.Except
        sides = [self._by_name(side, node.columns) for side in (node.left, node.right)]
        return self._combined(kind, sides, distinct=not node.all)

    def limit(self, node: Limit) -> exp.Expr:
        order = exp.Order(expressions=[o.copy() for o in node.order]) if node.order else None
        limit = exp.Limit(expression=node.limit.copy()) if node.limit is not None else None
        offset = exp.Offset(expression=node.offset.copy()) if node.offset is not None else None
        return self._over(node.child, node.columns, order=order, limit=limit, offset=offset)

    def _by_name(self, relation: Relation, names: Sequence[str]) -> exp.Expr:
        items = [_named(column(own), name) for own, name in zip(relation.columns, names, strict=True)]
        return _select(items, self.derived(relation))

    def _combined(self, kind: type[exp.SetOperation], parts: list[exp.Expr], *, distinct: bool) -> exp.Expr:
        made = parts[0]
        for part in parts[1:]:
            made = kind(this=made, expression=part, distinct=distinct)
        return made


def _as_one(relation: Relation) -> Relation:
    """Projections of projections as one, such as those over an auxiliary view that is put back."""
    while type(relation) is Project and type(relation.child) is Project:
        below = {item.name: item.expression for item in relation.child.items}
        items = tuple(Item(item.name, substituted(item.expression, below)) for item in relation.items)
        relation = Project(relation.child.child, items)
    return relation


def _select(items: Sequence[exp.Expr], source: exp.Expr | None, **clauses: object) -> exp.Select:
    """Built by hand, because sqlglot's builders copy the existing tree once per operator. Without items, for example over one row without
    columns, it has one that nothing reads."""
    items = items or [_named(exp.Literal.number(1), "one_row")]
    from_ = exp.From(this=source) if source is not None else None
    return exp.Select(expressions=list(items), from_=from_, **{name: value for name, value in clauses.items() if value is not None})


def _named(value: exp.Expr, name: str) -> exp.Expr:
    """Without an alias if it has the name: Spark computes a column with an alias below a window function, beside the one without."""
    if isinstance(value, exp.Column) and value.name == name:
        return value
    return exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True))


def _items(items: Sequence[Item]) -> list[exp.Expr]:
    return [_named(item.expression.copy(), item.name) for item in items]


def _where(condition: exp.Expr) -> exp.Where:
    return exp.Where(this=condition)


def _copied(condition: exp.Expr | None) -> exp.Expr | None:
    return condition.copy() if condition is not None else None


def _inlined(expression: exp.Expr, windows: Mapping[str, exp.Expr]) -> exp.Expr:
    alone = isinstance(expression, exp.Column) and expression.name in windows
    return windows[expression.name].copy() if alone else substituted(expression, dict(windows))


_SIDES = {"left": "LEFT", "full": "FULL"}
_WRITERS: Mapping[type, Callable[..., exp.Expr]] = {
    Scan: _Emitter.scan,
    Ref: _Emitter.ref,
    OneRow: _Emitter.one_row,
    Project: _Emitter.project,
    Expand: _Emitter.project,
    Pivot: _Emitter.pivot,
    Filter: _Emitter.filter,
    Join: _Emitter.join,
    Scalar: _Emitter.scalar,
    Aggregate: _Emitter.aggregate,
    Sessions: _Emitter.sessions,
    Window: _Emitter.window,
    Explode: _Emitter.explode,
    Unpivot: _Emitter.unpivot,
    TimeWindow: _Emitter.time_window,
    Recursion: _Emitter.recursion,
    Union: _Emitter.union,
    Distinct: _Emitter.distinct,
    SetOperation: _Emitter.set_operation,
    Limit: _Emitter.limit,
}


def null_safe(pairs: Sequence[tuple[str, str]]) -> exp.Expr | None:
    """Equality of columns where NULL equals NULL."""
    return conjunction([exp.NullSafeEQ(this=column(one), expression=column(other)) for one, other in pairs])
