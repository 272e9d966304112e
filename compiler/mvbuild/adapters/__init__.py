"""catalog settings -> Catalog: the world behind the ports. Each loader imports its adapter only when it is called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    from mvbuild.ports.catalog import Catalog
    from mvbuild.ports.engine import Engine
    from mvbuild.ports.sources import SourceLocation, Sources
    from mvbuild.project.loaded import Target


def open_catalog(name: str, properties: Mapping[str, str], *, embedded: bool) -> Catalog:
    """The catalog that PyIceberg knows by these properties. An embedded one belongs to the project and is created on first use."""
    from mvbuild.adapters.iceberg import open_catalog as open_iceberg

    return open_iceberg(name, properties, create=embedded)


def open_sources(target: Target) -> Sources:
    """The base tables outside of the target's catalog. Nothing is imported or connected before one is read."""
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
) -> Engine:
    """Spark: of its own for this run, or the session `spark` that the caller has and keeps. It can read `sources` besides the catalog."""
    from mvbuild.adapters.spark import start_engine as start_spark

    return start_spark(target, log_file=log_file, env=env, spark=spark, progress=progress, sources=sources)
