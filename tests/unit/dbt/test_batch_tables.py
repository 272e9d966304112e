"""The tables and the text of a query that dbt's batches are played with."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pytest

from unit.dbt.batch_columns import Reader
from unit.dbt.batch_engines import DuckDb, arrow
from unit.dbt.batch_rows import Field, Plan, Table, history
from unit.dbt.batch_tables import tables_of, typed
from unit.dbt.batch_texts import last_day, parsed, played

NOW = datetime(2024, 3, 11, 12)
EVENTS = "`__mvbuild_source__:raw.events`"


def tables(sql: str) -> dict[str, dict[str, str]]:
    """Table -> path -> type."""
    readers = [Reader(parsed(sql), "m") for _ in range(3)]
    return {t.name: {".".join(f.path): f.type for f in t.fields} for t in tables_of(*readers, (), ()).tables}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (f"select a.b.c.d.e from {EVENTS} x", ["a.b.c.d.e"]),
        (f"select i.price from {EVENTS} lateral view explode(payload.items) as i", ["payload.items.[].price"]),
        (f"select k, v.x from {EVENTS} lateral view explode(m) t as k, v", ["m.{}.x"]),
        (f"select filter(h, x -> x.status = 1)[0].at from {EVENTS}", ["h.[].at", "h.[].status"]),
        (f"select size(labels) n, labels.key from {EVENTS}", ["labels.[].key"]),
        (f"select raw.events.id from {EVENTS}", ["id"]),
        (f"select col.x from (select explode(items) from {EVENTS})", ["items.[].x"]),
    ],
)
def test_what_is_read_inside_of_columns_is_in_the_table(sql: str, expected: list[str]) -> None:
    assert sorted(tables(sql)["raw_events"]) == expected


def test_a_column_without_a_table_is_in_the_one_that_has_it_elsewhere() -> None:
    sql = f"select v from {EVENTS} e join `__mvbuild_ref__:users` u on e.id = u.id where u.v > 1"
    assert tables(sql) == {"raw_events": {"id": "BIGINT"}, "ref_users": {"id": "BIGINT", "v": "BIGINT"}}


def test_the_text_keeps_what_spark_reads_and_gets_the_clock_of_the_batch() -> None:
    sql = f"select 'now()', raw.events.v from {EVENTS} where ts < now() and day >= date'2025-01-01' and day <= current_date()"
    assert played(sql, "m", NOW, {"2025-01-01": timedelta(days=1)}) == (
        "select 'now()', events.v from `raw_events` AS `events` where ts < timestamp'2024-03-11 12:00:00'"
        " and day >= date'2024-03-12' and day <= date'2024-03-11'"
    )


def test_the_last_day_is_that_of_the_literals() -> None:
    assert last_day("select '2024-05-01', '2999-01-01' where day > date'2025-01-02'") == date(2025, 1, 2)


def test_columns_that_are_compared_change_their_types_together() -> None:
    fields = [Field(path=("a",), type="BIGINT", kin="x"), Field(path=("b",), type="BIGINT", kin="x"), Field(path=("c",), type="DATE")]
    found, wrong = typed(
        (Table(name="t", fields=tuple(fields), guarded=True),),
        lambda tried: "" if [f.type for f in tried[0].fields][:2] == ["VARCHAR", "VARCHAR"] else "a is no text",
        5,
    )
    assert wrong == ""
    assert [f.type for f in found[0].fields] == ["VARCHAR", "VARCHAR", "DATE"]


def test_arrays_and_maps_can_be_queried() -> None:
    fields = (Field(path=("items", "[]", "n"), type="BIGINT"), Field(path=("m", "{}"), type="DOUBLE"))
    table = Table(name="t", fields=fields, guarded=True)
    assert arrow(table, [(1, 2.5)], None).to_pylist() == [{"items": [{"n": 1}], "m": [("key", 2.5)]}]
    engine = DuckDb()
    engine.load(table, [(1, 2.5), (None, None)])
    assert engine.query("select items[0].n from t order by 1 nulls last").rows == [(1,), (None,)]


def test_a_plan_says_how_many_rows_there_are_and_when() -> None:
    table = Table(name="t", fields=(Field(path=("ts",), type="TIMESTAMP", ordered=True),), guarded=True)
    made = history((table,), "inserts", 0, Plan(day=date(2025, 1, 1), rows=18))
    assert len(made.first["t"]) == 18
    assert {row[0].date() for row in made.rows(3)["t"]} >= {date(2025, 1, 3), date(2025, 1, 4)}
