"""table metadata JSON + TableLayout -> table metadata JSON with that schema, partition spec and sort order as the current ones.

Columns keep their ids where name and type allow it, so that old data files remain readable; all others get new ids.
"""

from __future__ import annotations

import re
from typing import Any

from mvbuild.adapters.iceberg.metadata import Raw, comparable, current_schema, schemas
from mvbuild.ports.catalog import CatalogError
from mvbuild.ports.commits import TableLayout
from mvbuild.ports.states import Partition, Schema, Sort

_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_TRANSFORM = re.compile(r"(identity|year|month|day|hour|void)|(bucket|truncate)\[(\d+)\]")
_SUFFIX = {"bucket": "bucket", "truncate": "trunc", "void": "null"}
_TIMES = r"timestamp|timestamptz|timestamp_ns|timestamptz_ns"
_SOURCES = {
    "year": re.compile(rf"date|{_TIMES}"),
    "month": re.compile(rf"date|{_TIMES}"),
    "day": re.compile(rf"date|{_TIMES}"),
    "hour": re.compile(_TIMES),
    "truncate": re.compile(r"int|long|string|binary|decimal\(.*\)"),
    "bucket": re.compile(rf"int|long|string|binary|uuid|date|time|fixed\[.*\]|decimal\(.*\)|{_TIMES}"),
}
_FIRST_PARTITION_ID = 1000


def with_layout(raw: Raw, layout: TableLayout) -> Raw:
    """The metadata with the layout. Raises CatalogError if the layout names a column that it does not have."""
    raw = _with_schema(raw, layout.schema)
    raw = _with_spec(raw, layout.partition_by)
    raw = _with_order(raw, layout.sort_by)
    return _mirrored(raw) if raw["format-version"] == 1 else raw


def fitted(raw: Raw) -> Raw:
    """With the newest partition spec and sort order whose columns the current schema has."""
    known = {field_id for field in current_schema(raw)["fields"] for field_id in _field_ids(field)}

    def fits(entry: Raw) -> bool:
        return all(field["source-id"] in known for field in entry["fields"])

    for listed, name, default in (("partition-specs", "spec-id", "default-spec-id"), ("sort-orders", "order-id", "default-sort-order-id")):
        entries = raw.get(listed) or []
        used = next((entry for entry in entries if entry[name] == raw.get(default, 0)), None)
        if used is None or fits(used):
            continue
        others = [entry for entry in entries if fits(entry)] or [{name: max(e[name] for e in entries) + 1, "fields": []}]
        raw = {**raw, listed: [*(e for e in entries if e not in others), *others], default: others[-1][name]}
    return _mirrored(raw) if raw["format-version"] == 1 else raw


def _field_ids(field: Raw) -> list[int]:
    inner = field["type"]
    below = inner["fields"] if isinstance(inner, dict) and inner["type"] == "struct" else []
    return [field["id"], *(field_id for one in below for field_id in _field_ids(one))]


def has_layout(raw: Raw, layout: TableLayout) -> bool:
    """Whether `with_layout` would change nothing."""
    after = with_layout(raw, layout)
    keys = ("current-schema-id", "default-spec-id", "default-sort-order-id")
    return all(after[key] == raw.get(key) for key in keys)


def _with_schema(raw: Raw, schema: Schema) -> Raw:
    old = current_schema(raw) if raw.get("schemas") or "schema" in raw else None
    ids = _Ids(raw["last-column-id"])
    renumbered: dict[int, int] = {}
    fields = _fields(schema["fields"], old["fields"] if old else [], ids, renumbered)
    new: Raw = {"type": "struct", "fields": fields}
    keys = _identifier_ids(schema, old, fields, renumbered)
    if keys:
        new["identifier-field-ids"] = keys
    known = schemas(raw) if old else []
    wanted = comparable(fields)
    same = next((s for s in known if comparable(s["fields"]) == wanted and (s.get("identifier-field-ids") or []) == keys), None)
    if same:
        return {**raw, "schemas": known, "current-schema-id": same["schema-id"]}
    schema_id = max((s["schema-id"] for s in known), default=-1) + 1
    return {**raw, "schemas": [*known, {**new, "schema-id": schema_id}], "current-schema-id": schema_id, "last-column-id": ids.last}


