"""SQL text -> the values of the clock that it reads, such as the day; an instant -> these values; both -> the SQL with the values in it.

A query that reads `current_date` reads a day, and its result is the same until midnight. `current_timestamp` itself is another value each
time and is not found here, unless the query truncates it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta, tzinfo

from sqlglot import Token, TokenType, exp
from sqlglot.errors import SqlglotError, TokenError

from mvbuild.dataclass import dataclass
from mvbuild.parse.dialect import tokenize
from mvbuild.parse.respelling import trees_of
from mvbuild.parse.splice import Edit, edited
from mvbuild.parse.wall_clock import zone_of
from mvbuild.source import MappedText, SourceFile

DAY, TIME = "current_date", "current_timestamp"
_UNITS_OF_DAY = {
    "year": "year",
    "yyyy": "year",
    "yy": "year",
    "quarter": "quarter",
    "week": "week",
    "month": "month",
    "mon": "month",
    "mm": "month",
}
"""Spark's names of the units that `trunc` knows."""
_UNITS = {**_UNITS_OF_DAY, "day": "day", "dd": "day", "hour": "hour", "minute": "minute"}
_OF_THE_DAY = frozenset(
    "year quarter month day dayofmonth dayofweek dayofyear weekday weekofyear dayname monthname"
    " add_months date_add date_sub dateadd datediff date_diff last_day next_day trunc".split()
)
"""Functions for whose first argument Spark makes a date of a time."""
_OF_TWO_DAYS = frozenset(("datediff", "date_diff"))
_FIELDS_OF_DAY = frozenset(("year", "quarter", "month", "week", "day", "dayofweek", "dow", "doy"))
"""What `extract` may take of a time without its hours."""
_LETTERS_OF_DAY = frozenset("GyMLdDEQq")
"""Letters of a format that stand for a part of the date."""
_MAYBE = re.compile(r"\b(?:current_date|curdate|now|current_timestamp)\b", re.IGNORECASE)
_STANDS_FOR, _STANDS_FOR_NAME = "mvbuild_clock", "mvbuild_clock_name"
"""In place of a read, to see where it is: the second one in place of `current_date` alone, which can name a field."""
_NUMBERED = re.compile(r"col\d+")
_TEXTS = (TokenType.STRING, TokenType.RAW_STRING, TokenType.IDENTIFIER)


@dataclass(frozen=True, slots=True)
class ClockRead:
    """The text [start, end) reads the clock. `name`: what of it, such as `current_date` or `current_timestamp.hour`."""

    start: int
    end: int
    name: str
    is_bare: bool
    """Written without brackets: a column of that name would come first."""


def may_read_clock(sql: str) -> bool:
    """Whether a word of it may be a clock."""
    return _MAYBE.search(sql) is not None


def clock_reads(sql: str, columns: Iterable[str] = ()) -> tuple[ClockRead, ...]:
    """`columns`: names of the columns that the query reads. Empty if one of the values cannot be replaced, because its text gives a column
    of the result its name.

    >>> [read.name for read in clock_reads("SELECT d FROM t WHERE d > current_date - 7 AND ts < date_trunc('HOUR', now())")]
    ['current_date', 'current_timestamp.hour']
    >>> clock_reads("SELECT now() AS at FROM t"), clock_reads("SELECT current_date FROM t")
    ((), ())
    """
    if not may_read_clock(sql):
        return ()
    try:
        tokens = tokenize(sql)
    except TokenError:
        return ()
    taken = {name.lower() for name in columns} | set(_named(tokens))
    found = tuple(_reads(tokens))
    if any(read.is_bare for read in found) and taken & {DAY, TIME}:
        return ()
    return found if found and _can_be_replaced(sql, found) else ()


def _named(tokens: Sequence[Token]) -> Iterator[str]:
    """Words that are certainly names here."""
    for at, token in enumerate(tokens):
        is_name = token.token_type == TokenType.IDENTIFIER
        if is_name or (at and tokens[at - 1].token_type in (TokenType.DOT, TokenType.ALIAS)):
            yield token.text.lower()


def _reads(tokens: Sequence[Token]) -> Iterator[ClockRead]:
    at = 0
    while at < len(tokens):
        found = None
        if not at or tokens[at - 1].token_type not in (TokenType.DOT, TokenType.ALIAS):
            found = next((made for pattern in _PATTERNS if (made := pattern(tokens, at)) is not None), None)
        if found is None:
            at += 1
            continue
        end, name, is_bare = found
        yield ClockRead(tokens[at].start, tokens[end - 1].end + 1, name, is_bare)
        at = end


