"""Words whose value is not that of the tables."""

from __future__ import annotations

import pytest

from mvbuild.parse.steadiness import unsteady


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        ("SELECT current_timestamp() AS at FROM t", "current_timestamp"),
        ("SELECT a FROM t WHERE day > CURRENT_DATE - INTERVAL 7 DAYS", "CURRENT_DATE"),
        ("SELECT a, now() FROM t", "now"),
        ("SELECT unix_timestamp() AS s FROM t", "unix_timestamp"),
        ("SELECT rand() AS r FROM t", "rand"),
        ("SELECT uuid() FROM t", "uuid"),
        ("SELECT a FROM t WHERE owner = current_user()", "current_user"),
        ("SELECT a FROM t WHERE day = DATE 'today'", "today"),
        ("SELECT a FROM t TABLESAMPLE (5 PERCENT)", "TABLESAMPLE"),
    ],
)
def test_found(sql: str, word: str) -> None:
    assert unsteady(sql) == word


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a FROM t",
        "SELECT uuid, now, user, version FROM t",
        "SELECT t.current_date FROM t",
        "SELECT a AS current_date FROM t",
        "SELECT `current_date` FROM t",
        "SELECT unix_timestamp(a) AS s FROM t",
        "SELECT a FROM t WHERE s = 'now'",
        "SELECT a FROM t -- current_date",
        "SELECT a FROM t TABLESAMPLE (5 PERCENT) REPEATABLE (1)",
    ],
)
def test_not_found(sql: str) -> None:
    assert unsteady(sql) == ""
