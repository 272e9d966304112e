"""Target -> Engine: the engine port over PySpark, which is imported only here, when an engine is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from datetime import timedelta
    from pathlib import Path

    from mvbuild.adapters.spark.warm.lease import Lease
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
    project: Path | None = None,
    reads: int | None = None,
) -> Engine:
    """An engine with its own Spark, or on the caller's session `spark`, which is not stopped. It can read `sources` besides the catalog.
    `project`: its directory, if the target may keep a warm engine for it. `reads`: how many bytes of tables it reads before its
    process ends, if that is known."""
    from mvbuild.adapters.iceberg.failures import Translator
    from mvbuild.adapters.spark.engine import SparkEngine
    from mvbuild.adapters.spark.releases import release_of
    from mvbuild.adapters.spark.sources import introduce, introduce_catalog
    from mvbuild.ports.engine import EngineError

    settings = (target.catalog, target.spark.config, *(source.options for source in sources))
    # Numbered, because two sources may have a setting of the same name. Storage options have underscores.
    secrets = {f"{number}.{key.replace('_', '-')}": value for number, of in enumerate(settings) for key, value in of.items()}
    masked = Translator(target.catalog_name, secrets).masked_in_sql
    if spark is not None:
        release_of(spark.version)
        introduce_catalog(spark, target.catalog_name, target.catalog)
        introduce(spark, sources)
        return SparkEngine(spark, own=False, masked=masked)
    from mvbuild.adapters.spark.session import quiet, start
    from mvbuild.adapters.spark.warm.wanted import kept

    # Before the start, which you may interrupt.
    quiet()
    lease = None
    try:
        if project is not None and (keep := kept(target.spark, env)):
            lease = _lease(target, keep, project, env=env, progress=progress, sources=sources)
        session = lease.session if lease else start(target, log_file=log_file, env=env, progress=progress, sources=sources, reads=reads)
    except EngineError as exc:
        exc.args = tuple(masked(str(one)) for one in exc.args)
        raise
    engine = SparkEngine(session, own=True, masked=masked, lease=lease)
    try:
        introduce_catalog(session, target.catalog_name, target.catalog)
        introduce(session, sources)
    except BaseException:
        engine.close()
        raise
    return engine


def _lease(
    target: Target,
    keep: timedelta,
    project: Path,
    *,
    env: Mapping[str, str],
    progress: Callable[[str], None] | None,
    sources: Collection[SourceLocation],
) -> Lease | None:
    from mvbuild.adapters.spark.launch import prepare
    from mvbuild.adapters.spark.warm.lease import Wanted, lease

    say = progress or (lambda _: None)
    wanted = Wanted(keep=keep, project=str(project), target=target.name)
    return lease(prepare(target, env, say, sources), wanted, env=env, say=say)
