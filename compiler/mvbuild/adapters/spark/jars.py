"""catalog properties and Spark settings -> paths of the jars that Spark needs, resolved once and kept in the user's cache."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from mvbuild.adapters.spark.catalog_conf import uses_s3
from mvbuild.adapters.spark.releases import Artifact, installed_release, release_of
from mvbuild.ports.engine import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mvbuild.adapters.spark.releases import Release

_RESOLVER_SECONDS = 900
_NETWORK = (
    "UnknownHostException",
    "Server access error",
    "ConnectException",
    "Connection refused",
    "timed out",
    "SSLHandshake",
    "NoRouteToHost",
)
_USER = re.compile(r"(?<=://)[^/\s@]+@")


SQLITE = Artifact("org.xerial", "sqlite-jdbc", "3.50.3.0")
POSTGRESQL = Artifact("org.postgresql", "postgresql", "42.7.7")

_FAMILIES = {"iceberg-spark-runtime": "iceberg-spark-runtime", "postgresql": "postgresql-"}
"""Beginning of an artifact's name -> how to recognize a jar of the user that does the same; otherwise by its name."""


def cache_dir(env: Mapping[str, str]) -> Path:
    """MVBUILD_CACHE_DIR, otherwise mvbuild's folder in the user's cache."""
    if env.get("MVBUILD_CACHE_DIR"):
        return Path(env["MVBUILD_CACHE_DIR"]).expanduser().absolute()
    base = Path(env["XDG_CACHE_HOME"]) if env.get("XDG_CACHE_HOME") else Path.home() / ".cache"
    return base / "mvbuild"


def needed(catalog: Mapping[str, str], config: Mapping[str, str], release: Release) -> tuple[Artifact, ...]:
    """The artifacts for a catalog (see `catalog_conf.resolved`), without those in the user's spark.jars or spark.jars.packages."""
    uri, warehouse = catalog.get("uri", ""), catalog.get("warehouse", "")
    wanted = {
        release.runtime: True,
        SQLITE: uri.startswith("sqlite"),
        POSTGRESQL: uri.startswith("postgres"),
        release.aws: uses_s3(catalog),
        release.gcp: warehouse.startswith("gs://"),
        release.azure: warehouse.startswith(("abfs", "wasb", "adl")),
    }
    return tuple(artifact for artifact, use in wanted.items() if use and _family(artifact) not in _given(config))


def needed_for_delta(config: Mapping[str, str], release: Release) -> tuple[Artifact, ...]:
    """The artifacts for Delta tables, unless the user's settings name a delta-spark, which includes its own storage."""
    return () if "delta-spark" in _given(config) else release.delta


def needed_for_connect(remote: str | None, version: str) -> tuple[Artifact, ...]:
    """The server of Spark Connect, if mvbuild starts one: PySpark includes it since Spark 4."""
    release = release_of(version)
    if not (remote or "").startswith("local") or release.spark != "3.5":
        return ()
    return (Artifact("org.apache.spark", f"spark-connect_{release.scala}", version),)


def _family(artifact: Artifact) -> str:
    return next((family for begin, family in _FAMILIES.items() if artifact.name.startswith(begin)), artifact.name)


def _given(config: Mapping[str, str]) -> str:
    return ",".join(config.get(key, "") for key in ("spark.jars", "spark.jars.packages")).replace(":", "-")


def resolve(
    artifacts: Sequence[Artifact],
    *,
    cache: Path,
    java: Path,
    config: Mapping[str, str],
    env: Mapping[str, str],
    progress: Callable[[str], None] | None = None,
) -> tuple[Path, ...]:
    """Their paths: from the cache, otherwise from the resolver of `spark.jars.packages`. Raises EngineError jars-unavailable."""
    missing = _missing(artifacts, cache)
    if missing and is_offline(env):
        names = ", ".join(artifact.coordinate for artifact in missing)
        raise EngineError("jars-unavailable", f"{names}: not in {cache / 'jars'}, and mvbuild is offline.", help=_OFFLINE_HELP)
    if missing:
        if progress:
            progress("resolving jars (first run only)")
        _fill(missing, cache, java, config, env)
    return tuple(_path(cache, artifact) for artifact in artifacts)


def is_offline(env: Mapping[str, str]) -> bool:
    """MVBUILD_OFFLINE, which `--offline` sets."""
    return env.get("MVBUILD_OFFLINE", "").strip().lower() in ("1", "true", "t", "yes", "y", "on")


def explain(output: str, missing: Iterable[Artifact]) -> tuple[str, str]:
    """The output of a failed resolution -> what is wrong, what to do."""
    names = ", ".join(artifact.coordinate for artifact in missing)
    trap = trapped(output)
    if trap:
        return (
            f"{names} could not be resolved: the local Maven repository has its POM but not the jar.",
            f"Delete {trap} and run again.",
        )
    if any(sign in output for sign in _NETWORK):
        return f"{names} could not be downloaded: Maven Central cannot be reached.", _HELP
    cause = next((line.strip() for line in reversed(output.splitlines()) if "not found" in line or "Exception" in line), "")
    cause = _USER.sub("***@", cause)  # of a mirror
    return f"{names} could not be resolved{f': {cause}' if cause else '.'}", _HELP


