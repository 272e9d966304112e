"""Template text -> the arguments of its config() calls, each with its place; and their removal from a Draft."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mvbuild.dataclass import dataclass
from mvbuild.dbt.drafts import Draft
from mvbuild.parse.template_text import Lexeme, TemplateText
from mvbuild.source import Span

_OPEN, _CLOSE = ("(", "[", "{"), (")", "]", "}")


@dataclass(frozen=True, slots=True)
class Argument:
    """`key` is empty for an argument without a name; `literal` is the text of a value that is one string."""

    key: str
    key_span: Span
    value: Span
    literal: str | None
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ConfigCall:
    """`whole` is the tag if there is nothing else in it."""

    arguments: tuple[Argument, ...]
    whole: Span | None
    span: Span


def config_calls(text: TemplateText) -> Iterator[ConfigCall]:
    for tag in text.tags:
        for i in range(len(tag) - 1):
            if tag[i].kind == "name" and tag[i].text == "config" and tag[i + 1].text == "(" and tag[i - 1].text not in (".", "macro"):
                end = _closing(tag, i + 1)
                inner = tag[i + 2 : end]
                if len(inner) > 2 and inner[0].text == "{" and _closing(inner, 0) in (len(inner) - 1, len(inner) - 2):
                    arguments = tuple(_arguments(text, inner[1 : _closing(inner, 0)], ":"))
                else:
                    arguments = tuple(_arguments(text, inner, "="))
                alone = tag[0].kind == "variable_begin" and i == 1 and end == len(tag) - 2
                whole = Span(text.file, tag[0].start, tag[-1].end) if alone else None
                yield ConfigCall(arguments, whole, Span(text.file, tag[i].start, tag[i].end))


def remove_arguments(draft: Draft, call: ConfigCall, removed: Iterable[Argument]) -> None:
    """Remove arguments with their commas; a call without arguments is removed as a whole."""
    gone = {argument.start for argument in removed}
    arguments = call.arguments
    if not gone:
        return
    if call.whole and all(a.start in gone for a in arguments):
        draft.remove(call.whole.start, call.whole.end)
        return
    i = 0
    while i < len(arguments):
        if arguments[i].start not in gone:
            i += 1
            continue
        stop = i
        while stop < len(arguments) and arguments[stop].start in gone:
            stop += 1
        if stop < len(arguments):
            draft.replace(arguments[i].start, arguments[stop].start, "")
        elif i:
            draft.replace(arguments[i - 1].end, arguments[-1].end, "")
        else:
            draft.replace(arguments[0].start, arguments[-1].end, "")
        i = stop


def _arguments(text: TemplateText, inner: Sequence[Lexeme], separator: str) -> Iterator[Argument]:
    begin = depth = 0
    for i in range(len(inner) + 1):
        if i < len(inner):
            depth += (inner[i].text in _OPEN) - (inner[i].text in _CLOSE)
            if depth or inner[i].text != ",":
                continue
        part = inner[begin:i]
        begin = i + 1
        if part:
            yield _argument(text, part, separator)


def _argument(text: TemplateText, part: Sequence[Lexeme], separator: str) -> Argument:
    named = len(part) > 2 and part[1].text == separator
    key = part[0].text.strip("'\"") if named else ""
    value = part[2:] if named else part
    literal = value[0].text[1:-1] if len(value) == 1 and value[0].kind == "string" and "\\" not in value[0].text else None
    return Argument(
        key=key,
        key_span=Span(text.file, part[0].start, part[0].end),
        value=Span(text.file, value[0].start, value[-1].end),
        literal=literal,
        start=part[0].start,
        end=part[-1].end,
    )


def _closing(tag: Sequence[Lexeme], begin: int) -> int:
    depth = 0
    for i in range(begin, len(tag)):
        depth += (tag[i].text in _OPEN) - (tag[i].text in _CLOSE)
        if depth == 0:
            return i
    return len(tag)
