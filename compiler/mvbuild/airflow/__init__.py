"""project -> an Airflow task: one run of mvbuild, over `mvbuild.api`; needs `mvbuild[airflow]`.

In: the directory of a project. Out: an operator whose outlets are the MVs that the run refreshed.

Read first: `operator.py`.

>>> from mvbuild.airflow import MvbuildOperator                      # doctest: +SKIP
>>> MvbuildOperator(task_id="shop", project_dir="/srv/shop")         # doctest: +SKIP
"""

from __future__ import annotations

from mvbuild.airflow.operator import MvbuildOperator, asset_uri

__all__ = ("MvbuildOperator", "asset_uri")
