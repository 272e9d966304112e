"""SourceLocations -> what Spark needs to read them: jars and settings at its start, and catalogs for a running session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mvbuild.adapters.spark import jars
from mvbuild.adapters.spark.catalog_conf import catalog_conf, resolved
from mvbuild.adapters.spark.releases import release_of
from mvbuild.ports.engine import EngineError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyspark.sql import SparkSession

    from mvbuild.adapters.spark.releases import Artifact, Release
    from mvbuild.ports.sources import SourceLocation

DELTA_EXTENSIONS = "io.delta.sql.DeltaSparkSessionExtension"
DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
_SESSION_CATALOG = "spark.sql.catalog.spark_catalog"
_OF_HADOOP = ("fs.", "dfs.")


def start_conf(sources: Collection[SourceLocation], config: Mapping[str, str]) -> dict[str, str]:
    """The settings that a session is started with, except `spark.sql.extensions`, which others share. `config` is the user's.

    Settings with secrets are included, although a running session would accept them: Spark's event log only masks what Spark was started
    with.
    """
    conf = {_SESSION_CATALOG: DELTA_CATALOG} if _delta(sources) else {}
    for name, options in _metastores(sources).items():
        if f"spark.sql.catalog.{name}" not in config:
            conf |= catalog_conf(name, options)
    return conf | _of_storages(sources)


def extensions(sources: Collection[SourceLocation]) -> tuple[str, ...]:
    # Delta requires them; without them, rows that a deletion vector hides would reappear.
    return (DELTA_EXTENSIONS,) if _delta(sources) else ()


def needed(sources: Collection[SourceLocation], config: Mapping[str, str], release: Release) -> tuple[Artifact, ...]:
    """The artifacts in addition to those of the target's catalog."""
    found: dict[Artifact, None] = {}
    for name, options in _metastores(sources).items():
        found.update(dict.fromkeys(jars.needed(resolved(name, options), config, release)))
    if _delta(sources):
        found.update(dict.fromkeys(jars.needed_for_delta(config, release)))
    return tuple(found)


def introduce(session: SparkSession, sources: Collection[SourceLocation]) -> None:
    """Configure the other metastores and the storage of Delta tables in a running session. What it already knows is left alone.

    These are settings of the session and not of the command line, because they contain secrets.
    """
    for name, options in _metastores(sources).items():
        introduce_catalog(session, name, options)
    for key, value in _of_storages(sources).items():
        session.conf.set(key, value)
    if _delta(sources) and DELTA_EXTENSIONS not in (session.conf.get("spark.sql.extensions", None) or ""):
        path = _delta(sources)[0].identifier.name
        packages = ",".join(artifact.coordinate for artifact in release_of(session.version).delta[:1])
        raise EngineError(
            "spark-start",
            f"The Spark session that you passed cannot read Delta tables, and {path} is one.",
            help=f"Start it with spark.jars.packages={packages}, spark.sql.extensions={DELTA_EXTENSIONS} and "
            f"{_SESSION_CATALOG}={DELTA_CATALOG}, or let mvbuild start Spark.",
        )


def introduce_catalog(session: SparkSession, name: str, properties: Mapping[str, str]) -> None:
    """Configure a catalog, unless the session's own configuration has it."""
    if session.conf.get(f"spark.sql.catalog.{name}", None) is None:
        for key, value in catalog_conf(name, properties).items():
            session.conf.set(key, value)


def _of_storages(sources: Collection[SourceLocation]) -> dict[str, str]:
    return {key: value for location in _delta(sources) for key, value in location.options.items() if key.startswith(_OF_HADOOP)}


def _metastores(sources: Collection[SourceLocation]) -> dict[str, Mapping[str, str]]:
    return {s.identifier.catalog: s.options for s in sources if s.type == "iceberg-metastore"}


def _delta(sources: Collection[SourceLocation]) -> list[SourceLocation]:
    return [s for s in sources if s.type == "deltalake-filesystem"]
