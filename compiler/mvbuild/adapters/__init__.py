"""catalog settings -> Catalog: the world behind the ports. Each loader imports its adapter only when it is called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from mvbuild.ports.catalog import Catalog
    from mvbuild.ports.engine import Engine
    from mvbuild.project.loaded import Target


def open_catalog(name: str, properties: Mapping[str, str], *, embedded: bool) -> Catalog:
    """The catalog that PyIceberg knows by these properties. An embedded one belongs to the project and is created on first use."""
    from mvbuild.adapters.iceberg import open_catalog as open_iceberg

    return open_iceberg(name, properties, create=embedded)


def start_engine(
    target: Target, *, spark: Any, log_file: Path, env: Mapping[str, str], progress: Callable[[str], None] | None = None
) -> Engine:
    """Spark: of its own for this run, or the session `spark` that the caller has and keeps."""
    from mvbuild.adapters.spark import start_engine as start_spark

    return start_spark(target, log_file=log_file, env=env, spark=spark, progress=progress)
