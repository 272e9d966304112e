"""Strings that Spark takes for another moment each day, by what they are combined with."""

from __future__ import annotations

import pytest

from mvbuild.lineage.moving_strings import moving_strings
from mvbuild.lineage.types import Type

TYPES: dict[str, Type | None] = {"d": "date", "at": "timestamp", "local": "timestamp_ntz", "s": "string", "n": "int"}
MOMENTS = (
    "d >= 'today'",
    "D = 'today'",
    "t.d <=> 'Today UTC'",
    "NOT d = ('today')",
    "d BETWEEN 'yesterday' AND DATE '2026-01-31'",
    "d IN (DATE '2026-01-31', 'today')",
    "d > DATE 'today UTC'",
    "n = year(CAST('yesterday' AS DATE))",
    "n = year('yesterday')",
    "d = to_date('today')",
    "d = date('today')",
    "d > 'today'::date - INTERVAL 7 DAYS",
    "at > TRY_CAST('now' AS TIMESTAMP)",
    "at > timestamp('now')",
    "at > to_timestamp('now')",
    "at > '10:30'",
    "local > 'T10:30:15.5 UTC'",
    "n = hour(CAST('10:30' AS TIMESTAMP))",
    "datediff('today', d) < 3",
    "d > date_add('today', 1)",
    "coalesce(d, 'today') = DATE '2026-01-31'",
    "CASE WHEN n = 1 THEN d ELSE 'today' END > DATE '2026-01-31'",
    "CASE d WHEN 'today' THEN n END = 1",
    "s = date_format('now', 'yyyy')",
    "n = extract(YEAR FROM 'now')",
    "unknown > 'today'",
    "n = weekday('today')",
    "at > to_timestamp_ltz('now')",
    "d > try_to_date('yesterday')",
    "n < months_between('now', s)",
    "d > CAST(lower(' TODAY ') AS DATE)",
    "d = trim('today ')",
    "d > CAST('tomorrow' AS STRING)",
    "d = CAST(CAST('today' AS VARCHAR(10)) AS DATE)",
    "d = to_date(concat('today', ' UTC'))",
    "d >= if(true, 'today', '2026-01-31')",
    "d >= split('today,now', ',')[0] OR d >= element_at(array('today'), 1)",
    "coalesce(d, lower('TODAY')) > DATE '2026-01-31'",
    "EXISTS (SELECT 1 FROM (SELECT CAST(at AS DATE) AS day FROM t) AS days WHERE day = 'today')",
)


def found(condition: str) -> list[str]:
    return list(moving_strings(f"SELECT n FROM t WHERE {condition}", lambda: TYPES))


@pytest.mark.parametrize("condition", MOMENTS)
def test_moments(condition: str) -> None:
    assert len(found(condition)) == 1


@pytest.mark.parametrize(
    "condition",
    [
        "s = 'today'",
        "s > '10:30'",
        "s IN ('today', 'yesterday')",
        "unknown = 'today'",
        "upper(s) = 'TODAY'",
        "s = concat('today', s)",
        "s = concat('today is ', d)",
        "s = format_string('now %s', at)",
        "s = upper('today')",
        "s = element_at(array('today', 'later'), n)",
        "s = concat(upper('today'), d)",
        "s = if(n = 1, 'today', 'later')",
        "s = CASE WHEN d > DATE '2026-01-31' THEN 'today' ELSE 'later' END",
        "CASE s WHEN 'today' THEN n END = 1",
        "coalesce(s, 'now') = s",
        "EXISTS (SELECT 1 FROM (SELECT substr(s, 1, 5) AS hhmm FROM t) AS times WHERE hhmm > '10:30')",
        "d > '2026-01-31' AND at > '2026-01-31 10:30'",
        "d > 'todays'",
        "at > at - INTERVAL '10:30' HOUR TO MINUTE",
    ],
)
def test_text(condition: str) -> None:
    assert found(condition) == []


def test_in_a_query_that_sqlglot_alone_does_not_parse() -> None:
    query = "SELECT window(at, '1 day').start AS day, count(*) AS n FROM t WHERE d >= 'today' GROUP BY window(at, '1 day')"
    assert list(moving_strings(query, lambda: TYPES)) == ["today"]
