from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timezone
from decimal import Decimal
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.schema import Schema

from mvbuild.adapters.spark.engine import SparkEngine
from mvbuild.adapters.spark.releases import installed_release
from mvbuild.equivalence.spark_proof import plan_difference
from mvbuild.names import TableIdentifier
from mvbuild.ports.catalog import CommitConflict
from mvbuild.ports.engine import QueryError

pytestmark = pytest.mark.proof

IS_SPARK_4 = installed_release().spark != "3.5"
_numbers = count()


@pytest.fixture(scope="module", autouse=True)
def base(lake: Any) -> None:
    lake.sql("CREATE NAMESPACE IF NOT EXISTS lake.eng")
    lake.sql("CREATE TABLE lake.eng.base AS SELECT id, id % 3 AS k, CAST(id AS STRING) AS s FROM range(100)")


@pytest.fixture
def name() -> str:
    return f"t{next(_numbers)}"


def identifier(name: str) -> TableIdentifier:
    return TableIdentifier("lake", ("eng",), name)


def create(lake: Any, name: str, sql: str, branch: str | None = None) -> Any:
    """A table with the schema of a query; with a branch it has an empty first snapshot."""
    schema = Schema.model_validate(lake.engine.prepare(sql).schema)
    table = lake.catalog.create_table(f"eng.{name}", schema)
    if branch:
        lake.engine.prepare(f"SELECT * FROM ({sql}) WHERE false").overwrite(identifier(name), None, {})
        table.refresh()
        table.manage_snapshots().create_branch(table.metadata.current_snapshot_id, branch).commit()
    return table


def failed(lake: Any, sql: str, table: str | None = None) -> QueryError:
    def attempt() -> None:
        query = lake.engine.prepare(sql)
        if table:
            query.overwrite(identifier(table), None, {})
        else:
            lake.engine.rows(sql, 1000)

    with pytest.raises(QueryError) as caught:
        attempt()
    return caught.value


def shown(error: QueryError, sql: str) -> str:
    assert error.start is not None
    assert error.end is not None
    return sql[error.start : error.end]


def test_a_branch_is_overwritten_and_main_is_not(lake: Any, name: str) -> None:
    sql = "SELECT k, count(*) AS c FROM lake.eng.base GROUP BY k"
    table = create(lake, name, sql, branch="audit")
    main = table.refresh().metadata.current_snapshot_id
    query = lake.engine.prepare(sql)
    query.overwrite(identifier(name), "audit", {"refresh-state": '{"a": "ä\\" }', "other.key": "1"})
    table.refresh()
    head = table.metadata.refs["audit"].snapshot_id
    assert table.metadata.current_snapshot_id == main
    assert head != main
    summary = table.metadata.snapshot_by_id(head).summary.additional_properties
    assert summary["refresh-state"] == '{"a": "ä\\" }'
    assert summary["other.key"] == "1"
    assert lake.engine.rows(f"SELECT * FROM lake.eng.{name}", 5).rows == ()
    assert lake.engine.rows(f"SELECT * FROM lake.eng.{name} VERSION AS OF {head} ORDER BY k", 5).rows == ((0, 34), (1, 33), (2, 33))


def test_a_write_replaces_everything_that_was_there(lake: Any, name: str) -> None:
    create(lake, name, "SELECT 1 AS a, 'x' AS b")
    for value in (1, 2):
        lake.engine.prepare(f"SELECT {value} AS a, 'x' AS b").overwrite(identifier(name), None, {})
    assert lake.engine.rows(f"SELECT * FROM lake.eng.{name}", 5).rows == ((2, "x"),)


def test_a_partitioned_and_sorted_table_is_replaced_as_a_whole(lake: Any, name: str) -> None:
    lake.sql(f"CREATE TABLE lake.eng.{name} (k BIGINT, id BIGINT) PARTITIONED BY (k, bucket(4, id))")
    lake.sql(f"ALTER TABLE lake.eng.{name} WRITE ORDERED BY id")
    lake.engine.prepare("SELECT k, id FROM lake.eng.base").overwrite(identifier(name), None, {})
    lake.engine.prepare("SELECT k, id FROM lake.eng.base WHERE k = 1").overwrite(identifier(name), None, {})
    assert lake.engine.rows(f"SELECT DISTINCT k FROM lake.eng.{name}", 5).rows == ((1,),)


