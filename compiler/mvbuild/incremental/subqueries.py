"""a condition or an expression with subqueries -> joins with them, and the condition or expression over the columns of the joins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from mvbuild.incremental.aggregate_arguments import never_null
from mvbuild.incremental.aggregates import aggregated
from mvbuild.incremental.algebra import (
    Aggregate,
    Filter,
    Item,
    Join,
    JoinKind,
    OneRow,
    Project,
    Relation,
    Scalar,
    column,
    conjunction,
    conjuncts,
    has_one_row,
    names_in,
    substituted,
    with_items,
)
from mvbuild.incremental.alike import likeness
from mvbuild.incremental.building import Building, require_scalar
from mvbuild.incremental.from_clause import from_clause
from mvbuild.incremental.functions import EXACT_AGGREGATES, NULL_OF_NOTHING, called, unwrapped
from mvbuild.incremental.grouping_sets import Grouping
from mvbuild.incremental.join_order import connected
from mvbuild.incremental.push_filters import filtered
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.scopes import Block, Scope, as_written, known, refers_out, resolved, selected_columns, with_ctes
from mvbuild.incremental.syntax import aggregates_in, has_query, is_one, is_strict, require, unsupported


def where(building: Building, relation: Relation, condition: exp.Expr | None, scope: Scope) -> Relation:
    """The rows that satisfy a condition. Parts without subqueries come first: they are cheaper, and help to find what the others can
    affect."""
    parts = conjuncts(condition)
    plain = [resolved(part, scope) for part in parts if not has_query(part)]
    for part in plain:
        require_scalar(part)
    relation = connected(filtered(relation, plain))
    for part in parts:
        if has_query(part):
            relation = _where_subquery(building, relation, part, scope)
    return relation


def _where_subquery(building: Building, relation: Relation, part: exp.Expr, scope: Scope) -> Relation:
    negated = isinstance(part, exp.Not)
    inside = part.this.unnest() if negated else part.unnest()
    if isinstance(inside, exp.Exists):
        return _exists(building, relation, inside.this, scope, "anti" if negated else "semi")
    if isinstance(inside, exp.In) and inside.args.get("query") is not None and not has_query(inside.this):
        kind: JoinKind = "null-aware-anti" if negated else "semi"
        return _exists(building, relation, inside.args["query"], scope, kind, _listed(inside, scope))
    compared = _compared_with_value(building, relation, part, scope)
    if compared is not None:
        return compared
    relation, condition = scalars(building, relation, part, scope, is_condition=True)
    require_scalar(condition)
    return Filter(relation, condition)


def _compared_with_value(building: Building, relation: Relation, part: exp.Expr, scope: Scope) -> Join | None:
    """`day > (SELECT max(day) FROM t) - INTERVAL 7 DAYS` as a semi join with that one row, whose change is that of a join. None for a
    condition with another kind of subquery, or with several."""
    holder = exp.paren(part.unnest().copy(), copy=False)
    subqueries = [one for one in holder.find_all(exp.Query) if one.find_ancestor(exp.Query) is None]
    if len(subqueries) != 1 or not isinstance(subqueries[0], exp.Subquery) or isinstance(subqueries[0].parent, exp.In):
        return None
    bare, _ = scalar_subquery(building, OneRow(), subqueries[0].this, scope)
    if not isinstance(bare, Scalar) or not has_one_row(bare.subquery):
        return None
    (value,) = bare.subquery.columns
    subqueries[0].replace(known(value))
    on = resolved(holder.this, scope)
    require_scalar(on)
    if not names_in(on) - {value} or not _is_join(on, column(value), bare.subquery):
        return None
    return Join(relation, bare.subquery, "semi", on, "value")


def _is_join(on: exp.Expr, value: exp.Expr, subquery: Relation) -> bool:
    """Whether a condition on the value of a subquery is one on its row. A subquery without a row is NULL, and a join with no row has no
    match. An equality also lets a refresh leave out the row if it equals none of a few values. Neither matters where NULL and another
    value are the same: not true."""
    if any(isinstance(one, exp.EQ | exp.NullSafeEQ) for one in conjuncts(on)):
        return isinstance(on, exp.EQ) and value in (on.left, on.right)
    return _is_first_or_last(subquery)


def _is_first_or_last(relation: Relation) -> bool:
    """Whether it is one row, always, of the least or the largest values. These move now and then; an average moves with every change, and
    all rows are compared with it again."""
    if isinstance(relation, Aggregate):
        return all(isinstance(unwrapped(item.expression), exp.Min | exp.Max) for item in relation.values)
    return type(relation) is Project and _is_first_or_last(relation.child)


# --- EXISTS and IN ------------------------------------------------------------------------------------------------------------------


def _listed(found: exp.In, scope: Scope) -> list[exp.Expr]:
    """a, or a and b of `(a, b) IN (SELECT ...)`."""
    value = found.this.unnest()
    values = [resolved(one, scope) for one in (value.expressions if isinstance(value, exp.Tuple) else [value])]
    for one in values:
        require_scalar(one)
    return values


def _exists(building: Building, relation: Relation, tree: exp.Expr, scope: Scope, kind: JoinKind, values: Sequence[exp.Expr] = ()) -> Join:
    """A join with the subquery, whose conditions on the outer query become conditions of the join. `values`: those that IN compares with
    its columns."""
    select = tree.unnest()
    _require_own_names(select)
    conditions: list[exp.Expr] = []
    if isinstance(select, exp.SetOperation):
        block = building.query(building, select, scope.below)
    elif isinstance(select, exp.Select):
        block, conditions = correlated(building, select, scope, with_columns=not is_one(select))
    else:
        raise unsupported(tree)
    if values and len(block.columns) != len(values):
        raise unsupported(tree)
    pairs = zip(values, block.columns, strict=False)
    equal = [exp.EQ(this=v if isinstance(v, exp.Column) else exp.paren(v), expression=column(unique)) for v, (_, unique) in pairs]
    if kind == "null-aware-anti" and conditions:
        raise Refused("unsupported-operator", "NOT IN with a subquery that refers to the query around it", tree)
    if kind == "null-aware-anti" and len(values) > 1:
        raise Refused("unsupported-operator", "NOT IN with several columns", tree)
    return Join(relation, block.relation, kind, conjunction([*equal, *conditions]), "in" if len(values) == 1 and not conditions else "")


def correlated(building: Building, select: exp.Select, scope: Scope, *, with_columns: bool = True) -> tuple[Block, list[exp.Expr]]:
    """A subquery without its conditions on the outer query, and these conditions with the names of both. `with_columns`: whether its
    columns are read."""
    bare = select.copy()
    condition = bare.args.get("where")
    parts = conjuncts(condition.this if condition else None)
    outer = _outer_parts(parts, names_of(building, bare, scope))
    if not outer:
        return building.query(building, bare, scope.below), []
    if bare.args.get("group") or bare.args.get("having") or bare.args.get("limit") or aggregates_in(bare):
        raise Refused(
            "unsupported-operator", "a correlated subquery with GROUP BY, LIMIT or an aggregate, in EXISTS, IN or LATERAL", select
        )
    require(bare, {"expressions", "from_", "joins", "laterals", "where", "distinct", "order"}, "unsupported-operator")
    # The columns that the conditions need are known only once the tables have names: all are kept, and Spark omits the others.
    relation, made = from_clause(building, bare, scope.below)
    relation = where(building, relation, conjunction([p for p in parts if p not in outer]), made)
    conditions = [resolved(p, made.inside(scope)) for p in outer]
    for part in conditions:
        require_scalar(part)
    values = []
    for name, written in selected_columns(bare, made, building.types) if with_columns else ():
        value = resolved(written, made)
        require_scalar(value)
        if not isinstance(value, exp.Column):
            unique = building.computed(name, value)
            relation = with_items(relation, [Item(unique, value)])
            value = column(unique)
        values.append((name, value.name))
    return Block(relation, tuple(values)), conditions


def names_of(building: Building, select: exp.Select, scope: Scope) -> Scope:
    """The names of a subquery's tables and of those around it, to distinguish its own columns from others."""
    return from_clause(building, select, scope.below)[1].inside(scope)


