"""SQL + old names -> new names."""

from __future__ import annotations

import pytest

from mvbuild.names import TableIdentifier
from mvbuild.parse.model import Read
from mvbuild.parse.renaming import mentions, with_new_names, with_new_names_in_text

OLD, NEW = TableIdentifier("lake", ("mart",), "old"), TableIdentifier("lake", ("gold",), "new")
NAMES = {OLD: NEW}


def complete(read: Read) -> TableIdentifier:
    parts = read.parts[1:] if len(read.parts) > 2 else read.parts
    return TableIdentifier("lake", parts[:-1] or ("mart",), parts[-1])


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT id FROM lake.mart.old", "SELECT id FROM lake.gold.new"),
        ("SELECT id -- old\nFROM OLD", "SELECT id -- old\nFROM lake.gold.new"),
        ("SELECT o.id FROM mart.old AS o", "SELECT o.id FROM lake.gold.new AS o"),
        ("SELECT old.id FROM lake.mart.old", "SELECT new.id FROM lake.gold.new"),
        ("SELECT old.new FROM lake.mart.old", "SELECT old.new FROM lake.gold.new AS old"),
        ("SELECT id FROM lake.mart.old VERSION AS OF 3", "SELECT id FROM lake.gold.new VERSION AS OF 3"),
        ("SELECT old.new FROM mart.old VERSION AS OF 3", "SELECT old.new FROM lake.gold.new VERSION AS OF 3 AS old"),
        ("SELECT 'mart.old' FROM a JOIN mart.old USING (id)", "SELECT 'mart.old' FROM a JOIN lake.gold.new USING (id)"),
    ],
)
def test_only_the_table_gets_the_new_name(sql: str, expected: str) -> None:
    assert with_new_names(sql, complete, NAMES) == expected


@pytest.mark.parametrize(
    "sql", ["SELECT id FROM other.old", "SELECT 'lake.mart.old'", "WITH old AS (SELECT 1) SELECT * FROM old", "SELECT ((("]
)
def test_what_is_not_read_or_not_understood_is_left_alone(sql: str) -> None:
    assert with_new_names(sql, complete, NAMES) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('SELECT * FROM "lake"."mart"."old"', 'SELECT * FROM "lake"."gold"."new"'),
        ("SELECT * FROM mart.old o", "SELECT * FROM gold.new o"),
        ("SELECT * FROM mart.older, smart.old, x.mart.old", "SELECT * FROM mart.older, smart.old, x.mart.old"),
    ],
)
def test_in_other_dialects_full_names_are_exchanged(text: str, expected: str) -> None:
    assert with_new_names_in_text(text, NAMES) == expected


def test_a_mention_is_a_word() -> None:
    assert mentions("from x.`OLD`", OLD)
    assert mentions("from mart.old", OLD)
    assert not mentions("from mart.older", OLD)
