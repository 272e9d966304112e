"""a value of an option -> what is wrong with it, empty if nothing is."""

from __future__ import annotations

import re
from typing import Any


def flag(value: Any) -> str:
    return "" if isinstance(value, bool) else "must be true or false"


def pattern(value: Any) -> str:
    if not isinstance(value, str):
        return "must be a regular expression"
    try:
        re.compile(value)
    except re.error as exc:
        return f"must be a regular expression: {exc}"
    return ""


def texts(value: Any) -> str:
    is_list = isinstance(value, list) and all(isinstance(item, str) for item in value)
    return "" if is_list or isinstance(value, str) else "must be a string or a list of strings"


def size(value: Any) -> str:
    return "" if bytes_of(value) is not None else "must be a size like 500MB or 10GB"


_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "PB": 10**15}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgtp]?b?)\s*\Z", re.IGNORECASE)


def bytes_of(value: Any) -> int | None:
    """`10GB`, or a number of bytes."""
    if isinstance(value, bool):
        return None
    match = _SIZE.match(str(value))
    unit = match[2].upper() if match else ""
    unit = unit if unit in _UNITS else f"{unit}B"
    return int(float(match[1]) * _UNITS[unit]) if match and unit in _UNITS else None
