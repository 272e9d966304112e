"""Settings of the session, literals made of data, and floats that are equal but not the same: rows that were lost or stayed, on real tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pytest

from mvbuild.incremental import choose
from mvbuild.incremental.strategies import STRATEGIES
from mvbuild.refresh import inputs
from mvbuild.refresh.result import NodeResult
from spark.projects import Project, messages, of
from spark.shop import MakeProject

pytestmark = pytest.mark.proof

MODES = ", ".join(f"'write.{of}.mode' = 'merge-on-read'" for of in ("delete", "update", "merge"))
COLUMNS: Mapping[str, str] = {
    "events": "id INT, ts TIMESTAMP",
    "weights": "id INT, x DOUBLE",
    "nested": "id INT, s STRUCT<x: DOUBLE>",
    "named": "s STRING, v INT",
    "partners": "s STRING, n INT",
    "amounts": "id INT, d DECIMAL(38, 0)",
    "taken": "mvbuild_weight INT, MVBUILD_COPY INT, stored_0 INT, came_0 INT, stored_copy INT, x DOUBLE",
}
QUERIES: Mapping[str, str] = {
    "days": "SELECT CAST(ts AS DATE) AS day, count(*) AS n FROM raw.events GROUP BY CAST(ts AS DATE)",
    "texts": "SELECT id, CAST(x AS STRING) AS s FROM raw.weights",
    "nested_texts": "SELECT id, CAST(s AS STRING) AS s FROM raw.nested",
    "joined": "SELECT a.v, b.n, a.s FROM raw.named a JOIN raw.partners b ON a.s = b.s",
    "totals": "SELECT id, sum(d) AS total, count(d) AS n, count(*) AS m FROM raw.amounts GROUP BY id",
    "of_taken": "SELECT mvbuild_weight, mvbuild_copy, stored_0, came_0, stored_copy, x FROM raw.taken",
    "by_taken": "SELECT stored_0, came_0, max(mvbuild_weight) AS mvbuild_weight, max(x) AS stored_copy FROM raw.taken GROUP BY stored_0, came_0",
}
STRANGE: Mapping[str, str] = {
    "a variable": "concat('$', '{spark.app.name}')",
    "no UTF-8": "CAST(X'FF' AS STRING)",
    "NUL before digits": "concat(char(256), '12')",
    "a backslash": r"concat('C:', char(92), 'temp')",
    "a quote": "concat('it', char(39), 's')",
    "a form feed": "concat('a', char(12), 'b')",
    "an umlaut": "concat('Z', char(252), 'rich')",
}


@pytest.fixture(scope="module")
def house(project: MakeProject) -> Project:
    models = {f"models/{name}.sql": sql + "\n" for name, sql in QUERIES.items()}
    made = project({"mvbuild.yml": "name: rev\nmodels: {+refresh_policy: incremental, +namespace: mart}\n", **models})
    made.spark.conf.set("spark.sql.shuffle.partitions", "2")
    made.spark.conf.set("spark.sql.session.timeZone", "UTC")
    made.sql("CREATE NAMESPACE lake.raw")
    for name, columns in COLUMNS.items():
        made.sql(f"CREATE TABLE lake.raw.{name} ({columns}) USING iceberg TBLPROPERTIES ('format-version' = '2', {MODES})")
    made.sql("INSERT INTO lake.raw.events VALUES (1, TIMESTAMP'2026-01-01 23:30:00Z'), (2, TIMESTAMP'2026-01-02 12:00:00Z')")
    made.sql("INSERT INTO lake.raw.weights VALUES (1, 0.0D), (2, 5.0D), (3, double('NaN')), (4, 1e-300D)")
    made.sql("INSERT INTO lake.raw.nested VALUES (1, named_struct('x', 0.0D)), (2, named_struct('x', 5.0D))")
    made.sql("INSERT INTO lake.raw.named VALUES ('zz', 1)")
    made.sql("INSERT INTO lake.raw.taken VALUES (1, 2, 3, 4, 5, 0.5D), (1, 2, 3, 4, 5, 0.5D), (6, 7, 3, 9, 10, 1.5D)")
    for at, key in enumerate(STRANGE.values()):
        made.sql(f"INSERT INTO lake.raw.partners SELECT {key}, {at}")
    result = made.run()
    assert result.ok, messages(result)
    return made


@pytest.fixture(autouse=True)
def _utc(house: Project) -> Iterator[None]:
    yield
    house.spark.conf.set("spark.sql.session.timeZone", "UTC")
    house.spark.conf.unset("spark.sql.parser.escapedStringLiterals")


def refreshed(house: Project, model: str, *changes: str, strategies: Sequence[str] = ()) -> NodeResult:
    """What became of the MV, whose rows are those of its query afterwards."""
    for change in changes:
        house.sql(change)
    with pytest.MonkeyPatch.context() as patch:
        if strategies:
            patch.setattr(choose, "STRATEGIES", {name: STRATEGIES[name] for name in strategies})
        result = house.run(model)
    assert result.ok, messages(result)
    assert house.bag(f"SELECT * FROM lake.mart.{model}__storage") == house.bag(QUERIES[model].replace("raw.", "lake.raw."))
    return of(result, model)


# --- settings of the session -----------------------------------------------------------------------------------------------------------


def test_another_time_zone_makes_one_refresh_full(house: Project) -> None:
    house.spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    assert house.codes("days") == []
    done = refreshed(house, "days", "DELETE FROM lake.raw.events WHERE id = 1")
    assert (done.details["strategy"], done.details["reason"]) == ("full", "session-changed")
    assert "UTC then, Asia/Tokyo now" in done.details["reason_message"]
    again = refreshed(house, "days", "INSERT INTO lake.raw.events VALUES (3, TIMESTAMP'2026-01-02 23:30:00Z')")
    assert again.details["strategy"] == "merge"
    house.spark.conf.set("spark.sql.session.timeZone", "UTC")
    back = refreshed(house, "days", "INSERT INTO lake.raw.events VALUES (4, TIMESTAMP'2026-01-02 23:30:00Z')")
    assert back.details["reason"] == "session-changed"


def test_settings_are_those_that_change_what_sql_means(house: Project) -> None:
    from mvbuild.adapters.spark.engine import SparkEngine

    engine, conf = SparkEngine(house.spark, own=False), house.spark.conf
    before = dict(engine.settings())
    assert before["spark.sql.session.timeZone"] == "UTC"
    assert before["spark.sql.ansi.enabled"] == "true"
    conf.set("spark.sql.shuffle.partitions", "3")
    assert engine.settings() == before
    for key, value in {"spark.sql.legacy.sizeOfNull": "true", "spark.sql.parser.escapedStringLiterals": "true"}.items():
        conf.set(key, value)
        assert engine.settings() == {**before, key: value}
        conf.unset(key)
    conf.set("spark.sql.shuffle.partitions", "2")


def test_without_ansi_a_sum_that_is_too_large_does_not_become_zero(house: Project) -> None:
    house.spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        # two of the largest: in whatever order Spark adds the rows, 7 less is still too large
        refreshed(house, "totals", f"INSERT INTO lake.raw.amounts VALUES (1, {'9' * 38}), (1, {'9' * 38})")
        assert house.bag("SELECT total FROM lake.mart.totals__storage") == {"(None,)": 1}
        done = refreshed(house, "totals", "INSERT INTO lake.raw.amounts VALUES (1, -7)")
        assert (done.details["strategy"], done.details["reason"]) == ("full", "not-mergeable")
        assert "with ANSI off" in done.details["reason_message"]
    finally:
        house.spark.conf.set("spark.sql.ansi.enabled", "true")


# --- bounds made of data ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 250])
@pytest.mark.parametrize("key", STRANGE)
def test_no_text_is_read_as_another(house: Project, monkeypatch: pytest.MonkeyPatch, key: str, rows: int) -> None:
    monkeypatch.setattr(inputs, "LITTLE", 0)
    if key == "a backslash":
        house.spark.conf.set("spark.sql.parser.escapedStringLiterals", "true")
        refreshed(house, "joined", "INSERT INTO lake.raw.named VALUES ('zz', 2)")
    done = refreshed(house, "joined", f"INSERT INTO lake.raw.named SELECT {STRANGE[key]}, 7 FROM range({rows})")
    assert done.details["strategy"] == "append"
    if key == "a backslash":
        house.spark.conf.unset("spark.sql.parser.escapedStringLiterals")
        refreshed(house, "joined", "INSERT INTO lake.raw.named VALUES ('zz', 2)")


def test_iceberg_gets_bounds_that_are_written_as_bytes(house: Project) -> None:
    sql = "SELECT n FROM lake.raw.partners WHERE s BETWEEN CAST(X'5AC3BC' AS STRING) AND CAST(X'5AC3BD' AS STRING)"
    plan = house.sql(f"EXPLAIN {sql}")[0][0]
    assert "filters=s IS NOT NULL, s >= 'Zü', s <= 'Zý'" in plan
    plan = house.sql("EXPLAIN SELECT n FROM lake.raw.partners WHERE s IN (CAST(X'5AC3BC' AS STRING), CAST('a' AS STRING))")[0][0]
    assert "s IN (" in plan.partition("filters=")[2]


# --- floats that are equal, and not the same -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"), [("-0.0D", "-0.0"), ("0.0D", "0.0"), ("double('NaN')", "NaN"), ("-1.7976931348623157E308D", "-1.79")]
)
def test_a_zero_that_changes_its_sign_is_another(house: Project, value: str, text: str) -> None:
    done = refreshed(house, "texts", f"UPDATE lake.raw.weights SET x = {value} WHERE id = 1", strategies=["bag"])
    assert done.details["strategy"] == "bag"
    assert any(row[0].startswith(text) for row in house.sql("SELECT s FROM lake.mart.texts__storage WHERE id = 1"))


def test_a_zero_inside_of_a_struct(house: Project) -> None:
    done = refreshed(house, "nested_texts", "UPDATE lake.raw.nested SET s = named_struct('x', -0.0D) WHERE id = 1", strategies=["bag"])
    assert done.details["strategy"] == "bag"


def test_rows_with_floats_that_stay_the_same_cancel_out(house: Project) -> None:
    done = refreshed(house, "texts", "UPDATE lake.raw.weights SET x = x WHERE id > 1", strategies=["bag"])
    assert done.status == "reused"


# --- names that mvbuild uses itself ----------------------------------------------------------------------------------------------------

CHANGES = (
    "UPDATE lake.raw.taken SET mvbuild_copy = 8 WHERE mvbuild_weight = 6",
    "INSERT INTO lake.raw.taken VALUES (1, 2, 3, 4, 5, 0.5D), (0, 0, 0, 0, 0, 2.5D)",
    "DELETE FROM lake.raw.taken WHERE stored_0 = 0",
    "UPDATE lake.raw.taken SET x = x + 1 WHERE came_0 = 4",
)


@pytest.mark.parametrize("change", CHANGES)
def test_columns_may_have_the_names_that_statements_use(house: Project, change: str) -> None:
    house.sql(change)
    for model, strategy in (("of_taken", "bag"), ("by_taken", "affected-keys")):
        done = refreshed(house, model, strategies=[strategy])
        assert done.details["strategy"] in (strategy, "no-change"), done.details


def test_another_engine_compacts_a_storage_and_expires_its_snapshots(project: MakeProject) -> None:
    """The snapshot of the refresh is gone, with its summary. Nothing has to be computed again, and the next change is followed."""
    queries = {
        "day": "SELECT id, ts FROM raw.events WHERE ts < current_date()",
        "zone": "SELECT CAST(ts AS DATE) AS d, count(*) AS n FROM raw.events GROUP BY CAST(ts AS DATE)",
        "plain": "SELECT id FROM raw.events",
    }
    models = {f"models/{name}.sql": sql + "\n" for name, sql in queries.items()}
    house = project({"mvbuild.yml": "name: house\nmodels: {+refresh_policy: incremental}\n", **models})
    house.sql("CREATE NAMESPACE IF NOT EXISTS lake.raw")
    house.sql(f"CREATE TABLE lake.raw.events (id INT, ts TIMESTAMP) USING iceberg TBLPROPERTIES ({MODES})")
    for row in ("(1, TIMESTAMP'2026-01-01 10:00:00')", "(2, TIMESTAMP'2026-01-02 10:00:00')"):
        house.sql(f"INSERT INTO lake.raw.events VALUES {row}")
        assert set(house.statuses().values()) == {"success"}
    for name in queries:
        house.sql(f"CALL lake.system.rewrite_data_files(table => 'main.{name}__storage', options => map('rewrite-all', 'true'))")
        house.sql(
            f"CALL lake.system.expire_snapshots(table => 'main.{name}__storage', older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1)"
        )
    assert house.statuses() == dict.fromkeys(queries, "reused")
    house.sql("DELETE FROM lake.raw.events WHERE id = 1")
    result = house.run()
    assert all(of(result, name).details["strategy"] != "full" for name in queries), messages(result)
    for name, sql in queries.items():
        assert sorted(map(str, house.sql(f"SELECT * FROM lake.main.{name}"))) == sorted(
            map(str, house.sql(sql.replace("raw.", "lake.raw.")))
        )
