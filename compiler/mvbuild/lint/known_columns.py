"""Graph + the observation of the catalog, or schemas.lock -> the columns of every node that the rules need."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mvbuild.freshness.observed import World
from mvbuild.graph.model import Graph, NodeId
from mvbuild.lineage.bind import bind
from mvbuild.lineage.lock import of_lock, read_lock
from mvbuild.lineage.model import Bound, Column
from mvbuild.lineage.schemas import NO_SCHEMAS, Schemas, of_states


def known_columns(graph: Graph, selected: Collection[NodeId], world: World | None = None) -> Mapping[NodeId, tuple[Column, ...]]:
    """Columns of the selected models and of what they read; nodes whose columns are not all known are absent."""
    return bound_columns(graph, selected, world).columns


def bound_columns(graph: Graph, selected: Collection[NodeId], world: World | None = None) -> Bound:
    """The same, with what is wrong in the queries of the selected models."""
    return bind(graph, _schemas(graph, world), only=selected, keep=True)


def _schemas(graph: Graph, world: World | None) -> Schemas:
    if world is not None:
        return of_states(world.observed.states)
    tables = read_lock(graph)
    return NO_SCHEMAS if tables is None else of_lock(tables, graph)
