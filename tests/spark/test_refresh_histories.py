"""Random tables, histories and MVs, one case for each way in which a table deletes rows: every MV has the rows of its full query after every run.

The long run of the same is tests/benchmarks/refresh_histories.py, which also makes a failing case small.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spark.refresh_histories import MODES, made, played

pytestmark = pytest.mark.proof

SEEDS = (24, 1, 5)
FEATURES = (("moves", "zones"), ("views", "storage", "layers", "keys"), ("catalogs", "int96", "text", "idioms"))
ROUNDS, MVS = 2, 3
AGAIN = "python tests/benchmarks/refresh_histories.py --histories 1 --seed {seed} --rounds {rounds} --mvs {mvs} --features {of} --log --shrink 600"


@pytest.mark.parametrize(
    ("seed", "of", "features"), list(zip(SEEDS, MODES, FEATURES, strict=True)), ids=["copy-on-write", "merge-on-read", "deletion-vectors"]
)
def test_every_mv_has_the_rows_of_its_query(lake: Any, tmp_path: Path, seed: int, of: tuple[int, str], features: tuple[str, ...]) -> None:
    assert MODES[seed % len(MODES)] == of, "the benchmark takes the mode from the seed"
    case = made(seed, *of, rounds=ROUNDS, mvs=MVS, features=features)
    seen = played(case, tmp_path / "case", lake.session, verify_every=2)
    assert not seen.failures, f"{seen.failures[0]}\n  {AGAIN.format(seed=seed, rounds=ROUNDS, mvs=MVS, of=' '.join(features))}"
    assert seen.runs == ROUNDS + 1
    assert any(strategy not in ("full", "no-change") for strategy, _ in seen.refreshes), seen.refreshes
    if "layers" in features:
        assert any(strategy not in ("full", "no-change") for strategy, _ in seen.auxiliary), seen.auxiliary
    assert seen.checked["fresh"]
    assert seen.checked["fresh by the specification"]
    assert seen.checked["served"]
    if "storage" not in features:  # tables that are partitioned, sorted or copy-on-write are written by Spark
        assert seen.checked["written without Spark"]


def test_a_case_is_told_by_its_seed() -> None:
    assert str(made(7, 2, "merge-on-read")) == str(made(7, 2, "merge-on-read"))
    assert str(made(7, 2, "merge-on-read")) != str(made(8, 2, "merge-on-read"))
