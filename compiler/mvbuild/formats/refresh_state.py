"""RefreshRecord <-> the `refresh-state` JSON of a storage snapshot's summary.

Source: the upstream draft of materialized views in the Iceberg view specification. It is a draft, so everything about it is in this module.
Names of older writers (`refresh-version-id`, `source-table-states`, `source-view-states`) are read and never written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from mvbuild.formats.record import NO_SNAPSHOT, BaseTable, ChildView, RecordError, RefreshRecord, integer

KEY = "refresh-state"


def encode(record: RefreshRecord) -> str:
    """The value of the summary key. A table without snapshots cannot be expressed in the draft, and is omitted.

    Nor does the draft have a `type` for a table at a path, whose name is its path. Raises RecordError for a record of another writer.
    """
    if record.view_version_id is None:
        raise RecordError("view-version-id", "is unknown: the record was not written by mvbuild")
    if record.incomplete:
        raise RecordError("source-states", "are not all known: the record was not written by mvbuild")
    states: list[dict[str, Any]] = [_table(t) for t in record.base_tables if t.snapshot_id != NO_SNAPSHOT]
    states += [_view(v) for v in record.child_views]
    return json.dumps(
        {
            "view-version-id": record.view_version_id,
            "source-states": states,
            "refresh-start-timestamp-ms": record.refresh_start_ms or 0,
        },
        separators=(",", ":"),
    )


def decode(value: str) -> RefreshRecord:
    """The record in a summary value. RecordError names the wrong field."""
    try:
        data = json.loads(value)
    except (ValueError, RecursionError) as exc:
        raise RecordError(KEY, "is not JSON") from exc
    if not isinstance(data, dict):
        raise RecordError(KEY, "must be a JSON object")
    version = data.get("view-version-id", data.get("refresh-version-id"))
    started = data.get("refresh-start-timestamp-ms")
    states = [*_states(data)]
    return RefreshRecord(
        view_version_id=integer("view-version-id", version),
        base_tables=tuple(_read_table(s) for s in states if s.get("type") == "table"),
        child_views=tuple(_read_view(s) for s in states if s.get("type") == "view"),
        refresh_start_ms=None if started is None else integer("refresh-start-timestamp-ms", started),
    )


def _table(table: BaseTable) -> dict[str, Any]:
    state: dict[str, Any] = {
        "type": "table",
        "name": table.name,
        "namespace": list(table.namespace),
        "uuid": table.uuid,
        "snapshot-id": table.snapshot_id,
    }
    return state | _present(catalog=table.catalog, ref=table.ref)


def _view(view: ChildView) -> dict[str, Any]:
    state: dict[str, Any] = {
        "type": "view",
        "name": view.name,
        "namespace": list(view.namespace),
        "uuid": view.uuid,
        "version-id": view.version_id,
    }
    return state | _present(catalog=view.catalog)


def _present(**fields: str | None) -> dict[str, str]:
    return {k: v for k, v in fields.items() if v is not None}


def _states(data: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """Source states under the current name or the older two, each with its `type`."""
    if "source-states" in data:
        yield from _list(data, "source-states", None)
        return
    yield from _list(data, "source-table-states", "table")
    yield from _list(data, "source-view-states", "view")


def _list(data: Mapping[str, Any], field: str, kind: str | None) -> Iterable[Mapping[str, Any]]:
    states = data.get(field, [])
    if not isinstance(states, list):
        raise RecordError(field, "must be a list")
    for state in states:
        if not isinstance(state, dict):
            raise RecordError(field, "must contain objects")
        typed = {"type": kind, **state} if kind else state
        if typed.get("type") not in ("table", "view"):
            raise RecordError(f"{field}.type", f"must be 'table' or 'view', not {typed.get('type')!r}")
        yield typed


def _read_table(state: Mapping[str, Any]) -> BaseTable:
    return BaseTable(snapshot_id=integer("snapshot-id", state.get("snapshot-id")), ref=_text(state, "ref"), **_named(state))


def _read_view(state: Mapping[str, Any]) -> ChildView:
    return ChildView(version_id=integer("version-id", state.get("version-id")), **_named(state))


def _named(state: Mapping[str, Any]) -> dict[str, Any]:
    namespace = state.get("namespace") or ()
    parts = tuple(namespace.split(".")) if isinstance(namespace, str) else tuple(str(p) for p in namespace)
    uuid = _text(state, "uuid")
    if uuid is None:
        raise RecordError("uuid", "is missing from a source state")
    return {"uuid": uuid, "catalog": _text(state, "catalog"), "namespace": parts, "name": _text(state, "name") or ""}


def _text(state: Mapping[str, Any], field: str) -> str | None:
    value = state.get(field)
    if value is not None and not isinstance(value, str):
        raise RecordError(field, f"must be a string, not {value!r}")
    return value
