"""PySpark exception + the given SQL -> QueryError with its place in that SQL, EngineError, or CommitConflict."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mvbuild.adapters.spark.any_pyspark import condition_in_jvm, condition_of, contexts_in_jvm, contexts_of
from mvbuild.dataclass import dataclass
from mvbuild.ports.catalog import CommitConflict
from mvbuild.ports.engine import EngineError, QueryError, SnapshotGone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Position = tuple[int, int]

_DROPPED = "org.apache.iceberg.exceptions.NoSuchTableException"
"""Another process dropped a table that was found before. Spark reports one that never was there by a condition of its own."""
_CONFLICTS = ("CommitFailedException", "Cannot use branch (does not exist)", "CommitStateUnknownException", _DROPPED)
_GONE = ("Cannot find snapshot with ID", "Cannot time travel Delta table to version")
_LOST = (
    "stopped SparkContext",
    "Answer from Java side is empty",
    "Connection refused",
    "does not exist in the JVM",
    "SparkContext was shut down",
    "Stream removed (RST_STREAM",
)
_PLACE = re.compile(r"\bline (\d+),? pos(?:ition)? (\d+)")
_OF_GRPC = re.compile(r'RPC that terminated with:.*?\bdetails = "(?P<said>.*?)"\n', re.DOTALL)
_CONDITION = re.compile(r"(?:\([\w.]+\) )?\[([A-Z][A-Z0-9_.]*)\] ")
_TOKEN = re.compile(r"`[^`]*`|[\w.]+|\S")
_NOISE = (
    re.compile(r"^\s*(?:[a-z]\w*(?:\.\w+)+(?:Exception|Error): )?\[[A-Z][A-Z0-9_.]*\] ", re.MULTILINE),
    re.compile(r"\s*SQLSTATE: \w{5}.*", re.DOTALL),
    re.compile(r"\(line \d+, pos \d+\)"),
    re.compile(r"\n== SQL.*|\nJVM stacktrace.*|\n\s*at [\w.$]+\(.*|; line \d+ pos \d+.*|\n'?[A-Z]\w+ .*\n\+- .*", re.DOTALL),
    re.compile(r" If necessary set \S+ to \S+ to bypass this error\.?"),
)
_VAGUE = ("TASK_WRITE_FAILED", "FAILED_EXECUTE_UDF", "INTERNAL_ERROR", "WRITING_JOB_ABORTED")
_DEPTH = 20


@dataclass(frozen=True, slots=True)
class _Failure:
    """One throwable in the chain of causes."""

    kind: str
    message: str
    condition: str
    place: Position | None


@contextmanager
def translated(sql: str, masked: Callable[[str], str] = str, why_lost: Callable[[], str] = str) -> Iterator[None]:
    """No exception of PySpark, Py4J or gRPC leaves this block, and no message with what `masked` hides. `why_lost`: why the engine stopped,
    if that is known."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, ConnectionError, EOFError) as exc:
        translated = _translate(exc, sql)
        if isinstance(translated, EngineError) and (reason := why_lost()):
            translated = EngineError(translated.code, f"Spark stopped while it was in use: {reason}")
        translated.args = tuple(masked(str(one)) for one in translated.args)
        raise translated from exc


def message_of(text: str) -> str:
    """The part of an error text for people: its first line, without condition, SQLSTATE, plan, query and stack.

    >>> message_of("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012; line 1 pos 7")
    'Division by zero.'

    Spark 3.5 adds the place of a syntax error.

    >>> message_of("[PARSE_SYNTAX_ERROR] Syntax error at or near ':'.(line 1, pos 8)")
    "Syntax error at or near ':'."
    """
    for noise in _NOISE:
        text = noise.sub("", text)
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def place_of(text: str, sql: str) -> Position | None:
    """`line 2 pos 1` (the column counts from 0) in an error text -> the token at that place."""
    match = _PLACE.search(text)
    lines = sql.split("\n")
    if match is None or not 1 <= int(match[1]) <= len(lines):
        return None
    offset = sum(len(line) + 1 for line in lines[: int(match[1]) - 1]) + int(match[2])
    # The end of the input is shown by its last character.
    offset = min(offset, len(sql.rstrip()) - 1)
    token = _TOKEN.match(sql, offset) if offset >= 0 else None
    return (offset, token.end()) if token else None