class _Ids:
    def __init__(self, last: int) -> None:
        self.last = last

    def fresh(self) -> int:
        self.last += 1
        return self.last


def _fields(new: list[Raw], old: list[Raw], ids: _Ids, renumbered: dict[int, int]) -> list[Raw]:
    before = {field["name"]: field for field in old}
    result = []
    for field in new:
        match = before.get(field["name"])
        kept = match if match and _may_become(match["type"], field["type"]) else None
        field_id = kept["id"] if kept else ids.fresh()
        if "id" in field:
            renumbered[field["id"]] = field_id
        inner = _type(field["type"], kept["type"] if kept else None, ids, renumbered)
        result.append({**field, "id": field_id, "required": field.get("required", False), "type": inner})
    return result


def _type(new: Any, old: Any, ids: _Ids, renumbered: dict[int, int]) -> Any:
    if not isinstance(new, dict):
        return new
    old = old or {}
    if new["type"] == "struct":
        return {**new, "fields": _fields(new["fields"], old.get("fields", []), ids, renumbered)}
    result = dict(new)
    for part in ("element",) if new["type"] == "list" else ("key", "value"):
        kept = part in old and _may_become(old[part], new[part])
        result[f"{part}-id"] = old[f"{part}-id"] if kept else ids.fresh()
        result[part] = _type(new[part], old[part] if kept else None, ids, renumbered)
    result.setdefault("element-required" if new["type"] == "list" else "value-required", False)
    return result


def _may_become(old: Any, new: Any) -> bool:
    """Whether Iceberg's type promotion allows it. Nested types keep their own id if they remain of one kind; their parts are matched in
    turn."""
    if isinstance(old, dict) or isinstance(new, dict):
        return isinstance(old, dict) and isinstance(new, dict) and old["type"] == new["type"]
    if old == new or (old, new) in {("int", "long"), ("float", "double")}:
        return True
    was, becomes = _DECIMAL.fullmatch(old), _DECIMAL.fullmatch(new)
    if was and becomes:
        return was[2] == becomes[2] and int(was[1]) <= int(becomes[1])
    return False


def _identifier_ids(schema: Schema, old: Raw | None, fields: list[Raw], renumbered: dict[int, int]) -> list[int]:
    if "identifier-field-ids" in schema:
        return [renumbered[i] for i in schema["identifier-field-ids"] if i in renumbered]
    required = {field["id"] for field in fields if field["required"]}
    return [i for i in (old or {}).get("identifier-field-ids") or [] if i in required]


def _with_spec(raw: Raw, partitions: tuple[Partition, ...]) -> Raw:
    specs: list[Raw] = raw.get("partition-specs") or _first_specs(raw)
    wanted = [(_source(raw, p.column, p.transform), p) for p in partitions]
    signature = [(source, p.transform) for source, p in wanted]
    last = max([raw.get("last-partition-id") or 0, _FIRST_PARTITION_ID - 1, *(f["field-id"] for s in specs for f in s["fields"])])
    raw = {**raw, "partition-specs": specs, "last-partition-id": last}
    same = next((s for s in specs if [(f["source-id"], f["transform"]) for f in s["fields"]] == signature), None)
    if same:
        return {**raw, "default-spec-id": same["spec-id"]}
    if specs and raw["format-version"] == 1:
        raise CatalogError("The partitioning of a table of format version 1 cannot be changed; recreate the table with format version 2.")
    known = {(f["source-id"], f["transform"]): f for s in specs for f in s["fields"]}
    taken = {field["name"] for s in specs for field in s["fields"]}
    columns = {field["name"] for field in current_schema(raw)["fields"]}
    fields = []
    for source, partition in wanted:
        field = known.get((source, partition.transform))
        if field is None:
            last += 1
            others = columns - {partition.column} if partition.transform == "identity" else columns
            name = _unused(_partition_name(partition), taken | others)
            field = {"field-id": last, "source-id": source, "transform": partition.transform, "name": name}
        taken.add(field["name"])
        fields.append(field)
    spec_id = max((s["spec-id"] for s in specs), default=-1) + 1
    spec = {"spec-id": spec_id, "fields": fields}
    return {**raw, "partition-specs": [*specs, spec], "default-spec-id": spec_id, "last-partition-id": last}


