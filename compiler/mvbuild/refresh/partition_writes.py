"""the partitions that a change affects -> the condition that selects them for replacement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mvbuild.names import quote

MAX_PARTITIONS = 1000
"""The conditions of single partitions are combined."""


def partition_condition(partitions: Sequence[tuple[str, str, str]], row: Sequence[str | None], types: Mapping[str, Any]) -> str:
    """The rows of one partition, by the values of its columns, as the bytes of their text in hex: (column, transform, _).

    The condition contains no data as text, because Spark would interpret `${...}` and backslashes in it.
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
_ENDS = {"day": "date_add({}, 1)", "month": "add_months({}, 1)", "year": "add_months({}, 12)"}
"""The end of a period, exclusive. Also of a day: from the partition of a file, Iceberg derives only for a range that all its rows are in
it. For `=` it needs the bounds of the column, which an Avro file does not have."""
