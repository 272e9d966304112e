"""two texts of one query -> which clauses differ, in words. Nothing is certain about rows: that is for `differences.py`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from sqlglot import exp

from mvbuild.equivalence.canonical_text import canonical_text
from mvbuild.equivalence.column_changes import output_select
from mvbuild.equivalence.inlined import FAILURES, parsed

_FILTERS = ("where", "having", "qualify", "limit", "offset")
_JOINS = ("from_", "joins", "laterals")


def changed_clauses(old_sql: str, new_sql: str, *, known: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """Empty if the texts cannot be parsed or compared. `known`: columns that need no mention, in lower case."""
    try:
        found = tuple(_clauses(parsed(old_sql)[1], parsed(new_sql)[1], known))
        # With canonical names, other names are not differences; but an insertion shifts all names after it.
        canonical = tuple(_clauses(parsed(canonical_text(old_sql))[1], parsed(canonical_text(new_sql))[1], known)) if len(found) > 1 else ()
        return canonical if 0 < len(canonical) < len(found) else found
    except FAILURES:
        return ()


def _clauses(old: exp.Expr, new: exp.Expr, known: frozenset[str]) -> Iterator[str]:
    """Clause by clause; what is left is compared as a whole."""
    old, new = old.copy(), new.copy()
    mine, its = _columns_of(output_select(old)), _columns_of(output_select(new))
    for key in mine:
        if key in its and key not in known and mine[key].unalias() != its[key].unalias():
            yield f"column '{mine[key].alias_or_name or key}' is computed differently"
    if (mine.keys() ^ its.keys()) - known:
        yield "its columns were changed"
    joined = _texts(old, _JOINS, _tables_of), _texts(new, _JOINS, _tables_of)
    filters = _texts(old, _FILTERS, _sql), _texts(new, _FILTERS, _sql)
    if joined[0] != joined[1]:
        yield _join_message(old, new, joined)
    if filters[0] != filters[1]:
        clauses = sorted({text.split()[0].upper() for text in (filters[0] - filters[1]) + (filters[1] - filters[0])})
        yield f"{_and(clauses)} {'was' if len(clauses) == 1 else 'were'} changed"
    yield from _rest(old, new, mine != its)


def _rest(old: exp.Expr, new: exp.Expr, columns_differ: bool) -> Iterator[str]:
    """What is left of two queries without tables, conditions, and the columns of the result."""
    for tree in (old, new):
        output_select(tree).set("expressions", [])
    mine, its = _selects(old), _selects(new)
    if mine == its:
        return
    if [s.args.get("group") for s in old.find_all(exp.Select)] != [s.args.get("group") for s in new.find_all(exp.Select)]:
        yield "GROUP BY was changed"
    elif len(mine) == len(its):
        yield "expressions inside were changed"
    elif not columns_differ:
        yield "its subqueries were rearranged"


def _selects(tree: exp.Expr) -> list[str]:
    return sorted(_own_sql(s) for s in tree.find_all(exp.Select))


def _own_sql(select: exp.Select) -> str:
    kept = {k: v for k, v in select.args.items() if k not in ("with_", *_JOINS, *_FILTERS) and v}
    return repr(sorted((k, [_sql(e) for e in (v if isinstance(v, list) else [v])]) for k, v in kept.items()))


def _texts(tree: exp.Expr, clauses: Sequence[str], shown: Callable[[exp.Expr], str]) -> Counter[str]:
    """The clauses of these kinds, as text."""
    found = (select.args.get(clause) for select in tree.find_all(exp.Query) for clause in clauses)
    nodes = (node for value in found for node in (value if isinstance(value, list) else [value]) if isinstance(node, exp.Expr))
    return Counter(text for node in nodes if (text := shown(node)))


def _tables_of(clause: exp.Expr) -> str:
    """The tables and conditions of a FROM or JOIN; a subquery or CTE is compared by its own clauses."""
    copy = clause.copy()
    relation = copy.this
    if isinstance(relation, exp.Subquery):
        copy.set("this", exp.to_identifier("subquery"))
    return _sql(copy)


def _join_message(old: exp.Expr, new: exp.Expr, joined: tuple[Counter[str], Counter[str]]) -> str:
    mine, its = _table_names(old), _table_names(new)
    parts = [f"'{name}' is now read" for name in sorted(its - mine)] + [f"'{name}' is no longer read" for name in sorted(mine - its)]
    return _and(parts) if parts else "a join was changed" if _joins(joined[0]) or _joins(joined[1]) else "FROM was changed"


def _table_names(tree: exp.Expr) -> set[str]:
    ctes = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    names = (".".join(p.name for p in table.parts) for table in tree.find_all(exp.Table))
    return {name for name in names if name.lower() not in ctes}


def _joins(clauses: Counter[str]) -> bool:
    return any("JOIN" in text for text in clauses)


def _sql(node: object) -> str:
    return node.sql(dialect="spark", comments=False) if isinstance(node, exp.Expr) else repr(node)


def _columns_of(select: exp.Expr) -> dict[str, exp.Expr]:
    """Name in lower case -> column; a column without a name, such as a star, is named by its text."""
    columns = select.expressions if isinstance(select, exp.Select) else []
    return {("" if p.is_star else p.alias_or_name.lower()) or _sql(p): p for p in columns}


def _and(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
