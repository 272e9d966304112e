"""assets of a project -> a sensor that asks for a run of those that mvbuild would refresh."""

from __future__ import annotations

from dagster import (
    AssetsDefinition,
    DagsterRunStatus,
    DefaultSensorStatus,
    RunRequest,
    RunsFilter,
    SensorDefinition,
    SensorEvaluationContext,
    SkipReason,
    sensor,
)

from mvbuild import api
from mvbuild.dagster.assets import PROJECT
from mvbuild.dagster.keys import asset_key

_ACTIVE = (DagsterRunStatus.QUEUED, DagsterRunStatus.NOT_STARTED, DagsterRunStatus.STARTING, DagsterRunStatus.STARTED)


def stale_sensor(
    assets: AssetsDefinition, *, name: str | None = None, seconds: int = 60, target: str | None = None, running: bool = True
) -> SensorDefinition:
    """Reads the metadata of the catalog every `seconds`, without Spark, and asks for the stale assets; not while a run that it asked for
    is active. A run that failed is asked for again."""
    project = str(next(iter(assets.metadata_by_key.values()))[PROJECT])
    label = name or f"{assets.op.name}_is_stale"
    tag = {"mvbuild/sensor": label}

    @sensor(  # type: ignore[untyped-decorator]
        name=label,
        target=assets,
        minimum_interval_seconds=seconds,
        default_status=DefaultSensorStatus.RUNNING if running else DefaultSensorStatus.STOPPED,
    )
    def stale(context: SensorEvaluationContext) -> RunRequest | SkipReason:
        if context.instance.get_run_records(RunsFilter(statuses=list(_ACTIVE), tags=tag), limit=1):
            return SkipReason("A run is active")
        graph = api.compile(project, target=target)
        keys = [asset_key(graph, step.node) for step in api.plan(graph).changes]
        wanted = [key for key in keys if key in assets.keys]
        return RunRequest(asset_selection=wanted, tags=tag) if wanted else SkipReason("Everything is fresh")

    return stale
