"""The change between any two snapshots, as Spark reads it: random histories, and those that need a case of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from mvbuild.adapters import open_catalog
from mvbuild.names import TableIdentifier
from mvbuild.ports.catalog import ChangeRefused
from mvbuild.ports.changes import ChangePart
from mvbuild.ports.states import TableState
from spark.change_pairs import Checker
from spark.conftest import Lake
from spark.equality_deletes import write_by_key
from spark.histories import KINDS, History

pytestmark = pytest.mark.proof

PAIRS = 12
"""Of each random history; the benchmark `change.py` takes more, of many more."""


@pytest.fixture(scope="module")
def catalog(lake: Lake) -> Iterator[Any]:
    found: Any = open_catalog("lake", lake.properties, embedded=True)
    for namespace in ("h", "mvbuild_scratch"):
        found.ensure_namespace((namespace,))
    # Tables of a few rows are read before their code would be compiled.
    settings = {"spark.sql.codegen.wholeStage": "false", "spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "1"}
    before = {key: lake.session.conf.get(key) for key in settings}
    for key, value in settings.items():
        lake.session.conf.set(key, value)
    yield found
    for key, value in before.items():
        lake.session.conf.set(key, value)
    found.close()


def _checker(lake: Lake, catalog: Any, table: str) -> Checker:
    (state,) = catalog.load([TableIdentifier("lake", ("h",), table)]).values()
    assert isinstance(state, TableState)
    return Checker(spark=lake.session, catalog=catalog, table=state)


def _created(
    lake: Lake, table: str, version: int, mode: str, columns: str = "id INT, x STRING", rows: str = "(1, 'a'), (2, 'b'), (3, 'c')"
) -> str:
    modes = ", ".join(f"'write.{of}.mode' = '{mode}'" for of in ("delete", "update", "merge"))
    lake.sql(f"CREATE TABLE lake.h.{table} ({columns}) USING iceberg TBLPROPERTIES ('format-version' = '{version}', {modes})")
    lake.sql(f"INSERT INTO lake.h.{table} SELECT /*+ REPARTITION(1) */ * FROM VALUES {rows}")
    return f"lake.h.{table}"


def _last(checker: Checker, back: int = 1) -> ChangePart:
    """The one part of the change by the last snapshots."""
    ids = list(checker.table.snapshots)
    (part,) = checker.catalog.changes.between(checker.table, ids[-1 - back], ids[-1]).parts
    return part


@pytest.mark.parametrize(("seed", "kind"), [*enumerate(KINDS), (5, KINDS[2])])
def test_a_random_history(lake: Lake, catalog: Any, seed: int, kind: tuple[int, str]) -> None:
    history = History(lake.session, f"lake.h.random_{seed}", seed, *kind)
    history.commits(5)
    checker = _checker(lake, catalog, f"random_{seed}")
    wrong = checker.wrong(checker.pairs(PAIRS, seed))
    assert wrong == {}, "\n".join(history.log)
    assert catalog.list_names(("mvbuild_scratch",)) == ()


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("columns", ["flat", "nested"])
def test_deletes_in_files_that_stay(lake: Lake, catalog: Any, version: int, columns: str) -> None:
    table, of = f"deletes_{version}_{columns}", "id INT, x STRING" if columns == "flat" else "id INT, x STRUCT<a: STRING, n: ARRAY<INT>>"
    x = "'v'" if columns == "flat" else "named_struct('a', 'v', 'n', array(1, 2))"
    name = _created(lake, table, version, "merge-on-read", of, ", ".join(f"({id_}, {x})" for id_ in (1, 1, 2, 3, 4, 5)))
    lake.sql(f"DELETE FROM {name} WHERE id = 2")
    first = _last(_checker(lake, catalog, table))
    assert (first.added.files, first.removed.files, first.altered.files) == (0, 0, 1)
    assert (first.only_deletes, first.had_deletes, first.deleted_rows) == (True, False, 1)
    lake.sql(f"DELETE FROM {name} WHERE id = 1")
    checker = _checker(lake, catalog, table)
    second = _last(checker)
    assert (second.altered.files, second.had_deletes, second.deleted_rows) == (1, True, 2)
    lake.sql(f"CALL lake.system.rewrite_position_delete_files(table => 'h.{table}', options => map('rewrite-all', 'true'))")
    lake.sql(f"UPDATE {name} SET id = 9 WHERE id = 4")
    checker = _checker(lake, catalog, table)
    assert checker.wrong(checker.pairs()) == {}
    assert any("not only more" in kind for kind in checker.kinds)


def test_one_file_of_several_deletion_vectors(lake: Lake, catalog: Any) -> None:
    name = _created(lake, "vectors", 3, "merge-on-read")
    for at in (10, 20, 30):
        lake.sql(f"INSERT INTO {name} SELECT /*+ REPARTITION(1) */ * FROM VALUES ({at}, 'x'), ({at + 1}, 'y'), ({at + 2}, 'z')")
    lake.sql(f"DELETE FROM {name} WHERE id % 10 = 1")
    assert len(lake.sql(f"SELECT DISTINCT file_path FROM {name}.delete_files")) < 4
    lake.sql(f"DELETE FROM {name} WHERE id = 12")
    checker = _checker(lake, catalog, "vectors")
    # The other vectors lie in the same file as the one that was replaced.
    assert _last(checker).altered.files == 1
    assert checker.wrong(checker.pairs()) == {}


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_a_compaction_between_is_left_out(lake: Lake, catalog: Any, mode: str) -> None:
    table = f"compacted_{mode[:4]}"
    name = _created(lake, table, 2, mode)
    for at in (10, 20):
        lake.sql(f"INSERT INTO {name} VALUES ({at}, 'x'), ({at + 1}, 'y')")
        lake.sql(f"DELETE FROM {name} WHERE id = {at}")
        lake.sql(f"CALL lake.system.rewrite_data_files(table => 'h.{table}', options => map('rewrite-all', 'true'))")
    lake.sql(f"INSERT INTO {name} VALUES (30, 'x')")
    checker = _checker(lake, catalog, table)
    ids = list(checker.table.snapshots)
    change = catalog.changes.between(checker.table, ids[-2], ids[-1])
    assert change.added.rows == 1
    assert catalog.changes.between(checker.table, ids[-3], ids[-2]).is_empty
    assert catalog.changes.between(checker.table, ids[-3], ids[-1]).is_insert_only
    assert checker.wrong(checker.pairs()) == {}
    assert checker.kinds["stepwise"]


def test_a_partition_field_whose_column_was_dropped(lake: Lake, catalog: Any) -> None:
    """The old spec cannot be written by the current schema: entries are copied."""
    name = _created(lake, "orphaned", 2, "merge-on-read", "id INT, x STRING, p INT", "(1, 'a', 1), (2, 'b', 1), (3, 'c', 2)")
    lake.sql(f"ALTER TABLE {name} ADD PARTITION FIELD p")
    lake.sql(f"INSERT INTO {name} VALUES (4, 'd', 1), (5, 'e', NULL)")
    lake.sql(f"DELETE FROM {name} WHERE id IN (2, 4)")
    lake.sql(f"ALTER TABLE {name} DROP PARTITION FIELD p")
    lake.sql(f"ALTER TABLE {name} ALTER COLUMN p TYPE BIGINT")
    lake.sql(f"UPDATE {name} SET x = 'z' WHERE id = 5")
    checker = _checker(lake, catalog, "orphaned")
    assert checker.wrong(checker.pairs()) == {}


@pytest.mark.parametrize(("version", "mode"), [(1, "copy-on-write"), (2, "merge-on-read"), (3, "merge-on-read")])
def test_partition_values_of_every_type(lake: Lake, catalog: Any, version: int, mode: str) -> None:
    """Manifests write decimals without their length, and dates and times as numbers."""
    columns = "id INT, p DECIMAL(10, 3), q BOOLEAN, b BINARY, f FLOAT, w TIMESTAMP, d DATE, xs ARRAY<INT>"
    row = (
        "CAST({0}.125 AS DECIMAL(10, 3)), {0} > 2, X'0{0}FF', {0}.5F, TIMESTAMP'202{0}-01-01 0{0}:00:00', DATE'196{0}-05-0{0}', array({0})"
    )
    rows = [f"({at}, {row.format(at)})" for at in range(1, 6)]
    name = _created(lake, f"typed_{version}", version, mode, columns, rows[0])
    for field in ("p", "q", "b", "f", "hours(w)", "days(d)"):
        lake.sql(f"ALTER TABLE {name} ADD PARTITION FIELD {field}")
        lake.sql(f"INSERT INTO {name} VALUES {', '.join(rows)}, (9, NULL, NULL, NULL, NULL, NULL, NULL, NULL)")
    lake.sql(f"DELETE FROM {name} WHERE id IN (2, 9)")
    lake.sql(f"UPDATE {name} SET p = p + 1 WHERE id = 3")
    checker = _checker(lake, catalog, f"typed_{version}")
    assert checker.wrong(checker.pairs()) == {}


def test_a_table_that_was_upgraded_from_the_first_format(lake: Lake, catalog: Any) -> None:
    name = _created(lake, "upgraded", 1, "copy-on-write")
    lake.sql(f"INSERT INTO {name} VALUES (4, 'd'), (5, 'e')")
    for version in (2, 3):
        lake.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('format-version' = '{version}', 'write.delete.mode' = 'merge-on-read')")
        lake.sql(f"INSERT INTO {name} SELECT /*+ REPARTITION(1) */ * FROM VALUES ({version}0, 'd'), ({version}1, 'e')")
        lake.sql(f"DELETE FROM {name} WHERE id IN ({version}0, {version})")
    checker = _checker(lake, catalog, "upgraded")
    assert checker.wrong(checker.pairs()) == {}


def test_a_file_that_was_removed_and_came_back_with_a_branch(lake: Lake, catalog: Any) -> None:
    name = _created(lake, "branches", 2, "merge-on-read")
    lake.sql(f"ALTER TABLE {name} CREATE BRANCH aside")
    lake.sql(f"DELETE FROM {name} WHERE id = 1")
    lake.sql(f"DELETE FROM {name}.branch_aside WHERE id = 2")
    checker = _checker(lake, catalog, "branches")
    assert checker.wrong(checker.pairs()) == {}
    refs = checker.table.refs
    (part,) = catalog.changes.between(checker.table, refs["main"], refs["aside"]).parts
    # A row came back: what `main` deleted, `aside` has.
    assert (part.only_deletes, part.had_deletes, part.altered.files) == (False, True, 1)
    assert Counter(checker.kinds)["altered, had deletes, not only more"] > 0


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_that_took_the_place_of_others_add_to_them(lake: Lake, catalog: Any, version: int) -> None:
    """Iceberg writes the deletes of a data file into one new file, or vector: metadata alone does not show that it contains the old ones
    too."""
    name = _created(lake, f"replaced_{version}", version, "merge-on-read")
    lake.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.delete.granularity' = 'file')")
    lake.sql(f"DELETE FROM {name} WHERE id = 1")
    lake.sql(f"DELETE FROM {name} WHERE id = 2")
    checker = _checker(lake, catalog, f"replaced_{version}")
    assert checker.wrong(checker.pairs()) == {}
    before, after = list(checker.table.snapshots)[-2:]
    (forward,) = catalog.changes.between(checker.table, before, after).parts
    (back,) = catalog.changes.between(checker.table, after, before).parts
    assert (forward.only_deletes, forward.had_deletes) == (True, True)
    assert not back.only_deletes


def test_changes_are_read_without_spark(lake: Lake, catalog: Any) -> None:
    columns = "id INT, f FLOAT, d DOUBLE, n DECIMAL(9, 2), w DECIMAL(38, 10), s STRING, b BINARY, at TIMESTAMP, seen TIMESTAMP_NTZ, day DATE, ok BOOLEAN"
    rows = [
        f"({at}, {f}, {d}, {at}.50, -{at}.0000000001, {s}, X'FF0{at}', TIMESTAMP'2024-03-10 0{at}:30:00.000001', "
        f"TIMESTAMP_NTZ'2024-03-10 02:30:00', DATE'1582-10-1{at}', {at} > 3)"
        for at, (f, d, s) in enumerate(
            [("0.0F", "-0.0D", "''"), ("-0.0F", "DOUBLE('NaN')", "NULL"), ("NULL", "0.0D", "'\u00e9'"), ("1.5F", "NULL", "'a'")] * 2
        )
    ]
    name = _created(lake, "again", 2, "copy-on-write", columns, ", ".join([*rows, *rows[:3]]))
    zone = lake.session.conf.get("spark.sql.session.timeZone")
    lake.session.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        lake.sql(f"UPDATE {name} SET d = -d, s = coalesce(s, 'x'), at = at + INTERVAL 1 HOUR WHERE id % 2 = 0")
        lake.sql(f"DELETE FROM {name} WHERE id = 1")
        lake.sql(f"ALTER TABLE {name} ADD COLUMNS (extra STRING)")
        lake.sql(f"ALTER TABLE {name} RENAME COLUMN s TO t")
        lake.sql(f"ALTER TABLE {name} ALTER COLUMN id TYPE BIGINT")
        lake.sql(f"ALTER TABLE {name} ALTER COLUMN f TYPE DOUBLE")
        lake.sql(f"ALTER TABLE {name} ALTER COLUMN n TYPE DECIMAL(18, 2)")
        lake.sql(f"ALTER TABLE {name} ADD PARTITION FIELD ok")
        lake.sql(f"UPDATE {name} SET n = n + 1, extra = t, f = id WHERE id > 4")
        lake.sql(f"ALTER TABLE {name} DROP COLUMN b")
        lake.sql(f"UPDATE {name} SET seen = NULL, day = NULL WHERE ok")
        checker = _checker(lake, catalog, "again")
        assert checker.wrong(checker.pairs()) == {}
    finally:
        lake.session.conf.set("spark.sql.session.timeZone", zone)
    # All between two of the five snapshots and the empty table.
    assert checker.kinds["read here"] == 6 * 5


@pytest.mark.parametrize("version", [2, 3])
def test_rows_of_files_that_have_none_of_the_columns(lake: Lake, catalog: Any, version: int) -> None:
    """Every value that is read is NULL, but how many rows there are counts."""
    table = _created(lake, f"none_{version}", version, "merge-on-read")
    lake.sql(f"ALTER TABLE {table} ADD COLUMN y INT")
    lake.sql(f"DELETE FROM {table} WHERE id = 2")
    lake.sql(f"UPDATE {table} SET y = 5 WHERE id = 3")
    checker = _checker(lake, catalog, f"none_{version}")
    added, deleted, updated = checker.table.snapshots
    changes = catalog.changes

    def counts(old: int, new: int) -> tuple[int, int]:
        change = changes.between(checker.table, old, new)
        assert changes.reads_here(change, ["y"])
        net = changes.net_rows(change, ["y"])
        return net.plus.count, net.minus.count

    assert counts(added, deleted) == (0, 1)
    assert counts(deleted, updated) == (1, 1)
    assert counts(added, updated) == (1, 2)
    assert counts(updated, added) == (2, 1)


@pytest.mark.parametrize(("version", "metrics"), [(2, True), (3, False)], ids=["bounds", "no-bounds"])
def test_equality_deletes(lake: Lake, catalog: Any, version: int, metrics: bool) -> None:
    """Of one column and of two, of NULL, of keys that no row has, twice the same, and with new rows of the same key in the same commit."""
    table = f"by_key_{version}_{'with' if metrics else 'without'}"
    name = _created(lake, table, version, "merge-on-read", rows="(1, 'a'), (1, 'b'), (2, 'b'), (3, NULL), (NULL, 'd'), (NULL, NULL)")
    lake.sql(f"INSERT INTO {name} SELECT /*+ REPARTITION(1) */ * FROM VALUES (20, 'x'), (21, 'y')")
    write_by_key(lake.session, name, [{"id": 1}, {"id": 5}], metrics=metrics)
    first = _last(_checker(lake, catalog, table))
    assert (first.altered.files, first.only_deletes, first.had_deletes, first.deleted_rows) == (1 if metrics else 2, True, False, 2)
    write_by_key(lake.session, name, [{"id": 2, "x": "b"}, {"id": None, "x": None}], [{"id": 2, "x": "c"}], metrics=metrics)
    assert sorted(map(str, lake.sql(f"SELECT x FROM {name} WHERE id = 2 OR id IS NULL"))) == ["Row(x='c')", "Row(x='d')"]
    lake.sql(f"DELETE FROM {name} WHERE id = 20")
    write_by_key(lake.session, name, [{"x": None}, {"x": "y"}], [{"id": 4, "x": None}], metrics=metrics)
    lake.sql(f"CALL lake.system.rewrite_data_files(table => 'h.{table}', options => map('rewrite-all', 'true'))")
    write_by_key(lake.session, name, [{"id": None}], metrics=metrics)
    checker = _checker(lake, catalog, table)
    assert checker.wrong(checker.pairs()) == {}
    assert any("not only more" in kind for kind in checker.kinds)
    # All pairs of eight snapshots and the empty table, except the compaction, which changes nothing.
    assert checker.kinds["read here"] == 9 * 8 - 1


def test_equality_deletes_of_partitions(lake: Lake, catalog: Any) -> None:
    name = _created(lake, "by_key_in_partitions", 2, "merge-on-read", "id INT, x STRING, p INT", "(1, 'a', 1), (2, 'b', 1), (3, 'c', 2)")
    write_by_key(lake.session, name, [{"id": 2}])
    lake.sql(f"ALTER TABLE {name} ADD PARTITION FIELD p")
    lake.sql(f"INSERT INTO {name} VALUES (1, 'a', 1), (4, 'd', 1), (5, 'e', NULL)")
    write_by_key(lake.session, name, [{"id": 1}, {"id": 5}])
    lake.sql(f"INSERT INTO {name} VALUES (1, 'a', 1), (5, 'e', NULL)")
    lake.sql(f"ALTER TABLE {name} ALTER COLUMN id TYPE BIGINT")
    write_by_key(lake.session, name, [{"id": 1, "p": 1}, {"id": 3, "p": 2}])
    # A partition whose value is NULL is one of many: its delete removes no rows of the others.
    lake.sql(f"INSERT INTO {name} VALUES (7, 'a', 1), (7, 'e', NULL)")
    write_by_key(lake.session, name, [{"id": 7}], into=lambda path: path == "p=null")
    assert len(lake.sql(f"SELECT * FROM {name} WHERE id = 7")) == 1
    checker = _checker(lake, catalog, "by_key_in_partitions")
    assert checker.wrong(checker.pairs()) == {}


def test_a_key_of_a_type_that_is_not_compared_here(lake: Lake, catalog: Any) -> None:
    columns = "id INT, st STRUCT<a: INT>, f DOUBLE"
    name = _created(lake, "by_other_keys", 2, "merge-on-read", columns, "(1, named_struct('a', 1), 0.5), (2, named_struct('a', 2), 1.5)")
    write_by_key(lake.session, name, [{"f": 0.5}])
    checker = _checker(lake, catalog, "by_other_keys")
    assert checker.wrong(checker.pairs()) == {}
    before, after = list(checker.table.snapshots)[-2:]
    assert catalog.changes.net_rows(catalog.changes.between(checker.table, before, after), ["id"]) is None


def test_the_column_of_a_key_was_dropped(lake: Lake, catalog: Any) -> None:
    """Spark finds the rows: the files still have the column, and the schema does not."""
    name = _created(lake, "by_dropped_key", 2, "merge-on-read", "id INT, x STRING, y INT", "(1, 'a', 1), (2, 'b', 2)")
    write_by_key(lake.session, name, [{"y": 1}])
    lake.sql(f"ALTER TABLE {name} DROP COLUMN y")
    checker = _checker(lake, catalog, "by_dropped_key")
    assert checker.wrong(checker.pairs()) == {}
    before, after = list(checker.table.snapshots)[-2:]
    assert catalog.changes.net_rows(catalog.changes.between(checker.table, before, after), ["id"]) is None


def test_keys_of_text_that_is_not_valid(lake: Lake, catalog: Any) -> None:
    """Iceberg's reader replaces the wrong bytes, and then compares."""
    rows = "(1, CAST(X'61FF' AS STRING)), (2, CAST(X'61FE' AS STRING)), (3, 'a\ufffd'), (4, 'a')"
    name = _created(lake, "by_text", 2, "merge-on-read", rows=rows)
    write_by_key(lake.session, name, [{"x": "a\ufffd"}])
    assert [row.id for row in lake.sql(f"SELECT id FROM {name}")] == [4]
    checker = _checker(lake, catalog, "by_text")
    assert checker.wrong(checker.pairs()) == {}


