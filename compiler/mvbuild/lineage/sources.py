"""FROM, JOIN, LATERAL VIEW, VALUES, PIVOT -> Tables: the relations that a SELECT reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from mvbuild.diagnostics import did_you_mean
from mvbuild.lineage.binding import Binding, place_of
from mvbuild.lineage.expressions import as_condition, value
from mvbuild.lineage.generators import generated
from mvbuild.lineage.joins import left_side, natural, using
from mvbuild.lineage.pivots import pivoted
from mvbuild.lineage.scopes import Scope, Source, Tables, star
from mvbuild.lineage.types import common
from mvbuild.lineage.values import UNKNOWN, Named, Relation, Value, attributes, joined

_NOBODY_KNOWS = Tables(rest=(None,))


def from_tables(select: exp.Expr, scope: Scope, binding: Binding) -> Tables:
    """Everything that a SELECT reads."""
    clause = select.args.get("from_")
    joins = select.args.get("joins") or ()
    tables = item(clause.this, scope, binding) if clause is not None else Tables()
    tables = _joined(tables, joins, scope, binding)
    for lateral in select.args.get("laterals") or ():
        tables = tables.together(_lateral(lateral, tables, scope, binding))
    return tables


def item(node: exp.Expr, scope: Scope, binding: Binding) -> Tables:
    """One item of FROM, including the joins inside it."""
    if isinstance(node, exp.Table):
        tables = _joined(_table(node, scope, binding), node.args.get("joins") or (), scope, binding)
    elif isinstance(node, exp.Subquery):
        tables = _subquery(node, scope, binding)
        tables = _joined(tables, node.args.get("joins") or (), scope, binding)
    elif isinstance(node, exp.Values):
        tables = _aliased(values_relation(node, scope, binding), node, binding)
    elif isinstance(node, exp.Lateral):
        tables = _lateral(node, Tables(), scope, binding)
    else:
        tables = _NOBODY_KNOWS
    for pivot in node.args.get("pivots") or ():
        tables = pivoted(pivot, tables, scope, binding)
    return tables


# Tables


def _table(node: exp.Table, scope: Scope, binding: Binding) -> Tables:
    if isinstance(node.this, exp.Func) or not isinstance(node.this, exp.Identifier):
        return _function(node, scope, binding)
    cte = scope.ctes.get(node.name.lower()) if not node.args.get("db") and not node.args.get("version") else None
    if cte is not None:
        return _aliased(cte.fresh(), node, binding, (node.name,))
    found = binding.table(node)
    if found is None:
        return _aliased(UNKNOWN, node, binding, (node.name,))
    relation, spellings = found
    alias = node.args.get("alias")
    if isinstance(alias, exp.TableAlias) and alias.this is not None:
        return _aliased(relation, node, binding)
    return Tables.of(Source(spellings, relation))


def _function(node: exp.Table, scope: Scope, binding: Binding) -> Tables:
    """A table function. Its arguments may be correlated after LATERAL."""
    alias = node.args.get("alias")
    names = [c.name for c in alias.columns] if isinstance(alias, exp.TableAlias) else []
    if not isinstance(node.this, exp.Func):
        return _NOBODY_KNOWS
    relation = generated(node.this, names, replace(scope, tables=Tables()), binding)
    name = node.alias or (node.this.name if isinstance(node.this, exp.Anonymous) else node.this.key)
    return Tables.of(Source(((name.lower(),),), relation))


def _subquery(node: exp.Expr, scope: Scope, binding: Binding) -> Tables:
    if isinstance(node.this, (exp.Table, exp.Values)) or (isinstance(node.this, exp.Subquery) and _is_join(node.this)):
        inner = item(node.this, scope, binding)
        if not node.alias:
            return inner
        return _aliased(Relation(inner.star, inner.rest, inner.rows), node, binding)
    return _aliased(binding.query(node, replace(scope, tables=Tables(), first=Named(), last=Named()), binding), node, binding)


def _is_join(node: exp.Expr) -> bool:
    while isinstance(node, exp.Subquery):
        if node.args.get("joins"):
            return True
        node = node.this
    return isinstance(node, exp.Table)


def _aliased(relation: Relation, node: exp.Expr, binding: Binding, name: tuple[str, ...] = ()) -> Tables:
    """A relation under the alias of a FROM item, with the column names of the alias."""
    alias = node.args.get("alias")
    has_name = isinstance(alias, exp.TableAlias) and isinstance(alias.this, exp.Identifier)
    spelled = (alias.this.name,) if has_name else name  # type: ignore[union-attr]
    if isinstance(alias, exp.TableAlias) and alias.columns:
        relation = renamed(relation, alias.columns, binding)
    return Tables.of(Source((tuple(part.lower() for part in spelled),) if spelled else (), relation))


def renamed(relation: Relation, names: Sequence[exp.Expr], binding: Binding) -> Relation:
    """A relation with the names of an alias `t(a, b)`, which has as many names as there are columns."""
    if not relation.is_closed:
        unsure = attributes((n.name, Value(sure=False), place_of(n)) for n in names)
        return replace(relation, columns=tuple(unsure), rest=())
    if len(names) != len(relation.columns):
        message = f"{len(names)} name{'s' * (len(names) != 1)} for {len(relation.columns)} columns"
        binding.find("column-count", message, names[0], "Name every column, or none.")
        return replace(UNKNOWN, rows=relation.rows)
    return relation.named((n.name for n in names), (place_of(n) for n in names))


def values_relation(node: exp.Values, scope: Scope, binding: Binding) -> Relation:
    """VALUES (1, 2), (3, 4)."""
    rows = [_row(row) for row in node.expressions]
    found = [[value(cell, replace(scope, tables=Tables()), binding) for cell in row] for row in rows]
    if len({len(row) for row in found}) != 1:
        return UNKNOWN
    columns = [joined(cells, common(c.type for c in cells)) for cells in zip(*found, strict=True)]
    return Relation(tuple(attributes((f"col{i + 1}", column, None) for i, column in enumerate(columns))))


def _row(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Tuple):
        return list(node.expressions)
    return [node.this if isinstance(node, exp.Paren) else node]


# LATERAL


def _lateral(node: exp.Expr, left: Tables, scope: Scope, binding: Binding) -> Tables:
    """LATERAL VIEW, and LATERAL before a subquery or table function: they see the relations to their left."""
    alias = node.args.get("alias")
    names = [c.name for c in alias.columns] if isinstance(alias, exp.TableAlias) else []
    seen = replace(scope, tables=left)
    if isinstance(node.this, exp.Subquery):
        relation = binding.query(node.this, seen.below(), binding)
        return _aliased(relation, node, binding)
    relation = generated(node.this, names, seen, binding)
    named = isinstance(alias, exp.TableAlias) and isinstance(alias.this, exp.Identifier)
    return Tables.of(Source(((alias.this.name.lower(),),) if named else (), relation))  # type: ignore[union-attr]


# Joins


def _joined(left: Tables, joins: Iterable[exp.Expr], scope: Scope, binding: Binding) -> Tables:
    for join in joins:
        if join.this.args.get("pivots"):
            # It applies to the whole join or to the last table of a list: the tree does not show which.
            return _NOBODY_KNOWS
        left = _join(left, join, scope, binding)
    return left


def _join(left: Tables, join: exp.Expr, scope: Scope, binding: Binding) -> Tables:
    is_lateral = isinstance(join.this, exp.Lateral)
    right = _lateral(join.this, left, scope, binding) if is_lateral else item(join.this, scope, binding)
    both = left.together(right)
    kind, side = str(join.args.get("kind") or "").upper(), str(join.args.get("side") or "").upper()
    if str(join.args.get("method") or "").upper() == "NATURAL":
        both = natural(left, right, side)
    elif join.args.get("using"):
        both = using(left, right, join.args["using"], side, binding)
    elif join.args.get("on") is not None:
        seen = replace(scope, tables=both)
        condition = as_condition(join.args["on"], seen, binding, "ON")
        both = replace(both, rows=both.rows | condition.bases)
    return left_side(left, both) if kind in ("SEMI", "ANTI") else both


def star_columns(tables: Tables, node: exp.Expr, binding: Binding) -> Relation | None:
    """The columns of `*`, `t.*` and `* EXCEPT (...)`; None if no table has the name."""
    written = node.this if isinstance(node, exp.Column) else node
    qualifier = tuple(p.name for p in node.parts[:-1]) if isinstance(node, exp.Column) else ()
    found = star(tables, qualifier)
    if found is None:
        return None
    if written.args.get("replace") or written.args.get("rename"):
        return UNKNOWN
    left_out = list(_excepted(written))
    for column in left_out:
        if found.is_closed and not any(c.key == column.name.lower() for c in found.columns):
            help = did_you_mean(column.name, [c.name for c in found.columns if c.name])
            binding.find("unknown-column", f"The star has no column '{column.name}'", column, help)
    names = {column.name.lower() for column in left_out}
    return replace(found, columns=tuple(c for c in found.columns if c.key not in names))


def _excepted(written: exp.Expr) -> Iterator[exp.Expr]:
    """Only plain names: excepting a field removes it from its struct, and the column remains."""
    for part in written.args.get("except_") or ():
        if isinstance(part, exp.Identifier) or (isinstance(part, exp.Column) and len(part.parts) == 1):
            yield part