def test_columns_go_by_name(lake: Any, name: str) -> None:
    create(lake, name, "SELECT 1 AS a, 2 AS b")
    lake.engine.prepare("SELECT 20 AS B, 10 AS a").overwrite(identifier(name), None, {})
    assert lake.engine.rows(f"SELECT a, b FROM lake.eng.{name}", 5).rows == ((10, 20),)


@pytest.mark.parametrize("branch", [None, "audit"])
def test_no_rows_make_a_snapshot_too(lake: Any, name: str, branch: str | None) -> None:
    table = create(lake, name, "SELECT 1 AS a", branch=branch)
    before = len(table.refresh().metadata.snapshots)
    for number in (1, 2):
        lake.engine.prepare("SELECT 1 AS a WHERE false").overwrite(identifier(name), branch, {"mark": str(number)})
    table.refresh()
    assert len(table.metadata.snapshots) == before + 2
    head = table.metadata.refs[branch].snapshot_id if branch else table.metadata.current_snapshot_id
    assert table.metadata.snapshot_by_id(head).summary.additional_properties["mark"] == "2"


def test_names_that_need_quotes(lake: Any) -> None:
    create(lake, "order", "SELECT 1 AS `a b`", branch="x-1")
    lake.engine.prepare("SELECT 2 AS `a b`").overwrite(identifier("order"), "x-1", {})
    assert lake.catalog.load_table("eng.order").metadata.refs["x-1"]


def test_types_survive_the_way_through_iceberg(lake: Any, name: str) -> None:
    sql = """SELECT true AS bo, CAST(1 AS TINYINT) AS ti, CAST(2 AS SMALLINT) AS sm, 3 AS i, 4L AS l, CAST(0.5 AS FLOAT) AS f, 0.25D AS d,
        CAST(1.25 AS DECIMAL(10, 2)) AS de, 's' AS st, CAST('v' AS VARCHAR(3)) AS vc, X'00FF' AS bi, DATE'2024-02-29' AS da,
        TIMESTAMP'2024-02-29 10:00:00' AS ts, TIMESTAMP_NTZ'2024-02-29 10:00:00' AS tn,
        named_struct('x', 1, 'y', array('q')) AS sr, array(named_struct('z', 1.5)) AS ar, map('k', array(1, 2)) AS ma"""
    table = create(lake, name, sql)
    lake.engine.prepare(sql).overwrite(identifier(name), None, {})
    types = {f.name: str(f.field_type) for f in table.schema().fields}
    assert types["ti"] == "int"
    assert types["de"] == "decimal(10, 2)"
    assert types["ts"] == "timestamptz"
    assert types["tn"] == "timestamp"
    found = lake.engine.rows(f"SELECT * FROM lake.eng.{name}", 5)
    row = dict(zip(found.columns, found.rows[0], strict=True))
    assert row == lake.sql(sql)[0].asDict()
    assert row["de"] == Decimal("1.25")
    assert row["da"] == date(2024, 2, 29)
    assert lake.engine.prepare(f"SELECT * FROM lake.eng.{name}").schema == lake.engine.prepare(sql).schema


def test_all_columns_that_cannot_be_stored_are_named(lake: Any) -> None:
    columns = {"n": "NULL AS n", "o.element": "array(NULL) AS o"}
    if IS_SPARK_4:
        # Spark 3.5 fails to analyze `struct()`, has no variants, and does not say which column is an interval.
        columns |= {"e": "struct() AS e", "i.element": "array(make_interval(1)) AS i", "j": "parse_json('1') AS j"}
    error = failed(lake, f"SELECT 1 AS fine, {', '.join(columns.values())}")
    assert error.condition == "mvbuild.UNSTORABLE_COLUMN"
    assert all(f"'{column}'" in str(error) for column in columns)
    assert "'fine'" not in str(error)


