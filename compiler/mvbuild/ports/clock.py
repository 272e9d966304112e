"""Time as mvbuild needs it."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """A source of time; tests bring their own."""

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch."""

    def monotonic(self) -> float:
        """Seconds that only go up, for durations."""
