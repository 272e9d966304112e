"""Every field of the MV metadata file, declared once, as a Shape.

Source: the draft of a common metadata format for materialized views (apache/iceberg issue 6420) and, for the parts that it takes over, the
Iceberg table specification v2 and view specification v1. The strict check (`metadata_check`), the order of keys in a written file and the
published JSON Schema (`json_schema`) are all derived from `FILE`. Other fields belong to other writers and are left alone. An optional
field may be null.
"""

from __future__ import annotations

from collections.abc import Mapping

from mvbuild.formats.properties import CHILD_VIEW_VERSION
from mvbuild.formats.shapes import (
    DIGITS,
    INT_MAX,
    Anything,
    Boolean,
    ColumnType,
    Field,
    Integer,
    Keys,
    ListOf,
    MapOf,
    OneOf,
    Shape,
    Struct,
    Tagged,
    Text,
)

UUID = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
REFRESH_START = "mvbuild.refresh-start-timestamp-ms"
_COUNT = r"0{0,8}[1-9][0-9]{0,8}"
TRANSFORM = rf"identity|year|month|day|hour|void|(bucket|truncate)\[{_COUNT}\]"


def _required(name: str, shape: Shape, doc: str) -> Field:
    return Field(name=name, shape=shape, required=True, doc=doc)


def _optional(name: str, shape: Shape, doc: str) -> Field:
    return Field(name=name, shape=shape, required=False, doc=doc)


_TEXT = Text()
_FILLED = Text(pattern=".+", means="a non-empty string")
_ABSOLUTE = Text(pattern=r"/.*|[A-Za-z][A-Za-z0-9+.-]*:.+", means="an absolute path or a URI")
_PATH = Text(pattern=r"[^/]*/.*", means="a path or a URI")
_NAMED = Text(pattern=r".*\S.*", means="a non-blank string")
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
            _required("type", OneOf(values=("struct",)), "Kind of type."),
            _required("fields", ListOf(of=COLUMN, identity="id"), "Fields of the struct."),
        ),
    ),
    "list": Struct(
        name="list-type",
        fields=(
            _required("type", OneOf(values=("list",)), "Kind of type."),
            _required("element-id", _INT, "ID of the elements."),
            _required("element-required", Boolean(), "Whether no element is null."),
            _required("element", ColumnType(), "Type of the elements."),
        ),
    ),
    "map": Struct(
        name="map-type",
        fields=(
            _required("type", OneOf(values=("map",)), "Kind of type."),
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
        _required("type", OneOf(values=("struct",)), "A schema is a struct."),
        _required("schema-id", _INT, "ID of the schema."),
        _optional("identifier-field-ids", ListOf(of=_INT), "IDs of the fields that identify a row."),
        _required("fields", ListOf(of=COLUMN, identity="id"), "Columns."),
    ),
)
VERSION = Struct(
    name="version",
    doc="A version of the view specification: the definition of the materialized view at one time.",
    fields=(
        _required("version-id", Integer(minimum=1, maximum=INT_MAX), "ID of the version."),
        _required("timestamp-ms", _TIMESTAMP, "When the version was created."),
        _required("schema-id", _INT, "ID of the schema of the query."),
        _required("summary", _STRINGS, "What is known about the version, such as the engine that wrote it."),
        _optional("default-catalog", _TEXT, "Default catalog of the names in the SQL."),
        _required("default-namespace", ListOf(of=_TEXT), "Default namespace of the names in the SQL."),
        _required(
            "representations",
            ListOf(
                of=Struct(
                    name="representation",
                    fields=(
                        _required("type", OneOf(values=("sql",)), "Kind of representation."),
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
                    _optional("catalog", _TEXT, "Catalog of the storage table, if it is not the view's."),
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
                fields=(_required("operation", OneOf(values=("append", "replace", "overwrite", "delete")), "What was done."),),
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
                        _required("direction", OneOf(values=("asc", "desc")), "Direction."),
                        _required("null-order", OneOf(values=("nulls-first", "nulls-last")), "Where nulls go."),
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
        _required("snapshot-id", _SNAPSHOT_ID, "Snapshot that the statistics describe."),
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
            "What the file contains.",
        ),
    ),
)
REF = Struct(
    name="ref",
    doc="A snapshot reference of the table specification.",
    fields=(
        _required("snapshot-id", _SNAPSHOT_ID, "Snapshot that it refers to."),
        _required("type", OneOf(values=("branch", "tag")), "Branch or tag."),
        _optional("min-snapshots-to-keep", Integer(minimum=1, maximum=INT_MAX), "Snapshots of the branch that expiry keeps."),
        _optional("max-snapshot-age-ms", Integer(minimum=1), "Age at which snapshots of the branch expire."),
        _optional("max-ref-age-ms", Integer(minimum=1), "Age at which the reference expires."),
    ),
)


def _base_table(kind: str, named: Text, identifier: str, reference: str, properties: str) -> Struct:
    return Struct(
        name=kind,
        fields=(
            _required("type", OneOf(values=(kind,)), "Kind of base table."),
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
        _required("last-sequence-number", _LONG, "Highest sequence number of any snapshot."),
        _required("last-updated-ms", _TIMESTAMP, "When the file was written."),
        _required("last-column-id", _INT, "Highest column ID in use."),
        _required("schemas", ListOf(of=SCHEMA, identity="schema-id", filled=True), "Schemas of versions and of snapshots."),
        _required("current-schema-id", _INT, "ID of the current schema."),
        _required("partition-specs", ListOf(of=PARTITION_SPEC, identity="spec-id", filled=True), "Partition specs."),
        _required("default-spec-id", _INT, "ID of the spec that writers should use."),
        _required("last-partition-id", _INT, "Highest partition field ID in use."),
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
