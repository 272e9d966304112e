"""MVs that read the day: a month of simulated days, with the rows that enter and leave, against the query in plain Spark."""

from __future__ import annotations

import os
from collections import Counter
from datetime import date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import mvbuild
from mvbuild import api
from mvbuild.api import sessions
from spark.projects import NoSpark, Project, bag, messages, named, of, order, orders
from spark.shop import MakeProject

pytestmark = pytest.mark.proof

BERLIN = ZoneInfo("Europe/Berlin")
ZONE = "spark.sql.session.timeZone"
DAYS = int(os.environ.get("MVBUILD_CLOCK_DAYS", "8"))
FIRST = date(2026, 3, 26 if DAYS < 20 else 10)
"""The night to summer time and the first of a month are in the days that follow."""
QUERIES = {
    "recent": "SELECT order_id, amount, order_date FROM raw.orders WHERE order_date >= current_date - 30",
    "by_customer": """SELECT customer_id, count(*) AS n, sum(amount) AS total, count(amount) AS counted,
        sum(CASE WHEN order_date >= current_date() - INTERVAL 7 DAYS THEN amount END) AS week,
        count(CASE WHEN order_date >= current_date() - INTERVAL 7 DAYS THEN amount END) AS in_week
        FROM raw.orders WHERE order_date BETWEEN date_sub(now(), 30) AND to_date(now()) GROUP BY customer_id""",
    "ages": "SELECT order_id, datediff(now(), order_date) AS age FROM raw.orders WHERE order_id % 5 = 0",
    "this_month": "SELECT order_id FROM raw.orders WHERE order_date >= trunc(current_date, 'MM')",
    "all_customers": """SELECT c.customer_id, count(o.order_id) AS orders FROM (SELECT DISTINCT customer_id FROM raw.orders) AS c
        LEFT JOIN raw.orders AS o ON o.customer_id = c.customer_id AND o.order_date > now()::date - 7 GROUP BY c.customer_id""",
    "per_day": """SELECT customer_id, count(*) AS n, sum(amount) AS total, count(amount) AS counted,
        sum(amount) / datediff(current_date, DATE '2026-01-01') AS per_day FROM raw.orders GROUP BY customer_id""",
    "not_needed": "SELECT customer_id, count(*) AS n FROM (SELECT customer_id, current_date AS day FROM raw.orders) GROUP BY customer_id",
    # A parameter with a name that a column of the tree could have.
    "late": "SELECT order_id, order_date, size(filter(array(order_date), order_id_0 -> order_id_0 < current_date - 3)) AS late FROM raw.orders",
}
IN_BERLIN = {"mvbuild.yml": "name: clock\ntarget: dev\ntargets: {dev: {spark: {config: {spark.sql.session.timeZone: Europe/Berlin}}}}\n"}
CONFIG = "{{ config(refresh_policy='incremental') }}\n"


def _day(after: int) -> str:
    return (FIRST + timedelta(days=after)).isoformat()