def test_an_interval_cannot_be_stored(lake: Any) -> None:
    error = failed(lake, "SELECT 1 AS a, make_interval(1) AS i")
    assert error.condition == "mvbuild.UNSTORABLE_COLUMN"
    assert "interval" in str(error)


def test_columns_of_one_name(lake: Any) -> None:
    error = failed(lake, "SELECT 1 AS a, 2 AS A, 3 AS b")
    assert error.condition == "mvbuild.DUPLICATE_COLUMN"
    assert str(error) == "2 columns are named 'a' or 'A'; names must differ in more than case."


_NOPE = (
    f"A {'column, variable, or' if IS_SPARK_4 else 'column or'} function parameter with name `nope` cannot be resolved. "
    "Did you mean one of the following? [`id`, `k`, `s`]."
)


@pytest.mark.parametrize(
    ("sql", "condition", "place", "message"),
    [
        (
            "SELECT id,\n  nope FROM lake.eng.base",
            "UNRESOLVED_COLUMN.WITH_SUGGESTION",
            "nope",
            _NOPE,
        ),
        (
            "SELECT '\U0001f600é' AS e, nope FROM lake.eng.base",
            "UNRESOLVED_COLUMN.WITH_SUGGESTION",
            "nope",
            _NOPE,
        ),
        ("SELECT 1\nFROM lake.eng.base WHERE id id", "PARSE_SYNTAX_ERROR", "id", "Syntax error at or near 'id': extra input 'id'."),
        ("SELECT count(", "PARSE_SYNTAX_ERROR", "(", "Syntax error at or near end of input."),
        (
            "SELECT * FROM lake.eng.missing",
            "TABLE_OR_VIEW_NOT_FOUND",
            "lake.eng.missing",
            "The table or view `lake`.`eng`.`missing` cannot be found. Verify the spelling and correctness of the schema and catalog.",
        ),
        (
            "SELECT k,\n id / (k - k) AS x FROM lake.eng.base",
            "DIVIDE_BY_ZERO",
            "id / (k - k)",
            "Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL instead.",
        ),
        (
            "SELECT CAST('a' || s AS INT) AS x FROM lake.eng.base",
            "CAST_INVALID_INPUT",
            "CAST('a' || s AS INT)",
            'The value \'a0\' of the type "STRING" cannot be cast to "INT" because it is malformed. '
            "Correct the value as per the syntax, or change its target type. "
            "Use `try_cast` to tolerate malformed input and return NULL instead.",
        ),
        (
            "SELECT id FROM lake.eng.base WHERE id > (SELECT id FROM lake.eng.base)",
            "SCALAR_SUBQUERY_TOO_MANY_ROWS",
            "(SELECT id FROM lake.eng.base)",
            "More than one row returned by a subquery used as an expression.",
        ),
    ],
)
def test_errors_have_their_exact_place(lake: Any, sql: str, condition: str, place: str, message: str) -> None:
    error = failed(lake, sql)
    assert error.condition == condition
    assert shown(error, sql) == place
    assert str(error) == message


def test_an_error_of_a_write_has_the_place_in_the_query(lake: Any, name: str) -> None:
    sql = "SELECT k, CAST(id / (k - 1) AS BIGINT) AS q FROM lake.eng.base"
    create(lake, name, sql)
    error = failed(lake, sql, name)
    assert (error.condition, shown(error, sql)) == ("DIVIDE_BY_ZERO", "id / (k - 1)")


def test_an_error_without_a_place(lake: Any) -> None:
    error = failed(lake, "SELECT id FROM lake.eng.base GROUP BY k")
    assert (error.condition, error.start) == ("MISSING_AGGREGATION", None)
    assert str(error).startswith('The non-aggregating expression "id" is based on columns')
    assert failed(lake, "SELECT CAST(raise_error('boo') AS INT) AS x FROM lake.eng.base").args == ("boo",)


def test_an_error_that_is_not_sparks_own(lake: Any) -> None:
    assert str(failed(lake, "SELECT * FROM lake.eng.base VERSION AS OF 12345")) == "Cannot find snapshot with ID 12345"