def _first_specs(raw: Raw) -> list[Raw]:
    if "partition-spec" not in raw:
        return []
    fields = [{"field-id": _FIRST_PARTITION_ID + at, **field} for at, field in enumerate(raw["partition-spec"])]
    return [{"spec-id": 0, "fields": fields}]


def _partition_name(partition: Partition) -> str:
    if partition.transform == "identity":
        return partition.column
    plain, width_of, width = _TRANSFORM.fullmatch(partition.transform).groups()  # type: ignore[union-attr]  # _source checked it
    suffix = _SUFFIX.get(plain or width_of, plain)
    return f"{partition.column}_{suffix}" + (f"_{width}" if width else "")


def _unused(name: str, taken: set[str]) -> str:
    """A name that no column and no earlier partition field has: Spark puts the fields of all specs into one struct."""
    candidate, number = name, 2
    while candidate in taken:
        candidate, number = f"{name}_{number}", number + 1
    return candidate


def _with_order(raw: Raw, sorts: tuple[Sort, ...]) -> Raw:
    fields = [
        {
            "transform": "identity",
            "source-id": _source(raw, sort.column, "identity"),
            "direction": "desc" if sort.descending else "asc",
            "null-order": "nulls-first" if sort.nulls_first else "nulls-last",
        }
        for sort in sorts
    ]
    orders: list[Raw] = raw.get("sort-orders") or [{"order-id": 0, "fields": []}]
    same = next((o for o in orders if o["fields"] == fields), None)
    if same or not fields:
        return {**raw, "sort-orders": orders, "default-sort-order-id": same["order-id"] if same else 0}
    order_id = max([0, *(o["order-id"] for o in orders)]) + 1
    return {**raw, "sort-orders": [*orders, {"order-id": order_id, "fields": fields}], "default-sort-order-id": order_id}


def _source(raw: Raw, column: str, transform: str) -> int:
    """The field id of a column; a dotted path refers to a field of a struct."""
    match = _TRANSFORM.fullmatch(transform)
    if not match:
        raise CatalogError(f"'{transform}' is not a partition transform; known: identity, year, month, day, hour, bucket[n], truncate[n].")
    field = _find(current_schema(raw)["fields"], column)
    if field is None:
        names = ", ".join(f["name"] for f in current_schema(raw)["fields"])
        raise CatalogError(f"Unknown column '{column}' in the partitioning or sort order; the columns are: {names}.")
    if isinstance(field["type"], dict):
        raise CatalogError(f"Column '{column}' is a {field['type']['type']}: you cannot partition or sort by it.")
    allowed = _SOURCES.get(match[1] or match[2])
    if allowed and not allowed.fullmatch(field["type"]):
        raise CatalogError(f"Column '{column}' of type {field['type']} cannot be partitioned by {transform}.")
    found: int = field["id"]
    return found


def _find(fields: list[Raw], column: str) -> Raw | None:
    for field in fields:
        if field["name"] == column:
            return field
    for field in fields:
        inner = field["type"]
        if column.startswith(field["name"] + ".") and isinstance(inner, dict) and inner["type"] == "struct":
            return _find(inner["fields"], column[len(field["name"]) + 1 :])
    return None


def _mirrored(raw: Raw) -> Raw:
    """Format 1 stores the current schema and spec a second time, outside the lists."""
    spec = next(s for s in raw["partition-specs"] if s["spec-id"] == raw["default-spec-id"])
    return {**raw, "schema": current_schema(raw), "partition-spec": spec["fields"]}
