"""options of a run -> an Airflow task that runs it, logs its events, and reports what it refreshed as asset events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.exceptions import AirflowException
from airflow.sdk import Asset, AssetAlias, BaseOperator

from mvbuild import api
from mvbuild.api.sessions import Event
from mvbuild.graph.model import Graph
from mvbuild.names import TableIdentifier
from mvbuild.refresh.result import Finished, Message, NodeResult, Started, Tested, TestResult


def asset_uri(identifier: TableIdentifier) -> str:
    """`mvbuild://lake/mart/revenue_daily`: the asset of a table or MV, to schedule a DAG on."""
    return f"mvbuild://{'/'.join((identifier.catalog, *identifier.namespace, identifier.name))}"


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
            on_event=self._log,
        )
        for found in result.diagnostics:
            (self.log.error if found.severity == "error" else self.log.warning)(found.message)
        for one in result.results:
            if one.status == "success":
                self._publish(context, graph, one)
        if not result.ok:
            failed = [r.node for r in result.results if r.status == "error"] + [t.name for t in result.all_tests if t.status in _FAILED]
            raise AirflowException(f"failed: {', '.join(failed) or 'see the log'}")
        return {"seconds": round(result.seconds, 3), "nodes": {r.node: r.status for r in result.results}}

    def _publish(self, context: Any, graph: Graph, result: NodeResult) -> None:
        identifier = graph.nodes[result.node].identifier
        extra = {key: result.details[key] for key in ("strategy", "reason", "rows", "snapshot_id") if result.details.get(key) is not None}
        context["outlet_events"][self.alias].add(Asset(name=str(identifier), uri=asset_uri(identifier)), extra=extra)

    def _log(self, event: Event) -> None:
        if isinstance(event, Message):
            self.log.info(event.message)
        elif isinstance(event, Started):
            self.log.info("%s of %s START %s", event.index, event.total, event.node)
        elif isinstance(event, Finished):
            one = event.result
            said = self.log.error if one.status == "error" else self.log.info
            said("%s of %s %s %s %s", event.index, event.total, one.status.upper(), one.node, one.message)
            for found in one.diagnostics:
                self.log.error(found.message)
            for test in one.tests:
                self._log_test(test)
        elif isinstance(event, Tested):
            self._log_test(event.result)

    def _log_test(self, test: TestResult) -> None:
        said = self.log.error if test.status in _FAILED else self.log.warning if test.status == "warn" else self.log.info
        said("%s %s %s", test.status.upper(), test.name, test.message)


_FAILED = ("fail", "error")
