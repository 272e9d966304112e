"""project directory -> its packages, installed and pinned."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mvbuild.packages.install import Installed, install


def deps(
    project_dir: str | Path = ".", *, vars: Mapping[str, Any] | None = None, env: Mapping[str, str] | None = None, upgrade: bool = False
) -> tuple[Installed, ...]:
    """Install the packages of packages.yml in dbt_packages, and write packages.lock. Nothing else that mvbuild does fetches packages.
    Raises ProjectError, and then nothing was changed."""
    return install(Path(project_dir), env=os.environ if env is None else env, vars=vars or {}, upgrade=upgrade)
