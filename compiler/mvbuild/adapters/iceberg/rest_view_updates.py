"""view metadata JSON before and after a ViewCommit -> the updates of the REST protocol for views."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mvbuild.adapters.iceberg.metadata import comparable, current_version
from mvbuild.adapters.iceberg.updates import property_updates

if TYPE_CHECKING:
    from mvbuild.adapters.iceberg.metadata import Raw

_MARK = "mvbuild.commit"
_MAY_DROP = "replace.drop-dialect.allowed"
_KEEPS = "replace.append-dialect.allowed"
_LAST_ADDED = -1


def view_updates(old: Raw, new: Raw) -> list[Raw]:
    """Properties come first, because they allow the server some of the other updates."""
    found = property_updates(old, new)
    known_versions = {v["version-id"] for v in old["versions"]}
    made = [v for v in new["versions"] if v["version-id"] not in known_versions]
    # Not "the last one added", the protocol's -1: if others were faster, that has another number, and their version must stay current.
    turned = new["current-version-id"] != old["current-version-id"]
    current = [{"action": "set-current-view-version", "view-version-id": new["current-version-id"]}] if turned else []
    return [*found, *(update for version in made for update in _added(old, new, version)), *current]


def _added(old: Raw, new: Raw, version: Raw) -> list[Raw]:
    schema = next(s for s in new["schemas"] if s["schema-id"] == version["schema-id"])
    known = _known_id(old, schema)
    # A server does not count a schema that it already has as added.
    added = {**version, "schema-id": _LAST_ADDED if known is None else known}
    schemas = [{"action": "add-schema", "schema": schema}] if known is None else []
    return [*schemas, {"action": "add-view-version", "view-version": added}]


def marked(raw: Raw, mark: str) -> Raw:
    """Mark the newest version, so that it can be recognized. A server treats a version that equals an older one as that one."""
    *older, newest = raw["versions"]
    return {**raw, "versions": [*older, {**newest, "summary": {**newest["summary"], _MARK: mark}}]}


def marked_version(raw: Raw, sent: Raw, mark: str) -> Raw | None:
    """The version with that mark; if a server does not keep the mark, an equal version."""
    found = next((v for v in raw["versions"] if v["summary"].get(_MARK) == mark), None)
    return found or next((v for v in raw["versions"] if v["version-id"] == sent["version-id"] and same_text(v, sent)), None)


def same_text(one: Raw, other: Raw) -> bool:
    return _texts(one) == _texts(other) and one.get("default-namespace") == other.get("default-namespace")


def permitting(old: Raw, new: Raw) -> Raw:
    """With the properties that allow a server to drop a dialect, if the change does that."""
    if not _texts(current_version(old)).keys() - _texts(current_version(new)).keys():
        return new
    properties = {key: value for key, value in new["properties"].items() if key != _KEEPS}
    return {**new, "properties": {**properties, _MAY_DROP: "true"}}


def _texts(version: Raw) -> dict[str, str]:
    return {r["dialect"].lower(): r["sql"] for r in version["representations"] if r.get("type") == "sql"}


def _known_id(raw: Raw, schema: Raw) -> int | None:
    return next((s["schema-id"] for s in raw["schemas"] if comparable(s["fields"]) == comparable(schema["fields"])), None)
