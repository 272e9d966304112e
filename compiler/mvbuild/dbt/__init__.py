"""A dbt-spark project -> an mvbuild project, and a scorecard of what could not be taken over unchanged.

In: the directory of a dbt project. Out: the files of an mvbuild project, and a verdict with reasons for each thing in the dbt project
(docs/import-dbt.md).

Read first: `takeover.py` (all steps), `import_state.py` (what is known along the way), `reasons.py` (the table of reasons).
"""

from __future__ import annotations
