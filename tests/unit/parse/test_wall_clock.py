"""Times as Spark 4.1 casts them to TIMESTAMP; each value was taken from Spark."""

from __future__ import annotations

import pytest

from mvbuild.parse.wall_clock import instant_ms

NEW_YEAR = 1767225600000
"""2026-01-01T00:00:00Z"""
HOUR = 3600_000


@pytest.mark.parametrize(
    ("text", "zone", "ms"),
    [
        ("2026-01-01", "UTC", NEW_YEAR),
        ("2026-01-01", "Europe/Berlin", NEW_YEAR - HOUR),
        ("2026", "UTC", NEW_YEAR),
        (" 2026-01-01 ", "UTC", NEW_YEAR),
        ("2026-1-1 1:2:3", "UTC", NEW_YEAR + HOUR + 123_000),
        ("2026-01-01 10", "UTC", NEW_YEAR + 10 * HOUR),
        ("2026-01-01T10:00", "UTC", NEW_YEAR + 10 * HOUR),
        ("2026-01-01T10:00:00Z", "Europe/Berlin", NEW_YEAR + 10 * HOUR),
        ("2026-01-01 10:00:00 Europe/Berlin", "UTC", NEW_YEAR + 9 * HOUR),
        ("2026-01-01 10:00:00+1:00", "UTC", NEW_YEAR + 9 * HOUR),
        ("2026-01-01 10:00:00 UTC+2", "UTC", NEW_YEAR + 8 * HOUR),
        ("2026-01-01 10:00:00.1234567", "UTC", NEW_YEAR + 10 * HOUR + 123),
        ("2026-01-01 10:00:00", "+05:30", NEW_YEAR + 10 * HOUR - 19_800_000),
        # A time that summer time leaves out, and one that it has twice.
        ("2026-03-29 02:30:00", "Europe/Berlin", 1774747800000),
        ("2026-10-25 02:30:00", "Europe/Berlin", 1792888200000),
    ],
)
def test_read_as_spark_reads_it(text: str, zone: str, ms: int) -> None:
    assert instant_ms(text, zone) == ms


@pytest.mark.parametrize(
    "text",
    ["", "20260101", "1767225600", "T10:00:00", "2026-01-01 24:00:00", "2026-01-01 10:00:60", "2026-01-01T10:00:00z", "2026-02-30", "today",
     "epoch", "2026-01-01 10:00:00 PST", "2026-01-01 10:00:00+19:00", "-2026-01-01", "2026-01-01Z"],
)  # fmt: skip
def test_refused_or_the_same_in_no_two_sessions(text: str) -> None:
    assert instant_ms(text, "UTC") is None


def test_a_zone_that_is_not_known() -> None:
    assert instant_ms("2026-01-01", "Nowhere/City") is None
    assert instant_ms("2026-01-01 10:00:00Z", "Nowhere/City") == NEW_YEAR + 10 * HOUR
