"""bytes of an MV metadata file <-> MvMetadata; Iceberg view metadata + table metadata v2 + refreshes -> the next file, and back.

Source: the draft of a common metadata format for materialized views (apache/iceberg issue 6420). Where it is silent:

- `uuid` and `location` are those of the embedded table. The view's own are not stored. - Versions and snapshots share `schemas`: a
version's schema is the table's if they differ only in ids, otherwise it is added to the list. - `properties` contain the table's own and,
under names of this format, the view's (`VIEW_PROPERTY` + name), the table-metadata file
  that the table part was taken from (`STORAGE_LOCATION`), and what `refreshes` has no field for: the child views of the current refresh
  (`iceberg.child.view.version.[UUID]`, and their names) and its start time.
- `current-refresh-id` is -1, and `refreshes` empty, until the first refresh. - Fields of the table metadata that the draft does not have
(`partition-statistics`) are preserved.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mvbuild.dataclass import dataclass
from mvbuild.formats import metadata_certain, metadata_check, metadata_rules
from mvbuild.formats.base_tables import decode_base_table, encode_base_tables, join_parts, split_parts
from mvbuild.formats.metadata_fields import FILE
from mvbuild.formats.metadata_fields import REFRESH_START as REFRESH_START
from mvbuild.formats.metadata_rules import HISTORY as HISTORY
from mvbuild.formats.metadata_rules import NO_REFRESH as NO_REFRESH
from mvbuild.formats.properties import CHILD_VIEW_VERSION
from mvbuild.formats.record import ChildView, Properties, RecordError, RefreshRecord, integer

FORMAT_VERSION = 1
METADATA_LOCATION = "materialized-view.metadata-location"
"""Property of the catalog's view: the current MV metadata file."""
STORAGE_LOCATION = "materialized-view.storage.metadata-location"
VIEW_PROPERTY = "materialized-view.view."
CHILD_VIEW_NAME = "mvbuild.child.view.name."
CHILD_VIEW_CATALOG = "mvbuild.child.view.catalog."

