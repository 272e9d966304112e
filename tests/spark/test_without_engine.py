"""The table of types that mvbuild reads and writes without an engine: rows and statistics are those that Spark would have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from mvbuild.adapters.iceberg import net_rows
from mvbuild.incremental import sizes
from mvbuild.refresh import few_rows
from spark.projects import Project, messages, of
from spark.shop import MakeProject

pytestmark = pytest.mark.proof

HERE: Mapping[str, tuple[str, str]] = {
    "boolean": ("BOOLEAN", "true, false, NULL, true"),
    "tinyint": ("INT", "-128Y, 127Y, NULL, 0Y"),
    "int": ("INT", "-2147483648, 2147483647, NULL, 0"),
    "bigint": ("BIGINT", "-9223372036854775808L, 9223372036854775807L, NULL, 0L"),
    "float": ("FLOAT", "float('-0.0'), float('NaN'), NULL, float('Infinity')"),
    "zeros": ("FLOAT", "float('-0.0'), float('0.0'), float('-0.0'), float('0.0')"),
    "double": ("DOUBLE", "double('-0.0'), double('NaN'), NULL, 1e300"),
    "not_numbers": ("DOUBLE", "double('NaN'), double('NaN'), double('NaN'), NULL"),
    "short_decimal": ("DECIMAL(9, 2)", "-9999999.99BD, 9999999.99BD, NULL, 0BD"),
    "long_decimal": ("DECIMAL(18, 4)", "-99999999999999.9999BD, 0.0001BD, NULL, 5BD"),
    "wide_decimal": ("DECIMAL(38, 10)", "-9999999999999999999999999999.9999999999BD, 1e-10BD, NULL, 0BD"),
    "date": ("DATE", "DATE'0001-01-01', DATE'9999-12-31', NULL, DATE'1582-10-10'"),
    "timestamp": ("TIMESTAMP", "TIMESTAMP'1883-11-18 00:00:01', TIMESTAMP'2261-12-31 23:59:59.999999', NULL, TIMESTAMP'1969-12-31 23:59:59.999999Z'"),
    "timestamp_ntz": ("TIMESTAMP_NTZ", "TIMESTAMP_NTZ'0001-01-01 00:00:00', TIMESTAMP_NTZ'9999-12-31 23:59:59.999999', NULL, TIMESTAMP_NTZ'1970-01-01'"),
    "string": ("STRING", "'', 'a text that is longer than sixteen characters', NULL, 'ö日本\U0001f600'"),
    "high_texts": ("STRING", "repeat('\U0010ffff', 20), repeat('\ud7ff', 20), 'a', NULL"),
    "binary": ("BINARY", "X'', X'00FF', NULL, unhex(repeat('FF', 20))"),
}  # fmt: skip
"""Name -> the type of the column, and its values. What the storage has for them is written by mvbuild. (Of values up to -0.0, the upper
bound is 0.0 here and -0.0 in Spark: both are bounds.)"""
BY_SPARK: Mapping[str, tuple[str, str]] = {
    "numbers": ("ARRAY<INT>", "array(1, NULL), array(), NULL, array(2)"),
    "struct": ("STRUCT<a: INT, b: STRING>", "named_struct('a', 1, 'b', 'x'), NULL, named_struct('a', NULL, 'b', NULL), NULL"),
    "bad_texts": ("STRING", "CAST(X'FF' AS STRING), 'a', NULL, ''"),
    "early": ("TIMESTAMP", "TIMESTAMP'-1000-01-01 00:00:00', TIMESTAMP'+20000-01-01 00:00:00', NULL, TIMESTAMP'1970-01-01'"),
}
"""What is left to Spark: nested values, and values without statistics that Python can compute."""
ALL = {**HERE, **BY_SPARK}
TABLES: Mapping[str, tuple[str, ...]] = {"plain": tuple(HERE), **{name: (name,) for name in BY_SPARK}}
"""Table -> its columns beside `id`. One table has all that is read and written here: a single type that is not would leave it to Spark."""


WHOLE, PLACE = "{{ config(auxiliary_views='never') }}", "row_number() OVER (ORDER BY id) AS place"
"""Every row depends on every other: all of it is computed again, and only what differs is written for the MV that reads it."""


@contextmanager
def by_spark(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is read or written without the engine."""
    with patch.context() as forbidden:
        forbidden.setattr(net_rows, "MAX_VALUES", -1)
        forbidden.setattr(few_rows, "MAX_ROWS", -1)
        forbidden.setattr(sizes, "FEW_STORED", 0)
        yield


