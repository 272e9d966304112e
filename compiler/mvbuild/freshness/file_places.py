"""SQL texts + a table that they read -> the columns in them that describe the table's files instead of its rows."""

from __future__ import annotations

from collections.abc import Iterable

from mvbuild.parse.metadata_columns import metadata_columns
from mvbuild.ports.states import TableState


def metadata_columns_of(texts: Iterable[str], table: TableState) -> tuple[str, ...]:
    """If the table itself has a column of that name, it is an ordinary column."""
    named = frozenset(name for text in texts for name in metadata_columns(text))
    return tuple(sorted(named - {field["name"].lower() for field in table.schema["fields"]})) if named else ()