def _outer_parts(parts: Sequence[exp.Expr], scope: Scope) -> list[exp.Expr]:
    """The conditions that refer to the query around."""
    return [part for part in parts if not has_query(part) and refers_out(part, scope)]


def _require_own_names(subquery: exp.Expr) -> None:
    """Raise Refused for an alias of the SELECT list around it: its value is not a column of a table."""
    if subquery.find(exp.Placeholder) is not None:
        raise Refused("unsupported-operator", "a subquery that refers to an alias of the query around it", subquery)


# --- subqueries with a value ----------------------------------------------------------------------------------------------------------


def scalars(
    building: Building, relation: Relation, part: exp.Expr, scope: Scope, *, is_condition: bool = False
) -> tuple[Relation, exp.Expr]:
    """An expression with columns in the place of its subqueries, and the relation that has those columns. `is_condition`: of WHERE, where
    NULL is as good as false."""
    holder = exp.paren(part.copy(), copy=False)
    relation = with_subqueries(building, relation, holder, scope, is_condition=is_condition)
    return relation, resolved(holder.this, scope)


def with_subqueries(building: Building, relation: Relation, holder: exp.Expr, scope: Scope, *, is_condition: bool = False) -> Relation:
    """The relation with a column for each subquery below a node, which is changed to have the columns in their place."""
    for test in [one for one in holder.find_all(exp.Exists, exp.In) if one.find_ancestor(exp.Query) is None]:
        if isinstance(test, exp.Exists) or test.args.get("query") is not None:
            relation, mark = _marked(building, relation, test, scope)
            if isinstance(test, exp.In) and not _takes_null_for_false(test, holder, is_condition=is_condition):
                _require_no_null(building, relation, test)
            test.replace(mark)
    for found in list(holder.find_all(exp.Subquery)):
        if found.find_ancestor(exp.Subquery) is None:
            relation, value = scalar_subquery(building, relation, found.this, scope)
            found.replace(as_written(value))
    if holder.find(exp.Select) is not None:
        raise unsupported(holder)
    return relation


