"""Seed -> SeedRows: the typed columns of a CSV file, or every value in it that does not fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from mvbuild.diagnostics import Diagnostic, ProjectError, did_you_mean, error
from mvbuild.project.csv_rows import CsvError, Record, records
from mvbuild.project.files import decode
from mvbuild.project.loaded import Seed
from mvbuild.project.seed_types import KNOWN_TYPES, STRING, SeedType, seed_type
from mvbuild.project.settings import SeedConfig, Setting
from mvbuild.source import SourceFile, Span

MOST_DIAGNOSTICS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedRows:
    """`types` are Iceberg's names; `columns` hold bool, int, float, Decimal, date, datetime, str, bytes and None."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    columns: tuple[tuple[Any, ...], ...]


def read(seed: Seed) -> SeedRows:
    """Raises ProjectError with the first 50 mistakes of the file and the number of the others."""
    file = _text(seed)
    report: list[Diagnostic] = []
    rows = _records(file, seed.config.delimiter, report)
    if not rows:
        raise ProjectError(
            report or [error("bad-seed", f"{seed.path} has no header", Span(file, 0, 0), help="Name the columns in its first line.")]
        )
    header, *body = rows
    names = tuple((value or "").strip() for value in header.values)
    report += _header_problems(file, header, names)
    report += _undeclared(seed, names)
    types = _types_of(seed.config, names)
    fitting = [row for row in body if len(row.values) == len(names)]
    report += (_wrong_length(file, row, len(names)) for row in body if len(row.values) != len(names))
    columns = _columns(file, fitting, body, names, types, report)
    if report:
        raise ProjectError(_shortened(report))
    return SeedRows(names=names, types=tuple(t.name for t in types), columns=columns)


def check(seeds: Iterable[Seed]) -> None:
    """Read every seed, for its mistakes alone. Raises one ProjectError with those of all."""
    diagnostics: list[Diagnostic] = []
    for seed in seeds:
        try:
            read(seed)
        except ProjectError as exc:
            diagnostics.extend(exc.diagnostics)
    if diagnostics:
        raise ProjectError(diagnostics)


def checksum(content: bytes, config: SeedConfig) -> str:
    """SHA-256 of a seed's bytes together with its declared types and its delimiter."""
    types = sorted((name, _canonical(setting)) for name, setting in config.column_types.items())
    return sha256(content + repr((types, config.delimiter)).encode()).hexdigest()


def type_problems(types: Mapping[str, Setting]) -> Iterator[Diagnostic]:
    """Declared types that no column of a seed can have."""
    for name, setting in types.items():
        if seed_type(str(setting.value)) is None:
            help = did_you_mean(str(setting.value).lower(), KNOWN_TYPES)
            yield error("wrong-type", f"The type of column '{name}' is none that a seed can have", setting.span, help=help)


def _canonical(setting: Setting) -> str:
    """Different names of one type are the same."""
    found = seed_type(str(setting.value))
    return found.name if found else str(setting.value)


def _text(seed: Seed) -> SourceFile:
    try:
        return decode(seed.path, seed.file.read_bytes())
    except OSError as exc:
        span = Span(SourceFile(seed.path, ""), 0, 0)
        raise ProjectError([error("unreadable-file", f"{seed.path} cannot be read: {exc.strerror or exc}", span)]) from exc


def _records(file: SourceFile, delimiter: str, report: list[Diagnostic]) -> list[Record]:
    rows: list[Record] = []
    try:
        rows.extend(records(file.text, delimiter))
    except CsvError as exc:
        help = 'A quote inside of a quoted field is written twice: "".'
        report.append(error("bad-seed", exc.message, Span(file, exc.start, exc.start + 1), help=help))
    return rows


def _header_problems(file: SourceFile, header: Record, names: Sequence[str]) -> Iterator[Diagnostic]:
    seen: set[str] = set()
    for i, name in enumerate(names):
        span = Span(file, *header.place(i))
        if not name:
            yield error("bad-seed", f"Column {i + 1} has no name", span, help="Name it in the first line.")
        elif name.lower() in seen:
            yield error("bad-seed", f"There are two columns '{name}'", span, help="Rename one of them.")
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
    help = "Quote a value that has the delimiter in it." if found > expected else "Write a delimiter for empty fields too; they are NULL."
    return error(
        "bad-seed", f"The row has {found} field{'s' * (found != 1)}, and the header {expected}", Span(file, start, row.end), help=help
    )


def _columns(
    file: SourceFile,
    rows: Sequence[Record],
    body: Sequence[Record],
    names: Sequence[str],
    types: Sequence[SeedType],
    report: list[Diagnostic],
) -> tuple[tuple[Any, ...], ...]:
    columns: list[tuple[Any, ...]] = []
    for i, (name, type_) in enumerate(zip(names, types, strict=True)):
        values = [row.values[i] for row in rows]
        if type_ is STRING:
            columns.append(tuple(values))
            continue
        parse = type_.parse
        try:
            columns.append(tuple([None if value is None else parse(value) for value in values]))
        except ValueError:
            columns.append(())
            report.extend(_bad_values(file, body, i, name, type_, len(names)))
    return tuple(columns)


def _bad_values(file: SourceFile, body: Sequence[Record], column: int, name: str, type_: SeedType, width: int) -> Iterator[Diagnostic]:
    for number, row in enumerate(body, 1):
        value = row.values[column] if len(row.values) == width else None
        if value is None:
            continue
        try:
            type_.parse(value)
        except ValueError as exc:
            shown = value if len(value) <= 40 else value[:37] + "..."
            message = f"Row {number}, column '{name}' ({type_.name}): '{shown}' {exc}"
            yield error("bad-seed", message, Span(file, *row.place(column)))


def _shortened(report: list[Diagnostic]) -> list[Diagnostic]:
    """In the order of the file, the first ones and a count of the rest."""
    report = sorted(report, key=lambda d: d.span.start if d.span and d.code == "bad-seed" else 0)
    more = len(report) - MOST_DIAGNOSTICS
    if more <= 0:
        return report
    return [*report[:MOST_DIAGNOSTICS], error("bad-seed", f"and {more:,} more mistakes in this file", report[MOST_DIAGNOSTICS].span)]
