"""metadata JSON -> the same as an Iceberg branch sees it, with everything current being the branch's; and back, with `main` unchanged.

The branch of a table is a reference of the table. Iceberg keeps current schema, partition spec, sort order and properties once for all
branches; for mvbuild's branches, one property stores them. The same applies to versions of views, which have no references at all. Readers
of `main` see none of it.

The property also records the state of `main` on which the branch was built. If `main` has changed since, the branch is outdated, and is
treated as if it did not exist.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mvbuild.adapters.iceberg.metadata import CURRENT_LAYOUT, MAIN, current_snapshot_id, current_version
from mvbuild.adapters.iceberg.scratch import is_scratch
from mvbuild.adapters.iceberg.tables import now_ms
from mvbuild.ports.catalog import CatalogError, CommitConflict
from mvbuild.ports.commits import BRANCH_PROPERTY

if TYPE_CHECKING:
    from mvbuild.adapters.iceberg.metadata import Raw
    from mvbuild.names import TableIdentifier

_MIRRORED = ("schema", "partition-spec")
"""Fields that format 1 stores a second time."""
_KEPT = ("current-snapshot-id", "snapshot-log", "version-log", "properties")
_RECORD = ("iceberg.", "mvbuild.")
"""Prefixes of properties that describe rows or a version. A branch has its own complete record. The record of `main` may move on while the
rows of both stay the same, and it would then be wrong for the branch."""


def seen(raw: Raw, branch: str) -> Raw:
    """Metadata as the branch sees it. Scratch tables have no branches."""
    if is_scratch(raw):
        return raw
    is_view = "view-uuid" in raw
    state = _branch_state(raw, branch)
    outdated = _is_outdated(raw, state, branch)
    found = {**raw, "properties": _shared(raw, branch), MAIN: _saved_main(raw, outdated=outdated)}
    if outdated:
        return found
    ref = None if is_view else _ref(raw, branch)
    if ref is not None:
        refs = {name: one for name, one in raw["refs"].items() if name != branch}
        found |= {
            "refs": {**refs, "main": ref},
            "current-snapshot-id": ref["snapshot-id"],
            "snapshot-log": _logged(raw, ref["snapshot-id"]),
        }
    if not state:
        return found
    own = {key: state["current"][key] for key in _current(raw) if key in state["current"]}
    properties = {key: value for key, value in found["properties"].items() if key not in state["unset"] and not _is_record(key)}
    return {**found, **own, "properties": {**properties, **state["set"]}}


def put_back(raw: Raw, branch: str) -> Raw:
    """Translate metadata that was changed as the branch sees it back to what is written. Raises CatalogError if a tag has the branch's
    name."""
    found = {key: value for key, value in raw.items() if key != MAIN}
    if MAIN not in raw or is_scratch(raw):
        return found
    main, is_view = raw[MAIN], "view-uuid" in raw
    before, shared = main.get("properties") or {}, _shared(main, branch)
    after = _shared(raw, branch)
    current = {key: raw[key] for key in _current(raw) if key in raw and raw[key] != main.get(key)}
    head = None if is_view else current_snapshot_id(raw)
    note = {
        "base": _head(main, is_view=is_view),
        "head": head,
        "current": current,
        "set": {key: value for key, value in after.items() if _is_record(key) or shared.get(key) != value},
        "unset": sorted(key for key in shared if key not in after and not _is_record(key)),
    }
    changed = bool(current) or after != shared or (not is_view and head != current_snapshot_id(main))
    own = changed or (BRANCH_PROPERTY + branch in before and not main["outdated"])
    if own and (raw.get("refs") or {}).get(branch, {}).get("type", "branch") != "branch":
        raise CatalogError(f"'{branch}' is the name of a tag: choose another for the branch")
    kept = {key: main[key] for key in (*_KEPT, *_current(raw)) if key in main}
    found = {key: value for key, value in found.items() if key in kept or key not in (*_KEPT, *_current(raw))}
    state = {BRANCH_PROPERTY + branch: json.dumps(note, separators=(",", ":"), sort_keys=True)}
    found |= {**kept, "properties": {**shared, **state} if own else before}
    return _with_main_version(found, main) if is_view else {**found, "refs": _refs(raw, main, branch, own=own)}


def published(raw: Raw, branch: str, identifier: TableIdentifier) -> Raw:
    """Make what the branch has current, and remove the branch. Raises CommitConflict if it is outdated."""
    state = _branch_state(raw, branch)
    if _is_outdated(raw, state, branch):
        raise CommitConflict(f"{identifier} has changed since branch '{branch}' was built: run with --branch {branch} again, then publish.")
    found = {key: value for key, value in seen(raw, branch).items() if key != MAIN}
    if "view-uuid" in raw:
        if found["current-version-id"] != raw["current-version-id"]:
            entry = {"timestamp-ms": now_ms(), "version-id": found["current-version-id"]}
            found["version-log"] = [*raw["version-log"], entry]
        return found
    head = current_snapshot_id(found)
    if head is not None and head != current_snapshot_id(raw):
        entry = {"timestamp-ms": max(now_ms(), raw["last-updated-ms"]), "snapshot-id": head}
        found["snapshot-log"] = [*(raw.get("snapshot-log") or []), entry]
        found["refs"] = {**found["refs"], "main": {**((raw.get("refs") or {}).get("main") or {"type": "branch"}), "snapshot-id": head}}
    return found


def dropped(raw: Raw, branch: str) -> Raw:
    """Remove the branch. Its snapshots are removed when they expire."""
    state = _branch_state(raw, branch)
    found = {**raw, "properties": _shared(raw, branch)}
    if "view-uuid" not in raw:
        return {**found, "refs": {name: ref for name, ref in (raw.get("refs") or {}).items() if name != branch}}
    version = (state.get("current") or {}).get("current-version-id")
    versions = [v for v in raw["versions"] if v["version-id"] != version or version == raw["current-version-id"]]
    return {**found, "versions": versions}


def _current(raw: Raw) -> tuple[str, ...]:
    """The fields that say what is current, except for snapshots."""
    return ("current-version-id",) if "view-uuid" in raw else (*CURRENT_LAYOUT, *_MIRRORED)


def _saved_main(raw: Raw, *, outdated: bool) -> Raw:
    kept = {key: raw[key] for key in (*_KEPT, *_current(raw)) if key in raw}
    kept |= {"outdated": outdated, "ref": (raw.get("refs") or {}).get("main")}
    if "view-uuid" in raw:
        version = current_version(raw)
        schema = next((s for s in raw["schemas"] if s.get("schema-id", 0) == version["schema-id"]), None)
        kept |= {"version": version, "schema": schema}
    return kept


def _head(raw: Raw, *, is_view: bool) -> int | None:
    return raw["current-version-id"] if is_view else current_snapshot_id(raw)


def _refs(raw: Raw, main: Raw, branch: str, *, own: bool) -> Raw:
    refs = {name: ref for name, ref in (raw.get("refs") or {}).items() if name != "main"}
    head, of_main = (raw.get("refs") or {}).get("main"), current_snapshot_id(main)
    if of_main is not None:
        refs["main"] = main["ref"] or {"snapshot-id": of_main, "type": "branch"}
    if own and current_snapshot_id(raw) is not None:
        refs[branch] = {"type": "branch", **(head or {}), "snapshot-id": current_snapshot_id(raw)}
    return refs


def _with_main_version(found: Raw, main: Raw) -> Raw:
    """Versions of the branch may have pushed the current one out of a short history."""
    if any(v["version-id"] == main["current-version-id"] for v in found["versions"]):
        return found
    schemas = found["schemas"]
    if main["schema"] is not None and all(s.get("schema-id", 0) != main["version"]["schema-id"] for s in schemas):
        schemas = [main["schema"], *schemas]
    return {**found, "versions": [main["version"], *found["versions"]], "schemas": schemas}


def _ref(raw: Raw, branch: str) -> Raw | None:
    found: Raw | None = (raw.get("refs") or {}).get(branch)
    return found if found is not None and found.get("type", "branch") == "branch" else None


def _logged(raw: Raw, head: int) -> list[Raw]:
    log = raw.get("snapshot-log") or []
    at = next((s["timestamp-ms"] for s in raw.get("snapshots") or [] if s["snapshot-id"] == head), None)
    if at is None:
        raise CatalogError(f"a branch refers to snapshot {head}, which does not exist")
    return [*log, {"timestamp-ms": at, "snapshot-id": head}]


def _branch_state(raw: Raw, branch: str) -> dict[str, Any]:
    text = (raw.get("properties") or {}).get(BRANCH_PROPERTY + branch)
    with suppress(ValueError, TypeError):
        found = json.loads(text or "{}")
        if isinstance(found, dict) and {"base", "head", "current", "set", "unset"} <= found.keys():
            return found
    return {}


def _is_outdated(raw: Raw, state: dict[str, Any], branch: str) -> bool:
    """Whether `main` has changed since the branch was built, or the reference was removed."""
    if not state:
        return False
    return state["base"] != _head(raw, is_view="view-uuid" in raw) or (state["head"] is not None and _ref(raw, branch) is None)


def _is_record(key: str) -> bool:
    return key.startswith(_RECORD) and not key.startswith(BRANCH_PROPERTY)


def _shared(raw: Raw, branch: str) -> dict[str, str]:
    """The properties without that of the branch."""
    return {key: value for key, value in (raw.get("properties") or {}).items() if key != BRANCH_PROPERTY + branch}
