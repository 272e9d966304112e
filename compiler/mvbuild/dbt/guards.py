"""The query without and with is_incremental() -> Guards: the additional conditions of the second, or why they do more than filter."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime

from sqlglot import exp
from sqlglot.errors import SqlglotError

from mvbuild.dataclass import dataclass
from mvbuild.dbt.bounds import NotProven, is_passed, lower_bound, upper_bound
from mvbuild.dbt.climb import branches, climb, conjuncts
from mvbuild.dbt.joined_tables import joins_others
from mvbuild.parse.dialect import parse, tokenize


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """What is known of dbt's runs: all of them come `after` a time. `other`: the incremental query if the variables of the run have other
    values; None if there are none. Their values only grow from those that were given."""

    after: datetime
    other: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """The additional conditions of one SELECT, in WHERE or ON: the column that they bound from below, and the output columns that contain
    it, in lower case."""

    column: str
    exposed: frozenset[str]
    whole: bool = True
    """Whether every row of the result is bounded, and not only those of one branch of a UNION."""
    is_window: bool = False
    """Whether variables of the run bound it from above too."""
    newest_first: frozenset[str] = frozenset()
    """The output columns that are the keys of a `row_number() ... = 1` above the guard, which keeps the newest row of each key."""


def tree_of(sql: str) -> exp.Expr:
    """Parse a query. Raises NotProven."""
    try:
        trees = parse(tokenize(sql), sql)
    except (SqlglotError, RecursionError) as exc:
        raise NotProven("does-not-compile", "The SQL cannot be parsed") from exc
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise NotProven("does-not-compile", "The SQL is not a single query")
    return trees[0]


def guards(full: str, incremental: str, model: str, runs: Runs) -> tuple[tuple[Guard, ...], bool]:
    """The guards of an incremental model; none if both queries are the same. And whether it joins other tables with the guarded ones.
    Raises NotProven."""
    whole, pruned = tree_of(full), tree_of(incremental)
    extras: list[_Extra] = []
    _compare(whole, pruned, extras)
    moves = _moving(runs)
    bounds = [_bounds(extra.conditions, moves) for extra in extras]
    guarded = {id(extra.select) for extra in extras}
    found = [_guard(extra.select, of, pruned, model, guarded) for extra, of in zip(extras, bounds, strict=True)]
    for extra, guard, of in zip(extras, found, bounds, strict=True):
        _require_reached(extra, of, model, runs.after, is_alone=len(found) == 1 and guard.whole)
    if len(found) > 1 and not _in_branches([extra.select for extra in extras], pruned):
        raise NotProven("guard-several")
    return tuple(found), joins_others(whole, {id(extra.whole) for extra in extras})


# The difference


@dataclass(frozen=True, slots=True)
class _Extra:
    """The conditions that a SELECT has only in the incremental query, and those that it has only in the full one. `whole` is the same
    SELECT in the full one."""

    select: exp.Select
    whole: exp.Expr
    conditions: list[exp.Expr]
    starts: list[exp.Expr]


def _compare(whole: exp.Expr, pruned: exp.Expr, extras: list[_Extra]) -> None:
    if whole == pruned:
        return
    if type(whole) is not type(pruned):
        raise NotProven("guard-changes-query")
    keys = {k for k, v in (*whole.args.items(), *pruned.args.items()) if v not in (None, [], False)}
    if isinstance(pruned, exp.Select):
        more, starts = _more(whole, pruned)
        if more:
            extras.append(_Extra(pruned, whole, more, starts))
        keys.discard("where")
    if isinstance(pruned, exp.Join) and _filters(pruned):
        keys.discard("on")
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


def _more(whole: exp.Expr, pruned: exp.Expr) -> tuple[list[exp.Expr], list[exp.Expr]]:
    """The conditions that only `pruned` has, and those that only `whole` has."""
    ours, theirs = (list(_conditions(select)) for select in (whole, pruned))
    starts = []
    for condition in ours:
        if condition in theirs:
            theirs.remove(condition)
        else:
            starts.append(condition)
    if starts and not theirs:
        raise NotProven("guard-changes-query")
    return theirs, starts


def _conditions(select: exp.Expr) -> Iterator[exp.Expr]:
    """The conditions in WHERE, and those in the ON of joins, that each row of a SELECT satisfies."""
    yield from conjuncts(select.args.get("where"))
    for join in select.args.get("joins") or ():
        if _filters(join) and (on := join.args.get("on")) is not None:
            yield from conjuncts(exp.Where(this=on.copy()))


def _filters(join: exp.Expr) -> bool:
    """Whether the ON of a join is a condition like one in WHERE: it is an inner join, and no later one adds rows without it."""
    if join.args.get("side") or join.args.get("method") or str(join.args.get("kind") or "").upper() not in ("", "INNER", "CROSS"):
        return False
    joins = join.parent.args.get("joins") or [] if join.parent else []
    at = next((i for i, other in enumerate(joins) if other is join), 0)
    return not any(str(other.args.get("side") or "").upper() in ("RIGHT", "FULL") for other in joins[at + 1 :])


# The conditions


@dataclass(frozen=True, slots=True)
class _Bounds:
    """The lower bounds of a SELECT, each with whether variables of the run move it; and what such variables bound from above, each with
    whether the bound itself is left out."""

    lower: tuple[tuple[exp.Expr, bool], ...]
    above: tuple[tuple[exp.Expr, bool], ...]


def _moving(runs: Runs) -> Callable[[exp.Expr], bool]:
    """Whether a condition depends on a variable of the run."""
    if runs.other is None:
        return lambda _: False
    fixed = {condition.sql() for select in tree_of(runs.other).find_all(exp.Select) for condition in _conditions(select)}
    return lambda condition: condition.sql() not in fixed


def _bounds(conditions: Iterable[exp.Expr], moves: Callable[[exp.Expr], bool]) -> _Bounds:
    """A window of the run, such as `day >= start and day < end`, `day between start and end` or `day = start`, is a lower and an upper
    bound. An upper bound that does not move leaves out rows for good."""
    lower: list[tuple[exp.Expr, bool]] = []
    upper: list[tuple[exp.Expr, bool]] = []
    for condition in conditions:
        moving = moves(condition)
        for part in _parts(condition) if moving else (condition,):
            above = upper_bound(part) if moving else None
            if above is not None:
                upper.append(above)
            else:
                lower.append((part, moving))
    return _Bounds(lower=tuple(lower), above=tuple(upper))


def _parts(condition: exp.Expr) -> tuple[exp.Expr, ...]:
    """The two comparisons that BETWEEN and `=` consist of."""
    if isinstance(condition, exp.Between) and not condition.args.get("symmetric"):
        low, high = condition.args["low"], condition.args["high"]
    elif isinstance(condition, exp.EQ):
        low = high = condition.expression
    else:
        return (condition,)
    return exp.GTE(this=condition.this.copy(), expression=low.copy()), exp.LTE(this=condition.this.copy(), expression=high.copy())


def _guard(select: exp.Select, of: _Bounds, root: exp.Expr, model: str, guarded: Collection[int]) -> Guard:
    bounds = [lower_bound(condition, model) for condition, _ in of.lower]
    # Windows without their first and their last moment would leave gaps.
    moved = {
        (low.sql(), isinstance(condition, (exp.GT, exp.LT))) for (low, _), (condition, moves) in zip(bounds, of.lower, strict=True) if moves
    }
    if any(not {(low.sql(), open_) for open_ in (False, not ends_open)} & moved for low, ends_open in of.above):
        raise NotProven("guard-not-lower-bound")
    columns = {column.sql() for low, _ in bounds for column in low.find_all(exp.Column)}
    if len(columns) != 1:
        raise NotProven("guard-several")
    column = next(bounds[0][0].find_all(exp.Column))
    lows = {low.sql(): low for low, _ in bounds}
    # `date(ts) >= ... and ts > ...` cuts through a day: only the column itself has all or none of its rows.
    reached = climb(select, (column, *(lows.values() if len(lows) == 1 else ())), root, guarded)
    for _, compared in bounds:
        if compared is not None and compared not in reached.exposed:
            raise NotProven(
                "guard-other-column",
                f"The guard filters '{column.sql('spark')}' and compares it with '{compared}' of the table, "
                "and mvbuild cannot prove that one contains the other",
            )
    return Guard(
        column=column.name.lower(),
        exposed=reached.exposed,
        whole=reached.whole,
        is_window=bool(of.above),
        newest_first=reached.newest_first,
    )


def _require_reached(extra: _Extra, of: _Bounds, model: str, now: datetime, *, is_alone: bool) -> None:
    """Raise NotProven unless each incremental row satisfies the conditions of the full query alone (`{% if not is_incremental() %}`).

    All rows of the table satisfy a lower bound of the first run, so a row above the largest of them satisfies it too, if there is no other
    guard (`is_alone`). A lookback from the maximum, or a default for it, could go below the bound. The clock, and what a variable of the
    run is from the next run on, could not, once they are far enough above the bound.
    """
    for start in extra.starts:
        try:
            low, compared = lower_bound(start, model)
            is_reached = compared is None and (
                any(is_passed(start, condition, now, of_run=moves) for condition, moves in of.lower)
                or (is_alone and isinstance(low, exp.Column) and low.sql() in _above_the_largest(of, model))
            )
        except NotProven:
            is_reached = False
        if not is_reached:
            raise NotProven("guard-changes-query", _unreached(start))


def _unreached(start: exp.Expr) -> str:
    return f"'{start.sql('spark')}' is a condition of the first run, and mvbuild cannot prove that all rows of later runs satisfy it"


def _above_the_largest(of: _Bounds, model: str) -> set[str]:
    """The columns that a guard compares with their own maximum."""
    return {lower_bound(condition, model)[0].sql() for condition, _ in of.lower if _is_above_maximum(condition)}


def _is_above_maximum(condition: exp.Expr) -> bool:
    """Whether a lower bound is the maximum of a column itself."""
    for low, high in ((condition.this, condition.expression), (condition.expression, condition.this)):
        select = high.unnest() if isinstance(high, exp.Subquery) else None
        value = select.expressions[0].unalias() if isinstance(select, exp.Select) and len(select.expressions) == 1 else None
        if isinstance(low, exp.Column) and isinstance(value, exp.Max) and isinstance(value.this, exp.Column):
            return True
    return False


def _in_branches(selects: list[exp.Select], root: exp.Expr) -> bool:
    """Whether each guard is in a different branch of a UNION that is the whole query."""
    homes = [next((i for i, b in enumerate(branches(root)) if b is s), None) for s in selects]
    return None not in homes and len(set(homes)) == len(homes)
