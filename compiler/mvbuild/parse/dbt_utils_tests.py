"""Arguments of dbt_utils' generic tests -> a query of the rows that are wrong; a test passes where dbt's passes.

Where dbt computes a number of failures from the rows of its query, the query here has only the rows that count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from mvbuild.parse.dbt_dates import dateadd

_GAPS = {"not_allowed": "=", "allowed": "<=", "required": "<"}


def unique_combination_of_columns(model: Any, combination_of_columns: Sequence[Any], quote_columns: bool = False) -> str:
    columns = ", ".join(f"`{column}`" if quote_columns else str(column) for column in combination_of_columns)
    return f"select {columns} from {model} group by {columns} having count(*) > 1"


def expression_is_true(model: Any, expression: Any, column_name: Any = None) -> str:
    return f"select * from {model} where not({expression if column_name is None else f'{column_name} {expression}'})"


def accepted_range(model: Any, column_name: Any, min_value: Any = None, max_value: Any = None, inclusive: bool = True) -> str:
    equal = "=" if inclusive else ""
    wrong = [f"not {column_name} {sign}{equal} {value}" for sign, value in ((">", min_value), ("<", max_value)) if value is not None]
    return f"select * from {model} where {' or '.join(wrong) or 'false'}"


def not_accepted_values(model: Any, column_name: Any, values: Sequence[Any], quote: bool = True) -> str:
    listed = ", ".join(f"'{value}'" if quote else str(value) for value in values)
    return f"select distinct {column_name} from {model} where {column_name} in ({listed})"


def not_empty_string(model: Any, column_name: Any, trim_whitespace: bool = True) -> str:
    return f"select * from {model} where {f'trim({column_name})' if trim_whitespace else column_name} = ''"


def not_constant(model: Any, column_name: Any, group_by_columns: Sequence[Any] = ()) -> str:
    count = f"count(distinct {column_name})"
    return f"select {_first(group_by_columns)}{count} as distinct_values from {model} {_grouped(group_by_columns)} having {count} = 1"


def at_least_one(model: Any, column_name: Any, group_by_columns: Sequence[Any] = ()) -> str:
    count = f"count({column_name})"
    return f"select {_first(group_by_columns)}{count} as present from {model} {_grouped(group_by_columns)} having {count} = 0"


def not_null_proportion(
    model: Any, column_name: Any = None, at_least: Any = None, at_most: Any = 1, group_by_columns: Sequence[Any] = ()
) -> str:
    present = f"sum(case when {column_name} is null then 0 else 1 end) / cast(count(*) as decimal(28,6))"
    proportions = f"select {_first(group_by_columns)}{present} as proportion from {model} {_grouped(group_by_columns)}"
    return f"select * from ({proportions}) where proportion < {at_least} or proportion > {at_most}"


def relationships_where(model: Any, column_name: Any, to: Any, field: Any, from_condition: str = "1=1", to_condition: str = "1=1") -> str:
    children = f"select {column_name} as id from {model} where {column_name} is not null and {from_condition}"
    parents = f"select {field} as id from {to} where {field} is not null and {to_condition}"
    return f"select children.id from ({children}) as children left anti join ({parents}) as parents on children.id = parents.id"


def cardinality_equality(model: Any, column_name: Any, to: Any, field: Any) -> str:
    ours = f"select {column_name}, count(*) as num_rows from {model} group by {column_name}"
    theirs = f"select {field}, count(*) as num_rows from {to} group by {field}"
    return f"select * from ({ours} except {theirs}) union all select * from ({theirs} except {ours})"


def equality(
    model: Any, compare_model: Any, compare_columns: Sequence[Any] | None = None, exclude_columns: Any = None, precision: Any = None
) -> str:
    if not compare_columns or exclude_columns or precision:
        raise ValueError("The test 'equality' needs 'compare_columns' here, and neither 'exclude_columns' nor 'precision'")
    columns = ", ".join(map(str, compare_columns))
    ours, theirs = f"select {columns} from {model}", f"select {columns} from {compare_model}"
    return f"select * from ({ours} except {theirs}) union all select * from ({theirs} except {ours})"


def equal_rowcount(model: Any, compare_model: Any, group_by_columns: Sequence[Any] = ()) -> str:
    return f"select * from ({_counts(model, compare_model, group_by_columns)}) where ours <> theirs"


def fewer_rows_than(model: Any, compare_model: Any, group_by_columns: Sequence[Any] = ()) -> str:
    return f"select * from ({_counts(model, compare_model, group_by_columns)}) where ours >= theirs"


def sequential_values(
    model: Any, column_name: Any, interval: Any = 1, datepart: str | None = None, group_by_columns: Sequence[Any] = ()
) -> str:
    before = f"lag({column_name}) over ({_partitioned(group_by_columns)}order by {column_name})"
    rows = f"select {_first(group_by_columns)}{column_name} as this_value, {before} as value_before from {model}"
    if datepart:
        next_value = dateadd(datepart, interval, "value_before")
        return f"select * from ({rows}) where not(cast(this_value as timestamp) = cast({next_value} as timestamp))"
    return f"select * from ({rows}) where not(this_value = value_before + {interval})"


def mutually_exclusive_ranges(
    model: Any,
    lower_bound_column: Any,
    upper_bound_column: Any,
    partition_by: Any = None,
    gaps: str = "allowed",
    zero_length_range_allowed: bool = False,
) -> str:
    if gaps not in _GAPS:
        raise ValueError(f"'gaps' must be one of {', '.join(_GAPS)}, not '{gaps}'")
    lower, upper, within = lower_bound_column, upper_bound_column, _partitioned([partition_by] if partition_by else [])
    following = f"lead({lower}) over ({within}order by {lower}, {upper})"
    is_last = f"row_number() over ({within}order by {lower} desc, {upper} desc) = 1"
    rows = f"select {lower} as lower_bound, {upper} as upper_bound, {following} as next_lower_bound, {is_last} as is_last from {model}"
    right_order = f"coalesce(lower_bound {'<=' if zero_length_range_allowed else '<'} upper_bound, false)"
    right_gap = f"coalesce(upper_bound {_GAPS[gaps]} next_lower_bound, is_last, false)"
    return f"select * from ({rows}) where not({right_order} and {right_gap})"


def recency(
    model: Any, field: Any, datepart: str, interval: Any, ignore_time_component: bool = False, group_by_columns: Sequence[Any] = ()
) -> str:
    since = f"cast({dateadd(datepart, interval * -1, 'current_timestamp()')} as {'date' if ignore_time_component else 'timestamp'})"
    latest = f"cast(max({field}) as date)" if ignore_time_component else f"max({field})"
    rows = f"select {_first(group_by_columns)}{latest} as most_recent from {model} {_grouped(group_by_columns)}"
    return f"select * from ({rows}) where most_recent < {since} or most_recent is null"


def _counts(model: Any, other: Any, columns: Sequence[Any]) -> str:
    """The row counts of each group that both have. Like dbt's test, it ignores groups that one of them lacks, and empty tables."""
    sides = [
        f"select {_first(columns)}count(*) as {name} from {of} {_grouped(columns)} having count(*) > 0"
        for name, of in (("ours", model), ("theirs", other))
    ]
    same = " and ".join(f"a.{column} = b.{column}" for column in columns) or "true"
    return f"select a.*, b.theirs from ({sides[0]}) as a join ({sides[1]}) as b on {same}"


def _first(columns: Sequence[Any]) -> str:
    return "".join(f"{column}, " for column in columns)


def _grouped(columns: Sequence[Any]) -> str:
    return f"group by {', '.join(map(str, columns))}" if columns else ""


def _partitioned(columns: Sequence[Any]) -> str:
    return f"partition by {', '.join(map(str, columns))} " if columns else ""


TESTS: Mapping[str, Callable[..., str]] = MappingProxyType(
    {
        test.__name__: test
        for test in (
            unique_combination_of_columns, expression_is_true, accepted_range, not_accepted_values, not_empty_string, not_constant,
            at_least_one, not_null_proportion, relationships_where, cardinality_equality, equality, equal_rowcount, fewer_rows_than,
            sequential_values, mutually_exclusive_ranges, recency,
        )
    }
)  # fmt: skip
"""Name -> test: `dbt_utils.<name>` in YAML, `dbt_utils.test_<name>()` in a template."""
