"""The SELECT of a guard -> the result of the query: which output columns contain what the guard bounds, or NotProven.

Every step must turn a part of the rows into the same part of its result; then the runs of dbt together return what the whole query returns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.dbt.bounds import NotProven
from mvbuild.dbt.carried import Names, Outputs, above, is_one_of, outputs, through_union


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """A guard in the result. `exposed`: the output columns that contain what it bounds, in lower case."""

    exposed: frozenset[str]
    whole: bool
    newest_first: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Newest:
    """Only the newest row of each key is kept: where the keys are, and the column that the query above must still compare with 1."""

    keys: tuple[Outputs, ...]
    rank: str | None


def climb(select: exp.Select, bounded: Names, root: exp.Expr, guarded: Collection[int]) -> Reached:
    """`guarded` has the id() of each SELECT with a guard. Raises NotProven."""
    names, key_names = bounded, tuple[Names, ...]()
    newest: _Newest | None = None
    whole = True
    current: exp.Expr = select
    first = select
    while True:
        if isinstance(current, exp.Select):
            found = _row_by_row(current, names if whole else ())
            if found and newest:
                raise NotProven("guard-below-aggregate", "The guard leaves out rows before two window functions")
            newest = found or (_Newest(keys=tuple(outputs(current, n) for n in key_names), rank=None) if newest else None)
            carried = outputs(current, names)
            first = current
        elif isinstance(current, (exp.Except, exp.Intersect)):
            raise NotProven("guard-below-join", "The guard leaves out rows of a part of an EXCEPT or INTERSECT")
        elif current.args.get("limit"):
            raise NotProven("guard-below-aggregate")
        elif isinstance(current, exp.SetOperation):
            parts = branches(current)
            whole = whole and all(id(branch) in guarded for branch in parts)
            carried = through_union(current, first, parts[0], carried)
            if newest:
                newest = _Newest(keys=tuple(through_union(current, first, parts[0], k) for k in newest.keys), rank=newest.rank)
            first = parts[0] if isinstance(parts[0], exp.Select) else first
        if current is root:
            return Reached(exposed=_exposed(carried), whole=whole, newest_first=_kept_keys(newest))
        current, source = _reader(current, root)
        if newest and newest.rank and not _keeps_first(current, source, newest.rank):
            raise _not_newest()
        if isinstance(current, exp.Select) and source is not None:
            names = above(source, carried)
            key_names = tuple(above(source, key) for key in newest.keys) if newest else ()
            newest = _Newest(keys=newest.keys, rank=None) if newest else None


def branches(node: exp.Expr) -> list[exp.Expr]:
    """The queries that a UNION combines, and queries that are not a UNION."""
    found: list[exp.Expr] = []
    stack = [node]
    while stack:
        inner = stack.pop().unnest()
        if isinstance(inner, exp.Union):
            stack += [inner.right, inner.left]
        else:
            found.append(inner)
    return found


def conjuncts(clause: exp.Expr | None) -> Iterator[exp.Expr]:
    """The conditions of a WHERE, QUALIFY or the like that must all be true."""
    stack = [clause.this] if clause else []
    while stack:
        inner = stack.pop().unnest()
        if isinstance(inner, exp.And):
            stack += [inner.right, inner.left]
        else:
            yield inner


def _exposed(carried: Outputs) -> frozenset[str]:
    return frozenset(column.name.lower() for column in carried.names if isinstance(column, exp.Column))


def _kept_keys(newest: _Newest | None) -> frozenset[str]:
    """The names of the keys in the result. A key that the result does not have, or that was never filtered, proves nothing."""
    if newest is None:
        return frozenset()
    names = [next(iter(_exposed(key)), None) for key in newest.keys]
    if newest.rank or None in names:
        raise _not_newest()
    return frozenset(name for name in names if name)


def _not_newest() -> NotProven:
    return NotProven("guard-below-aggregate", "The guard leaves out rows before a window function")


# The query above


def _reader(node: exp.Expr, root: exp.Expr) -> tuple[exp.Expr, exp.Expr | None]:
    """The query that reads the rows of a query, and the name of the source in it; None if a UNION reads it."""
    parent = node.parent
    while isinstance(parent, (exp.Paren, exp.Subquery)) and parent is not root and not isinstance(parent.parent, (exp.From, exp.Join)):
        if isinstance(parent.parent, exp.SetOperation | exp.CTE) or parent.parent is None:
            node, parent = parent, parent.parent
            continue
        raise NotProven("guard-below-join", "The guard is in a subquery inside an expression")
    if parent is root or parent is None:
        return root, None
    if isinstance(parent, exp.SetOperation):
        return parent, None
    if isinstance(parent, exp.CTE):
        return _reader_of_cte(parent, root)
    if isinstance(parent, exp.Subquery):
        return _driving(parent), parent
    raise NotProven("guard-below-join", "The guard is in a subquery inside an expression")


def _reader_of_cte(cte: exp.CTE, root: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    name = cte.alias.lower()
    if sum(other.alias.lower() == name for other in root.find_all(exp.CTE)) > 1:
        raise NotProven("guard-below-join", f"Two WITH queries are named '{cte.alias}'")
    places = [t for t in root.find_all(exp.Table) if t.name.lower() == name and not t.db]
    if len(places) != 1:
        raise NotProven("guard-below-join", f"The guarded query '{cte.alias}' is read {len(places)} times")
    renamed = isinstance(cte.args.get("alias"), exp.TableAlias) and cte.args["alias"].args.get("columns")
    return _driving(places[0]), cte if renamed else places[0]


def _driving(source: exp.Expr) -> exp.Expr:
    """The SELECT with the source in FROM or JOIN, if a row missing in the source is a row missing in the join."""
    place = source.parent
    select = place.find_ancestor(exp.Select) if place else None
    if not isinstance(select, exp.Select) or not isinstance(place, (exp.From, exp.Join)):
        raise NotProven("guard-below-join")
    joins = select.args.get("joins") or []
    if any(reads is not None and _has_pivot(reads) for reads in (select.args.get("from_"), *joins)):
        raise NotProven("guard-below-aggregate", "The guard leaves out rows before a PIVOT")
    at = next((i for i, join in enumerate(joins) if join is place), -1)
    sides = [(join.side or "").upper() for join in joins]
    kinds = [(join.kind or "").upper() for join in joins]
    own = sides[at] if at >= 0 else ""
    later = sides[at + 1 :]
    if own in ("LEFT", "FULL") or any(side in ("RIGHT", "FULL") for side in later) or (at >= 0 and kinds[at] in ("SEMI", "ANTI")):
        raise NotProven("guard-below-join")
    return select


def _has_pivot(place: exp.Expr) -> bool:
    """Whether a FROM or JOIN has a PIVOT, ignoring the queries below it."""
    return any(isinstance(node, exp.Pivot) for node in place.walk(prune=lambda n: isinstance(n, (exp.Select, exp.SetOperation))))


# One SELECT


def _row_by_row(select: exp.Select, names: Names) -> _Newest | None:
    """Refuse what needs all rows, unless it works separately for each value of the bounded column."""
    if select.args.get("limit") or select.args.get("offset"):
        raise NotProven("guard-below-aggregate", "The guard leaves out rows before a LIMIT")
    group = select.args.get("group")
    own = [node for projection in (*select.expressions, select.args.get("having")) if projection for node in _own(projection)]
    if group:
        keys = [_group_key(select, key) for key in group.expressions]
        other = any(group.args.get(k) for k in ("cube", "rollup", "grouping_sets", "totals"))
        if other or not any(is_one_of(key, names, select) for key in keys):
            raise NotProven("guard-below-aggregate")
    elif _may_aggregate(select, own):
        raise NotProven("guard-below-aggregate")
    qualify = select.args.get("qualify")
    windows = [n for n in (*own, *(_own(qualify) if qualify else ())) if isinstance(n, exp.Window)]
    ranked = [w for w in windows if not any(is_one_of(key, names, select) for key in w.args.get("partition_by") or [])]
    found = [_newest(select, window, names) for window in ranked]
    if any(other != found[0] for other in found[1:]):
        raise _not_newest()
    return found[0] if found else None


def _may_aggregate(select: exp.Select, own: list[exp.Expr]) -> bool:
    """Whether a SELECT without GROUP BY may be an aggregate. A function that sqlglot does not know may be one, unless a plain column is
    beside it, which Spark allows only without aggregates."""
    calls = [n for n in own if isinstance(n, (exp.AggFunc, exp.Anonymous)) and not isinstance(n.parent, (exp.Window, exp.IgnoreNulls))]
    if not calls or any(isinstance(call, exp.AggFunc) for call in calls):
        return bool(calls)
    plain = (
        node
        for projection in select.expressions
        for node in projection.walk(prune=lambda n: isinstance(n, (exp.Anonymous, exp.Window, exp.Query)))
    )
    return not any(isinstance(node, (exp.Column, exp.Star)) for node in plain)


def _newest(select: exp.Select, window: exp.Window, names: Names) -> _Newest:
    """A `row_number()` that gives the newest row of each key, by what is bounded, the number 1."""
    order = window.args.get("order")
    first = order.expressions[0] if order and order.expressions else None
    is_newest = isinstance(first, exp.Ordered) and bool(first.args.get("desc")) and is_one_of(first.this, names, select)
    partition = window.args.get("partition_by") or []
    if not (isinstance(window.this, exp.RowNumber) and is_newest and partition and all(isinstance(k, exp.Column) for k in partition)):
        raise _not_newest()
    keys = tuple(outputs(select, (key,)) for key in partition)
    alias = window.parent.alias if isinstance(window.parent, exp.Alias) and window.parent.parent is select else ""
    for condition in conjuncts(select.args.get("qualify")):
        ranked = _first_of(condition)
        if ranked is not None and (ranked == window or (alias and isinstance(ranked, exp.Column) and ranked.name.lower() == alias.lower())):
            return _Newest(keys=keys, rank=None)
    if not alias:
        raise _not_newest()
    return _Newest(keys=keys, rank=alias)


def _keeps_first(reader: exp.Expr, source: exp.Expr | None, rank: str) -> bool:
    """Whether the query above keeps only the rows with rank 1."""
    if not isinstance(reader, exp.Select) or source is None:
        return False
    names = above(source, Outputs(names=(exp.column(rank),)))
    found = (_first_of(condition) for condition in conjuncts(reader.args.get("where")))
    return any(ranked is not None and is_one_of(ranked, names, reader) for ranked in found)


def _first_of(condition: exp.Expr) -> exp.Expr | None:
    """What a condition compares with 1 so that, of the numbers from 1, only 1 passes."""
    left, right = condition.args.get("this"), condition.args.get("expression")
    if not isinstance(left, exp.Expr) or not isinstance(right, exp.Expr):
        return None
    if isinstance(condition, exp.EQ) and left.name == "1" and isinstance(left, exp.Literal):
        left, right = right, left
    last = "1" if isinstance(condition, (exp.EQ, exp.LTE)) else "2" if isinstance(condition, exp.LT) else None
    return left.unnest() if isinstance(right, exp.Literal) and not right.is_string and right.name == last else None


def _own(node: exp.Expr) -> Iterator[exp.Expr]:
    """The nodes of an expression, without those of its subqueries."""
    return node.walk(prune=lambda n: isinstance(n, exp.Query))


def _group_key(select: exp.Select, key: exp.Expr) -> exp.Expr:
    """What `group by 1` or `group by alias` refers to."""
    if isinstance(key, exp.Literal) and key.is_int and 0 < int(key.name) <= len(select.expressions):
        projection: exp.Expr = select.expressions[int(key.name) - 1]
        return projection.unalias()
    return key
