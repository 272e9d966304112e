"""tree with canonical names -> the same, with subqueries that only choose, compute or filter merged into the query around them.

Both rules need every name to be resolved: a column without its table could get another meaning in its new place.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from mvbuild.equivalence.resolve import relations
from mvbuild.equivalence.tidy import conjunction, conjuncts, is_inner

_PLAIN = frozenset(("expressions", "from_", "joins", "where", "kind"))
"""The clauses of a query that keeps the rows that it reads, or filters them."""
_OF_ROWS = frozenset(("from_", "expressions"))


def merged(tree: exp.Expr) -> exp.Expr:
    """In place, except for the outermost query."""
    for select in reversed(list(tree.find_all(exp.Select))):
        while _merge_one(select):
            pass
    for select in reversed(list(tree.find_all(exp.Select))):
        below = _collapsed(select)
        if below is None:
            continue
        if select is tree:
            tree = below
        else:
            select.replace(below)
    return tree


def _clauses(select: exp.Select) -> set[str]:
    return {key for key, value in select.args.items() if value}


def _merge_one(select: exp.Select) -> bool:
    """A filtered or computed subquery in FROM, or in an inner join, becomes its table, its columns and its conditions."""
    for relation in relations(select):
        if isinstance(relation, exp.Subquery) and _is_mergeable(select, relation):
            inner = relation.this
            if _passes_all(select, inner):
                _rename(select, relation.alias, relations(inner)[0].alias)
                _splice(select, relation, inner)
                return True
            values = _values(inner)
            if values is None or not _all_known(select, relation.alias, values):
                continue
            _exchange(select, relation.alias, values)
            _splice(select, relation, inner)
            return True
    return False


def _passes_all(select: exp.Select, inner: exp.Select) -> bool:
    """`SELECT * FROM t`, with or without a condition: with all columns of a table it has their names as well."""
    stars = [p for p in inner.expressions if isinstance(p, exp.Star) and not any(p.args.values())]
    if len(stars) != 1 or len(inner.expressions) != 1 or inner.args.get("joins"):
        return False
    return len(relations(select)) == 1 or not any(p.is_star for p in select.expressions)


def _rename(select: exp.Select, alias: str, new: str) -> None:
    for column in select.find_all(exp.Column):
        if column.table == alias:
            column.set("table", exp.to_identifier(new))


def _is_mergeable(select: exp.Select, relation: exp.Subquery) -> bool:
    inner, joins = relation.this, select.args.get("joins") or []
    if not isinstance(inner, exp.Select) or not _clauses(inner) <= _PLAIN or not inner.args.get("from_") or relation.args.get("joins"):
        return False
    if any(isinstance(p.unalias(), exp.Query) or p.find(exp.AggFunc, exp.Window, exp.Query, exp.UDTF) for p in inner.expressions):
        return False
    if not _is_resolved(inner) or any(j.args.get("using") or j.args.get("method") for j in joins):
        return False
    is_first = select.args["from_"].this is relation
    if not is_first:
        join = relation.parent
        return isinstance(join, exp.Join) and is_inner(join) and not inner.args.get("joins") and all(map(is_inner, joins))
    # The left side of LEFT joins keeps its rows; in other joins it gets NULLs, which its own condition has not seen.
    keeps = all(is_inner(j) or (j.args.get("side") == "LEFT" and not j.args.get("kind")) for j in joins)
    inner_joins = inner.args.get("joins") or []
    return keeps and all(map(is_inner, inner_joins))


def _is_resolved(select: exp.Select) -> bool:
    return all(column.table for column in select.find_all(exp.Column))


def _values(inner: exp.Select) -> dict[str, exp.Expr] | None:
    """Name of a column -> its expression; None if one has no name."""
    if any(not isinstance(p, exp.Alias) for p in inner.expressions):
        return None
    return {p.alias: p.this for p in inner.expressions}


def _all_known(select: exp.Select, alias: str, values: Mapping[str, exp.Expr]) -> bool:
    if any(p.is_star for p in select.expressions) or any(not c.table for c in select.find_all(exp.Column)):
        return False
    return all(c.name in values for c in select.find_all(exp.Column) if c.table == alias)


def _exchange(select: exp.Expr, alias: str, values: Mapping[str, exp.Expr]) -> None:
    for column in list(select.find_all(exp.Column)):
        if column.table == alias:
            column.replace(values[column.name].copy())


def _splice(select: exp.Select, relation: exp.Subquery, inner: exp.Select) -> None:
    relation.replace(inner.args["from_"].this)
    if inner.args.get("joins"):
        select.set("joins", [*inner.args["joins"], *(select.args.get("joins") or [])])
    conditions = [*conjuncts(select.args.get("where")), *conjuncts(inner.args.get("where"))]
    if conditions:
        select.set("where", exp.Where(this=conjunction(conditions)))


def _collapsed(select: exp.Select) -> exp.Expr | None:
    """`SELECT f(x) FROM (query)` with all rows: the query itself, with these columns. None if it is something else."""
    found = relations(select)
    if len(found) != 1 or not _clauses(select) <= _OF_ROWS or not isinstance(found[0], exp.Subquery):
        return None
    relation = found[0]
    inner = relation.this
    if not isinstance(inner, exp.Select) or inner.args.get("distinct") or relation.args.get("joins"):
        return None
    values = _values(inner)
    moved = any(p.find(exp.AggFunc, exp.Window, exp.Query, exp.UDTF) for p in select.expressions)
    if values is None or moved or not select.expressions or not _all_known(select, relation.alias, values):
        return None
    if not all(isinstance(p, exp.Alias) for p in select.expressions):
        return None
    used = {c.name for p in select.expressions for c in p.find_all(exp.Column)}
    aggregates = any(v.find(exp.AggFunc) for v in values.values())
    if aggregates and not inner.args.get("group") and not any(values[name].find(exp.AggFunc) for name in used):
        return None  # the single row of an aggregate without groups
    if _own_names(inner) & set(values):
        return None
    projections = [p.copy() for p in select.expressions]
    for projection in projections:
        _exchange(projection, relation.alias, values)
    inner.set("expressions", projections)
    return inner


def _own_names(inner: exp.Select) -> set[str]:
    """Names without a table: they may belong to the columns that are about to be removed."""
    return {column.name for column in inner.find_all(exp.Column) if not column.table}