def test_a_branch_that_is_gone_is_a_conflict(lake: Any, name: str) -> None:
    create(lake, name, "SELECT 1 AS a")
    with pytest.raises(CommitConflict, match="gone"):
        lake.engine.prepare("SELECT 1 AS a").overwrite(identifier(name), "gone", {})


def test_rows_are_limited(lake: Any) -> None:
    found = lake.engine.rows("SELECT id FROM lake.eng.base ORDER BY id", 3)
    assert (found.columns, found.rows) == (("id",), ((0,), (1,), (2,)))
    assert lake.engine.rows("SELECT id FROM lake.eng.base", 0).rows == ()


def test_four_threads_write_at_once(lake: Any) -> None:
    tables = [f"p{n}" for n in range(12)]
    for table in tables:
        create(lake, table, "SELECT 1L AS n, 's' AS s", branch="b")

    def write(table: str) -> None:
        query = lake.engine.prepare(f"SELECT id AS n, '{table}' AS s FROM lake.eng.base")
        query.overwrite(identifier(table), "b", {"who": table})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, tables))
    for table in tables:
        metadata = lake.catalog.load_table(f"eng.{table}").metadata
        head = metadata.snapshot_by_id(metadata.refs["b"].snapshot_id)
        assert head.summary.additional_properties["who"] == table
        assert head.summary.additional_properties["total-records"] == "100"


def test_a_caller_can_keep_the_session(lake: Any) -> None:
    from mvbuild.adapters.spark import start_engine

    engine = start_engine(lake.target, log_file=lake.log_file, env=os.environ, spark=lake.session)
    engine.close()
    assert engine.rows("SELECT 1 AS a", 1).rows == ((1,),)


def test_the_sqlite_driver_waits_for_a_busy_file(lake: Any, name: str) -> None:
    import sqlite3

    create(lake, name, "SELECT 1 AS a")
    db = sqlite3.connect(lake.file, isolation_level=None, check_same_thread=False)
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    db.execute("BEGIN IMMEDIATE")
    release = threading.Timer(4.5, db.rollback)  # the driver's own patience is 3 seconds
    release.start()
    started = time.monotonic()
    lake.engine.prepare("SELECT 2 AS a").overwrite(identifier(name), None, {})
    assert time.monotonic() - started > 3.5
    release.join()
    db.close()


def test_the_session_is_what_was_asked_for(lake: Any) -> None:
    conf = lake.session.conf
    assert conf.get("spark.driver.memory") == "1800m"  # the user's, not ours
    assert conf.get("spark.sql.shuffle.partitions") == "2"
    assert conf.get("spark.sql.session.timeZone") == "UTC"
    assert lake.session.sparkContext.appName == "mvbuild"


_TARGET = """
import os, sys
from pathlib import Path
from mvbuild.adapters.spark import start_engine
from mvbuild.ports.engine import EngineError, QueryError
from mvbuild.project.loaded import SparkSettings, Target
root = Path(sys.argv[1])
catalog = {"type": "sql", "uri": f"sqlite:///{root}/c.db", "warehouse": f"{root}/wh"}
spark = SparkSettings(master="local[1]", config=dict(pair.split("=") for pair in sys.argv[2:]))
target = Target(name="t", catalog_name="lake", catalog=catalog, namespace=("n",), spark=spark, threads=1, embedded=True)
"""

_QUIET = """
engine = start_engine(target, log_file=root / "logs" / "spark.log", env=os.environ)
try:
    engine.prepare("SELECT nope FROM range(3)")
except QueryError as error:
    assert (error.start, error.end) == (7, 11)
engine.rows("SELECT id FROM range(3)", 1)
engine.close()
second = start_engine(target, log_file=root / "logs" / "spark.log", env=os.environ)
assert second.rows("SHOW NAMESPACES IN lake", 9).rows == ()
arguments = Path(f"/proc/{second.session.sparkContext._gateway.proc.pid}/cmdline").read_text()
assert "iceberg-spark-runtime" in arguments and "c.db" not in arguments, "catalog settings may hold passwords"
os.kill(second.session.sparkContext._gateway.proc.pid, 9)
try:
    second.rows("SELECT id FROM range(3)", 1)
except EngineError as error:
    assert error.code == "spark-start", error
else:
    raise AssertionError("the JVM is dead")
second.close()
"""

