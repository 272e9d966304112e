"""catalog settings -> Catalog: the implementations of the ports. Each loader imports its adapter only when it is called.

In: the settings of a target. Out: a `Catalog`, `Sources` or `Engine` of `ports`. Nothing else imports PyIceberg, PySpark, PyArrow or
deltalake.

Read first: `iceberg/catalog.py` (the catalog port, for every catalog), `iceberg/publisher.py` (what a kind of catalog provides for it) and
`spark/engine.py`. `memory.py` is the catalog of fast tests; `sources` reads base tables elsewhere.

`iceberg/pointer_publisher.py` swaps pointers to metadata files: SQL catalogs, file-system warehouses, Hive, Glue.
`iceberg/remote_publisher.py` sends updates to a server: REST (docs/decisions/015).

`iceberg/entries.py` makes the states of the port from pointers and files. It also splits an MV in the metadata-file format into a view and
a `TableState` with `of_view` set. `iceberg/packed.py` keeps histories and schemas as bytes, because most runs do not need them; so ten
thousand tables fit into memory (docs/proofs/fresh-run.md). `iceberg/branches.py` shows metadata as an Iceberg branch sees it.
`iceberg/net_rows.py` reads small changes, and compares rewritten files, in this process (docs/decisions/013). `iceberg/rows_within.py`
reads the rows of a snapshot in a range of keys (docs/decisions/022).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    from mvbuild.adapters.spark.warm.engines import WarmEngine
    from mvbuild.ports.catalog import Catalog
    from mvbuild.ports.engine import Engine
    from mvbuild.ports.sources import SourceLocation, Sources
    from mvbuild.project.loaded import Target


def open_catalog(name: str, properties: Mapping[str, str], *, embedded: bool) -> Catalog:
    """Open the catalog with these PyIceberg properties. An embedded catalog belongs to the project and is created on first use."""
    from mvbuild.adapters.iceberg import open_catalog as open_iceberg

    return open_iceberg(name, properties, create=embedded)


def open_sources(target: Target) -> Sources:
    """Open the base tables outside the target's catalog. Nothing is imported or connected until one is read."""
    from mvbuild.adapters.sources import OpenedSources

    return OpenedSources(target.catalog)


def start_engine(
    target: Target,
    *,
    spark: Any,
    log_file: Path,
    env: Mapping[str, str],
    progress: Callable[[str], None] | None = None,
    sources: Collection[SourceLocation] = (),
    project: Path | None = None,
    reads: int | None = None,
) -> Engine:
    """Start a Spark session for this run, or use the caller's session `spark`, which is not stopped. It can read `sources` besides the
    catalog. With `project`, its directory, the session may be on a warm engine that earlier commands left. `reads`: how many
    bytes of tables the engine reads before its process ends, if that is known."""
    from mvbuild.adapters.iceberg import prepare
    from mvbuild.adapters.spark import start_engine as start_spark

    prepare(target.catalog, create=target.embedded)
    return start_spark(target, log_file=log_file, env=env, spark=spark, progress=progress, sources=sources, project=project, reads=reads)


def warm_engines(env: Mapping[str, str]) -> list[WarmEngine]:
    """The warm engines of this user on this machine."""
    from mvbuild.adapters.spark.warm.engines import warm_engines as found

    return found(env)


def stop_warm_engines(env: Mapping[str, str], *, force: bool) -> tuple[list[WarmEngine], list[WarmEngine]]:
    """End them: what has ended, and what ends with the command that uses it. With `force`, commands do not matter."""
    from mvbuild.adapters.spark.warm.engines import stop_warm_engines as stop

    return stop(env, force=force)


def installed_spark() -> str:
    """The minor version of the installed PySpark, such as 4.1; empty if there is none. It is not imported."""
    from mvbuild.adapters.spark.releases import installed_version, minor_of

    return minor_of(installed_version())


def session_beside(engine: Engine) -> Any:
    """Another session of the engine's Spark, with settings and names of its own."""
    from mvbuild.adapters.spark.engine import SparkEngine

    assert isinstance(engine, SparkEngine)
    return engine.session.newSession()


def session_catalogs(spark: Any) -> dict[str, dict[str, str]]:
    """The Iceberg catalogs that a session is configured for -> PyIceberg's properties of each."""
    from mvbuild.adapters.spark.session_catalogs import session_catalogs as found

    return found(spark)


def current_place(spark: Any) -> tuple[str, tuple[str, ...]]:
    """The current catalog and namespace of a session, which complete names."""
    from mvbuild.adapters.spark.session_catalogs import current_place as found

    return found(spark)


def session_settings(spark: Any) -> Mapping[str, str] | None:
    """`Engine.settings` for a session of the caller. None if the session does not answer; code that needs it then fails with the reason."""
    from mvbuild.adapters.spark.engine import settings_of

    try:
        return settings_of(spark)
    except Exception:  # noqa: BLE001  PySpark, Py4J and gRPC raise what they like
        return None
