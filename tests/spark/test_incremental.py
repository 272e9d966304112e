"""Each strategy, and each reason against one, on real tables: what is written, what is reported, and that the rows are those of the full
query."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mvbuild import api
from mvbuild.adapters.spark.engine import SparkEngine
from mvbuild.formats import metadata_file
from mvbuild.incremental import choose
from mvbuild.incremental.strategies import STRATEGIES
from mvbuild.refresh.result import Event, NodeResult, Started
from spark.conftest import Lake
from spark.projects import ENVIRONMENT, Project, messages, of
from spark.shop import MakeProject

pytestmark = pytest.mark.proof

COPY_ON_WRITE = "{write.delete.mode: copy-on-write, write.update.mode: copy-on-write, write.merge.mode: copy-on-write}"
QUERIES: Mapping[str, str] = {
    "large": "SELECT id, k, v FROM raw.sales WHERE v > 10",
    "per_k": "SELECT k, count(*) AS n, sum(v) AS total, count(v) AS vs FROM raw.sales GROUP BY k",
    "per_k_in_file": "SELECT k, count(*) AS n, sum(v) AS total, count(v) AS vs FROM raw.sales GROUP BY k",
    "most": "SELECT k, max(v) AS most, count(DISTINCT v) AS vs FROM raw.sales GROUP BY k",
    "daily": "SELECT day, max(v) AS most FROM raw.sales GROUP BY day",
    "named": "SELECT s.id, c.name FROM raw.sales s JOIN raw.customers c ON s.k = c.k",
    "named_in_copies": "SELECT c.name FROM raw.sales s JOIN raw.customers c ON s.k = c.k",
    "ranks": "SELECT k, v, rank() OVER (PARTITION BY k ORDER BY v) AS place FROM raw.sales",
    "sorted": "SELECT k, sum(v) AS total, count(v) AS vs, count(*) AS n FROM raw.sales GROUP BY k ORDER BY total DESC, k",
    "first": "SELECT id, v FROM raw.sales ORDER BY v DESC NULLS LAST, id LIMIT 3",
    "first_totals": "SELECT k, sum(v) AS total FROM raw.sales GROUP BY k ORDER BY total DESC, k LIMIT 2",
    "ends": "SELECT count(*) AS n, min(day) AS first, max(v) AS most, max(name) AS last FROM raw.sales JOIN raw.customers USING (k)",
    "running": "SELECT id, sum(v) OVER (ORDER BY id) AS total FROM raw.sales",
}
CHILDREN: Mapping[str, str] = {
    "totals": "SELECT k, total FROM {{ ref('per_k') }} WHERE total IS NOT NULL",
    "best": "SELECT vs, count(*) AS n FROM {{ ref('most') }} GROUP BY vs",
}
FILES = {
    "mvbuild.yml": "name: inc\nmodels: {+refresh_policy: incremental, +namespace: mart}\n",
    "models/all.yml": f"models:\n  - {{name: daily, config: {{partition_by: ['month(day)'], table_properties: {COPY_ON_WRITE}}}}}\n"
    f"  - {{name: per_k_in_file, config: {{storage: {{format: metadata-file}}, table_properties: {COPY_ON_WRITE}}}}}\n"
    f"  - {{name: named_in_copies, config: {{table_properties: {COPY_ON_WRITE}}}}}\n"
    "  - {name: first_totals, config: {auxiliary_views: never}}\n"
    "  - {name: ends, config: {auxiliary_views: never}}\n",
    **{f"models/{name}.sql": sql + "\n" for name, sql in {**QUERIES, **CHILDREN}.items()},
}
NAMES = (*QUERIES, *CHILDREN)


@pytest.fixture(scope="module")
def house(project: MakeProject) -> Project:
    made = project(FILES)
    made.spark.conf.set("spark.sql.shuffle.partitions", "2")
    made.sql("CREATE NAMESPACE lake.raw")
    modes = ", ".join(f"'write.{of}.mode' = 'merge-on-read'" for of in ("delete", "update", "merge"))
    made.sql(f"CREATE TABLE lake.raw.sales (id INT, k INT, day DATE, v INT) USING iceberg TBLPROPERTIES ('format-version' = '2', {modes})")
    made.sql(f"CREATE TABLE lake.raw.customers (k INT, name STRING) USING iceberg TBLPROPERTIES ('format-version' = '2', {modes})")
    made.sql("INSERT INTO lake.raw.customers VALUES (0, 'Ann'), (1, 'Bob'), (2, 'Cleo'), (NULL, 'Nobody')")
    made.sql(
        "INSERT INTO lake.raw.sales SELECT /*+ REPARTITION(1) */ id, id % 4 AS k, date_add(DATE'2026-01-01', id * 7) AS day, id * 5 % 23 AS v "
        "FROM VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12) AS q (id)"
    )
    result = made.run()
    assert result.ok, messages(result)
    return made


@pytest.fixture
def built(house: Project, lake: Lake) -> Project:
    """The same for all tests: each makes fresh what it is about."""
    return house.write(FILES).over(lake.remote)


def full_sql(name: str) -> str:
    sql = {**QUERIES, **CHILDREN}[name].replace("raw.", "lake.raw.")
    for parent in QUERIES:
        sql = sql.replace(f"{{{{ ref('{parent}') }}}}", f"({QUERIES[parent].replace('raw.', 'lake.raw.')})")
    return sql


def stored(project: Project, name: str) -> str:
    """Its storage, for Spark."""
    if name != "per_k_in_file":
        return f"lake.mart.{name}__storage"
    file = Path(project.view(f"mart.{name}")["properties"][metadata_file.METADATA_LOCATION].removeprefix("file://"))
    project.spark.read.format("iceberg").load(metadata_file.read(file.read_bytes()).storage_metadata_location).createOrReplaceTempView(name)
    return name


def assert_right(project: Project, *names: str) -> None:
    for name in names or NAMES:
        assert project.bag(f"SELECT * FROM {stored(project, name)}") == project.bag(full_sql(name)), name
    project.spark.catalog.dropTempView("per_k_in_file")
    project.assert_tidy()
    assert [t.name for t in project.spark.catalog.listTables() if t.isTemporary] == []


def refreshed(project: Project, model: str, **options: Any) -> NodeResult:
    result = project.run(model, **options)
    assert result.ok, messages(result)
    return of(result, model)


def only(monkeypatch: pytest.MonkeyPatch, strategy: str) -> None:
    """Whatever others would cost."""
    monkeypatch.setattr(choose, "STRATEGIES", {strategy: STRATEGIES[strategy]})


@pytest.mark.parametrize(
    ("strategy", "model", "statement", "added", "removed"),
    [
        ("append", "large", "INSERT INTO lake.raw.sales VALUES (20, 1, DATE'2026-03-01', 50), (21, 1, DATE'2026-03-01', 1)", 1, 0),
        ("merge", "per_k", "INSERT INTO lake.raw.sales VALUES (22, 2, DATE'2026-03-01', 3), (23, 9, DATE'2026-03-01', NULL)", 2, 1),
        ("merge", "per_k", "DELETE FROM lake.raw.sales WHERE k = 9 OR id = 2", 1, 2),
        ("merge", "per_k_in_file", "UPDATE lake.raw.sales SET v = v + 1 WHERE k = 1", 1, 1),
        ("merge", "sorted", "INSERT INTO lake.raw.sales VALUES (24, 2, DATE'2026-03-01', 4)", 1, 1),
        ("min-max", "ends", "DELETE FROM lake.raw.sales WHERE id = 8", 1, 1),
        ("min-max", "ends", "UPDATE lake.raw.sales SET v = 200 + id WHERE v > 20", 1, 1),
        ("affected-keys", "most", "UPDATE lake.raw.sales SET v = 99 WHERE id = 4", 1, 1),
        ("affected-keys", "ranks", "DELETE FROM lake.raw.sales WHERE id = 5", None, None),
        ("partitions", "daily", "UPDATE lake.raw.sales SET v = 77 WHERE day < DATE'2026-01-10'", None, None),
        ("bag", "named", "MERGE INTO lake.raw.customers t USING (SELECT 1 AS k) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET name = 'Bo'", None, None),
        ("top-k", "first", "INSERT INTO lake.raw.sales VALUES (40, 1, DATE'2026-03-01', 1000), (41, 1, DATE'2026-03-01', 0)", 1, 1),
        ("top-k", "first", "UPDATE lake.raw.sales SET v = v + 2000 WHERE id = 3", 1, 1),
        ("top-k", "first_totals", "UPDATE lake.raw.sales SET v = 5000 WHERE id = 7", None, None),
        ("full-diff", "most", "DELETE FROM lake.raw.sales WHERE id = 4", 1, 1),
    ],
    ids=["append", "merge-inserts", "merge-deletes", "merge-metadata-file", "merge-order-by", "min-max-deletes", "min-max-updates", "affected-keys", "affected-keys-window", "partitions", "bag", "top-k-inserts", "top-k-updates", "top-k-of-groups", "full-diff"],
)  # fmt: skip
def test_each_strategy(
    built: Project, monkeypatch: pytest.MonkeyPatch, strategy: str, model: str, statement: str, added: int | None, removed: int | None
) -> None:
    refreshed(built, model)
    built.sql(statement)
    only(monkeypatch, strategy)
    found = refreshed(built, model)
    assert (found.details["strategy"], found.details["reason"]) == (strategy, None), found.message
    if added is not None:
        assert (found.details["rows_added"], found.details["rows_removed"]) == (added, removed)
    assert_right(built, model)


@pytest.mark.parametrize("period", ["day", "month", "year"])
def test_partitions_of_files_without_bounds_are_replaced(built: Project, monkeypatch: pytest.MonkeyPatch, period: str) -> None:
    """Iceberg must see from the partition alone that all rows of an Avro file are replaced."""
    name = f"by_{period}"
    config = f"{{{{ config(partition_by=['{period}(day)'], table_properties={{'write.format.default': 'avro'}}) }}}}"
    built.write({f"models/{name}.sql": f"{config}\n{QUERIES['daily']}\n"})
    refreshed(built, name)
    built.sql("UPDATE lake.raw.sales SET v = v + 1 WHERE day < DATE'2026-01-20'")
    only(monkeypatch, "partitions")
    found = refreshed(built, name)
    (built.root / "models" / f"{name}.sql").unlink()
    assert (found.details["strategy"], found.details["reason"]) == ("partitions", None), found.message
    assert built.bag(f"SELECT * FROM {stored(built, name)}") == built.bag(full_sql("daily"))


@pytest.mark.parametrize("rows", ["few", "many"])
def test_rows_that_follow_the_first_ones_are_read_from_the_base_table(built: Project, monkeypatch: pytest.MonkeyPatch, rows: str) -> None:
    built.sql("INSERT INTO lake.raw.sales VALUES (42, 1, DATE'2026-03-01', 9001), (43, 1, DATE'2026-03-01', 9002)")
    refreshed(built, "first")
    built.sql("DELETE FROM lake.raw.sales WHERE id = 42")
    only(monkeypatch, "top-k")
    if rows == "many":
        monkeypatch.setattr("mvbuild.refresh.incremental.may_be_few", lambda _: False)
        monkeypatch.setattr("mvbuild.refresh.incremental.is_better_fetched", lambda _: False)
    found = refreshed(built, "first")
    assert (found.details["strategy"], found.details["reason"]) == ("full", "first-rows-removed")
    assert_right(built, "first")
    built.sql("DELETE FROM lake.raw.sales WHERE id = 43")
    built.sql("INSERT INTO lake.raw.sales VALUES (42, 1, DATE'2026-03-01', 9003)")
    assert refreshed(built, "first").details["strategy"] == "top-k"
    assert_right(built, "first")


@pytest.mark.parametrize("rows", ["few", "many"])
def test_the_next_extreme_is_read_from_the_base_table(built: Project, monkeypatch: pytest.MonkeyPatch, rows: str) -> None:
    refreshed(built, "ends")
    built.sql("DELETE FROM lake.raw.sales WHERE k < 3 AND v = (SELECT max(v) FROM lake.raw.sales WHERE k < 3)")
    only(monkeypatch, "min-max")
    if rows == "many":
        monkeypatch.setattr("mvbuild.refresh.incremental.may_be_few", lambda _: False)
        monkeypatch.setattr("mvbuild.refresh.incremental.is_better_fetched", lambda _: False)
    found = refreshed(built, "ends")
    assert (found.details["strategy"], found.details["reason"]) == ("full", "extreme-removed")
    assert_right(built, "ends")


@pytest.mark.parametrize(
    ("strategy", "model", "statement"),
    [
        ("merge", "per_k_in_file", "UPDATE lake.raw.sales SET v = v + 1 WHERE k IN (1, 2)"),
        ("affected-keys", "daily", "UPDATE lake.raw.sales SET v = v + 100 WHERE day < DATE'2026-01-10'"),
        ("bag", "named_in_copies", "UPDATE lake.raw.customers SET name = 'Bert' WHERE k = 1"),
    ],
)
def test_copy_on_write_storage_where_spark_cannot_delete_by_position(
    built: Project, monkeypatch: pytest.MonkeyPatch, strategy: str, model: str, statement: str
) -> None:
    """Spark 3.5 and 4.0, on the Spark of this test run."""
    monkeypatch.setattr(SparkEngine, "copies_by_position", False)
    refreshed(built, model)
    built.sql(statement)
    only(monkeypatch, strategy)
    found = refreshed(built, model)
    assert (found.details["strategy"], found.details["reason"]) == (strategy, None), found.message
    assert "REPLACE WHERE true" in (found.sql or "")
    past = api.history(built.root, model)[1][-1]
    assert (past.rows_added, past.rows_removed) == (found.details["rows_added"], found.details["rows_removed"])
    assert 0 < past.rows_removed < sum(built.bag(f"SELECT * FROM {stored(built, model)}").values())
    assert_right(built, model)


def test_a_full_refresh_after_an_incremental_one_removes_the_rows_that_there_were(built: Project) -> None:
    refreshed(built, "per_k")
    built.sql("UPDATE lake.raw.sales SET v = v + 1 WHERE k = 1")
    assert refreshed(built, "per_k").details["strategy"] == "merge"
    (row,) = built.sql("SELECT count(*) AS n FROM lake.mart.per_k__storage")
    assert refreshed(built, "per_k", full_refresh=True).details["rows_removed"] == row.n
    assert api.history(built.root, "per_k")[1][-1].rows_removed == row.n


def test_rows_that_were_only_written_again_are_no_change(built: Project) -> None:
    names = ("large", "per_k", "totals", "most", "named", "ranks")
    built.run(*names)
    snapshots = {name: built.table(f"mart.{name}__storage").metadata.current_snapshot_id for name in names}
    built.sql("UPDATE lake.raw.sales SET v = v WHERE id < 4")
    result = built.run(*names)
    assert result.ok, messages(result)
    for name in names:
        assert of(result, name).status == "reused", name
        assert built.table(f"mart.{name}__storage").metadata.current_snapshot_id == snapshots[name]
    assert_right(built, *names)


def test_a_child_sees_only_the_rows_that_changed(built: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    built.run("per_k", "totals", "most", "best")
    built.sql("UPDATE lake.raw.sales SET v = v + 1 WHERE id = 1")
    result = built.run("per_k", "totals")
    assert result.ok, messages(result)
    assert (of(result, "per_k").details["rows_added"], of(result, "per_k").details["rows_removed"]) == (1, 1)
    child = of(result, "totals").details
    assert (child["changed_rows"], child["rows_added"], child["rows_removed"]) == (2, 1, 1)
    assert_right(built, "per_k", "totals")
    built.sql("UPDATE lake.raw.sales SET v = v + 1 WHERE id = 9")
    only(monkeypatch, "full-diff")
    result = built.run("most", "best")
    assert of(result, "most").details["strategy"] == "full-diff"
    assert of(result, "best").details["changed_rows"] in (None, 0, 2)
    assert_right(built, "most", "best")


def test_many_new_rows_of_a_storage_with_few(built: Project) -> None:
    names = ("large", "per_k")
    built.sql("INSERT INTO lake.raw.sales SELECT CAST(id + 100 AS INT), CAST(id AS INT), DATE'2026-06-01', 11 FROM range(12000)")
    assert "full" not in [refreshed(built, name).details["strategy"] for name in names]
    assert_right(built, *names)
    built.sql("DELETE FROM lake.raw.sales WHERE id >= 100")
    assert "full" not in [refreshed(built, name).details["strategy"] for name in names]
    assert_right(built, *names)


def test_what_no_strategy_follows_is_full_and_says_why(built: Project) -> None:
    refreshed(built, "running")
    built.sql("INSERT INTO lake.raw.sales VALUES (30, 1, DATE'2026-03-01', 8)")
    found = refreshed(built, "running")
    assert found.details["strategy"] == "full"
    assert found.details["reason"] == "window-without-partition"
    assert found.details["reason_message"]
    assert found.details["reason"] in found.message
    assert_right(built, "running")


@pytest.mark.parametrize("policy", ["full", "incremental", "incremental_strict"])
def test_policies(built: Project, policy: str) -> None:
    built.write({"models/large.sql": f"{{{{ config(refresh_policy='{policy}') }}}}\n{QUERIES['large']}\n"})
    refreshed(built, "large")
    built.sql("DELETE FROM lake.raw.sales WHERE id = 20 OR id = 30")
    built.sql("INSERT INTO lake.raw.sales VALUES (20, 1, DATE'2026-03-01', 50), (30, 1, DATE'2026-03-01', 50)")
    found = refreshed(built, "large")
    assert (found.details["strategy"] == "full") is (policy == "full")
    assert found.details["reason"] == ("forced" if policy == "full" else None)
    assert_right(built, "large")


def test_a_strict_policy_refuses_a_full_refresh(built: Project) -> None:
    refreshed(built, "running")
    built.write({"models/running.sql": f"{{{{ config(refresh_policy='incremental_strict') }}}}\n{QUERIES['running']}\n"})
    before = built.bag("SELECT * FROM lake.mart.running__storage")
    built.sql("INSERT INTO lake.raw.sales VALUES (31, 1, DATE'2026-03-01', 9)")
    result = built.run("running")
    assert not result.ok
    (diagnostic,) = of(result, "running").diagnostics
    assert diagnostic.code == "not-incremental"
    assert built.bag("SELECT * FROM lake.mart.running__storage") == before
    built.assert_tidy()


@pytest.mark.parametrize("how", ["expired", "recreated"])
def test_what_cannot_be_told_is_full_and_says_why(built: Project, how: str) -> None:
    refreshed(built, "named")
    built.sql("INSERT INTO lake.raw.customers VALUES (3, 'Dan')")
    if how == "expired":
        built.sql(
            "CALL lake.system.expire_snapshots(table => 'raw.customers', older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1)"
        )
    else:
        built.sql("CREATE OR REPLACE TABLE lake.raw.other USING iceberg AS SELECT * FROM lake.raw.customers")
        built.sql("DROP TABLE lake.raw.customers")
        built.sql("ALTER TABLE lake.raw.other RENAME TO raw.customers")
    found = refreshed(built, "named")
    assert found.details["strategy"] == "full"
    assert found.details["reason"] == {"expired": "snapshot-expired", "recreated": "source-recreated"}[how]
    assert_right(built, "named")


def test_a_writer_between_planning_and_writing(built: Project) -> None:
    built.run("large", "per_k")
    built.sql("INSERT INTO lake.raw.sales VALUES (40, 1, DATE'2026-03-01', 50)")
    before = built.bag(full_sql("large")), built.bag(full_sql("per_k"))

    def act(event: Event) -> None:
        if isinstance(event, Started) and event.node.endswith("large"):
            built.sql("INSERT INTO lake.raw.sales VALUES (41, 1, DATE'2026-03-01', 60)")
            built.sql("DELETE FROM lake.raw.sales WHERE id = 7")

    result = built.run("large", "per_k", threads=1, on_event=act)
    assert result.ok, messages(result)
    assert tuple(built.bag(f"SELECT * FROM {stored(built, name)}") for name in ("large", "per_k")) == before
    result = built.run("large", "per_k")
    assert {of(result, name).details["strategy"] for name in ("large", "per_k")} & {"full"} == set()
    assert_right(built, "large", "per_k")


KILLED = {
    "Spark": """