_OWN_PROPERTIES = (STORAGE_LOCATION, VIEW_PROPERTY, CHILD_VIEW_VERSION, CHILD_VIEW_NAME, CHILD_VIEW_CATALOG, REFRESH_START)
_ORDER = {field.name: at for at, field in enumerate(FILE.fields)}
_NOT_OF_THE_TABLE = frozenset(
    "format-version uuid versions current_version_id version_log refreshes current-refresh-id metadata-log properties".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MvMetadata:
    """A file that passed every check, or the certain part of one that did not."""

    raw: Mapping[str, Any]
    problems: tuple[str, ...] = ()
    """The rules that the file breaks; what depends on them is left out of `raw`."""

    @property
    def uuid(self) -> str:
        return str(self.raw["uuid"])

    @property
    def location(self) -> str:
        return str(self.raw["location"])

    @property
    def properties(self) -> Properties:
        return self.raw.get("properties") or {}

    @property
    def refreshes(self) -> tuple[Mapping[str, Any], ...]:
        return tuple(self.raw["refreshes"])

    @property
    def current_refresh(self) -> Mapping[str, Any] | None:
        return next((r for r in self.refreshes if r["refresh-id"] == self.raw["current-refresh-id"]), None)

    @property
    def current_snapshot_id(self) -> int | None:
        return metadata_rules.current_snapshot_id(self.raw)

    @property
    def storage_metadata_location(self) -> str:
        """Empty if another writer omitted it."""
        return self.properties.get(STORAGE_LOCATION, "")


def read(content: bytes, *, expect_uuid: str | None = None) -> MvMetadata:
    """The certain part of a file, see `metadata_certain`. Raises RecordError for everything that is not a file of this format, whatever the
    bytes are, and for a file that contradicts itself about the definition, the columns or the rows."""
    try:
        raw = json.loads(content.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant)
    except RecordError:
        raise
    except (ValueError, RecursionError):
        raise RecordError("metadata", "is not JSON in UTF-8") from None
    try:
        return check(raw, expect_uuid=expect_uuid)
    except RecordError:
        if not isinstance(raw, dict):
            raise
        known, problems = metadata_certain.certain(raw)
        if not problems:
            raise
        return replace(check(known, expect_uuid=expect_uuid), problems=tuple(dict.fromkeys(map(str, problems))))


def check(raw: object, *, expect_uuid: str | None = None) -> MvMetadata:
    """A file that keeps every rule. Raises RecordError with the first wrong field."""
    if not isinstance(raw, dict):
        raise RecordError("metadata", "must be a JSON object")
    version = raw.get("format-version")
    if metadata_check.is_integer(version, FORMAT_VERSION + 1):
        raise RecordError("format-version", f"{version} is not supported; the highest supported version is {FORMAT_VERSION}")
    try:
        metadata_check.check("", raw, FILE)
        metadata_rules.check(raw)
    except RecursionError:
        raise RecordError("metadata", "is nested too deeply") from None
    if expect_uuid is not None and raw["uuid"].lower() != expect_uuid.lower():
        raise RecordError("uuid", f"{raw['uuid']} is the UUID of another materialized view; expected {expect_uuid}")
    return MvMetadata(raw=raw)


def write(mv: MvMetadata) -> bytes:
    """The keys in the order of the draft, then those of other writers."""
    text = json.dumps(_ordered(mv.raw), indent=2, ensure_ascii=False)
    # Half a surrogate pair has no UTF-8 form; `backslashreplace` writes its JSON escape instead.
    return (text + "\n").encode("utf-8", errors="backslashreplace")


def compose(
    *,
    view: Mapping[str, Any],
    table: Mapping[str, Any],
    refreshes: Sequence[Mapping[str, Any]],
    current_refresh_id: int,
    storage_metadata_location: str,
    metadata_log: Sequence[Mapping[str, Any]],
    now_ms: int,
    child_views: Sequence[ChildView] = (),
    refresh_start_ms: int | None = None,
) -> MvMetadata:
    """The next file. `child_views` and `refresh_start_ms` are those of the current refresh, even if only the definition changes."""
    if table.get("format-version") != 2:
        raise RecordError("format-version", f"of the storage table must be 2, not {table.get('format-version')!r}")
    own = _record_properties(child_views, refresh_start_ms)
    try:
        versions, log = _kept_versions(view, table)
        schemas, versions = _shared_schemas(view, table, versions)
        given = {
            **_table_part(table),
            "format-version": FORMAT_VERSION,
            "uuid": table.get("table-uuid"),
            "versions": versions,
            "current_version_id": view.get("current-version-id"),
            "version_log": log,
            # Another writer's clock may be ahead.
            "last-updated-ms": max(now_ms, table["last-updated-ms"], *_last_times(log, table.get("snapshot-log"), metadata_log)),
            "last-column-id": max([table["last-column-id"], *_ids(schemas)]),
            "schemas": schemas,
            "refreshes": [dict(refresh) for refresh in refreshes],
            "current-refresh-id": current_refresh_id,
            "properties": {**_sides(view, table), STORAGE_LOCATION: storage_metadata_location, **own},
            "metadata-log": [dict(entry) for entry in metadata_log],
        }
    except RecordError:
        raise
    except (LookupError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise RecordError("metadata", f"of the view or of the table is incomplete ({type(error).__name__}: {error})") from None
    return check(_ordered(given))


def table_metadata(mv: MvMetadata) -> dict[str, Any]:
    """Iceberg table metadata v2. Its log of metadata files is empty, because the embedded log is that of the MV."""
    given = {name: value for name, value in mv.raw.items() if name not in _NOT_OF_THE_TABLE and value is not None}
    return {
        "format-version": 2,
        "table-uuid": mv.uuid,
        **given,
        "properties": {name: value for name, value in mv.properties.items() if not name.startswith(_OWN_PROPERTIES)},
        "metadata-log": [],
    }


def view_metadata(mv: MvMetadata) -> dict[str, Any]:
    """Iceberg view metadata v1, with the schemas of its versions."""
    versions = [dict(version) for version in mv.raw["versions"]]
    used = {version["schema-id"] for version in versions}
    prefix = len(VIEW_PROPERTY)
    return {
        "view-uuid": mv.uuid,
        "format-version": 1,
        "location": mv.location,
        "schemas": [schema for schema in mv.raw["schemas"] if schema["schema-id"] in used],
        "current-version-id": mv.raw["current_version_id"],
        "versions": versions,
        "version-log": list(mv.raw["version_log"]),
        "properties": {name[prefix:]: value for name, value in mv.properties.items() if name.startswith(VIEW_PROPERTY)},
    }


def encode_refresh(record: RefreshRecord, *, refresh_id: int, sequence_number: int | None) -> dict[str, Any]:
    """An element of `refreshes`. Raises RecordError if the format cannot express the record. Child views are stored elsewhere, see
    `compose`."""
    if record.view_version_id is None:
        raise RecordError("version-id", "is unknown: the record was not written by mvbuild")
    if record.incomplete:
        raise RecordError("base-tables", "are not all known: the record was not written by mvbuild")
    refresh: dict[str, Any] = {
        "refresh-id": refresh_id,
        "version-id": record.view_version_id,
        "base-tables": encode_base_tables(record.base_tables),
    }
    return refresh if sequence_number is None else {**refresh, "sequence-number": sequence_number}


def decode_refresh(refresh: Mapping[str, Any], properties: Properties) -> RefreshRecord:
    """The record in a checked element of `refreshes`. `properties` are the file's for the current refresh, and {} for every other one."""
    return RefreshRecord(
        view_version_id=refresh["version-id"],
        base_tables=tuple(decode_base_table(table) for table in refresh["base-tables"].values()),
        child_views=tuple(_child_views(properties)),
        refresh_start_ms=integer(REFRESH_START, properties[REFRESH_START]) if REFRESH_START in properties else None,
    )


def current_record(mv: MvMetadata) -> RefreshRecord | None:
    """What the data was built from; None before the first refresh. Raises RecordError if one of its properties is invalid."""
    refresh = mv.current_refresh
    return None if refresh is None else decode_refresh(refresh, mv.properties)


def _ordered(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {name: raw[name] for name in sorted(raw, key=lambda name: _ORDER.get(name, len(_ORDER)))}


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Equal duplicates are not a contradiction."""
    found = dict(pairs)
    if len(found) < len(pairs):
        for name, value in pairs:
            if json.dumps(found[name]) != json.dumps(value):
                raise RecordError(name if len(name) <= 80 else name[:80] + "…", "is a duplicate key in an object")
    return found


def _no_constant(name: str) -> None:
    raise RecordError("metadata", f"contains {name}, which is not JSON")


def _kept_versions(view: Mapping[str, Any], table: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[Mapping[str, Any]]]:
    """The newest versions, as many as the history allows and always the current one, and their entries in the log."""
    limit = max(1, _history(view, table))
    versions: list[dict[str, Any]] = view["versions"]
    others = [version["version-id"] for version in versions if version["version-id"] != view["current-version-id"]]
    ids = {view["current-version-id"], *(others[1 - limit :] if limit > 1 else ())}
    return [v for v in versions if v["version-id"] in ids], [e for e in view["version-log"] if e["version-id"] in ids]


def _history(view: Mapping[str, Any], table: Mapping[str, Any]) -> int:
    """The draft makes it a table property, the view specification a view property."""
    found = (table.get("properties") or {}).get(HISTORY) or (view.get("properties") or {}).get(HISTORY, "10")
    return integer(f"properties.{HISTORY}", found)


def _shared_schemas(
    view: Mapping[str, Any], table: Mapping[str, Any], versions: Sequence[Mapping[str, Any]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The table's schemas with those of versions that it lacks, and the versions with ids from that list."""
    schemas: list[dict[str, Any]] = list(table["schemas"])
    # The current schema comes first, so that a version gets it rather than an older, equal one.
    schemas_by_age = sorted(schemas, key=lambda s: s["schema-id"] != table.get("current-schema-id"))
    known = [(_columns(schema), schema["schema-id"]) for schema in schemas_by_age]
    of_view = {schema.get("schema-id", 0): schema for schema in view["schemas"]}
    mapped: dict[int, int] = {}
    last = table["last-column-id"]
    for version in versions:
        old = version["schema-id"]
        if old in mapped:
            continue
        columns = _columns(of_view[old])
        found = next((schema_id for same, schema_id in known if same == columns), None)
        if found is None:
            found = max(schema["schema-id"] for schema in schemas) + 1
            fields, last = _renumbered(of_view[old]["fields"], last)
            schemas.append({"type": "struct", "schema-id": found, "fields": fields})
            known.append((columns, found))
        mapped[old] = found
    return schemas, [{**version, "schema-id": mapped[version["schema-id"]]} for version in versions]


def _columns(value: Any) -> Any:
    """A schema or type without its ids, equal for all with the same meaning."""
    if isinstance(value, list):
        return [_columns(inner) for inner in value]
    if isinstance(value, dict):
        ids = ("id", "element-id", "key-id", "value-id", "schema-id", "identifier-field-ids")
        return {name: _columns(inner) for name, inner in value.items() if name not in ids and inner is not None}
    return value.replace(" ", "") if isinstance(value, str) and value.startswith("decimal(") else value


def _renumbered(fields: Sequence[Mapping[str, Any]], last: int) -> tuple[list[dict[str, Any]], int]:
    """Fields with ids that the table never assigned: a view's ids start at 1 again, and would be mistaken for other columns."""
    result = []
    for field in fields:
        last += 1
        new = {**field, "id": last, "required": field.get("required", False)}
        new["type"], last = _renumbered_type(field["type"], last)
        result.append(new)
    return result, last


def _renumbered_type(kind: Any, last: int) -> tuple[Any, int]:
    if not isinstance(kind, dict):
        return kind, last
    new = dict(kind)
    if kind["type"] == "struct":
        new["fields"], last = _renumbered(kind["fields"], last)
        return new, last
    for part in ("element",) if kind["type"] == "list" else ("key", "value"):
        last += 1
        new[f"{part}-id"] = last
        new[part], last = _renumbered_type(kind[part], last)
    return new, last


def _ids(schemas: Sequence[Mapping[str, Any]]) -> Iterator[int]:
    return (field_id for schema in schemas for _, field_id in metadata_rules.field_ids(schema))


def _last_times(*logs: Sequence[Mapping[str, Any]] | None) -> Iterator[int]:
    return (log[-1]["timestamp-ms"] for log in logs if log)


def _table_part(table: Mapping[str, Any]) -> dict[str, Any]:
    part = {name: value for name, value in table.items() if name not in {*_NOT_OF_THE_TABLE, "table-uuid"} and value is not None}
    if part.get("current-snapshot-id") == -1:
        del part["current-snapshot-id"]
    # Snapshots from before the table had format version 2 have the number 0, which writers omit.
    part["snapshots"] = [{"sequence-number": 0, **snapshot} for snapshot in table.get("snapshots") or ()]
    if "current-snapshot-id" in part and "main" not in (part.get("refs") or {}):
        # Writers from before references existed write none.
        part["refs"] = {**(part.get("refs") or {}), "main": {"type": "branch", "snapshot-id": part["current-snapshot-id"]}}
    return part


def _sides(view: Mapping[str, Any], table: Mapping[str, Any]) -> dict[str, str]:
    """The properties of both. A file cannot name itself, so the view's pointer to it is left out."""
    of_table = {name: value for name, value in (table.get("properties") or {}).items() if not name.startswith(_OWN_PROPERTIES)}
    of_view = {VIEW_PROPERTY + name: value for name, value in (view.get("properties") or {}).items() if name != METADATA_LOCATION}
    return {**of_table, **of_view}


def _record_properties(views: Sequence[ChildView], refresh_start_ms: int | None) -> dict[str, str]:
    properties: dict[str, str] = {}
    for view in dict.fromkeys(views):
        if CHILD_VIEW_VERSION + view.uuid in properties:
            raise RecordError(CHILD_VIEW_VERSION + view.uuid, f"view {view.name} was read twice; the metadata file has only one version")
        properties[CHILD_VIEW_VERSION + view.uuid] = str(view.version_id)
        if view.namespace or view.name:
            properties[CHILD_VIEW_NAME + view.uuid] = join_parts((*view.namespace, view.name))
        if view.catalog is not None:
            properties[CHILD_VIEW_CATALOG + view.uuid] = view.catalog
    return properties if refresh_start_ms is None else {**properties, REFRESH_START: str(refresh_start_ms)}


def _child_views(properties: Properties) -> Iterator[ChildView]:
    for name, value in properties.items():
        if name.startswith(CHILD_VIEW_VERSION):
            uuid = name[len(CHILD_VIEW_VERSION) :]
            parts = split_parts(properties.get(CHILD_VIEW_NAME + uuid, "")) or ("",)
            yield ChildView(
                uuid=uuid,
                version_id=integer(name, value),
                catalog=properties.get(CHILD_VIEW_CATALOG + uuid),
                namespace=parts[:-1],
                name=parts[-1],
            )
