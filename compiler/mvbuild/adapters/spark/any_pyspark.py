"""a session or an error of any PySpark from 3.5 -> what mvbuild asks of it: the few places where the API of the versions differs."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from mvbuild.adapters.spark.types import UNSTORABLE
from mvbuild.ports.engine import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def is_remote(of: object) -> bool:
    """Whether a session or a frame of PySpark belongs to a Spark Connect server."""
    return type(of).__module__.startswith("pyspark.sql.connect.")


def all_settings(session: Any) -> dict[str, str]:
    """Every setting of the session. The statement SET would hide the values of secrets."""
    conf = session.conf
    if not is_remote(session):
        # As one string: a map of the JVM is read by several calls for each key, 0.15 s in all.
        pairs = conf._jconf.getAll().mkString("\0").split("\0")
        return dict(pair.split(" -> ", 1) for pair in pairs if pair)
    if hasattr(conf, "getAll"):  # new in Spark 4
        return dict(conf.getAll)
    from pyspark.sql.connect import proto

    return dict(session.client.config(proto.ConfigRequest.Operation(get_all=proto.ConfigRequest.GetAll())).pairs)


def default_settings(session: Any, keys: Sequence[str]) -> dict[str, str]:
    """The values of settings that are not set; empty for one that this version of Spark does not know."""
    if not keys:
        return {}
    if is_remote(session):
        from pyspark.sql.connect import proto

        request = proto.ConfigRequest
        pairs = session.client.config(request.Operation(get_option=request.GetOption(keys=keys))).pairs
        return {key: value or "" for key, value in pairs}
    return {key: _default(session, key) for key in keys}


def _default(session: Any, key: str) -> str:
    """Requested without a default of the caller, which would hide Spark's."""
    from pyspark.errors import PySparkException

    try:
        return str(session.conf.get(key) or "")
    except PySparkException:
        return ""


def query(session: Any, sql: str) -> DataFrame:
    """A query as a frame; never a command. Over Spark Connect `session.sql` would send it, to learn whether it is a command."""
    if not is_remote(session):
        return session.sql(sql)  # type: ignore[no-any-return]
    from pyspark.sql.connect.plan import SQL

    return _remote_frame(session, SQL(sql))


def _remote_frame(session: Any, plan: Any) -> DataFrame:
    from pyspark.sql.connect.dataframe import DataFrame as RemoteFrame

    if hasattr(RemoteFrame, "withPlan"):  # until Spark 3.5
        return RemoteFrame.withPlan(plan, session)  # type: ignore[no-any-return]
    return RemoteFrame(plan, session)


def explained(session: Any, sql: str) -> str:
    """What EXPLAIN EXTENDED returns, with all columns: a session shows 25 of each list unless it is set otherwise."""
    plan = _explained(session, sql)
    if _SHORTENED not in plan:
        return plan
    with _ALL_FIELDS:
        before = session.conf.get(_FIELDS, None)
        session.conf.set(_FIELDS, "1000000")
        try:
            return _explained(session, sql)
        finally:
            session.conf.unset(_FIELDS) if before is None else session.conf.set(_FIELDS, before)


_FIELDS, _SHORTENED = "spark.sql.debug.maxToStringFields", " more fields"
_ALL_FIELDS = Lock()
"""Held while a session of the caller has another setting, so that two threads do not restore what the other one has set."""


def optimized(session: Any, sql: str) -> str:
    """The same, but in this process with the optimized plan alone: EXPLAIN also plans the execution, which takes about as long."""
    if is_remote(session):
        return explained(session, sql)
    plan = query(session, sql)._jdf.queryExecution().optimizedPlan().treeString()
    # Shortened by the settings of the session that this thread of the JVM used last.
    return f"== Optimized Logical Plan ==\n{plan}" if _SHORTENED not in plan else explained(session, sql)


def _explained(session: Any, sql: str) -> str:
    """As SQL in this process: PySpark's own call takes the settings of the session that the thread used last. Over Spark Connect SQL would
    be four requests instead of one."""
    if is_remote(session):
        frame: Any = query(session, sql)
        return str(frame._explain_string(extended=True))
    return str(session.sql(f"EXPLAIN EXTENDED {sql}").collect()[0][0])


