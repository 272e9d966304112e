"""SourceFile -> Comments: those of SQL (`--`, `/* */`), of Jinja (`{# #}`) or of YAML (`#`), with their places in the file itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

from mvbuild.dataclass import dataclass
from mvbuild.source import SourceFile, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """`body` is the text between its delimiters; `is_alone` if nothing else is on its lines."""

    span: Span
    body: Span
    lines: range
    is_alone: bool


def comments(file: SourceFile, *, is_yaml: bool) -> tuple[Comment, ...]:
    """In the order of the file."""
    found = _in_yaml(file) if is_yaml else _in_sql(file.text)
    return tuple(_comment(file, *place) for place in found)


def _comment(file: SourceFile, start: int, end: int, opening: int, closing: int) -> Comment:
    first, last = file.position(start)[0], file.position(max(start, end - 1))[0]
    before = file.text[file.line_starts[first - 1] : start]
    after = file.line(last)[end - file.line_starts[last - 1] :]
    return Comment(
        span=Span(file, start, end),
        body=Span(file, start + opening, end - closing),
        lines=range(first, last + 1),
        is_alone=not before.strip() and not after.strip(),
    )


# SQL and Jinja. The text is a template, so an SQL lexer cannot read it; it is enough to distinguish comments from strings.

_OPENING = re.compile(r"""--|/\*|\{#|\{\{|\{%|[rR]?'|[rR]?"|`""")
_JINJA_ENDS = {"{{": "}}", "{%": "%}", "{#": "#}"}


def _in_sql(text: str) -> Iterator[tuple[int, int, int, int]]:
    """(start, end, length of the opening delimiter, length of the closing delimiter)."""
    at = 0
    while match := _OPENING.search(text, at):
        sign, start = match[0], match.start()
        if sign == "--":
            end = _or_end(text.find("\n", start), text)
            yield start, end, 2, 0
        elif sign == "/*":
            end = _end_of_block(text, match.end())
            yield start, end, 2, 2 if text.endswith("*/", start + 2, end) else 0
        elif sign == "{#":
            end = _or_end(text.find("#}", match.end()), text, 2)
            yield start, end, 2, 2
        elif sign in _JINJA_ENDS:
            end = _end_of_tag(text, match)
        else:
            end = _end_of_string(text, match)
        at = max(end, match.end())


def _or_end(found: int, text: str, length: int = 0) -> int:
    return len(text) if found < 0 else found + length


def _end_of_block(text: str, at: int) -> int:
    depth = 1
    for match in re.compile(r"/\*|\*/").finditer(text, at):
        depth += 1 if match[0] == "/*" else -1
        if depth == 0:
            return match.end()
    return len(text)


def _end_of_tag(text: str, opening: re.Match[str]) -> int:
    """The offset after a Jinja tag; strings in it may contain anything."""
    closing = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|""" + re.escape(_JINJA_ENDS[opening[0]]), re.DOTALL)
    for match in closing.finditer(text, opening.end()):
        if match[0] == _JINJA_ENDS[opening[0]]:
            return match.end()
    return len(text)


def _end_of_string(text: str, opening: re.Match[str]) -> int:
    """The offset after a string or a quoted name of SQL. A tag inside does not end it, whatever quotes the tag has."""
    quote = opening[0][-1]
    is_raw = quote == "`" or len(opening[0]) > 1
    inner = re.compile((r"" if is_raw else r"\\.|") + r"\{\{|\{%|\{#|" + quote, re.DOTALL)
    at = opening.end()
    while match := inner.search(text, at):
        if match[0] == quote:
            return match.end()
        at = match.end() if match[0][0] == "\\" else _end_of_tag(text, match)
    return len(text)


# YAML

_HASH = re.compile(r"(?:^|(?<=[ \t]))#[^\n]*", re.MULTILINE)


def _in_yaml(file: SourceFile) -> Iterator[tuple[int, int, int, int]]:
    """A # inside a scalar is not a comment: PyYAML gives the places of scalars."""
    found = list(_HASH.finditer(file.text))
    if not found:
        return
    try:
        tokens = list(yaml.scan(file.text, Loader=yaml.SafeLoader))
    except yaml.YAMLError:
        return
    scalars = [(t.start_mark.index, t.end_mark.index) for t in tokens if isinstance(t, yaml.ScalarToken)]
    for match in found:
        if not any(start <= match.start() < end for start, end in scalars):
            yield match.start(), match.end(), 1, 0