@pytest.fixture(scope="module")
def house(project: MakeProject) -> Project:
    """For each table, two MVs, one of which is refreshed by Spark alone, and one that is computed again as a whole."""
    files = {
        f"models/{name}{end}.sql": f"SELECT id, {', '.join(TABLES[name])} FROM raw.{name}\n" for name in TABLES for end in ("", "_spark")
    }
    for name in TABLES:
        files[f"models/{name}_whole.sql"] = f"{WHOLE}SELECT id, {', '.join(TABLES[name])}, {PLACE} FROM raw.{name}\n"
        files[f"models/{name}_reader.sql"] = f"SELECT sum(place) AS places FROM mart.{name}_whole\n"
    made = project({"mvbuild.yml": "name: types\nmodels: {+refresh_policy: incremental, +namespace: mart}\n", **files})
    made.sql("CREATE NAMESPACE lake.raw")
    merge_on_read = ", ".join(f"'write.{how}.mode' = 'merge-on-read'" for how in ("delete", "update"))
    for name, columns in TABLES.items():
        types = ", ".join(f"{column} {ALL[column][0]}" for column in columns)
        made.sql(f"CREATE TABLE lake.raw.{name} (id INT, {types}) USING iceberg TBLPROPERTIES ({merge_on_read})")
        values = ", ".join(f"array({ALL[column][1]})[number]" for column in columns)
        made.sql(
            f"INSERT INTO lake.raw.{name} SELECT /*+ COALESCE(1) */ number + 1, {values} FROM (SELECT explode(sequence(0, 3)) AS number)"
        )
    result = made.run()
    assert result.ok, messages(result)
    return made


CHANGES = {
    "insert": "INSERT INTO lake.raw.{name} SELECT /*+ COALESCE(1) */ id + 10, * EXCEPT (id) FROM lake.raw.{name} WHERE id < 10",
    "update": "UPDATE lake.raw.{name} SET id = -id WHERE id IN (1, 3, 12)",
    "delete": "DELETE FROM lake.raw.{name} WHERE id IN (2, 11)",
    "all": "DELETE FROM lake.raw.{name}",
}


