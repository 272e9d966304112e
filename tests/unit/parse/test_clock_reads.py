"""What a text reads of the clock, and its values in every zone."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from mvbuild.parse.clock_reads import clock_reads, ends_ms, values_at, with_values, without_clock
from mvbuild.parse.determinism import nondeterministic_word
from mvbuild.parse.wall_clock import zone_of
from mvbuild.source import MappedText, SourceFile


def names(sql: str, *columns: str) -> list[str]:
    return [read.name for read in clock_reads(sql, columns)]


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT id FROM t WHERE d >= current_date - 30", ["current_date"]),
        ("SELECT id FROM t WHERE d >= CURRENT_DATE()", ["current_date"]),
        ("SELECT id FROM t WHERE d >= curdate()", ["current_date"]),
        ("SELECT id FROM t WHERE d >= to_date(now())", ["current_date"]),
        ("SELECT id FROM t WHERE d >= CAST(current_timestamp AS DATE)", ["current_date"]),
        ("SELECT id FROM t WHERE d >= date(current_timestamp())", ["current_date"]),
        ("SELECT id FROM t WHERE ts >= date_trunc('hour', now())", ["current_timestamp.hour"]),
        ("SELECT id FROM t WHERE ts >= date_trunc('MONTH', current_date)", ["current_timestamp.month"]),
        ("SELECT id FROM t WHERE d >= trunc(current_date, 'YYYY')", ["current_date.year"]),
        ("SELECT id, current_date AS day FROM t GROUP BY ALL", ["current_date"]),
        ("SELECT count(*) FILTER (WHERE d = current_date) AS n FROM t", ["current_date"]),
        ("SELECT id FROM t WHERE d > (SELECT max(d) FROM u WHERE d < current_date)", ["current_date"]),
        # Where Spark takes only the day of a time.
        ("SELECT id FROM t WHERE d >= now()::date", ["current_date"]),
        ("SELECT id FROM t WHERE d >= current_timestamp::DATE - 7", ["current_date"]),
        ("SELECT id FROM t WHERE d >= date_sub(current_timestamp(), 7)", ["current_date"]),
        ("SELECT id FROM t WHERE d >= date_sub(add_months(now(), -1), 7)", ["current_date"]),
        ("SELECT id, datediff(now(), d) AS days FROM t", ["current_date"]),
        ("SELECT id, datediff(coalesce(d, e), now()) AS days FROM t WHERE year(now()) = y", ["current_date"] * 2),
        ("SELECT id FROM t WHERE y = extract(YEAR FROM current_timestamp)", ["current_date"]),
        ("SELECT id FROM t WHERE m = date_format(now(), 'yyyy-MM')", ["current_date"]),
        ("SELECT id FROM t WHERE d >= trunc(now(), 'MM')", ["current_date.month"]),
        ("SELECT id FROM t WHERE ts >= date_trunc('month', now()::date)", ["current_timestamp.month"]),
        # The hours count here.
        ("SELECT id FROM t WHERE ts >= now()::timestamp", []),
        ("SELECT id, datediff(HOUR, ts, now()) AS hours FROM t", []),
        ("SELECT id, datediff(HOUR, now(), ts) AS hours FROM t", []),
        ("SELECT id FROM t WHERE ts >= dateadd(DAY, -1, now())", []),
        ("SELECT id FROM t WHERE months_between(ts, now()) < 1", []),
        ("SELECT id FROM t WHERE h = extract(HOUR FROM now())", []),
        ("SELECT id FROM t WHERE m = date_format(now(), 'yyyy-MM-dd HH')", []),
        ("SELECT id FROM t WHERE m = date_format(now(), format)", []),
        ("SELECT id FROM t WHERE y = own.year(now()) AND own.datediff(d, now()) < 1", []),
        ("SELECT id, f(date_sub(d, 1), now()) AS x, datediff(d, e, now()) AS y FROM t", []),
        ("SELECT id FROM t WHERE date_sub(now() - INTERVAL 1 HOUR, 7) < d", []),
        # The exact time is another one each time.
        ("SELECT id FROM t WHERE ts >= now() - INTERVAL 1 DAY", []),
        ("SELECT id FROM t WHERE ts >= date_trunc('second', now())", []),
        ("SELECT id FROM t WHERE ts >= date_trunc('hour', ts)", []),
        # Its text would be the name of a column.
        ("SELECT current_date FROM t", []),
        ("SELECT datediff(current_date, d) FROM t", []),
        ("SELECT day(current_date) UNION ALL SELECT 1 AS a", []),
        ("SELECT 1 AS a UNION ALL BY NAME SELECT day(current_date)", []),
        ("SELECT * FROM (SELECT current_date)", []),
        ("(SELECT current_date)", []),
        ("SELECT a FROM t JOIN LATERAL (SELECT current_date)", []),
        # Its text would be the name of a field, or a part of the name of a column.
        ("SELECT id, to_json(struct(current_date, id)) AS j FROM t", []),
        ("SELECT id, (CURRENT_DATE, id) AS pair FROM t", []),
        ("SELECT transform(xs, x -> struct(x, current_date)) AS xs FROM t", []),
        ("SELECT * FROM t PIVOT (sum(if(d = current_date, 1, 0)), max(d) FOR k IN ('a', 'b'))", []),
        # A field without a name has a number, whatever its text is.
        ("SELECT struct(current_date(), current_date - 1, id) AS s FROM t", ["current_date"] * 2),
        ("SELECT struct(current_date AS day, id) AS s, named_struct('day', current_date) AS n FROM t", ["current_date"] * 2),
        ("SELECT * FROM t PIVOT (sum(if(d = current_date, 1, 0)) AS n, max(d) AS m FOR k IN ('a', 'b'))", ["current_date"]),
        # The names are written somewhere else.
        (
            "WITH RECURSIVE days(d) AS (SELECT current_date - 9 UNION ALL SELECT d + 1 FROM days WHERE d < curdate()) SELECT d FROM days",
            ["current_date"] * 2,
        ),
        ("SELECT a FROM (SELECT day(current_date)) AS x(a)", ["current_date"]),
        ("(SELECT 1 AS a) UNION ALL (SELECT day(current_date))", ["current_date"]),
        # Spelled in a way that sqlglot does not know.
        ("SELECT window(at, '1 day').start AS day FROM t WHERE d > curdate() GROUP BY window(at, '1 day')", ["current_date"]),
        # No name is needed.
        ("SELECT id FROM t WHERE (d, s) IN (SELECT current_date - k, 'paid' FROM u)", ["current_date"]),
        ("SELECT id FROM t WHERE EXISTS (SELECT current_date FROM u) AND d > (SELECT current_date - max(k) FROM u)", ["current_date"] * 2),
        # Names and texts.
        ("SELECT t.current_date FROM t", []),
        ("SELECT id, 'current_date' AS s FROM t -- now()", []),
        ("SELECT id AS current_date FROM t WHERE d = current_date", []),
        ("SELECT id FROM t WHERE `current_date` = d", []),
    ],
)
def test_what_is_read(sql: str, found: list[str]) -> None:
    assert names(sql) == found


def test_a_column_of_that_name_comes_first() -> None:
    assert names("SELECT id FROM t WHERE d > current_date", "id", "Current_Date") == []
    assert names("SELECT id FROM t WHERE d > current_date()", "id", "Current_Date") == ["current_date"]


def test_what_remains_is_steady_or_not() -> None:
    assert nondeterministic_word(without_clock("SELECT id FROM t WHERE d > current_date")) == ""
    assert nondeterministic_word(without_clock("SELECT id, rand() AS r FROM t WHERE d > current_date")) == "rand"
    assert nondeterministic_word(without_clock("SELECT id, now() AS at FROM t WHERE d > current_date")) == "now"


def test_the_text_with_values() -> None:
    text = MappedText.of(SourceFile("q", "SELECT id FROM t\nWHERE d > current_date AND ts < date_trunc('HOUR', now()) AND x"))
    made = with_values(text, {"current_date": "2026-01-31", "current_timestamp.hour": "2026-01-31 10:00:00+01:00"})
    assert made.text == "SELECT id FROM t\nWHERE d > DATE '2026-01-31' AND ts < TIMESTAMP_LTZ '2026-01-31 10:00:00+01:00' AND x"
    at = made.text.index(" AND x") + 5
    assert str(made.span(at, at + 1)) == "q:2:63"


UNITS = [
    "current_date",
    *(f"current_date.{unit}" for unit in ("week", "month", "quarter", "year")),
    *(f"current_timestamp.{unit}" for unit in ("minute", "hour", "day", "week", "month", "quarter", "year")),
]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "+05:45"])
@pytest.mark.parametrize("name", UNITS)
def test_a_value_holds_until_it_ends(name: str, zone: str) -> None:
    where = zone_of(zone)
    assert where is not None
    for start in ("2026-01-31T23:59:59", "2026-02-28T12:00:00", "2026-03-29T01:30:00", "2026-10-25T00:30:00", "2026-12-31T23:30:00"):
        at = round(datetime.fromisoformat(start).replace(tzinfo=where).timestamp() * 1000)
        value = values_at([name], at, zone)[name]
        ends = ends_ms(name, value, zone)
        assert ends is not None
        assert at < ends
        assert values_at([name], ends - 1, zone)[name] == value
        assert values_at([name], ends, zone)[name] != value


def test_a_zone_that_is_not_known_has_no_values() -> None:
    assert values_at(["current_date"], 0, "Middle/Earth") == {}
    assert ends_ms("current_date", "yesterday", "UTC") is None


def test_the_day_is_that_of_the_zone() -> None:
    midnight = datetime.fromisoformat("2026-06-30T22:00:00+00:00")
    days = [values_at(["current_date"], round((midnight + timedelta(hours=h)).timestamp() * 1000), "Europe/Berlin") for h in (-1, 0)]
    assert [day["current_date"] for day in days] == ["2026-06-30", "2026-07-01"]
