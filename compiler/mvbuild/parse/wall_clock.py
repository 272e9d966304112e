"""text of a date and time -> the instant that Spark casts it to in a time zone; None if that is not certain."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

_TIME = re.compile(
    r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d{0,9}))?\s*(\S.*)?)?)?)?)?)?", re.ASCII
)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::(\d{1,2}))?", re.ASCII)
_UTC = frozenset(("Z", "UTC", "GMT", "UT"))
_SHORT = frozenset(
    "ACT AET AGT ART AST BET BST CAT CNT CST CTT EAT ECT IET IST JST MIT NET NST PLT PNT PRT PST SST VST EST MST HST".split()
)
"""Abbreviations that Java reads as other places, or as offsets without daylight saving time."""
_LARGEST = timedelta(hours=18)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def instant_ms(text: str, zone: str) -> int | None:
    """Milliseconds since 1970. `zone`: that of the session, for a text without one.

    >>> instant_ms("2026-01-31 12:00:00", "UTC"), instant_ms("2026-01-31 12:00:00+01:00", "UTC")
    (1769860800000, 1769857200000)
    """
    found = _TIME.fullmatch(text.strip())
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(part) if part else default for part, default in zip(found.groups(), _FIRST, strict=False))
    where = zone_of(found[8] or zone)
    if where is None:
        return None
    try:
        at = datetime(year, month, day, hour, minute, second, int((found[7] or "").ljust(6, "0")[:6]), tzinfo=where)
        return (at - _EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        return None


_FIRST = (1, 1, 1, 0, 0, 0)


def is_time(text: str) -> bool:
    """Whether Spark reads it as a time in every session."""
    return instant_ms(text, "UTC") is not None


def zone_of(name: str) -> tzinfo | None:
    """A time zone by Spark's name; None for one that is not known here."""
    if name in _UTC:
        return timezone.utc
    offset = _OFFSET.fullmatch(name)
    if offset:
        size = timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
        is_one = int(offset[3] or 0) < 60 and size <= _LARGEST
        return timezone(-size if offset[1] == "-" else size) if is_one else None
    try:
        return None if name in _SHORT else ZoneInfo(name)
    except (ValueError, KeyError, OSError):
        return None
