"""Target -> SparkSession: started as fast as possible, without output on the user's terminal."""

from __future__ import annotations

import logging
import os
import re
import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from mvbuild.adapters.spark import cds, jars
from mvbuild.adapters.spark import sources as outside
from mvbuild.adapters.spark.catalog_conf import EXTENSIONS, catalog_conf, resolved
from mvbuild.adapters.spark.connect import connect, not_installed, reason_of
from mvbuild.adapters.spark.errors import message_of
from mvbuild.adapters.spark.java import find_java
from mvbuild.ports.engine import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from pyspark.sql import SparkSession

    from mvbuild.ports.sources import SourceLocation
    from mvbuild.project.loaded import Target

_LOCAL = re.compile(r"local(?:\[\s*(\d+|\*)\s*(?:,.*)?\])?\Z")
_PRIVATE = re.compile(r"spark\.(?:sql|hadoop)\.|d?fs\.|.*(?:secret|password|token|credential|access.?key|api.?key)", re.IGNORECASE)
"""Settings that may contain passwords. The arguments of spark-submit are in its command line, which all users of the machine can see."""
_REDACTED = "(?i)secret|password|token|credential|authorization|access.?key|account.?key|api.?key|sas|\\.header\\."
"""Spark's own pattern covers the first three and some keys; it applies to the settings in event logs and plans."""
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_LEAD = re.compile(r'(?:Exception in thread "\S+" |Caused by: |Error: )(?:[\w.$]+(?:Exception|Error): )?')
_DULL = re.compile(
    r"\s*(?:at |\.\.\. \d+ more|Using Spark's|Setting default|To adjust|WARNING: )|\d\d/\d\d/\d\d \S+ (?:WARN|INFO) |\s*$"
    r"|Error: (?:A fatal exception has occurred|Could not create the Java)"
)

_lock = Lock()
_on_class_path: set[Path] = set()
"""The jars that the JVM of this process was started with: a process has one JVM for all its sessions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Launch:
    """How a session is started. `class_path` is empty if executors fetch the jars themselves."""

    conf: Mapping[str, str]
    class_path: tuple[Path, ...]
    java_options: tuple[str, ...]


def start(
    target: Target,
    *,
    log_file: Path,
    env: Mapping[str, str],
    progress: Callable[[str], None] | None = None,
    sources: Collection[SourceLocation] = (),
) -> SparkSession:
    """Start a session of mvbuild's own. Raises EngineError if there is no Java, no jars, or Spark does not start."""
    say = progress or (lambda _: None)
    remote = target.spark.remote
    if remote and not remote.startswith("local"):
        say("connecting to Spark")
        return connect(
            remote, {"spark.sql.session.timeZone": "UTC", "spark.sql.debug.maxToStringFields": "10000", **target.spark.config}, say
        )
    launch = _prepare(target, env, say, sources)
    say("starting Spark")
    with _lock:
        if remote:
            return _start_local_server(remote, {**launch.conf, **_class_path_conf(launch)})
        return _start_classic(launch, log_file)


def session_conf(target: Target, sources: Collection[SourceLocation] = ()) -> dict[str, str]:
    """The whole configuration except for jars. The user's settings take precedence."""
    extensions = (EXTENSIONS, *outside.extensions(sources))
    master = target.spark.remote or target.spark.master
    return {
        "spark.app.name": "mvbuild",
        "spark.master": master,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.catalogImplementation": "in-memory",
        # Plans are compared; without this, the plan of a table with more than 25 columns would be truncated.
        "spark.sql.debug.maxToStringFields": "10000",
        "spark.redaction.regex": _REDACTED,
        "spark.sql.extensions": ",".join(extensions),
        **_local_conf(master),
        **catalog_conf(target.catalog_name, target.catalog),
        **outside.start_conf(sources, target.spark.config),
        **_user_conf(target.spark.config, extensions),
    }


def _user_conf(config: Mapping[str, str], extensions: Sequence[str]) -> dict[str, str]:
    conf = dict(config)
    if "spark.sql.extensions" in conf:
        lacking = [name for name in extensions if name not in conf["spark.sql.extensions"]]
        conf["spark.sql.extensions"] = ",".join([*lacking, conf["spark.sql.extensions"]])
    return conf


