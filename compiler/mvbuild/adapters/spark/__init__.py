"""Target -> Engine: the engine port over PySpark, which is imported only here, when an engine is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    from mvbuild.ports.engine import Engine
    from mvbuild.ports.sources import SourceLocation
    from mvbuild.project.loaded import Target


def start_engine(
    target: Target,
    *,
    log_file: Path,
    env: Mapping[str, str],
    spark: Any = None,
    progress: Callable[[str], None] | None = None,
    sources: Collection[SourceLocation] = (),
) -> Engine:
    """An engine with its own Spark, or on the caller's session `spark`, which is not stopped. It can read `sources` besides the catalog."""
    from mvbuild.adapters.iceberg.failures import Translator
    from mvbuild.adapters.spark.engine import SparkEngine
    from mvbuild.adapters.spark.sources import introduce, introduce_catalog
    from mvbuild.ports.engine import EngineError

    settings = (target.catalog, target.spark.config, *(source.options for source in sources))
    # Numbered, because two sources may have a setting of the same name. Storage options have underscores.
    secrets = {f"{number}.{key.replace('_', '-')}": value for number, of in enumerate(settings) for key, value in of.items()}
    masked = Translator(target.catalog_name, secrets).masked_in_sql
    if spark is not None:
        introduce_catalog(spark, target.catalog_name, target.catalog)
        introduce(spark, sources)
        return SparkEngine(spark, own=False, masked=masked)
    from mvbuild.adapters.spark.session import start

    try:
        session = start(target, log_file=log_file, env=env, progress=progress, sources=sources)
    except EngineError as exc:
        exc.args = tuple(masked(str(one)) for one in exc.args)
        raise
    introduce_catalog(session, target.catalog_name, target.catalog)
    introduce(session, sources)
    return SparkEngine(session, own=True, masked=masked)
