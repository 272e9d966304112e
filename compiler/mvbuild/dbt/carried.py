"""Columns of one SELECT -> what contains them in the queries above it: `Carried`, moved from query to query by name, table and position."""

from __future__ import annotations

from sqlglot import exp

from mvbuild.dataclass import dataclass

Names = tuple[exp.Expr, ...]
"""Columns, or expressions of one column, as one query writes them. All have the same value in each row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """The output columns of a query that contain a value. `positions` count from 0; None if a `*` hides them."""

    names: Names = ()
    positions: tuple[int, ...] | None = ()


def outputs(select: exp.Select, names: Names) -> Outputs:
    """The output columns that are the unchanged value."""
    found: list[exp.Expr] = []
    positions: list[int] | None = []
    for index, projection in enumerate(select.expressions):
        if projection.is_star:
            positions = None
            found += (exp.column(n.name) for n in names if isinstance(n, exp.Column) and _in_star(projection, n))
        elif is_one_of(projection.unalias(), names, select):
            found.append(exp.column(projection.alias_or_name))
            if positions is not None:
                positions.append(index)
    return Outputs(names=tuple(found), positions=None if positions is None else tuple(positions))


def through_union(union: exp.SetOperation, branch: exp.Expr, leftmost: exp.Expr, carried: Outputs) -> Outputs:
    """What contains a branch's value in the union: the columns at the same positions of the first branch, which defines the names."""
    if branch is leftmost or union.args.get("by_name"):
        return carried
    if carried.positions is None or not isinstance(leftmost, exp.Select) or any(p.is_star for p in leftmost.expressions):
        return Outputs(positions=None)
    names = tuple(exp.column(leftmost.expressions[i].alias_or_name) for i in carried.positions if i < len(leftmost.expressions))
    return Outputs(names=names, positions=carried.positions)


def above(source: exp.Expr, carried: Outputs) -> Names:
    """The names in the SELECT that reads a query as `source`, a table, a WITH query or a subquery."""
    alias = source.args.get("alias")
    if isinstance(alias, exp.TableAlias) and alias.args.get("columns"):
        return ()
    return tuple(exp.column(n.name, table=source.alias_or_name) for n in carried.names if isinstance(n, exp.Column))


def is_one_of(node: exp.Expr, names: Names, select: exp.Select) -> bool:
    """Whether an expression of a SELECT is one of the names. Columns of two tables are never the same, even if their names are equal."""
    return any(_is_same(node, name, select) for name in names)


def _is_same(left: exp.Expr, right: exp.Expr, select: exp.Select) -> bool:
    if isinstance(left, exp.Column) and isinstance(right, exp.Column):
        (of, path), (other, other_path) = _place(left, select), _place(right, select)
        return path == other_path and ("" in (of, other) or of == other)
    if type(left) is not type(right):
        return False
    ours, theirs = list(left.find_all(exp.Column)), list(right.find_all(exp.Column))
    same = len(ours) == len(theirs) and all(_is_same(a, b, select) for a, b in zip(ours, theirs, strict=True))
    return same and _without_columns(left) == _without_columns(right)


def _place(column: exp.Column, select: exp.Select) -> tuple[str, tuple[str, ...]]:
    """The source that a column names, or "", and the rest of its path. `payload.ts` is a field unless a source is named payload."""
    path = tuple(part.name.lower() for part in column.parts)
    if len(path) > 1 and path[0] in _sources(select):
        return path[0], path[1:]
    return "", path


def _sources(select: exp.Select) -> set[str]:
    tables = [place.this for place in (select.args.get("from_"), *(select.args.get("joins") or ())) if place]
    return {source.alias_or_name.lower() for source in (*tables, *(select.args.get("laterals") or ()))}


def _without_columns(node: exp.Expr) -> exp.Expr:
    return node.transform(lambda n: exp.Placeholder() if isinstance(n, exp.Column) else n)


def _in_star(projection: exp.Expr, name: exp.Column) -> bool:
    """Whether `*` or `t.*` includes a column, except columns that it leaves out or replaces."""
    star = projection.this if isinstance(projection, exp.Column) else projection
    changed = [*(star.args.get("except_") or ()), *(star.args.get("replace") or ()), *(star.args.get("rename") or ())]
    if any(n.alias_or_name.lower() == name.name.lower() for n in changed):
        return False
    of = projection.table.lower() if isinstance(projection, exp.Column) else ""
    return not of or not name.table or of == name.table.lower()
