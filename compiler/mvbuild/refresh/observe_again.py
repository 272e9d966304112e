"""MV + RunSession -> World: the current state of everything that the MV depends on, after another process has changed some of it."""

from __future__ import annotations

from mvbuild.freshness.leaves import node_inputs
from mvbuild.freshness.observed import World
from mvbuild.freshness.pins import leaf_table
from mvbuild.graph.model import ModelNode
from mvbuild.refresh.session import RunSession
from mvbuild.storage.embedded import with_embedded


def observe_again(session: RunSession, node: ModelNode) -> World:
    """The current state of everything that the MV depends on. The run itself takes over only the MV's own new state: its pins do not
    change."""
    graph = session.world.graph
    below = node_inputs(graph, node)
    own = [i for i in (node.identifier, node.storage) if i]
    # The storage of an MV may be embedded in its view.
    others = [i for leaf in below.leaves for i in (graph.nodes[leaf.node].identifier, leaf_table(graph, leaf))]
    states = session.load(dict.fromkeys([*own, *others, *(graph.nodes[v].identifier for v in below.views)]))
    found = with_embedded(graph, states)
    # Another process may have dropped the storage or its view.
    session.observe({i: states[i] for i in own if i in states}, gone=[i for i in own if i not in found])
    return World(graph=graph, observed=session.world.observed.updated(found))
