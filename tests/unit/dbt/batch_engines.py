"""Tables, rows and queries of Spark -> results, on DuckDB or on Spark itself."""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot.errors import SqlglotError

from unit.dbt.batch_rows import IN_ARRAY, IN_MAP, Row, Table

_ON_DUCKDB = (
    "SET threads = 1; PRAGMA disable_optimizer",
    "CREATE OR REPLACE MACRO date_add(d, n) AS d + to_days(CAST(n AS INTEGER))",
    "CREATE OR REPLACE MACRO nvl(a, b) AS coalesce(a, b)",
)
_ON_SPARK = {
    "spark.master": "local[1]",
    "spark.ui.enabled": "false",
    "spark.log.level": "OFF",
    "spark.default.parallelism": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.ui.showConsoleProgress": "false",
}
"""Tables have a few rows: what is compiled for a query, or read in parallel, only costs time."""
_ARROW = {"DATE": pa.date32(), "BOOLEAN": pa.bool_(), "VARCHAR": pa.string(), "DOUBLE": pa.float64(), "BIGINT": pa.int64()}


class NotRunnable(Exception):
    """The message is a reason for a table of models."""


@dataclass(frozen=True)
class Result:
    columns: tuple[str, ...]
    rows: Sequence[Row]


class Engine(Protocol):
    """What fails raises NotRunnable."""

    name: str

    def load(self, table: Table, rows: Sequence[Row]) -> None: ...

    def query(self, sql: str) -> Result: ...

    def keep(self, name: str, sql: str) -> None:
        """Make a table of the rows that a query returns now; it may read the table itself."""

    def stop(self) -> None:
        """From another thread: end what runs."""


class DuckDb:
    name = "DuckDB"

    def __init__(self) -> None:
        self._connection = duckdb.connect(":memory:")
        for text in _ON_DUCKDB:
            self._connection.execute(text)

    def load(self, table: Table, rows: Sequence[Row]) -> None:
        made = arrow(table, rows, zone=None)
        self._connection.register("made", made)
        self._connection.execute(f'CREATE OR REPLACE TEMP TABLE "{table.name}" AS SELECT * FROM made')

    def query(self, sql: str) -> Result:
        """Times with a zone as text: DuckDB needs one more package to give them to Python."""
        text = _for_duckdb(sql)
        done = self._run(text)
        described = done.description or ()
        zoned = [str(column[1]) == "TIMESTAMP WITH TIME ZONE" for column in described]
        if any(zoned):
            texts = ", ".join(f"CAST(c{at} AS VARCHAR)" if is_zoned else f"c{at}" for at, is_zoned in enumerate(zoned))
            names = ", ".join(f"c{at}" for at in range(len(zoned)))
            done = self._run(f"SELECT {texts} FROM ({text}) AS r({names})")
        try:
            return Result(tuple(str(column[0]).lower() for column in described), done.fetchall())
        except duckdb.Error as exc:
            raise NotRunnable(short(exc)) from exc

    def keep(self, name: str, sql: str) -> None:
        self._run(f'CREATE OR REPLACE TEMP TABLE "{name}" AS {_for_duckdb(sql)}')

    def stop(self) -> None:
        self._connection.interrupt()

    def _run(self, sql: str) -> duckdb.DuckDBPyConnection:
        try:
            return self._connection.execute(sql)
        except duckdb.Error as exc:
            raise NotRunnable(short(exc)) from exc


class Spark:
    """One session of Spark; each model gets its own tables in it."""

    name = "Spark"

    def __init__(self, functions: Iterable[str] = ()) -> None:
        self._session = _spark().newSession()
        for function in functions:
            self._session.sql(f"CREATE TEMPORARY FUNCTION {function}")

    def load(self, table: Table, rows: Sequence[Row]) -> None:
        self._session.createDataFrame(arrow(table, rows, zone="UTC")).createOrReplaceTempView(table.name)

    def query(self, sql: str) -> Result:
        with _errors_of_spark():
            frame = self._session.sql(sql)
            return Result(tuple(name.lower() for name in frame.columns), [tuple(row) for row in frame.collect()])

    def keep(self, name: str, sql: str) -> None:
        """The rows stay in the JVM: a view of a query would be computed again, with other tables."""
        with _errors_of_spark():
            made = self._session.sql(sql)._jdf
            self._session._jsparkSession.createDataFrame(made.collectAsList(), made.schema()).createOrReplaceTempView(name)

    def stop(self) -> None:
        self._session.sparkContext.cancelAllJobs()


