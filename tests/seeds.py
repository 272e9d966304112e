"""MVBUILD_TEST_SEED -> the seeds of random tests. Without it they are always the same; `.ci/run` sets another one each week.

The header of every run prints the number, so that you can run a failing case again: `MVBUILD_TEST_SEED=202648 pytest ...`.
"""

from __future__ import annotations

import os

FIRST = int(os.environ.get("MVBUILD_TEST_SEED", "0"))


def seeds(count: int) -> range:
    return range(FIRST, FIRST + count)


def more_seeds(count: int) -> range:
    """For a test that needs its own fixed cases, because it counts what they reach: empty unless the seed is set."""
    return seeds(count) if FIRST else range(0)
