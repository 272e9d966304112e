"""Findings of a review that only Spark can show: what it reads of a branch, and what compactions and partitions leave in manifests."""

from __future__ import annotations

from typing import Any

import pytest

from mvbuild import api
from mvbuild.incremental import choose
from mvbuild.incremental.strategies import STRATEGIES
from spark.projects import Project, messages, of
from spark.shop import MakeProject

pytestmark = pytest.mark.proof

CONF = "name: found\nmodels: {+refresh_policy: incremental, +namespace: mart}\n"
MERGE_ON_READ = (
    "TBLPROPERTIES ('format-version'='2', 'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read', "
    "'write.delete.granularity'='partition')"
)


def made(project: MakeProject, columns: str, rows: str, query: str, **more: str) -> Project:
    """raw.t -> the MV m."""
    built = project({"mvbuild.yml": CONF, "models/m.sql": f"{query}\n", **more})
    built.sql("CREATE NAMESPACE lake.raw")
    built.sql(f"CREATE TABLE lake.raw.t ({columns}) USING iceberg {'PARTITIONED BY (x) ' if ' x ' in columns else ''}{MERGE_ON_READ}")
    built.sql(f"INSERT INTO lake.raw.t VALUES {rows}")
    return built


def first(built: Project) -> Project:
    result = built.run()
    assert result.ok, messages(result)
    return built


def assert_right(built: Project, query: str, **facts: Any) -> None:
    """After a run, and once more after another one, which has nothing to do."""
    result = built.run()
    assert result.ok, messages(result)
    details = of(result, "m").details
    assert {name: details.get(name) for name in facts} == facts
    assert built.bag("SELECT * FROM lake.mart.m__storage") == built.bag(query.replace("raw.t", "lake.raw.t"))
    assert built.codes("m") == []
    assert built.only_reused()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, count(x) AS c, count(*) AS n, sum(x) AS s FROM raw.t GROUP BY id",
        "SELECT a.id, b.id AS other FROM raw.t a LEFT JOIN raw.t b ON a.x = b.id",
        "SELECT id, coalesce(x, 0) AS x FROM raw.t",
    ],
)
def test_a_column_that_may_not_be_null_any_more(project: MakeProject, query: str) -> None:
    """Spark reads the removed rows under the schema of now, and takes `x IS NULL` for false."""
    built = made(project, "id INT, x INT", "(1, NULL), (1, 7), (3, NULL)", query)
    first(built)
    built.sql(f"CREATE OR REPLACE TABLE lake.raw.t (id INT, x INT NOT NULL) USING iceberg {MERGE_ON_READ}")
    built.sql("INSERT INTO lake.raw.t VALUES (1, 7)")
    assert_right(built, query, strategy="full", reason="column-changed")
    built.sql("INSERT INTO lake.raw.t VALUES (1, 8)")
    result = built.run()
    assert of(result, "m").details["strategy"] != "full"
    assert built.bag("SELECT * FROM lake.mart.m__storage") == built.bag(query.replace("raw.t", "lake.raw.t"))


@pytest.mark.parametrize("drops", [True, False])
def test_a_column_that_partitioned_old_files_is_dropped(project: MakeProject, drops: bool) -> None:
    """Iceberg then rewrites the manifest of the data files with NULL for the column, and leaves that of their deletes."""
    query = "SELECT k, count(*) AS n FROM raw.t GROUP BY k"
    built = project({"mvbuild.yml": CONF, "models/m.sql": f"{query}\n"})
    built.sql("CREATE NAMESPACE lake.raw")
    built.sql(
        "CREATE TABLE lake.raw.t (id INT, k INT, u INT) USING iceberg PARTITIONED BY (k, u) "
        "TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read')"
    )
    built.sql("INSERT INTO lake.raw.t SELECT CAST(id AS INT), CAST(id % 2 AS INT), 1 FROM range(16)")
    built.sql("DELETE FROM lake.raw.t WHERE id IN (1, 2, 3)")
    built.sql("ALTER TABLE lake.raw.t DROP PARTITION FIELD u")
    first(built)
    built.sql("DELETE FROM lake.raw.t WHERE id IN (4, 5)")
    if drops:
        built.sql("ALTER TABLE lake.raw.t DROP COLUMN u")
    built.sql("ALTER TABLE lake.raw.t SET TBLPROPERTIES ('write.delete.mode' = 'copy-on-write')")
    built.sql("DELETE FROM lake.raw.t WHERE id = 7")
    result = built.run()
    assert result.ok, messages(result)
    assert of(result, "m").details.get("reason") == ("partition-column-dropped" if drops else None)
    assert built.bag("SELECT * FROM lake.mart.m__storage") == built.bag(query.replace("raw.t", "lake.raw.t"))
    built.sql("INSERT INTO lake.raw.t (id, k) VALUES (99, 1)")
    result = built.run()
    assert of(result, "m").details["strategy"] != "full"
    assert built.bag("SELECT * FROM lake.mart.m__storage") == built.bag(query.replace("raw.t", "lake.raw.t"))


