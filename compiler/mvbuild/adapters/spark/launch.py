"""Target + environment -> Launch: the configuration, jars and JVM options with which Spark is started."""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from mvbuild.adapters.spark import cds, jars
from mvbuild.adapters.spark import sources as outside
from mvbuild.adapters.spark.catalog_conf import EXTENSIONS, catalog_conf, resolved
from mvbuild.adapters.spark.java import find_java
from mvbuild.adapters.spark.releases import installed_release, installed_version
from mvbuild.dataclass import dataclass
from mvbuild.diagnostics.secret_names import SECRET_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from mvbuild.adapters.spark.java import Java
    from mvbuild.adapters.spark.releases import Artifact
    from mvbuild.ports.sources import SourceLocation
    from mvbuild.project.loaded import Target

LOCAL = re.compile(r"local(?:\[\s*(\d+|\*)\s*(?:,.*)?\])?\Z")
_REDACTED = f"(?i){SECRET_NAMES}"
"""Of the settings in event logs and plans. Spark's own pattern covers a few of these names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How a session is started. `class_path` is empty if executors fetch the jars themselves."""

    java: Java
    conf: Mapping[str, str]
    class_path: tuple[Path, ...]
    java_options: tuple[str, ...]


_TINY, _SMALL = 1024 * 1024, 64 * 1024 * 1024
"""Limits in bytes of tables. Up to the first one, generating code for queries costs more than it saves; up to the second one, optimizing
code in the JVM does (docs/proofs/cold-start.md)."""
_QUICK_QUERIES = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    # As adaptive execution would choose: one file for what one task can write.
    "spark.sql.shuffle.partitions": "1",
    # Each stage has a broadcast, for which Spark fills a block of 4 MB with zeros.
    "spark.broadcast.blockSize": "128k",
}
_QUICK_JVM = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=256m", "-XX:+UseSerialGC")
"""Without its optimizing compiler the JVM reserves 48 MB for code. A run of many statements fills these, and the JVM stops."""
_QUICK_HEAP = ("-Xms1g", "-Xmn512m", "-XX:MetaspaceSize=256m")
"""Of the 2 GB that a local driver gets. Otherwise the JVM begins with a small heap, and looks for garbage five times as often."""
_JVM_OPTIONS, _MORE_OPTIONS = "spark.driver.extraJavaOptions", "spark.driver.defaultJavaOptions"
_OF_ENVIRONMENT = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
"""Environment variables with options of a JVM."""
_OF_SPARK = ("spark-defaults.conf", "spark-env.sh")
"""Files in Spark's configuration folder that may have such options."""


def session_conf(target: Target, sources: Collection[SourceLocation] = (), *, reads: int | None = None) -> dict[str, str]:
    """The whole configuration except for jars. The user's settings take precedence. `reads`: see `prepare`."""
    extensions = (EXTENSIONS, *outside.extensions(sources))
    master = target.spark.remote or target.spark.master
    return {
        "spark.app.name": "mvbuild",
        "spark.master": master,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Also without its pages, Spark keeps the plans and metrics of a thousand statements, which fill the heap in a run of many MVs.
        **dict.fromkeys(("spark.sql.ui.retainedExecutions", "spark.ui.retainedJobs", "spark.ui.retainedStages"), "20"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.catalogImplementation": "in-memory",
        # Plans are compared; without this, the plan of a table with more than 25 columns would be truncated.
        "spark.sql.debug.maxToStringFields": "10000",
        "spark.redaction.regex": _REDACTED,
        "spark.sql.extensions": ",".join(extensions),
        **_local_conf(master),
        **(_QUICK_QUERIES if _is_within(_TINY, reads) and LOCAL.match(master) else {}),
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
    match = LOCAL.match(master)
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
        # So is the default of 50 tasks to read the log of a Delta table.
        "spark.databricks.delta.snapshotPartitions": str(cores * 2),
    }


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def prepare(
    target: Target, env: Mapping[str, str], say: Callable[[str], None], sources: Collection[SourceLocation], *, reads: int | None = None
) -> Launch:
    """Raises EngineError if there is no Java, or a jar can be had neither from the cache nor from the network. `reads`: how many bytes
    of tables Spark reads before the process ends, if that is known: a local one starts in a way that fits this."""
    wanted = needed_jars(target, sources)
    java = find_java(env)
    conf, config = session_conf(target, sources, reads=reads), target.spark.config
    cache, home = jars.cache_dir(env), jars.spark_home(env)
    kept = all((cache / "jars" / artifact.file_name).is_file() for artifact in wanted)
    paths = jars.resolve(wanted, cache=cache, java=java.path, config=config, env=env, progress=say)
    # A folder that is never written to: the session stores its tables in Iceberg.
    conf.setdefault("spark.sql.warehouse.dir", str(Path(tempfile.gettempdir()) / "mvbuild-spark-warehouse"))
    if LOCAL.match(conf["spark.master"]) is None or config.keys() & {"spark.jars", "spark.jars.packages"}:
        # Jars that load each other's classes must be added in the same way.
        conf["spark.jars"] = ",".join(filter(None, [config.get("spark.jars", ""), *map(str, paths)]))
        return Launch(java=java, conf=conf, class_path=(), java_options=())
    archive = cds.options(java, paths, home, cache, train=kept)
    return Launch(java=java, conf=conf, class_path=paths, java_options=(*quick_jvm(config, env, home, reads), *archive))


def quick_jvm(config: Mapping[str, str], env: Mapping[str, str], spark_home: Path, reads: int | None) -> tuple[str, ...]:
    """Options of a JVM that reads little. None where the user may have chosen another garbage collector: a JVM does not start with two."""
    files = Path(env.get("SPARK_CONF_DIR") or spark_home / "conf")
    may_have_own = (
        any(config.get(key) for key in (_JVM_OPTIONS, _MORE_OPTIONS))
        or any(env.get(name) for name in _OF_ENVIRONMENT)
        or any((files / name).is_file() for name in _OF_SPARK)
    )
    if not _is_within(_SMALL, reads) or may_have_own:
        return ()
    return _QUICK_JVM if config.get("spark.driver.memory") else (*_QUICK_JVM, *_QUICK_HEAP)


def _is_within(limit: int, reads: int | None) -> bool:
    return reads is not None and reads <= limit


def needed_jars(target: Target, sources: Collection[SourceLocation]) -> tuple[Artifact, ...]:
    """The artifacts that the installed Spark needs besides its own jars. Raises EngineError if there is none, or not one of ours."""
    release, config = installed_release(), target.spark.config
    of_target = jars.needed(resolved(target.catalog_name, target.catalog), config, release)
    of_server = jars.needed_for_connect(target.spark.remote, installed_version())
    return tuple(dict.fromkeys((*of_target, *outside.needed(sources, config, release), *of_server)))


def command_line_conf(launch: Launch) -> dict[str, str]:
    """What the JVM must be started with. In a local session the class path is enough, and saves copying 50 MB per session."""
    conf: dict[str, str] = {}
    if launch.class_path:
        joined = os.pathsep.join(filter(None, [launch.conf.get("spark.driver.extraClassPath", ""), *map(str, launch.class_path)]))
        conf["spark.driver.extraClassPath"] = joined
    if launch.java_options:
        own = launch.conf.get(_JVM_OPTIONS, "")
        conf[_JVM_OPTIONS] = " ".join(filter(None, [own, *map(shlex.quote, launch.java_options)]))
    return conf
