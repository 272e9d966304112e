"""states of views -> states with the storages that MVs in the metadata-file format embed, under the names that the graph has for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mvbuild.graph.model import Graph
from mvbuild.names import TableIdentifier
from mvbuild.ports.states import State, ViewState


def with_embedded(graph: Graph, states: Mapping[TableIdentifier, State]) -> dict[TableIdentifier, State]:
    """An embedded storage has no entry in the catalog; everywhere else it is a table like others."""
    found = dict(states)
    for identifier, state in states.items():
        name = graph.storages.get(identifier)
        if name is not None and isinstance(state, ViewState) and state.storage is not None:
            found[name] = replace(state.storage, identifier=name)
    return found