BRANCH = "SELECT id, a FROM raw.t VERSION AS OF 'prod'"


@pytest.mark.parametrize("writes", [False, True])
def test_a_branch_of_a_table_whose_columns_change(project: MakeProject, writes: bool) -> None:
    built = made(project, "id INT, a INT, b INT", "(1, 10, 100)", BRANCH)
    built.sql("ALTER TABLE lake.raw.t CREATE BRANCH prod")
    first(built)
    if writes:
        built.sql("INSERT INTO lake.raw.t.branch_prod VALUES (2, 20, 200)")
    built.sql("ALTER TABLE lake.raw.t DROP COLUMN a")
    built.sql("ALTER TABLE lake.raw.t RENAME COLUMN b TO a")
    assert "base-table-schema-changed" in built.codes("m")
    assert_right(built, BRANCH, strategy="full", reason="column-changed")
    # The next change of rows is read under the current schema on both sides.
    built.sql("INSERT INTO lake.raw.t.branch_prod VALUES (3, 300)")
    assert_right(built, BRANCH, strategy="append")


def test_a_tag_keeps_its_columns(project: MakeProject) -> None:
    built = made(project, "id INT, a INT, b INT", "(1, 10, 100)", BRANCH)
    built.sql("ALTER TABLE lake.raw.t CREATE TAG prod")
    first(built)
    built.sql("INSERT INTO lake.raw.t VALUES (2, 20, 200)")
    built.sql("ALTER TABLE lake.raw.t REPLACE TAG prod")
    built.sql("ALTER TABLE lake.raw.t DROP COLUMN a")
    built.sql("ALTER TABLE lake.raw.t RENAME COLUMN b TO a")
    assert_right(built, BRANCH, strategy="full", reason="column-changed")
    assert built.bag("SELECT * FROM lake.mart.m__storage") == built.bag("SELECT * FROM VALUES (1, 10), (2, 20)")


def test_a_row_goes_from_one_branch_to_another(project: MakeProject) -> None:
    query = "SELECT id FROM raw.t UNION ALL SELECT id FROM raw.t VERSION AS OF 'prod'"
    built = made(project, "id INT", "(1), (2)", query)
    built.sql("ALTER TABLE lake.raw.t CREATE BRANCH prod")
    first(built)
    built.sql("DELETE FROM lake.raw.t WHERE id = 2")
    built.sql("INSERT INTO lake.raw.t.branch_prod VALUES (2)")
    assert_right(built, query)
    built.sql("INSERT INTO lake.raw.t.branch_prod VALUES (3)")
    assert_right(built, query, strategy="append")


def test_a_storage_that_somebody_else_compacts(project: MakeProject) -> None:
    """Its position deletes are about a file that is gone: not every row is among those that go."""
    query = "SELECT k, count(*) AS n FROM raw.t GROUP BY k"
    partitions = "models:\n  - {name: m, config: {partition_by: [k]}}\n"
    built = first(made(project, "k INT, v INT", "(0, 0), (1, 0), (2, 0), (3, 0)", query, **{"models/all.yml": partitions}))
    built.sql("INSERT INTO lake.raw.t VALUES (0, 1)")
    first(built)
    options = "map('min-input-files', '1', 'rewrite-all', 'true')"
    built.sql(f"CALL lake.system.rewrite_data_files(table => 'mart.m__storage', where => 'k = 0', options => {options})")
    summary = built.table("mart.m__storage").metadata.current_snapshot().summary  # type: ignore[union-attr]
    assert summary is not None
    assert (summary["total-records"], summary["total-position-deletes"]) == ("4", "1")
    built.sql("INSERT INTO lake.raw.t VALUES (1, 1), (2, 1), (3, 1)")
    assert_right(built, query, strategy="merge")


