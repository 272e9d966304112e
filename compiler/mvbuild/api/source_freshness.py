"""project -> the age of the snapshot of each source that limits it, and target/sources.json."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Literal

from mvbuild import __version__
from mvbuild.api.compilation import write_artifact
from mvbuild.api.of_project import Project, graph_of, states_of
from mvbuild.api.sessions import SystemClock, catalog_of, observed
from mvbuild.artifacts.source_freshness import sources_json
from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic
from mvbuild.graph.model import TableNode
from mvbuild.ports.states import TableState
from mvbuild.selection.select import select_all


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceAge:
    """A source and its age. `loaded_ms`: when its current snapshot was committed; None if it has none, or if it cannot be read."""

    node: TableNode
    loaded_ms: int | None
    age: timedelta | None
    status: Literal["pass", "warn", "error", "runtime error"]


def source_freshness(
    project: Project = ".", *, select: Iterable[str] = (), exclude: Iterable[str] = ()
) -> tuple[tuple[SourceAge, ...], tuple[Diagnostic, ...]]:
    """The selected sources that have `freshness`, by the time of their current snapshots: no query runs, and Spark is not started. A source
    without a snapshot is an error."""
    graph = graph_of(project)
    world = observed(graph, catalog_of(graph))
    chosen, warnings = select_all(world.graph, select, exclude, states_of(world))
    now = SystemClock().now_ms()
    found = tuple(
        _age(node, world.observed.states.get(node.identifier), now)
        for id_, node in world.graph.nodes.items()
        if id_ in chosen and isinstance(node, TableNode) and node.source and node.source.freshness
    )
    entries = [(one.node, one.loaded_ms, one.age, one.status) for one in found]
    write_artifact(graph, "sources.json", sources_json(graph, entries, now_ms=now, version=__version__))
    return found, warnings


def _age(node: TableNode, state: object, now_ms: int) -> SourceAge:
    freshness = node.source.freshness if node.source else None
    snapshot = state.snapshots.get(state.current_snapshot_id or 0) if isinstance(state, TableState) else None
    if snapshot is None or freshness is None:
        return SourceAge(node=node, loaded_ms=None, age=None, status="runtime error")
    age = timedelta(milliseconds=max(0, now_ms - snapshot.timestamp_ms))
    return SourceAge(node=node, loaded_ms=snapshot.timestamp_ms, age=age, status=freshness.status(age))
