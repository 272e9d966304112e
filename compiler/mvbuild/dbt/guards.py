"""The query without and with is_incremental() -> Guards: the conditions that the second has more, or why they do more than prune."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import SqlglotError

from mvbuild.dbt.bounds import NotProven, lower_bound
from mvbuild.parse.dialect import parse, tokenize

Bounded = tuple[exp.Expr, ...]
"""What a guard bounds from below as the rows of one query have it: columns, or expressions of one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """The extra conditions of one SELECT: the column that they bound from below, and the output columns that hold it, in small letters."""

    column: str
    exposed: frozenset[str]
    whole: bool = True
    """Whether every row of the result is bounded, and not only those of a branch of UNION."""
    newest_first: frozenset[str] = frozenset()
    """The keys of a `row_number() ... = 1` above the guard that keeps the newest row of each."""


def tree_of(sql: str) -> exp.Expr:
    """Raises NotProven."""
    try:
        trees = parse(tokenize(sql), sql)
    except (SqlglotError, RecursionError) as exc:
        raise NotProven("does-not-compile", "The SQL cannot be parsed") from exc
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise NotProven("does-not-compile", "The SQL is no single query")
    return trees[0]


def guards(full: str, incremental: str, model: str) -> tuple[Guard, ...]:
    """The guards of an incremental model; none where both queries are the same. Raises NotProven."""
    whole, pruned = tree_of(full), tree_of(incremental)
    extras: list[tuple[exp.Select, list[exp.Expr]]] = []
    _compare(whole, pruned, extras)
    guarded = {id(select) for select, _ in extras}
    found = [_guard(select, conditions, pruned, model, guarded) for select, conditions in extras]
    if len(found) > 1 and not _in_branches([select for select, _ in extras], pruned):
        raise NotProven("guard-several")
    return tuple(found)


# The difference


def _compare(whole: exp.Expr, pruned: exp.Expr, extras: list[tuple[exp.Select, list[exp.Expr]]]) -> None:
    if whole == pruned:
        return
    if type(whole) is not type(pruned):
        raise NotProven("guard-changes-query")
    keys = {k for k, v in (*whole.args.items(), *pruned.args.items()) if v not in (None, [], False)}
    if isinstance(pruned, exp.Select):
        more = _more(whole, pruned)
        if more:
            extras.append((pruned, more))
        keys.discard("where")
    for key in keys:
        left, right = whole.args.get(key), pruned.args.get(key)
        lefts, rights = (v if isinstance(v, list) else [v] for v in (left, right))
        if len(lefts) != len(rights):
            raise NotProven("guard-changes-query")
        for a, b in zip(lefts, rights, strict=True):
            if isinstance(a, exp.Expr) and isinstance(b, exp.Expr):
                _compare(a, b, extras)
            elif a != b:
                raise NotProven("guard-changes-query")


def _more(whole: exp.Expr, pruned: exp.Expr) -> list[exp.Expr]:
    """The conditions that the WHERE of `pruned` has more."""
    ours, theirs = list(_conditions(whole)), list(_conditions(pruned))
    for condition in ours:
        if condition not in theirs:
            raise NotProven("guard-changes-query")
        theirs.remove(condition)
    return theirs


def _conditions(select: exp.Expr) -> Iterator[exp.Expr]:
    where = select.args.get("where")
    stack = [where.this] if where else []
    while stack:
        condition = stack.pop()
        inner = condition.unnest()
        if isinstance(inner, exp.And):
            stack += [inner.right, inner.left]
        else:
            yield inner


# The conditions


