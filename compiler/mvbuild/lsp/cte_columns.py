"""a SQL file that is being edited -> the names of the columns of its CTEs. With patterns, like the names in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from mvbuild.lsp.sql_text import NAME, Named, cte_heads, is_cte, tables

Known = Callable[[Named], Sequence[str]]
"""The columns of a table that is not one of the CTEs."""
_SKIPPED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_SELECT = re.compile(r"\bselect\b(?:\s+(?:distinct|all)\b)?", re.IGNORECASE)
_END = re.compile(r"\b(?:from|where|group|having|order|limit|union|except|minus|intersect|window)\b", re.IGNORECASE)
_STAR = re.compile(rf"(?:(?P<of>{NAME})\.)?\*\s*\Z")
_LAST = re.compile(rf"(?:\bas\s+|\.\s*|\A|[\s)\]])(?P<name>{NAME})\s*\Z", re.IGNORECASE)


def cte_columns(text: str, name: str, known: Known, inside: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """The columns of its first SELECT: those with a name, and what `*` expands to."""
    head = cte_heads(text).get(name.lower())
    if head is None or name.lower() in inside:
        return ()
    if head.columns:
        return head.columns
    body = text[head.start : _closing(text, head.start)]
    found: dict[str, None] = {}
    for item in _items(body):
        star, last = _STAR.search(item), _LAST.search(item)
        if star:
            found.update(dict.fromkeys(_behind_star(text, body, star["of"], known, inside | {name.lower()})))
        elif last:
            found[last["name"].strip("`")] = None
    return tuple(found)


def _behind_star(text: str, body: str, qualifier: str | None, known: Known, inside: frozenset[str]) -> Iterator[str]:
    wanted = qualifier.strip("`").lower() if qualifier else None
    for named in tables(body):
        alias = (named.alias or named.parts[-1]).lower()
        if wanted in (None, alias):
            is_own = is_cte(named, cte_heads(text))
            yield from cte_columns(text, named.parts[0], known, inside) if is_own else known(named)


def _closing(text: str, start: int) -> int:
    """The bracket that closes the one before `start`; the end of the text if it is not written yet."""
    depth = 1
    for at, char in _signs(text, start):
        depth += (char == "(") - (char == ")")
        if not depth:
            return at
    return len(text)


def _items(body: str) -> Iterator[str]:
    """The columns of the first SELECT, as written."""
    select = _SELECT.search(body)
    if select is None:
        return
    end = next((m.start() for m in _END.finditer(body, select.end()) if _depth(body, select.end(), m.start()) == 0), len(body))
    depth, start = 0, select.end()
    for at, char in _signs(body[:end], start):
        depth += (char in "([") - (char in ")]")
        if char == "," and not depth:
            yield body[start:at].strip()
            start = at + 1
    yield body[start:end].strip()


def _depth(text: str, start: int, end: int) -> int:
    return sum((char in "([") - (char in ")]") for _, char in _signs(text[:end], start))


def _signs(text: str, start: int) -> Iterator[tuple[int, str]]:
    """Brackets and commas outside strings, quoted names and templates."""
    at = start
    while at < len(text):
        skipped = _SKIPPED.match(text, at)
        if skipped:
            at = skipped.end()
            continue
        if text[at] in "()[],":
            yield at, text[at]
        at += 1