_BROKEN = """
try:
    start_engine(target, log_file=root / "logs" / "spark.log", env=os.environ)
except EngineError as error:
    assert error.code == "spark-start", error.code
    print(error)
"""


def python(tmp_path: Path, code: str, *config: str) -> tuple[int, str, str]:
    """Run code in a process and a working directory of its own."""
    here, root = tmp_path / "here", tmp_path / "root"
    here.mkdir()
    root.mkdir()
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "compiler")}
    command = [sys.executable, "-W", "error::UserWarning", "-c", _TARGET + code, str(root), *config]
    done = subprocess.run(command, cwd=here, env=env, capture_output=True, text=True, check=False)
    assert list(here.iterdir()) == []
    return done.returncode, done.stdout, done.stderr


def test_nothing_is_printed_and_nothing_left_behind(tmp_path: Path) -> None:
    assert python(tmp_path, _QUIET) == (0, "", "")
    assert "Spark" in (tmp_path / "root" / "logs" / "spark.log").read_text()


@pytest.mark.parametrize(
    ("config", "reason"),
    [("spark.driver.memory=lots", "lots"), ("spark.serializer=no.Such", "no.Such"), ("spark.master=nowhere", "Master must")],
)
def test_a_spark_that_does_not_start_says_why(tmp_path: Path, config: str, reason: str) -> None:
    code, out, err = python(tmp_path, _BROKEN, config)
    assert (code, err) == (0, "")
    assert out.startswith("Spark could not be started: ")
    assert reason in out
    assert out.endswith(f"(log: {tmp_path}/root/logs/spark.log)\n")
    assert len(out) < 400


@pytest.mark.parametrize("at_once", [True, False])
def test_what_is_kept_is_computed_once(lake: Any, at_once: bool) -> None:
    engine = lake.engine
    engine.keep("kept_once", "SELECT id * 2 AS doubled FROM range(3)", at_once=at_once)
    assert sorted(engine.rows("SELECT doubled FROM kept_once", 10).rows) == [(0,), (2,), (4,)]
    physical = engine.explain("SELECT count(*) FROM (SELECT doubled FROM kept_once) WHERE doubled > 1").partition("== Physical Plan ==")[2]
    assert "InMemoryTableScan" in physical
    engine.forget("kept_once")
    with pytest.raises(QueryError):
        engine.rows("SELECT doubled FROM kept_once", 1)
    assert "InMemoryTableScan" not in engine.explain("SELECT id * 2 AS doubled FROM range(3)")


@pytest.mark.parametrize("sizes", [(2, 0, 3), (0, 2, 0, 3, 0), (0, 0), (0, 4)])
def test_rows_from_outside_are_all_there(lake: Any, sizes: tuple[int, ...]) -> None:
    """Spark stops at a batch without rows, and says nothing. A file of which no row is left makes such a batch."""
    import pyarrow as pa

    rows = pa.Table.from_batches([pa.record_batch([pa.array(range(size), pa.int64())], ["x"]) for size in sizes])
    lake.engine.supply("supplied", rows)
    assert lake.engine.rows("SELECT count(*), count(x) FROM supplied", 1).rows == ((sum(sizes), sum(sizes)),)
    lake.engine.forget("supplied")


