"""Two versions of a project -> what changed, of which kind, for whom, and what it costs to refresh.

In: two `Version`s of a project and the columns of both. Out: a `Review`, for `mvbuild plan --against`.

Read first: `model.py` (the types), `compare.py` (what was added, removed, renamed or changed), `impact.py` (who is affected).
How a query was changed is decided in `equivalence/`, so that a review says the same as a plan.
"""

from __future__ import annotations
