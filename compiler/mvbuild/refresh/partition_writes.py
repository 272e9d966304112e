"""the partitions that a change affects -> the condition by which they are replaced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mvbuild.names import quote

MAX_PARTITIONS = 1000
"""Each is a part of the condition that replaces them."""


def partition_condition(partitions: Sequence[tuple[str, str, str]], row: Sequence[str | None], types: Mapping[str, Any]) -> str:
    """The rows of one partition, by the values of its columns, as the bytes of their text in hex: (column, transform, _).

    Nothing of the data stands in the condition as text: Spark would read `${...}` and backslashes in it.
    """
    parts = []
    for (name, transform, _), text in zip(partitions, row, strict=True):
        column = quote(name)
        if text is None:
            parts.append(f"{column} IS NULL")
            continue
        low = f"CAST(CAST(X'{text}' AS STRING) AS {_SQL_TYPES[types[name]]})"
        end = _ENDS.get(transform)
        parts.append(f"{column} >= {low} AND {column} < {end.format(low)}" if end else f"{column} = {low}")
    return f"({' AND '.join(parts)})"


_SQL_TYPES = {"int": "INT", "long": "BIGINT", "string": "STRING", "date": "DATE"}
_ENDS = {"month": "add_months({}, 1)", "year": "add_months({}, 12)"}
