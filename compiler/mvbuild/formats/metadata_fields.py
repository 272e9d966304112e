"""JSON value + Shape -> RecordError where it does not fit: every field of the MV metadata file, stated once.

Source: the draft of a common metadata format for materialized views (apache/iceberg issue 6420), and for the parts that it takes over the
Iceberg table specification v2 and view specification v1. The strict check, the order of a written file's keys and the published JSON Schema
(`json_schema`) all come from `FILE`. Fields that are not stated are other writers' and left alone; an optional field may be null.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mvbuild.formats.properties import CHILD_VIEW_VERSION
from mvbuild.formats.record import RecordError

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
UUID = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
DIGITS = r"-?[0-9]{1,19}"
REFRESH_START = "mvbuild.refresh-start-timestamp-ms"
_TO_38 = r"0?[0-9]|[12][0-9]|3[0-8]"
_FROM_1_TO_38 = r"0?[1-9]|[12][0-9]|3[0-8]"
_COUNT = r"0{0,8}[1-9][0-9]{0,8}"
PRIMITIVE = (
    r"boolean|int|long|float|double|date|time|timestamp|timestamptz|timestamp_ns|timestamptz_ns|string|uuid|binary|unknown|variant"
    rf"|decimal\(\s*({_FROM_1_TO_38})\s*,\s*({_TO_38})\s*\)|fixed\[\s*[0-9]{{1,9}}\s*\]|geometry(\(.*\))?|geography(\(.*\))?"
)
"""A decimal's scale must not be more than its precision either, which is beyond a pattern."""
TRANSFORM = rf"identity|year|month|day|hour|void|(bucket|truncate)\[{_COUNT}\]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Integer:
    minimum: int = -LONG_MAX - 1
    maximum: int = LONG_MAX
    digits: bool = False
    """Its decimal digits in a string are taken too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    pattern: str = ""
    """What the whole string must match; empty: anything."""
    means: str = "a string"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Boolean:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Anything:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOf:
    of: Shape
    identity: str = ""
    """The field whose value no two elements may share."""
    filled: bool = False
    """It must not be empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """Keys of a map that this format gives a meaning: those that start so, and what may follow."""

    starts: str
    of: Shape
    rest: str = ""
    """What the rest of the key must match; empty: only the key itself is meant."""
    means: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MapOf:
    of: Shape
    keys: tuple[Keys, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Struct:
    name: str
    fields: tuple[Field, ...]
    others: Shape | None = None
    """What fields that are not stated must be; None: anything."""
    doc: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tagged:
    """One of several structs; the field `type` says which."""

    variants: Mapping[str, Struct]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnType:
    """The name of a primitive type, or a struct of `NESTED_TYPES`, whose own fields have types again."""


Shape = Integer | Text | Choice | Boolean | Anything | ListOf | MapOf | Struct | Tagged | ColumnType


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    name: str
    shape: Shape
    required: bool
    doc: str


def check(path: str, value: object, shape: Shape) -> None:
    """RecordError that names the first field, as `versions[0].version-id`, whose value is not of its shape."""
    if isinstance(shape, Struct):
        _check_struct(path, value, shape)
    elif isinstance(shape, ListOf):
        _check_list(path, value, shape)
    elif isinstance(shape, MapOf):
        for key, inner in _object(path, value).items():
            check(f"{path}.{key}", inner, _of_key(f"{path}.{key}", key, shape))
    elif isinstance(shape, Tagged):
        _check_tagged(path, value, shape.variants)
    elif isinstance(shape, ColumnType) and isinstance(value, dict):
        _check_tagged(path, value, NESTED_TYPES)
    elif not _fits(value, shape):
        raise RecordError(path, f"must be {expected(shape)}, not {_shown(value)}")


def expected(shape: Shape) -> str:
    """What a value of a shape without parts is, in words."""
    if isinstance(shape, Integer):
        least = f" of at least {shape.minimum}" if shape.minimum > -LONG_MAX - 1 else ""
        return f"an integer{least}" + (" or its digits" if shape.digits else "")
    if isinstance(shape, Choice):
        return " or ".join(f"'{value}'" for value in shape.values)
    if isinstance(shape, Text):
        return shape.means
    return "the name or the object of an Iceberg type" if isinstance(shape, ColumnType) else "true or false"


def is_integer(value: object, least: int = -LONG_MAX - 1, most: int = LONG_MAX) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _fits(value: object, shape: Shape) -> bool:
    if isinstance(shape, Integer):
        if shape.digits and isinstance(value, str) and re.fullmatch(DIGITS, value):
            value = int(value)
        return is_integer(value, shape.minimum, shape.maximum)
    if isinstance(shape, Text):
        return isinstance(value, str) and (not shape.pattern or re.fullmatch(shape.pattern, value, re.DOTALL) is not None)
    if isinstance(shape, Choice):
        return isinstance(value, str) and value in shape.values
    if isinstance(shape, ColumnType):
        return isinstance(value, str) and _is_primitive(value)
    return isinstance(shape, Anything) or isinstance(value, bool)


def _is_primitive(name: str) -> bool:
    if not re.fullmatch(PRIMITIVE, name):
        return False
    precision, *scale = re.findall("[0-9]+", name) if name.startswith("decimal") else ["0"]
    return not scale or int(scale[0]) <= int(precision)


def _of_key(path: str, key: str, shape: MapOf) -> Shape:
    for known in shape.keys:
        if key == known.starts and not known.rest:
            return known.of
        if key.startswith(known.starts) and known.rest:
            if not re.fullmatch(known.rest, key[len(known.starts) :]):
                raise RecordError(path, f"must end with {known.means}")
            return known.of
    return shape.of


def _check_struct(path: str, value: object, struct: Struct) -> None:
    given = _object(path, value)
    for field in struct.fields:
        if given.get(field.name) is not None:
            check(join(path, field.name), given[field.name], field.shape)
        elif field.required:
            raise RecordError(join(path, field.name), "must not be null" if field.name in given else "is missing")
    if struct.others is not None:
        known = {field.name for field in struct.fields}
        for name in given.keys() - known:
            check(join(path, name), given[name], struct.others)


def _check_list(path: str, value: object, shape: ListOf) -> None:
    if not isinstance(value, list):
        raise RecordError(path, f"must be a list, not {_shown(value)}")
    if shape.filled and not value:
        raise RecordError(path, "must not be empty")
    for at, inner in enumerate(value):
        check(f"{path}[{at}]", inner, shape.of)
    seen: set[Any] = set()
    for at, inner in enumerate(value):
        if shape.identity:
            if inner[shape.identity] in seen:
                raise RecordError(f"{path}[{at}].{shape.identity}", f"{inner[shape.identity]!r} is there twice")
            seen.add(inner[shape.identity])


def _check_tagged(path: str, value: object, variants: Mapping[str, Struct]) -> None:
    tag = _object(path, value).get("type")
    if tag is None:
        raise RecordError(join(path, "type"), "is missing")
    if not isinstance(tag, str) or tag not in variants:
        raise RecordError(join(path, "type"), f"must be {expected(Choice(values=tuple(variants)))}, not {_shown(tag)}")
    _check_struct(path, value, variants[tag])


def _object(path: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise RecordError(path or "metadata", f"must be a JSON object, not {_shown(value)}")
    return value


def _shown(value: object) -> str:
    """A value as an error shows it, never longer than a line: what is wrong here may be of any size."""
    if isinstance(value, str):
        return repr(value if len(value) <= 40 else value[:40] + "…")
    if isinstance(value, int):
        return repr(value) if -(10**40) < value < 10**40 else "a number of more than 40 digits"
    if isinstance(value, float) or value is None:
        return "null" if value is None else repr(value)
    if isinstance(value, dict):
        return "an object"
    return "a list" if isinstance(value, list) else f"a {type(value).__name__}"


def _required(name: str, shape: Shape, doc: str) -> Field:
    return Field(name=name, shape=shape, required=True, doc=doc)


def _optional(name: str, shape: Shape, doc: str) -> Field:
    return Field(name=name, shape=shape, required=False, doc=doc)


_TEXT = Text()
_FILLED = Text(pattern=".+", means="a string that is not empty")
_ABSOLUTE = Text(pattern=r"/.*|[A-Za-z][A-Za-z0-9+.-]*:.+", means="an absolute path or a URI")
_PATH = Text(pattern=r"[^/]*/.*", means="a path or a URI")
_NAMED = Text(pattern=r".*\S.*", means="a string that is not blank")
_STRINGS = MapOf(of=_TEXT)
_PROPERTIES = MapOf(
    of=_TEXT,
    keys=(
        Keys(starts=CHILD_VIEW_VERSION, rest=UUID, means="a UUID", of=Text(pattern=DIGITS, means="an integer")),
        Keys(starts=REFRESH_START, of=Text(pattern=r"[0-9]{1,19}", means="an integer of at least 0")),
    ),
)
_INT = Integer(minimum=0, maximum=INT_MAX)
_LONG = Integer(minimum=0)
_SNAPSHOT_ID = Integer()
_TIMESTAMP = Integer(minimum=0)

COLUMN = Struct(
    name="column",
    doc="A field of a struct, or a column. Its default values are any JSON.",
    fields=(
        _required("id", _INT, "ID of the field, unique in its schema."),
        _required("name", _TEXT, "Name of the field."),
        _required("required", Boolean(), "Whether the field never holds null."),
        _required("type", ColumnType(), "Iceberg type of the field: a name, or the object of a struct, list or map."),
        _optional("doc", _TEXT, "Comment of the field."),
        _optional("initial-default", Anything(), "Value for rows written before the field was added."),
        _optional("write-default", Anything(), "Value for rows that do not give one."),
    ),
)
NESTED_TYPES: Mapping[str, Struct] = {
    "struct": Struct(
        name="struct-type",
        fields=(
            _required("type", Choice(values=("struct",)), "Kind of type."),
            _required("fields", ListOf(of=COLUMN, identity="id"), "Fields of the struct."),
        ),
    ),
    "list": Struct(
        name="list-type",
        fields=(
            _required("type", Choice(values=("list",)), "Kind of type."),
            _required("element-id", _INT, "ID of the elements."),
            _required("element-required", Boolean(), "Whether no element is null."),
            _required("element", ColumnType(), "Type of the elements."),
        ),
    ),
    "map": Struct(
        name="map-type",
        fields=(
            _required("type", Choice(values=("map",)), "Kind of type."),
            _required("key-id", _INT, "ID of the keys."),
            _required("key", ColumnType(), "Type of the keys."),
            _required("value-id", _INT, "ID of the values."),
            _required("value-required", Boolean(), "Whether no value is null."),
            _required("value", ColumnType(), "Type of the values."),
        ),
    ),
}
SCHEMA = Struct(
    name="schema",
    doc="A schema of the table specification.",
    fields=(
        _required("type", Choice(values=("struct",)), "A schema is a struct."),
        _required("schema-id", _INT, "ID of the schema."),
        _optional("identifier-field-ids", ListOf(of=_INT), "IDs of the fields that identify a row."),
        _required("fields", ListOf(of=COLUMN, identity="id"), "Columns."),
    ),
)
VERSION = Struct(
    name="version",
    doc="A version of the view specification: the definition of the materialized view at some time.",
    fields=(
        _required("version-id", Integer(minimum=1, maximum=INT_MAX), "ID of the version."),
        _required("timestamp-ms", _TIMESTAMP, "When the version was created."),
        _required("schema-id", _INT, "ID of the schema that the query has."),
        _required("summary", _STRINGS, "What is known of the version, such as the engine that wrote it."),
        _optional("default-catalog", _TEXT, "Catalog of the names in the SQL that give none."),
        _required("default-namespace", ListOf(of=_TEXT), "Namespace of the names in the SQL that give none."),
        _required(
            "representations",
            ListOf(
                of=Struct(
                    name="representation",
                    fields=(
                        _required("type", Choice(values=("sql",)), "Kind of representation."),
                        _required("sql", _TEXT, "The query."),
                        _required("dialect", _TEXT, "Dialect of the SQL, such as `spark`."),
                    ),
                ),
                identity="dialect",
                filled=True,
            ),
            "The query, once in each dialect.",
        ),
        _optional(
            "storage-table",
            Struct(
                name="storage-table",
                fields=(
                    _optional("catalog", _TEXT, "Catalog of the storage table, where it is not the view's."),
                    _required("namespace", ListOf(of=_TEXT), "Namespace of the storage table."),
                    _required("name", _TEXT, "Name of the storage table."),
                ),
            ),
            "Where the upstream draft keeps the data of a view version.",
        ),
    ),
)
SNAPSHOT = Struct(
    name="snapshot",
    doc="A snapshot of the table specification v2.",
    fields=(
        _required("snapshot-id", _SNAPSHOT_ID, "ID of the snapshot."),
        _optional("parent-snapshot-id", _SNAPSHOT_ID, "Snapshot that this one was made from; it may have expired."),
        _required("sequence-number", _LONG, "Order of the changes to the materialized view."),
        _required("timestamp-ms", _TIMESTAMP, "When the snapshot was created."),
        _required("manifest-list", _TEXT, "Location of the manifest list."),
        _required(
            "summary",
            Struct(
                name="snapshot-summary",
                others=_TEXT,
                fields=(_required("operation", Choice(values=("append", "replace", "overwrite", "delete")), "What was done."),),
            ),
            "What was done, and what it changed.",
        ),
        _optional("schema-id", _INT, "ID of the schema that was current."),
    ),
)
PARTITION_SPEC = Struct(
    name="partition-spec",
    doc="A partition spec of the table specification.",
    fields=(
        _required("spec-id", _INT, "ID of the spec."),
        _required(
            "fields",
            ListOf(
                of=Struct(
                    name="partition-field",
                    fields=(
                        _required("source-id", _INT, "ID of the column that the value comes from."),
                        _required("field-id", _INT, "ID of the partition field."),
                        _required("name", _TEXT, "Name of the partition field."),
                        _required("transform", Text(pattern=TRANSFORM, means="a transform of the Iceberg specification"), "Transform."),
                    ),
                ),
                identity="field-id",
            ),
            "Partition fields.",
        ),
    ),
)
SORT_ORDER = Struct(
    name="sort-order",
    doc="A sort order of the table specification.",
    fields=(
        _required("order-id", _INT, "ID of the order; 0 for unsorted."),
        _required(
            "fields",
            ListOf(
                of=Struct(
                    name="sort-field",
                    fields=(
                        _required("transform", Text(pattern=TRANSFORM, means="a transform of the Iceberg specification"), "Transform."),
                        _required("source-id", _INT, "ID of the column that the value comes from."),
                        _required("direction", Choice(values=("asc", "desc")), "Direction."),
                        _required("null-order", Choice(values=("nulls-first", "nulls-last")), "Where nulls go."),
                    ),
                )
            ),
            "Sort fields.",
        ),
    ),
)
STATISTICS = Struct(
    name="statistics",
    doc="A statistics file of the table specification.",
    fields=(
        _required("snapshot-id", _SNAPSHOT_ID, "Snapshot that the statistics are of."),
        _required("statistics-path", _TEXT, "Location of the file."),
        _required("file-size-in-bytes", _LONG, "Size of the file."),
        _required("file-footer-size-in-bytes", _LONG, "Size of its footer."),
        _optional("key-metadata", _TEXT, "Encryption key of the file."),
        _required(
            "blob-metadata",
            ListOf(
                of=Struct(
                    name="blob-metadata",
                    fields=(
                        _required("type", _TEXT, "Kind of blob."),
                        _required("snapshot-id", _SNAPSHOT_ID, "Snapshot that the blob was computed from."),
                        _required("sequence-number", _LONG, "Sequence number of that snapshot."),
                        _required("fields", ListOf(of=_INT), "IDs of the columns."),
                        _optional("properties", _STRINGS, "Properties of the blob."),
                    ),
                )
            ),
            "What the file holds.",
        ),
    ),
)
REF = Struct(
    name="ref",
    doc="A snapshot reference of the table specification.",
    fields=(
        _required("snapshot-id", _SNAPSHOT_ID, "Snapshot that is referred to."),
        _required("type", Choice(values=("branch", "tag")), "Branch or tag."),
        _optional("min-snapshots-to-keep", Integer(minimum=1, maximum=INT_MAX), "Snapshots of the branch that expiry keeps."),
        _optional("max-snapshot-age-ms", Integer(minimum=1), "Age at which snapshots of the branch expire."),
        _optional("max-ref-age-ms", Integer(minimum=1), "Age at which the reference expires."),
    ),
)


def _base_table(kind: str, named: Text, identifier: str, reference: str, properties: str) -> Struct:
    return Struct(
        name=kind,
        fields=(
            _required("type", Choice(values=(kind,)), "Kind of base table."),
            _required("identifier", named, identifier),
            _required("snapshot-reference", Integer(digits=True), reference),
            _optional("properties", _STRINGS, properties),
        ),
    )


_OTHER_STORAGE = "Properties of the base table. Could be used for a different storage system."
BASE_TABLE = Tagged(
    variants={
        "iceberg-metastore": _base_table(
            "iceberg-metastore",
            _NAMED,
            "Identifier of the base table in the metastore.",
            "Snapshot id of the base table when the refresh operation was performed.",
            "Properties of the base table. Could be used to specify a different metastore.",
        ),
        "iceberg-filesystem": _base_table(
            "iceberg-filesystem",
            _PATH,
            "Path to the directory of the base table.",
            "Version of the base table when the refresh operation was performed.",
            _OTHER_STORAGE,
        ),
        "deltalake-filesystem": _base_table(
            "deltalake-filesystem",
            _PATH,
            "Path to the directory of the base table.",
            "Delta table version of the base table when the refresh operation was performed.",
            _OTHER_STORAGE,
        ),
    }
)
REFRESH = Struct(
    name="refresh",
    doc="A refresh operation.",
    fields=(
        _required("refresh-id", _LONG, "ID of the refresh operation when the materialized view is refreshed."),
        _required(
            "version-id",
            Integer(minimum=1, maximum=INT_MAX),
            "Version id of the materialized view when the refresh operation was performed. The version may have been dropped since.",
        ),
        _required(
            "base-tables", MapOf(of=BASE_TABLE), "A map of strings (table identifiers) to base-table records, each under its `identifier`."
        ),
        _optional("sequence-number", _LONG, "Sequence number of the snapshot that contains the refreshed data files."),
    ),
)


def _log(name: str, field: Field, *, filled: bool = False) -> ListOf:
    entry = Struct(name=name, fields=(_required("timestamp-ms", _TIMESTAMP, "When it became current."), field))
    return ListOf(of=entry, filled=filled)


FILE = Struct(
    name="materialized-view-metadata",
    doc="The metadata file of a materialized view: definition, data and refresh state.",
    fields=(
        _required("format-version", Integer(minimum=1, maximum=1), "Version number of the materialized view format. Must be 1."),
        _required("uuid", Text(pattern=UUID, means="a UUID"), "Identifies the materialized view; the `table-uuid` of its storage."),
        _required("location", _ABSOLUTE, "Base location, where writers put data files, manifest files and metadata files."),
        _required(
            "versions",
            ListOf(of=VERSION, identity="version-id", filled=True),
            "Known versions; `version.history.num-entries` says how many.",
        ),
        _required("current_version_id", Integer(minimum=1, maximum=INT_MAX), "Current version. 1 when the view is first created."),
        _required(
            "version_log",
            _log(
                "version-log-entry",
                _required("version-id", Integer(minimum=1, maximum=INT_MAX), "Version that became current."),
                filled=True,
            ),
            "Changes to the current version; the last one made it current.",
        ),
        _required("last-sequence-number", _LONG, "Highest sequence number that was given to a snapshot."),
        _required("last-updated-ms", _TIMESTAMP, "When the file was written."),
        _required("last-column-id", _INT, "Highest column ID that was given."),
        _required("schemas", ListOf(of=SCHEMA, identity="schema-id", filled=True), "Schemas of versions and of snapshots."),
        _required("current-schema-id", _INT, "ID of the current schema."),
        _required("partition-specs", ListOf(of=PARTITION_SPEC, identity="spec-id", filled=True), "Partition specs."),
        _required("default-spec-id", _INT, "ID of the spec that writers should use."),
        _required("last-partition-id", _INT, "Highest partition field ID that was given."),
        _required("sort-orders", ListOf(of=SORT_ORDER, identity="order-id", filled=True), "Sort orders."),
        _required("default-sort-order-id", _INT, "ID of the sort order that writers should use."),
        _required("refreshes", ListOf(of=REFRESH, identity="refresh-id"), "Refresh operations; empty before the first."),
        _required(
            "current-refresh-id",
            Integer(minimum=-1),
            "ID of the last refresh operation that defines the current state of the data files; -1 before the first.",
        ),
        _optional("snapshots", ListOf(of=SNAPSHOT, identity="snapshot-id"), "Valid snapshots: all their data files exist."),
        _optional("current-snapshot-id", _SNAPSHOT_ID, "Current snapshot, the one of the branch `main`; -1 or absent for none."),
        _optional(
            "snapshot-log",
            _log("snapshot-log-entry", _required("snapshot-id", _SNAPSHOT_ID, "Snapshot that became current.")),
            "Changes to the current snapshot.",
        ),
        _optional("properties", _PROPERTIES, "Properties that control reading and writing."),
        _optional(
            "metadata-log",
            _log("metadata-log-entry", _required("metadata-file", _FILLED, "Location of the file.")),
            "Earlier metadata files of the materialized view.",
        ),
        _optional("refs", MapOf(of=REF), "Snapshot references by name."),
        _optional("statistics", ListOf(of=STATISTICS, identity="snapshot-id"), "Statistics files."),
    ),
)
