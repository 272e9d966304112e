"""SparkSession -> Engine: queries analyzed once, then written by Iceberg's own writer."""

from __future__ import annotations

import warnings
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mvbuild.adapters.spark.any_pyspark import all_settings, default_settings, explained, frame_of, is_remote, optimized, query, schema_of
from mvbuild.adapters.spark.errors import translated
from mvbuild.adapters.spark.releases import minor_of, release_of
from mvbuild.adapters.spark.session_objects import require_builtin, require_shared
from mvbuild.adapters.spark.types import iceberg_schema
from mvbuild.names import quote
from mvbuild.ports.catalog import CommitConflict
from mvbuild.ports.engine import EngineError, QueryError, Rows, Work
from mvbuild.ports.session import MEANING, MEANING_OF_ALL, SPARK_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from types import ModuleType

    from pyspark.sql import DataFrame, DataFrameWriterV2, SparkSession

    from mvbuild.adapters.spark.warm.lease import Lease
    from mvbuild.names import TableIdentifier
    from mvbuild.ports.engine import PreparedQuery
    from mvbuild.ports.states import Schema


class SparkEngine:
    """The engine port. `own`: `close` stops the session; otherwise it belongs to the caller and is left running. `masked` hides secrets in
    Spark's messages. `lease`: the session is on a warm engine, which `close` leaves to other commands."""

    def __init__(self, session: SparkSession, *, own: bool, masked: Callable[[str], str] = str, lease: Lease | None = None) -> None:
        self.session = session
        self._own = own
        self._lease = lease
        self._translated = partial(translated, masked=masked, why_lost=lease.why_lost if lease else str)
        self._defaults: dict[str, str] = {}

    @cached_property
    def _version(self) -> str:
        """The minor version of Spark. Over Spark Connect, each question for it is a request."""
        return minor_of(self.session.version)

    @property
    def copies_by_position(self) -> bool:
        return release_of(self._version).copies_by_position

    def prepare(self, sql: str) -> PreparedQuery:
        with self._translated(sql):
            frame = query(self.session, sql)
            schema = iceberg_schema(schema_of(frame))
            require_builtin(self._version, sql)
            if not self._own:
                require_shared(self.session, frame, sql)
        return SparkQuery(sql, frame, schema, self._translated)

    def rows(self, sql: str, limit: int) -> Rows:
        with self._translated(sql):
            frame = query(self.session, sql)
            found = frame.limit(max(limit, 0)).collect()
            # Over Spark Connect the names of a frame are one more request.
            return Rows(columns=tuple(found[0].__fields__ if found else frame.columns), rows=tuple(tuple(row) for row in found))

    def work(self) -> Work | None:
        """From Spark's own store of active stages. A Connect session has none."""
        try:
            stages = self.session.sparkContext._jsc.sc().statusStore().activeStages()
            active = [stages.apply(at) for at in range(stages.size())]
            if not active:
                return None
            return Work(
                tasks=sum(stage.numTasks() for stage in active),
                tasks_done=sum(stage.numCompleteTasks() for stage in active),
                rows_read=sum(stage.inputRecords() + stage.shuffleReadRecords() for stage in active),
                bytes_read=sum(stage.inputBytes() + stage.shuffleReadBytes() for stage in active),
                rows_written=sum(stage.outputRecords() for stage in active),
            )
        except Exception:  # noqa: BLE001 - it may be stopping, and nothing depends on this
            return None

    def settings(self) -> Mapping[str, str]:
        with self._translated(""):
            return {**settings_of(self.session, self._defaults), SPARK_VERSION: self._version}

    def explain(self, sql: str, *, physical: bool = True) -> str:
        with self._translated(sql):
            return explained(self.session, sql) if physical else optimized(self.session, sql)

    def frame(self, sql: str) -> DataFrame:
        with self._translated(sql):
            frame = query(self.session, sql)
            # A Connect session only analyzes on demand: without this line its errors would appear when the rows are fetched.
            _ = frame.schema
            return frame

    def call(self, statement: str) -> Rows:
        with self._translated(statement):
            frame = self.session.sql(statement)
            return Rows(columns=tuple(frame.columns), rows=tuple(tuple(row) for row in frame.collect()))

    def define(self, name: str, sql: str) -> None:
        with self._translated(sql):
            query(self.session, sql).createOrReplaceTempView(name)

    def keep(self, name: str, sql: str, *, at_once: bool = True) -> None:
        from pyspark import StorageLevel

        with self._translated(sql):
            frame = query(self.session, sql).persist(StorageLevel.MEMORY_AND_DISK)
            # Not CACHE TABLE, whose view is text: each query that reads the name would analyze it again.
            frame.createOrReplaceTempView(name)
            if at_once:
                frame.count()

    def supply(self, name: str, data: Any) -> None:
        with self._translated(""):
            frame_of(self.session, data).createOrReplaceTempView(name)

    def fetch(self, sql: str, limit: int) -> Any | None:
        with self._translated(sql):
            frame = query(self.session, sql).limit(limit + 1)
            if not hasattr(frame, "toArrow"):
                return None  # new in Spark 4; without it Spark writes the rows
            found = frame.toArrow()
        return found if found.num_rows <= limit else None

    def forget(self, name: str) -> None:
        with suppress(EngineError, QueryError), self._translated(""):
            self.session.catalog.dropTempView(name)  # including its persisted rows

    def close(self) -> None:
        if not self._own:
            return
        # If the JVM is gone already, the error that reported it is the one to show.
        with suppress(EngineError), self._translated(""), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.session.stop()
        if self._lease:
            self._lease.release()


