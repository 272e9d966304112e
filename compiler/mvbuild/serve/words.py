"""Served -> the words for people: where the rows come from, and how old they are."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mvbuild.serve.policy import Served


def origin(served: Served) -> str:
    """`storage lake.mart.daily__storage: fresh, refreshed 5m ago` or `query: stale (lake.raw.orders has new data)`."""
    why = "; ".join(r.message for r in served.reasons if r.effect != "fresh" or r.code == "within-window")
    state = f"{served.state} ({why})" if why else served.state
    if served.source == "query":
        return f"query: {state}"
    return ", ".join([f"storage {served.storage}: {state}", *_age(served)])


def _age(served: Served) -> list[str]:
    facts = [f"refreshed {duration(served.age_ms)} ago" if served.age_ms is not None else "refreshed at an unknown time"]
    if served.behind_ms:
        facts.append(f"{duration(served.behind_ms)} behind its tables")
    if served.unseen_ms:
        facts.append(f"changes unseen for {duration(served.unseen_ms)}")
    return facts


def utc(ms: int) -> str:
    """Milliseconds since the epoch -> `2026-11-21T14:06:21Z`."""
    return datetime.fromtimestamp(ms / 1000, tz=timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def duration(ms: int) -> str:
    """Milliseconds in the two largest units that say something: `2h 5m`, `3m 20s`, `1.2s`."""
    seconds = abs(ms) / 1000
    if seconds < 60:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes}m {rest}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes}m" if hours < 48 else f"{hours // 24}d {hours % 24}h"


def size(count: int) -> str:
    """`812 B`, `1.2 MB`, `340 MB`: three digits say enough."""
    value, units = float(count), ["B", "kB", "MB", "GB", "TB", "PB"]
    while value >= 999.5 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{value:.1f} {units[0]}" if value < 10 and units[0] != "B" else f"{value:.0f} {units[0]}"
