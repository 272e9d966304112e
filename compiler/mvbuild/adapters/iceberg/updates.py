"""table metadata JSON before and after an edit -> the requirements and updates of Iceberg's table commits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mvbuild.adapters.iceberg.metadata import current_snapshot_id

if TYPE_CHECKING:
    from mvbuild.adapters.iceberg.metadata import Raw

_LAST_ADDED = -1
# (list, id within it, current one, action that adds, key of what is added, action that makes current, key of the id)
_LAYOUT = (
    ("schemas", "schema-id", "current-schema-id", "add-schema", "schema", "set-current-schema", "schema-id"),
    ("partition-specs", "spec-id", "default-spec-id", "add-spec", "spec", "set-default-spec", "spec-id"),
    ("sort-orders", "order-id", "default-sort-order-id", "add-sort-order", "sort-order", "set-default-sort-order", "sort-order-id"),
)


def requirements(old: Raw, new: Raw) -> list[Raw]:
    """The table is still the same, and `main` and each branch that moves are still where the edit found them."""
    refs = old.get("refs") or {}
    moved = [update["ref-name"] for update in _refs(old, new) if update["ref-name"] != "main"]
    return [
        {"type": "assert-table-uuid", "uuid": old["table-uuid"]},
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": current_snapshot_id(old)},
        *({"type": "assert-ref-snapshot-id", "ref": name, "snapshot-id": refs.get(name, {}).get("snapshot-id")} for name in moved),
    ]


def updates(old: Raw, new: Raw) -> list[Raw]:
    """In an order that a catalog can apply: an update comes after those that it refers to."""
    return [*_layout(old, new), *_snapshots(old, new), *_refs(old, new), *property_updates(old, new)]


def as_models(old: Raw, new: Raw) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Both as PyIceberg's models. PyIceberg refuses every branch requirement on a table without snapshots, so such a table has none."""
    from pydantic import TypeAdapter
    from pyiceberg.table.update import TableRequirement, TableUpdate

    empty = not old.get("snapshots")
    required = [one for one in requirements(old, new) if not (empty and one.get("ref", "main") != "main")]
    requirement: TypeAdapter[Any] = TypeAdapter(TableRequirement)
    update: TypeAdapter[Any] = TypeAdapter(TableUpdate)
    return tuple(map(requirement.validate_python, required)), tuple(map(update.validate_python, updates(old, new)))


def _layout(old: Raw, new: Raw) -> list[Raw]:
    result: list[Raw] = []
    for listed, name, current, add, added, make_current, of in _LAYOUT:
        known = {entry[name] for entry in old[listed]}
        fresh = [entry for entry in new[listed] if entry[name] not in known]
        result += [{"action": add, added: entry} for entry in fresh]
        if new[current] == old[current]:
            continue
        # The catalog may number additions in its own way.
        result.append({"action": make_current, of: _LAST_ADDED if fresh else new[current]})
    return result


def _snapshots(old: Raw, new: Raw) -> list[Raw]:
    known = {s["snapshot-id"] for s in old.get("snapshots") or []}
    kept = {s["snapshot-id"] for s in new.get("snapshots") or []}
    added = [{"action": "add-snapshot", "snapshot": s} for s in new.get("snapshots") or [] if s["snapshot-id"] not in known]
    gone = sorted(known - kept)
    return [*added, *([{"action": "remove-snapshots", "snapshot-ids": gone}] if gone else [])]


def _refs(old: Raw, new: Raw) -> list[Raw]:
    before, after = old.get("refs") or {}, new.get("refs") or {}
    moved = [{"action": "set-snapshot-ref", "ref-name": name, **ref} for name, ref in after.items() if before.get(name) != ref]
    gone = [{"action": "remove-snapshot-ref", "ref-name": name} for name in before if name not in after]
    return [*moved, *gone]


def property_updates(old: Raw, new: Raw) -> list[Raw]:
    """The updates of the properties of a table or view."""
    before, after = old.get("properties") or {}, new.get("properties") or {}
    changed = {key: value for key, value in after.items() if before.get(key) != value}
    gone = [key for key in before if key not in after]
    sets = [{"action": "set-properties", "updates": changed}] if changed else []
    return [*sets, *([{"action": "remove-properties", "removals": gone}] if gone else [])]