def test_deletes_in_a_partition_of_nan(project: MakeProject) -> None:
    query = "SELECT id, x FROM raw.t"
    built = made(project, "id INT, x DOUBLE", "(1, double('NaN')), (2, double('NaN'))", query)
    built.sql("INSERT INTO lake.raw.t VALUES (3, double('NaN')), (4, double('NaN'))")
    first(built)
    built.sql("DELETE FROM lake.raw.t WHERE id IN (1, 3)")
    assert_right(built, query)


@pytest.mark.parametrize(
    ("query", "later"),
    [
        ("SELECT id, a FROM raw.t UNION ALL SELECT * FROM raw.t", "append"),
        ("SELECT p, q FROM raw.t AS t(p, q)", "append"),
        ("SELECT concat_ws('|', *) AS whole FROM raw.t", "full"),
    ],
)
def test_columns_that_move_under_a_query_that_takes_them_by_position(project: MakeProject, query: str, later: str) -> None:
    built = first(made(project, "id INT, a INT", "(1, 10)", query))
    built.sql("ALTER TABLE lake.raw.t ALTER COLUMN a FIRST")
    assert built.codes("m") == ["base-table-schema-changed"]
    built.sql("INSERT INTO lake.raw.t (id, a) VALUES (2, 20)")
    assert_right(built, query, strategy="full", reason="column-changed")
    built.sql("INSERT INTO lake.raw.t (id, a) VALUES (3, 30)")
    assert_right(built, query, strategy=later)


def test_fields_of_a_struct_that_move(project: MakeProject) -> None:
    query = "SELECT id, CAST(s AS STRING) AS s, to_json(s) AS j FROM raw.t"
    built = first(made(project, "id INT, s STRUCT<a: INT, b: INT>", "(1, struct(10, 11))", query))
    built.sql("ALTER TABLE lake.raw.t ALTER COLUMN s.b FIRST")
    assert built.codes("m") == ["base-table-schema-changed"]
    assert_right(built, query, strategy="full")
    built.sql("INSERT INTO lake.raw.t VALUES (2, named_struct('b', 21, 'a', 20))")
    assert_right(built, query)


def test_columns_of_a_storage_that_somebody_else_renames(project: MakeProject) -> None:
    query = "SELECT id, a FROM raw.t"
    built = first(made(project, "id INT, a INT", "(1, 10)", query))
    for old, new in (("id", "other"), ("a", "id"), ("other", "a")):
        built.sql(f"ALTER TABLE lake.mart.m__storage RENAME COLUMN {old} TO {new}")
    assert built.codes("m") == ["storage-schema-changed"]
    built.sql("ALTER TABLE lake.mart.m__storage ALTER COLUMN id FIRST")
    assert built.codes("m") == ["storage-schema-changed"]
    assert_right(built, query, strategy="full", reason="storage-changed-by-others")
    built.sql("INSERT INTO lake.raw.t VALUES (2, 20)")
    assert_right(built, query, strategy="append")


