"""Name of a Spark SQL type -> SeedType: the Iceberg type, and how a text of a CSV file becomes its value."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Context, Decimal
from functools import lru_cache, partial
from typing import Any

from mvbuild.dataclass import dataclass

_NAME = re.compile(r"\s*([a-z_]+)\s*(?:\(\s*([0-9]{1,9})\s*(?:,\s*([0-9]{1,9})\s*)?\))?\s*\Z", re.IGNORECASE)
_INTEGER = re.compile(r"[+-]?[0-9]{1,40}\Z")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]{1,6})?\Z", re.IGNORECASE)
_SPECIAL = {"nan": "nan", "inf": "inf", "infinity": "inf", "+inf": "inf", "+infinity": "inf", "-inf": "-inf", "-infinity": "-inf"}
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})\Z")
_ZONE = r"Z|UTC|[+-][0-9]{2}(?::?[0-9]{2})?"
_TIME = rf"([0-9]{{2}}):([0-9]{{2}})(?::([0-9]{{2}})(?:\.([0-9]{{1,6}}))?)?\s*({_ZONE})?"
_TIMESTAMP = re.compile(rf"([0-9]{{4}})-([0-9]{{2}})-([0-9]{{2}})(?:[T ]{_TIME})?\Z")
_TRUE, _FALSE = frozenset(("true", "t", "yes", "y", "1")), frozenset(("false", "f", "no", "n", "0"))
_EXACT = Context(prec=100)
_LARGEST_FLOAT = 3.4028234663852886e38


@dataclass(frozen=True, slots=True)
class SeedType:
    """`name` is the type in Iceberg's JSON; `parse` raises ValueError with a message that follows "the value ..."."""

    name: str
    parse: Callable[[str], Any]


@lru_cache(maxsize=1024)
def seed_type(text: str) -> SeedType | None:
    """None for a type that a seed's column cannot have."""
    match = _NAME.match(text)
    if match is None:
        return None
    name, arguments = match[1].lower(), tuple(int(a) for a in match.groups()[1:] if a is not None)
    if name in ("decimal", "numeric", "dec"):
        precision, scale = (*arguments, 0)[:2] if arguments else (10, 0)
        if not (1 <= precision <= 38 and scale <= precision):
            return None
        return SeedType(f"decimal({precision},{scale})", partial(_decimal, precision=precision, scale=scale))
    if name in ("varchar", "char", "character"):
        return SeedType("string", partial(_short, longest=arguments[0])) if len(arguments) == 1 and arguments[0] > 0 else None
    return None if arguments else _PLAIN.get(name)


def _boolean(text: str) -> bool:
    word = text.strip().lower()
    if word not in _TRUE and word not in _FALSE:
        raise ValueError("is not a boolean")
    return word in _TRUE


def _integer(text: str, *, bits: int) -> int:
    text = text.strip()
    if not _INTEGER.match(text):
        raise ValueError("is not an integer")
    value = int(text)
    if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise ValueError(f"is out of range: it needs more than {bits} bits")
    return value


def _double(text: str) -> float:
    text = text.strip()
    special = _SPECIAL.get(text.lower())
    if special:
        return float(special)
    if not _NUMBER.match(text):
        raise ValueError("is not a number")
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError("is out of range")
    return value


def _float(text: str) -> float:
    value = _double(text)
    if _LARGEST_FLOAT < abs(value) < float("inf"):
        raise ValueError("is out of range: it needs a double")
    return value


def _decimal(text: str, *, precision: int, scale: int) -> Decimal:
    text = text.strip()
    if not _NUMBER.match(text):
        raise ValueError("is not a number")
    value = Decimal(text)
    if value and value.adjusted() >= precision - scale:
        raise ValueError(f"is out of range: it has more than {precision - scale} digits before the point")
    exact = value.quantize(Decimal(1).scaleb(-scale), context=_EXACT)
    if exact != value:
        raise ValueError(f"has more than {scale} digits after the point")
    return exact


def _date(text: str) -> date:
    match = _DATE.match(text.strip())
    if match is None:
        raise ValueError("is not a date like 2026-01-31")
    try:
        return date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError as exc:
        raise ValueError("is not a valid date") from exc


def _timestamp(text: str) -> tuple[datetime, str | None]:
    match = _TIMESTAMP.match(text.strip())
    if match is None:
        raise ValueError("is not a timestamp like 2026-01-31 09:30:00")
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    micros = int((fraction or "0").ljust(6, "0"))
    try:
        return datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), micros), zone
    except ValueError as exc:
        raise ValueError("is not a valid timestamp") from exc


def _timestamp_ntz(text: str) -> datetime:
    value, zone = _timestamp(text)
    if zone:
        raise ValueError("has a time zone, which a timestamp_ntz cannot have")
    return value


def _timestamptz(text: str) -> datetime:
    value, zone = _timestamp(text)
    try:
        return (value - _offset(zone)).replace(tzinfo=timezone.utc)
    except OverflowError as exc:
        raise ValueError("is out of range") from exc


def _offset(zone: str | None) -> timedelta:
    if zone is None or zone in ("Z", "UTC"):
        return timedelta()
    hours, minutes = int(zone[1:3]), int(zone[3:].lstrip(":") or 0)
    if hours > 18 or minutes > 59:
        raise ValueError("has a time zone that does not exist")
    return timedelta(hours=hours, minutes=minutes) * (-1 if zone[0] == "-" else 1)


def _binary(text: str) -> bytes:
    digits = text.strip().removeprefix("0x").removeprefix("0X")
    if len(digits) % 2 or not re.fullmatch("[0-9a-fA-F]*", digits):
        raise ValueError("is not a binary value: write it in hexadecimal digits")
    return bytes.fromhex(digits)


def _short(text: str, *, longest: int) -> str:
    if len(text) > longest:
        raise ValueError(f"is longer than {longest} characters")
    return text


def _types(type_: SeedType, *names: str) -> dict[str, SeedType]:
    return dict.fromkeys(names, type_)


STRING = SeedType("string", str)
_PLAIN: dict[str, SeedType] = {
    **_types(SeedType("boolean", _boolean), "boolean", "bool"),
    **_types(SeedType("int", partial(_integer, bits=8)), "tinyint", "byte"),
    **_types(SeedType("int", partial(_integer, bits=16)), "smallint", "short"),
    **_types(SeedType("int", partial(_integer, bits=32)), "int", "integer"),
    **_types(SeedType("long", partial(_integer, bits=64)), "bigint", "long"),
    **_types(SeedType("float", _float), "float", "real"),
    **_types(SeedType("double", _double), "double"),
    **_types(SeedType("date", _date), "date"),
    **_types(SeedType("timestamptz", _timestamptz), "timestamp", "timestamptz", "timestamp_ltz"),
    **_types(SeedType("timestamp", _timestamp_ntz), "timestamp_ntz"),
    **_types(STRING, "string", "text"),
    **_types(SeedType("binary", _binary), "binary"),
}
KNOWN_TYPES = (*_PLAIN, "decimal(10,2)", "varchar(10)", "char(10)")