def test_zeros_with_and_without_a_sign_are_two_partitions(lake: Lake, catalog: Any) -> None:
    name = _created(lake, "by_zero", 2, "merge-on-read", "id INT, f DOUBLE", "(9, 1.0)")
    lake.sql(f"ALTER TABLE {name} ADD PARTITION FIELD f")
    lake.sql(f"INSERT INTO {name} VALUES (1, CAST('-0.0' AS DOUBLE)), (2, CAST('-0.0' AS DOUBLE))")
    lake.sql(f"INSERT INTO {name} VALUES (1, CAST('0.0' AS DOUBLE))")
    write_by_key(lake.session, name, [{"id": 1}], into=lambda path: path == "f=0.0")
    assert len(lake.sql(f"SELECT id FROM {name} WHERE id = 1")) == 1
    checker = _checker(lake, catalog, "by_zero")
    assert checker.wrong(checker.pairs()) == {}


def test_keys_inside_structs_are_refused(lake: Lake, catalog: Any) -> None:
    """Spark applies them only to queries that read the struct."""
    columns = "id INT, st STRUCT<a: INT>"
    name = _created(lake, "by_nested", 2, "merge-on-read", columns, "(1, named_struct('a', 1)), (2, named_struct('a', 2))")
    write_by_key(lake.session, name, [{"st.a": 1}])
    checker = _checker(lake, catalog, "by_nested")
    before, after = list(checker.table.snapshots)[-2:]
    with pytest.raises(ChangeRefused) as refused:
        catalog.changes.between(checker.table, before, after)
    assert refused.value.code == "equality-deletes"
