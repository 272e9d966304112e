"""Swap -> the table of a Hive metastore that shows it, as Iceberg's HiveTableOperations and HiveViewOperations write it."""

from __future__ import annotations

import getpass
import json
import time
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from mvbuild.adapters.iceberg.hive_types import shown
from mvbuild.adapters.iceberg.metadata import Raw, current_schema, current_version
from mvbuild.adapters.iceberg.tables import current

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mvbuild.adapters.iceberg.pointers import Kind, Swap

LOCATION = "metadata_location"
LOCK = "engine.hive.lock-enabled"
_PREVIOUS = "previous_metadata_location"
_TYPE = "table_type"
_TYPES: dict[str, Kind] = {"iceberg": "TABLE", "iceberg-view": "VIEW"}
_OWNER = "hive.metastore.table.owner"
_RENAMED = {"gc.enabled": "external.table.purge"}
_LONGEST = 32672
"""Longer values do not fit into the databases of metastores. Only the two pointers are ever read back."""
_FORMATS = ("org.apache.hadoop.mapred.FileInputFormat", "org.apache.hadoop.mapred.FileOutputFormat")
_SERDE = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
_HIVE_FORMATS = ("org.apache.iceberg.mr.hive.HiveIcebergInputFormat", "org.apache.iceberg.mr.hive.HiveIcebergOutputFormat")
_HIVE_SERDE = "org.apache.iceberg.mr.hive.HiveIcebergSerDe"
_HANDLER = "org.apache.iceberg.mr.hive.HiveIcebergStorageHandler"
_TOTALS = {"numFiles": "total-data-files", "numRows": "total-records", "totalSize": "total-files-size"}
_OF_STATE = ("current-schema", "current-snapshot-id", "current-snapshot-timestamp-ms", "current-snapshot-summary")
_OF_LAYOUT = ("default-partition-spec", "default-sort-order")


def pointer(table: Any) -> tuple[str, Kind] | None:
    """Metadata location and kind; None for entries that are not Iceberg's."""
    parameters = table.parameters or {}
    kind = _TYPES.get(parameters.get(_TYPE, "").lower())
    location = parameters.get(LOCATION)
    return (location, kind) if kind and location else None


def new_table(swap: Swap, *, zoned: str) -> Any:
    from hive_metastore.ttypes import Table

    now, properties = int(time.time()), (swap.raw or {}).get("properties") or {}
    namespace, name = swap.key
    table = Table(
        dbName=namespace,
        tableName=name,
        owner=properties.get(_OWNER) or getpass.getuser(),
        createTime=now,
        lastAccessTime=now,
        retention=2**31 - 1,
        partitionKeys=[],
        parameters={"EXTERNAL": "TRUE"} if swap.kind == "TABLE" else {},
        tableType="EXTERNAL_TABLE" if swap.kind == "TABLE" else "VIRTUAL_VIEW",
    )
    return changed(table, swap, zoned=zoned)


def changed(table: Any, swap: Swap, *, zoned: str) -> Any:
    """A copy of the metastore's table that points to the new metadata; what other writers store there remains."""
    assert swap.raw is not None
    assert swap.new is not None
    table, raw = deepcopy(table), swap.raw
    table.dbName, table.tableName = swap.key
    before = (table.parameters or {}).get(LOCATION)
    is_view = swap.kind == "VIEW"
    gone = {*_OF_STATE, *_OF_LAYOUT, *(((swap.base or {}).get("properties") or {}).keys() - (raw.get("properties") or {}).keys())}
    shown_now = _of_view(raw) if is_view else _of_table(raw)
    table.parameters = {
        **{key: value for key, value in (table.parameters or {}).items() if key not in gone},
        **_short(_properties(raw)),
        **_short(shown_now),
        _TYPE: "ICEBERG-VIEW" if is_view else "ICEBERG",
        LOCATION: swap.new,
        **({_PREVIOUS: before} if before else {}),
    }
    if is_view:
        table.viewOriginalText = table.viewExpandedText = _sql(raw)
    else:
        table.parameters.pop("COLUMN_STATS_ACCURATE", None)
    table.sd = _storage(raw, is_view=is_view, zoned=zoned)
    return table


def _properties(raw: Raw) -> dict[str, str]:
    properties = raw.get("properties") or {}
    return {_RENAMED.get(key, key): str(value) for key, value in properties.items() if key.lower() != _OWNER}


def _of_view(raw: Raw) -> dict[str, str]:
    return {"uuid": raw["view-uuid"], "current-schema": _json(_schema(raw, is_view=True))}


def _of_table(raw: Raw) -> dict[str, str]:
    snapshot = current(raw)
    found = {"uuid": raw.get("table-uuid", ""), "current-schema": _json(current_schema(raw)), "DO_NOT_UPDATE_STATS": "true"}
    found["snapshot-count"] = str(len(raw.get("snapshots") or []))
    if snapshot is not None:
        summary = snapshot.get("summary") or {}
        found |= {key: summary[total] for key, total in _TOTALS.items() if total in summary}
        found["current-snapshot-id"] = str(snapshot["snapshot-id"])
        found["current-snapshot-timestamp-ms"] = str(snapshot["timestamp-ms"])
        found["current-snapshot-summary"] = _json({key: value for key, value in summary.items() if key != "operation"})
    spec = _with_id(raw, "partition-specs", "spec-id", "default-spec-id")
    order = _with_id(raw, "sort-orders", "order-id", "default-sort-order-id")
    found |= {"default-partition-spec": _json(spec)} if spec.get("fields") else {}
    found |= {"default-sort-order": _json(order)} if order.get("fields") else {}
    if _uses_hive(raw):
        found["storage_handler"] = _HANDLER
    return found


def _storage(raw: Raw, *, is_view: bool, zoned: str) -> Any:
    from hive_metastore.ttypes import FieldSchema, SerDeInfo, StorageDescriptor

    fields = _schema(raw, is_view=is_view)["fields"]
    by_hive = not is_view and _uses_hive(raw)
    inputs, outputs = _HIVE_FORMATS if by_hive else _FORMATS
    return StorageDescriptor(
        cols=[FieldSchema(field["name"], shown(field["type"], zoned=zoned), field.get("doc")) for field in fields],
        location=raw["location"],
        inputFormat=inputs,
        outputFormat=outputs,
        serdeInfo=SerDeInfo(serializationLib=_HIVE_SERDE if by_hive else _SERDE, parameters={}),
    )


def _schema(raw: Raw, *, is_view: bool) -> Raw:
    if not is_view:
        return current_schema(raw)
    return current_schema({**raw, "current-schema-id": current_version(raw)["schema-id"]})


def _sql(raw: Raw) -> str | None:
    texts = {r["dialect"].lower(): r["sql"] for r in current_version(raw)["representations"] if r.get("type") == "sql"}
    return texts.get("hive") or next(iter(texts.values()), None)


def _uses_hive(raw: Raw) -> bool:
    return str((raw.get("properties") or {}).get("engine.hive.enabled", "")).lower() == "true"


def _with_id(raw: Raw, of: str, name: str, default: str) -> Raw:
    return next((one for one in raw.get(of) or () if one[name] == raw.get(default, 0)), {})


def _short(values: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in values.items() if len(value) <= _LONGEST}


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
