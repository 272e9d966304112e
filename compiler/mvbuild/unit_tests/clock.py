"""SQL + a time -> the SQL with that time in place of the clock."""

from __future__ import annotations

import re

_WORDS = re.compile(
    r"""
      '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" | `[^`]*` | --[^\n]* | /\*.*?\*/
    | (?<![\w.`])(?P<name>current_timestamp|localtimestamp|current_date|curdate|now|unix_timestamp)\b(?P<call>\s*\(\s*\))?(?![\w(.])
    """,
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_CALLED = ("now", "curdate", "unix_timestamp")
"""Without parentheses these are columns."""


def at_time(sql: str, time: str) -> str:
    """The query at a fixed time.

    >>> at_time("SELECT current_date() AS d, 'now()' AS t WHERE ts < now()", "2026-01-31 12:00:00")
    "SELECT CAST(TIMESTAMP '2026-01-31 12:00:00' AS DATE) AS d, 'now()' AS t WHERE ts < TIMESTAMP '2026-01-31 12:00:00'"
    """
    stamp = f"TIMESTAMP '{time}'"

    def fixed(found: re.Match[str]) -> str:
        name = (found["name"] or "").lower()
        if not name or (name in _CALLED and not found["call"]):
            return found[0]
        if name in ("current_date", "curdate"):
            return f"CAST({stamp} AS DATE)"
        if name == "localtimestamp":
            return f"TIMESTAMP_NTZ '{time}'"
        return f"unix_timestamp({stamp})" if name == "unix_timestamp" else stamp

    return _WORDS.sub(fixed, sql)