def test_rows_from_outside_keep_their_types_whatever_the_session_takes_for_usual(lake: Any) -> None:
    """A time stamp without a zone stays one without, and one with a zone the same instant."""
    import pyarrow as pa

    moment = datetime(2024, 3, 10, 2, 30)
    rows = pa.table(
        {
            "a name": pa.array([1, None], pa.int32()),
            "local": pa.array([moment, None], pa.timestamp("us")),
            "instant": pa.array([moment.replace(tzinfo=timezone.utc), None], pa.timestamp("us", "UTC")),
            "amount": pa.array([Decimal("1.50"), None], pa.decimal128(38, 2)),
            "text": pa.array(["\u00e9", None], pa.large_string()),
        }
    )
    settings = {"spark.sql.session.timeZone": "America/New_York", "spark.sql.timestampType": "TIMESTAMP_NTZ"}
    before = {key: lake.session.conf.get(key) for key in settings}
    try:
        for key, value in settings.items():
            lake.session.conf.set(key, value)
        lake.engine.supply("supplied", rows)
        types = [f["type"] for f in lake.engine.prepare("SELECT * FROM supplied").schema["fields"]]
        assert types == ["int", "timestamp", "timestamptz", "decimal(38, 2)", "string"]
        text = "SELECT concat_ws(' ', `a name`, local, unix_micros(instant), amount, text) FROM supplied ORDER BY 1"
        assert lake.engine.rows(text, 9).rows == (("",), (f"1 2024-03-10 02:30:00 {1710037800 * 1_000_000} 1.50 \u00e9",))
    finally:
        for key, value in before.items():
            lake.session.conf.set(key, value)
    lake.engine.forget("supplied")
    with pytest.raises(QueryError):
        lake.engine.rows("SELECT * FROM supplied", 1)


@pytest.mark.parametrize("physical", [True, False])
@pytest.mark.parametrize("fields", ["5", "1000"])
def test_a_plan_has_all_columns(lake: Any, fields: str, physical: bool) -> None:
    """A shortened plan proves nothing. A thread of its own has no session in use: Spark then takes the settings of the first one."""
    own, key = lake.session.newSession(), "spark.sql.debug.maxToStringFields"
    own.conf.set(key, fields)
    columns = ", ".join(f"id + {at} AS c{at}" for at in range(40))
    before = lake.session.conf.get(key)
    lake.session.conf.set(key, "5")
    try:
        with ThreadPoolExecutor(4) as threads:
            explain = partial(SparkEngine(own, own=False).explain, physical=physical)
            plans = list(threads.map(explain, [f"SELECT {columns} FROM range({at})" for at in range(8)]))
    finally:
        lake.session.conf.set(key, before)
    assert all("c39" in plan and "more fields" not in plan for plan in plans)
    assert own.conf.get(key) == fields


def test_the_optimized_plan_alone_is_that_of_explain(lake: Any) -> None:
    engine = lake.engine
    lake.sql("CREATE TABLE lake.eng.plans (id BIGINT, at TIMESTAMP, v DECIMAL(10, 2), k STRING) USING iceberg PARTITIONED BY (days(at))")
    for sql in (
        "SELECT k, sum(v) / count(*) AS mean FROM lake.eng.plans WHERE at > TIMESTAMP '2026-01-01' GROUP BY k HAVING count(*) > 1",
        "SELECT a.id, b.k FROM lake.eng.plans a LEFT JOIN lake.eng.plans b ON a.id = b.id WHERE a.v IN (SELECT v FROM lake.eng.plans WHERE k LIKE 'a%')",
        "SELECT id, row_number() OVER (PARTITION BY k ORDER BY at DESC) AS n FROM lake.eng.plans ORDER BY id LIMIT 3",
    ):
        one, other = engine.explain(sql), engine.explain(sql, physical=False)
        assert "Physical Plan" not in other
        assert not plan_difference(one, other, physical=False)
    assert plan_difference(one, engine.explain("SELECT id FROM lake.eng.plans", physical=False), physical=False)
    with pytest.raises(QueryError, match="Division by zero"):
        engine.explain("SELECT 1 / 0 AS a", physical=False)


def test_a_plan_over_spark_connect_has_all_columns(lake: Any) -> None:
    from pyspark.sql.connect.session import SparkSession as RemoteSession

    session = RemoteSession.builder.remote(lake.remote).create()
    session.conf.set("spark.sql.debug.maxToStringFields", "5")
    columns = ", ".join(f"id + {at} AS c{at}" for at in range(40))
    plan = SparkEngine(session, own=False).explain(f"SELECT {columns} FROM range(3)")
    session.stop()
    assert "c39" in plan
    assert "more fields" not in plan
