"""World + MV -> Pinned: the snapshots and the time that a refresh of the MV reads: exactly what is recorded of it."""

from __future__ import annotations

from collections.abc import Mapping

from mvbuild.dataclass import dataclass
from mvbuild.freshness.clock import values_read
from mvbuild.freshness.leaves import Inputs, node_inputs
from mvbuild.freshness.observed import Leaf, Pin, World
from mvbuild.freshness.pins import pin
from mvbuild.graph.definition import definition
from mvbuild.graph.model import ModelNode
from mvbuild.names import TableIdentifier
from mvbuild.parse.fingerprint import fingerprint
from mvbuild.ports.states import TableState
from mvbuild.storage.names import known_as
from mvbuild.storage.schemas_read import schemas_read


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """An MV with the snapshots and the time that a refresh of it reads."""

    node: ModelNode
    world: World
    inputs: Inputs
    pins: Mapping[Leaf, Pin]
    started_ms: int
    clock: Mapping[str, str]
    """What the query reads of the clock, by name."""

    @property
    def storage(self) -> TableState | None:
        """None before the first refresh."""
        return self.world.observed.table(self.node.storage)

    @property
    def entries(self) -> frozenset[tuple[TableIdentifier, bool]]:
        """What is read, and whether each has its own entry: migrating an upstream MV removes the entry of its storage, or creates one."""
        return frozenset((known_as(p.table), p.table.of_view is None) for p in self.pins.values())

    @property
    def schemas(self) -> dict[str, str]:
        """The properties that name the schemas with which tables are read; a tag, or a version that the user chose, has its own."""
        return schemas_read((p.table, p.ref) for p in self.pins.values() if p.follows_schema)

    @property
    def definition_mark(self) -> str:
        """The fingerprint of the definition."""
        return fingerprint(definition(self.world.graph, self.node).text)


def pinned(world: World, node: ModelNode, started_ms: int) -> Pinned:
    """A table or version that does not exist has no pin."""
    below = node_inputs(world.graph, node)
    pins = {leaf: p for leaf in below.leaves if (p := pin(world.graph, world.observed, leaf))}
    return Pinned(node=node, world=world, inputs=below, pins=pins, started_ms=started_ms, clock=values_read(world, node))
