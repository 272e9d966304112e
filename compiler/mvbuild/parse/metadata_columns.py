"""SQL text -> the columns in it that describe where a table stores its rows: rewriting files changes them without changing rows."""

from __future__ import annotations

import re

from sqlglot import TokenType
from sqlglot.errors import TokenError

from mvbuild.parse.dialect import tokenize

RESERVED = frozenset("_file _pos _spec_id _partition _deleted _row_id _last_updated_sequence_number".split())
"""Those of Iceberg's tables. Spark writes a table with a column of such a name, and then refuses to read it."""
_COLUMNS = RESERVED | {"_change_type", "_change_ordinal", "_commit_snapshot_id", "_metadata"}
"""With those of changes, and `_metadata`, which Spark adds to tables of its own formats."""
OF_ALL_SPECS = "_partition"
"""A struct with a field for every partition spec that the table ever had. A new spec, which makes no snapshot, changes it."""
_MAYBE = re.compile(rf"\b(?:{'|'.join(sorted(_COLUMNS))})\b", re.IGNORECASE)
_STRINGS = (TokenType.STRING, TokenType.RAW_STRING)


def metadata_columns(sql: str) -> frozenset[str]:
    """In lower case. If a table has its own column of that name, that one is meant."""
    if not _MAYBE.search(sql):
        return frozenset()
    try:
        tokens = tokenize(sql)
    except TokenError:
        return _COLUMNS
    return frozenset(token.text.lower() for token in tokens if token.token_type not in _STRINGS) & _COLUMNS
