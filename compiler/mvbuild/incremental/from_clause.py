"""FROM, JOIN and LATERAL VIEW of a SELECT -> the relation that they make, and the Scope of its names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sqlglot import exp

from mvbuild.incremental.algebra import Explode, Item, Join, JoinKind, OneRow, Project, Relation, Scan, column, conjunction, conjuncts
from mvbuild.incremental.building import Building, require_scalar
from mvbuild.incremental.constant_rows import rows_of_values
from mvbuild.incremental.functions import is_generator
from mvbuild.incremental.pivots import pivoted
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.scopes import Scope, TreeColumn, aliased, resolved, source, value_of
from mvbuild.incremental.syntax import has_query, join_kind, require, unsupported
from mvbuild.lineage.expression_type import generated_types
from mvbuild.lineage.joins import left_side, merged, natural_names
from mvbuild.lineage.scopes import Source, Tables
from mvbuild.lineage.values import Output
from mvbuild.lineage.values import Relation as Columns

MARKER = "mvbuild_leaf_"
"""The prefix of tables in the text, followed by the number of the leaf."""


def from_clause(building: Building, select: exp.Select, scope: Scope) -> tuple[Relation, Scope]:
    """`scope`: that of the SELECT, whose common table expressions can be named."""
    start = select.args.get("from_")
    if start is None:
        return OneRow(), replace(scope, tables=Tables())
    relation, tables = _table(building, start.this, scope)
    relation, tables = _joined(building, relation, tables, select.args.get("joins") or (), scope)
    for lateral in select.args.get("laterals") or ():
        relation, tables = _lateral(building, relation, replace(scope, tables=tables), lateral)
    return relation, replace(scope, tables=tables)


def _joined(building: Building, relation: Relation, tables: Tables, joins: Iterable[exp.Join], scope: Scope) -> tuple[Relation, Tables]:
    for join in joins:
        relation, tables = _join(building, relation, tables, join, scope)
    return relation, tables


def _table(building: Building, node: exp.Expr, scope: Scope) -> tuple[Relation, Tables]:
    pivots = node.args.get("pivots")
    if pivots:
        bare = node.copy()
        bare.set("pivots", None)
        return pivoted(building, *_table(building, bare, scope), pivots)
    if isinstance(node, exp.Values):
        return rows_of_values(building, node)
    if isinstance(node, exp.Subquery):
        require(node, {"this", "alias", "joins"}, "unsupported-operator")
        if isinstance(node.this, exp.Table):  # (a JOIN b)
            relation, tables = _table(building, node.this, scope)
            relation, tables = _joined(building, relation, tables, node.this.args.get("joins") or (), scope)
            return relation, _under_alias(node, tables)
        block = building.query(building, node.this, scope.below)
        return block.relation, aliased(node, block.columns)
    if not isinstance(node, exp.Table):
        raise unsupported(node)
    require(node, {"this", "alias", "joins"}, "unsupported-operator")
    if not isinstance(node.this, exp.Identifier):
        raise unsupported(node)
    name = node.name
    if name.lower() in scope.ctes:
        body, around, names = scope.ctes[name.lower()]
        block = building.query(building, body, around)
        columns = tuple(zip(names, (u for _, u in block.columns), strict=True)) if names else block.columns
        return block.relation, aliased(node, columns, name)
    if not name.startswith(MARKER):
        raise Refused("unsupported-operator", f"{name} is not a table that mvbuild knows", node)
    return _scan(building, int(name[len(MARKER) :]), node)


def _under_alias(node: exp.Subquery, tables: Tables) -> Tables:
    """The columns of a join in parentheses, if it has an alias."""
    if not node.alias:
        return tables
    if node.args["alias"].columns:
        raise unsupported(node)
    return Tables.of(Source(((node.alias.lower(),),), Columns(tables.star)))


def _scan(building: Building, leaf: int, node: exp.Table) -> tuple[Relation, Tables]:
    found = building.leaves[leaf]
    columns = tuple((name, building.fresh(name, type_)) for name, type_ in found.types.items())
    for name, unique in columns:
        building.origins[unique] = (leaf, name)
        if name in found.required:
            building.required.add(unique)
    return Scan(leaf, tuple((unique, name) for name, unique in columns)), aliased(node, columns, node.name)


# --- joins ------------------------------------------------------------------------------------------------------------------------


def _join(building: Building, left: Relation, tables: Tables, join: exp.Join, scope: Scope) -> tuple[Relation, Tables]:
    require(join, {"this", "on", "using", "side", "kind", "method"}, "unsupported-operator")
    kind = join_kind(join)
    if isinstance(join.this, exp.Lateral):
        if kind not in ("inner", "left") or join.args.get("using"):
            raise unsupported(join)
        made, both = _lateral(building, left, replace(scope, tables=tables), join.this, kind)  # type: ignore[arg-type]
        return _with_condition(made, join, replace(scope, tables=both)), both
    right, added = _table(building, join.this, scope)
    both = tables.together(added)
    names = natural_names(tables, added) if join.args.get("method") else [name.name for name in join.args.get("using") or ()]
    if names is None:
        raise unsupported(join)
    if names:
        on, both = _using(tables, added, names, join)
    else:
        written = join.args.get("on")
        if written is not None and has_query(written):
            raise Refused("unsupported-operator", "a subquery in ON is not refreshed incrementally", written)
        on = resolved(written, replace(scope, tables=both)) if written is not None else None
    require_scalar(on)
    if kind == "right":
        return Join(right, left, "left", on), both
    if kind in ("semi", "anti"):
        return Join(left, right, kind, on, "join"), left_side(tables, both)  # type: ignore[arg-type]
    return Join(left, right, kind, on), both  # type: ignore[arg-type]


def _using(left: Tables, right: Tables, names: Sequence[str], join: exp.Join) -> tuple[exp.Expr | None, Tables]:
    """The condition of JOIN ... USING, and the names behind it."""
    pairs = [(_one(left, name, join), _one(right, name, join)) for name in names]
    on = conjunction([exp.EQ(this=value_of(one), expression=value_of(other)) for one, other in pairs])
    both = merged(left, right, pairs, join.side.upper())
    if join.side.upper() != "FULL":
        return on, both
    common = (
        Output(shown.name, shown.value, None, TreeColumn(exp.Coalesce(this=value_of(one), expressions=[value_of(other)])))
        for shown, (one, other) in zip(both.star, pairs, strict=False)
    )
    return on, replace(both, star=(*common, *both.star[len(pairs) :]))


def _one(tables: Tables, name: str, join: exp.Join) -> Output:
    found = [c for c in tables.star if c.key == name.lower()]
    if len(found) != 1:
        raise Refused("unsupported-operator", f"column {name} cannot be resolved", join)
    return found[0]


def _with_condition(lateral: Relation, join: exp.Join, scope: Scope) -> Relation:
    """The ON of a join with LATERAL, beside the conditions within it."""
    written = join.args.get("on")
    if written is None or written == exp.true():
        return lateral
    if not isinstance(lateral, Join):
        raise unsupported(join)
    on = resolved(written, scope)
    require_scalar(on)
    return replace(lateral, on=conjunction([*conjuncts(lateral.on), *conjuncts(on)]))


# --- LATERAL ----------------------------------------------------------------------------------------------------------------------


def _lateral(
    building: Building, relation: Relation, scope: Scope, lateral: exp.Lateral, kind: JoinKind = "inner"
) -> tuple[Relation, Tables]:
    require(lateral, {"this", "view", "outer", "alias"}, "unsupported-operator")
    alias = lateral.args.get("alias")
    names = tuple(c.name for c in alias.columns) if alias else ()
    name = alias.name.lower() if alias and alias.this else ""
    if isinstance(lateral.this, exp.Subquery):
        select = lateral.this.this
        if not isinstance(select, exp.Select):
            raise unsupported(select)
        if select.args.get("from_"):
            return _lateral_rows(building, relation, scope, select, name, names, kind)
        return _computed(building, relation, scope.tables, select, name, names)
    if kind != "inner":
        raise unsupported(lateral)
    if not is_generator(lateral.this):
        raise unsupported(lateral)
    if not names:
        raise Refused("unsupported-operator", "the columns of LATERAL VIEW need names", lateral)
    made, columns = exploded(building, relation, Scope(scope.tables), lateral.this, names, outer=bool(lateral.args.get("outer")))
    return made, scope.tables.together(source(name, columns))


def exploded(
    building: Building, relation: Relation, scope: Scope, node: exp.Expr, names: Sequence[str], *, outer: bool
) -> tuple[Relation, tuple[tuple[str, str], ...]]:
    """Each row with every row that the generator makes of it, and (name, name in the tree) of the columns."""
    generator = resolved(node, scope)
    for part in generator.iter_expressions():
        require_scalar(part)
    types = generated_types(generator, names, building.types)
    columns = tuple((name, building.fresh(name, type_)) for name, type_ in zip(names, types, strict=True))
    return Explode(relation, generator, tuple(unique for _, unique in columns), outer), columns


def _lateral_rows(
    building: Building, relation: Relation, scope: Scope, select: exp.Select, name: str, names: tuple[str, ...], kind: JoinKind
) -> tuple[Relation, Tables]:
    """LATERAL (SELECT ... FROM ...): a join by its conditions on the query around it."""
    if select.args.get("distinct"):
        raise unsupported(select)
    block, conditions = building.correlated(building, select, scope)
    shown = names or tuple(name for name, _ in block.columns)
    if not shown or len(shown) != len(block.columns):
        raise unsupported(select)
    columns = tuple(zip(shown, (unique for _, unique in block.columns), strict=True))
    return Join(relation, block.relation, kind, conjunction(conditions)), scope.tables.together(source(name, columns))


def _computed(
    building: Building, relation: Relation, tables: Tables, select: exp.Select, name: str, names: tuple[str, ...]
) -> tuple[Relation, Tables]:
    """LATERAL (SELECT ...) without FROM: more columns of each row."""
    require(select, {"expressions"}, "unsupported-operator")
    items = []
    for one in select.expressions:
        value = resolved(one.unalias(), Scope(tables))
        require_scalar(value)
        items.append(Item(building.computed(one.alias_or_name, value), value))
    shown = names or tuple(one.alias_or_name for one in select.expressions)
    if len(shown) != len(items):
        raise unsupported(select)
    kept = tuple(Item(own, column(own)) for own in relation.columns)
    columns = ((known, item.name) for known, item in zip(shown, items, strict=True))
    return Project(relation, (*kept, *items)), tables.together(source(name, columns))
