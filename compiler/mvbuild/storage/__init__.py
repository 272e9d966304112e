"""storage table -> what it records, and what it must look like.

In: the state of an MV's storage table and of its view in the catalog; the MV's configuration and definition. Out: its record, its history,
who changed it; the layout, the properties and the format that it must have; the commit that records a refresh. Nothing here reads the
catalog's other tables: what an MV reads, and whether it is fresh, is the matter of `freshness`.

Read first: `stored.py` (the record, and writes by others), `layout.py` (schema, partitioning, properties), `commits.py` (a record as a
commit). `history.py` has the earlier refreshes, and `names.py` the names of a storage and of a former one.

**What it says.** `schema.py` notices when columns were renamed, dropped or moved, which makes no snapshot. `schemas_read.py` has the
schemas of the base tables, `sessions.py` the settings of the session, `proof.py` whether Spark has confirmed the query. `marks.py`
compares the view's flag and pointer with the storage.

**What it must look like.** `alterations.py` finds what differs from the configuration, `policy.py` shows the serving policy to readers
without the project, and `format.py` says which storage format an MV has or gets. For all other code a storage in the metadata-file format
is a normal table: `embedded.py` puts it where the graph expects a storage table.
"""
