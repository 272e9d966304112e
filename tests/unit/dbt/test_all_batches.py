"""Every model of the tests that the import takes: dbt's batches against the query of the MV."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from unit.dbt.batch_runs import play
from unit.dbt.incremental_cases import RUN_DAYS, taken_models
from unit.dbt.projects import taken

pytestmark = pytest.mark.proof
MODELS = taken_models()


@pytest.mark.parametrize("name", MODELS)
def test_the_mv_is_the_table_that_dbt_builds(tmp_path: Path, name: str) -> None:
    (model,) = taken(tmp_path, MODELS[name], vars=RUN_DAYS).incremental
    assert model.item.verdict == "changed", model.item.reasons
    found = play(model, 8)
    assert found.verdict in ("agrees", "agrees, noted"), (found.differs, found.reason)
    assert found.changed


def test_the_command_plays_a_model_on_spark() -> None:
    """In a process of its own: a session of Spark takes its settings from the first one of a process."""
    name = next(name for name in MODELS if "newest row" in name)
    command = [sys.executable, "tests/benchmarks/dbt_batches.py", "--engine", "spark", "--trials", "1", "--model", name]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[3], check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if name in line]
    assert lines
    assert all(line.startswith("agrees") and " Spark " in line for line in lines), lines
