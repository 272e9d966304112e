"""World + MV -> Recorded: the query of its last refresh with the snapshots that it read, or Unverifiable: why there is none. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from mvbuild.dataclass import dataclass
from mvbuild.formats.record import NO_SNAPSHOT, BaseTable, RefreshRecord
from mvbuild.freshness.changed_columns import changed_columns
from mvbuild.freshness.clock import columns_below
from mvbuild.freshness.leaves import Inputs, inputs
from mvbuild.freshness.model import Reason
from mvbuild.freshness.observed import Leaf, Pin, World
from mvbuild.freshness.pending import pending_views, stored_definition
from mvbuild.freshness.pins import leaf_table, pin
from mvbuild.freshness.rules import judge_one
from mvbuild.freshness.states import recorded_states
from mvbuild.freshness.steadiness import unsteady_word
from mvbuild.graph.definition import definition
from mvbuild.graph.model import ModelNode, NodeId, ViewNode
from mvbuild.names import TableIdentifier
from mvbuild.parse.clock_reads import without_clock
from mvbuild.parse.fingerprint import fingerprint
from mvbuild.parse.model import Query
from mvbuild.ports.states import TableState, ViewState
from mvbuild.refresh.redefine import resolved
from mvbuild.storage.names import known_as
from mvbuild.storage.reads import recorded_reads
from mvbuild.storage.schemas_read import recorded_schema_id
from mvbuild.storage.stored import stored

_NOTHING_TO_COMPARE = (
    "metadata-unreadable",
    "not-compiled",
    "storage-missing",
    "never-refreshed",
    "record-unreadable",
    "view-missing",
    "view-version-not-recorded",
)
"""Reasons of freshness that mean missing rows, record or definition."""


class Unverifiable(Exception):
    """What the last refresh computed cannot be computed again."""

    def __init__(self, code: str, message: str, table: TableIdentifier | None = None) -> None:
        super().__init__(message)
        self.reason = Reason(code=code, message=message, effect="unknown", table=table)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What the last refresh computed, and where its rows are."""

    storage: TableState
    query: Query
    reads: tuple[NodeId, ...]
    pins: Mapping[Leaf, Pin]
    own_schemas: frozenset[str]
    """UUIDs of tables that were read with the schema of the snapshot instead of their current one."""
    notes: tuple[Reason, ...]
    clock: Mapping[str, str]
    """What the query read of the clock, by name."""


def recorded_state(world: World, node: ModelNode) -> Recorded:
    """Raises Unverifiable with the first obstacle."""
    found = judge_one(world, node, {}).reasons
    for reason in found:
        if reason.code in _NOTHING_TO_COMPARE:
            raise Unverifiable(reason.code, reason.message, reason.table)
    storage, view = world.observed.table(node.storage), world.observed.view(node.identifier)
    assert storage is not None
    assert view is not None
    record = stored(storage).record
    assert record is not None
    if record.incomplete:
        raise Unverifiable("base-table-not-recorded", "the record says that it does not cover every table that was read")
    query, reads, text = _definition(world, node, view, record)
    below = inputs(world.graph, query, reads)
    _require_views(world, below, record)
    texts = [(node.identifier, text), *_view_texts(world, below)]
    pins = {leaf: _pin(world, record, leaf) for leaf in below.leaves}
    own = frozenset(p.table.uuid for p in pins.values() if _has_own_schema(storage, p, [sql for _, sql in texts]))
    clock, columns = recorded_reads(storage), columns_below(world, below)
    steady = [(name, without_clock(sql, clock, columns)) for name, sql in texts]
    notes = (
        *(r for r in found if r.code in ("storage-changed", "storage-schema-changed", "session-differs")),
        *_unsteady(world, below, steady),
    )
    return Recorded(storage=storage, query=query, reads=reads, pins=pins, own_schemas=own, notes=notes, clock=clock)


def _definition(world: World, node: ModelNode, view: ViewState, record: RefreshRecord) -> tuple[Query, tuple[NodeId, ...], str]:
    """The project's query if it is the one that was refreshed, otherwise that of the view's version in the record."""
    version = record.view_version_id
    text = stored_definition(view, node.storage) if version == view.version_id else view.spark_versions.get(version or 0)
    if text is not None and fingerprint(text) == fingerprint(definition(world.graph, node).text):
        return node.query, node.reads, text
    found = resolved(world, node, text) if text is not None else None
    if found is None or text is None:
        message = f"its definition was changed, and version {version} of the view, which was refreshed, can no longer be read"
        raise Unverifiable("definition-changed", message, node.identifier)
    return *found, text


