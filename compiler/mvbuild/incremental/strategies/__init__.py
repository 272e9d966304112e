"""StrategyInput -> Rewrite or Refused, one module for each strategy. A new one is a module and a name in `_MODULES`.

A module has `NAME` and `rewrite`. It may have `WORTH`, the share of a full refresh up to which it is chosen where no strategy is clearly
cheaper, `refused_by_settings`, for a strategy that is wrong under some settings of the Spark session, `IS_COMPLETE` or `UPDATES_GROUPS`,
which say what it computes, and `MAY_FALL_SHORT`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.rewrite import Rewrite, StrategyInput
from mvbuild.incremental.strategies import affected_keys, append, bag, full_diff, merge, min_max, partitions, top_k

_MODULES = (append, merge, affected_keys, partitions, bag, top_k, min_max, full_diff)
"""From the least work to the most, which decides if sizes do not."""
STRATEGIES: Mapping[str, Callable[[StrategyInput], Rewrite]] = {module.NAME: module.rewrite for module in _MODULES}
WORTH: Mapping[str, float] = {module.NAME: module.WORTH for module in _MODULES if hasattr(module, "WORTH")}
COMPLETE = frozenset(module.NAME for module in _MODULES if getattr(module, "IS_COMPLETE", False))
"""Those that compute the whole query."""
MAY_FALL_SHORT: Mapping[str, str] = {module.NAME: module.MAY_FALL_SHORT for module in _MODULES if hasattr(module, "MAY_FALL_SHORT")}
"""Those for which it is known only when the change is computed whether it is enough, each with the reason of the full refresh if not."""
OF_GROUPS = frozenset(module.NAME for module in _MODULES if getattr(module, "UPDATES_GROUPS", False))
"""Those that compute the new values of a group from its old ones."""
FULL = "full"
_BY_SETTINGS: Mapping[str, Callable[[Mapping[str, str], Iterable[Any]], Refused | None]] = {
    module.NAME: module.refused_by_settings for module in _MODULES if hasattr(module, "refused_by_settings")
}


def refused_by_settings(strategy: str, settings: Mapping[str, str], types: Iterable[Any]) -> Refused | None:
    """Why a strategy cannot be used under these settings of a Spark session; `types`: of the storage's columns."""
    ask = _BY_SETTINGS.get(strategy)
    return ask(settings, types) if ask else None