_Found = tuple[int, str, bool]
"""The index after the last token, the name of the value, and whether it is bare."""


def _word(tokens: Sequence[Token], at: int) -> str:
    return tokens[at].text.lower() if 0 <= at < len(tokens) and tokens[at].token_type not in _TEXTS else ""


def _function(tokens: Sequence[Token], at: int) -> str:
    """The name of a function of Spark's own."""
    return "" if at and _is(tokens, at - 1, TokenType.DOT) else _word(tokens, at)


def _is(tokens: Sequence[Token], at: int, kind: TokenType) -> bool:
    return at < len(tokens) and tokens[at].token_type == kind


def _constant(tokens: Sequence[Token], at: int, word: str, *, may_be_bare: bool) -> tuple[int, bool] | None:
    """The index after a function without arguments."""
    if _word(tokens, at) != word:
        return None
    if _word(tokens, at + 1) == "(":
        return (at + 3, False) if _word(tokens, at + 2) == ")" else None
    return (at + 1, True) if may_be_bare else None


def _now(tokens: Sequence[Token], at: int) -> tuple[int, bool] | None:
    return _constant(tokens, at, "now", may_be_bare=False) or _constant(tokens, at, TIME, may_be_bare=True)


def _day(tokens: Sequence[Token], at: int) -> _Found | None:
    found = _constant(tokens, at, DAY, may_be_bare=True) or _constant(tokens, at, "curdate", may_be_bare=False)
    return (found[0], DAY, found[1]) if found else None


def _day_of_now(tokens: Sequence[Token], at: int) -> _Found | None:
    """`to_date(now())`, `date(now())`, `CAST(now() AS DATE)`."""
    word = _word(tokens, at)
    found = _now(tokens, at + 2) if word in ("to_date", "date", "cast") and _word(tokens, at + 1) == "(" else None
    if found is None:
        return None
    rest = ("as", "date", ")") if word == "cast" else (")",)
    end = found[0] + len(rest)
    return (end, DAY, found[1]) if tuple(_word(tokens, one) for one in range(found[0], end)) == rest else None


def _now_as_date(tokens: Sequence[Token], at: int) -> _Found | None:
    """`now()::date`."""
    found = _now(tokens, at)
    is_cast = found is not None and _is(tokens, found[0], TokenType.DCOLON) and _word(tokens, found[0] + 1) == "date"
    return (found[0] + 2, DAY, found[1]) if found and is_cast else None


def _now_for_its_day(tokens: Sequence[Token], at: int) -> _Found | None:
    """`now()` where only its day counts, as in `date_sub(now(), 7)`, `extract(year FROM now())` and `date_format(now(), 'yyyyMM')`."""
    found = _now(tokens, at)
    if found is None:
        return None
    before, after = _word(tokens, at - 1), _word(tokens, found[0])
    function = _function(tokens, at - 2)
    if before == "(" and function == "date_format":
        counts = after == "," and _has_only_days(tokens, found[0] + 1)
    elif before == "(":
        counts = function in _OF_THE_DAY and after in (",", ")")
    elif before == "from":
        counts = _word(tokens, at - 4) == "extract" and _word(tokens, at - 2) in _FIELDS_OF_DAY and after == ")"
    else:
        counts = before == "," and after == ")" and _is_second_of_two(tokens, at)
    return (found[0], DAY, found[1]) if counts else None


def _has_only_days(tokens: Sequence[Token], at: int) -> bool:
    is_whole = _is(tokens, at, TokenType.STRING) and _word(tokens, at + 1) == ")"
    return is_whole and {letter for letter in tokens[at].text if letter.isalpha()} <= _LETTERS_OF_DAY


def _is_second_of_two(tokens: Sequence[Token], at: int) -> bool:
    """Whether the last argument, at `at`, is the second one of a difference in days; with a unit before, it is the third one."""
    depth = commas = 0
    for one in range(at - 1, 0, -1):
        word = _word(tokens, one)
        if word == "(" and not depth:
            return commas == 1 and _function(tokens, one - 1) in _OF_TWO_DAYS
        depth += (word in (")", "]")) - (word in ("(", "["))
        commas += word == "," and not depth
    return False


