"""Runs that are killed at random moments: readers never see half a refresh, and the next run makes everything right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from seeds import FIRST
from spark.crashes import Rig

pytestmark = pytest.mark.proof

ROUNDS = 2
"""tests/benchmarks/crash.py runs as many as you like."""


def test_killed_runs(lake: Any, tmp_path: Path) -> None:
    rig = Rig.make(tmp_path / "project", lake.session, FIRST)
    try:
        for _ in range(ROUNDS):
            rig.round()
            rig.change()
    finally:
        print("\n".join(rig.events), dict(rig.changes), sep="\n")
        rig.project.catalog.close()
    assert rig.killed
