"""Seed -> SeedRows: the typed columns of a CSV file, or every value in it that does not fit."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from itertools import islice
from typing import Any

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, ProjectError, did_you_mean, error
from mvbuild.project.csv_rows import CsvError, Record, records
from mvbuild.project.files import LARGEST_SEED, decode, read_bytes
from mvbuild.project.loaded import Seed
from mvbuild.project.seed_types import KNOWN_TYPES, STRING, SeedType, seed_type
from mvbuild.project.setting import Setting
from mvbuild.project.settings import SeedConfig
from mvbuild.source import SourceFile, Span

MOST_DIAGNOSTICS = 50
MOST_VALUES = 5_000_000
MOST_COLUMNS = 10_000
_INSTEAD = "Load it into a table, and read that table as a source."


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedRows:
    """`types` are Iceberg's names; `columns` contain bool, int, float, Decimal, date, datetime, str, bytes and None."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    columns: tuple[tuple[Any, ...], ...]


def read(seed: Seed) -> SeedRows:
    """Raises ProjectError with the first 50 errors of the file and the number of the others."""
    file = _text(seed)
    header = _header(file, seed)
    names = tuple((value or "").strip() for value in header.values)
    types = _types_of(seed.config, names)
    report = [*_header_problems(file, header, names), *_undeclared(seed, names)]
    columns = _columns(file.text, seed.config.delimiter, types)
    if columns is None:
        report += _shortened(_mistakes(file, seed.config.delimiter, names, types), MOST_DIAGNOSTICS - len(report))
    if report or columns is None:
        raise ProjectError(report)
    return SeedRows(names=names, types=tuple(t.name for t in types), columns=columns)


def seed_problems(seeds: Iterable[Seed]) -> Iterator[Diagnostic]:
    """Read every seed only to find errors."""
    for seed in seeds:
        try:
            read(seed)
        except ProjectError as exc:
            yield from exc.diagnostics


def checksum(content: bytes, config: SeedConfig) -> str:
    """SHA-256 of a seed's text together with its declared types and its delimiter. Git may write other line ends on another machine, and an
    editor a byte order mark."""
    content = content.removeprefix(BOM_UTF8).replace(b"\r\n", b"\n")
    types = sorted((name, _canonical(setting)) for name, setting in config.column_types.items())
    return sha256(content + repr((types, config.delimiter)).encode()).hexdigest()


def type_problems(types: Mapping[str, Setting]) -> Iterator[Diagnostic]:
    """Declared types that no column of a seed can have."""
    for name, setting in types.items():
        if seed_type(str(setting.value)) is None:
            help = did_you_mean(str(setting.value).lower(), KNOWN_TYPES)
            yield error("wrong-type", f"The type of column '{name}' is not supported in seeds", setting.span, help=help)


def _canonical(setting: Setting) -> str:
    """Different names of one type become the same."""
    found = seed_type(str(setting.value))
    return found.name if found else str(setting.value)


def _text(seed: Seed) -> SourceFile:
    return decode(seed.path, read_bytes(seed.file, seed.path, LARGEST_SEED))


def _header(file: SourceFile, seed: Seed) -> Record:
    text, delimiter = file.text, seed.config.delimiter
    if text.count(delimiter) + text.count("\n") > MOST_VALUES:
        raise ProjectError([error("file-too-large", f"{seed.path} has more than {MOST_VALUES:,} values", file.line_span(1), help=_INSTEAD)])
    try:
        header = next(records(text, delimiter), None)
    except CsvError as exc:
        raise ProjectError([_broken(file, exc)]) from exc
    if header is None:
        raise ProjectError([error("bad-seed", f"{seed.path} has no header", Span(file, 0, 0), help="Name the columns in the first line.")])
    if len(header.values) > MOST_COLUMNS:
        message = f"{seed.path} has more than {MOST_COLUMNS:,} columns"
        raise ProjectError([error("file-too-large", message, file.line_span(1), help=_INSTEAD)])
    return header


