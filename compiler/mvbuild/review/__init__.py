"""Two versions of a project -> what changed, of which kind, for whom, and what it costs to refresh.

In: two `Version`s of a project and the columns of both. Out: a `Review`, for `mvbuild plan --against`.

Read first: `model.py` (the types), `compare.py` (what was added, removed, renamed or changed), `impact.py` (who is affected).
"""

from __future__ import annotations