_OFFLINE_HELP = (
    "Run `mvbuild debug` once with a network and without --offline, copy the jars from another machine, or set jar files with"
    " spark.jars in the target."
)
_HELP = "Check the network, set spark.jars.repositories to a mirror, or set jar files with spark.jars in the target."


def trapped(output: str) -> str:
    """The folder of ~/.m2 that contains a pom without its jar, if that made Ivy fail: Ivy then never asks Maven Central."""
    lines = output.splitlines()
    for number, line in enumerate(lines):
        if "local-m2-cache: tried" in line and "NOT FOUND" in "\n".join(lines[max(number - 4, 0) : number]):
            tried = next((later.strip() for later in lines[number + 1 : number + 4] if ".jar" in later), "")
            return tried.removeprefix("file:").rpartition("/")[0]
    return ""


def _missing(artifacts: Sequence[Artifact], cache: Path) -> list[Artifact]:
    return [artifact for artifact in artifacts if not _is_there(_path(cache, artifact))]


def _path(cache: Path, artifact: Artifact) -> Path:
    return cache / "jars" / artifact.file_name


def _is_there(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def _fill(missing: Sequence[Artifact], cache: Path, java: Path, config: Mapping[str, str], env: Mapping[str, str]) -> None:
    try:
        (cache / "jars").mkdir(parents=True, exist_ok=True)
        # A separate folder, because Ivy's cache does not support several processes at once.
        with tempfile.TemporaryDirectory(dir=cache, prefix="ivy-") as folder:
            output = _run(missing, Path(folder) / "ivy", java, config, env, [])
            if not _keep(missing, Path(folder) / "ivy", cache) and trapped(output):
                # Try again as a user without a ~/.m2.
                output = _run(missing, Path(folder) / "again", java, config, env, [f"-Duser.home={folder}"]) + output
                _keep(missing, Path(folder) / "again", cache)
    except OSError as exc:
        raise EngineError("jars-unavailable", f"The jars cannot be saved in {cache}: {exc.strerror or exc}", help=_CACHE_HELP) from exc
    lacking = _missing(missing, cache)
    if lacking:
        message, advice = explain(output, lacking)
        raise EngineError("jars-unavailable", message, help=advice)


_CACHE_HELP = "Set MVBUILD_CACHE_DIR to a writable directory."


def _keep(missing: Sequence[Artifact], ivy: Path, cache: Path) -> bool:
    """Move the resolved files into the cache. Another process that does so at the same time writes the same files."""
    for artifact in missing:
        resolved = ivy / "jars" / f"{artifact.group}_{artifact.file_name}"
        if _is_there(resolved):
            partial = ivy / artifact.file_name
            shutil.move(resolved, partial)
            partial.replace(_path(cache, artifact))
    return not _missing(missing, cache)


def _run(
    artifacts: Sequence[Artifact], ivy: Path, java: Path, config: Mapping[str, str], env: Mapping[str, str], options: Sequence[str]
) -> str:
    """Resolve with spark-submit and a class that does not exist: it fails after the resolution, which is enough. Returns its output."""
    packages = ",".join(artifact.coordinate for artifact in artifacts)
    settings = {key: value for key, value in config.items() if key.startswith("spark.jars.") and key not in ("spark.jars.packages",)}
    settings["spark.jars.ivy"] = str(ivy)
    command = [
        str(java),
        *(option for option in shlex.split(config.get("spark.driver.extraJavaOptions", "")) if option.startswith("-D")),
        *options,
        *("-cp", str(spark_home(env) / "jars" / "*"), "org.apache.spark.deploy.SparkSubmit", "--master", "local"),
        *(part for key, value in settings.items() for part in ("--conf", f"{key}={value}")),
        *("--packages", packages, "--class", "mvbuild.Nothing", "spark-internal"),
    ]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_RESOLVER_SECONDS,
            check=False,
            env=dict(env),
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired as exc:
        raise EngineError("jars-unavailable", f"{packages} could not be downloaded within {_RESOLVER_SECONDS // 60} minutes.") from exc
    return done.stdout + done.stderr


def spark_home(env: Mapping[str, str]) -> Path:
    """The Spark that PySpark starts: SPARK_HOME, otherwise its own. Raises EngineError if SPARK_HOME is another version."""
    home, release = env.get("SPARK_HOME"), installed_release()
    if not home:
        import pyspark

        return Path(pyspark.__file__).parent
    if not any(Path(home, "jars").glob(f"spark-core_{release.scala}-{release.spark}.*.jar")):
        raise EngineError(
            "spark-start",
            f"SPARK_HOME is {home}, which is not Spark {release.spark} for Scala {release.scala}.",
            help="Unset SPARK_HOME: PySpark includes its own Spark.",
        )
    return Path(home)
