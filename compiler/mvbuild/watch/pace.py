"""what each look at the catalog cost -> how long to wait until the next one, and until everything is read again."""

from __future__ import annotations

from mvbuild.dataclass import dataclass
from mvbuild.watch.poll import WHOLE_MS, Read

IDLE_SHARE = 0.01
"""While nothing changes, looking may take this share of a core: with many tables on a slow catalog, the watcher looks less often."""
WHOLE_SHARE = 0.005
"""And reading everything again this one."""
BUSY_SHARE = 0.1
"""Looks that find a change may take this share: refreshes cost far more."""
LONGEST_BUSY = 30.0
"""Seconds of a pause after a change, at most."""


@dataclass(kw_only=True)
class Pace:
    """All times are in seconds."""

    interval: float
    pause: float = 0.0
    whole_ms: int = WHOLE_MS
    """How often everything is read again."""

    def __post_init__(self) -> None:
        self.pause = self.interval

    def looked(self, read: Read, cost: float) -> None:
        """A turn read so much, and took `cost` of CPU."""
        if read == "everything":
            # It is rare: the next look need not wait for it.
            self.whole_ms = max(WHOLE_MS, round(1000 * cost / WHOLE_SHARE))
        elif read == "changes":
            self.pause = max(self.interval, min(cost / BUSY_SHARE, LONGEST_BUSY))
        else:
            self.pause = max(self.interval, cost / IDLE_SHARE)