def _takes_null_for_false(found: exp.Expr, holder: exp.Expr, *, is_condition: bool) -> bool:
    """Whether nothing but AND and OR are between a test and a condition that it is a part of: a whole WHERE, CASE WHEN, IF, or FILTER."""
    node = found
    while isinstance(node.parent, exp.And | exp.Or | exp.Paren) and node.parent is not holder:
        node = node.parent
    around = node.parent
    if isinstance(around, exp.If):
        return node.arg_key == "this" and not (isinstance(around.parent, exp.Case) and around.parent.this is not None)
    return isinstance(around, exp.Where) or (around is holder and is_condition)


def _require_no_null(building: Building, made: Relation, test: exp.In) -> None:
    """Raise Refused if IN may be NULL: whether it is depends on every row of the subquery."""
    assert isinstance(made, Join)
    known = never_null(made.left, frozenset(building.required)) | never_null(made.right, frozenset(building.required))
    if not all(side.unnest().name in known for part in conjuncts(made.on) for side in (part.this, part.expression)):
        raise Refused("unsupported-operator", "IN with a subquery as a value, whose columns may be NULL (EXISTS can be followed)", test)


def _marked(building: Building, relation: Relation, found: exp.Expr, scope: Scope) -> tuple[Relation, exp.Expr]:
    """EXISTS or IN as a column, and that column as written."""
    is_in = isinstance(found, exp.In)
    values = _listed(found, scope) if isinstance(found, exp.In) else []
    made = _exists(building, relation, found.args["query"] if is_in else found.this, scope, "mark", values)
    unique = building.fresh("exists", "boolean")
    return replace(made, mark=unique), known(unique)


def scalar_subquery(building: Building, relation: Relation, tree: exp.Expr, scope: Scope) -> tuple[Relation, exp.Expr]:
    """The relation with the value of a subquery, and the value."""
    select = tree.unnest()
    _require_own_names(select)
    if isinstance(select, exp.Select):
        condition = select.args.get("where")
        names = names_of(building, select, with_ctes(select, scope))
        outer = _outer_parts(conjuncts(condition.this if condition else None), names)
        if outer:
            return _correlated_scalar(building, relation, select, outer, scope)
    block = building.query(building, select, scope.below)
    if len(block.columns) != 1:
        raise unsupported(tree)
    unique = building.fresh("scalar", building.types.get(block.columns[0][1]))
    return Scalar(relation, block.relation, unique), column(unique)


