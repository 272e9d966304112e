"""Target -> SparkSession: started as fast as possible, without output on the user's terminal."""

from __future__ import annotations

import logging
import os
import re
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

from mvbuild.adapters.spark.any_pyspark import silence
from mvbuild.adapters.spark.connect import connect, not_installed, reason_of
from mvbuild.adapters.spark.errors import message_of
from mvbuild.adapters.spark.launch import command_line_conf, prepare
from mvbuild.diagnostics.secret_names import SECRET_NAMES
from mvbuild.ports.engine import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from mvbuild.adapters.spark.launch import Launch
    from mvbuild.ports.sources import SourceLocation
    from mvbuild.project.loaded import Target

_PRIVATE = re.compile(rf"spark\.(?:sql|hadoop)\.|d?fs\.|.*(?:{SECRET_NAMES})", re.IGNORECASE)
"""Settings that may contain passwords. The arguments of spark-submit are in its command line, which all users of the machine can see."""
_ASCII = ("C", "POSIX")
"""Locales in which Java knows only ASCII. Python uses UTF-8 in them."""
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_LEAD = re.compile(r'(?:Exception in thread "\S+" |Caused by: |Error: )(?:[\w.$]+(?:Exception|Error): )?')
_DULL = re.compile(
    r"\s*(?:at |\.\.\. \d+ more|Using Spark's|Setting default|To adjust|WARNING: )|\d\d/\d\d/\d\d \S+ (?:WARN|INFO) |\s*$"
    r"|Error: (?:A fatal exception has occurred|Could not create the Java)"
)

_lock = Lock()
_on_class_path: set[Path] = set()
"""The jars that the JVM of this process was started with: a process has one JVM for all its sessions."""


def start(
    target: Target,
    *,
    log_file: Path,
    env: Mapping[str, str],
    progress: Callable[[str], None] | None = None,
    sources: Collection[SourceLocation] = (),
    reads: int | None = None,
) -> SparkSession:
    """Start a session of mvbuild's own; see `launch.prepare` for `reads`. Raises EngineError if there is no Java, no jars, or Spark
    does not start."""
    say = progress or (lambda _: None)
    remote = target.spark.remote
    if remote and not remote.startswith("local"):
        say("connecting to Spark")
        return connect(
            remote, {"spark.sql.session.timeZone": "UTC", "spark.sql.debug.maxToStringFields": "10000", **target.spark.config}, say
        )
    launch = prepare(target, env, say, sources, reads=reads)
    say("starting Spark")
    with _lock:
        if remote:
            return _start_local_server(remote, {**launch.conf, **command_line_conf(launch)})
        return start_classic(launch, log_file)


def start_classic(launch: Launch, log_file: Path) -> SparkSession:
    """A session with a JVM that ends with this process. Raises EngineError if Spark does not start."""
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is not None:
        raise EngineError(
            "spark-start", "A Spark session is already running in this process.", help="Pass it: mvbuild.run(..., spark=session)."
        )
    try:
        log_file.parent.mkdir(parents=True, exist_ok=True)
        log_file.open("ab").close()
    except OSError as exc:
        raise EngineError("unwritable-target", f"Cannot write to {log_file}: {exc.strerror or exc}") from exc
    begin = log_file.stat().st_size
    try:
        gateway = _gateway(launch, log_file)
        conf = SparkConf().setAll([(key, value) for key, value in launch.conf.items() if key != "spark.jars" or not launch.class_path])
        context = SparkContext(conf=conf, gateway=gateway)
        session = SparkSession(context)
    except EngineError:
        raise
    except Exception as exc:
        raise _not_started(exc, log_file, begin) from exc
    return session


