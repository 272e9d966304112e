"""What becomes of MVs with auxiliary views when definitions, tables, settings and names change around them: their rows stay those of the query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from mvbuild import api
from mvbuild.refresh.result import Event, NodeResult, Started
from spark.projects import messages
from spark.refresh_histories import as_if_large
from spark.shop import MakeProject

pytestmark = pytest.mark.proof

NEWEST = "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY id ORDER BY at DESC) AS age FROM raw.customers) WHERE age = 1"
OF_NEWEST = f"SELECT country, sum(id) / count(*) AS mean FROM ({NEWEST}) GROUP BY country"
RATIO = "SELECT k, sum(v) / count(*) AS mean FROM raw.sales GROUP BY k"
LARGE = "CAST('90000000000000000000000000000000000000' AS DECIMAL(38, 0))"
PRODUCT = f"SELECT s.id, c.at * s.v AS x FROM ({NEWEST}) AS c JOIN raw.sales AS s ON s.k = c.id"


@pytest.fixture(scope="module", autouse=True)
def large() -> Iterator[None]:
    with as_if_large():
        yield


class House:
    """A project of MVs with auxiliary views over raw.sales and raw.customers."""

    def __init__(self, make: MakeProject, queries: Mapping[str, str], more: str = "") -> None:
        self.queries = dict(queries)
        self.project = make({})
        self.setting(more=more)
        for name, sql in self.queries.items():
            self.define(name, sql)
        self.sql("CREATE NAMESPACE IF NOT EXISTS lake.raw")
        self.sql(
            "CREATE TABLE lake.raw.sales (id BIGINT, k INT, v DECIMAL(10, 2)) USING iceberg TBLPROPERTIES ('write.delete.mode'='merge-on-read')"
        )
        self.sql("CREATE TABLE lake.raw.customers (id INT, at INT, country STRING) USING iceberg")
        self.sql("INSERT INTO lake.raw.sales SELECT id, CAST(id % 5 AS INT), CAST(id AS DECIMAL(10, 2)) FROM range(1, 41)")
        self.sql("INSERT INTO lake.raw.customers VALUES (0, 1, 'DE'), (1, 1, 'FR'), (1, 2, 'IT'), (2, 1, 'DE'), (3, 1, 'FR'), (4, 1, 'US')")

    def sql(self, text: str) -> list[Any]:
        return self.project.sql(text)

    def setting(self, auxiliary: str = "always", more: str = "") -> None:
        text = f"name: aux\nmodels: {{+refresh_policy: incremental, +auxiliary_views: {auxiliary}, +namespace: mart{more}}}\n"
        self.project.write({"mvbuild.yml": text})

    def define(self, name: str, sql: str) -> None:
        self.queries[name] = sql
        self.project.write({f"models/{name}.sql": sql + "\n"})

    def remove(self, name: str) -> None:
        del self.queries[name]
        (self.project.root / "models" / f"{name}.sql").unlink()

    def run(self, **options: Any) -> dict[str, tuple[str | None, str | None]]:
        result = self.project.run(**options)
        assert result.ok, messages(result)
        self.check()
        return {one.node.rpartition(".")[2]: self.how(one) for one in result.results}

    @staticmethod
    def how(one: NodeResult) -> tuple[str | None, str | None]:
        return one.details.get("strategy"), one.details.get("reason")

    def check(self) -> None:
        for name, sql in self.queries.items():
            full = sql.replace("raw.", "lake.raw.").replace("{{ ref('", "lake.mart.").replace("') }}", "__storage")
            assert self.stored(name) == self.project.bag(full), name
        self.project.assert_tidy()

    def stored(self, name: str) -> Any:
        return self.project.bag(f"SELECT * FROM lake.mart.{name}__storage")

    def views(self) -> set[str]:
        return {found[1] for found in self.project.catalog.list_tables("mart") if "__auxiliary_" in found[1]}


CHANGES = (
    "INSERT INTO lake.raw.sales VALUES (100, 1, 7.00), (101, 9, 1.00)",
    "DELETE FROM lake.raw.sales WHERE id IN (3, 101) OR k = 4",
    "INSERT INTO lake.raw.customers VALUES (1, 3, 'DE')",
    "DELETE FROM lake.raw.customers WHERE id = 2",
    "UPDATE lake.raw.sales SET v = NULL WHERE k = 3",
)


def test_a_definition_with_fewer_views_leaves_none_behind(project: MakeProject) -> None:
    house = House(project, {"one": OF_NEWEST})
    house.run()
    assert house.views() == {"one__auxiliary_1", "one__auxiliary_2"}
    house.define("one", RATIO)
    house.sql(CHANGES[0])
    house.run()
    house.sql(CHANGES[2])
    house.define("one", OF_NEWEST)
    house.run()
    house.sql(CHANGES[3])
    assert house.run()["one"][0] != "full"
    house.define("one", RATIO)
    house.run()
    api.drop(house.project.root, "one")
    assert house.views() == set()


def test_history_says_what_was_done(project: MakeProject) -> None:
    house = House(project, {"ratio": RATIO, "newest": OF_NEWEST})
    house.run()
    for change in CHANGES:
        house.sql(change)
        for name, (strategy, _) in house.run().items():
            summary = house.project.catalog.load_table(f"mart.{name}__storage").current_snapshot().summary
            assert strategy in (None, summary["mvbuild.strategy"]), (change, name)


def test_a_view_over_a_view_follows_it_into_other_columns(project: MakeProject) -> None:
    house = House(project, {"one": OF_NEWEST})
    for query in (OF_NEWEST, RATIO, OF_NEWEST):
        house.define("one", query)
        house.run()
    house.sql(CHANGES[2])
    (found,) = house.project.run().results
    assert "full" not in {view["strategy"] for view in found.details["auxiliary_views"]}
    house.check()


def test_a_full_refresh_that_was_requested_doubts_the_views(project: MakeProject) -> None:
    house = House(project, {"one": RATIO, "newest": OF_NEWEST})
    house.run()
    house.sql(CHANGES[0])
    assert {strategy for strategy, _ in house.run(full_refresh=True).values()} == {"full"}
    house.sql(CHANGES[1])
    (one, other) = house.project.run().results
    assert "full" not in {view["strategy"] for found in (one, other) for view in found.details.get("auxiliary_views", ())}
    assert {strategy for strategy, _ in house.run(full_refresh=True).values()} == {"full"}
    house.sql(CHANGES[0])
    house.sql(CHANGES[2])
    result = house.project.run()
    assert result.ok, messages(result)
    house.check()
    views = [view for one in result.results for view in one.details["auxiliary_views"]]
    assert {(view["strategy"], view["reason"]) for view in views} == {("full", "forced")}
    house.sql(CHANGES[4])
    house.sql(CHANGES[3])
    assert "full" not in {strategy for strategy, _ in house.run().values()}


def test_a_compacted_table_and_another_text_in_one_run(project: MakeProject) -> None:
    house = House(project, {"one": RATIO})
    house.run()
    house.sql(CHANGES[0])
    house.run()
    house.sql("CALL lake.system.rewrite_data_files(table => 'raw.sales', options => map('rewrite-all', 'true'))")
    house.define("one", RATIO.replace(", ", ",   "))
    assert house.run() == {"one": (None, None)}
    house.sql(CHANGES[1])
    assert house.run()["one"][0] == "bag"


def test_a_view_whose_files_are_gone_is_computed_again(project: MakeProject) -> None:
    house = House(project, {"one": RATIO})
    house.run()
    for task in house.project.catalog.load_table("mart.one__auxiliary_1").scan().plan_files():
        Path(task.file.file_path.removeprefix("file://").removeprefix("file:")).unlink()
    house.project.spark.catalog.clearCache()
    found = []
    for change in (CHANGES[1], CHANGES[0], CHANGES[4]):
        house.sql(change)
        found.append(house.run()["one"])
    assert found[0] == ("full", "incremental-failed")
    assert found[2][0] == "bag"


def test_a_view_that_was_compacted_and_expired_elsewhere(project: MakeProject) -> None:
    """Its change is unknown. The MV is computed from it once, whatever its policy is."""
    house = House(project, {"one": RATIO})
    house.setting(more="")
    house.project.write({"mvbuild.yml": (house.project.root / "mvbuild.yml").read_text().replace("incremental,", "incremental_strict,", 1)})
    house.run()
    name = "mart.one__auxiliary_1"
    house.sql(f"CALL lake.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))")
    house.sql(f"CALL lake.system.expire_snapshots(table => '{name}', older_than => now(), retain_last => 1)")
    house.sql(CHANGES[1])
    assert house.run()["one"] == ("full", "auxiliary-views-built")
    house.sql(CHANGES[0])
    assert house.run()["one"][0] == "bag"


def test_unused_views_are_dropped_when_they_are_old(project: MakeProject) -> None:
    house = House(project, {"one": OF_NEWEST, "two": RATIO})
    house.run()
    house.define("one", RATIO)
    house.setting("never")
    house.sql(CHANGES[0])
    house.run()
    _, kept, _ = api.maintain(house.project.root, spark=house.project.spark)
    assert [one.dropped_views for one in kept] == [0, 0], "a rollback may need them"
    house.setting("never", ", +maintain: {expire_after: 1ms}")
    _, would, _ = api.maintain(house.project.root, spark=house.project.spark, dry_run=True)
    assert ([one.dropped_views for one in would], len(house.views())) == ([2, 1], 3)
    _, done, _ = api.maintain(house.project.root, spark=house.project.spark)
    assert ([one.dropped_views for one in done], house.views()) == ([2, 1], set())
    assert api.maintain(house.project.root, spark=house.project.spark)[1][0].dropped_views == 0
    house.check()
    house.setting()
    house.sql(CHANGES[1])
    house.run()
    house.sql(CHANGES[4])
    assert {how for how, _ in house.run().values()} != {"full"}
    api.maintain(house.project.root, spark=house.project.spark)
    assert house.views() == {"one__auxiliary_1", "two__auxiliary_1"}


def test_rows_that_are_the_same_without_views(project: MakeProject) -> None:
    """A refresh without views finds no difference: its rows are not those of the views at the snapshots that the MV names."""
    house = House(project, {"product": PRODUCT, "above": "SELECT * FROM {{ ref('product') }}"})
    house.sql("DELETE FROM lake.raw.sales WHERE k <> 1 OR id > 1")
    house.sql("UPDATE lake.raw.sales SET v = 3")
    house.run()
    house.setting("never")
    house.sql("UPDATE lake.raw.sales SET v = 2")
    house.sql("INSERT INTO lake.raw.customers VALUES (1, 3, 'IT')")
    house.run()
    house.setting("always")
    house.sql("DELETE FROM lake.raw.customers WHERE id = 1 AND at = 3")
    house.run()


def test_columns_of_tables(project: MakeProject) -> None:
    house = House(project, {"ratio": RATIO, "newest": OF_NEWEST, "total": "SELECT sum(v) AS s, count(DISTINCT k) AS n FROM raw.sales"})
    house.run()
    house.sql("ALTER TABLE lake.raw.sales ALTER COLUMN k TYPE BIGINT")
    house.sql("INSERT INTO lake.raw.sales VALUES (200, 5000000000, 1.5)")
    house.run()
    house.sql("ALTER TABLE lake.raw.sales ALTER COLUMN v TYPE DECIMAL(20, 2)")
    house.sql("INSERT INTO lake.raw.sales VALUES (201, 1, 12345678901.5)")
    house.run()
    house.sql("ALTER TABLE lake.raw.sales RENAME COLUMN v TO w")
    house.sql("ALTER TABLE lake.raw.sales ADD COLUMN v DECIMAL(20, 2)")
    house.sql("INSERT INTO lake.raw.sales (id, k, v) VALUES (202, 1, 3.5)")
    house.run()
    house.sql("ALTER TABLE lake.raw.sales DROP COLUMN v")
    house.sql("ALTER TABLE lake.raw.sales ADD COLUMN v DECIMAL(20, 2)")
    house.run()
    house.sql("UPDATE lake.raw.sales SET v = w WHERE k IN (1, 2)")
    house.run()
    house.sql("ALTER TABLE lake.raw.customers DROP COLUMN country")
    house.sql("ALTER TABLE lake.raw.customers RENAME COLUMN at TO country")
    house.sql("ALTER TABLE lake.raw.customers ADD COLUMN at STRING")
    house.sql("INSERT INTO lake.raw.customers (id, at, country) VALUES (1, 'b', 7), (2, 'a', 7)")
    house.run()
    house.sql("DELETE FROM lake.raw.customers WHERE id = 1")
    assert house.run()["newest"][0] != "full"


def test_rollbacks(project: MakeProject) -> None:
    house = House(project, {"ratio": RATIO, "newest": OF_NEWEST, "product": PRODUCT})
    house.run()
    before = house.project.table("raw.sales").metadata.current_snapshot_id
    for change in CHANGES[:3]:
        house.sql(change)
    house.run()
    house.sql(f"CALL lake.system.set_current_snapshot('raw.sales', {before})")
    house.run()
    for name in house.queries:
        api.rollback(house.project.root, name, api.history(house.project.root, name)[1][0].refresh_id)
    house.run()
    house.sql(CHANGES[3])
    found = house.run()
    assert all(strategy != "full" for strategy, _ in found.values()), found
    for name in house.queries:
        api.rollback(house.project.root, name, api.history(house.project.root, name)[1][-2].refresh_id)
    house.sql(CHANGES[4])
    house.run()


def test_names_and_formats(project: MakeProject) -> None:
    house = House(project, {"ratio": RATIO, "newest": OF_NEWEST})
    house.run()
    house.remove("newest")
    house.define("latest", OF_NEWEST)
    house.project.write({"models/latest.yml": "models: [{name: latest, config: {previous_name: newest}}]\n"})
    house.sql(CHANGES[2])
    house.run()
    assert house.views() == {"ratio__auxiliary_1", "latest__auxiliary_1", "latest__auxiliary_2"}
    house.sql(CHANGES[3])
    assert house.run()["latest"][0] != "full"
    for to in ("metadata-file", "table-properties"):
        result = api.migrate(house.project.root, to=to)
        assert result.ok, messages(result)
        house.sql(CHANGES[0])
        result = house.project.run()
        assert result.ok, messages(result)
        assert {one.status for one in api.verify(house.project.root, spark=house.project.spark).results} == {"same"}
    house.check()
    house.remove("ratio")
    house.remove("latest")
    (house.project.root / "models/latest.yml").unlink()
    house.run(prune=True)
    assert house.views() == set()
    # Not even the metadata of an earlier format, which no table lists.
    assert [str(file) for file in (house.project.root / ".mvbuild/warehouse/mart").rglob("*") if file.is_file()] == []


def test_settings_of_a_session(project: MakeProject) -> None:
    house = House(
        project,
        {
            "ratio": RATIO,
            "newest": OF_NEWEST,
            "total": "SELECT sum(v) AS s, count(DISTINCT k) AS n, avg(v) AS a FROM raw.sales",
            "large": f"SELECT sum(CASE WHEN id > 900 THEN {LARGE} ELSE CAST(v AS DECIMAL(38, 0)) END) AS s, count(DISTINCT k) AS n FROM raw.sales",
        },
    )
    house.run()
    spark = house.project.spark
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        for key, value in (
            ("spark.sql.ansi.enabled", "false"),
            ("spark.sql.session.timeZone", "Asia/Tokyo"),
            ("spark.sql.ansi.enabled", "true"),
        ):
            spark.conf.set(key, value)
            for change in (CHANGES[0], CHANGES[2], "DELETE FROM lake.raw.sales WHERE id = (SELECT min(id) FROM lake.raw.sales)"):
                house.sql(change)
            house.run()
            house.sql("INSERT INTO lake.raw.sales VALUES (500, 1, 99999999.99), (501, 2, 1)")
            house.run()
            if value == "false":
                # The sum of one group overflows, and is NULL with ANSI off.
                house.sql("INSERT INTO lake.raw.sales VALUES (901, 1, 1), (902, 1, 1)")
                house.run()
                house.sql("DELETE FROM lake.raw.sales WHERE id > 900")
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "true")
        spark.conf.set("spark.sql.session.timeZone", zone)


@pytest.mark.parametrize("options", [{"atomic": True}, {"full_refresh": True}], ids=str)
def test_other_runs(project: MakeProject, options: Mapping[str, Any]) -> None:
    house = House(project, {"ratio": RATIO, "newest": OF_NEWEST, "over": "SELECT sum(mean) / count(*) AS m FROM {{ ref('ratio') }}"})
    house.run(**options)
    for change in CHANGES:
        house.sql(change)
        house.run(**options)
        if change in CHANGES[1::2]:
            house.sql("INSERT INTO lake.raw.sales VALUES (600, 2, 1.00)")
            house.run()


@pytest.mark.parametrize("change", ["DELETE FROM {view} WHERE {k} = 1", "UPDATE {view} SET {k} = 77 WHERE {k} = 2", "DROP TABLE {view}"])
def test_a_view_that_changes_between_planning_and_writing(project: MakeProject, change: str) -> None:
    house = House(project, {"ratio": RATIO})
    house.run()
    house.sql(CHANGES[0])
    changed: list[Event] = []

    def act(event: Event) -> None:
        if isinstance(event, Started) and not changed:
            changed.append(event)
            view = "lake.mart.ratio__auxiliary_1"
            house.sql(change.format(view=view, k=house.project.spark.table(view).columns[0]))

    house.run(on_event=act)
    assert changed
    house.sql(CHANGES[1])
    house.run()


def test_another_run_between_planning_and_writing(project: MakeProject) -> None:
    """The view has the change already, and must not get it twice. Only the pointer of the view shows that."""
    house = House(project, {"ratio": RATIO})
    house.run()
    house.sql(CHANGES[0])
    storage, changed = house.project.table("mart.ratio__storage"), []

    def act(event: Event) -> None:
        if isinstance(event, Started) and not changed:
            changed.append(event)
            house.run()
            # As if the other run had been killed after its first commit.
            with house.project.table("mart.ratio__storage").manage_snapshots() as snapshots:
                snapshots.rollback_to_snapshot(storage.current_snapshot().snapshot_id)

    house.project.run(on_event=act)
    assert changed
    house.run()


def test_a_window_of_staleness(project: MakeProject) -> None:
    house = House(project, {"ratio": RATIO, "newest": OF_NEWEST})
    house.run()
    house.setting(more=", +freshness: {max_staleness: 1h}")
    house.sql(CHANGES[0])
    assert house.project.run().ok
    house.sql(CHANGES[2])
    house.setting()
    house.run()
    house.sql(CHANGES[1])
    assert all(strategy != "full" for strategy, _ in house.run().values())


def test_names_that_others_have(project: MakeProject) -> None:
    """Auxiliary views are named after the storage, which no other MV has. A table that mvbuild did not make is not touched, and a warning says so."""
    made = House(project, {}).project
    placed = "{{{{ config(alias='x', namespace='{0}', storage_namespace='mart', storage_table='x_{0}') }}}}\n"
    made.write(
        {
            f"models/{name}.sql": placed.format(name) + RATIO.replace("sum(v)", f"sum({of})") + "\n"
            for name, of in (("one", "v"), ("two", "id"))
        }
    )
    for change in (None, *CHANGES[:2]):
        if change:
            made.sql(change)
        result = made.run()
        assert result.ok, messages(result)
    assert {one.details.get("strategy") for one in result.results} == {"bag"}
    assert result.diagnostics == ()
    assert {found[1] for found in made.catalog.list_tables("mart")} == {
        f"x_{of}{end}" for of in ("one", "two") for end in ("", "__auxiliary_1")
    }
    made.sql("DROP TABLE lake.mart.x_one__auxiliary_1 PURGE")
    made.sql("CREATE TABLE lake.mart.x_one__auxiliary_1 (id INT) USING iceberg")
    made.sql(CHANGES[4])
    result = made.run()
    assert result.ok, messages(result)
    (warned,) = result.diagnostics
    assert warned.code == "not-incremental"
    assert "auxiliary-name-taken" in warned.message
    assert made.bag("SELECT * FROM lake.mart.x_one") == made.bag(RATIO.replace("raw.", "lake.raw."))
