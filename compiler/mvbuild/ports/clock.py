"""The clock that mvbuild needs."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """A source of time; tests replace it."""

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch."""

    def monotonic(self) -> float:
        """Seconds that never go back, for durations."""
