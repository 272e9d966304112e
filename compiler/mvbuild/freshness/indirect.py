"""World + MV + record -> Indirect: what readers that know only the property-based specification need besides what the query reads.

Such a reader compares the snapshots and versions that the record names, and nothing else. mvbuild follows an upstream MV to what it was
computed from; here all of that is listed in the record itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from mvbuild.dataclass import dataclass
from mvbuild.formats import properties
from mvbuild.formats.properties import BASE_SNAPSHOT, CHILD_VIEW_VERSION, INDIRECT, VIEW_VERSION, Indirect
from mvbuild.formats.record import RefreshRecord
from mvbuild.freshness.leaves import node_inputs
from mvbuild.freshness.observed import World
from mvbuild.freshness.pins import pin
from mvbuild.freshness.steadiness import unsteady_word
from mvbuild.graph.definition import definition
from mvbuild.graph.model import ModelNode, Node, ViewNode
from mvbuild.names import TableIdentifier
from mvbuild.parse.metadata_columns import OF_ALL_SPECS, metadata_columns
from mvbuild.parse.wall_clock import instant_ms
from mvbuild.ports.states import TableState
from mvbuild.storage.names import known_as


def indirect(world: World, node: ModelNode, record: RefreshRecord, view_uuid: str = "") -> Indirect:
    """`view_uuid`: the UUID of a view that is about to be created."""
    view = world.observed.view(node.identifier)
    found = _Found(tables=_tables_of(record), views={v.uuid: v.version_id for v in record.child_views})
    direct = {*found.tables, *found.views}
    if record.view_version_id is not None and (view or view_uuid):
        # Versions of a view that was dropped and recreated count from 1 again: only its UUID distinguishes it from the one that was
        # refreshed.
        found.view(view.uuid if view else view_uuid, record.view_version_id)
    for upstream in upstream_mvs(world, node):
        _follow(world, upstream, found)
    beyond = found.is_beyond_rules or _has_several_states(world, node, record) or _is_unsteady(world, node) or _asks_the_zone(world, node)
    return Indirect(
        tables={uuid: at for uuid, at in found.tables.items() if uuid not in direct and uuid != properties.NO_TABLE},
        views={uuid: at for uuid, at in found.views.items() if uuid not in direct},
        is_beyond_rules=beyond or properties.NO_TABLE in found.tables,
    )


def is_written(world: World, node: ModelNode, storage: TableState, record: RefreshRecord) -> bool:
    """Whether the properties of the storage about upstream MVs are what would be written now."""
    if storage.of_view is not None:
        return True
    wanted = properties.encode(record, indirect(world, node, record))
    return all(storage.properties.get(key) == value for key, value in wanted.items()) and (
        INDIRECT in wanted or INDIRECT not in storage.properties
    )


def upstream_mvs(world: World, node: ModelNode) -> Iterator[ModelNode]:
    """The MVs whose current state a query reads, each once."""
    leaves = node_inputs(world.graph, node).leaves
    read = dict.fromkeys(leaf.node for leaf in leaves if leaf.travel is None)
    yield from (found for id_ in read if isinstance(found := world.graph.nodes[id_], ModelNode))


@dataclass(kw_only=True)
class _Found:
    tables: dict[str, int]
    views: dict[str, int]
    is_beyond_rules: bool = field(default=False)
    """Two states of one table or view, since a property has one value."""

    def table(self, uuid: str, snapshot_id: int) -> None:
        self.is_beyond_rules |= self.tables.setdefault(uuid, snapshot_id) != snapshot_id

    def view(self, uuid: str, version_id: int) -> None:
        self.is_beyond_rules |= self.views.setdefault(uuid, version_id) != version_id


def _follow(world: World, upstream: ModelNode, found: _Found) -> None:
    """What the storage of an upstream MV records; that includes what it was computed from."""
    storage, view = world.observed.table(upstream.storage), world.observed.view(upstream.identifier)
    if storage is None or view is None or storage.of_view is not None or VIEW_VERSION not in storage.properties:
        found.is_beyond_rules = True
        return
    found.view(view.uuid, _number(storage.properties[VIEW_VERSION]))
    for key, value in storage.properties.items():
        if key.startswith(BASE_SNAPSHOT):
            found.table(key.removeprefix(BASE_SNAPSHOT), _number(value))
        elif key.startswith(CHILD_VIEW_VERSION):
            found.view(key.removeprefix(CHILD_VIEW_VERSION), _number(value))


def _number(value: str) -> int:
    """A value that is not a number is from another writer, and equals nothing."""
    return int(value) if value.lstrip("-").isdigit() else -2


def _tables_of(record: RefreshRecord) -> dict[str, int]:
    """The tables as the properties store them."""
    return {t.uuid: record.of_table(t.uuid)[0].snapshot_id for t in record.base_tables if t.uuid}


def _has_several_states(world: World, node: ModelNode, record: RefreshRecord) -> bool:
    """A branch or tag moves without `main`. A UUID shows neither which of two names was read, nor in which catalog."""
    pins = [p for leaf in node_inputs(world.graph, node).leaves if (p := pin(world.graph, world.observed, leaf))]
    if any(p.ref is not None for p in pins) or any(t.ref is not None for t in record.base_tables):
        return True
    if any(t.catalog not in (None, node.identifier.catalog) for t in record.base_tables):
        return True
    if len({v.uuid for v in record.child_views}) < len(record.child_views):
        return True
    names: dict[str, TableIdentifier] = {}
    return any(names.setdefault(p.table.uuid, known_as(p.table)) != known_as(p.table) for p in pins)


def _is_unsteady(world: World, node: ModelNode) -> bool:
    """The clock, random numbers, the session and new partition specs have no snapshot."""
    below = node_inputs(world.graph, node)
    texts = _texts(world, [node, *(world.graph.nodes[id_] for id_ in below.views)])
    return any(unsteady_word(world, below, text) or OF_ALL_SPECS in metadata_columns(text) for text in texts)


def _asks_the_zone(world: World, node: ModelNode) -> bool:
    """Whether a version is chosen by a time without a zone: in a session with another zone it can be another snapshot."""
    times = [leaf.travel[1] for leaf in node_inputs(world.graph, node).leaves if leaf.travel is not None and leaf.travel[0] == "timestamp"]
    return any(isinstance(text, str) and instant_ms(text, "UTC") != instant_ms(text, "+01:00") for text in times)


def _texts(world: World, nodes: Sequence[Node]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ModelNode):
            yield definition(world.graph, node).text
        elif isinstance(node, ViewNode):
            yield node.query.sql.text
