"""Diagnostics -> text for people, JSON for programs."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from mvbuild.diagnostics.diagnostic import Diagnostic
from mvbuild.diagnostics.secret_names import SECRET_NAMES
from mvbuild.source import Span

_KEY = rf"(?i:{SECRET_NAMES})[\w.-]*"
_SECRET = re.compile(
    r"""://[^\s"'/@:]*:(?P<password>[^\s"']+)(?=@)"""
    r"""|(?i:https?)://(?P<user>[^\s"'/@:]+)(?=@)"""
    r"""|hooks\.slack\.com/services/(?P<path>[^\s"']+)"""
    r"""|[?&](?i:sig|token|key)=(?P<query>[^\s"'&]+)"""
    rf"""|{_KEY}["']?\s*(?:[:=]\s*"(?P<double>[^"]+)|[:=]\s*'(?P<single>(?:[^']|'')+)|=\s*(?P<argument>[^\s"',;&@}}]+)|:(?!:)\s*(?P<value>[^\s"'#][^#]*))"""
)
"""A password or a token in a URL, or the value of a key with a secret's name."""
_OF_VARIABLE = re.compile(r"\s*\{\{")
"""A value from a variable is not in the file."""
_WORD = re.compile(r"[^\s,@}]*")
_IN_MAPPING = re.compile(r",\s|\}")

MOST_SHOWN = 1_000
"""More would not be read, and would take seconds to write."""
_WIDEST = 160
"""A longer line is only shown around the place."""
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def to_text(diagnostics: Iterable[Diagnostic]) -> str:
    """Each diagnostic with its line and carets below the place, then a count of the errors."""
    diagnostics = tuple(diagnostics)
    errors = sum(d.severity == "error" for d in diagnostics)
    blocks = [_block(d) for d in diagnostics[:MOST_SHOWN]]
    if len(diagnostics) > MOST_SHOWN:
        blocks.append(f"... and {len(diagnostics) - MOST_SHOWN:,} more")
    if errors > 1:
        blocks.append(f"{errors} errors")
    return "\n\n".join(blocks)


def to_json(diagnostics: Iterable[Diagnostic]) -> str:
    """A JSON array of objects {code, severity, message, help, location?, notes}."""
    return json.dumps([as_object(d) for d in diagnostics], indent=2)


def _block(diagnostic: Diagnostic) -> str:
    lines = [f"{diagnostic.severity}[{diagnostic.code}]: {diagnostic.message}"]
    if diagnostic.span:
        lines += _excerpt(diagnostic.span)
    for note in diagnostic.notes:
        lines.append(f"  note: {note.message}")
        if note.span:
            lines += _excerpt(note.span)
    if diagnostic.help:
        lines.append(f"  help: {diagnostic.help}")
    return "\n".join(_visible(line) for line in lines)


def excerpt(span: Span) -> list[str]:
    """The line of a place, with carets below it."""
    return [_visible(line) for line in _excerpt(span)]


def _excerpt(span: Span) -> list[str]:
    number, column = span.position
    text = _shown(span.file.line(number))
    if not text.strip():
        return [f"  --> {span}"]
    width = max(1, min(span.end - span.start, len(text) - column + 1))
    text, before, width = _window(text, column - 1, width)
    pad = "".join("\t" if c == "\t" else " " * _cells(c) for c in text[:before])
    gutter = " " * len(str(number))
    carets = "^" * max(1, sum(map(_cells, text[before : before + width])), width if before + width > len(text) else 0)
    return [f"  --> {span}", f"  {number} | {text}", f"  {gutter} | {pad}{carets}"]


@lru_cache(maxsize=8)
def _shown(line: str) -> str:
    """A line as it may be shown. A long one can have thousands of errors."""
    return _visible(without_secrets(line, is_line=True))


def _cells(char: str) -> int:
    """How many terminal cells a character takes: two for Chinese and for emoji, none for combining accents."""
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


def without_secrets(text: str, *, is_line: bool = False) -> str:
    """Replace passwords and tokens with stars, of the same number, so that carets keep their place. `is_line`: of a configuration file,
    where a value without quotes may have several words."""
    return _SECRET.sub(lambda match: _hidden(match, is_line=is_line), text)


def _hidden(match: re.Match[str], *, is_line: bool) -> str:
    name = match.lastgroup or ""
    value = match[name]
    if _OF_VARIABLE.match(value):
        return match[0]
    if name == "value" and not is_line:
        value = _WORD.match(value)[0]  # type: ignore[index]
    elif name == "value" and "{" in match.string[: match.start()]:
        # In a mapping on one line the next key follows.
        value = _IN_MAPPING.split(value, maxsplit=1)[0]
    begin = match.start(name) - match.start()
    end = begin + len(value.rstrip())
    return match[0][:begin] + "*" * (end - begin) + match[0][end:]


def _window(text: str, before: int, width: int) -> tuple[str, int, int]:
    """The visible part of a line: the text, the start of the carets in it, and their number."""
    if len(text) <= _WIDEST:
        return text, before, width
    start = max(0, min(before - _WIDEST // 3, len(text) - _WIDEST))
    end = start + _WIDEST
    left, right = "..." if start else "", "..." if end < len(text) else ""
    return f"{left}{text[start:end]}{right}", before - start + len(left), min(width, end - before)


def _visible(line: str) -> str:
    """Control characters as symbols: a file must not move the cursor of the terminal that shows it, nor reverse its text."""
    return _CONTROL.sub(lambda match: chr(0x2400 + ord(match[0])) if match[0] < " " else "\ufffd", line)


def as_object(diagnostic: Diagnostic) -> dict[str, Any]:
    """A diagnostic as a JSON object."""
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "help": diagnostic.help,
        "location": location(diagnostic.span),
        "notes": [{"message": n.message, "location": location(n.span)} for n in diagnostic.notes],
    }


def location(span: Span | None) -> dict[str, Any] | None:
    """A place as a JSON object."""
    if span is None:
        return None
    (line, column), (end_line, end_column) = span.position, span.file.position(span.end)
    return {"file": span.file.path, "line": line, "column": column, "end_line": end_line, "end_column": end_column}
