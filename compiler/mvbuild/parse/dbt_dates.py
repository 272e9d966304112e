"""Arguments of dbt's macros for dates -> SQL with the same value as dbt-spark's, which counts in whole seconds."""

from __future__ import annotations

from datetime import date as day_of
from typing import Any

_DAYS = {"day": 1, "week": 7}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_SECONDS = {"hour": 3600, "minute": 60, "second": 1}


def date(year: int, month: int, day: int) -> str:
    return f"to_date('{day_of(year, month, day).isoformat()}', 'yyyy-MM-dd')"


def date_trunc(datepart: Any, date: Any) -> str:
    return f"date_trunc('{datepart}', {date})"


def dateadd(datepart: str, interval: Any, from_date_or_timestamp: Any) -> str:
    """Days and longer parts move the date and keep the seconds since midnight; hours and shorter parts add seconds."""
    of = from_date_or_timestamp
    if datepart in _SECONDS:
        return f"to_timestamp(to_unix_timestamp({of}) + cast({interval} * {_SECONDS[datepart]} as int))"
    if datepart in _DAYS:
        moved = f"date_add(date({of}), cast({interval} * {_DAYS[datepart]} as int))"
    elif datepart in _MONTHS:
        moved = f"add_months(date({of}), cast({interval} * {_MONTHS[datepart]} as int))"
    else:
        raise ValueError(_no_such_part("dateadd", datepart))
    since_midnight = f"to_unix_timestamp(to_timestamp({of})) - to_unix_timestamp(date({of}))"
    return f"to_timestamp(to_unix_timestamp({moved}) + {since_midnight})"


def datediff(first_date: Any, second_date: Any, datepart: str) -> str:
    """How often the part changes between the dates, as opposed to the number of complete parts."""
    first, second = f"date({first_date})", f"date({second_date})"
    if datepart == "day":
        return f"datediff({second}, {first})"
    if datepart == "year":
        return f"year({second}) - year({first})"
    if datepart == "week":
        return _crossed(first, second, f"datediff({second}, {first}) / 7", "dayofweek({0})")
    if datepart == "month":
        return _crossed(first, second, f"months_between({second}, {first})", "dayofmonth({0})")
    if datepart == "quarter":
        return _crossed(first, second, f"months_between({second}, {first}) / 3", "(dayofyear({0}) - quarter({0}) * 365 / 4)")
    if datepart in _SECONDS:
        passed = f"(to_unix_timestamp(to_timestamp({second_date})) - to_unix_timestamp(to_timestamp({first_date}))) / {_SECONDS[datepart]}"
        return f"case when {first_date} < {second_date} then ceil({passed}) else floor({passed}) end"
    raise ValueError(_no_such_part("datediff", datepart))


def last_day(date: Any, datepart: str) -> str:
    return f"cast({dateadd('day', -1, dateadd(datepart, 1, date_trunc(datepart, date)))} as date)"


def _crossed(first: str, second: str, passed: str, within: str) -> str:
    """The number of complete parts, and one more if the last one is incomplete but begins a new part."""
    before, after = within.format(first), within.format(second)
    whole = f"case when {first} < {second} then floor({passed}) else ceil({passed}) end"
    one_more = f"when {first} < {second} and {after} < {before} then 1 when {first} > {second} and {after} > {before} then -1"
    return f"{whole} + case {one_more} else 0 end"


def _no_such_part(macro: str, datepart: Any) -> str:
    return f"{macro}() cannot count in '{datepart}': use second, minute, hour, day, week, month, quarter or year"
