"""text -> SourceFile, Span, SourceMap: the position of a text in the user's files."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property

from mvbuild.dataclass import dataclass

_LINE_END = re.compile("\n")


@dataclass(frozen=True, eq=False)
class SourceFile:
    """A file that the user wrote. `path` is relative to the project directory, with forward slashes."""

    path: str
    text: str

    @cached_property
    def line_starts(self) -> tuple[int, ...]:
        return (0, *(found.end() for found in _LINE_END.finditer(self.text)))

    def position(self, offset: int) -> tuple[int, int]:
        """Offset -> (line, column), both counted from 1."""
        line = bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of a line without its end; empty after the end of the file."""
        if not 1 <= number <= len(self.line_starts):
            return ""
        start = self.line_starts[number - 1]
        end = self.text.find("\n", start)
        return self.text[start : end if end >= 0 else len(self.text)]

    def line_span(self, number: int) -> Span:
        """The span of a line without its indentation, for errors without a column."""
        start = 0 if number <= 1 else self.line_starts[min(number, len(self.line_starts)) - 1]
        end = self.text.find("\n", start)
        text = self.text[start : end if end >= 0 else None]
        start += len(text) - len(text.lstrip())
        return Span(self, start, start + len(text.strip()))


@dataclass(frozen=True, slots=True)
class Span:
    """Characters [start, end) of a file."""

    file: SourceFile
    start: int
    end: int

    @property
    def position(self) -> tuple[int, int]:
        return self.file.position(self.start)

    @property
    def text(self) -> str:
        return self.file.text[self.start : self.end]

    def __str__(self) -> str:
        line, column = self.position
        return f"{self.file.path}:{line}:{column}"


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of derived text that starts at `offset` and came from `origin`.

    `verbatim` runs were copied character by character; others (the value of a template expression) map to their origin as a whole.
    """

    offset: int
    origin: Span
    verbatim: bool


@dataclass(frozen=True, slots=True)
class SourceMap:
    """Offsets in a derived text -> Spans in the files that it came from. Segments are in ascending order and cover the text."""

    segments: tuple[Segment, ...]

    def span(self, start: int, end: int) -> Span:
        """The span where [start, end) of the derived text was written. A range over several segments maps to the first one."""
        index = bisect_right(self.segments, start, key=lambda s: s.offset) - 1
        segment = self.segments[max(index, 0)]
        if not segment.verbatim:
            return segment.origin
        begin = min(segment.origin.start + max(start - segment.offset, 0), segment.origin.end)
        return Span(segment.origin.file, begin, min(begin + max(end - start, 0), max(segment.origin.end, begin)))


@dataclass(frozen=True, slots=True)
class MappedText:
    """A text derived from the user's files, with the map back to them."""

    text: str
    map: SourceMap

    def span(self, start: int, end: int) -> Span:
        return self.map.span(start, end)

    def last(self, word: str, within: SourceFile) -> Span | None:
        """Where a word is written last in one of the files, as the alias of a column often is."""
        found = [self.span(*match.span()) for match in re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", self.text)]
        return next((span for span in reversed(found) if span.file.path == within.path), None)

    def given(self, offset: int) -> str | None:
        """The whole output of a template expression, if the offset is inside such output."""
        segments = self.map.segments
        index = max(bisect_right(segments, offset, key=lambda s: s.offset) - 1, 0)
        if segments[index].verbatim:
            return None
        end = segments[index + 1].offset if index + 1 < len(segments) else len(self.text)
        return self.text[segments[index].offset : end]

    @staticmethod
    def of(file: SourceFile) -> MappedText:
        """The file as its own source."""
        return MappedText(file.text, SourceMap((Segment(0, Span(file, 0, len(file.text)), verbatim=True),)))
