"""record + observation -> Freshness.

In: `Graph`, the catalog and the base tables elsewhere. Out: `World` (the graph and every table and view as it is now), then the
`Freshness` of each MV with every reason.

Read first: `observe.py` (the one read of the catalog), `rules.py` (the comparison; pure), `observed.py` (World, Leaf, Pin).

`observe.py` makes one query for the pointers and loads each metadata file once, except those that only settled models need (`settled.py`).
Views of the catalog that mvbuild did not write are parsed and expanded like those of the project; `view_names.py` completes their names as
the view recorded them. `pending.py` says which seeds and views of the project the catalog does not have yet. What a storage table says
about itself is in `mvbuild.storage`.

A write by others differs from maintenance, which only makes `replace` snapshots. If a base table was only compacted, its rows are the
same: the MV is fresh, and a run moves the record on without Spark and without a new snapshot.
"""
