"""template file -> Lexemes: the place of each word in a template's expressions, and the one at which a template runs or failed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from types import FrameType

from jinja2 import Environment, Template

from mvbuild.dataclass import dataclass
from mvbuild.source import SourceFile, Span

_OPEN = ("macro", "test", "data_test")
_CLOSE = ("endmacro", "endtest", "enddata_test")


@dataclass(frozen=True, slots=True)
class Lexeme:
    """A piece of a template as Jinja's lexer splits it: kind `name`, `string`, `data`, `variable_begin`..."""

    kind: str
    text: str
    start: int
    end: int
    line: int


@dataclass(frozen=True)
class TemplateText:
    """A file with its lexemes."""

    file: SourceFile
    lexemes: tuple[Lexeme, ...]

    @staticmethod
    def of(env: Environment, file: SourceFile) -> TemplateText:
        return TemplateText(file, tuple(_lexemes(env, file.text)))

    @cached_property
    def tags(self) -> tuple[tuple[Lexeme, ...], ...]:
        """The `{{ ... }}` and `{% ... %}` of the file."""
        tags: list[list[Lexeme]] = []
        inside = False
        for lexeme in self.lexemes:
            if lexeme.kind in ("variable_begin", "block_begin"):
                inside = True
                tags.append([])
            if inside:
                tags[-1].append(lexeme)
            if lexeme.kind in ("variable_end", "block_end"):
                inside = False
        return tuple(tuple(tag) for tag in tags)

    def word(self, line: int, matches: Callable[[Lexeme], bool]) -> Span | None:
        """The first matching lexeme of the tags on a line, at the line or below it."""
        found = [x for tag in self._tags_on(line) for x in tag if matches(x)]
        best = next((x for x in found if x.line >= line), found[0] if found else None)
        return Span(self.file, best.start, best.end) if best else None

    def anywhere(self, matches: Callable[[Lexeme], bool]) -> Span | None:
        return next((Span(self.file, x.start, x.end) for x in self.lexemes if matches(x)), None)

    def tag(self, line: int, name: str = "") -> Span:
        """The tag on a line that contains the name; without a name, the only tag there. Otherwise the line."""
        tags = [tag for tag in self._tags_on(line) if not name or any(x.kind == "name" and x.text == name for x in tag)]
        tags.sort(key=lambda tag: tag[0].line != line)
        if not tags or (len(tags) > 1 and not name):
            return self.file.line_span(line)
        return Span(self.file, tags[0][0].start, tags[0][-1].end)

    def keyword(self, line: int, function: str, name: str) -> tuple[Span, Span] | None:
        """The key and the value of `name=value` in the call of a function on a line."""
        for tag in self._tags_on(line):
            words = [x.text for x in tag]
            begin = words.index(function) if function in words else len(tag)
            for i in range(begin, len(tag) - 2):
                if tag[i].kind == "name" and words[i : i + 2] == [name, "="]:
                    end = _end_of_argument(tag, i + 2)
                    return Span(self.file, tag[i].start, tag[i].end), Span(self.file, tag[i + 2].start, tag[end - 1].end)
        return None

    def macro(self, line: int) -> str:
        """The name of the macro around a line; empty outside macros."""
        name = ""
        for tag in self.tags:
            words = [x.text for x in tag if x.kind == "name"][:2]
            if tag[0].line > line or (tag[0].line == line and bool(words) and words[0] in _OPEN and name):
                break
            if words[:1] and words[0] in _OPEN:
                name = words[-1]
            elif words[:1] and words[0] in _CLOSE and tag[-1].line < line:
                name = ""
        return name

    def _tags_on(self, line: int) -> list[tuple[Lexeme, ...]]:
        return [tag for tag in self.tags if tag[0].line <= line <= tag[-1].line]


@dataclass(frozen=True, slots=True)
class TemplateLine:
    """A line of a template that runs or has failed."""

    text: TemplateText
    line: int


class TemplateLines:
    """The templates of a run, to find the template of a Python frame."""

    def __init__(self) -> None:
        self._texts: dict[str, TemplateText] = {}

    def add(self, text: TemplateText) -> None:
        self._texts[text.file.path] = text

    def running(self) -> TemplateLine | None:
        """The place in the template that called the current function."""
        return next(self._running(sys._getframe(1)), None)

    def calls_now(self) -> tuple[Span, ...]:
        """The macro calls through which the template got to where it runs, the nearest one first."""
        return _calls(tuple(self._running(sys._getframe(1))))

    def failed(self, exc: BaseException) -> TemplateLine | None:
        """The innermost template line of a traceback."""
        return next(iter(self._failed(exc)), None)

    def calls(self, exc: BaseException) -> tuple[Span, ...]:
        """The macro calls through which a template got to where it failed, the nearest one first."""
        return _calls(self._failed(exc))

    def _running(self, frame: FrameType | None) -> Iterator[TemplateLine]:
        while frame is not None:
            place = self._of(frame, frame.f_lineno)
            if place:
                yield place
            frame = frame.f_back

    def _failed(self, exc: BaseException) -> tuple[TemplateLine, ...]:
        """The template lines of a traceback, the innermost one first."""
        found: list[TemplateLine] = []
        traceback = exc.__traceback__
        while traceback is not None:
            place = self._of(traceback.tb_frame, traceback.tb_lineno)
            found += [place] if place else []
            traceback = traceback.tb_next
        return tuple(reversed(found))

    def _of(self, frame: FrameType, line: int) -> TemplateLine | None:
        template = frame.f_globals.get("__jinja_template__")
        if not isinstance(template, Template) or template.name not in self._texts:
            return None
        return TemplateLine(self._texts[template.name], template.get_corresponding_lineno(line))


_MOST_CALLS = 3


def _calls(places: Sequence[TemplateLine]) -> tuple[Span, ...]:
    """For each of these lines except the innermost, the call of the macro that contains the previous one. If there are many, only those at
    both ends."""
    macros = [(place, place.text.macro(place.line)) for place in places]
    # A loop may have a frame of its own.
    left = ((outer, name) for (inner, name), (outer, around) in pairwise(macros) if name and (outer.text, around) != (inner.text, name))
    found = list(dict.fromkeys(outer.text.tag(outer.line, name) for outer, name in left))
    return tuple(found if len(found) <= _MOST_CALLS else [*found[: _MOST_CALLS - 1], found[-1]])


def _end_of_argument(tag: Sequence[Lexeme], begin: int) -> int:
    """The index after the last lexeme of an argument: at the comma or parenthesis that ends it."""
    depth = 0
    for i in range(begin, len(tag)):
        depth += tag[i].text in ("(", "[", "{")
        depth -= tag[i].text in (")", "]", "}")
        if depth < 0 or (depth == 0 and tag[i].text == ","):
            return i
    return len(tag)


def _lexemes(env: Environment, text: str) -> Iterator[Lexeme]:
    """Whitespace control makes the lexer drop spaces, so each piece is searched from where the last one ended."""
    at, line, counted = 0, 1, 0
    for _, kind, value in env.lex(text):
        at = text.index(value, at)
        line += text.count("\n", counted, at)
        counted = at
        if kind != "whitespace":
            yield Lexeme(kind, value, at, at + len(value), line)
        at += len(value)
