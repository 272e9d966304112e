"""offsets in a text <-> lines and characters of the protocol, which counts code units of the negotiated encoding."""

from __future__ import annotations

from mvbuild.source import SourceFile, Span

Position = tuple[int, int]
"""(line, character), both counted from 0."""
_BYTES = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


def normal(text: str) -> str:
    """The text as mvbuild reads files: with the same lines and the same characters in them."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def offset_of(text: str, place: Position, encoding: str) -> int:
    """Positions after the end of a line or of the text become that end."""
    lines = text.split("\n")
    number, units = place
    if number >= len(lines):
        return len(text)
    start = sum(len(line) + 1 for line in lines[:number])
    codec, width = _BYTES[encoding]
    column = 0
    for character in lines[number]:
        units -= len(character.encode(codec, "surrogatepass")) // width
        if units < 0:
            break
        column += 1
    return start + column


def place_of(file: SourceFile, offset: int, encoding: str) -> Position:
    line, column = file.position(min(max(offset, 0), len(file.text)))
    codec, width = _BYTES[encoding]
    return line - 1, len(file.line(line)[: column - 1].encode(codec, "surrogatepass")) // width


def range_of(span: Span, encoding: str) -> tuple[Position, Position]:
    return place_of(span.file, span.start, encoding), place_of(span.file, max(span.start, span.end), encoding)