def _correlated_scalar(
    building: Building, relation: Relation, select: exp.Select, outer: list[exp.Expr], scope: Scope
) -> tuple[Relation, exp.Expr]:
    """An aggregate for each row of the outer query: a left join with the aggregate by the compared columns."""
    require(select, {"expressions", "from_", "joins", "where"}, "unsupported-operator")
    if len(select.expressions) != 1:
        raise unsupported(select)
    inner, made = from_clause(building, select, scope.below)
    inner = where(building, inner, conjunction([p for p in conjuncts(select.args["where"].this) if p not in outer]), made)
    keys, on = _compared(building, outer, made, scope)
    for part in on:
        if likeness(part, building.types) == "cast":
            # '01' and '1' are two groups, and together one value for the row 1.
            raise Refused("unsupported-operator", "a correlated subquery that compares values of different types", part)
    rows = Grouping(relation=inner, keys=tuple(keys), written=tuple(key.expression for key in keys))
    aggregate, (value,) = aggregated(building, made, rows, [select.expressions[0].unalias()])
    if not isinstance(aggregate, Aggregate) or not aggregate.values:
        raise Refused("unsupported-operator", "a correlated subquery without an aggregate", select)
    require_scalar(value)
    if names_in(value) & {key.name for key in keys}:
        raise Refused("unsupported-operator", "a column that is neither grouped nor aggregated", select)
    functions = {i.name: unwrapped(i.expression) for i in aggregate.values}
    for function in functions.values():
        if not (isinstance(function, EXACT_AGGREGATES) or called(function) in NULL_OF_NOTHING):
            raise unsupported(function)
    # If the join finds nothing, the aggregates have their values for no rows, NULL or 0 for counts, and the value is computed from
    # those. Arithmetic with one aggregate that is NULL is NULL, so that it can be computed below the join.
    counts = [name for name, function in functions.items() if isinstance(function, exp.Count | exp.CountIf)]
    made_of: dict[str, exp.Expr]
    if isinstance(value, exp.Column) or (is_strict(value) and names_in(value) - {*counts}):
        unique = building.computed("scalar", value)
        right: Relation = Project(aggregate, (*(Item(k.name, column(k.name)) for k in keys), Item(unique, value)))
        join = Join(relation, right, "left", conjunction(on), "scalar")
        if not isinstance(value, exp.Column):
            return join, column(unique)
        made_of = {value.name: column(unique)}
    else:
        join = Join(relation, aggregate, "left", conjunction(on))
        made_of = {name: column(name) for name in counts}
    for name in made_of:
        if name in counts:
            made_of[name] = exp.Coalesce(this=made_of[name], expressions=[exp.Literal.number(0)])
    return join, substituted(value, made_of).unnest()


def _compared(building: Building, outer: list[exp.Expr], own: Scope, around: Scope) -> tuple[list[Item], list[exp.Expr]]:
    """The values of a subquery's rows that are compared with the query around, and these comparisons."""
    keys: list[Item] = []
    on: list[exp.Expr] = []
    for part in outer:
        if not isinstance(part, exp.EQ | exp.NullSafeEQ):
            raise Refused("unsupported-operator", "a correlated subquery whose condition is not an equality", part)
        sides = [part.left, part.right]
        inner = [side for side in sides if not refers_out(side, own.inside(around))]
        if len(inner) != 1:
            raise Refused("unsupported-operator", "a correlated subquery whose condition mixes both sides", part)
        other = sides[1] if inner[0] is sides[0] else sides[0]
        value, theirs = resolved(inner[0], own), resolved(other, replace(around, outer=None))
        require_scalar(value)
        require_scalar(theirs)
        unique = building.computed("key", value)
        keys.append(Item(unique, value))
        outside: exp.Expr = theirs if isinstance(theirs, exp.Column) else exp.paren(theirs)
        # In the order in which it was written, which Spark's plans keep.
        pair = (column(unique), outside) if inner[0] is sides[0] else (outside, column(unique))
        on.append(type(part)(this=pair[0], expression=pair[1]))
    return keys, on
