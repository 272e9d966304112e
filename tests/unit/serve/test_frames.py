"""names and queries of readers -> the SQL that the engine gets."""

from __future__ import annotations

import gc
import logging
import weakref
from pathlib import Path

import pytest

from mvbuild.diagnostics import ProjectError
from mvbuild.serve import frames
from mvbuild.serve.rows import choose_rows
from unit.serve.readers import chain, read, session, sql
from unit.worlds import append, base_table, shop


def test_read_by_every_name(tmp_path: Path) -> None:
    of = chain(tmp_path)
    wanted = f"SELECT * FROM lake.mart.a__storage VERSION AS OF {of.table('mart.a__storage').current_snapshot_id}"
    for name in ("a", "A", "mart.a", "lake.mart.a", "LAKE.Mart.A", "`lake`.mart.a"):
        assert read(of, name).sql == wanted
    with pytest.raises(ProjectError, match="unknown-name"):
        read(of, "mart.nothing")


def test_a_stale_mv_is_expanded_and_its_fresh_upstream_is_not(tmp_path: Path) -> None:
    of = chain(tmp_path)
    append(of.catalog, "raw.customers")
    found = read(of, "b")
    assert f"lake.mart.a__storage VERSION AS OF {of.table('mart.a__storage').current_snapshot_id} AS a" in found.sql
    assert f"lake.raw.customers VERSION AS OF {of.table('raw.customers').current_snapshot_id}" in found.sql
    assert [(s.name, s.source) for s in frames.served(found)] == [("b", "query"), ("a", "storage")]


def test_names_in_a_query(tmp_path: Path) -> None:
    of = chain(tmp_path)
    base_table(of.catalog, "raw.other")
    a, other = (of.table(t).current_snapshot_id for t in ("mart.a__storage", "raw.other"))
    for name in ("a", "mart.a", "lake.mart.a", "MART.A", "`lake`.`mart`.`a`"):
        assert sql(of, f"SELECT id FROM {name} WHERE a.id > 1").sql.startswith(f"SELECT id FROM lake.mart.a__storage VERSION AS OF {a} AS ")
    assert sql(of, "SELECT id FROM raw.other").sql == f"SELECT id FROM lake.raw.other VERSION AS OF {other} AS other"
    assert f"lake.raw.other VERSION AS OF {other}" in sql(of, "SELECT id FROM RAW.Other").sql
    both = sql(of, "SELECT a.id FROM mart.a JOIN my_view ON a.id = my_view.id, global_temp.g, elsewhere.db.t")
    assert "JOIN my_view AS my_view" in both.sql
    assert "global_temp.g" in both.sql
    assert "elsewhere.db.t" in both.sql
    assert [s.name for s in frames.served(both)] == ["a"]


def test_a_cte_hides_a_table(tmp_path: Path) -> None:
    of = chain(tmp_path)
    assert frames.served(sql(of, "WITH a AS (SELECT 1 AS id) SELECT id FROM a")) == ()


def test_a_version_that_the_reader_chose_is_not_resolved(tmp_path: Path) -> None:
    of = chain(tmp_path, "when_stale='fail'")
    append(of.catalog, "raw.orders")
    snapshot = of.table("mart.a__storage").current_snapshot_id
    found = sql(of, f"SELECT id FROM mart.a VERSION AS OF {snapshot}")
    assert f"lake.mart.a__storage VERSION AS OF {snapshot}" in found.sql
    assert frames.served(found) == ()
    with pytest.raises(ProjectError, match="no longer has version 7"):
        sql(of, "SELECT id FROM mart.a VERSION AS OF 7")


