"""Two queries, or an MV and its query -> whether their rows are the same, and which are not.

In: MVs and a `RunSession`, or two states of one table. Out: a `Verification` for `mvbuild verify`, a `Comparison` for `mvbuild diff`.

Read first: `verify.py` (an MV against its query at the recorded snapshots), `comparison.py` (two states of a table), `bags.py` (the SQL
that compares two queries as bags of rows).
"""

from __future__ import annotations
