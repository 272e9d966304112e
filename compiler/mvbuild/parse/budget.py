"""what a template does -> nothing, or TooMuch: the limits on its time, memory and output, see docs/decisions/011."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping, MappingView, Sized
from typing import Any

from jinja2.utils import Namespace

LONGEST_OUTPUT = 10_000_000
MOST_STEPS = 500_000
MOST_MADE = 300_000_000
LONGEST_SECONDS = 10.0
MOST_TAGS = 5_000
LONGEST_EXPRESSIONS = 200_000
_CLOSING = {"{{": "}}", "{%": "%}"}
MOST_HELD = 250_000
_DEEPEST_HELD = 100
_CONTAINERS = (list, tuple, set, frozenset, dict, MappingView, Namespace)


class TooMuch(Exception):
    """A template that computes, writes or stores more than is allowed."""


def check_template(text: str) -> None:
    """Refuse templates that would take Python's compiler too long, before Jinja reads them."""
    tags = expressions = end = 0
    while (start := text.find("{", end)) >= 0:
        close = _CLOSING.get(text[start : start + 2])
        found = text.find(close, start + 2) if close else start + 1
        end = found if found >= 0 else len(text)
        tags += close is not None
        expressions += end - start if close else 0
    if tags > MOST_TAGS or expressions > LONGEST_EXPRESSIONS:
        raise TooMuch(f"A template has more than {MOST_TAGS:,} tags, or {LONGEST_EXPRESSIONS:,} characters in them")


class Budget:
    """What one template may still use."""

    def __init__(self) -> None:
        self._steps = 0
        self._written = 0
        self._captured = 0
        self._made = 0
        self._deadline = time.thread_time() + LONGEST_SECONDS

    def step(self) -> None:
        """One call, operation or pass of a loop. The time is that of the processor, so a busy machine does not change the result."""
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise TooMuch(f"The template takes more than {MOST_STEPS:,} steps")
        if self._steps % 16 == 0 and time.thread_time() > self._deadline:
            raise TooMuch(f"The template runs for more than {LONGEST_SECONDS:.0f} seconds")

    def write(self, characters: int) -> None:
        self._written += characters
        if self._written > LONGEST_OUTPUT:
            raise TooMuch(f"The template writes more than {LONGEST_OUTPUT:,} characters")

    def capture(self, characters: int) -> None:
        """The output of expressions, including that in macros and set blocks."""
        self._captured += characters
        if self._captured > LONGEST_OUTPUT:
            raise TooMuch(f"The template writes more than {LONGEST_OUTPUT:,} characters")

    def made(self, value: Any) -> Any:
        """A value that was created. All values are counted, because it is unknown which of them the template keeps."""
        if isinstance(value, Iterator):
            return self._each(value)
        self.grow(sys.getsizeof(value))
        return value

    def grow(self, size: int) -> None:
        self._made += size
        if self._made > MOST_MADE:
            raise TooMuch(f"The template makes more than {MOST_MADE // 1_000_000} MB of values")

    def _each(self, values: Iterator[Any]) -> Iterator[Any]:
        for value in values:
            self.step()
            yield self.made(value)


def check_held(values: Iterable[Any]) -> int:
    """Count the values in these, and refuse too many: a list that contains another one twice, and so on for 50 lists, has 10^15 values when
    it is written."""
    level = [value for value in values if isinstance(value, _CONTAINERS)]
    held = depth = characters = 0
    while level:
        depth += 1
        held += sum(len(value) for value in level if isinstance(value, Sized))
        if held > MOST_HELD:
            raise TooMuch(f"A list or mapping holds more than {MOST_HELD:,} values")
        if depth > _DEEPEST_HELD:
            raise TooMuch("Lists or mappings are nested too deeply")
        inner = [one for value in level for one in _inner(value)]
        characters += sum(len(one) for one in inner if isinstance(one, str))
        if characters > LONGEST_OUTPUT:
            raise TooMuch(f"A list or mapping holds more than {LONGEST_OUTPUT:,} characters")
        level = [one for one in inner if isinstance(one, _CONTAINERS)]
    return held


def _inner(value: Any) -> Iterator[Any]:
    if isinstance(value, Namespace):
        yield from value._Namespace__attrs.values()
        return
    yield from value
    if isinstance(value, Mapping):
        yield from value.values()
