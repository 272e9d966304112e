"""The parts of a query that come from the session: variables, functions, the time zone, and the location of files. None of them is served
as fresh after it changed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

import pytest

import mvbuild
from spark.projects import Project, messages, of
from spark.shop import MakeProject

pytestmark = pytest.mark.proof

ZONE = "spark.sql.session.timeZone"
QUERIES = {
    "cut": "SELECT id FROM raw.a WHERE s = '${cut}'",
    "files": "SELECT id, _file AS f, _pos AS p FROM raw.a",
    "days": "SELECT CAST(ts AS DATE) AS day, count(*) AS n FROM raw.a GROUP BY CAST(ts AS DATE)",
    "instants": "SELECT id, ts FROM raw.a",
    "newest": "SELECT s, max(ts) AS ts, count(*) AS n FROM raw.a WHERE ts IS NOT NULL GROUP BY s",
    "limited": "SELECT id FROM raw.a WHERE id <= default.limit_of()",
}


@pytest.fixture(scope="module")
def house(project: MakeProject) -> Iterator[Project]:
    made = project(
        {"mvbuild.yml": "name: inputs\nmodels: {+namespace: mart}\n", **{f"models/{n}.sql": f"{q}\n" for n, q in QUERIES.items()}}
    )
    made.sql("CREATE NAMESPACE lake.raw")
    made.sql("CREATE TABLE lake.raw.a (id INT, s STRING, ts TIMESTAMP) USING iceberg")
    made.sql("CREATE TABLE lake.raw.limits (v INT) USING iceberg")
    made.sql("INSERT INTO lake.raw.limits VALUES (1)")
    made.sql("INSERT INTO lake.raw.a VALUES (1, 'x', TIMESTAMP'2026-01-01 23:30:00Z')")
    made.sql("CREATE FUNCTION default.limit_of() RETURNS INT RETURN (SELECT max(v) FROM lake.raw.limits)")
    made.spark.conf.set("cut", "x")
    result = made.run()
    assert result.ok, messages(result)
    yield made
    made.sql("DROP FUNCTION default.limit_of")


@pytest.fixture(autouse=True)
def _as_before(house: Project) -> Iterator[None]:
    yield
    house.spark.conf.set(ZONE, "UTC")
    house.spark.conf.set("cut", "x")


def query(model: str) -> str:
    return QUERIES[model].replace("raw.", "lake.raw.")


def right(house: Project, model: str) -> None:
    """A reader gets the rows of the query now, before and after a run."""
    expected = house.bag(query(model))
    frame = mvbuild.read(house.spark, model, project=house.root)
    assert {str(tuple(row)) for row in frame.collect()} == {str(row) for row in (tuple(r) for r in house.sql(query(model)))}
    result = house.run(model)
    assert result.ok, messages(result)
    assert house.bag(f"SELECT * FROM lake.mart.{model}__storage") == expected


def test_a_variable_in_a_string_is_no_constant(house: Project) -> None:
    house.sql("INSERT INTO lake.raw.a VALUES (2, 'y', NULL)")
    right(house, "cut")
    house.spark.conf.set("cut", "y")
    assert house.codes("cut") == ["nondeterministic"]
    right(house, "cut")
    house.sql("INSERT INTO lake.raw.a VALUES (3, 'y', NULL)")
    right(house, "cut")


def test_a_compaction_changes_where_rows_lie(house: Project) -> None:
    house.sql("INSERT INTO lake.raw.a VALUES (4, 'z', NULL)")
    right(house, "files")
    assert house.codes("files") == []
    house.sql("CALL lake.system.rewrite_data_files(table => 'raw.a', options => map('rewrite-all', 'true'))")
    assert house.codes("files") == ["base-table-rewritten"]
    assert house.codes("instants") in (["base-table-compacted"], ["base-table-changed"])
    right(house, "files")
    assert house.codes("files") == []


@pytest.mark.parametrize("model", ["days", "instants", "newest"])
def test_another_time_zone(house: Project, model: str) -> None:
    right(house, model)
    house.spark.conf.set(ZONE, "Europe/Berlin")
    (served,) = mvbuild.served(mvbuild.read(house.spark, model, project=house.root))
    assert (served.source, served.state) == (("query", "stale") if model == "days" else ("storage", "fresh"))
    right(house, model)
    house.spark.conf.set(ZONE, "UTC")
    right(house, model)


def test_a_function_of_the_catalog_may_read_anything(house: Project) -> None:
    house.sql("INSERT INTO lake.raw.limits VALUES (9)")
    assert "nondeterministic" in house.codes("limited")
    right(house, "limited")


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        ("SELECT id FROM raw.a WHERE s = own_cut", "own_cut"),
        ("SELECT id FROM raw.a WHERE id IN (SELECT id FROM raw.a WHERE s = system.session.own_cut)", "own_cut"),
        ("SELECT id, own_function(s) AS f FROM raw.a", "own_function"),
        ("SELECT id, own_one() AS one FROM raw.a", "own_one"),
        ("SELECT id, upper(s) AS f FROM raw.a", ""),
    ],
)
def test_what_one_session_has_is_refused(project: MakeProject, house: Project, sql: str, word: str) -> None:
    session = house.spark.newSession()
    for key, value in house.spark.conf.getAll.items():
        if key.startswith("spark.sql.catalog.lake"):
            session.conf.set(key, value)
    session.sql("DECLARE VARIABLE own_cut STRING DEFAULT 'x'")
    session.sql("CREATE TEMPORARY FUNCTION own_one() RETURNS INT RETURN 1")
    session.udf.register("own_function", lambda text: text)
    if not word:
        session.udf.register("upper", lambda text: text)
    house.write({"models/own.sql": f"{sql}\n"})
    try:
        result = house.run("own", spark=session)
        (diagnostic,) = of(result, "own").diagnostics
        assert diagnostic.code == "session-object"
        assert diagnostic.span is not None
        assert not word or diagnostic.span.text == word
        # A query of that session may use them.
        assert mvbuild.sql(session, sql, project=house.root).count() >= 0
    finally:
        (house.root / "models/own.sql").unlink()


def test_a_time_without_a_zone_is_one_of_the_session(house: Project) -> None:
    house.sql("CREATE TABLE lake.raw.t (id INT) USING iceberg")
    for number in range(3):
        house.sql(f"INSERT INTO lake.raw.t VALUES ({number})")
    made = [row.at for row in house.sql("SELECT unix_millis(committed_at) AS at FROM lake.raw.t.snapshots ORDER BY committed_at")]
    for zone, hours in (("Asia/Tokyo", 9), ("UTC", 0)):
        house.spark.conf.set(ZONE, zone)
        wall = (
            datetime.fromtimestamp(made[1] / 1000 + hours * 3600, tz=timezone.utc)
            .replace(tzinfo=None)
            .isoformat(sep=" ", timespec="milliseconds")
        )
        sql = f"SELECT count(*) AS n FROM raw.t TIMESTAMP AS OF '{wall}'"
        house.write({"models/then.sql": f"{sql}\n"})
        assert house.bag(sql.replace("raw.", "lake.raw.")) == {"(2,)": 1}
        result = house.run("then")
        assert result.ok, messages(result)
        assert house.bag("SELECT * FROM lake.mart.then__storage") == {"(2,)": 1}
        assert mvbuild.sql(house.spark, sql, project=house.root).collect()[0].n == 2
    (house.root / "models/then.sql").unlink()
