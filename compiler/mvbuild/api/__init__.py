"""project directory -> Graph | Plan | RunResult: what the commands do, for programs. Nothing here prints.

In: a project directory, or the `Graph` that `compile` returned. Out: values of the stages. There is one module per kind of question.

Read first: `refreshes.py` (plan, status, verify), `runs.py` (run), `frames.py` (read, sql, show).

>>> from mvbuild import api                                   # doctest: +SKIP
>>> result = api.run("shop", select=["+revenue_daily"])       # doctest: +SKIP
>>> result.ok                                                 # doctest: +SKIP
True
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mvbuild.api.branches import branch_contents, branch_names, diff, drop_branch, publish
    from mvbuild.api.columns import bound, check_columns, lineage, lock
    from mvbuild.api.compilation import compile, write_artifacts
    from mvbuild.api.documentation import build_docs, live_freshness
    from mvbuild.api.engines import stop_warm_engines, warm_engines
    from mvbuild.api.frames import read, show, sql
    from mvbuild.api.refreshes import explain, plan, status, verify
    from mvbuild.api.reviews import review
    from mvbuild.api.runs import run
    from mvbuild.api.sessions import catalog_of
    from mvbuild.api.storages import drop, history, maintain, migrate, rollback
    from mvbuild.api.testing import test
    from mvbuild.serve.frames import served

__all__ = (
    "bound",
    "branch_contents",
    "branch_names",
    "build_docs",
    "catalog_of",
    "check_columns",
    "compile",
    "diff",
    "drop",
    "drop_branch",
    "explain",
    "history",
    "lineage",
    "live_freshness",
    "lock",
    "maintain",
    "migrate",
    "plan",
    "publish",
    "read",
    "review",
    "rollback",
    "run",
    "served",
    "show",
    "sql",
    "status",
    "stop_warm_engines",
    "test",
    "verify",
    "warm_engines",
    "write_artifacts",
)

_MODULES = {
    "mvbuild.api.branches": "branch_contents branch_names diff drop_branch publish",
    "mvbuild.api.columns": "bound check_columns lineage lock",
    "mvbuild.api.compilation": "compile write_artifacts",
    "mvbuild.api.documentation": "build_docs live_freshness",
    "mvbuild.api.engines": "stop_warm_engines warm_engines",
    "mvbuild.api.frames": "read show sql",
    "mvbuild.api.refreshes": "explain plan status verify",
    "mvbuild.api.reviews": "review",
    "mvbuild.api.runs": "run",
    "mvbuild.api.sessions": "catalog_of",
    "mvbuild.api.storages": "drop history maintain migrate rollback",
    "mvbuild.api.testing": "test",
    "mvbuild.serve.frames": "served",
}
"""Module -> its functions here. A command imports only the modules that it uses."""


def __getattr__(name: str) -> Any:
    module = next((module for module, names in _MODULES.items() if name in names.split()), None)
    if module is None:
        raise AttributeError(f"module 'mvbuild.api' has no attribute '{name}'")
    found = globals()[name] = getattr(import_module(module), name)
    return found
