"""text of a CSV file -> Records: fields with their places. An empty field is NULL; a quoted empty field is an empty text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mvbuild.dataclass import dataclass


class CsvError(Exception):
    """The rest of the file cannot be read; `start` is where."""

    def __init__(self, message: str, start: int) -> None:
        super().__init__(message)
        self.message, self.start = message, start


@dataclass(frozen=True, slots=True)
class Record:
    """One row. `ends` are the ends of the fields as written; a field begins one character after the previous one."""

    start: int
    values: tuple[str | None, ...]
    ends: tuple[int, ...] | None
    """None if no field is quoted: then the written fields are the values."""

    def place(self, column: int) -> tuple[int, int]:
        """Start and end of a field in the text, including its quotes."""
        if self.ends is not None:
            return (self.ends[column - 1] + 1 if column else self.start), self.ends[column]
        start = self.start + sum(len(v or "") + 1 for v in self.values[:column])
        return start, start + len(self.values[column] or "")

    @property
    def end(self) -> int:
        return self.place(len(self.values) - 1)[1]


def records(text: str, delimiter: str) -> Iterator[Record]:
    r"""The rows of a text with \n line ends, without empty lines. Raises CsvError."""
    quoted = re.compile(rf'"([^"]*(?:""[^"]*)*)"(?={re.escape(delimiter)}|\n|\Z)')
    at, length = 0, len(text)
    while at < length:
        end = text.find("\n", at)
        end = length if end < 0 else end
        line = text[at:end]
        if '"' in line:
            record = _quoted_record(text, at, delimiter, quoted)
            yield record
            at = record.end + 1
            continue
        if line:
            yield Record(at, tuple([value or None for value in line.split(delimiter)]), None)
        at = end + 1


def _quoted_record(text: str, start: int, delimiter: str, quoted: re.Pattern[str]) -> Record:
    values: list[str | None] = []
    ends: list[int] = []
    at = start
    while True:
        match = quoted.match(text, at)
        if match:
            values.append(match[1].replace('""', '"'))
            at = match.end()
        elif text.startswith('"', at):
            raise CsvError(_complaint(text, at), at)
        else:
            end = _field_end(text, at, delimiter)
            values.append(text[at:end] or None)
            at = end
        ends.append(at)
        if not text.startswith(delimiter, at):
            return Record(start, tuple(values), tuple(ends))
        at += 1


def _field_end(text: str, at: int, delimiter: str) -> int:
    newline = text.find("\n", at)
    newline = len(text) if newline < 0 else newline
    found = text.find(delimiter, at, newline)
    return newline if found < 0 else found


def _complaint(text: str, at: int) -> str:
    closing = re.compile(r'[^"]*(?:""[^"]*)*"').match(text, at + 1)
    return "Unexpected text after the closing quote of this field" if closing else "This quoted field is never closed"
