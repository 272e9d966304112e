"""World + MV -> Situation: everything that the rules of freshness look at for one MV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mvbuild.formats.record import RefreshRecord
from mvbuild.freshness.leaves import Inputs
from mvbuild.freshness.model import Freshness, Reason
from mvbuild.freshness.observed import World
from mvbuild.graph.definition import definition
from mvbuild.graph.model import ModelNode, NodeId, ViewNode
from mvbuild.names import TableIdentifier
from mvbuild.ports.states import TableState, ViewState
from mvbuild.storage.stored import Stored


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Everything that the rules look at for one MV."""

    world: World
    node: ModelNode
    view: ViewState | None
    storage: TableState | None
    stored: Stored
    record: RefreshRecord | None
    same_definition: bool
    inputs: Inputs
    upstream: Mapping[NodeId, Freshness]
    pending: frozenset[NodeId]

    @property
    def is_unreadable(self) -> bool:
        observed = self.world.observed
        return bool(observed.unreadable(self.node.identifier) or observed.unreadable(self.node.storage))


def texts_of(s: Situation) -> Iterator[tuple[TableIdentifier, str]]:
    """The SQL of the MV and of the views below it, with ephemeral models inlined."""
    graph = s.world.graph
    if s.node.id not in graph.undefined:
        yield s.node.identifier, definition(graph, s.node).text
    for id_ in s.inputs.views:
        node = graph.nodes[id_]
        if isinstance(node, ModelNode | ViewNode) and id_ not in graph.undefined:
            yield node.identifier, definition(graph, node).text if isinstance(node, ModelNode) else node.query.sql.text


def stale(code: str, message: str) -> Reason:
    return Reason(code=code, message=message, effect="stale")


def listed(columns: Sequence[str]) -> str:
    """The first few of them, for a message."""
    return f"{', '.join(columns[:5])}{' and others' if len(columns) > 5 else ''}"