from mvbuild.adapters.iceberg import net_rows
from mvbuild.adapters.spark.engine import SparkQuery
from mvbuild.refresh import few_rows
net_rows.MAX_VALUES = few_rows.MAX_ROWS = -1
SparkQuery.append = killed
""",
    "mvbuild": """
from mvbuild.adapters.iceberg.catalog import MetadataCatalog
MetadataCatalog.commit = killed
""",
}
"""Who writes -> what kills the run: after rows were removed on its branch, and before the others are added; or before it is published."""


@pytest.mark.parametrize("by", KILLED)
def test_a_run_that_is_killed_between_its_commits(built: Project, by: str) -> None:
    refreshed(built, "per_k")
    before = built.bag("SELECT * FROM lake.mart.per_k__storage")
    built.sql("UPDATE lake.raw.sales SET v = v + 100 WHERE id IN (2, 3)")
    killed = f"import os, sys\nkilled = lambda *_, **__: os.kill(os.getpid(), 9)\n{KILLED[by]}"
    script = f"{killed}\nfrom mvbuild import api\napi.run(sys.argv[1], select=['per_k'])"
    done = subprocess.run(
        [sys.executable, "-c", script, str(built.root)], env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == -9, done.stderr[-2000:]
    assert any(branch.startswith("mvbuild_") for branch in built.table("mart.per_k__storage").metadata.refs)
    assert (built.catalog.list_tables("mvbuild_scratch") != []) == (by == "Spark")
    assert built.bag("SELECT * FROM lake.mart.per_k__storage") == before
    assert before != built.bag(full_sql("per_k"))
    found = refreshed(built, "per_k")
    assert found.details["strategy"] == "merge"
    assert_right(built, "per_k")
