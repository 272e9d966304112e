"""StrategyInput -> Rewrite or Refused, one module for each strategy. A new strategy is a module and a line in the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mvbuild.incremental.rewrite import Rewrite, StrategyInput
from mvbuild.incremental.strategies import affected_keys, append, bag, full_diff, merge, partitions

STRATEGIES: Mapping[str, Callable[[StrategyInput], Rewrite]] = {
    module.NAME: module.rewrite for module in (append, merge, affected_keys, partitions, bag, full_diff)
}
"""From the least work to the most, which decides if sizes do not."""
FULL = "full"
