"""states of views -> states with the storages that MVs in the metadata-file format embed, under their names in the graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mvbuild.graph.model import Graph
from mvbuild.names import TableIdentifier
from mvbuild.ports.states import State, ViewState


def with_embedded(graph: Graph, states: Mapping[TableIdentifier, State]) -> dict[TableIdentifier, State]:
    """An embedded storage is not in the catalog; for all other code it is a normal table."""
    found = dict(states)
    for identifier, state in states.items():
        name = graph.storages.get(identifier)
        if name is not None and isinstance(state, ViewState) and state.storage is not None:
            found[name] = replace(state.storage, identifier=name)
    return found
