"""Past refreshes of an MV -> how far the estimates of its strategies are off, compared with those of full refreshes.

The machine, the cluster and other work on it make all refreshes of an MV slower or faster than estimated. Only the difference between
strategies matters for a choice, so nothing is corrected before both kinds of refreshes were seen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import median

from mvbuild.incremental.strategies import FULL, MAY_FALL_SHORT, WORTH
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


def took_longer(strategy: str, past: Sequence[PastRefresh]) -> str:
    """How long a strategy that computes everything took, if that was more than it is worth; otherwise an empty text. Full refreshes
    without an estimate, the first one and those that were requested, count too: without them there may be none to correct it by."""
    worth = WORTH.get(strategy)
    if worth is None:
        return ""
    own, full = _seconds(strategy, past), _seconds(FULL, past)
    if len(own) < ENOUGH or not full or median(own) <= worth * median(full):
        return ""
    return f"recent refreshes by {strategy} took {median(own):.1f}s, and full ones {median(full):.1f}s"


def _seconds(strategy: str, past: Iterable[PastRefresh]) -> list[float]:
    return [one.seconds for one in past if one.strategy == strategy and one.seconds and _is_plain(one)][-LAST:]


def _is_plain(one: PastRefresh) -> bool:
    """A refresh from auxiliary views is another query."""
    return not one.auxiliary_views and one.reason not in _AFTER_AN_ATTEMPT


def corrections(past: Iterable[PastRefresh]) -> dict[str, float]:
    """Strategy -> the factor by which its estimate is multiplied; oldest refresh first."""
    ratios: dict[str, list[float]] = defaultdict(list)
    for one in past:
        if one.seconds and one.expected_seconds and _is_plain(one):
            ratios[one.strategy].append(one.seconds / one.expected_seconds)
    known = {strategy: median(found[-LAST:]) for strategy, found in ratios.items() if len(found) >= ENOUGH}
    full = known.pop(FULL, None)
    return {strategy: min(HIGHEST, max(LOWEST, found / full)) for strategy, found in known.items()} if full else {}