def _translate(exc: Exception, sql: str) -> Exception:
    if _is_lost(exc):
        return EngineError("spark-start", f"Spark stopped while it was in use: {message_of(_text(exc)) or type(exc).__name__}")
    failures = _classic(exc, sql) or [_portable(exc, sql)]
    for failure in failures:
        if any(sign in failure.kind or sign in failure.message for sign in _CONFLICTS):
            return CommitConflict(message_of(failure.message))
        if any(sign in failure.message for sign in _GONE):
            return SnapshotGone(message_of(failure.message))
        if any(sign in failure.message for sign in _LOST):
            return EngineError("spark-start", f"Spark stopped while it was in use: {message_of(failure.message)}")
        if failure.kind.endswith("OutOfMemoryError"):
            return QueryError(f"Spark ran out of memory ({failure.message}); set spark.driver.memory in the target to give it more.")
    return _query_error(failures)


def _query_error(failures: list[_Failure]) -> QueryError:
    """From the innermost cause that has a Spark error condition, otherwise from the innermost one with a message."""
    named = [f for f in failures if f.condition and not f.condition.startswith(_VAGUE)]
    translated = named or [f for f in failures if message_of(f.message)] or failures
    chosen = translated[-1]
    place = chosen.place or next((f.place for f in reversed(failures) if f.place), None)
    start, end = place or (None, None)
    return QueryError(message_of(chosen.message) or chosen.kind, condition=chosen.condition, start=start, end=end)


def _is_lost(exc: Exception) -> bool:
    from py4j.protocol import Py4JJavaError, Py4JNetworkError

    if isinstance(exc, (Py4JNetworkError, ConnectionError, EOFError)) or _is_unavailable(exc):
        return True
    return not isinstance(exc, Py4JJavaError) and not hasattr(exc, "_origin") and any(sign in _text(exc) for sign in _LOST)


def _is_unavailable(exc: Any) -> bool:
    """Whether a Connect server could not be reached, also after PySpark's retries."""
    code = getattr(exc, "getGrpcStatusCode", None)
    return code is not None and getattr(code(), "name", "") == "UNAVAILABLE"


def _classic(exc: Any, sql: str) -> list[_Failure]:
    """The chain of causes in the JVM, outermost first; empty over Spark Connect, which has no JVM to ask."""
    throwable = getattr(exc, "java_exception", None) or getattr(exc, "_origin", None)
    failures: list[_Failure] = []
    while throwable is not None and len(failures) < _DEPTH:
        failures.append(_failure(throwable, sql))
        throwable = throwable.getCause()
    return failures


def _failure(throwable: Any, sql: str) -> _Failure:
    from py4j.java_gateway import is_instance_of  # type: ignore[import-untyped]
    from pyspark import SparkContext

    kind, message = throwable.getClass().getName(), throwable.getMessage() or ""
    jvm, gateway = SparkContext._jvm, SparkContext._gateway
    if jvm is None or not is_instance_of(gateway, throwable, "org.apache.spark.SparkThrowable"):
        return _Failure(kind, message, "", place_of(message, sql))
    places = [_context_place(c, sql) for c in contexts_in_jvm(jvm, throwable)]
    place = next((p for p in places if p), None) or place_of(message, sql)
    return _Failure(kind, message, condition_in_jvm(jvm, throwable), place)


def _portable(exc: Any, sql: str) -> _Failure:
    """From the attributes of PySpark's exceptions alone, which Spark Connect transmits."""
    text = _text(exc)
    place = next((p for c in contexts_of(exc) if (p := _context_place(c, sql))), None)
    return _Failure(type(exc).__name__, text, condition_of(exc) or _condition_in(text), place or place_of(text, sql))


def _condition_in(text: str) -> str:
    """Over Spark Connect, Spark 3.5 sends the condition only within the message."""
    found = _CONDITION.match(text)
    return found[1] if found else ""


def _context_place(context: Any, sql: str) -> Position | None:
    """Spark counts code points, as Python does. Inside a view the offsets refer to the view's text, which the user did not write."""
    start, stop = int(context.startIndex()), int(context.stopIndex())
    if context.objectType() or not 0 <= start <= stop < len(sql):
        return None
    return start, stop + 1


def _text(exc: Exception) -> str:
    described = getattr(exc, "_desc", None) or getattr(exc, "desc", None)
    return said_by_server(described if isinstance(described, str) else str(exc))


def said_by_server(text: str) -> str:
    """The server's message within the text of a gRPC error."""
    found = _OF_GRPC.search(text)
    return found["said"] if found else text
