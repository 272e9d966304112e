"""template file -> MappedText without Jinja, for templates that only call ref(), source() and config() with literals.

None for every other template: the full path (render.py) defines what is valid, and reports errors. A test compares the two.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from keyword import iskeyword
from typing import Any

from mvbuild.parse.model import Asked, Rendered
from mvbuild.project.setting import Layer, Setting
from mvbuild.source import MappedText, Segment, SourceFile, SourceMap, Span

LONGEST = 1_000_000
MOST_TAGS = 1_000
"""Templates with more calls take the full path, which has limits (budget.py)."""
_OTHER = re.compile(r"\{[%#]|[\r\ufdd0]")
_OPEN = re.compile(r"\{\{[ \t]*(ref|source|config)\(\s*")
_CLOSE = re.compile(r"\s*\)\s*\}\}")
_COMMA = re.compile(r"\s*,\s*")
_STRING = re.compile(r"'([^'\\\r\n{}]*)'|\"([^\"\\\r\n{}]*)\"")
_KEY = re.compile(r"([A-Za-z]\w*)\s*=(?!=)\s*", re.ASCII)
_NUMBER = re.compile(r"(?:0|[1-9][0-9]{0,14})(?![\w.])")
_WORD = re.compile(r"(?:true|True|false|False|none|None)\b")
_WORDS = {"true": True, "True": True, "false": False, "False": False, "none": None, "None": None}
_NO_KEYS = frozenset(("self", "if", "and", "or", "not", "in", "is", "else", *_WORDS))
_NOTHING = object()


Resolve = Callable[[str, tuple[str, ...]], "str | None"]
"""`ref` or `source` and its arguments -> the placeholder in SQL; None for names that the project does not have."""


def render_plain(file: SourceFile, resolve: Resolve) -> Rendered | None:
    """The same text, map and layers as from Jinja."""
    text = file.text
    if len(text) > LONGEST or text.count("{{") > MOST_TAGS or _OTHER.search(text):
        return None
    clean: list[str] = []
    segments: list[Segment] = []
    layers: list[Layer] = []
    asked: list[Asked] = []
    configs: list[tuple[int, int]] = []
    at = written = 0

    def write(piece: str, start: int, end: int, verbatim: bool) -> None:
        nonlocal written
        if segments and segments[-1].offset == written:
            segments.pop()
        segments.append(Segment(written, Span(file, start, end), verbatim))
        clean.append(piece)
        written += len(piece)

    while (begin := text.find("{{", at)) >= 0:
        opening = _OPEN.match(text, begin)
        if opening is None:
            return None
        if begin > at:
            write(text[at:begin], at, begin, verbatim=True)
        found = _settings(file, opening.end()) if opening[1] == "config" else _names(text, opening.end())
        closing = _CLOSE.match(text, found[1]) if found else None
        if found is None or closing is None:
            return None
        at = closing.end()
        value: Any = found[0]
        piece: str | None = ""
        if opening[1] == "config":
            layers.append(value)
            configs.append((begin, at))
        else:
            piece = resolve(opening[1], value)
            asked.append((opening[1], value, piece))
        if piece is None:
            return None
        write(piece, begin, at, verbatim=False)
    if at < len(text):
        write(text[at:], at, len(text), verbatim=True)
    if any("\n" not in text[end:start] for (_, end), (start, _) in pairwise(configs)):
        return None  # Jinja reports lines without columns: two calls on one line have one place there
    return Rendered(text=MappedText("".join(clean), SourceMap(tuple(segments))), layers=tuple(layers), asked=tuple(dict.fromkeys(asked)))


def _names(text: str, at: int) -> tuple[tuple[str, ...], int] | None:
    """One or two strings, and where they end."""
    names: list[str] = []
    while (found := _STRING.match(text, at)) and len(names) < 2:
        names.append(_unquoted(found))
        at = found.end()
        comma = _COMMA.match(text, at)
        if comma is None:
            return tuple(names), at
        at = comma.end()
    return None


def _settings(file: SourceFile, at: int) -> tuple[Layer, int] | None:
    """Key -> its value, the place of that and the place of the key."""
    text = file.text
    settings: dict[str, Setting] = {}
    while key := _KEY.match(text, at):
        name = key[1]
        value, end = _literal(text, key.end())
        if value is _NOTHING or name in settings or name in _NO_KEYS or iskeyword(name):
            return None
        settings[name] = Setting(value, Span(file, key.end(), end), Span(file, key.start(), key.start() + len(name)))
        at = end
        comma = _COMMA.match(text, at)
        if comma is None:
            return settings, at
        at = comma.end()
    return None


def _literal(text: str, at: int) -> tuple[Any, int]:
    """A string, a number, a word or a list of these, and where it ends; _NOTHING for anything else."""
    if found := _STRING.match(text, at):
        return _unquoted(found), found.end()
    if found := _NUMBER.match(text, at):
        return int(found[0]), found.end()
    if found := _WORD.match(text, at):
        return _WORDS[found[0]], found.end()
    return _list(text, at + 1) if text.startswith("[", at) else (_NOTHING, at)


def _list(text: str, at: int) -> tuple[Any, int]:
    items: list[Any] = []
    at = _blank(text, at)
    while not text.startswith("[", at):
        value, at = _literal(text, at)
        if value is _NOTHING:
            break
        items.append(value)
        at = _blank(text, at)
        if text.startswith("]", at):
            return items, at + 1
        comma = _COMMA.match(text, at)
        if comma is None:
            break
        at = comma.end()
    return _NOTHING, at


def _blank(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _unquoted(found: re.Match[str]) -> str:
    return found[1] if found[1] is not None else found[2]
