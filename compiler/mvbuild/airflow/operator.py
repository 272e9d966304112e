"""options of a run -> an Airflow task that runs it, logs its events, and reports what it refreshed as asset events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.exceptions import AirflowException
from airflow.sdk import Asset, AssetAlias, BaseOperator

from mvbuild import api
from mvbuild.airflow.task_log import FAILED, log_event
from mvbuild.airflow.uris import asset_uri
from mvbuild.graph.model import Graph
from mvbuild.refresh.result import NodeResult


class MvbuildOperator(BaseOperator):  # type: ignore[misc]
    """Refreshes what is stale in a project, with one Spark, and runs its data tests. The task fails if a node or a data test fails.

    It adds an event for each MV, view and seed that it wrote, and none for what was fresh. The result (XCom) has the status of each node.
    """

    template_fields: Sequence[str] = ("project_dir", "target", "vars", "select", "exclude", "full_refresh")
    ui_color = "#c8e1f5"

    def __init__(
        self,
        *,
        project_dir: str,
        target: str | None = None,
        vars: Mapping[str, Any] | None = None,
        select: Sequence[str] = (),
        exclude: Sequence[str] = (),
        full_refresh: bool = False,
        fail_fast: bool = False,
        atomic: bool | None = None,
        all_tests: bool = True,
        threads: int | None = None,
        outlets: Any = None,
        **arguments: Any,
    ) -> None:
        self.alias = AssetAlias(f"mvbuild:{arguments.get('task_id', '')}")
        super().__init__(outlets=[*(outlets or ()), self.alias], **arguments)
        self.project_dir = project_dir
        self.target = target
        self.vars = dict(vars or {})
        self.select = list(select)
        self.exclude = list(exclude)
        self.full_refresh = full_refresh
        self.fail_fast = fail_fast
        self.atomic = atomic
        self.all_tests = all_tests
        self.threads = threads

    def execute(self, context: Any) -> dict[str, Any]:
        graph = api.compile(self.project_dir, target=self.target, vars=self.vars)
        result = api.run(
            graph,
            select=self.select,
            exclude=self.exclude,
            full_refresh=self.full_refresh,
            fail_fast=self.fail_fast,
            atomic=self.atomic,
            all_tests=self.all_tests,
            threads=self.threads,
            on_event=lambda event: log_event(self.log, event),
        )
        for found in result.diagnostics:
            (self.log.error if found.severity == "error" else self.log.warning)(found.message)
        for one in result.results:
            if one.status == "success":
                self._publish(context, graph, one)
        if not result.ok:
            failed = [r.node for r in result.results if r.status == "error"] + [t.name for t in result.all_tests if t.status in FAILED]
            raise AirflowException(f"failed: {', '.join(failed) or 'see the log'}")
        return {"seconds": round(result.seconds, 3), "nodes": {r.node: r.status for r in result.results}}

    def _publish(self, context: Any, graph: Graph, result: NodeResult) -> None:
        identifier = graph.nodes[result.node].identifier
        extra = {key: result.details[key] for key in ("strategy", "reason", "rows", "snapshot_id") if result.details.get(key) is not None}
        context["outlet_events"][self.alias].add(Asset(name=str(identifier), uri=asset_uri(identifier)), extra=extra)