def _any_day(tokens: Sequence[Token], at: int) -> _Found | None:
    return _day(tokens, at) or _day_of_now(tokens, at) or _now_as_date(tokens, at)


def _truncated_time(tokens: Sequence[Token], at: int) -> _Found | None:
    """`date_trunc('HOUR', now())`."""
    if _word(tokens, at) != "date_trunc" or _word(tokens, at + 1) != "(" or _word(tokens, at + 3) != ",":
        return None
    unit, now = _unit(tokens, at + 2, _UNITS), _now(tokens, at + 4)
    day = _any_day(tokens, at + 4)
    inner = (day[0], day[2], "day") if day else (*now, "") if now else None
    if unit is None or inner is None or (inner[2] and unit in ("hour", "minute")) or _word(tokens, inner[0]) != ")":
        return None
    return inner[0] + 1, f"{TIME}.{unit}", inner[1]


def _truncated_day(tokens: Sequence[Token], at: int) -> _Found | None:
    """`trunc(current_date, 'MM')`, `trunc(now(), 'MM')`."""
    if _word(tokens, at) != "trunc" or _word(tokens, at + 1) != "(":
        return None
    found = _any_day(tokens, at + 2) or _now_for_its_day(tokens, at + 2)
    if found is None or _word(tokens, found[0]) != "," or _word(tokens, found[0] + 2) != ")":
        return None
    unit = _unit(tokens, found[0] + 1, _UNITS_OF_DAY)
    return (found[0] + 3, f"{DAY}.{unit}", found[2]) if unit else None


def _unit(tokens: Sequence[Token], at: int, units: Mapping[str, str]) -> str | None:
    return units.get(tokens[at].text.lower()) if _is(tokens, at, TokenType.STRING) else None


_PATTERNS: Sequence[Callable[[Sequence[Token], int], _Found | None]] = (
    _truncated_time,
    _truncated_day,
    _day_of_now,
    _now_as_date,
    _now_for_its_day,
    _day,
)


def _can_be_replaced(sql: str, reads: Sequence[ClockRead]) -> bool:
    """Whether each is an expression, and none is a part of a column without a name: Spark would make the name from the text."""
    replaced = _spliced(sql, reads, lambda read: f"{_STANDS_FOR_NAME if sql[read.start : read.end].lower() == DAY else _STANDS_FOR}()")
    try:
        trees = trees_of(replaced)
    except (SqlglotError, RecursionError):
        return False
    calls = [node for tree in trees if tree is not None for node in tree.find_all(exp.Anonymous)]
    found = [node for node in calls if node.this in (_STANDS_FOR, _STANDS_FOR_NAME)]
    return len(found) == len(reads) and all(map(_has_name, found))


def _has_name(node: exp.Expr) -> bool:
    if node.this == _STANDS_FOR_NAME and _is_field_without_name(node.parent):
        return False  # `struct(current_date, id)` has a field `current_date`
    child = node
    while child.parent is not None and not isinstance(child.parent, exp.Select | exp.Pivot):
        child = child.parent
    query = child.parent
    is_named = query is None or child.arg_key != "expressions" or isinstance(child, exp.Alias)
    return is_named or (isinstance(query, exp.Select) and _gets_names(query))


def _is_field_without_name(around: exp.Expr | None) -> bool:
    """sqlglot gives the fields of a `struct` that have no name one with their number."""
    return isinstance(around, exp.Tuple) or (isinstance(around, exp.PropertyEQ) and _NUMBERED.fullmatch(around.name) is not None)


def _gets_names(query: exp.Expr) -> bool:
    """Whether the columns of a query have the names of a list, `days(d) AS (SELECT ...)`, or those of the first part of a UNION, or need
    no names, as those of a subquery in a condition."""
    above = query.parent
    around = above.parent if isinstance(above, exp.Subquery) else None
    if isinstance(above, exp.In | exp.Exists) or (around is not None and not isinstance(around, _RELATIONS)):
        return True
    if isinstance(above, exp.SetOperation):
        return not above.args.get("by_name") and (query.arg_key == "expression" or _gets_names(above))
    alias = above.args.get("alias") if isinstance(above, exp.CTE | exp.Subquery) else None
    return bool(alias.columns) if isinstance(alias, exp.TableAlias) else isinstance(above, exp.Subquery) and _gets_names(above)


_RELATIONS = (exp.From, exp.Join, exp.Lateral, exp.CTE, exp.Subquery, exp.SetOperation, exp.Select, exp.Paren, exp.Table)
"""What a subquery with columns that have names is a part of."""


