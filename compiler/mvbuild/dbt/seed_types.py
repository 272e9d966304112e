"""CSV of a dbt seed -> the Spark types that dbt gives its columns, the fields that it reads as NULL, or why they are not certain."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from decimal import Decimal

from mvbuild.dataclass import dataclass
from mvbuild.project.csv_rows import CsvError, Record, records
from mvbuild.source import SourceFile, Span

_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?\Z")
_NEARLY_NUMBER = re.compile(
    r"[-+(]?\s*[^\w\s]{0,3}[-+]?[0-9][0-9,._]*(?:[eE][-+]?[0-9]+)?\s*[^\w\s]{0,3}\)?\Z|[-+]?(?:nan|snan|inf|infinity)\Z", re.IGNORECASE
)
_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?(?:Z|[+-][0-9]{2}:[0-9]{2})?\Z")
_NEARLY_ISO = re.compile(r"[0-9W-]{7,10}T[0-9:.,+Z-]+\Z")
_NULLS = ("", "null")


@dataclass(frozen=True, slots=True)
class Unsure:
    """A value whose type dbt finds by rules that mvbuild does not implement."""

    column: str
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedColumns:
    types: dict[str, str]
    """The types of columns without a declared type."""
    nulls: tuple[Span, ...]
    """Fields to write as empty."""
    unsure: tuple[Unsure, ...]


def seed_columns(file: SourceFile, delimiter: str, declared: Collection[str]) -> SeedColumns:
    """`declared` are columns with a type, in lower case. Raises CsvError."""
    rows = list(records(file.text, delimiter))
    if not rows:
        raise CsvError("The file has no header", 0)
    header, *body = rows
    body = [row for row in body if len(row.values) == len(header.values)]
    types: dict[str, str] = {}
    unsure: list[Unsure] = []
    for i, name in enumerate((value or "").strip() for value in header.values):
        if name.lower() in declared:
            continue
        values = [row.values[i] or "" for row in body]
        doubtful = _doubtful(values)
        if doubtful is not None:
            unsure.append(Unsure(name, Span(file, *body[doubtful].place(i))))
        else:
            types[name] = _type([v.strip() for v in values if v.strip().lower() not in _NULLS])
    return SeedColumns(types=types, nulls=tuple(_nulls(file, body)), unsure=tuple(unsure))


def _type(values: Sequence[str]) -> str:
    """dbt tries number, date, timestamp, boolean and text in this order; a column without values is a number."""
    if all(_NUMBER.match(v) for v in values):
        return "double" if any(_has_decimals(v) for v in values) else "bigint"
    if all(_is_date(v, "%Y-%m-%d") for v in values):
        return "date"
    if all(_is_date(v, "%Y-%m-%d %H:%M:%S") for v in values) or all(_ISO.match(v) for v in values):
        return "timestamp"
    if all(v.lower() in ("true", "false") for v in values):
        return "boolean"
    return "string"


def _doubtful(values: Sequence[str]) -> int | None:
    """The first value whose type depends on a rule that is not implemented here. If another value is plain text, there is none."""
    present = [(i, v.strip()) for i, v in enumerate(values) if v.strip().lower() not in _NULLS]
    for plain, nearly in ((_NUMBER, _NEARLY_NUMBER), (_ISO, _NEARLY_ISO)):
        if all(plain.match(v) or nearly.match(v) for _, v in present):
            found = next((i for i, v in present if not plain.match(v)), None)
            if found is not None and _type([v for _, v in present]) == "string":
                return found
    return None


def _has_decimals(value: str) -> bool:
    exponent = Decimal(value).normalize().as_tuple().exponent
    return isinstance(exponent, int) and exponent < 0


def _is_date(value: str, form: str) -> bool:
    try:
        datetime.strptime(value, form)
    except ValueError:
        return False
    return True


def _nulls(file: SourceFile, body: Sequence[Record]) -> Iterator[Span]:
    for row in body:
        for i, value in enumerate(row.values):
            if value is not None and value.strip().lower() in _NULLS:
                yield Span(file, *row.place(i))