def _guard(select: exp.Select, conditions: Iterable[exp.Expr], root: exp.Expr, model: str, guarded: Collection[int]) -> Guard:
    bounds = [lower_bound(condition, model) for condition in conditions]
    columns = {column.sql() for low, _ in bounds for column in low.find_all(exp.Column)}
    if len(columns) != 1:
        raise NotProven("guard-several")
    column = next(bounds[0][0].find_all(exp.Column))
    exposed, newest, whole = _climb(select, [column, *(low for low, _ in bounds)], root, guarded)
    for _, compared in bounds:
        if compared is not None and compared not in exposed:
            raise NotProven(
                "guard-other-column",
                f"The guard filters '{column.sql('spark')}' and compares it with '{compared}' of the table, "
                "and that the one holds the other cannot be seen",
            )
    return Guard(column=column.name.lower(), exposed=exposed, whole=whole, newest_first=newest)


# From the SELECT of the guard to the result


def _climb(
    select: exp.Select, bounded: list[exp.Expr], root: exp.Expr, guarded: Collection[int]
) -> tuple[frozenset[str], frozenset[str], bool]:
    """The output columns of the root that hold what is bounded. Every step must pass on a part of the rows as that part of its result."""
    names: Bounded = tuple(bounded)
    newest: frozenset[str] = frozenset()
    whole = True
    current: exp.Expr = select
    while True:
        if isinstance(current, exp.Select):
            newest |= _row_by_row(current, names if whole else ())
            names = _outputs(current, names)
        elif isinstance(current, (exp.Except, exp.Intersect)):
            raise NotProven("guard-below-join", "The guard leaves out rows of a part of an EXCEPT or INTERSECT")
        elif current.args.get("limit"):
            raise NotProven("guard-below-aggregate")
        else:
            whole = whole and all(id(branch) in guarded for branch in _branches(current))
        if current is root:
            return frozenset(column.name.lower() for column in names if isinstance(column, exp.Column)), newest, whole
        current = _reader(current, root)


def _reader(node: exp.Expr, root: exp.Expr) -> exp.Expr:
    """The query that reads the rows of a query."""
    parent = node.parent
    while isinstance(parent, (exp.Paren, exp.Subquery)) and parent is not root and not isinstance(parent.parent, (exp.From, exp.Join)):
        if isinstance(parent.parent, exp.SetOperation | exp.CTE) or parent.parent is None:
            node, parent = parent, parent.parent
            continue
        raise NotProven("guard-below-join", "The guard stands in a subquery inside of an expression")
    if parent is root or parent is None:
        return root
    if isinstance(parent, exp.SetOperation):
        return parent
    if isinstance(parent, exp.CTE):
        return _reader_of_cte(parent, root)
    if isinstance(parent, exp.Subquery):
        return _driving(parent)
    raise NotProven("guard-below-join", "The guard stands in a subquery inside of an expression")


def _reader_of_cte(cte: exp.CTE, root: exp.Expr) -> exp.Expr:
    name = cte.alias.lower()
    if sum(other.alias.lower() == name for other in root.find_all(exp.CTE)) > 1:
        raise NotProven("guard-below-join", f"Two WITH queries are called '{cte.alias}'")
    places = [t for t in root.find_all(exp.Table) if t.name.lower() == name and not t.db]
    if len(places) != 1:
        raise NotProven("guard-below-join", f"The guarded query '{cte.alias}' is read {len(places)} times")
    return _driving(places[0])


def _driving(source: exp.Expr) -> exp.Expr:
    """The SELECT whose FROM or JOIN a source stands in, if a row that is missing in the source is a row that is missing in the join."""
    place = source.parent
    select = place.find_ancestor(exp.Select) if place else None
    if not isinstance(select, exp.Select) or not isinstance(place, (exp.From, exp.Join)):
        raise NotProven("guard-below-join")
    joins = select.args.get("joins") or []
    at = next((i for i, join in enumerate(joins) if join is place), -1)
    sides = [(join.side or "").upper() for join in joins]
    kinds = [(join.kind or "").upper() for join in joins]
    own = sides[at] if at >= 0 else ""
    later = sides[at + 1 :]
    if own in ("LEFT", "FULL") or any(side in ("RIGHT", "FULL") for side in later) or (at >= 0 and kinds[at] in ("SEMI", "ANTI")):
        raise NotProven("guard-below-join")
    return select