def _columns(text: str, delimiter: str, types: Sequence[SeedType]) -> tuple[tuple[Any, ...], ...] | None:
    """None if a row has an error. Rows are not kept, because a large file has more of them than fit into memory."""
    columns: list[list[Any]] = [[] for _ in types]
    found = records(text, delimiter)
    next(found)
    try:
        for row in found:
            if len(row.values) != len(types):
                return None
            for column, value in zip(columns, row.values, strict=True):
                column.append(value)
        for at, type_ in enumerate(types):
            if type_ is not STRING:
                parse = type_.parse
                columns[at] = [None if value is None else parse(value) for value in columns[at]]
    except (CsvError, ValueError):
        return None
    return tuple(map(tuple, columns))


def _header_problems(file: SourceFile, header: Record, names: Sequence[str]) -> Iterator[Diagnostic]:
    seen: set[str] = set()
    for i, name in enumerate(names):
        span = Span(file, *header.place(i))
        if not name:
            yield error("bad-seed", f"Column {i + 1} has no name", span, help="Name it in the first line.")
        elif name.lower() in seen:
            yield error("bad-seed", f"Duplicate column '{name}'", span, help="Rename one of them.")
        seen.add(name.lower())


def _undeclared(seed: Seed, names: Sequence[str]) -> Iterator[Diagnostic]:
    known = {name.lower() for name in names}
    declared = {name: setting.span for name, setting in seed.config.column_types.items()}
    declared |= {column.name: column.span for column in seed.properties.columns}
    declared |= {name: setting.key or setting.span for name, setting in seed.config.column_types.items() if setting.key}
    for name, span in declared.items():
        if name.lower() not in known:
            yield error("bad-seed", f"{seed.path} has no column '{name}'", span, help=did_you_mean(name, names))


def _types_of(config: SeedConfig, names: Sequence[str]) -> tuple[SeedType, ...]:
    declared = {name.lower(): seed_type(str(setting.value)) for name, setting in config.column_types.items()}
    return tuple(declared.get(name.lower()) or STRING for name in names)


def _wrong_length(file: SourceFile, row: Record, expected: int) -> Diagnostic:
    found = len(row.values)
    start = row.place(expected)[0] if found > expected else row.start
    help = "Quote a value that contains the delimiter." if found > expected else "Write a delimiter for empty fields too; they are NULL."
    return error(
        "bad-seed", f"The row has {found} field{'s' * (found != 1)}, and the header has {expected}", Span(file, start, row.end), help=help
    )


def _mistakes(file: SourceFile, delimiter: str, names: Sequence[str], types: Sequence[SeedType]) -> Iterator[Callable[[], Diagnostic]]:
    """Functions that make the diagnostics of the rows' errors: a file may have millions."""
    found = records(file.text, delimiter)
    next(found)
    typed = [(at, type_) for at, type_ in enumerate(types) if type_ is not STRING]
    try:
        for number, row in enumerate(found, 1):
            if len(row.values) != len(names):
                yield partial(_wrong_length, file, row, len(names))
                continue
            for at, type_ in typed:
                value = row.values[at]
                try:
                    _ = value is None or type_.parse(value)
                except ValueError as exc:
                    yield partial(_bad_value, file, row, at, f"Row {number}, column '{names[at]}' ({type_.name})", str(exc))
    except CsvError as exc:
        yield partial(_broken, file, exc)


def _bad_value(file: SourceFile, row: Record, at: int, where: str, wrong: str) -> Diagnostic:
    value = row.values[at] or ""
    shown = value if len(value) <= 40 else value[:37] + "..."
    return error("bad-seed", f"{where}: '{shown}' {wrong}", Span(file, *row.place(at)))


def _broken(file: SourceFile, exc: CsvError) -> Diagnostic:
    help = 'Double a quote inside a quoted field: "".'
    return error("bad-seed", exc.message, Span(file, exc.start, exc.start + 1), help=help)


def _shortened(mistakes: Iterator[Callable[[], Diagnostic]], most: int) -> list[Diagnostic]:
    """The first ones, and a count of the rest."""
    report = [make() for make in islice(mistakes, max(most, 1))]
    first = next(mistakes, None)
    if first is not None:
        more = 1 + sum(1 for _ in mistakes)
        report.append(error("bad-seed", f"and {more:,} more errors in this file", first().span))
    return report
