"""Arguments of dbt_utils' macros -> the SQL that dbt_utils makes from them with dbt-spark.

Macros that read columns or rows while a template is rendered are refused, with what to write instead (UNKNOWN).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from mvbuild.parse.dbt_dates import dateadd, datediff
from mvbuild.parse.dbt_macros import DBT, Macro, cast, concat, escape_single_quotes, hash_, length, position, replace, right, split_part
from mvbuild.parse.dbt_utils_tests import TESTS

NULL_KEY = "_dbt_utils_surrogate_key_null_"
EMPTY_KEYS = "surrogate_key_treat_nulls_as_empty_strings"
"""The variable that makes the key of NULL that of an empty string."""
MOST_COLUMNS = 10_000


def surrogate_key(fields: Iterable[Any], null: str) -> str:
    """The key of `generate_surrogate_key`, and with an empty `null` that of dbt_utils before 1.0."""
    parts = [part for field in fields for part in ("'-'", f"coalesce(cast({field} as string), '{null}')")]
    return hash_(concat(parts[1:]))


def safe_divide(numerator: Any, denominator: Any) -> str:
    return f"({numerator}) / nullif(({denominator}), 0)"


def safe_add(*field_list: Any) -> str:
    return " + ".join(f"coalesce({field}, 0)" for field in _listed(field_list))


def safe_subtract(*field_list: Any) -> str:
    return " - ".join(f"coalesce({field}, 0)" for field in _listed(field_list))


def group_by(n: int) -> str:
    if n > MOST_COLUMNS:
        raise ValueError(f"group_by() supports at most {MOST_COLUMNS:,} columns")
    return f"group by {', '.join(str(i) for i in range(1, n + 1))}"


def date_spine(datepart: str, start_date: Any, end_date: Any) -> str:
    """Every date from the start until before the end. dbt counts them in a separate query first; here the query itself does."""
    count = f"cast({datediff(start_date, end_date, datepart)} as int)"
    rows = f"select explode(sequence(0, greatest({count} - 1, 0))) as n"
    dates = f"select {dateadd(datepart, 'n', start_date)} as date_{datepart} from ({rows}) where n < {count}"
    return f"select date_{datepart} from ({dates}) where date_{datepart} <= {end_date}"


def generate_series(upper_bound: Any) -> str:
    """dbt_utils adds powers of two, which makes its numbers doubles."""
    return f"select cast(n as double) as generated_number from (select explode(sequence(1, {upper_bound})) as n)"


def pivot(
    column: Any,
    values: Sequence[Any],
    alias: bool = True,
    agg: str = "sum",
    cmp: str = "=",
    prefix: str = "",
    suffix: str = "",
    then_value: Any = 1,
    else_value: Any = 0,
    quote_identifiers: bool = True,
    distinct: bool = False,
) -> str:
    columns = []
    for value in values:
        name = f"{prefix}{value}{suffix}"
        condition = f"{column} {cmp} '{escape_single_quotes(value)}'"
        found = f"{agg}({'distinct ' if distinct else ''}case when {condition} then {then_value} else {else_value} end)"
        columns.append(found + (f" as {quoted(name) if quote_identifiers else slugify(name)}" if alias else ""))
    return ", ".join(columns)


def width_bucket(expr: Any, min_value: Any, max_value: Any, num_buckets: Any) -> str:
    size = f"(({max_value} - {min_value}) / {num_buckets})"
    on_edge = f"(case when mod(cast({expr} as decimal(28,6)), cast({size} as decimal(28,6))) = 0 then 1 else 0 end)"
    return f"{on_edge} + least(ceil(({expr} - {min_value}) / {size}), {num_buckets} + 1)"


def haversine_distance(lat1: Any, lon1: Any, lat2: Any, lon2: Any, unit: str = "mi") -> str:
    if unit not in ("mi", "km"):
        raise ValueError(f"haversine_distance() measures in 'mi' or 'km', not in '{unit}'")
    latitudes = f"power((sin(radians(({lat2} - {lat1}) / 2))), 2)"
    longitudes = f"power((sin(radians(({lon2} - {lon1}) / 2))), 2)"
    inner = f"{latitudes} + cos(radians({lat1})) * cos(radians({lat2})) * {longitudes}"
    return f"2 * 3961 * asin(sqrt({inner})) * {1 if unit == 'mi' else 1.60934}"


def get_url_host(field: Any) -> str:
    bare = replace(replace(replace(field, "'android-app://'", "''"), "'http://'", "''"), "'https://'", "''")
    return cast(split_part(split_part(bare, "'/'", 1), "'?'", 1), "string")


def get_url_path(field: Any) -> str:
    bare = replace(replace(field, "'http://'", "''"), "'https://'", "''")
    slash = f"coalesce(nullif({position(chr(39) + '/' + chr(39), bare)}, 0), {position(chr(39) + '?' + chr(39), bare)} - 1)"
    return cast(split_part(right(bare, f"{length(bare)} - {slash}"), "'?'", 1), "string")


def get_url_parameter(field: Any, url_parameter: str) -> str:
    return f"nullif({split_part(split_part(field, f'{chr(39)}{url_parameter}={chr(39)}', 2), chr(39) + '&' + chr(39), 1)}, '')"


def slugify(string: Any) -> str:
    """Text -> a name of lower-case letters, digits and underscores."""
    name = re.sub(r"[^a-z0-9_]+", "", re.sub(r"[ -]+", "_", str(string or "").lower()))
    return f"_{name}" if name[:1].isdigit() else name


def quoted(name: Any) -> str:
    return f"`{name}`"


def nothing(*_: Any, **__: Any) -> str:
    return ""


def _listed(fields: tuple[Any, ...]) -> Sequence[Any]:
    """A list or, as in old versions, its items as arguments."""
    return fields[0] if len(fields) == 1 and not isinstance(fields[0], str) else fields


DBT_UTILS: Mapping[str, Macro] = MappingProxyType(
    {
        **DBT,
        **{f"test_{name}": test for name, test in TESTS.items()},
        "safe_divide": safe_divide,
        "safe_add": safe_add,
        "safe_subtract": safe_subtract,
        "group_by": group_by,
        "date_spine": date_spine,
        "generate_series": generate_series,
        "pivot": pivot,
        "width_bucket": width_bucket,
        "haversine_distance": haversine_distance,
        "get_url_host": get_url_host,
        "get_url_path": get_url_path,
        "get_url_parameter": get_url_parameter,
        "slugify": slugify,
        "log_info": nothing,
    }
)
"""Name -> macro, including those that dbt_utils had before dbt had them."""

UNKNOWN: Mapping[str, str] = MappingProxyType(
    {
        "deduplicate": "dbt_utils joins by all columns on Spark, which loses each row with a NULL. Write row_number(), and filter by it.",
        "star": "It reads the columns of a table. Write the columns, or `* except (...)`.",
        "union_relations": "It reads the columns of tables. Write UNION ALL with the columns.",
        "unpivot": "It reads the columns of a table. Write Spark's UNPIVOT, or `stack(...)`.",
        "get_filtered_columns_in_relation": "It reads the columns of a table. Write them in a {% set %}.",
        "nullcheck_table": "It reads the columns of a table. Write `nullif(column, '')` for each text.",
        "get_column_values": "It reads rows while the template is rendered. Write the values in a {% set %}.",
        "get_query_results_as_dict": "It runs a query while the template is rendered. Write the values in a {% set %}.",
        "get_single_value": "It runs a query while the template is rendered. Write a scalar subquery: `(select ...)`.",
        "get_relations_by_pattern": "It lists the tables of the catalog. Name each table with ref() or source().",
        "get_relations_by_prefix": "It lists the tables of the catalog. Name each table with ref() or source().",
        "pretty_time": "It is the time of the run. Write `current_timestamp()`, or take the time from the source.",
        "equality": "Without `compare_columns` it reads the columns of a table. Name them in `compare_columns`.",
    }
)
"""Macros that need what a template cannot know -> why, and what to do."""
