"""Runs that are killed at random moments: nobody ever reads half a refresh, and the next run makes everything right."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any

from spark.crashes import Rig

ROUNDS = 6


def test_killed_runs(lake: Any, tmp_path: Path) -> None:
    seed = int(os.environ.get("MVBUILD_CRASH_SEED", secrets.randbelow(10**9)))
    print(f"MVBUILD_CRASH_SEED={seed}")
    rig = Rig.make(tmp_path / "project", lake.session, seed)
    try:
        for _ in range(ROUNDS):
            rig.round()
            rig.change()
    finally:
        print("\n".join(rig.events), dict(rig.changes), sep="\n")
        rig.project.catalog.close()
    assert rig.killed
