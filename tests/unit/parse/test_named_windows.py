"""The definitions of WINDOW in the place of their names, which the text of a view must not have."""

from __future__ import annotations

import pytest

from mvbuild.parse.named_windows import without_named_windows
from mvbuild.source import MappedText, SourceFile


def made(sql: str) -> str:
    return without_named_windows(MappedText.of(SourceFile("q.sql", sql))).text


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "SELECT sum(x) OVER w, rank() OVER v FROM t WINDOW w AS (PARTITION BY k), v AS (ORDER BY f(x))\n",
            "SELECT sum(x) OVER (PARTITION BY k), rank() OVER (ORDER BY f(x)) FROM t \n",
        ),
        (
            "SELECT sum(x) over `W` a FROM t window `w` as (ORDER BY x) QUALIFY a > 1",
            "SELECT sum(x) over (ORDER BY x) a FROM t  QUALIFY a > 1",
        ),
        (
            "SELECT (SELECT sum(y) OVER i FROM u WINDOW i AS (ORDER BY y)), sum(x) OVER w FROM t WINDOW w AS (ORDER BY x)",
            "SELECT (SELECT sum(y) OVER (ORDER BY y) FROM u ), sum(x) OVER (ORDER BY x) FROM t ",
        ),
    ],
)
def test_a_name_is_replaced(sql: str, expected: str) -> None:
    assert made(sql) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT window FROM t",
        "SELECT window(at, '1 day').start FROM t",
        "SELECT 'x window w AS (y)' FROM t -- window",
        "SELECT sum(x) OVER (w ORDER BY y) FROM t WINDOW w AS (PARTITION BY k)",
        "SELECT sum(x) OVER v FROM t WINDOW w AS (PARTITION BY k), v AS (w ORDER BY y)",
        "SELECT sum(x) OVER v FROM t WINDOW w AS (PARTITION BY k), v AS w",
        "SELECT a FROM (SELECT sum(x) OVER w FROM t WINDOW w AS (ORDER BY x)), (SELECT sum(x) OVER w FROM t WINDOW w AS (ORDER BY y))",
    ],
)
def test_what_is_not_understood_stays(sql: str) -> None:
    assert made(sql) == sql


def test_places_are_those_of_the_file() -> None:
    sql = "SELECT sum(nope) OVER w AS s\nFROM t\nWINDOW w AS (PARTITION BY kk)\n"
    found = without_named_windows(MappedText.of(SourceFile("q.sql", sql)))
    for word in ("nope", "kk"):
        at = found.text.index(word)
        assert found.span(at, at + len(word)).start == sql.index(word)
