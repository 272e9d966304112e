"""a query's tree of SQL + the Scope around it -> Block: its relation and its columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from sqlglot import exp

from mvbuild.incremental.algebra import (
    Distinct,
    Item,
    Limit,
    Project,
    Relation,
    SetOperation,
    Union,
    Window,
    column,
    has_one_row,
    projected,
    renamed,
)
from mvbuild.incremental.building import Building, require_scalar
from mvbuild.incremental.from_clause import exploded, from_clause
from mvbuild.incremental.functions import is_generator
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.recursion import recursion
from mvbuild.incremental.scopes import Block, Scope, known, resolved, selected_columns, source, with_ctes
from mvbuild.incremental.select_parts import SelectParts
from mvbuild.incremental.subqueries import where
from mvbuild.incremental.syntax import aggregates_in, require, require_join_hints, unsupported, with_windows
from mvbuild.incremental.time_windows import with_time_window
from mvbuild.lineage.expression_type import generated_names
from mvbuild.lineage.types import common

_OF_SELECT = set("expressions from_ joins laterals where group having qualify distinct order limit offset with_ hint windows".split())
_OF_SET_OPERATION = set("this expression distinct with_ order limit offset side kind".split())


def query(building: Building, tree: exp.Expr, scope: Scope) -> Block:
    """Raises Refused for a query that the tree cannot express."""
    if isinstance(tree, exp.Subquery | exp.Paren):
        require(tree, {"this", "alias"}, "unsupported-operator")
        return query(building, tree.this, scope)
    if isinstance(tree, exp.With):
        return recursion(building, tree)
    scope = with_ctes(tree, scope)
    if isinstance(tree, exp.SetOperation):
        return _limited(tree, _set_operation(building, tree, scope))
    if isinstance(tree, exp.Select):
        return _limited_select(building, tree, scope)
    raise unsupported(tree)


def _limited_select(building: Building, tree: exp.Select, scope: Scope) -> Block:
    """If ORDER BY sorts by what is not in the result, the rows have it until LIMIT has taken the first ones."""
    block = _select(building, tree, scope)
    try:
        return _limited(tree, block)
    except Refused as exc:
        wider = _with_order_columns(tree, block) if tree.args.get("distinct") is None else None
        if exc.code != "limit" or wider is None:
            raise
    found = _limited(wider, _select(building, wider, scope))
    columns = found.columns[: len(block.columns)]
    return Block(projected(found.relation, [unique for _, unique in columns]), columns)


def _with_order_columns(tree: exp.Select, block: Block) -> exp.Select | None:
    """The query with a further column for each part of ORDER BY that is not in the result. None if such a part also has names of the
    result: in SELECT they could mean something else."""
    made = tree.copy()
    named, written = {name.lower(): unique for name, unique in block.columns}, _written(tree, block)
    for at, part in enumerate(made.args["order"].expressions):
        if _is_in_result(part, block, written):
            continue
        for one in part.this.find_all(exp.Column):
            unique = named.get(one.name.lower()) if not one.table else None
            if unique is not None and written.get(_without_case(one)) != unique:
                return None
        name = f"mvbuild_order_{at}"
        made.append("expressions", exp.alias_(part.this.copy(), name, quoted=True))
        part.set("this", exp.column(name, quoted=True))
    return made


def _is_in_result(part: exp.Expr, block: Block, written: Mapping[exp.Expr, str]) -> bool:
    try:
        return _ordered(part, block, written) is not None
    except Refused:
        return False


def _limited(tree: exp.Expr, block: Block) -> Block:
    limit, offset, order = (tree.args.get(key) for key in ("limit", "offset", "order"))
    if (limit is None and offset is None) or (offset is None and _is_some(limit) and has_one_row(block.relation)):
        # If all rows are kept, their order has no meaning for readers.
        return block
    written = _written(tree, block)
    parts = tuple(_ordered(one, block, written) for one in (order.expressions if order else ()))
    limited = Limit(block.relation, parts, limit.expression if limit else None, offset.expression if offset else None)
    return Block(limited, block.columns)


def _written(tree: exp.Expr, block: Block) -> Mapping[exp.Expr, str]:
    """What SELECT computes, as it is written -> the column of the result."""
    selected = tree.expressions if isinstance(tree, exp.Select) else []
    if len(selected) != len(block.columns) or any(one.find(exp.Star) and not one.find(exp.Func) for one in selected):
        return {}
    return {_without_case(one.unalias()): unique for one, (_, unique) in zip(selected, block.columns, strict=True)}


def _without_case(node: exp.Expr) -> exp.Expr:
    """Names are equal whatever their case."""
    return node.transform(lambda one: exp.to_identifier(one.name.lower()) if isinstance(one, exp.Identifier) else one)


def _ordered(ordered: exp.Expr, block: Block, written: Mapping[exp.Expr, str]) -> exp.Expr:
    """A part of ORDER BY, over the columns of the result: their names, their places, or what they are computed from."""
    made = ordered.copy()
    made.set("this", made.this.unnest())
    if isinstance(made.this, exp.Literal) and not made.this.is_string:
        made.set("this", column(block.columns[int(made.this.name) - 1][1]))
        return made
    scope = Scope(tables=source("", block.columns))
    try:
        value = resolved(_with_results(made.this, scope, written), scope)
        require_scalar(value)
    except Refused as exc:
        raise Refused("limit", "LIMIT depends on every row", ordered) from exc
    made.set("this", value)
    return made


def _with_results(value: exp.Expr, scope: Scope, written: Mapping[exp.Expr, str]) -> exp.Expr:
    """An expression of ORDER BY with columns of the result in place of what they are computed from. A name of the result comes first."""

    def result_of(node: exp.Expr) -> str | None:
        return written.get(_without_case(node))

    def is_other(name: exp.Expr) -> bool:
        try:
            return not (isinstance(found := resolved(name, scope), exp.Column) and found.name == result_of(name))
        except Refused:
            return False

    def placed(node: exp.Expr) -> exp.Expr:
        same = result_of(node)
        # A result cannot be aggregated again, so names in an aggregate are those of the tables.
        if same is None or (not isinstance(node, exp.AggFunc) and any(is_other(name) for name in node.find_all(exp.Column))):
            return node
        return known(same)

    return value.transform(placed)


def _is_some(limit: exp.Expr | None) -> bool:
    """LIMIT with a number other than 0."""
    number = limit.expression if limit is not None else None
    return isinstance(number, exp.Literal) and not number.is_string and number.name.isdigit() and int(number.name) > 0


def _set_operation(building: Building, tree: exp.SetOperation, scope: Scope) -> Block:
    require(tree, _OF_SET_OPERATION, "unsupported-operator")
    if tree.args.get("by_name") or tree.args.get("side") or tree.args.get("kind"):
        raise unsupported(tree)
    left, right = query(building, tree.left, scope), query(building, tree.right, scope)
    if len(left.columns) != len(right.columns):
        raise Refused("unsupported-operator", "the two sides have different numbers of columns", tree)
    types = building.types
    names = tuple(
        (name, building.fresh(name, common((types.get(one), types.get(other)))))
        for (name, one), (_, other) in zip(left.columns, right.columns, strict=True)
    )
    columns = tuple(unique for _, unique in names)
    sides: tuple[Relation, ...] = tuple(
        renamed(side.relation, tuple(zip(columns, (u for _, u in side.columns), strict=True))) for side in (left, right)
    )
    distinct = tree.args.get("distinct") is not False
    if isinstance(tree, exp.Union):
        both: Relation = Union(sides, columns)
        return Block(Distinct(both) if distinct else both, names)
    kind: Literal["intersect", "except"] = "intersect" if isinstance(tree, exp.Intersect) else "except"
    return Block(SetOperation(sides[0], sides[1], kind, not distinct, columns), names)


def _select(building: Building, tree: exp.Select, scope: Scope) -> Block:
    require(tree, _OF_SELECT, "unsupported-operator")
    require_join_hints(tree)
    tree = with_windows(tree)
    if isinstance(tree.args.get("distinct"), exp.Distinct) and tree.args["distinct"].args.get("on"):
        raise unsupported(tree.args["distinct"])
    relation, inner = from_clause(building, tree, scope)
    condition = tree.args.get("where")
    relation = where(building, relation, condition.this if condition else None, inner)
    relation, inner, tree, session = with_time_window(building, relation, inner, tree)
    relation, tree = _generated(building, relation, inner, tree)
    selected = selected_columns(tree, inner, building.types)
    relation, values = SelectParts(building, inner, tree, session).compute(relation, selected)
    items: list[Item] = []
    columns = []
    for (name, written), value in zip(selected, values, strict=True):
        # Spark computes an alias beside a window function below it.
        is_renamed = isinstance(relation, Window) and isinstance(written, exp.Column) and isinstance(written.parent, exp.Alias)
        if isinstance(value, exp.Column) and not is_renamed and value.name not in [i.name for i in items]:
            unique = value.name
        else:
            unique = building.computed(name, value)
        items.append(Item(unique, value))
        columns.append((name, unique))
    result: Relation = Project(relation, tuple(items))
    if tree.args.get("distinct") is not None:
        result = Distinct(result)
    return Block(result, tuple(columns))


def _generated(building: Building, relation: Relation, scope: Scope, tree: exp.Select) -> tuple[Relation, exp.Select]:
    """A generator in the SELECT list is a LATERAL VIEW behind WHERE."""
    found = [one for one in tree.expressions if is_generator(one.this if isinstance(one, exp.Alias | exp.Aliases) else one)]
    if not found:
        return relation, tree
    if len(found) > 1 or tree.args.get("group") or tree.args.get("having") or aggregates_in(tree) or tree.find(exp.Window):
        raise unsupported(found[0])
    one = found[0]
    aliases = one.expressions if isinstance(one, exp.Aliases) else [one.args["alias"]] if isinstance(one, exp.Alias) else []
    generator = one.this if aliases else one
    names = tuple(alias.name for alias in aliases) or generated_names(resolved(generator, scope), building.types)
    if not names:
        raise Refused("unsupported-operator", "the columns of a generator in SELECT need names", one)
    relation, columns = exploded(building, relation, scope, generator, names, outer=False)
    made = tree.copy()
    expressions = [
        part
        for at, written in enumerate(made.expressions)
        for part in ([exp.alias_(known(u), n) for n, u in columns] if tree.expressions[at] is one else [written])
    ]
    made.set("expressions", expressions)
    return relation, made
