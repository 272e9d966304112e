"""milliseconds since the epoch -> a time as dbt writes it."""

from __future__ import annotations

from datetime import datetime, timezone


def timestamp(ms: int) -> str:
    """Milliseconds since the epoch -> `2026-11-21T10:00:00.000000Z`."""
    return datetime.fromtimestamp(ms / 1000, tz=timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
