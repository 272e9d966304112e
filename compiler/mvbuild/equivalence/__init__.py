"""Two texts of one query -> whether they are the same query, and what differs.

In: two texts of SQL; optionally the columns of the tables that they read, and an engine. Out: an `Edit`, which plans, refreshes and
reviews all use, so that they say the same of the same edit.

Read first: `differences.py` (the classes of a change), `canonical_tree.py` (the form that is equal for queries with the same meaning),
`spark_proof.py` (what Spark's plans prove).
"""

from __future__ import annotations