@functools.cache
def _spark() -> Any:
    from pyspark.sql import SparkSession

    logging.getLogger("SQLQueryContextLogger").disabled = True
    builder = SparkSession.builder
    for key, value in _ON_SPARK.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


@contextmanager
def _errors_of_spark() -> Iterator[None]:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, ValueError, OverflowError) as exc:
        raise NotRunnable(short(exc)) from exc


@functools.lru_cache(maxsize=64)
def _for_duckdb(sql: str) -> str:
    try:
        return sqlglot.parse_one(sql, read="spark").sql("duckdb", identify=True)
    except (SqlglotError, RecursionError) as exc:
        raise NotRunnable(f"sqlglot: {type(exc).__name__}") from exc


class Limit:
    """Stops an engine again and again, from a time on until it is ended."""

    def __init__(self, seconds: float, stop: Callable[[], None]) -> None:
        self._ended = threading.Event()
        self._seconds = seconds
        self._stop = stop
        threading.Thread(target=self._wait, daemon=True).start()

    def end(self) -> None:
        self._ended.set()

    def _wait(self) -> None:
        if self._ended.wait(self._seconds):
            return
        while not self._ended.wait(0.1):
            self._stop()


# Rows for both engines


def arrow(table: Table, rows: Sequence[Row], zone: str | None) -> pa.Table:
    paths = [f.path for f in table.fields]
    types = {**_ARROW, "TIMESTAMP": pa.timestamp("us", zone)}
    columns = _nested(zip(paths, (types[f.type] for f in table.fields), strict=True))
    schema = pa.schema([(name, _type(inner)) for name, inner in columns.items()])
    values = [{name: _value(inner) for name, inner in _nested(zip(paths, row, strict=True)).items()} for row in rows]
    return pa.Table.from_pylist(values, schema=schema)


class _Tree(dict[str, Any]):
    """Column or field -> its type or value, or the same of a struct; a dict of its own, as values may be dicts."""


def _nested(items: Iterable[tuple[tuple[str, ...], Any]]) -> _Tree:
    found = _Tree()
    for path, item in items:
        inner = found
        for part in path[:-1]:
            inner = inner.setdefault(part, _Tree())
        inner[path[-1]] = item
    return found


def _type(inner: Any) -> pa.DataType:
    if not isinstance(inner, _Tree):
        return inner
    if IN_ARRAY in inner:
        return pa.list_(_type(inner[IN_ARRAY]))
    if IN_MAP in inner:
        return pa.map_(pa.string(), _type(inner[IN_MAP]))
    return pa.struct([(name, _type(part)) for name, part in inner.items()])


def _value(inner: Any) -> Any:
    if not isinstance(inner, _Tree):
        return inner
    if IN_ARRAY in inner:
        return [_value(inner[IN_ARRAY])]
    if IN_MAP in inner:
        return [("key", _value(inner[IN_MAP]))]
    return {name: _value(part) for name, part in inner.items()}


def short(exc: Exception) -> str:
    return " ".join(str(exc).split())[:160] or type(exc).__name__


def unpacked(value: Any) -> Any:
    """What can be counted and compared: floats without their last digits, and lists and structs as tuples."""
    if isinstance(value, float):
        return round(value, 9) + 0.0 if value == value else "NaN"
    if isinstance(value, Mapping):
        return tuple((unpacked(k), unpacked(v)) for k, v in value.items())
    return tuple(unpacked(part) for part in value) if isinstance(value, list | tuple) else value
