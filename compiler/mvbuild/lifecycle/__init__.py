"""An MV after its first refresh -> renamed, rolled back, maintained or dropped: everything that commits without computing rows.

In: an MV of the catalog and its policy. Out: commits, and files that were deleted.

Read first: `rename.py`, `rollback.py` and `maintain.py` (compaction, expiry of snapshots, orphan files), one module per operation.

`branches.py` lists what an Iceberg branch has, publishes it and drops it. A project with a `branch` works through `Catalog.on_branch`,
which shows metadata as the branch sees it and translates back when it is written (`adapters/iceberg/branches.py`). Above the adapter only
this module and `verify/comparison.py` (`diff`) know the difference (docs/decisions/009).
"""
