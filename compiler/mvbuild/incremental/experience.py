"""Past refreshes of an MV -> how far the estimates of its strategies are off, compared with those of full refreshes.

The machine, the cluster and other work on it make all refreshes of an MV slower or faster than estimated. Only the difference between
strategies matters for a choice, so nothing is corrected before both kinds of refreshes were seen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import median

from mvbuild.incremental.strategies import FULL, MAY_FALL_SHORT
from mvbuild.storage.history import PastRefresh

ENOUGH, LAST = 2, 5
"""How many refreshes of a kind are needed, and how many count."""
_AFTER_AN_ATTEMPT = (*MAY_FALL_SHORT.values(), "nan-or-negative-zero", "incremental-failed", "round-trip-unproven")
"""Reasons of full refreshes before which an incremental one was tried: their seconds include both."""
LOWEST, HIGHEST = 0.5, 2.0
"""One more user of the machine at the wrong time must not change every later choice."""


def often_falls_short(strategy: str, past: Sequence[PastRefresh]) -> bool:
    """Whether it was not enough so often that trying it does not pay."""
    reason = MAY_FALL_SHORT.get(strategy)
    return reason is not None and sum(one.reason == reason for one in past[-LAST:]) >= ENOUGH


def corrections(past: Iterable[PastRefresh]) -> dict[str, float]:
    """Strategy -> the factor by which its estimate is multiplied; oldest refresh first."""
    ratios: dict[str, list[float]] = defaultdict(list)
    for one in past:
        # A refresh from auxiliary views is another query.
        if one.seconds and one.expected_seconds and not one.auxiliary_views and one.reason not in _AFTER_AN_ATTEMPT:
            ratios[one.strategy].append(one.seconds / one.expected_seconds)
    known = {strategy: median(found[-LAST:]) for strategy, found in ratios.items() if len(found) >= ENOUGH}
    full = known.pop(FULL, None)
    return {strategy: min(HIGHEST, max(LOWEST, found / full)) for strategy, found in known.items()} if full else {}
