"""damaged projects -> diagnostics, and nothing else. tests/benchmarks/mutants.py runs ten thousand; docs/proofs/mutated-files.md has its report."""

from __future__ import annotations

from pathlib import Path

import pytest

from seeds import seeds
from unit.hostile.bounded import Parent
from unit.hostile.mutants import mutant
from unit.hostile.trial import tried

pytestmark = pytest.mark.proof

MUTANTS = seeds(150)


def test_damaged_projects_give_diagnostics(tmp_path: Path) -> None:
    with Parent(hash_seed=1) as first, Parent(hash_seed=2) as second:
        for seed in MUTANTS:
            parents = (first, second) if seed % 5 == 0 else (first,)
            one = mutant(seed)
            complaint, _ = tried(one, parents, tmp_path)
            assert not complaint, f"mutant({seed}), {', '.join(one.done)}: {complaint}"


def test_damage_is_done(tmp_path: Path) -> None:
    """Few of the mutants are as good as before."""
    with Parent() as parent:
        exits = [tried(mutant(seed), (parent,), tmp_path)[1].exit for seed in range(20)]
    assert exits.count(2) >= 8, exits
