"""Wrong rules, planted one at a time: the random cases must detect each of them. The list proves that they can."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, islice
from typing import Any

import pytest
from sqlglot import exp

from mvbuild.incremental import (
    alike,
    delta,
    merged_groups,
    push_filters,
    queries,
    restrict,
    row_order,
    select_parts,
    statements,
    stored_rows,
    subqueries,
)
from mvbuild.incremental.algebra import (
    Aggregate,
    Distinct,
    Filter,
    Item,
    Join,
    Relation,
    Scalar,
    SetOperation,
    Window,
    column,
    conjunction,
    conjuncts,
    names_in,
    with_children,
)
from mvbuild.incremental.delta import Cte, Delta, Deltas
from mvbuild.incremental.rewrite import Rewrite, StrategyInput
from mvbuild.incremental.strategies import STRATEGIES, affected_keys, merge
from unit.incremental.on_duckdb import connected
from unit.incremental.oracle import seen
from unit.incremental.queries import COMPARED, LATER, MIXED, POSITIONED, Generated, generated

pytestmark = pytest.mark.proof

MOST = 400
"""Cases that are tried for each fault."""
SEEDS = range(2500)
LATER_SEEDS = range(LATER + 1, LATER + 2500, 2)
COMPARED_SEEDS = range(COMPARED, COMPARED + MOST)
POSITIONED_SEEDS = range(POSITIONED, POSITIONED + MOST)

CAUGHT_BY: Mapping[str, int] = {
    "null_is_looked_up_among_the_values_of_a_change": COMPARED + 315,
    "a_function_of_no_row_is_no_row": COMPARED + 87,
    "rows_that_are_equal_for_a_window_have_an_order": POSITIONED + 9,
    "a_value_that_moved_is_forgotten": MIXED + 187,
    "rows_with_the_earlier_value_stay": MIXED + 187,
    "the_earlier_value_is_the_new_one": MIXED + 187,
    "a_pair_in_a_list_is_compared_by_its_first_column": MIXED + 38,
    "windows_by_an_expression_are_by_its_column": MIXED + 138,
    "keys_that_are_null_are_not_looked_up": 1,
    "groups_whose_key_is_null_are_new_each_time": 41,
    "rows_with_nulls_are_written_again": 7,
    "rows_with_nulls_are_not_removed": 27,
    "the_sum_of_no_values_is_zero": 99,
    "count_counts_nulls": 83,
    "not_in_is_an_anti_join": 6166,
    "not_in_is_local_to_keys": 6166,
    "rows_that_went_are_forgotten": 0,
    "plus_and_minus_are_swapped": 1,
    "the_old_version_is_the_new_one": 1,
    "both_sides_of_a_join_at_new": 7,
    "a_term_of_a_join_is_forgotten": 1,
    "a_branch_of_union_all_is_forgotten": 49,
    "union_is_union_all": 5,
    "distinct_is_linear": 51,
    "except_and_intersect_follow_their_left_side_only": 267,
    "the_value_of_a_subquery_is_constant": 5,
    "a_left_join_changes_as_an_inner_join": 112,
    "exists_gives_a_row_for_each_match": 60,
    "a_filter_goes_below_the_side_that_gives_nulls": 0,
    "a_left_join_follows_its_left_side_only": 0,
    "a_semi_join_follows_its_left_side_only": 114,
    "an_anti_join_follows_its_left_side_only": 132,
    "a_mark_follows_its_left_side_only": 10031,
    "a_mark_is_a_filter": 10013,
    "a_computed_value_is_made_of_the_change_alone": 10019,
    "a_computed_value_stays_what_it_was": 10019,
    "keys_of_a_join_are_of_one_side_only": 8,
    "a_full_join_follows_its_left_side_only": 54,
    "an_inequality_carries_keys": 78,
    "a_window_is_local_to_its_order": 117,
    "having_is_dropped_where_groups_are_computed_again": 105,
    "groups_are_made_of_changed_rows_only": 18,
    "an_emptied_group_is_kept": 42,
    "groups_that_never_lived_are_inserted": 484,
    "new_groups_are_not_inserted": 18,
    "rows_that_went_are_added": 2,
    "a_sum_adds_weights": 42,
    "decimal_sums_lose_their_scale": 49,
    "a_maximum_is_merged_though_rows_went": 895,
    "an_average_divides_by_the_count_of_the_change": 82,
    "the_count_of_no_rows_is_null": 155,
    "all_copies_of_a_row_are_removed": 21,
    "copies_of_a_row_are_one_in_an_exchange": 7,
    "what_is_equal_after_a_cast_is_the_same": 97,
    "each_part_of_a_union_has_its_own_type": 113,
    "a_table_without_changes_keeps_its_order": 7887,
    "rows_that_were_carried_over_do_not_cancel": 3,
}
"""The seed of a case that catches a fault, to begin with it. Where the generator has changed, the others follow."""

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Fault:
    plant: Callable[[Patch], None]
    operators: frozenset[str]
    strategies: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.plant.__name__


FAULTS: list[Fault] = []


def planted(*operators: str, by: tuple[str, ...] = ()) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    """`operators`: one of them is in the query; `by`: the strategies that are tried, all if none."""

    def add(plant: Callable[[Patch], None]) -> Callable[[Patch], None]:
        FAULTS.append(Fault(plant, frozenset(operators), by))
        return plant

    return add


@cache
def _case(seed: int) -> Generated:
    return generated(seed)


def _to_try(fault: Fault) -> Iterator[Generated]:
    if fault.name in CAUGHT_BY:
        yield _case(CAUGHT_BY[fault.name])
    others = (
        case
        for case in map(_case, chain(SEEDS, LATER_SEEDS, COMPARED_SEEDS, POSITIONED_SEEDS))
        if not fault.operators or fault.operators & case.operators
    )
    yield from islice(others, MOST)


@pytest.fixture(scope="module")
def connection() -> Any:
    return connected()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_it_is_caught(fault: Fault, connection: Any, monkeypatch: Patch) -> None:
    fault.plant(monkeypatch)
    assert any(seen(case, connection, fault.strategies).wrong for case in _to_try(fault)), fault.plant.__doc__


def test_the_cases_that_catch_them_are_right_without_them(connection: Any) -> None:
    assert not [wrong for seed in sorted(set(CAUGHT_BY.values())) for wrong in seen(generated(seed), connection).wrong]


def test_there_are_many() -> None:
    assert len(FAULTS) >= 25


# --- tools to plant with -----------------------------------------------------------------------------------------------------------

MODULES = (delta, restrict, statements, stored_rows, affected_keys, merge)


def everywhere(patch: Patch, name: str, function: Callable[..., Any]) -> None:
    """In all modules that know a function by its name."""
    for module in MODULES:
        if hasattr(module, name):
            patch.setattr(module, name, function)


def around(patch: Patch, owner: Any, name: str, change: Callable[..., Any]) -> None:
    """`change` gets the true function as its first argument."""
    true = getattr(owner, name)
    patch.setattr(owner, name, lambda *args, **kwargs: change(true, *args, **kwargs))


def of_relation(patch: Patch, kind: type, change: Callable[[Deltas, Any], Delta]) -> None:
    """Another rule for the change of an operator."""

    def made(true: Callable[..., Delta], self: Deltas, relation: Relation) -> Delta:
        return change(self, relation) if isinstance(relation, kind) else true(self, relation)

    around(patch, Deltas, "_of", made)


def written(patch: Patch, change: Callable[[Any], Any]) -> None:
    """Another MERGE."""

    def made(case: StrategyInput) -> Rewrite:
        found = merge.rewrite(case)
        return replace(found, write=change(found.write)) if isinstance(found.write, merge.Upsert) else found

    patch.setitem(STRATEGIES, "merge", made)  # type: ignore[arg-type]


def plain_equality(patch: Patch, function: str) -> None:
    """In one function of statements.py and what it calls, NULL does not equal NULL."""

    def made(true: Callable[..., Any], *args: Any) -> Any:
        with pytest.MonkeyPatch.context() as inner:
            for module in (statements, stored_rows):
                inner.setattr(module, "null_safe", _plain_pairs)
            return true(*args)

    around(patch, statements, function, made)


def _plain_pairs(pairs: Any) -> exp.Expr | None:
    return conjunction([exp.EQ(this=column(one), expression=column(other)) for one, other in pairs])


# --- the faults: NULL --------------------------------------------------------------------------------------------------------------


@planted()
def keys_that_are_null_are_not_looked_up(patch: Patch) -> None:
    """The restriction to keys compares with =."""

    def here(true: Callable[..., Join], *args: Any) -> Join:
        made = true(*args)
        return replace(made, on=conjunction([exp.EQ(this=part.this, expression=part.expression) for part in conjuncts(made.on)]))

    around(patch, restrict, "_here", here)


@planted("group by", by=("merge",))
def groups_whose_key_is_null_are_new_each_time(patch: Patch) -> None:
    """MERGE compares keys with =."""
    plain_equality(patch, "_upsert")


@planted(by=("affected-keys",))
def rows_with_nulls_are_written_again(patch: Patch) -> None:
    """The exchange compares rows with =."""
    plain_equality(patch, "_exchange")


@planted(by=("bag",))
def rows_with_nulls_are_not_removed(patch: Patch) -> None:
    """The bag compares rows with =."""
    plain_equality(patch, "_bag")


@planted("group by", "global aggregate", by=("merge",))
def the_sum_of_no_values_is_zero(patch: Patch) -> None:
    patch.setattr(merged_groups, "unless_zero", lambda counted, value: value)


@planted("group by", "global aggregate", by=("merge",))
def count_counts_nulls(patch: Patch) -> None:
    patch.setattr(merged_groups, "_counted", lambda argument: column(merged_groups.WEIGHT))


@planted("not in")
def not_in_is_an_anti_join(patch: Patch) -> None:
    def exists(true: Callable[..., Join], building: Any, relation: Relation, tree: exp.Expr, scope: Any, kind: str, value: Any) -> Join:
        return true(building, relation, tree, scope, "anti" if kind == "null-aware-anti" else kind, value)

    around(patch, subqueries, "_exists", exists)


@planted("not in", by=("bag", "affected-keys"))
def not_in_is_local_to_keys(patch: Patch) -> None:
    def rule(true: Callable[..., Any], self: Deltas, join: Join, *args: Any) -> Any:
        return true(self, replace(join, kind="anti") if join.kind == "null-aware-anti" else join, *args)

    around(patch, Deltas, "_join_keys", rule)
    around(patch, Deltas, "_keys_of_partner", rule)


# --- old and new -------------------------------------------------------------------------------------------------------------------


@planted()
def rows_that_went_are_forgotten(patch: Patch) -> None:
    """Keys are those of rows that came."""
    patch.setattr(Delta, "all", property(lambda self: self.plus))


@planted()
def plus_and_minus_are_swapped(patch: Patch) -> None:
    of_relation(patch, delta.Scan, lambda self, scan: _swapped(self, scan))


def _swapped(deltas: Deltas, scan: Any) -> Delta:
    plus = (delta.at(scan, "plus", deltas.minus),) if scan.leaf in deltas.minus else ()
    minus = (delta.at(scan, "minus", deltas.plus),) if scan.leaf in deltas.plus else ()
    return Delta(minus, plus)


@planted()
def the_old_version_is_the_new_one(patch: Patch) -> None:
    patch.setattr(Deltas, "old", lambda self, relation: relation)


@planted("inner join", "comma join", "cross join")
def both_sides_of_a_join_at_new(patch: Patch) -> None:
    """dR x S1 with R1 x dS counts dR x dS twice."""

    def join(true: Callable[..., Delta], self: Deltas, node: Join) -> Delta:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(Deltas, "old", lambda self, relation: relation)
            return true(self, node)

    around(patch, Deltas, "_join", join)


@planted("inner join", "comma join", "cross join")
def a_term_of_a_join_is_forgotten(patch: Patch) -> None:
    def join(true: Callable[..., Delta], self: Deltas, node: Join) -> Delta:
        made = true(self, node)
        return Delta(made.plus[: max(1, len(made.plus) - 1)], made.minus[: max(1, len(made.minus) - 1)])

    around(patch, Deltas, "_join", join)


# --- confused operators ---------------------------------------------------------------------------------------------------------------


@planted("union all")
def a_branch_of_union_all_is_forgotten(patch: Patch) -> None:
    def union(true: Callable[..., Delta], self: Deltas, node: Any) -> Delta:
        return true(self, replace(node, parts=node.parts[:-1]))

    around(patch, Deltas, "_union", union)


@planted("union")
def union_is_union_all(patch: Patch) -> None:
    def combined(true: Callable[..., Any], self: Any, tree: exp.Expr, scope: Any) -> Any:
        made = true(self, tree, scope)
        return replace(made, relation=made.relation.child) if isinstance(made.relation, Distinct) else made

    around(patch, queries, "_set_operation", combined)


@planted("distinct", "union")
def distinct_is_linear(patch: Patch) -> None:
    of_relation(patch, Distinct, lambda self, node: self._mapped(node, self.of(node.child)))


@planted("except", "except all", "intersect", "intersect all")
def except_and_intersect_follow_their_left_side_only(patch: Patch) -> None:
    of_relation(patch, SetOperation, lambda self, node: self._mapped(node, self.of(node.left)))


@planted("scalar subquery")
def the_value_of_a_subquery_is_constant(patch: Patch) -> None:
    of_relation(patch, Scalar, lambda self, node: self._mapped(node, self.of(node.child)))


def of_value(patch: Patch, change: Callable[[Delta], Delta]) -> None:
    """Another change of rows that are compared with the value of a subquery. Its last terms are those of a value that moved."""
    around(patch, Deltas, "_of_value", lambda true, self, join: change(true(self, join)))


@planted("mixed")
def a_value_that_moved_is_forgotten(patch: Patch) -> None:
    of_value(patch, lambda made: Delta(made.plus[:-1], made.minus[:-1]))


@planted("mixed")
def rows_with_the_earlier_value_stay(patch: Patch) -> None:
    of_value(patch, lambda made: replace(made, minus=made.minus[:-1]))


@planted("mixed")
def the_earlier_value_is_the_new_one(patch: Patch) -> None:
    def moved(made: Delta) -> Delta:
        first, last = made.plus[-1], made.minus[-1]
        assert isinstance(first, Join)
        assert isinstance(last, Join)
        return replace(made, minus=(*made.minus[:-1], replace(last, right=first.right)))

    of_value(patch, moved)


@planted("mixed")
def a_pair_in_a_list_is_compared_by_its_first_column(patch: Patch) -> None:
    def first(true: Callable[..., Join], *args: Any) -> Join:
        made, values = true(*args), args[5] if len(args) > 5 else ()
        return replace(made, on=conjuncts(made.on)[0]) if len(values) > 1 else made

    around(patch, subqueries, "_exists", first)


@planted("mixed")
def windows_by_an_expression_are_by_its_column(patch: Patch) -> None:
    """As if k + v, and k, had the same partitions."""

    def named(true: Callable[..., None], self: Any, window: exp.Window, keys: list[Item]) -> None:
        true(self, window, keys)
        for key in keys:
            first = key.expression.find(exp.Column)
            assert first is not None
            object.__setattr__(key, "expression", first.copy())

    around(patch, select_parts.SelectParts, "_name_keys", named)


@planted("left join", "right join")
def a_left_join_changes_as_an_inner_join(patch: Patch) -> None:
    def join(true: Callable[..., Delta], self: Deltas, node: Join) -> Delta:
        return true(self, replace(node, kind="inner") if node.kind == "left" else node)

    around(patch, Deltas, "_join", join)


@planted("exists", "in", by=("bag", "full-diff"))
def exists_gives_a_row_for_each_match(patch: Patch) -> None:
    def exists(true: Callable[..., Join], self: Any, *args: Any) -> Join:
        made = true(self, *args)
        return replace(made, kind="inner") if made.kind == "semi" else made

    around(patch, subqueries, "_exists", exists)


@planted("left join", "right join")
def a_filter_goes_below_the_side_that_gives_nulls(patch: Patch) -> None:
    def pushed(true: Callable[..., Any], relation: Relation, part: exp.Expr) -> Any:
        is_right = isinstance(relation, Join) and relation.kind == "left" and names_in(part) <= set(relation.right.columns)
        if is_right and names_in(part):
            return replace(relation, right=push_filters.filtered_here(relation.right, part))  # type: ignore[union-attr]
        return true(relation, part)

    around(patch, push_filters, "_pushed", pushed)


# --- keys ----------------------------------------------------------------------------------------------------------------------------


def _without_partner(patch: Patch, kinds: tuple[str, ...]) -> None:
    def partner(true: Callable[..., Any], self: Deltas, join: Join, *args: Any) -> Any:
        return () if join.kind in kinds else true(self, join, *args)

    around(patch, Deltas, "_keys_of_partner", partner)


@planted("left join", "right join")
def a_left_join_follows_its_left_side_only(patch: Patch) -> None:
    _without_partner(patch, ("left",))


@planted("exists", "in", "left semi join")
def a_semi_join_follows_its_left_side_only(patch: Patch) -> None:
    _without_partner(patch, ("semi",))


@planted("not exists", "left anti join")
def an_anti_join_follows_its_left_side_only(patch: Patch) -> None:
    _without_partner(patch, ("anti",))


@planted("exists as a value", "subquery in OR")
def a_mark_follows_its_left_side_only(patch: Patch) -> None:
    _without_partner(patch, ("mark",))


@planted("subquery in OR")
def a_mark_is_a_filter(patch: Patch) -> None:
    """Rows without a partner are lost, though the other condition may hold."""
    true = subqueries._marked

    def marked(self: Any, relation: Relation, found: exp.Expr, scope: Any) -> tuple[Relation, exp.Expr]:
        join, mark = true(self, relation, found, scope)
        return Filter(join, mark.copy()), mark

    patch.setattr(subqueries, "_marked", marked)


@planted("inner join", by=("affected-keys",))
def keys_of_a_join_are_of_one_side_only(patch: Patch) -> None:
    _without_partner(patch, ("inner",))


@planted("full join")
def a_full_join_follows_its_left_side_only(patch: Patch) -> None:
    def changed(true: Callable[..., Any], self: Deltas, join: Join, items: tuple[Item, ...], pairs: Any) -> Any:
        if true(self, join, items, pairs) is None:
            return None
        return self.changed_keys(join.left, tuple(Item(item.name, item.expression.this) for item in items))

    around(patch, Deltas, "_full_changed_keys", changed)


@planted("theta join", by=("affected-keys", "bag"))
def an_inequality_carries_keys(patch: Patch) -> None:
    def pairs(true: Callable[..., Any], join: Join) -> Any:
        same = [
            exp.EQ(this=part.left, expression=part.right) if isinstance(part, exp.LT | exp.LTE | exp.GT | exp.NEQ) else part
            for part in conjuncts(join.on)
        ]
        return true(replace(join, on=conjunction(same)))

    true = restrict.equal_columns
    everywhere(patch, "equal_columns", lambda join: pairs(true, join))


@planted("window", "qualify")
def a_window_is_local_to_its_order(patch: Patch) -> None:
    def ordered(window: Window) -> tuple[str, ...]:
        orders = [item.expression.args.get("order") for item in window.values]
        return tuple(sorted({name for order in orders for name in names_in(order)}))

    everywhere(patch, "partition_columns", ordered)


@planted("having", by=("affected-keys", "bag"))
def having_is_dropped_where_groups_are_computed_again(patch: Patch) -> None:
    true = restrict.restricted

    def restricted(relation: Relation, keys: Any, table: Any) -> Relation:
        is_having = isinstance(relation, Filter) and isinstance(relation.child, Aggregate)
        return true(relation.child if is_having else relation, keys, table)  # type: ignore[union-attr, arg-type]

    everywhere(patch, "restricted", restricted)


@planted("group by", by=("affected-keys", "bag"))
def groups_are_made_of_changed_rows_only(patch: Patch) -> None:
    """Instead of whole groups: the aggregate of the added rows is used as the new group."""
    of_relation(patch, Aggregate, lambda self, node: Delta(tuple(with_children(node, (p,)) for p in self.of(node.child).plus), ()))


# --- writing -------------------------------------------------------------------------------------------------------------------------


@planted("group by", by=("merge",))
def an_emptied_group_is_kept(patch: Patch) -> None:
    written(patch, lambda write: replace(write, delete_when=None))


@planted("inner join", "cross join", "comma join", by=("merge",))
def groups_that_never_lived_are_inserted(patch: Patch) -> None:
    written(patch, lambda write: replace(write, insert_when=None))


@planted("group by", by=("merge",))
def new_groups_are_not_inserted(patch: Patch) -> None:
    written(patch, lambda write: replace(write, insert_when=exp.false()))


@planted("group by", "global aggregate", by=("merge",))
def rows_that_went_are_added(patch: Patch) -> None:
    def weighted(true: Callable[..., Any], self: Any, part: Relation, needed: list[str], weight: int) -> Any:
        return true(self, part, needed, abs(weight))

    around(patch, merged_groups._Plan, "_weighted", weighted)


@planted("group by", "global aggregate", by=("merge",))
def a_sum_adds_weights(patch: Patch) -> None:
    patch.setattr(merged_groups, "_when", lambda compare, argument: column(merged_groups.WEIGHT))


@planted("group by", "global aggregate", by=("merge",))
def decimal_sums_lose_their_scale(patch: Patch) -> None:
    """As sum(weight * x) does in Spark where x has many digits."""

    def cast(true: Callable[..., exp.Expr], self: Any, output: str, value: exp.Expr) -> exp.Expr:
        made = true(self, output, value)
        is_decimal = str(self.case.types[output]).startswith("decimal")
        return exp.Cast(this=made, to=exp.DataType.build("decimal(38, 1)")) if is_decimal else made

    around(patch, merged_groups._Plan, "_cast", cast)


@planted("min max", by=("merge",))
def a_maximum_is_merged_though_rows_went(patch: Patch) -> None:
    def merged(true: Callable[..., Any], self: Any, expression: exp.Expr) -> Any:
        return true(replace(self, has_minus=False) if isinstance(expression, exp.Max | exp.Min) else self, expression)

    around(patch, merged_groups._Plan, "merged", merged)


@planted("avg", by=("merge",))
def an_average_divides_by_the_count_of_the_change(patch: Patch) -> None:
    around(patch, merged_groups._Plan, "_count_of", lambda true, self, *args, **kwargs: (true(self, *args, **kwargs)[1],) * 2)


@planted("computed from aggregates", by=("merge",))
def a_computed_value_is_made_of_the_change_alone(patch: Patch) -> None:
    def computed(true: Callable[..., Any], self: Any, *args: Any) -> Any:
        made = true(self, *args)
        return replace(made, update=made.insert)

    around(patch, merged_groups._Plan, "computed", computed)


@planted("computed from aggregates", by=("merge",))
def a_computed_value_stays_what_it_was(patch: Patch) -> None:
    def computed(true: Callable[..., Any], self: Any, output: str, *args: Any) -> Any:
        return replace(true(self, output, *args), update=exp.column(output, merge.TARGET, quoted=True))

    around(patch, merged_groups._Plan, "computed", computed)


@planted("compared value")
def null_is_looked_up_among_the_values_of_a_change(patch: Patch) -> None:
    """`<=>` with the value of a subquery is followed like `=`."""

    def is_join(true: Callable[..., bool], on: exp.Expr, *args: Any) -> bool:
        return true(exp.EQ(this=on.this, expression=on.expression) if isinstance(on, exp.NullSafeEQ) else on, *args)

    around(patch, subqueries, "_is_join", is_join)


@planted("compared value")
def a_function_of_no_row_is_no_row(patch: Patch) -> None:
    """`v = coalesce((SELECT ...), 1)` is followed like `v = (SELECT ...)`."""
    around(patch, subqueries, "_is_join", lambda true, on, *args: isinstance(on, exp.EQ) or true(on, *args))


@planted("correlated scalar subquery")
def the_count_of_no_rows_is_null(patch: Patch) -> None:
    """A correlated count becomes a left join without coalesce."""

    def correlated(true: Callable[..., Any], self: Any, *args: Any) -> Any:
        join, value = true(self, *args)
        bare = value.transform(lambda node: node.this if isinstance(node, exp.Coalesce) and node.expressions[0].is_number else node)
        return replace(join, form=""), bare

    around(patch, subqueries, "_correlated_scalar", correlated)


def _without_numbers(relation: Relation, names: Any, number: str) -> Relation:
    return Window(relation, (Item(number, exp.Literal.number(1)),))


@planted(by=("bag",))
def all_copies_of_a_row_are_removed(patch: Patch) -> None:
    patch.setattr(stored_rows, "numbered", _without_numbers)


@planted(by=("affected-keys", "full-diff"))
def copies_of_a_row_are_one_in_an_exchange(patch: Patch) -> None:
    patch.setattr(stored_rows, "numbered", _without_numbers)


@planted(by=("bag",))
def rows_that_were_carried_over_do_not_cancel(patch: Patch) -> None:
    patch.setattr(statements, "_net", lambda plus, minus: (Cte("net_plus", plus.ref), Cte("net_minus", minus.ref)))


# --- types that differ, and the order of rows ------------------------------------------------------------------------------------------


@planted("equality of unlike types")
def what_is_equal_after_a_cast_is_the_same(patch: Patch) -> None:
    """An expression over one side of an equality is used for that over the other side."""
    patch.setattr(alike, "likeness", lambda part, types: "same")


@planted("set operation of unlike types")
def each_part_of_a_union_has_its_own_type(patch: Patch) -> None:
    around(patch, alike._Marking, "_combined", lambda true, self, relation, types: (relation, true(self, relation, types)[1]))


@planted("positions")
def rows_that_are_equal_for_a_window_have_an_order(patch: Patch) -> None:
    patch.setattr(row_order, "_has_one_order", lambda window, rows: window.args.get("order") is not None)


@planted("order of rows")
def a_table_without_changes_keeps_its_order(patch: Patch) -> None:
    """As if a compaction left the rows where they were."""

    def steady(true: Callable[..., None], self: Deltas, relation: Relation) -> None:
        if isinstance(relation, Aggregate | Window):
            if self.changes(relation):
                true(self, relation)
        else:
            for child in relation.children:
                steady(true, self, child)

    around(patch, Deltas, "_require_steady", steady)