class Clock:
    """The time that mvbuild sees."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def __call__(self, *_: Any) -> int:
        return round(self.at.timestamp() * 1000)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock(datetime(FIRST.year, FIRST.month, FIRST.day, 9, tzinfo=BERLIN))
    monkeypatch.setattr(sessions.SystemClock, "now_ms", made)
    return made


@pytest.fixture
def shop(project: MakeProject, clock: Clock) -> Project:
    made = project({**IN_BERLIN, **{f"models/{name}.sql": f"{CONFIG}{query}\n" for name, query in QUERIES.items()}})
    made.spark.conf.set(ZONE, "Europe/Berlin")
    days = [FIRST + timedelta(days=at) for at in range(-45, 3)]
    made.make("raw.orders", orders(*((at, at % 4, day.isoformat(), f"{at}.50") for at, day in enumerate(days))))
    made.run()
    return made


def expected(shop: Project, model: str, day: date) -> Counter[str]:
    text = QUERIES[model].replace("raw.", "lake.raw.")
    for read in ("trunc(current_date, 'MM')", "to_date(now())", "now()::date", "now()", "current_date()", "current_date"):
        text = text.replace(read, f"DATE '{day.replace(day=1) if 'MM' in read else day}'")
    return shop.bag(text)


def stored(shop: Project, model: str) -> Counter[str]:
    return shop.bag(f"SELECT * FROM lake.main.{model}__storage")


def states(shop: Project) -> dict[str, tuple[str, tuple[str, ...]]]:
    _, answers = api.status(api.compile(shop.root))
    return {id.rpartition(".")[2]: (found.state, tuple(r.code for r in found.reasons)) for id, found in answers.items()}


def test_a_month_of_days(shop: Project, clock: Clock) -> None:
    strategies: dict[str, Counter[str]] = {name: Counter() for name in QUERIES}
    for number in range(DAYS):
        day = FIRST + timedelta(days=number)
        for hour in (0, 12, 23):
            clock.at = datetime(day.year, day.month, day.day, hour, 30, tzinfo=BERLIN)
            if hour == 0 and number:
                before = states(shop)
                assert {name: found for name, found in before.items() if name != "this_month"} == {
                    name: ("stale", ("clock-moved",)) for name in QUERIES if name != "this_month"
                }, day
                assert before["this_month"][0] == ("stale" if day.day == 1 else "fresh")
                result = shop.run()
                assert result.ok, messages(result)
                for name in QUERIES:
                    strategies[name][str(of(result, name).details.get("strategy"))] += 1
            assert set(states(shop).values()) == {("fresh", ())}
        assert set(named(shop.run(spark=NoSpark())).values()) == {"reused"}
        for name in QUERIES:
            assert stored(shop, name) == expected(shop, name, day), (name, day)
            properties = shop.table(f"main.{name}__storage").properties
            want = day.replace(day=1) if name == "this_month" else day
            assert properties[f"mvbuild.read.current_date{'.month' if name == 'this_month' else ''}"] == want.isoformat()
        if number % 7 == 3:
            # Rows come late, and from the future.
            later = [order(1000 + number * 10 + at, at, (day + timedelta(days=at * 10 - 35)).isoformat(), "1.25") for at in range(5)]
            shop.append("raw.orders", *later)
            shop.sql(f"DELETE FROM lake.raw.orders WHERE order_date = DATE '{day - timedelta(days=10)}'")
            result = shop.run()
            assert result.ok, messages(result)
            assert {name: stored(shop, name) == expected(shop, name, day) for name in QUERIES} == dict.fromkeys(QUERIES, True), day
    assert all("full" not in found for found in strategies.values()), strategies


def test_a_spine_of_days_up_to_today(project: MakeProject, clock: Clock) -> None:
    """The clock is in a recursion: refreshed in full, and only when the day is another one."""
    spine = "WITH RECURSIVE days(d) AS (SELECT current_date - 3 UNION ALL SELECT d + 1 FROM days WHERE d < current_date) SELECT d FROM days"
    made = project({**IN_BERLIN, "models/spine.sql": spine + "\n"})
    made.spark.conf.set(ZONE, "Europe/Berlin")
    for after in (0, 1):
        clock.at = datetime.combine(FIRST + timedelta(days=after), time(9), BERLIN)
        assert named(made.run()) == {"spine": "success"}
        days = [row.d for row in made.sql("SELECT d FROM lake.main.spine__storage ORDER BY d")]
        assert days == [FIRST + timedelta(days=after - back) for back in (3, 2, 1, 0)]
        clock.at += timedelta(hours=14)
        assert states(made) == {"spine": ("fresh", ())}
        assert named(made.run(spark=NoSpark())) == {"spine": "reused"}


def test_rows_and_day_move_together(shop: Project, clock: Clock) -> None:
    clock.at += timedelta(days=3)
    shop.append("raw.orders", order(500, 1, FIRST.isoformat(), "2.00"), order(501, 1, _day(3), "2.00"), order(502, 2, _day(-37), "9.00"))
    shop.sql(f"DELETE FROM lake.raw.orders WHERE order_date IN (DATE '{FIRST - timedelta(days=29)}', DATE '{FIRST}')")
    assert all("clock-moved" in codes for name, (_, codes) in states(shop).items() if name != "this_month")
    result = shop.run()
    assert result.ok, messages(result)
    for name in QUERIES:
        assert of(result, name).details["strategy"] != "full", (name, of(result, name).details)
        assert stored(shop, name) == expected(shop, name, FIRST + timedelta(days=3)), name


NEWEST = (
    "SELECT order_id, customer_id, amount, order_date, row_number() OVER (PARTITION BY customer_id ORDER BY order_date DESC, order_id) AS r"
)
KEPT = {
    "newest": f"SELECT order_id, amount FROM ({NEWEST} FROM raw.orders) WHERE r <= 9 AND order_date >= current_date - 30",
    "totals": f"SELECT customer_id, count(*) AS n, sum(amount) AS total, count(amount) AS counted FROM ({NEWEST} FROM raw.orders) "
    "WHERE r <= 9 AND order_date >= current_date - 30 GROUP BY customer_id",
    "bands": f"SELECT order_id, CASE WHEN order_date >= current_date - 7 THEN 'new' ELSE 'old' END AS band FROM ({NEWEST} FROM raw.orders) WHERE r <= 4",
    "all_of_it": f"SELECT order_id, r FROM ({NEWEST} FROM raw.orders) WHERE r <= 2 AND order_date >= current_date - 3000",
    "means": "SELECT customer_id, avg(amount) AS mean FROM raw.orders GROUP BY customer_id HAVING max(order_date) >= current_date - 5",
    "one_row": f"SELECT count(*) AS n, max(order_date) AS last FROM ({NEWEST} FROM raw.orders) WHERE order_date <= current_date AND r <= 5",
}


@pytest.mark.parametrize("setting", ["always", "auto"])
def test_the_day_is_read_above_auxiliary_views(project: MakeProject, clock: Clock, setting: str) -> None:
    """A view has rows of no certain day. What the MV takes of them moves with the day, with the rows, and with both."""
    config = f"{{{{ config(refresh_policy='incremental', auxiliary_views='{setting}') }}}}\n"
    made = project({**IN_BERLIN, **{f"models/{name}.sql": f"{config}{query}\n" for name, query in KEPT.items()}})
    made.spark.conf.set(ZONE, "Europe/Berlin")
    days = [FIRST + timedelta(days=at) for at in range(-45, 3)]
    made.make("raw.orders", orders(*((at, at % 4, day.isoformat(), f"{at}.50") for at, day in enumerate(days))))
    made.run()
    followed: dict[str, Counter[str]] = {name: Counter() for name in KEPT}
    for number in range(1, 6):
        day = FIRST + timedelta(days=(number + 1) // 2)
        clock.at = datetime.combine(day, time(9), BERLIN)  # every second round, the day is the same
        if number > 1:
            made.append("raw.orders", *(order(1000 + number * 10 + at, at, _day(at * 8 - 30), "1.25") for at in range(4)))
            made.sql(f"DELETE FROM lake.raw.orders WHERE order_date IN (DATE '{_day(number - 25)}', DATE '{_day(number - 3)}')")
        result = made.run()
        assert result.ok, messages(result)
        for name, query in KEPT.items():
            text = query.replace("raw.", "lake.raw.").replace("current_date", f"DATE '{day}'")
            assert stored(made, name) == made.bag(text), (number, name, of(result, name).details)
            details = of(result, name).details
            followed[name][details["strategy"]] += 1
            assert setting == "auto" or name == "means" or details["auxiliary_views"], (name, details)
        assert set(states(made).values()) == {("fresh", ())}
        assert set(named(made.run(spark=NoSpark())).values()) == {"reused"}
    assert not [name for name, found in followed.items() if "full" in found], followed


def test_another_day_in_the_zone_of_the_session_than_in_the_plan(project: MakeProject, clock: Clock) -> None:
    """Half past midnight in Berlin, which the project names, is the day before in New York, where the session is."""
    config = "{{ config(refresh_policy='incremental', auxiliary_views='always') }}\n"
    query = f"SELECT order_id, order_date FROM ({NEWEST} FROM raw.orders) WHERE r <= 9 AND order_date >= current_date - 3"
    made = project({**IN_BERLIN, "models/newest.sql": f"{config}{query}\n"})
    days = [FIRST + timedelta(days=at) for at in range(-9, 3)]
    made.make("raw.orders", orders(*((at, at % 4, day.isoformat(), f"{at}.50") for at, day in enumerate(days))))
    for after, zone in ((0, "America/New_York"), (1, "Europe/Berlin"), (2, "America/New_York"), (3, "America/New_York")):
        clock.at = datetime.combine(FIRST + timedelta(days=after), time(0, 30), BERLIN)
        made.spark.conf.set(ZONE, zone)
        result = made.run()
        assert result.ok, messages(result)
        day = clock.at.astimezone(ZoneInfo(zone)).date()
        text = query.replace("raw.", "lake.raw.").replace("current_date", f"DATE '{day}'")
        assert stored(made, "newest") == made.bag(text), (after, zone, of(result, "newest").details)
        made.append("raw.orders", order(100 + after, after, _day(after), "1.25"))
    made.spark.conf.set(ZONE, "Europe/Berlin")


GUARDED = {
    "filtered": "SELECT k, sum(10 DIV v * day(current_date)) FILTER (WHERE v <> 0) AS s, count(*) AS n FROM raw.o GROUP BY k",
    "right_side": "SELECT o.k, o.v, c.f FROM raw.o JOIN raw.c ON o.k = c.k AND c.f <> 0 AND 10 DIV c.f > day(current_date) - 27",
    "left_side": "SELECT o.k, o.v, c.f FROM raw.o JOIN raw.c ON o.k = c.k AND o.v <> 0 AND 10 DIV o.v > day(current_date) - 27",
    "both_sides": "SELECT o.k, o.v, c.f FROM raw.o JOIN raw.c ON o.k = c.k AND c.f <> 0 AND o.v DIV c.f > day(current_date) - 30",
    "matched": "SELECT o.k, o.v FROM raw.o LEFT SEMI JOIN raw.c ON o.k = c.k AND c.f <> 0 AND 10 DIV c.f > day(current_date) - 27",
}


def test_a_condition_keeps_out_rows_for_which_an_expression_fails(project: MakeProject, clock: Clock) -> None:
    """Spark applies conditions on one side of a join in their order, and computes no value that FILTER leaves out."""
    made = project({**IN_BERLIN, **{f"models/{name}.sql": f"{CONFIG}{query}\n" for name, query in GUARDED.items()}})
    made.spark.conf.set(ZONE, "Europe/Berlin")
    made.sql("CREATE NAMESPACE IF NOT EXISTS lake.raw")
    made.sql("CREATE TABLE lake.raw.o (k INT, v INT) USING iceberg")
    made.sql("CREATE TABLE lake.raw.c (k INT, f INT) USING iceberg")
    made.sql("INSERT INTO lake.raw.o VALUES (1, 0), (1, 2), (2, 5)")
    made.sql("INSERT INTO lake.raw.c VALUES (1, 0), (1, 3), (2, 4)")
    made.run()
    for after in (1, 2, 3):
        clock.at += timedelta(days=1)
        made.sql(f"INSERT INTO lake.raw.o VALUES (1, {after}), (2, 0)")
        result = made.run()
        assert {name: of(result, name).details["strategy"] == "full" for name in GUARDED} == dict.fromkeys(GUARDED, False), result
        for name, query in GUARDED.items():
            text = query.replace("raw.", "lake.raw.").replace("current_date", f"DATE '{FIRST + timedelta(days=after)}'")
            assert stored(made, name) == made.bag(text), name


def test_readers_get_the_day_of_their_session(shop: Project, clock: Clock) -> None:
    """Half past midnight in Berlin is the day before in New York."""
    clock.at = datetime.combine(FIRST + timedelta(days=2), time(0, 30), BERLIN)
    shop.run()
    frame = mvbuild.read(shop.spark, "recent", project=shop.root)
    assert mvbuild.served(frame)[0].source == "storage"
    shop.spark.conf.set(ZONE, "America/New_York")
    try:
        frame = mvbuild.read(shop.spark, "recent", project=shop.root)
        assert mvbuild.served(frame)[0].source == "query"
        assert bag(frame.collect()) == expected(shop, "recent", FIRST + timedelta(days=1))
    finally:
        shop.spark.conf.set(ZONE, "Europe/Berlin")
    clock.at += timedelta(days=1)
    frame = mvbuild.read(shop.spark, "recent", project=shop.root)
    assert mvbuild.served(frame)[0].source == "query"
    assert bag(frame.collect()) == expected(shop, "recent", FIRST + timedelta(days=3))


def test_the_record_is_that_of_the_specification(shop: Project) -> None:
    found = shop.table("main.recent__storage").properties
    assert found["iceberg.base.snapshot.00000000-0000-0000-0000-000000000000"], "other readers never take it for fresh"
    result = api.verify(shop.root, spark=shop.spark)
    assert {one.status for one in result.results} == {"same"}, result
    assert not any(one.notes for one in result.results)