def schema_of(frame: DataFrame) -> StructType:
    """The columns of a frame. PySpark 3.5 has no type for an interval of months, days and seconds, and does not say which column has it."""
    from pyspark.errors import PySparkValueError

    try:
        return frame.schema
    except PySparkValueError as exc:
        message = "A column has a type that this PySpark does not know, such as an interval; Iceberg cannot store it."
        raise QueryError(message, condition=UNSTORABLE) from exc


def frame_of(session: SparkSession, data: Any) -> DataFrame:
    """A PyArrow table as a DataFrame. `createDataFrame` accepts one since Spark 4."""
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyspark import __version__
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    # Spark stops at a batch without rows: those after it would be lost.
    data = pa.Table.from_batches([batch for batch in data.to_batches() if batch.num_rows], data.schema)
    # The type of a timestamp without a zone must not depend on the session's default type.
    schema = from_arrow_schema(data.schema, prefer_timestamp_ntz=True)
    if not __version__.startswith("3."):
        return session.createDataFrame(data, schema)
    data = data.cast(to_arrow_schema(schema))
    if is_remote(session):
        from pyspark.sql.connect.plan import LocalRelation

        return _remote_frame(session, LocalRelation(data, schema=schema.json()))
    return _through_a_file(session, data, schema.json())


def _through_a_file(session: Any, data: Any, schema: str) -> DataFrame:
    """As PySpark 3.5 does with a frame of pandas: the JVM reads the rows from a file, at once."""
    import pyarrow as pa
    from pyspark.sql import DataFrame

    handle, name = tempfile.mkstemp(suffix=".arrow")
    try:
        with os.fdopen(handle, "wb") as file, pa.ipc.new_stream(file, data.schema) as stream:
            stream.write_table(data)
        utils = session._jvm.PythonSQLUtils
        return DataFrame(utils.toDataFrame(utils.readArrowStreamFromFile(name), schema, session._jsparkSession), session)
    finally:
        Path(name).unlink()


def condition_of(exc: Any) -> str:
    """The error condition of a PySparkException, such as DIVIDE_BY_ZERO; empty if it has none."""
    ask = getattr(exc, "getCondition", None) or getattr(exc, "getErrorClass", None)
    return (ask() or "") if ask else ""


def contexts_of(exc: Any) -> list[Any]:
    """The places in SQL text that a PySparkException names. Spark 3.5 does not send them over Spark Connect."""
    ask = getattr(exc, "getQueryContext", None)
    return [c for c in (ask() or () if ask else ()) if c.contextType().name == "SQL"]


def condition_in_jvm(jvm: Any, throwable: Any) -> str:
    """The error condition of a SparkThrowable."""
    if _has_error_utils(jvm):
        return jvm.PythonErrorUtils.getCondition(throwable) or ""
    return (throwable.getCondition() if _has_method(throwable, "getCondition") else throwable.getErrorClass()) or ""


def contexts_in_jvm(jvm: Any, throwable: Any) -> list[Any]:
    """The places in SQL text that a SparkThrowable names. Spark 3.5 knows only such places."""
    if _has_error_utils(jvm):
        return [c for c in jvm.PythonErrorUtils.getQueryContext(throwable) if c.contextType().toString() == "SQL"]
    found = list(throwable.getQueryContext())
    return [c for c in found if not _has_method(c, "contextType") or c.contextType().toString() == "SQL"]


def _has_method(of: Any, name: str) -> bool:
    return any(method.getName() == name for method in of.getClass().getMethods())


def _has_error_utils(jvm: Any) -> bool:
    """New in Spark 4.1."""
    from py4j.java_gateway import JavaClass  # type: ignore[import-untyped]

    return isinstance(jvm.PythonErrorUtils, JavaClass)


def silence(loggers: Iterable[str]) -> None:
    """Turn off loggers of PySpark 4."""
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:
        return
    for name in loggers:
        PySparkLogger.getLogger(name).disabled = True


def retry(client: Any, times: int | None) -> None:
    """How often a Spark Connect client tries again to reach its server; None for PySpark's default."""
    if not hasattr(client, "set_retry_policies"):
        client._retry_policy["max_retries"] = 15 if times is None else times
        return
    from pyspark.sql.connect.client.retries import DefaultPolicy

    client.set_retry_policies([DefaultPolicy() if times is None else DefaultPolicy(max_retries=times)])
