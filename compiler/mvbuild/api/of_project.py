"""project as a caller passes it -> its graph, and the meaning of names and selections in it: for the other modules of this package."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from mvbuild.api.compilation import compile
from mvbuild.api.sessions import catalog_of, observed
from mvbuild.diagnostics import ProjectError, error
from mvbuild.freshness.observed import World
from mvbuild.freshness.rules import judge
from mvbuild.graph.model import Graph, ModelNode, NodeId
from mvbuild.serve.lookup import find

Project = str | Path | Graph
"""A project directory; or the result of `compile`, to choose a target, vars or an environment."""


def graph_of(project: Project) -> Graph:
    return project if isinstance(project, Graph) else compile(project)


def states_of(world: World) -> Callable[[], Mapping[NodeId, str]]:
    """The states that `fresh:` and `stale:` select by."""
    return lambda: {id: found.state for id, found in judge(world).items()}


def states_now(graph: Graph) -> Callable[[], Mapping[NodeId, str]]:
    """The same for callers that have not read the catalog yet: it is read when the states are needed."""
    return lambda: states_of(observed(graph, catalog_of(graph)))()


def mv_of(graph: Graph, name: str) -> ModelNode:
    node = find(graph, name)
    if not isinstance(node, ModelNode) or node.storage is None:
        message, help = f"'{name}' is not a materialized view", "`mvbuild status` lists the materialized views."
        raise ProjectError([error("unknown-name", message, help=help)])
    return node
