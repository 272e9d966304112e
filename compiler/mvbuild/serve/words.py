"""Served, Reason -> text: where the rows come from, how old they are, and why."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mvbuild.formats.failed_tests import FailedTests
    from mvbuild.freshness.model import Reason
    from mvbuild.serve.policy import Served


def origin(served: Served) -> str:
    """`storage lake.mart.daily__storage: fresh, refreshed 5m ago` or `query: stale (lake.raw.orders has new data)`."""
    why = "; ".join(r.message for r in served.reasons if r.effect != "fresh" or r.code == "within-window")
    state = f"{served.state} ({why})" if why else served.state
    if served.source == "query":
        return f"query: {state}"
    return ", ".join([f"storage {served.storage}: {state}", *_age(served)])


def refused_data(failed: FailedTests) -> str:
    """`its newest data failed its tests at 2026-11-21T14:06:21Z (not_null_daily_id: 3 rows break its rule)`."""
    at = f" at {utc(failed.at_ms)}" if failed.at_ms is not None else ""
    return f"its newest data failed its tests{at} ({'; '.join(failed.tests) or 'it is not recorded which'})"


def caution(served: Served) -> str:
    """The note for a reader who gets older rows because newer ones failed the tests; empty for others."""
    if served.failed is None:
        return ""
    instead = "these rows are of its last good refresh" if served.source == "storage" else "its policy is to run the query anyway"
    return f"{served.identifier}: {refused_data(served.failed)}; {instead}"


def _age(served: Served) -> list[str]:
    facts = [f"refreshed {duration(served.age_ms)} ago" if served.age_ms is not None else "refreshed at an unknown time"]
    if served.behind_ms:
        facts.append(f"{duration(served.behind_ms)} behind its tables")
    if served.unseen_ms:
        facts.append(f"changes unseen for {duration(served.unseen_ms)}")
    return facts


def reason_text(reason: Reason) -> str:
    """`base-table-changed: lake.raw.orders has new data (snapshot 1 -> 2, 3m later)`."""
    facts = []
    if reason.recorded is not None and reason.current is not None:
        what = "version" if "view" in reason.code else "snapshot"
        facts.append(f"{what} {reason.recorded} -> {reason.current}")
    if reason.lag_ms is not None:
        facts.append(f"{duration(reason.lag_ms)} {'later' if reason.lag_ms >= 0 else 'earlier'}")
    return f"{reason.code}: {reason.message}" + (f" ({', '.join(facts)})" if facts else "")


def utc(ms: int) -> str:
    """Milliseconds since the epoch -> `2026-11-21T14:06:21Z`."""
    return datetime.fromtimestamp(ms / 1000, tz=timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def duration(ms: int) -> str:
    """Milliseconds in the two largest relevant units: `2h 5m`, `3m 20s`, `1.2s`."""
    seconds = abs(ms) / 1000
    if seconds < 60:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes}m {rest}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes}m" if hours < 48 else f"{hours // 24}d {hours % 24}h"


def size(count: int) -> str:
    """`812 B`, `1.2 MB`, `340 MB`: with three digits."""
    value, units = float(count), ["B", "kB", "MB", "GB", "TB", "PB"]
    while value >= 999.5 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{value:.1f} {units[0]}" if value < 10 and units[0] != "B" else f"{value:.0f} {units[0]}"
