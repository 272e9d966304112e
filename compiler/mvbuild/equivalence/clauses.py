"""old SQL + new SQL of one definition -> Change: what was changed, described in a clause; and whether only inner names changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from sqlglot import exp

from mvbuild.equivalence.canonical_text import FAILURES, canonical_text, same_but_names
from mvbuild.equivalence.inlined import parsed
from mvbuild.parse.fingerprint import fingerprint, folded

Kind = Literal["formatting", "names", "column-added", "filter", "join", "expression", "column-removed", "column-changed", "other"]

_GRAVEST_FIRST: tuple[Kind, ...] = ("column-removed", "column-changed", "join", "filter", "expression", "other", "column-added", "names")
_FILTERS = ("where", "having", "qualify", "limit", "offset")
_JOINS = ("from_", "joins", "laterals")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """`message` follows "its definition was changed: "."""

    kind: Kind
    message: str


def classify(old_sql: str, new_sql: str) -> Change:
    """The change from one definition to the next; never raises. If there are several changes, `kind` is the most important one.

    `names` is based on the text alone: a new name may also be that of a table's column, so Spark has to confirm it.
    """
    if fingerprint(old_sql) == fingerprint(new_sql):
        return Change(kind="formatting", message="only formatting and comments")
    if folded(old_sql) == folded(new_sql):
        return Change(kind="names", message="only the case of names")
    if same_but_names(old_sql, new_sql):
        return Change(kind="names", message="only names, or the arrangement of CTEs and aliases inside")
    try:
        found = list(_differences(parsed(old_sql)[1], parsed(new_sql)[1]))
        # With canonical names, other names are not differences; but an insertion shifts all names after it.
        canonical = list(_differences(parsed(canonical_text(old_sql))[1], parsed(canonical_text(new_sql))[1])) if len(found) > 1 else []
        found = canonical if 0 < len(canonical) < len(found) else found
    except FAILURES:
        found = []
    found = found or [Change(kind="other", message="the query as a whole")]
    return Change(kind=min((c.kind for c in found), key=_GRAVEST_FIRST.index), message=", ".join(c.message for c in found))


def _differences(old: exp.Expr, new: exp.Expr) -> Iterator[Change]:
    """Compare by clauses. Trees are copies from which compared parts are removed."""
    old, new = old.copy(), new.copy()
    columns = list(_column_changes(_output_select(old), _output_select(new)))
    yield from columns
    joined = _taken(old, _JOINS, _tables_of), _taken(new, _JOINS, _tables_of)
    filters = _taken(old, _FILTERS, _sql), _taken(new, _FILTERS, _sql)
    if joined[0] != joined[1]:
        yield Change(kind="join", message=_join_message(old, new, joined))
    if filters[0] != filters[1]:
        clauses = sorted({text.split()[0].upper() for text in (filters[0] - filters[1]) + (filters[1] - filters[0])})
        yield Change(kind="filter", message=f"{_and(clauses)} {'was' if len(clauses) == 1 else 'were'} changed")
    yield from _rest(old, new, bool(columns))


def _rest(old: exp.Expr, new: exp.Expr, columns_differ: bool) -> Iterator[Change]:
    """What is left of two queries without tables, conditions, and the columns of the result."""
    for tree in (old, new):
        _output_select(tree).set("expressions", [])
    mine, its = _selects(old), _selects(new)
    if mine == its:
        return
    if [s.args.get("group") for s in old.find_all(exp.Select)] != [s.args.get("group") for s in new.find_all(exp.Select)]:
        yield Change(kind="expression", message="GROUP BY was changed")
    elif len(mine) == len(its):
        yield Change(kind="expression", message="expressions inside were changed")
    elif not columns_differ:
        yield Change(kind="other", message="its subqueries were rearranged")


def _selects(tree: exp.Expr) -> list[str]:
    return sorted(_own_sql(s) for s in tree.find_all(exp.Select))


def _own_sql(select: exp.Select) -> str:
    kept = {k: v for k, v in select.args.items() if k not in ("with_", *_JOINS, *_FILTERS) and v}
    return repr(sorted((k, [_sql(e) for e in (v if isinstance(v, list) else [v])]) for k, v in kept.items()))


def _taken(tree: exp.Expr, clauses: Sequence[str], shown: Callable[[exp.Expr], str]) -> Counter[str]:
    """Remove the clauses of these kinds, and return them as text."""
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


# Columns of the result


def _output_select(tree: exp.Expr) -> exp.Expr:
    """The SELECT whose columns are the result's: through parentheses, set operations, and SELECT * FROM one query."""
    node, seen = tree, 0
    while seen < 100:
        seen += 1
        if isinstance(node, (exp.Subquery, exp.SetOperation)):
            node = node.this
        elif isinstance(node, exp.Select) and (below := _only_source(node, tree)) is not None:
            node = below
        else:
            break
    return node


def _only_source(select: exp.Select, tree: exp.Expr) -> exp.Expr | None:
    star = select.expressions[0] if len(select.expressions) == 1 else None
    from_ = select.args.get("from_")
    if not isinstance(star, exp.Star) or star.args.get("except_") or star.args.get("replace") or star.args.get("rename"):
        return None
    if select.args.get("joins") or select.args.get("laterals") or not isinstance(from_, exp.From):
        return None
    if isinstance(from_.this, exp.Subquery):
        return cast(exp.Expr, from_.this.this)
    name = from_.this.name.lower() if isinstance(from_.this, exp.Table) and not from_.this.args.get("db") else None
    return next((cte.this for cte in tree.find_all(exp.CTE) if cte.alias.lower() == name), None)


def _column_changes(old: exp.Expr, new: exp.Expr) -> Iterator[Change]:
    mine, its = _columns_of(old), _columns_of(new)
    if mine is None or its is None:
        return
    names = {name.lower(): name for name in its}
    removed = [name for name in mine if name.lower() not in names]
    known = {name.lower() for name in mine}
    added = [name for name in its if name.lower() not in known]
    changed = [name for name in mine if name.lower() in names and mine[name] != its[names[name.lower()]]]
    if removed:
        yield Change(kind="column-removed", message=f"{_named(removed)} removed")
    if changed:
        yield Change(kind="column-changed", message=f"{_named(changed)} changed")
    kept = [name for name in mine if name.lower() in names]
    if added:
        is_end = list(its)[: len(kept)] == [names[name.lower()] for name in kept]
        yield Change(kind="column-added" if is_end else "other", message=f"{_named(added)} added{' at the end' if is_end else ''}")
    elif [name.lower() for name in kept] != [name.lower() for name in its]:
        yield Change(kind="other", message="the order of its columns")
    elif not changed and [names[name.lower()] for name in kept] != kept:
        yield Change(kind="other", message="the case of its columns' names")


def _columns_of(select: exp.Expr) -> dict[str, str] | None:
    """Name -> expression of each column; None if they are unknown, or two have the same name."""
    if not isinstance(select, exp.Select) or any(p.is_star for p in select.expressions):
        return None
    columns = {p.alias_or_name or _sql(p): _sql(p.unalias()) for p in select.expressions}
    return columns if len({name.lower() for name in columns}) == len(select.expressions) else None


def _named(names: Sequence[str]) -> str:
    quoted = [f"'{name}'" for name in names]
    return f"column {quoted[0]} was" if len(names) == 1 else f"columns {_and(quoted)} were"


def _and(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