def _local_conf(master: str) -> dict[str, str]:
    match = _LOCAL.match(master)
    if match is None:
        return {}
    cores = _cores() if match[1] == "*" else int(match[1] or 1)
    return {
        "spark.driver.memory": "2g",
        # The machine's own name may resolve to an address that does not exist, in containers and with a VPN.
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # The default of 200 tasks per shuffle is for clusters; adaptive execution splits partitions that are too large.
        "spark.sql.shuffle.partitions": str(cores * 2),
    }


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def _prepare(target: Target, env: Mapping[str, str], say: Callable[[str], None], sources: Collection[SourceLocation]) -> _Launch:
    java = find_java(env)
    conf, config = session_conf(target, sources), target.spark.config
    cache, home = jars.cache_dir(env), jars.spark_home(env)
    of_target = jars.needed(resolved(target.catalog_name, target.catalog), config)
    wanted = tuple(dict.fromkeys((*of_target, *outside.needed(sources, config))))
    kept = all((cache / "jars" / artifact.file_name).is_file() for artifact in wanted)
    paths = jars.resolve(wanted, cache=cache, java=java.path, config=config, env=env, progress=say)
    # A folder that is never written to: the session stores its tables in Iceberg.
    conf.setdefault("spark.sql.warehouse.dir", str(Path(tempfile.gettempdir()) / "mvbuild-spark-warehouse"))
    if _LOCAL.match(conf["spark.master"]) is None or config.keys() & {"spark.jars", "spark.jars.packages"}:
        # Jars that load each other's classes must be added in the same way.
        conf["spark.jars"] = ",".join(filter(None, [config.get("spark.jars", ""), *map(str, paths)]))
        return _Launch(conf=conf, class_path=(), java_options=())
    return _Launch(conf=conf, class_path=paths, java_options=cds.options(java, paths, home, cache, train=kept))


def _class_path_conf(launch: _Launch) -> dict[str, str]:
    """In a local session the class path is enough, and saves copying 50 MB per session."""
    conf: dict[str, str] = {}
    if launch.class_path:
        joined = os.pathsep.join(filter(None, [launch.conf.get("spark.driver.extraClassPath", ""), *map(str, launch.class_path)]))
        conf["spark.driver.extraClassPath"] = joined
    if launch.java_options:
        own = launch.conf.get("spark.driver.extraJavaOptions", "")
        conf["spark.driver.extraJavaOptions"] = " ".join(filter(None, [own, *map(shlex.quote, launch.java_options)]))
    return conf


def _start_classic(launch: _Launch, log_file: Path) -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is not None:
        raise EngineError(
            "spark-start", "A Spark session is already running in this process.", help="Pass it: mvbuild.run(..., spark=session)."
        )
    log_file.parent.mkdir(parents=True, exist_ok=True)
    begin = log_file.stat().st_size if log_file.exists() else 0
    try:
        gateway = _gateway(launch, log_file)
        conf = SparkConf().setAll([(key, value) for key, value in launch.conf.items() if key != "spark.jars" or not launch.class_path])
        context = SparkContext(conf=conf, gateway=gateway)
        session = SparkSession(context)
    except EngineError:
        raise
    except Exception as exc:
        raise _not_started(exc, log_file, begin) from exc
    _silence()
    return session


def _gateway(launch: _Launch, log_file: Path) -> Any:
    """The JVM. Its output always goes to the log, because it has its own file descriptors."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:
        lacking = [path.name for path in launch.class_path if path not in _on_class_path]
        if lacking:
            raise EngineError("spark-start", f"The Spark of this process was started without {', '.join(lacking)}.", help="Restart Python.")
        return SparkContext._gateway
    command_line = {key: value for key, value in {**launch.conf, **_class_path_conf(launch)}.items() if not _PRIVATE.match(key)}
    with log_file.open("ab") as log:
        gateway = launch_gateway(SparkConf(loadDefaults=False).setAll(list(command_line.items())), {"stdout": log, "stderr": log})  # type: ignore[no-untyped-call]
    _on_class_path.update(launch.class_path)
    return gateway


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


def _silence() -> None:
    """PySpark prints each error of a query as a JSON document of ten thousand characters; mvbuild reports it itself."""
    from pyspark.logger import PySparkLogger

    for name in _LOGGERS:
        PySparkLogger.getLogger(name).disabled = True
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