def settings_of(session: SparkSession, defaults: dict[str, str] | None = None) -> dict[str, str]:
    """`Engine.settings` for a session, without its version. `defaults`: those that were asked for before; gets the others."""
    defaults = {} if defaults is None else defaults
    found = {key: value for key, value in all_settings(session).items() if key in MEANING or key.startswith(MEANING_OF_ALL)}
    unset = [key for key in MEANING if key not in found]
    defaults.update(default_settings(session, [key for key in unset if key not in defaults]))
    return {**{key: defaults[key] for key in unset}, **found}


class SparkQuery:
    """A query that Spark has analyzed."""

    def __init__(self, sql: str, frame: DataFrame, schema: Schema, translated: Callable[[str], AbstractContextManager[None]]) -> None:
        self._sql = sql
        self._translated = translated
        self._frame = frame
        self.schema = schema

    def overwrite(self, table: TableIdentifier, branch: str | None, summary: Mapping[str, str], *, where: str = "true") -> None:
        with self._writing(table):
            self._writer(table, branch, summary).overwrite(self._functions().expr(where))

    def append(self, table: TableIdentifier, branch: str | None, summary: Mapping[str, str]) -> None:
        with self._writing(table):
            self._writer(table, branch, summary).append()

    @contextmanager
    def _writing(self, table: TableIdentifier) -> Iterator[None]:
        """A table that is not found now was there before: another process dropped it, and the query has no error."""
        try:
            with self._translated(self._sql):
                yield
        except QueryError as exc:
            if exc.condition == "TABLE_OR_VIEW_NOT_FOUND" and f"`{table.name}`" in str(exc):
                raise CommitConflict(str(exc)) from exc
            raise

    def _functions(self) -> ModuleType:
        """The functions for the frame's kind: PySpark chooses by the environment, but one process may have sessions of both kinds."""
        return import_module("pyspark.sql.connect.functions" if is_remote(self._frame) else "pyspark.sql.functions")

    def _writer(self, table: TableIdentifier, branch: str | None, summary: Mapping[str, str]) -> DataFrameWriterV2:
        # Options of the write, and not of the session, which other threads use at the same time.
        writer = self._frame.writeTo(table.sql if branch is None else f"{table.sql}.{quote(f'branch_{branch}')}")
        for key, value in summary.items():
            writer = writer.option(f"snapshot-property.{key}", value)
        return writer
