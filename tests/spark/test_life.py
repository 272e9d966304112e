"""The life of MVs after their first refresh: renamed, maintained while others read, dropped."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from mvbuild import api
from mvbuild.adapters import open_catalog
from mvbuild.diagnostics import ProjectError
from mvbuild.lifecycle.maintain import Maintained
from mvbuild.ports.commits import TableCommit
from spark.projects import NoSpark, Project, messages, order, orders, properties
from spark.shop import DAILY, MORE, MakeProject, shop

pytestmark = pytest.mark.proof

PROPERTIES = {"mvbuild.yml": "name: shop\nmodels: {marts: {+namespace: mart}}\n"}
FILE = {"mvbuild.yml": "name: shop\nmodels: {marts: {+namespace: mart, +storage: {format: metadata-file}}}\n"}
FORMATS = pytest.mark.parametrize("files", [PROPERTIES, FILE], ids=["table-properties", "metadata-file"])
SMALL = {
    # A task per customer writes a file of its own.
    "models/marts/wide.sql": "SELECT /*+ REPARTITION(8, order_id) */ order_id, customer_id, amount FROM raw.orders\n",
    "models/marts/wide.yml": "models:\n  - name: wide\n    config:\n      table_properties: {write.distribution-mode: none}\n",
    "models/marts/sums.sql": "SELECT customer_id, sum(amount) AS amount FROM {{ ref('wide') }} GROUP BY customer_id\n",
}
ROWS = orders(*((i, i % 5, "2026-01-05", f"{i}.00") for i in range(1, 201)))


def small(make: MakeProject, files: dict[str, str]) -> Project:
    project = make({**files, **SMALL, "models/marts/sums.yml": "models: [{name: sums}]\n"})
    project.make("raw.orders", ROWS)
    result = project.run()
    assert result.ok, messages(result)
    return project


def tree(project: Project) -> set[str]:
    home = project.root / ".mvbuild" / "warehouse"
    return {str(p.relative_to(home)) for p in home.rglob("*") if p.is_file()}


def entries(project: Project) -> set[str]:
    with closing(sqlite3.connect(project.root / ".mvbuild" / "catalog.db")) as db:
        return {f"{ns}.{name}" for ns, name in db.execute("SELECT table_namespace, table_name FROM iceberg_tables")}


def keep_up(project: Project, **options: object) -> dict[str, Maintained]:
    _, done, _ = api.maintain(project.root, spark=project.spark, **options)  # type: ignore[arg-type]
    assert [d.message for one in done for d in one.diagnostics] == []
    return {one.node.rpartition(".")[2]: one for one in done}


def states(project: Project) -> set[str]:
    _, answers = api.status(project.root)
    return {f.state for f in answers.values()}


def data_files(project: Project, model: str) -> int:
    world, _ = api.status(project.root)
    table = world.observed.table(world.graph.model(f"model.shop.{model}").storage)
    assert table is not None
    assert table.current_snapshot is not None
    return int(table.current_snapshot.summary["total-data-files"])


# --- maintain --------------------------------------------------------------------------------------------------------------------


@FORMATS
def test_compaction_keeps_rows_and_freshness(project: MakeProject, files: dict[str, str]) -> None:
    made = small(project, files)
    before, rows = data_files(made, "wide"), made.bag("SELECT * FROM lake.mart.wide")
    assert before > 1
    done = keep_up(made)
    assert done["wide"].compaction is not None
    assert (done["wide"].compaction.before, done["wide"].compaction.after) == (before, 1)
    assert data_files(made, "wide") == 1
    assert states(made) == {"fresh"}
    assert made.only_reused()
    assert made.bag("SELECT * FROM lake.mart.wide") == rows
    again = api.maintain(made.root, spark=NoSpark())[1]
    assert all(one.compaction is None and not one.diagnostics for one in again)
    made.append("raw.orders", order(300, 1, "2026-01-06", "1.00"))
    result = made.run()
    assert result.ok, messages(result)
    assert states(made) == {"fresh"}
    made.assert_tidy()


@FORMATS
def test_expired_files_go_and_freshness_stays(project: MakeProject, files: dict[str, str]) -> None:
    made = small(project, files)
    for model in ("wide", "sums"):
        made.write({f"models/marts/{model}.yml": f"models:\n  - name: {model}\n    config: {{maintain: {{expire_after: 1s}}}}\n"})
    for number in range(2):
        made.append("raw.orders", order(400 + number, 1, "2026-01-06", "1.00"))
        assert made.run().ok
    keep_up(made)
    assert made.only_reused()
    time.sleep(1.2)
    before = tree(made)
    done = keep_up(made)
    assert done["wide"].snapshots > 0
    assert done["wide"].expired_files > 0
    gone = before - tree(made)
    assert gone
    assert not any("raw" in Path(f).parts for f in gone)
    assert states(made) == {"fresh"}
    assert made.only_reused()
    rows = "SELECT count(*), sum(amount) FROM "
    assert made.bag(f"{rows} lake.mart.wide") == made.bag(f"{rows} lake.raw.orders")
    made.append("raw.orders", order(500, 1, "2026-01-06", "1.00"))
    assert made.run().ok
    assert states(made) == {"fresh"}


def test_a_running_reader_finishes(project: MakeProject) -> None:
    made = small(project, PROPERTIES)
    storage = "lake.mart.wide__storage"
    expected = made.bag(f"SELECT * FROM {storage}")
    analyzed = made.spark.sql(f"SELECT * FROM {storage}")
    assert analyzed.schema, "it is analyzed now, and collected afterwards"
    running = made.spark.sql(f"SELECT * FROM {storage}").toLocalIterator()
    first = next(running)
    seen: list[object] = []
    failures: list[BaseException] = []
    stop, started = threading.Event(), threading.Event()

    def read() -> None:
        try:
            while not stop.is_set():
                seen.append(made.bag(f"SELECT * FROM {storage}"))
                started.set()
        except BaseException as exc:  # noqa: BLE001  reported in the test's own thread
            failures.append(exc)
            started.set()

    thread = threading.Thread(target=read)
    thread.start()
    try:
        started.wait(60)
        done = keep_up(made)
    finally:
        stop.set()
        thread.join()
    assert failures == []
    assert done["wide"].compaction is not None
    assert all(bag == expected for bag in seen)
    assert sum(1 for _ in running) + 1 == ROWS.num_rows
    assert first is not None
    assert len(analyzed.collect()) == ROWS.num_rows


def test_orphans_go_and_what_is_read_stays(project: MakeProject) -> None:
    made = small(project, PROPERTIES)
    data = next((made.root / ".mvbuild" / "warehouse").rglob("wide__storage/data"))
    old, young = data / "old.parquet", data / "young.parquet"
    for file in (old, young):
        file.write_bytes(b"x")
    os.utime(old, (time.time() - 4 * 86400,) * 2)
    before = tree(made)
    assert keep_up(made, dry_run=True)["wide"].orphans == 1
    assert tree(made) == before
    assert keep_up(made)["wide"].orphans == 1
    assert not old.exists()
    assert young.exists()
    assert states(made) == {"fresh"}


# --- drop and prune --------------------------------------------------------------------------------------------------------------


@FORMATS
def test_prune_drops_view_storage_and_files_and_nothing_else(project: MakeProject, files: dict[str, str]) -> None:
    made = shop(project, {**files, **MORE})
    assert made.run().ok
    countries = made.root / "models/marts/countries.sql"
    kept_text = countries.read_text()
    countries.unlink()
    without = (tree(made), entries(made))
    (item,) = api.plan(made.root).removed
    assert str(item.identifier) == "lake.mart.countries"
    assert made.run().ok
    assert (tree(made), entries(made)) == without, "a run without --prune drops nothing"
    result = made.run(prune=True, spark=NoSpark())
    assert result.ok
    assert {i.dotted for i in result.dropped} >= {"mart.countries"}
    gone = without[0] - tree(made)
    assert {Path(f).parts[1] for f in gone} <= {"countries", "countries__storage"}
    assert not [f for f in tree(made) if "countries" in f]
    assert not any("countries" in str(p) for p in (made.root / ".mvbuild" / "warehouse").rglob("*"))
    assert tree(made) < without[0]
    assert without[1] - entries(made) <= {"mart.countries", "mart.countries__storage"}
    assert made.bag("SELECT order_date, country, revenue, orders FROM lake.mart.revenue_daily") == made.bag(DAILY)
    assert made.only_reused()
    made.write({"models/marts/countries.sql": kept_text})
    assert made.refreshed() == {"countries"}


def test_a_view_that_an_mv_reads_is_not_dropped(project: MakeProject) -> None:
    made = shop(project, MORE)
    assert made.run().ok
    before = tree(made), entries(made)
    with pytest.raises(ProjectError) as caught:
        api.drop(made.root, "active_customers")
    (told,) = caught.value.diagnostics
    assert told.code == "has-dependents"
    assert "lake.mart.revenue_daily" in told.message
    done = made.command("drop", "revenue_daily", "--yes")
    assert done.returncode == 1
    assert "lake.mart.revenue_total" in done.stderr
    assert (tree(made), entries(made)) == before
    assert made.command("drop", "revenue_total").returncode == 2
    done = made.command("drop", "revenue_total", "--yes")
    assert done.returncode == 0, done.stderr
    assert before[1] - entries(made) == {"mart.revenue_total", "mart.revenue_total__storage"}


def test_prune_keeps_what_a_view_of_spark_reads(project: MakeProject) -> None:
    made = shop(project, MORE)
    assert made.run().ok
    made.sql("CREATE VIEW lake.raw.report AS SELECT * FROM lake.mart.countries")
    (made.root / "models/marts/countries.sql").unlink()
    before = tree(made), entries(made)
    result = made.run(prune=True)
    assert not result.ok
    assert [d.code for d in result.diagnostics] == ["has-dependents"]
    assert "lake.raw.report" in result.diagnostics[0].message
    assert (tree(made), entries(made)) == before
    made.sql("DROP VIEW lake.raw.report")
    assert made.run(prune=True).ok
    assert "mart.countries" not in entries(made)


# --- renames ---------------------------------------------------------------------------------------------------------------------


@FORMATS
def test_a_rename_keeps_the_storage_and_rebuilds_nothing(project: MakeProject, files: dict[str, str]) -> None:
    made = shop(project, {**files, **MORE})
    assert made.run().ok
    world, _ = api.status(made.root)
    before = world.observed.table(world.graph.model("model.shop.revenue_daily").storage)
    assert before is not None
    rows = made.bag("SELECT * FROM lake.mart.revenue_total")
    marts = made.root / "models/marts"
    (marts / "revenue_daily.sql").rename(marts / "revenue_by_day.sql")
    text = (marts / "revenue_daily.yml").read_text()
    (marts / "revenue_daily.yml").unlink()
    made.write(
        {
            "models/marts/revenue_by_day.yml": text.replace("name: revenue_daily", "name: revenue_by_day").replace(
                "    config:\n", "    config:\n      previous_name: revenue_daily\n"
            ),
            "models/marts/revenue_total.sql": MORE["models/marts/revenue_total.sql"].replace("revenue_daily", "revenue_by_day"),
        }
    )
    assert made.command("plan").stdout.startswith("rename  lake.mart.revenue_daily -> lake.mart.revenue_by_day")
    result = made.run(spark=NoSpark())
    assert result.ok, messages(result)
    assert {r.status for r in result.results} == {"reused"}
    world, answers = api.status(made.root)
    after = world.observed.table(world.graph.model("model.shop.revenue_by_day").storage)
    assert after is not None
    assert (after.uuid, after.current_snapshot_id, set(after.snapshots)) == (before.uuid, before.current_snapshot_id, set(before.snapshots))
    assert {f.state for f in answers.values()} == {"fresh"}
    assert made.bag("SELECT * FROM lake.mart.revenue_total") == rows
    assert made.bag("SELECT order_date, country, revenue, orders FROM lake.mart.revenue_by_day") == made.bag(DAILY)
    assert not [n for n in entries(made) if "revenue_daily" in n]
    assert made.only_reused()
    made.append("raw.orders", order(9, 1, "2026-03-01", "4.00"))
    assert made.refreshed() >= {"revenue_by_day", "revenue_total"}
    assert api.plan(made.root).removed == ()


# --- table properties -----------------------------------------------------------------------------------------------------------


@FORMATS
@pytest.mark.parametrize("mended", ["{commit.retry.num-retries: 3}", "{}"], ids=["another value", "removed"])
def test_a_property_that_fails_every_write_is_mended_in_yaml(project: MakeProject, files: dict[str, str], mended: str) -> None:
    made = small(project, files)
    config = "models:\n  - name: sums\n    config: {table_properties: %s}\n"
    made.write({"models/marts/sums.yml": config % "{commit.retry.num-retries: 2}"})
    assert made.run().ok
    _spoil(made, "sums", {"commit.retry.num-retries": "x"})
    made.write({"models/marts/sums.yml": config % mended})
    made.append("raw.orders", order(600, 1, "2026-01-06", "1.00"))
    result = made.run()
    assert result.ok, messages(result)
    assert made.only_reused()
    assert states(made) == {"fresh"}
    made.assert_tidy()


def _spoil(project: Project, model: str, values: dict[str, str]) -> None:
    world, _ = api.status(project.root)
    found = world.observed.table(world.graph.model(f"model.shop.{model}").storage)
    assert found is not None
    commit = TableCommit(
        identifier=found.of_view or found.identifier,
        of_view=found.of_view,
        expect_uuid=found.uuid,
        expect_snapshot_id=found.current_snapshot_id,
        set_properties=values,
    )
    catalog = open_catalog("lake", properties(project.root), embedded=True)
    catalog.commit([commit])


def test_small_files_of_different_partitions_are_not_worth_compacting(project: MakeProject) -> None:
    made = project({**PROPERTIES, "models/marts/wide.sql": "SELECT customer_id, order_id FROM raw.orders\n"})
    made.write({"models/marts/wide.yml": "models:\n  - name: wide\n    config: {partition_by: [customer_id]}\n"})
    made.make("raw.orders", ROWS)
    assert made.run().ok
    assert data_files(made, "wide") > 1
    done = keep_up(made)
    assert (done["wide"].compaction, done["wide"].notes) == (None, ["no files were worth compacting"])
    again = api.maintain(made.root, spark=NoSpark(), dry_run=True)[1]
    assert all(one.compaction is None for one in again)
    assert states(made) == {"fresh"}
    assert list((made.root / ".mvbuild" / "warehouse").glob("mvbuild_scratch/*")) == []
