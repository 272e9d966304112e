"""World + MV -> Situation: everything that the rules of freshness look at for one MV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mvbuild.dataclass import dataclass
from mvbuild.formats.record import RefreshRecord
from mvbuild.freshness.leaves import Inputs
from mvbuild.freshness.model import Freshness, Reason
from mvbuild.freshness.observed import World
from mvbuild.graph.definition import definition
from mvbuild.graph.model import Graph, ModelNode, NodeId, ViewNode
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
    return texts_below(s.world.graph, s.node, s.inputs)


def texts_below(graph: Graph, node: ModelNode, below: Inputs) -> Iterator[tuple[TableIdentifier, str]]:
    """`texts_of`, given what the MV reads."""
    if node.id not in graph.undefined:
        yield node.identifier, definition(graph, node).text
    for id_ in below.views:
        view = graph.nodes[id_]
        if isinstance(view, ModelNode | ViewNode) and id_ not in graph.undefined:
            yield view.identifier, definition(graph, view).text if isinstance(view, ModelNode) else view.query.sql.text


def stale(code: str, message: str) -> Reason:
    return Reason(code=code, message=message, effect="stale")


def listed(columns: Sequence[str]) -> str:
    """The first few of them, for a message."""
    return f"{', '.join(columns[:5])}{' and others' if len(columns) > 5 else ''}"
