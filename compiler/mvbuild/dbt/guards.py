"""The query without and with is_incremental() -> Guards: the additional conditions of the second, or why they do more than filter."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import SqlglotError

from mvbuild.dbt.bounds import NotProven, lower_bound
from mvbuild.dbt.climb import branches, climb, conjuncts
from mvbuild.parse.dialect import parse, tokenize


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """The additional conditions of one SELECT: the column that they bound from below, and the output columns that contain it, in lower
    case."""

    column: str
    exposed: frozenset[str]
    whole: bool = True
    """Whether every row of the result is bounded, and not only those of one branch of a UNION."""
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


def guards(full: str, incremental: str, model: str) -> tuple[Guard, ...]:
    """The guards of an incremental model; none if both queries are the same. Raises NotProven."""
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
    """The conditions that only the WHERE of `pruned` has."""
    ours, theirs = (list(conjuncts(select.args.get("where"))) for select in (whole, pruned))
    for condition in ours:
        if condition not in theirs:
            raise NotProven("guard-changes-query")
        theirs.remove(condition)
    return theirs


# The conditions


def _guard(select: exp.Select, conditions: Iterable[exp.Expr], root: exp.Expr, model: str, guarded: Collection[int]) -> Guard:
    bounds = [lower_bound(condition, model) for condition in conditions]
    columns = {column.sql() for low, _ in bounds for column in low.find_all(exp.Column)}
    if len(columns) != 1:
        raise NotProven("guard-several")
    column = next(bounds[0][0].find_all(exp.Column))
    reached = climb(select, (column, *(low for low, _ in bounds)), root, guarded)
    for _, compared in bounds:
        if compared is not None and compared not in reached.exposed:
            raise NotProven(
                "guard-other-column",
                f"The guard filters '{column.sql('spark')}' and compares it with '{compared}' of the table, "
                "and it is not visible that the one contains the other",
            )
    return Guard(column=column.name.lower(), exposed=reached.exposed, whole=reached.whole, newest_first=reached.newest_first)


def _in_branches(selects: list[exp.Select], root: exp.Expr) -> bool:
    """Whether each guard is in a different branch of a UNION that is the whole query."""
    homes = [next((i for i, b in enumerate(branches(root)) if b is s), None) for s in selects]
    return None not in homes and len(set(homes)) == len(homes)