# --- values -------------------------------------------------------------------------------------------------------------------------


def values_at(names: Iterable[str], at_ms: int, zone: str) -> dict[str, str]:
    """The values at an instant in a session's zone, as texts; none if the zone is not known here.

    >>> values_at(["current_date", "current_timestamp.hour"], 1769902500000, "Europe/Berlin")
    {'current_date': '2026-02-01', 'current_timestamp.hour': '2026-02-01 00:00:00+01:00'}
    """
    where = zone_of(zone)
    if where is None:
        return {}
    local = datetime.fromtimestamp(at_ms / 1000, where)
    return {name: _value(name, local) for name in names}


def _value(name: str, local: datetime) -> str:
    what, _, unit = name.partition(".")
    start = _start(local, unit or "day")
    return start.date().isoformat() if what == DAY else start.isoformat(" ")


def _start(local: datetime, unit: str) -> datetime:
    """The beginning of the hour, day, week ... in local time."""
    if unit == "minute":
        return local.replace(second=0, microsecond=0)
    if unit == "hour":
        return local.replace(minute=0, second=0, microsecond=0)
    day = local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    if unit == "week":
        return day - timedelta(days=day.weekday())
    if unit == "month":
        return day.replace(day=1)
    if unit == "quarter":
        return day.replace(day=1, month=day.month - (day.month - 1) % 3)
    return day.replace(day=1, month=1) if unit == "year" else day


def ends_ms(name: str, value: str, zone: str) -> int | None:
    """The instant at which another value follows this one; None for a value that is not one.

    >>> ends_ms("current_date", "2026-01-31", "Europe/Berlin")
    1769900400000
    """
    where = zone_of(zone)
    try:
        start = datetime.fromisoformat(value)
    except ValueError:
        return None
    if where is None:
        return None
    unit = name.partition(".")[2] or "day"
    if unit in ("hour", "minute"):
        after = start + timedelta(hours=1) if unit == "hour" else start + timedelta(minutes=1)
    else:
        after = _midnight(_next(start.date(), unit), where)
    return round(after.timestamp() * 1000)


def _next(day: date, unit: str) -> date:
    if unit in ("day", "week"):
        return day + timedelta(days=7 if unit == "week" else 1)
    months = day.month + {"month": 1, "quarter": 3, "year": 12}[unit]
    return date(day.year + (months - 1) // 12, (months - 1) % 12 + 1, 1)


def _midnight(day: date, zone: tzinfo) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=zone)


# --- the text with values -----------------------------------------------------------------------------------------------------------


def literal(name: str, value: str) -> str:
    """The value in Spark's SQL."""
    return f"DATE '{value}'" if name.startswith(DAY) else f"TIMESTAMP_LTZ '{value}'"


def with_values(
    sql: MappedText, values: Mapping[str, str], columns: Iterable[str] = (), write: Callable[[str, str], str] = literal
) -> MappedText:
    """The text with these values in place of the clock. What has no value stays as it is.

    >>> from mvbuild.source import SourceFile
    >>> text = MappedText.of(SourceFile("q", "SELECT id FROM t WHERE d > current_date() - 7"))
    >>> with_values(text, {"current_date": "2026-01-31"}).text
    "SELECT id FROM t WHERE d > DATE '2026-01-31' - 7"
    """
    reads = clock_reads(sql.text, columns) if values else ()
    edits = [
        Edit(start=read.start, end=read.end, new=write(read.name, values[read.name]), origin=sql.span(read.start, read.end))
        for read in reads
        if read.name in values
    ]
    return edited(sql, edits) if edits else sql


def without_clock(sql: str, names: Iterable[str] | None = None, columns: Iterable[str] = ()) -> str:
    """The text with some value in place of the clock, to see what else it depends on. `names`: of these values only."""
    values = dict.fromkeys([read.name for read in clock_reads(sql, columns)] if names is None else names, "2000-01-01")
    return with_values(MappedText.of(SourceFile("sql", sql)), values, columns).text


def _spliced(sql: str, reads: Sequence[ClockRead], new: Callable[[ClockRead], str]) -> str:
    text = MappedText.of(SourceFile("sql", sql))
    edits = (Edit(start=r.start, end=r.end, new=new(r), origin=text.span(r.start, r.end)) for r in reads)
    return edited(text, edits).text
