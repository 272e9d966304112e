"""a SQL file that is being edited -> the names at a place in it. With patterns, because text that is being typed is rarely a query."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from typing import Literal

from mvbuild.dataclass import dataclass

NAME = r"(?:`[^`\n]+`|[^\W\d]\w*)"
_DOTTED = rf"{NAME}(?:\.{NAME})*"
_CALL = (
    r"""(?P<call>ref|source)\(\s*['"](?P<first>[^'"\n]*)['"](?:\s*,\s*['"](?P<second>[^'"\n]*)['"])?"""
    r"""(?:\s*,\s*(?:v|version)\s*=\s*['"]?(?P<version>[\w.-]+)['"]?)?\s*\)"""
)
_NO_ALIAS = (
    "on|using|where|group|order|sort|cluster|distribute|having|qualify|window|limit|offset|union|except|minus|intersect|join|inner|left|right|"
    "full|cross|natural|semi|anti|lateral|pivot|unpivot|tablesample|version|timestamp|for|as|select|values|when|then|and|or|not"
)
_TABLE = re.compile(
    rf"\s*(?:\{{\{{-?\s*{_CALL}\s*-?\}}\}}|(?P<name>{_DOTTED}))(?:\s+(?:as\s+)?(?!(?:{_NO_ALIAS})\b)(?P<alias>{NAME}))?", re.IGNORECASE
)
_FROM = re.compile(r"\b(?:from|join)\b", re.IGNORECASE)
_COMMA = re.compile(r"\s*,")
_COMMENT = re.compile(r"--[^\n]*|/\*.*?(?:\*/|\Z)|\{#.*?(?:#\}|\Z)", re.DOTALL)
_STRING = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|`[^`\n]*`|(?P<string>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")", re.DOTALL)
_CALLS = re.compile(_CALL)
_CTE = re.compile(rf"(?:\bwith\s+(?:recursive\s+)?|,\s*)(?P<name>{NAME})\s*(?:\((?P<columns>[^()]*)\)\s*)?as\s*\(", re.IGNORECASE)
_MACRO = re.compile(r"\{%[-+]?\s*macro\s+(?P<name>\w+)\s*(?P<arguments>\([^%]*\))?")
_WORDS = re.compile(_DOTTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A name in a text, with its kind by its form: the argument of ref() or source(), a macro that is called, or a dotted name."""

    kind: Literal["ref", "source", "macro", "name"]
    parts: tuple[str, ...]
    start: int
    end: int
    alias: str | None = None
    version: str | None = None
    """The `v=` of ref()."""


def without_comments(text: str) -> str:
    """The text with spaces instead of comments."""
    return _COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def in_comment(text: str, offset: int) -> bool:
    """Whether what is typed at a place becomes a part of a comment."""
    found = (match for match in _COMMENT.finditer(text) if match.start() < offset <= match.end())
    return any(offset < match.end() or match[0].startswith("--") or not match[0].endswith(("*/", "#}")) for match in found)


def without_strings(text: str) -> str:
    """The text with spaces instead of the content of strings; templates remain."""
    return _STRING.sub(lambda m: m[0] if m["string"] is None else m[0][0] + re.sub(r"[^\n]", " ", m[0][1:-1]) + m[0][-1], text)


def named_at(text: str, offset: int) -> Named | None:
    """The name at the cursor, or directly before it."""
    plain = without_comments(text)
    for match in _CALLS.finditer(plain):
        if match.start() <= offset <= match.end():
            return _of_call(match)
    for match in _WORDS.finditer(plain):
        if match.start() <= offset <= match.end():
            is_call = in_template(plain, offset) and plain[match.end() : match.end() + 1] == "("
            parts = _parts(match[0])
            return Named(kind="macro" if is_call else "name", parts=parts, start=match.start(), end=match.end())
    return None


def tables(text: str) -> Iterator[Named]:
    """The tables of FROM and JOIN, anywhere in the text, with their aliases."""
    plain = without_comments(text)
    for keyword in _FROM.finditer(plain):
        match = _TABLE.match(plain, keyword.end())
        while match:
            alias = match["alias"].strip("`") if match["alias"] else None
            if match["call"]:
                yield _of_call(match, alias)
            else:
                yield Named(kind="name", parts=_parts(match["name"]), start=match.start("name"), end=match.end("name"), alias=alias)
            comma = _COMMA.match(plain, match.end())
            match = _TABLE.match(plain, comma.end()) if comma else None


def calls(text: str) -> Iterator[Named]:
    """ref() and source(), anywhere in the text."""
    return (_of_call(match) for match in _CALLS.finditer(without_comments(text)))


def last_part(text: str, named: Named) -> tuple[int, int]:
    """Where the last part of a name is: without its catalog and namespace, and without quotes."""
    if named.kind in ("ref", "source"):
        return named.end - 1 - len(named.parts[-1]), named.end - 1
    *_, last = re.finditer(NAME, text[named.start : named.end])
    quoted = last[0].startswith("`")
    return named.start + last.start() + quoted, named.start + last.end() - quoted


def qualifiers(text: str, name: str) -> Iterator[tuple[int, int]]:
    """Where a name qualifies a column, as in `name.column`; not where it is a namespace in FROM or JOIN, nor in templates."""
    plain = without_strings(without_comments(text))
    of_tables = {named.start for named in tables(text)}
    for match in _WORDS.finditer(plain):
        first = re.match(NAME, match[0])
        is_qualified = first is not None and first.end() < len(match[0]) and first[0].strip("`").lower() == name.lower()
        if first is not None and is_qualified and match.start() not in of_tables and not in_template(plain, match.start()):
            quoted = first[0].startswith("`")
            yield match.start() + quoted, match.start() + first.end() - quoted


@dataclass(frozen=True, slots=True, kw_only=True)
class CteHead:
    """`name (a, b) AS (`."""

    at: int
    """The offset of its name."""
    columns: tuple[str, ...]
    start: int
    """The offset after the bracket that opens its query."""


def cte_heads(text: str) -> dict[str, CteHead]:
    """Name in lower case -> where it is defined; the last of several."""
    plain = without_comments(text)
    found = _CTE.finditer(plain) if "with" in plain.lower() else ()
    return {
        m["name"].strip("`").lower(): CteHead(at=m.start("name"), columns=tuple(re.findall(NAME, m["columns"] or "")), start=m.end())
        for m in found
    }


def is_cte(named: Named, known: Container[str]) -> bool:
    return named.kind == "name" and len(named.parts) == 1 and named.parts[0].lower() in known


def macros(text: str) -> dict[str, tuple[int, str]]:
    """Name -> where it is defined, and its arguments as written."""
    return {m["name"]: (m.start("name"), " ".join((m["arguments"] or "()").split())) for m in _MACRO.finditer(text)}


def in_template(text: str, offset: int) -> bool:
    """Whether a place is within {{ }} or {% %}."""
    opened = max(text.rfind("{{", 0, offset), text.rfind("{%", 0, offset))
    return opened > max(text.rfind("}}", 0, offset), text.rfind("%}", 0, offset))


def _of_call(match: re.Match[str], alias: str | None = None) -> Named:
    parts = (match["first"],) if match["second"] is None else (match["first"], match["second"])
    kind: Literal["ref", "source"] = "source" if match["call"].lower() == "source" else "ref"
    if kind == "ref":
        parts = parts[-1:]
    end = match.end("second" if match["second"] else "first") + 1
    return Named(kind=kind, parts=parts, start=match.start("call"), end=end, alias=alias, version=match["version"])


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip("`") for part in re.findall(NAME, dotted))
