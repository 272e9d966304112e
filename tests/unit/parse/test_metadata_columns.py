"""Columns in a text that describe files."""

from __future__ import annotations

import pytest

from mvbuild.parse.metadata_columns import metadata_columns


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT _file, _POS FROM t", {"_file", "_pos"}),
        ("SELECT t.`_spec_id`, t._partition.day FROM t", {"_spec_id", "_partition"}),
        ("SELECT a FROM t WHERE NOT _deleted AND _row_id > 5", {"_deleted", "_row_id"}),
        ("SELECT max(_last_updated_sequence_number), _metadata.file_path FROM t", {"_last_updated_sequence_number", "_metadata"}),
        ("SELECT a, '_file' AS text, my_file, _files FROM t -- _pos", set()),
    ],
)
def test_names(sql: str, names: set[str]) -> None:
    assert metadata_columns(sql) == names
