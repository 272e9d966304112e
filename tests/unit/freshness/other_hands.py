"""Shop -> the same with a table's metadata edited, as other engines do it: other schemas, branches and tags, no new snapshot."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from mvbuild.ports.states import ViewState
from unit.worlds import Shop, name

Fields = list[dict[str, Any]]
CUSTOMER = {"id": 2, "name": "customer", "type": "long", "required": False}


def two(fields: Fields) -> Fields:
    """With a second column."""
    return [*fields[:1], CUSTOMER]


def edit(of: Shop, table: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Replace the metadata in the catalog, also for an MV in one metadata file."""
    state = of.catalog.load([name(table)])[name(table)]
    files = of.catalog._files._contents  # type: ignore[attr-defined]
    embedded = state.properties.get("materialized-view.metadata-location") if isinstance(state, ViewState) else None
    location = embedded or state.metadata_location
    content, changed_ms = files[location]
    files[location] = (json.dumps(change(json.loads(content))).encode(), changed_ms)


def evolve(of: Shop, change: Callable[[Fields], Fields], table: str = "raw.orders") -> None:
    """Another schema becomes current, and nothing else happens: as ALTER TABLE in Spark."""

    def evolved(raw: dict[str, Any]) -> dict[str, Any]:
        current = next(s for s in raw["schemas"] if s["schema-id"] == raw["current-schema-id"])
        number = max(s["schema-id"] for s in raw["schemas"]) + 1
        schema = {**current, "schema-id": number, "fields": change([dict(f) for f in current["fields"]])}
        return {**raw, "schemas": [*raw["schemas"], schema], "current-schema-id": number, "last-column-id": 9}

    edit(of, table, evolved)


def point(of: Shop, ref: str, snapshot_id: int | None, *, tag: bool = False, table: str = "raw.orders") -> None:
    """A branch or tag moves to a snapshot that is there."""
    at = {"snapshot-id": snapshot_id, "type": "tag" if tag else "branch"}
    edit(of, table, lambda raw: {**raw, "refs": {**raw["refs"], ref: at}})


def register(of: Shop, table: str, copy: str) -> None:
    """Another table over the same metadata, with the same UUID: `register_table`."""
    namespace, _, short = copy.rpartition(".")
    of.catalog._pointers._found[namespace, short] = (of.table(table).metadata_location, "TABLE")  # type: ignore[attr-defined]
    assert of.table(copy).uuid == of.table(table).uuid
    assert name(copy) != name(table)


def swapped(fields: Fields) -> Fields:
    """Both names mean the other column."""
    return [{**fields[0], "name": "customer"}, {**fields[1], "name": "id"}]


def added(fields: Fields) -> Fields:
    return [*fields, {"id": 3, "name": "more", "type": "long", "required": False}]