def _row_by_row(select: exp.Select, names: Bounded) -> frozenset[str]:
    """Refuse what needs all rows, unless it works apart for each value of the bounded column."""
    if select.args.get("limit") or select.args.get("offset"):
        raise NotProven("guard-below-aggregate", "The guard leaves out rows before a LIMIT")
    group = select.args.get("group")
    own = [node for projection in (*select.expressions, select.args.get("having")) if projection for node in _own(projection)]
    if group:
        keys = [_group_key(select, key) for key in group.expressions]
        other = any(group.args.get(k) for k in ("cube", "rollup", "grouping_sets", "totals"))
        if other or not any(_is_bounded(key, names) for key in keys):
            raise NotProven("guard-below-aggregate")
    elif any(isinstance(node, exp.AggFunc) and not isinstance(node.parent, (exp.Window, exp.IgnoreNulls)) for node in own):
        raise NotProven("guard-below-aggregate")
    newest: frozenset[str] = frozenset()
    qualify = select.args.get("qualify")
    for window in (node for node in (*own, *(_own(qualify) if qualify else ())) if isinstance(node, exp.Window)):
        partition = window.args.get("partition_by") or []
        if any(_is_bounded(key, names) for key in partition):
            continue
        newest = _newest(window, partition, names)
    return newest


def _newest(window: exp.Window, partition: list[exp.Expr], names: Bounded) -> frozenset[str]:
    order = window.args.get("order")
    first = order.expressions[0] if order and order.expressions else None
    is_newest = isinstance(first, exp.Ordered) and first.args.get("desc") and _is_bounded(first.this, names)
    keys = [key.name.lower() for key in partition if isinstance(key, exp.Column)]
    if isinstance(window.this, exp.RowNumber) and is_newest and keys and len(keys) == len(partition):
        return frozenset(keys)
    raise NotProven("guard-below-aggregate", "The guard leaves out rows before a window function")


def _own(node: exp.Expr) -> Iterator[exp.Expr]:
    """The nodes of an expression, without those of subqueries in it."""
    return node.walk(prune=lambda n: isinstance(n, exp.Query))


def _group_key(select: exp.Select, key: exp.Expr) -> exp.Expr:
    """What `group by 1` or `group by alias` stands for."""
    if isinstance(key, exp.Literal) and key.is_int and 0 < int(key.name) <= len(select.expressions):
        projection: exp.Expr = select.expressions[int(key.name) - 1]
        return projection.unalias()
    return key


def _is_bounded(node: exp.Expr, names: Bounded) -> bool:
    if isinstance(node, exp.Column):
        return any(isinstance(n, exp.Column) and n.name.lower() == node.name.lower() for n in names)
    return node in names


def _outputs(select: exp.Select, names: Bounded) -> Bounded:
    """The output columns that are what is bounded, unchanged."""
    out: list[exp.Expr] = []
    for projection in select.expressions:
        if projection.is_star:
            out += (name for name in names if isinstance(name, exp.Column))
        elif _is_bounded(projection.unalias(), names):
            out.append(exp.column(projection.alias_or_name))
    return tuple(out)


def _branches(node: exp.Expr) -> list[exp.Expr]:
    """The queries that UNION puts together, and what is no UNION itself."""
    branches: list[exp.Expr] = []
    stack = [node]
    while stack:
        inner = stack.pop().unnest()
        if isinstance(inner, exp.Union):
            stack += [inner.right, inner.left]
        else:
            branches.append(inner)
    return branches


def _in_branches(selects: list[exp.Select], root: exp.Expr) -> bool:
    """Whether each guard is in another branch of a UNION that is the whole query."""
    homes = [next((i for i, b in enumerate(_branches(root)) if b is s), None) for s in selects]
    return None not in homes and len(set(homes)) == len(homes)