def _require_views(world: World, below: Inputs, record: RefreshRecord) -> None:
    """The query is expanded with the current views, so they must not have changed."""
    edited = pending_views(world) if below.views else frozenset()
    for id_ in below.views:
        identifier = world.graph.nodes[id_].identifier
        view = world.observed.view(identifier)
        if view is None:
            raise Unverifiable("child-view-missing", f"the child view {identifier} does not exist", identifier)
        read = record.of_view(view.uuid, identifier.namespace, identifier.name)
        if read is None:
            raise Unverifiable("child-view-not-recorded", f"the record does not cover {identifier}", identifier)
        if read.version_id != view.version_id:
            message = f"the child view {identifier} was replaced: version {read.version_id} was read, it is now at {view.version_id}"
            raise Unverifiable("child-view-changed", message, identifier)
        if id_ in edited:
            raise Unverifiable("child-view-edited", f"the child view {identifier} was edited", identifier)


def _view_texts(world: World, below: Inputs) -> Iterator[tuple[TableIdentifier, str]]:
    for id_ in below.views:
        node = world.graph.nodes[id_]
        if isinstance(node, ModelNode | ViewNode) and id_ not in world.graph.undefined:
            yield node.identifier, definition(world.graph, node).text if isinstance(node, ModelNode) else node.query.sql.text


def _unsteady(world: World, below: Inputs, texts: Sequence[tuple[TableIdentifier, str]]) -> Iterator[Reason]:
    for identifier, text in texts:
        word = unsteady_word(world, below, text)
        if word:
            message = f"the result may differ each time: {identifier} uses {word}"
            yield Reason(code="nondeterministic", message=message, effect="unknown", table=identifier)


# Snapshots


def _pin(world: World, record: RefreshRecord, leaf: Leaf) -> Pin:
    """The snapshot of a leaf that the refresh read."""
    now = pin(world.graph, world.observed, leaf)
    if now is None:
        raise _missing(world, leaf)
    table, name = now.table, known_as(now.table)
    at = _snapshot_id(recorded_states(record, now), now)
    if at is None:
        raise Unverifiable("base-table-not-recorded", f"the record does not cover {name}", table.identifier)
    if at != NO_SNAPSHOT and at not in table.snapshots:
        raise expired(name, at)
    return replace(now, snapshot_id=at)


def _snapshot_id(states: Sequence[BaseTable], now: Pin) -> int | None:
    """States of `main` come first; a branch or tag has a state of its own; a version that the user chose does not change."""
    if now.moves:
        return next((t.snapshot_id for t in states if t.ref == now.ref), None)
    return now.snapshot_id if any(t.snapshot_id == now.snapshot_id for t in states) else None


def expired(name: TableIdentifier, snapshot_id: int) -> Unverifiable:
    return Unverifiable("snapshot-expired", f"the snapshot {snapshot_id} of {name}, which was read, has expired", name)


def _missing(world: World, leaf: Leaf) -> Unverifiable:
    identifier = leaf_table(world.graph, leaf)
    broken = world.observed.unreadable(identifier)
    if broken is not None:
        return Unverifiable("base-table-unreadable", broken.reason, identifier)
    if world.observed.table(identifier) is None:
        return Unverifiable("base-table-missing", f"the table {identifier} does not exist", identifier)
    version = leaf.travel[1] if leaf.travel else ""
    return Unverifiable("snapshot-expired", f"the table {identifier} no longer has version {version!r}", identifier)


def _has_own_schema(storage: TableState, read: Pin, texts: Sequence[str]) -> bool:
    """Whether the refresh read the snapshot under its own schema, and the table has another one by now: a refresh reads under the schema
    that is current then."""
    table = read.table
    own = None if read.is_empty else table.snapshots[read.snapshot_id].schema_id
    if not read.follows_schema or (own is None and not read.is_empty):
        return False
    schema_id = recorded_schema_id(storage, table, read.ref, read.snapshot_id)
    if schema_id is None and own not in (None, table.current_schema_id):
        message = f"{known_as(table)} now has another schema, and the schema that was read is not recorded"
        raise Unverifiable("base-table-schema-not-recorded", message, table.identifier)
    changed = changed_columns(storage, read, texts)
    if changed and schema_id != own:
        message = f"columns of {known_as(table)} have changed since it was read: {', '.join(changed)}"
        raise Unverifiable("base-table-schema-changed", message, table.identifier)
    return bool(changed)
