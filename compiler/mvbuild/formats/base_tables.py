"""BaseTable <-> a `base-table` record of the metadata file, and the identifiers that key them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from mvbuild.formats.record import BaseTable, RecordError, integer
from mvbuild.names import quote

_PART = r"`(?:[^`]|``)*`|[^`.]+"
_PARTS = re.compile(rf"(?:{_PART})(?:\.(?:{_PART}))*")
_UUID, _REF, _CATALOG, _NAMESPACE = "uuid", "ref", "catalog", "namespace"
_OWN = (_UUID, _REF, _CATALOG, _NAMESPACE)


def encode_base_tables(tables: Sequence[BaseTable]) -> dict[str, Any]:
    """`base-tables`: full identifier or path -> record. Raises RecordError if a table has two states, or no name."""
    encoded: dict[str, Any] = {}
    for table in dict.fromkeys(tables):
        record = encode_base_table(table)
        key = record["identifier"]
        if key in encoded:
            raise RecordError(
                "base-tables", f"{key} was read at two snapshots or references; the metadata file has only one for each table"
            )
        encoded[key] = record
    return encoded


def encode_base_table(table: BaseTable) -> dict[str, Any]:
    if not table.name:
        raise RecordError("base-tables", f"the table with the UUID '{table.uuid}' has no name to record")
    properties = dict(table.place)
    if table.uuid:
        properties[_UUID] = table.uuid
    if table.ref is not None:
        properties[_REF] = table.ref
    if table.type == "iceberg-metastore":
        identifier = join_parts((*(() if table.catalog is None else (table.catalog,)), *table.namespace, table.name))
        if _name(identifier, {}) != (table.catalog, table.namespace, table.name):
            properties[_NAMESPACE] = join_parts(table.namespace)
    else:
        identifier = table.name
        if "/" not in identifier:
            raise RecordError("base-tables", f"{identifier} has type {table.type} and is not a path")
        if table.namespace:
            raise RecordError("base-tables", f"{identifier} is a path and cannot have a namespace")
        if table.catalog is not None:
            properties[_CATALOG] = table.catalog
    record: dict[str, Any] = {"type": table.type, "identifier": identifier, "snapshot-reference": table.snapshot_id}
    return {**record, "properties": properties} if properties else record


def decode_base_table(record: Mapping[str, Any]) -> BaseTable:
    """The table of a checked record. Other writers record no UUID."""
    properties = record.get("properties") or {}
    of_catalog = record["type"] == "iceberg-metastore"
    path: tuple[str | None, tuple[str, ...], str] = (properties.get(_CATALOG), (), record["identifier"])
    catalog, namespace, name = _name(record["identifier"], properties) if of_catalog else path
    return BaseTable(
        uuid=properties.get(_UUID, ""),
        snapshot_id=integer("snapshot-reference", record["snapshot-reference"]),
        type=record["type"],
        catalog=catalog,
        namespace=namespace,
        name=name,
        ref=properties.get(_REF),
        place=tuple(sorted((k, v) for k, v in properties.items() if k not in _OWN)),
    )


def join_parts(parts: Sequence[str]) -> str:
    """Parts of a name, joined by dots; parts with special characters are in backticks."""
    return ".".join(quote(part) for part in parts)


def split_parts(text: str) -> tuple[str, ...]:
    """The parts that `join_parts` joined; for any other text, the parts between its dots."""
    if not _PARTS.fullmatch(text):
        return tuple(text.split(".")) if text else ()
    return tuple(part[1:-1].replace("``", "`") if part.startswith("`") else part for part in re.findall(_PART, text))


def _name(identifier: str, properties: Mapping[str, str]) -> tuple[str | None, tuple[str, ...], str]:
    """Catalog, namespace, name. With three parts or more the first one is the catalog, unless the property `namespace` says otherwise."""
    *rest, name = split_parts(identifier)
    path = tuple(rest)
    levels = len(path) - 1 if len(path) > 1 else len(path)
    if _NAMESPACE in properties:
        stated = split_parts(properties[_NAMESPACE])
        if path[len(path) - len(stated) :] == stated and len(path) - len(stated) in (0, 1):
            levels = len(stated)
    at = len(path) - levels
    return (path[0] if at else None), path[at:], name