def test_rows_and_statistics_are_those_of_spark(house: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    for change, sql in CHANGES.items():
        for name in TABLES:
            house.sql(sql.format(name=name))
        with by_spark(monkeypatch):
            assert house.run(*(f"{name}_spark" for name in TABLES)).ok
        result = house.run(*TABLES, *(f"{name}_{end}" for name in TABLES for end in ("whole", "reader")))
        assert result.ok, messages(result)
        for name in TABLES:
            _check_whole(house, name, result)
            assert of(result, name).details["strategy"] in ("append", "bag", "affected-keys"), (change, name)
            bits = ", ".join(("id", *map(_bits, TABLES[name])))
            stored, other = (house.bag(f"SELECT {bits} FROM lake.mart.{name}{end}__storage") for end in ("", "_spark"))
            assert stored == other == house.bag(f"SELECT {bits} FROM lake.raw.{name}"), (change, name)
            written = any(s.endswith("in one commit of mvbuild") for s in _statements(house, name))
            is_plain = name == "plain" or (name in ("bad_texts", "early") and change in ("delete", "all"))
            assert written == is_plain, (change, name)
            assert not any(s.endswith("in one commit of mvbuild") for s in _statements(house, f"{name}_spark"))
            if change == "insert":  # Spark may write what an update adds to several files
                assert _statistics(house, name) == _statistics(house, f"{name}_spark"), (change, name)


def _check_whole(house: Project, name: str, result: Any) -> None:
    """It is compared with the storage in this process if all its values are read here."""
    assert of(result, f"{name}_whole").details["strategy"] == "full-diff", messages(result)
    bits = ", ".join(("id", "place", *map(_bits, TABLES[name])))
    new = f"SELECT {bits} FROM (SELECT *, {PLACE} FROM lake.raw.{name})"
    assert house.bag(f"SELECT {bits} FROM lake.mart.{name}_whole__storage") == house.bag(new), name
    if name in ("plain", "numbers", "struct"):
        is_compared_by_spark = any("stored_at_0v" in statement for statement in _statements(house, f"{name}_whole"))
        assert is_compared_by_spark == (name != "plain"), name


def _bits(column: str) -> str:
    """The bits of its values."""
    type_ = ALL[column][0]
    if type_ in ("FLOAT", "DOUBLE"):
        return f"CAST({column} AS STRING)"
    if type_ in ("STRING", "BINARY"):
        return f"hex(CAST({column} AS BINARY))"
    return f"unix_micros({column})" if column == "early" else column


def _statistics(house: Project, name: str) -> Counter[str]:
    """Of the data files, without their sizes."""
    columns = "record_count, value_counts, null_value_counts, nan_value_counts, lower_bounds, upper_bounds"
    return house.bag(f"SELECT {columns} FROM lake.mart.{name}__storage.files WHERE content = 0")


def _statements(house: Project, name: str) -> list[str]:
    (file,) = (house.root / "target" / "run").rglob(f"{name}.sql")
    return [" ".join(s.split()) for s in file.read_text(encoding="utf-8").split("\n;\n")]


def test_columns_that_changed_since_a_file_was_written(project: MakeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    """Widened, renamed and added ones, with and without a default, in the files of a change with deletes."""
    made = project(
        {
            "mvbuild.yml": "name: evolved\nmodels: {+refresh_policy: incremental, +namespace: mart}\n",
            "models/wide.sql": "SELECT id, v, f, d, added FROM raw.t\n",
        }
    )
    made.sql("CREATE NAMESPACE lake.raw")
    made.sql(
        "CREATE TABLE lake.raw.t (id INT, w INT, f FLOAT, d DECIMAL(5, 2), gone STRING) USING iceberg "
        "TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')"
    )
    made.sql("INSERT INTO lake.raw.t SELECT /*+ COALESCE(1) */ id, id * 2, id / 3, id / 7, 'x' FROM (SELECT explode(sequence(1, 9)) AS id)")
    for change in (
        "ALTER COLUMN w TYPE BIGINT", "ALTER COLUMN f TYPE DOUBLE", "ALTER COLUMN d TYPE DECIMAL(20, 2)", "RENAME COLUMN w TO v",
        "DROP COLUMN gone", "ADD COLUMN added STRING",
    ):  # fmt: skip
        made.sql(f"ALTER TABLE lake.raw.t {change}")
    first = made.run()
    assert first.ok, messages(first)
    made.sql("DELETE FROM lake.raw.t WHERE id IN (3, 4)")
    made.sql("INSERT INTO lake.raw.t VALUES (20, 3000000000, 1e100, 12345678.90, 'new')")
    made.sql("DELETE FROM lake.raw.t WHERE id = 5")
    result = made.run()
    assert result.ok, messages(result)
    assert made.bag("SELECT * FROM lake.mart.wide__storage") == made.bag("SELECT id, v, f, d, added FROM lake.raw.t")
    assert next(s for s in _statements(made, "wide") if s.startswith("-- ")).endswith("rows, read by mvbuild")


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_that_come_and_go(project: MakeProject, version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Position delete files and deletion vectors, several of them for one file, merged, and undone by a rollback."""
    made = project(
        {
            "mvbuild.yml": "name: deletes\nmodels: {+refresh_policy: incremental, +namespace: mart}\n",
            "models/copied.sql": "SELECT id, v FROM raw.t\n",
            "models/summed.sql": "SELECT k, sum(v) AS s, count(v) AS c, count(*) AS n FROM raw.t GROUP BY k\n",
            "models/newest.sql": "SELECT k, id, v FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY id DESC) AS n FROM raw.t) WHERE n = 1\n",
        }
    )
    made.sql("CREATE NAMESPACE lake.raw")
    modes = ", ".join(f"'write.{how}.mode' = 'merge-on-read'" for how in ("delete", "update", "merge"))
    made.sql(f"CREATE TABLE lake.raw.t (id INT, k INT, v INT) USING iceberg TBLPROPERTIES ('format-version' = '{version}', {modes})")
    made.sql("INSERT INTO lake.raw.t SELECT /*+ COALESCE(1) */ id, id % 7, id * 3 FROM (SELECT explode(sequence(1, 60)) AS id)")
    first = made.run()
    assert first.ok, messages(first)
    before = made.sql("SELECT snapshot_id FROM lake.raw.t.snapshots")[0][0]
    steps = [
        "DELETE FROM lake.raw.t WHERE id < 4",
        "DELETE FROM lake.raw.t WHERE id IN (10, 20)",
        "UPDATE lake.raw.t SET v = NULL WHERE id % 11 = 0",
        "INSERT INTO lake.raw.t VALUES (100, 1, 1), (101, 50, 2)",
        f"CALL lake.system.rollback_to_snapshot('raw.t', {before})",
        "DELETE FROM lake.raw.t WHERE id % 2 = 0",
        "DELETE FROM lake.raw.t WHERE true",
    ]
    for step in steps:
        made.sql(step)
        result = made.run()
        assert result.ok, messages(result)
        for name in ("copied", "summed", "newest"):
            sql = (made.root / "models" / f"{name}.sql").read_text().replace("raw.t", "lake.raw.t")
            assert made.bag(f"SELECT * FROM lake.mart.{name}__storage") == made.bag(sql), (step, name)
            assert of(result, name).details["strategy"] != "full", (step, name)
            if step != steps[-1] and of(result, name).status != "reused":
                assert any(s.startswith("-- ") and s.endswith("in one commit of mvbuild") for s in _statements(made, name)), (step, name)


def test_text_that_a_partition_cannot_keep(project: MakeProject) -> None:
    """Spark reads the value of a partition in the manifest, where bytes that are not UTF-8 were replaced, and not in the file. So an MV that
    is partitioned by such a text does not find it again."""
    models = {"copied": "SELECT id, k FROM raw.t", "summed": "SELECT k, sum(id) AS s, count(*) AS n FROM raw.t GROUP BY k"}
    parted = {f"parted_{name}": query for name, query in models.items()}
    made = project(
        {
            "mvbuild.yml": "name: texts\nmodels: {+refresh_policy: incremental}\n",
            **{f"models/{name}.sql": query for name, query in models.items()},
            **{f"models/{name}.sql": f"{{{{ config(partition_by=['k']) }}}} {q.replace('raw.t', 'raw.u')}" for name, q in parted.items()},
        }
    )
    made.sql("CREATE NAMESPACE lake.raw")
    made.sql("CREATE TABLE lake.raw.t (id BIGINT, k STRING) USING iceberg PARTITIONED BY (k)")
    made.sql("CREATE TABLE lake.raw.u (id BIGINT, k STRING) USING iceberg")

    def rows(sql: str) -> Counter[tuple[Any, ...]]:
        found = made.sql(f"SELECT hex(CAST(k AS BINARY)), * EXCEPT (k) FROM ({sql})")
        return Counter((bytes.fromhex(text).decode(errors="replace"), *more) for text, *more in found)

    seen: dict[str, list[str]] = {}
    for step in (
        "INSERT INTO lake.raw.{} VALUES (1, 'b')",
        "INSERT INTO lake.raw.{} VALUES (4, CAST(X'FF61' AS STRING)), (5, 'b')",
        "INSERT INTO lake.raw.{} VALUES (6, CAST(X'FE61' AS STRING)), (7, CAST(X'FF61' AS STRING))",
        "DELETE FROM lake.raw.{} WHERE id IN (1, 7)",
    ):
        for table in "tu":
            made.sql(step.format(table))
        result = made.run()
        for name, query in models.items() | parted.items():
            right = query.replace("raw.t", f"lake.raw.{'u' if name in parted else 't'}")
            assert rows(f"SELECT * FROM lake.main.{name}__storage") == rows(right), (step, name)
            seen.setdefault(name, []).append(of(result, name).details["reason"])
    assert seen["copied"] == seen["summed"] == ["never-refreshed", None, None, None]
    assert seen["parted_copied"] == seen["parted_summed"] == ["never-refreshed", None, "text-not-kept", "text-not-kept"]


def test_rows_leave_a_storage_of_version_1(project: MakeProject) -> None:
    """It has no delete files; one that was created to be merged on read is written again."""
    query = "SELECT k, sum(id) AS s FROM raw.t GROUP BY k"
    made = project({"mvbuild.yml": "name: one\nmodels: {+refresh_policy: incremental_strict, +table_properties: {format-version: '1'}}\n"})
    made.write({"models/new.sql": query, "models/old.sql": query})
    made.sql("CREATE NAMESPACE lake.raw")
    made.sql("CREATE TABLE lake.raw.t (id BIGINT, k STRING) USING iceberg")
    made.sql("INSERT INTO lake.raw.t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    assert made.run().ok
    made.sql("ALTER TABLE lake.main.old__storage SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    for step in (
        "INSERT INTO lake.raw.t VALUES (4, 'a')",
        "DELETE FROM lake.raw.t WHERE k = 'c'",
        "UPDATE lake.raw.t SET id = 9 WHERE k = 'b'",
    ):
        made.sql(step)
        result = made.run()
        assert result.ok, messages(result)
        for name in ("new", "old"):
            assert made.bag(f"SELECT * FROM lake.main.{name}__storage") == made.bag(query.replace("raw.t", "lake.raw.t")), (step, name)
            assert of(result, name).details["strategy"] != "full", (step, name, of(result, name).details)
