"""DataTest -> SQL of the rows that violate it. One function for each kind in `project.keys.TEST_ARGUMENTS`.

A function gets the tested rows as a relation, the quoted column, the test, and the relations of everything that the test reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from math import isfinite
from typing import Any

from mvbuild.names import quote
from mvbuild.project.loaded import DataTest


def _literal(value: Any, *, as_text: bool) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, date) or (isinstance(value, str) and as_text):
        return _text(value)
    return f"CAST('{value}' AS DOUBLE)" if isinstance(value, float) and not isfinite(value) else str(value)


def _text(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _not_null(tested: str, column: str, _: DataTest, __: Sequence[str]) -> str:
    return f"SELECT * FROM {tested} WHERE {column} IS NULL"


def _unique(tested: str, column: str, _: DataTest, __: Sequence[str]) -> str:
    return f"SELECT {column}, count(*) AS copies FROM {tested} WHERE {column} IS NOT NULL GROUP BY {column} HAVING count(*) > 1"


def _accepted_values(tested: str, column: str, test: DataTest, _: Sequence[str]) -> str:
    as_text, values = bool(test.arguments.get("quote", True)), test.arguments["values"]
    wrong = f"{column} NOT IN ({', '.join(_literal(v, as_text=as_text) for v in values)})"
    if as_text and any(not isinstance(v, str | None) for v in values):
        # As in dbt, a column of strings has the texts of numbers. Spark would compare numbers, and fail for texts that are none.
        texts = ", ".join("NULL" if v is None else _text(v) for v in values)
        by_text = f"CAST({column} AS STRING) NOT IN ({texts})"
        # With ANSI off, Spark compares no string with a boolean, not even in a branch that is never taken. Its text says the same.
        is_truth = all(isinstance(v, bool | None) for v in values)
        wrong = by_text if is_truth else f"CASE typeof({column}) WHEN 'string' THEN {by_text} ELSE {wrong} END"
    return f"SELECT {column}, count(*) AS copies FROM {tested} WHERE {column} IS NOT NULL AND {wrong} GROUP BY {column}"


def _relationships(tested: str, column: str, test: DataTest, relations: Sequence[str]) -> str:
    field = quote(str(test.arguments["field"]))
    return (
        f"SELECT child.{column} FROM {tested} AS child LEFT ANTI JOIN {relations[1]} AS parent "
        f"ON child.{column} = parent.{field} WHERE child.{column} IS NOT NULL"
    )


SQL: Mapping[str, Callable[[str, str, DataTest, Sequence[str]], str]] = {
    "not_null": _not_null,
    "unique": _unique,
    "accepted_values": _accepted_values,
    "relationships": _relationships,
}
