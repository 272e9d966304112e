"""SQL text -> the columns in it that tell where a table keeps its rows: a rewrite of files changes them, and no row."""

from __future__ import annotations

import re

from sqlglot import TokenType
from sqlglot.errors import TokenError

from mvbuild.parse.dialect import tokenize

_COLUMNS = frozenset(
    "_file _pos _spec_id _partition _deleted _row_id _last_updated_sequence_number _change_type _change_ordinal _commit_snapshot_id "
    "_metadata".split()
)
"""Iceberg's, and `_metadata`, which Spark gives the tables of its own formats."""
OF_ALL_SPECS = "_partition"
"""A struct with a field for every partition spec that the table ever had: a new spec, which makes no snapshot, changes it."""
_MAYBE = re.compile(rf"\b(?:{'|'.join(sorted(_COLUMNS))})\b", re.IGNORECASE)
_STRINGS = (TokenType.STRING, TokenType.RAW_STRING)


def metadata_columns(sql: str) -> frozenset[str]:
    """In small letters. A table may have a column of its own by such a name: then that one is meant."""
    if not _MAYBE.search(sql):
        return frozenset()
    try:
        tokens = tokenize(sql)
    except TokenError:
        return _COLUMNS
    return frozenset(token.text.lower() for token in tokens if token.token_type not in _STRINGS) & _COLUMNS
