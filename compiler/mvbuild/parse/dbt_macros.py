"""Arguments of dbt's cross-database macros -> the SQL that dbt-spark makes from them.

A macro has the same meaning as in dbt: the result has the same value, and the same place in an expression, so no brackets are added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from mvbuild.parse import dbt_dates

Macro = Callable[..., Any]


# Types


def type_string() -> str:
    return "string"


def type_timestamp() -> str:
    return "timestamp"


def type_float() -> str:
    return "float"


def type_numeric() -> str:
    return "decimal(28,6)"


def type_bigint() -> str:
    return "bigint"


def type_int() -> str:
    return "integer"


def type_boolean() -> str:
    return "boolean"


def cast(field: Any, type: Any) -> str:  # noqa: A002  (dbt's name)
    return f"cast({field} as {type})"


def safe_cast(field: Any, type: Any) -> str:  # noqa: A002
    """A failed cast is an error here as in dbt-spark, whose `safe_cast` is a cast."""
    is_nested = str(type).lower().startswith(("struct", "array", "map"))
    return cast(str(field).strip('"').strip("'") if is_nested else field, type)


def cast_bool_to_text(field: Any) -> str:
    return cast(field, "string")


# Texts


def concat(fields: Sequence[Any]) -> str:
    return f"concat({', '.join(map(str, fields))})"


def hash_(field: Any) -> str:
    return f"md5({cast(field, 'string')})"


def length(expression: Any) -> str:
    return f"length({expression})"


def position(substring_text: Any, string_text: Any) -> str:
    return f"position({substring_text} in {string_text})"


def replace(field: Any, old_chars: Any, new_chars: Any) -> str:
    return f"replace({field}, {old_chars}, {new_chars})"


def right(string_text: Any, length_expression: Any) -> str:
    return f"right({string_text}, {length_expression})"


def split_part(string_text: Any, delimiter_text: Any, part_number: int) -> str:
    """As in dbt-spark, the delimiter is a regular expression, except for a special character at its beginning, which is literal."""
    special = f"regexp_extract({delimiter_text}, '([^A-Za-z0-9])(.*)', 1) != '_'"
    pieces = f"split({string_text}, case when {special} then concat('\\\\', {delimiter_text}) else {delimiter_text} end)"
    if part_number >= 0:
        return f"{pieces}[{max(part_number - 1, 0)}]"
    return f"{pieces}[length({string_text}) - length(replace({string_text}, {delimiter_text}, '')) + 1 + {part_number}]"


def string_literal(value: Any) -> str:
    return f"'{value}'"


def escape_single_quotes(expression: Any) -> str:
    return str(expression).replace("'", "\\'")


# Aggregates


def any_value(expression: Any) -> str:
    return f"first({expression})"


def bool_or(expression: Any) -> str:
    return f"max({expression})"


def listagg(measure: Any, delimiter_text: Any = "','", order_by_clause: Any = None, limit_num: Any = None) -> str:  # noqa: ARG001
    """dbt-spark ignores the order, with a warning: the values are in any order."""
    values = f"collect_list({measure})"
    return f"array_join({f'slice({values}, 1, {limit_num})' if limit_num else values}, {delimiter_text})"


# Arrays


def array_construct(inputs: Sequence[Any] = (), data_type: Any = "int") -> str:  # noqa: ARG001
    return f"array({', '.join(map(str, inputs))})"


def array_concat(array_1: Any, array_2: Any) -> str:
    return f"concat({array_1}, {array_2})"


def array_append(array: Any, new_element: Any) -> str:
    return array_concat(array, array_construct([new_element]))


# Sets and comparisons


def except_() -> str:
    return "except"


def intersect() -> str:
    return "intersect"


def equals(expr1: Any, expr2: Any) -> str:
    return f"({expr1} = {expr2})"


# Times


def current_timestamp() -> str:
    return "current_timestamp()"


DBT: Mapping[str, Macro] = MappingProxyType(
    {
        **{
            macro.__name__.rstrip("_"): macro
            for macro in (
                type_string, type_timestamp, type_float, type_numeric, type_bigint, type_int, type_boolean,
                cast, safe_cast, cast_bool_to_text,
                concat, hash_, length, position, replace, right, split_part, string_literal, escape_single_quotes,
                any_value, bool_or, listagg,
                array_construct, array_concat, array_append,
                except_, intersect, equals, current_timestamp,
            )
        },
        "snapshot_get_time": current_timestamp,
        "date": dbt_dates.date,
        "date_trunc": dbt_dates.date_trunc,
        "dateadd": dbt_dates.dateadd,
        "datediff": dbt_dates.datediff,
        "last_day": dbt_dates.last_day,
    }
)  # fmt: skip
"""Name -> macro: `dbt.<name>`, and `<name>` alone."""

OF_SPARK = frozenset(
    "safe_cast concat split_part escape_single_quotes any_value bool_or listagg array_construct array_concat array_append "
    "current_timestamp date dateadd datediff".split()
)
"""Macros that dbt-spark itself defines for Spark: a project's `spark__` macro replaces them, its `default__` macro does not."""
