"""a query + its guarded SELECTs -> whether a row of a guarded table is combined with rows of other tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlglot import exp


def joins_others(query: exp.Expr, guarded: Collection[int]) -> bool:
    """`guarded`: the id() of each SELECT of the query that has a guard in the incremental one."""
    return _joins(query, guarded, {cte.alias.lower(): cte.this for cte in query.find_all(exp.CTE)}, is_guarded=False)


def _joins(query: exp.Expr, guarded: Collection[int], named: Mapping[str, exp.Expr], *, is_guarded: bool) -> bool:
    """The branches of a UNION are separate: none of their rows is combined with one of another branch."""
    query = query.unnest() if isinstance(query, exp.Subquery) else query
    if isinstance(query, exp.Union):
        return any(_joins(side, guarded, named, is_guarded=is_guarded) for side in (query.this, query.expression))
    reads, guards = _count(query, guarded, named)
    is_guarded = is_guarded or id(query) in guarded
    source = query.args.get("from_")
    only = source.this if source is not None and _is_row_by_row(query) and _reads_only(query, source.this) else None
    if isinstance(only, exp.Subquery):
        return _joins(only, guarded, named, is_guarded=is_guarded)
    if isinstance(only, exp.Table) and _is_named(only, named):
        return _joins(named[only.name.lower()], guarded, _without(named, only.name), is_guarded=is_guarded)
    return (is_guarded or guards > 0) and reads > max(guards, 1)


def _count(query: exp.Expr, guarded: Collection[int], named: Mapping[str, exp.Expr]) -> tuple[int, int]:
    """How often the query reads a table, and how many guarded SELECTs it has, also in the WITH queries that it reads."""
    reads = guards = 0
    for node in query.walk(prune=lambda node: isinstance(node, exp.With)):
        guards += id(node) in guarded
        if isinstance(node, exp.Table) and _is_named(node, named):
            inner, inner_guards = _count(named[node.name.lower()], guarded, _without(named, node.name))
            reads, guards = reads + inner, guards + inner_guards
        elif isinstance(node, exp.Table):
            reads += 1
    return reads, guards


def _is_row_by_row(query: exp.Expr) -> bool:
    """Whether the query combines no rows of its FROM with each other."""
    combining = [key for key in ("group", "distinct", "limit", "qualify") if query.args.get(key)]
    return not combining and not any(part.find(exp.AggFunc, exp.Window) for part in query.args.get("expressions") or ())


def _reads_only(query: exp.Expr, source: exp.Expr) -> bool:
    """Whether the query reads nothing but what is in its FROM."""
    inside = {id(table) for table in source.find_all(exp.Table)}
    tables = (node for node in query.walk(prune=lambda node: isinstance(node, exp.With)) if isinstance(node, exp.Table))
    return all(id(table) in inside for table in tables)


def _is_named(table: exp.Table, named: Mapping[str, exp.Expr]) -> bool:
    return not table.db and table.name.lower() in named


def _without(named: Mapping[str, exp.Expr], name: str) -> Mapping[str, exp.Expr]:
    """A WITH query does not read itself, unless it is recursive."""
    return {key: query for key, query in named.items() if key != name.lower()}
