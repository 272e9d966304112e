"""The record of a refresh and its encodings; no I/O.

In and out: `RefreshRecord`, what one refresh read, and its encodings.

Read first: `record.py` (the one domain type), `properties.py` (the properties of the property-based specification), `refresh_state.py` (the
`refresh-state` in the summary of the storage snapshot). Every refresh writes both encodings. docs/formats.md describes what users see.

* `mvbuild.refresh.snapshot-id` on the storage table separates writes by others from maintenance, which only makes `replace` snapshots.
  `mvbuild.refresh.schema-id` exists because columns can be renamed, dropped and moved without a snapshot.
* A table without a snapshot is recorded as -1. An MV that reads another MV records the other's storage table as a base table
  (docs/decisions/003).
* In the format `metadata-file`, one file contains record, definition and data (`metadata_file.py`, docs/decisions/005). It is composed of
  Iceberg's view metadata and table metadata. `metadata_fields.py` declares its fields, and `metadata_check.py` compiles the declarations
  into the check of a file.
* `failed_tests.py` is a property of the storage after failed data tests, and not part of the record.
"""