def test_one_mv_as_it_is_and_as_it_was(tmp_path: Path) -> None:
    of = chain(tmp_path)
    append(of.catalog, "raw.orders")
    snapshot, orders = of.table("mart.a__storage").current_snapshot_id, of.table("raw.orders").current_snapshot_id
    text = sql(of, f"SELECT n.id FROM mart.a n JOIN mart.a VERSION AS OF {snapshot} o USING (id)").sql
    assert f"lake.mart.a__storage VERSION AS OF {snapshot}" in text
    assert f"lake.raw.orders VERSION AS OF {orders}" in text


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("SELECT id\nFROM mart.a WHERE", "sql-syntax", "sql:2:13"),
        ("", "empty-sql", "sql:1:1"),
        ("SELECT 1; SELECT 2", "many-statements", "sql:1:11"),
        ("DROP TABLE mart.a", "not-a-query", "sql:1:1"),
        ("SELECT id FROM v VERSION AS OF 1", "bad-time-travel", "sql:1:16"),
        ("SELECT id FROM a JOIN mart.a VERSION AS OF 7 b USING (id)", "missing-table", "sql:1:23"),
    ],
)
def test_errors_stand_in_the_text(tmp_path: Path, text: str, code: str, place: str) -> None:
    of = chain(tmp_path, more={"models/v.sql": "{{ config(materialized='view') }}\nSELECT id FROM raw.orders\n"})
    with pytest.raises(ProjectError) as caught:
        sql(of, text)
    assert [(d.code, str(d.span)) for d in caught.value.diagnostics] == [(code, place)]


def test_what_the_engine_complains_of_has_its_place(tmp_path: Path) -> None:
    of = chain(tmp_path)
    of.engine.fails = lambda text: "no such column"
    with pytest.raises(ProjectError) as caught:
        sql(of, "\nSELECT nothing FROM a")
    assert [(d.code, str(d.span)) for d in caught.value.diagnostics] == [("query-failed", "sql:2:1")]


def test_served_is_kept_as_long_as_its_frame(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    of = chain(tmp_path)
    caplog.set_level(logging.INFO, "mvbuild")
    found = read(of, "a")
    assert caplog.messages == ["lake.mart.a: from the storage lake.mart.a__storage: fresh, refreshed 0.0s ago"]
    assert frames.served(found)[0].source == "storage"
    gone = weakref.ref(found)
    del found
    gc.collect()
    assert gone() is None
    with pytest.raises(ValueError, match=r"does not come from mvbuild.read"):
        frames.served(object)


def test_as_of(tmp_path: Path) -> None:
    of = chain(tmp_path)
    first = of.table("mart.a__storage").current_snapshot_id
    append(of.catalog, "raw.orders")
    of.run()
    assert read(of, "a", 1).sql == f"SELECT * FROM lake.mart.a__storage VERSION AS OF {first}"
    assert read(of, "a", str(first)).sql == f"SELECT * FROM lake.mart.a__storage VERSION AS OF {first}"
    for wrong in (77, "1999-01-01", "yesterday"):
        with pytest.raises(ProjectError, match="unknown-refresh"):
            read(of, "a", wrong)


def test_rows_say_where_they_come_from(tmp_path: Path) -> None:
    of = chain(tmp_path)
    of.clock.at_ms += 300_000
    shown = choose_rows(session(of), "a", 5)
    assert shown.origin == "storage lake.mart.a__storage: fresh, refreshed 5m 0s ago"
    assert of.engine.executed[-1:] != [shown.origin]
    append(of.catalog, "raw.customers")
    shown = choose_rows(session(of), "b", 5)
    assert shown.origin == "query: stale (lake.raw.customers has new data)"
    assert [s.name for s in shown.upstream] == ["a"]
    assert choose_rows(session(of), "lake.raw.orders", 2).origin == "table lake.raw.orders"


def test_a_table_that_does_not_exist(tmp_path: Path) -> None:
    of = shop(tmp_path, {"mvbuild.yml": "name: shop\n", "models/m.sql": "SELECT id FROM raw.nowhere\n"})
    with pytest.raises(ProjectError, match=r"lake.raw.nowhere does not exist"):
        read(of, "m")
