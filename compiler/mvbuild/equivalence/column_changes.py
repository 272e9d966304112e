"""trees of two versions of a query -> what happened to each column of its result."""

from __future__ import annotations

from typing import Literal

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.equivalence.resolve import output_names
from mvbuild.equivalence.tidy import shown

_DEEPEST = 100
"""Queries in queries that are followed."""
What = Literal["added", "removed", "renamed", "respelled", "retyped", "changed", "moved"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnChange:
    """One column. `new` is its current name or type, `old` its previous type."""

    what: What
    name: str
    new: str = ""
    old: str = ""
    is_last: bool = False
    """For an added column: only other added columns follow it."""


def column_changes(old: exp.Expr, new: exp.Expr) -> tuple[ColumnChange, ...]:
    """Empty if the columns of either are not known."""
    before, after = _columns(old), _columns(new)
    if before is None or after is None:
        return ()
    known, now = {name.lower(): name for name in before}, {name.lower(): name for name in after}
    gone = [name for name in before if name.lower() not in now]
    added = [name for name in after if name.lower() not in known]
    found: list[ColumnChange] = []
    for name in gone:
        successor = _successor(name, before, after, gone, added)
        if successor is not None:
            added.remove(successor)
            found.append(ColumnChange(what="renamed", name=name, new=successor))
        else:
            found.append(ColumnChange(what="removed", name=name))
    kept = [name for name in before if name.lower() in now]
    for name in kept:
        found += _changes_of_same(name, now[name.lower()], before[name], after[now[name.lower()]])
    behind = [name.lower() for name in after][len(after) - len(added) :]
    found += [ColumnChange(what="added", name=name, is_last=name.lower() in behind) for name in added]
    if [name.lower() for name in kept] != [name.lower() for name in after if name.lower() in known]:
        found.append(ColumnChange(what="moved", name=""))
    return tuple(found)


def _columns(tree: exp.Expr) -> dict[str, exp.Expr] | None:
    """Name -> expression."""
    select = output_select(tree)
    return {p.alias_or_name: p.unalias() for p in select.expressions} if output_names(select) is not None else None


def output_select(tree: exp.Expr) -> exp.Expr:
    """The SELECT whose columns are the result's: through parentheses, set operations, and SELECT * FROM one query."""
    node: exp.Expr | None = tree
    found = tree
    for _ in range(_DEEPEST):
        if node is None:
            break
        found = node
        node = node.this if isinstance(node, (exp.Subquery, exp.SetOperation)) else _only_source(node, tree)
    return found


def _only_source(select: exp.Expr, tree: exp.Expr) -> exp.Expr | None:
    star = select.expressions[0] if isinstance(select, exp.Select) and len(select.expressions) == 1 else None
    from_ = select.args.get("from_")
    if not isinstance(star, exp.Star) or any(star.args.values()) or select.args.get("joins") or select.args.get("laterals"):
        return None
    relation = from_.this if isinstance(from_, exp.From) else None
    if isinstance(relation, exp.Subquery):
        listed = relation.args["alias"].columns if relation.args.get("alias") else ()
        return None if listed else relation.this
    name = relation.name.lower() if isinstance(relation, exp.Table) and not relation.args.get("db") else None
    return next((cte.this for cte in tree.find_all(exp.CTE) if cte.alias.lower() == name and not cte.args["alias"].columns), None)


def _successor(name: str, before: dict[str, exp.Expr], after: dict[str, exp.Expr], gone: list[str], added: list[str]) -> str | None:
    """The only new column that equals an old one, if no other one does."""
    value = shown(before[name])
    same = [one for one in added if shown(after[one]) == value]
    alike = [one for one in gone if shown(before[one]) == value]
    return same[0] if len(same) == 1 and len(alike) == 1 else None


def _changes_of_same(name: str, new_name: str, before: exp.Expr, after: exp.Expr) -> list[ColumnChange]:
    found = [ColumnChange(what="respelled", name=name, new=new_name)] if name != new_name else []
    if shown(before) != shown(after):
        types = _types(before, after)
        if types is not None:
            return [*found, ColumnChange(what="retyped", name=name, old=types[0], new=types[1])]
        found.append(ColumnChange(what="changed", name=name))
    return found


def _types(before: exp.Expr, after: exp.Expr) -> tuple[str, str] | None:
    """The types of a cast around both: the same value in another type."""
    if not isinstance(before, exp.Cast) or not isinstance(after, exp.Cast):
        return None
    old, new = (node.to.sql(dialect="spark").lower() for node in (before, after))
    return (old, new) if old != new else None
