"""project -> an Airflow task: one run of mvbuild, over `mvbuild.api`; needs `mvbuild[airflow]`.

In: the directory of a project. Out: an operator whose outlets are the MVs that the run refreshed.

Read first: `operator.py`, `task_log.py` (what a task logs) and `uris.py` (the assets that another DAG can wait for).
"""

from __future__ import annotations

from mvbuild.airflow.operator import MvbuildOperator
from mvbuild.airflow.uris import asset_uri

__all__ = ("MvbuildOperator", "asset_uri")
