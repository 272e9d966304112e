"""Freshness of an MV of another writer -> the same, with further checks: is this its storage, and is its record right?

mvbuild knows what it wrote itself. For others, it knows only their record, so each part of it must agree with everything that can be seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from mvbuild.formats.properties import OWNER
from mvbuild.formats.record import NO_SNAPSHOT, BaseTable, RefreshRecord
from mvbuild.freshness.leaves import node_inputs
from mvbuild.freshness.model import Freshness, Reason
from mvbuild.freshness.observed import World
from mvbuild.freshness.pins import leaf_table
from mvbuild.graph.model import ModelNode
from mvbuild.ports.states import Schema, TableState, ViewState
from mvbuild.storage.layout import same_columns
from mvbuild.storage.stored import disagreeing, replaced_since

Rule = Callable[[World, ModelNode, ViewState, TableState, RefreshRecord], Iterator[Reason]]


def strictly(world: World, node: ModelNode, found: Freshness) -> Freshness:
    """With the reasons of the rules below."""
    view, storage = world.observed.view(node.identifier), world.observed.table(node.storage)
    if view is None or storage is None or found.record is None:
        return found
    new = [reason for rule in _RULES for reason in rule(world, node, view, storage, found.record)]
    reasons = tuple(dict.fromkeys((*found.reasons, *new)))
    effects = {r.effect for r in reasons}
    return replace(found, reasons=reasons, state="stale" if "stale" in effects else "unknown" if "unknown" in effects else "fresh")


def _is_its_storage(world: World, node: ModelNode, view: ViewState, storage: TableState, record: RefreshRecord) -> Iterator[Reason]:  # noqa: ARG001
    owners = {view.properties.get(OWNER), storage.properties.get(OWNER)}
    if len(owners) > 1 and None not in owners:
        message = f"its storage {storage.identifier} belongs to another model, {storage.properties[OWNER]}"
        yield Reason(code="storage-of-another", message=message, effect="stale", table=storage.identifier)


def _schema_fits(world: World, node: ModelNode, view: ViewState, storage: TableState, record: RefreshRecord) -> Iterator[Reason]:  # noqa: ARG001
    """The columns are the view's, and each still has the values that the refresh wrote under that name."""
    if not same_columns(view.schema, storage.schema):
        message = f"the columns of its storage {storage.identifier} differ from those of the view"
        yield Reason(code="storage-schema-differs", message=message, effect="stale", table=storage.identifier)
        return
    snapshot = storage.current_snapshot
    written = storage.schemas.get(snapshot.schema_id) if snapshot is not None and snapshot.schema_id is not None else None
    if written is not None and _ids(written) != _ids(storage.schema):
        message = f"the columns of its storage {storage.identifier} were changed after the rows were written"
        yield Reason(code="storage-schema-differs", message=message, effect="stale", table=storage.identifier)


def _one_record(world: World, node: ModelNode, view: ViewState, storage: TableState, record: RefreshRecord) -> Iterator[Reason]:  # noqa: ARG001
    if disagreeing(storage):
        message = "its properties and the `refresh-state` of its storage record different refreshes"
        yield Reason(code="records-disagree", message=message, effect="unknown", table=storage.identifier)


def _all_tables(world: World, node: ModelNode, view: ViewState, storage: TableState, record: RefreshRecord) -> Iterator[Reason]:  # noqa: ARG001
    """The specification requires that every table in the record is unchanged, even if the query does not seem to read it."""
    leaves = (leaf_table(world.graph, leaf) for leaf in node_inputs(world.graph, node).leaves)
    read = {table.uuid for i in leaves if (table := world.observed.table(i)) is not None}
    tables: dict[str, list[TableState]] = {}
    for state in world.observed.states.values():
        if isinstance(state, TableState):
            tables.setdefault(state.uuid, []).append(state)
    for recorded in record.base_tables:
        if recorded.uuid and recorded.uuid not in read and not any(_is_same(recorded, t) for t in tables.get(recorded.uuid, ())):
            what = "has changed" if recorded.uuid in tables else "cannot be found"
            message = f"the record names a base table that {what}: {recorded.name or recorded.uuid}"
            yield Reason(code="recorded-table-differs", message=message, effect="stale" if recorded.uuid in tables else "unknown")


def _all_views(world: World, node: ModelNode, view: ViewState, storage: TableState, record: RefreshRecord) -> Iterator[Reason]:  # noqa: ARG001
    read = {v.uuid for id in node_inputs(world.graph, node).views if (v := world.observed.view(world.graph.nodes[id].identifier))}
    views = {state.uuid: state for state in world.observed.states.values() if isinstance(state, ViewState)}
    for recorded in record.child_views:
        found = views.get(recorded.uuid)
        if recorded.uuid not in read and (found is None or found.version_id != recorded.version_id):
            what = "cannot be found" if found is None else "was replaced"
            message = f"the record names a child view that {what}: {recorded.name or recorded.uuid}"
            yield Reason(code="recorded-view-differs", message=message, effect="unknown" if found is None else "stale")


_RULES: tuple[Rule, ...] = (_is_its_storage, _schema_fits, _one_record, _all_tables, _all_views)


def _is_same(recorded: BaseTable, table: TableState) -> bool:
    now = table.refs.get(recorded.ref) if recorded.ref is not None else table.current_snapshot_id
    if (NO_SNAPSHOT if now is None else now) == recorded.snapshot_id:
        return True
    return recorded.ref is None and recorded.snapshot_id in table.snapshots and replaced_since(table, recorded.snapshot_id)


def _ids(schema: Schema) -> Any:
    """Everything in a schema that determines where the values of a column are."""
    return [_field(f) for f in schema["fields"]]


def _field(field: Mapping[str, Any]) -> Any:
    return field["id"], field["name"], _type(field["type"])


def _type(kind: Any) -> Any:
    if not isinstance(kind, Mapping):
        return str(kind).replace(" ", "")
    if kind["type"] == "struct":
        return [_field(f) for f in kind["fields"]]
    parts = ("element",) if kind["type"] == "list" else ("key", "value")
    return kind["type"], [(kind[f"{part}-id"], _type(kind[part])) for part in parts]