def test_timestamps_that_do_not_fit_into_nanoseconds(project: MakeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file with INT96 timestamps that another writer made. PyArrow reads them as nanoseconds, which overflow."""
    monkeypatch.setattr(choose, "STRATEGIES", {"merge": STRATEGIES["merge"]})
    query = "SELECT ts, count(*) AS n FROM raw.t GROUP BY ts"
    built = project({"mvbuild.yml": CONF, "models/m.sql": f"{query}\n"})
    built.sql("CREATE NAMESPACE lake.raw")
    built.sql("CREATE TABLE lake.raw.t (id INT, ts TIMESTAMP, v INT) USING iceberg TBLPROPERTIES ('format-version'='2')")
    days = "TIMESTAMP'9999-12-31 00:00:00', TIMESTAMP'1400-02-28 01:02:03', TIMESTAMP'1677-09-20 00:00:00', TIMESTAMP'2024-01-01 00:00:00'"
    files = built.root / "files"
    built.spark.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    built.spark.conf.set("spark.sql.parquet.int96RebaseModeInWrite", "CORRECTED")
    rows = f"SELECT CAST(id AS INT) AS id, array({days})[id % 4] AS ts, CAST(1 AS INT) AS v FROM range(16)"
    built.sql(f"INSERT OVERWRITE DIRECTORY '{files}' USING parquet {rows}")
    built.sql(f"CALL lake.system.add_files(table => 'raw.t', source_table => '`parquet`.`{files}`')")
    first(built)
    built.sql("UPDATE lake.raw.t SET v = 2 WHERE id = 0")
    built.sql("DELETE FROM lake.raw.t WHERE id IN (1, 2, 3)")
    assert_right(built, query, strategy="merge")
    built.sql("DELETE FROM lake.raw.t WHERE id BETWEEN 4 AND 8")
    assert_right(built, query, strategy="merge")


@pytest.mark.parametrize("strategy", ["bag", "affected-keys"])
def test_a_zero_keeps_its_sign(project: MakeProject, monkeypatch: pytest.MonkeyPatch, strategy: str) -> None:
    """0.0 and -0.0 are equal to joins and groups, and have other texts."""
    monkeypatch.setattr(choose, "STRATEGIES", {strategy: STRATEGIES[strategy]})
    query = "SELECT id, x FROM raw.t"
    rows = "(1, -0.0D), (1, 0.0D), (2, 0.0D), (3, -0.0D), (4, double('NaN'))"
    built = first(made(project, "id INT, x DOUBLE", rows, query))
    for change in (
        "UPDATE lake.raw.t SET x = -x WHERE id IN (2, 3)",
        "DELETE FROM lake.raw.t WHERE id = 1 AND CAST(x AS STRING) = '0.0'",
        "INSERT INTO lake.raw.t VALUES (1, -0.0D), (5, -0.0D), (4, double('NaN'))",
    ):
        built.sql(change)
        assert_right(built, query, strategy=strategy)
    assert [r.status for r in api.verify(built.root, spark=built.spark).results] == ["same"]
    built.sql("UPDATE lake.mart.m__storage SET x = 0.0D WHERE id = 5")
    (found,) = api.verify(built.root, spark=built.spark).results
    assert (found.status, sorted(repr(row.row) for row in found.rows)) == ("different", ["(5, -0.0)", "(5, 0.0)"])


@pytest.mark.parametrize(
    ("query", "strategy"),
    [
        ("SELECT count(*) AS n FROM raw.t WHERE v = 0", "merge"),
        ("SELECT k, count(*) AS n FROM raw.t WHERE v > 0.1D GROUP BY k", "merge"),
        ("SELECT id FROM (SELECT id, v + v AS y FROM raw.t) WHERE y > 0.1D OR y = 0", "bag"),
        ("SELECT a.id FROM raw.t a JOIN raw.t b ON a.s.f > b.v", "bag"),
    ],
)
def test_rows_that_iceberg_skips_are_not_removed(project: MakeProject, monkeypatch: pytest.MonkeyPatch, query: str, strategy: str) -> None:
    """Its bounds of a file have no NaN, and -0.0 is less than 0.0 there: a refresh in full leaves these files out."""
    monkeypatch.setattr(choose, "STRATEGIES", {strategy: STRATEGIES[strategy]})
    columns = "id INT, k INT, v DOUBLE, s STRUCT<f: DOUBLE>"
    built = made(project, columns, "(1, 1, 0.0D, struct(0.0D)), (2, 1, 1.0D, struct(1.0D))", query)
    built.sql("INSERT INTO lake.raw.t VALUES (3, 1, -0.0D, struct(-0.0D))")
    built.sql("INSERT INTO lake.raw.t VALUES (4, 1, double('NaN'), struct(double('NaN')))")
    first(built)
    for change in ("DELETE FROM lake.raw.t WHERE id IN (3, 4)", "INSERT INTO lake.raw.t VALUES (5, 1, -0.0D, struct(double('NaN')))"):
        built.sql(change)
        assert_right(built, query, strategy="full")
    built.sql("INSERT INTO lake.raw.t VALUES (6, 1, 7.0D, struct(8.0D))")
    assert_right(built, query, strategy=strategy)


def test_an_auxiliary_view_has_the_rows_that_iceberg_would_skip(project: MakeProject) -> None:
    """The query over the tables has NaN: it is larger than any number after a GROUP BY as well."""
    inner = "SELECT k, max(v) AS s FROM raw.t GROUP BY k"
    query = f"SELECT k, s, rank() OVER (ORDER BY k) AS place FROM ({inner}) WHERE s > 0.1D OR s = 0"
    built = made(project, "id INT, k INT, v DOUBLE", "(1, 1, 1.0D), (2, 2, -1.0D)", "{{ config(auxiliary_views='always') }}\n" + query)
    first(built)
    for rows in ("(3, 3, double('NaN'))", "(4, 4, -0.0D)", "(5, 5, 2.0D)", "(6, 2, double('NaN')), (7, 4, -0.0D)"):
        built.sql(f"INSERT INTO lake.raw.t VALUES {rows}")
        assert_right(built, query)
    built.sql("DELETE FROM lake.raw.t WHERE id IN (1, 3)")
    assert_right(built, query)
    assert built.sql("SELECT * FROM lake.mart.m__auxiliary_1")


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_a_file_that_a_table_lists_twice(project: MakeProject, mode: str) -> None:
    queries = {
        "rows": "SELECT id, s FROM raw.t WHERE id > 0",
        "groups": "SELECT id, count(*) AS n FROM raw.t GROUP BY id",
        "total": "SELECT count(*) AS n FROM raw.t",
    }
    models = {f"models/{name}.sql": sql + "\n" for name, sql in queries.items()}
    shop = project({"mvbuild.yml": "name: shop\nmodels: {+refresh_policy: incremental}\n", **models})
    shop.sql("CREATE NAMESPACE IF NOT EXISTS lake.raw")
    shop.sql(f"CREATE TABLE lake.raw.t (id INT, s STRING) USING iceberg TBLPROPERTIES ('write.delete.mode' = '{mode}')")
    folder = shop.root / "outside"
    shop.spark.sql("SELECT CAST(id AS INT) AS id, CAST(id AS STRING) AS s FROM range(5)").coalesce(1).write.parquet(str(folder))
    add = f"CALL lake.system.add_files(table => 'raw.t', source_table => '`parquet`.`{folder}`', check_duplicate_files => false)"
    for statement in (add, add, "DELETE FROM lake.raw.t WHERE id = 3", add, "DELETE FROM lake.raw.t WHERE id = 2"):
        shop.sql(statement)
        shop.run()
        for name, sql in queries.items():
            wanted = sorted(map(str, shop.sql(sql.replace("raw.", "lake.raw."))))
            assert sorted(map(str, shop.sql(f"SELECT * FROM lake.main.{name}"))) == wanted, (statement, name)


def test_a_new_column_takes_a_name_in_files_without_ids(project: MakeProject) -> None:
    shop = project({"mvbuild.yml": "name: shop\n", "models/m.sql": "SELECT id, c FROM raw.t\n"})
    shop.sql("CREATE NAMESPACE IF NOT EXISTS lake.raw")
    shop.sql("CREATE TABLE lake.raw.t (id INT, a STRING) USING iceberg")
    folder = shop.root / "outside"
    shop.spark.sql("SELECT 1 AS id, 'x' AS a").coalesce(1).write.parquet(str(folder))
    shop.sql(f"CALL lake.system.add_files(table => 'raw.t', source_table => '`parquet`.`{folder}`')")
    shop.sql("ALTER TABLE lake.raw.t RENAME COLUMN a TO c")
    assert shop.statuses() == {"m": "success"}
    shop.sql("ALTER TABLE lake.raw.t ADD COLUMN other INT")
    assert shop.statuses() == {"m": "reused"}
    shop.sql("ALTER TABLE lake.raw.t ADD COLUMN a STRING")
    assert shop.statuses() == {"m": "success"}
    assert [tuple(row) for row in shop.sql("SELECT * FROM lake.main.m")] == [(1, None)]
    assert shop.statuses() == {"m": "reused"}