def _gateway(launch: Launch, log_file: Path) -> Any:
    """The JVM. Its output always goes to the log, because it has its own file descriptors."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:
        lacking = [path.name for path in launch.class_path if path not in _on_class_path]
        if lacking:
            raise EngineError("spark-start", f"The Spark of this process was started without {', '.join(lacking)}.", help="Restart Python.")
        return SparkContext._gateway
    command_line = {key: value for key, value in {**launch.conf, **command_line_conf(launch)}.items() if not _PRIVATE.match(key)}
    with log_file.open("ab") as log, _started_safely():
        gateway = launch_gateway(SparkConf(loadDefaults=False).setAll(list(command_line.items())), {"stdout": log, "stderr": log})  # type: ignore[no-untyped-call]
    _on_class_path.update(launch.class_path)
    return gateway


@contextmanager
def _started_safely() -> Iterator[None]:
    """PySpark forgets a JVM that is not ready yet when the user interrupts: nothing would ever end it. With LC_ALL=C, a JVM
    cannot open a file whose name has a letter that is not ASCII."""
    from subprocess import Popen

    from pyspark import java_gateway

    started: list[Popen[bytes]] = []

    class Started(Popen):  # type: ignore[type-arg]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            env = kwargs.get("env") or os.environ
            if env.get("LC_ALL") in _ASCII:
                kwargs["env"] = {**env, "LC_ALL": "C.UTF-8"}
            with _later_signals():
                super().__init__(*args, **kwargs)
                started.append(self)

    vars(java_gateway)["Popen"] = Started
    try:
        yield
    except BaseException:
        for process in started:
            process.kill()
        raise
    finally:
        vars(java_gateway)["Popen"] = Popen


@contextmanager
def _later_signals() -> Iterator[None]:
    """What interrupts between the start of a process and the return of its number would lose the number: it waits until the end."""
    import signal
    from threading import current_thread, main_thread

    if current_thread() is not main_thread():  # no signal interrupts it
        yield
        return
    came: list[int] = []
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    own = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in own:
        signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, handler in own.items():
            signal.signal(number, handler)
    for signalled in came:
        signal.raise_signal(signalled)


def _start_local_server(remote: str, conf: Mapping[str, str]) -> SparkSession:
    """`remote: local[2]`: a Spark Connect server in this process."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.remote(remote)
    for key, value in conf.items():
        if key != "spark.master":
            builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except ImportError as exc:
        raise not_installed(exc) from exc
    except Exception as exc:  # noqa: BLE001  PySpark and gRPC raise what they like
        raise EngineError("spark-start", f"Spark could not be started: {reason_of(exc)}") from None


def quiet() -> None:
    """PySpark 4 prints each error of a query as a JSON document of ten thousand characters; mvbuild reports it itself."""
    silence(_LOGGERS)
    logging.getLogger().addFilter(_not_of_py4j)


def _not_of_py4j(record: logging.LogRecord) -> bool:
    """Py4J logs the stack of a lost connection to the root logger; `errors` reports it in one sentence."""
    return "py4j" not in record.pathname


def _not_started(exc: Exception, log_file: Path, begin: int) -> EngineError:
    with log_file.open("rb") as log:
        log.seek(begin)
        lines = log.read().decode(errors="replace").splitlines()
    reason = _root_cause(exc) or last_words(lines) or message_of(str(exc)) or type(exc).__name__
    return EngineError("spark-start", f"Spark could not be started: {reason} (log: {log_file})")


def _root_cause(exc: Exception) -> str:
    """The root cause if the JVM runs but refuses the session."""
    throwable: Any = getattr(exc, "java_exception", None) or getattr(exc, "_origin", None)
    text = ""
    while throwable is not None:
        text, throwable = message_of(throwable.toString()) or text, throwable.getCause()
    return text


def last_words(lines: Sequence[str]) -> str:
    """The reason for a JVM's end in its log: the last cause, otherwise the last line that is neither a stack nor a warning."""
    telling = [_LEAD.sub("", line.strip()) for line in lines if not _DULL.match(line)]
    causes = [_LEAD.sub("", line.strip()) for line in lines if _LEAD.match(line) and not _DULL.match(line)]
    return (causes or telling or [""])[-1]
