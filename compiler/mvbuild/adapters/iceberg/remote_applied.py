"""table metadata before a commit, as sent, and now -> whether the commit was made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mvbuild.adapters.iceberg.metadata import comparable, current_schema, current_snapshot_id
from mvbuild.adapters.iceberg.updates import updates

if TYPE_CHECKING:
    from collections.abc import Callable

    from mvbuild.adapters.iceberg.metadata import Raw


def moved_main(old: Raw, new: Raw) -> bool:
    return current_snapshot_id(new) != current_snapshot_id(old)


def was_applied(old: Raw, new: Raw, now: Raw) -> bool:
    """A commit that moved `main` is in the history, whatever came after it. Any other commit was made if everything that it wanted is
    true."""
    if now.get("table-uuid") != old.get("table-uuid"):
        return False
    if moved_main(old, new):
        wanted = current_snapshot_id(new)
        return current_snapshot_id(now) == wanted or _logged(now, wanted) > _logged(old, wanted)
    return all(_holds(update, new, now) for update in updates(old, new))


def _logged(raw: Raw, snapshot_id: int | None) -> int:
    return sum(entry["snapshot-id"] == snapshot_id for entry in raw.get("snapshot-log") or [])


def _holds(update: Raw, new: Raw, now: Raw) -> bool:
    check = _CHECKS.get(update["action"])
    return check is None or check(update, new, now)


def _is_set(update: Raw, _: Raw, now: Raw) -> bool:
    properties = now.get("properties") or {}
    return all(properties.get(key) == value for key, value in update["updates"].items())


def _is_removed(update: Raw, _: Raw, now: Raw) -> bool:
    return not set(update["removals"]) & set(now.get("properties") or {})


def _refers(update: Raw, _: Raw, now: Raw) -> bool:
    ref = (now.get("refs") or {}).get(update["ref-name"])
    return ref is not None and ref["snapshot-id"] == update["snapshot-id"]


def _refers_no_more(update: Raw, _: Raw, now: Raw) -> bool:
    return update["ref-name"] not in (now.get("refs") or {})


def _are_expired(update: Raw, _: Raw, now: Raw) -> bool:
    return not set(update["snapshot-ids"]) & {s["snapshot-id"] for s in now.get("snapshots") or []}


def _has_schema(_: Raw, new: Raw, now: Raw) -> bool:
    return bool(comparable(current_schema(new)["fields"]) == comparable(current_schema(now)["fields"]))


def _has_default(listed: str, name: str, current: str) -> Callable[[Raw, Raw, Raw], bool]:
    def fields(raw: Raw) -> list[Raw]:
        found: list[Raw] = next((one["fields"] for one in raw.get(listed) or [] if one[name] == raw[current]), [])
        # The catalog numbers partition fields in its own way.
        return [{key: value for key, value in field.items() if key != "field-id"} for field in found]

    return lambda _, new, now: bool(fields(new) == fields(now))


_CHECKS: dict[str, Callable[[Raw, Raw, Raw], bool]] = {
    "set-properties": _is_set,
    "remove-properties": _is_removed,
    "set-snapshot-ref": _refers,
    "remove-snapshot-ref": _refers_no_more,
    "remove-snapshots": _are_expired,
    "set-current-schema": _has_schema,
    "set-default-spec": _has_default("partition-specs", "spec-id", "default-spec-id"),
    "set-default-sort-order": _has_default("sort-orders", "order-id", "default-sort-order-id"),
}
"""Additions (a snapshot, a schema) are checked through the update that refers to them."""
