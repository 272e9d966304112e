"""() -> the Jinja environment that models are rendered in: no files, no Python internals, bounded work."""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sized
from typing import Any

from jinja2 import StrictUndefined, Undefined, pass_context
from jinja2.runtime import Context, Macro
from jinja2.sandbox import SandboxedEnvironment

LONGEST_OUTPUT = 10_000_000
MOST_STEPS = 500_000
LONGEST_SECONDS = 20.0
_LARGEST_COUNT = 1_000_000
_LARGEST_BITS = 100_000

COUNTED, JOINED = "mvbuild_counted", "mvbuild_joined"
"""Filters that marking.py puts around the sequences of loops and around `~`."""


class TooMuch(Exception):
    """A template that writes too much or runs too long."""


class Returned(Exception):
    """`{% do return(value) %}` inside a macro."""

    def __init__(self, value: object) -> None:
        super().__init__("return() outside of a macro")
        self.value = value


class Budget:
    """What one template may still use up."""

    def __init__(self) -> None:
        self.steps = 0
        self.written = 0
        self.captured = 0
        self.deadline = time.monotonic() + LONGEST_SECONDS

    def step(self) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise TooMuch(f"The template takes more than {MOST_STEPS:,} steps")
        if self.steps % 100 == 0 and time.monotonic() > self.deadline:
            raise TooMuch(f"The template runs for more than {LONGEST_SECONDS:.0f} seconds")

    def write(self, characters: int) -> None:
        self.written += characters
        if self.written > LONGEST_OUTPUT:
            raise TooMuch(f"The template writes more than {LONGEST_OUTPUT:,} characters")

    def capture(self, characters: int) -> None:
        """What expressions give, inside macros and set blocks too."""
        self.captured += characters
        if self.captured > LONGEST_OUTPUT:
            raise TooMuch(f"The template writes more than {LONGEST_OUTPUT:,} characters")


class Sandbox(SandboxedEnvironment):
    """Jinja's own sandbox, with a budget per template.

    A template may change the lists and mappings that it has: what it gets from outside is a copy (template_names.py), and macro files
    that keep values of their own are run anew for each template (render.py).
    """

    intercepted_binops = frozenset(("+", "*", "**", "%"))

    def __init__(self) -> None:
        super().__init__(
            undefined=StrictUndefined,
            keep_trailing_newline=True,
            optimized=False,
            finalize=self._written,
            extensions=("jinja2.ext.do", "jinja2.ext.loopcontrols"),
            cache_size=0,
        )
        self.budget = Budget()
        for name in ("lipsum", "cycler", "joiner"):
            del self.globals[name]
        del self.filters["random"]
        for name, function in list(self.filters.items()):
            self.filters[name] = _bounded(function)
        self.filters[COUNTED] = self._counted
        self.filters[JOINED] = self._joined

    def call(self, context: Context, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        self.budget.step()
        if isinstance(function, Macro):
            try:
                return super().call(context, function, *args, **kwargs)
            except Returned as returned:
                return returned.value
        owner = getattr(function, "__self__", None)
        if isinstance(owner, (str, bytes)):
            _check_text_method(owner, function.__name__, (*args, *kwargs.values()))
        elif isinstance(owner, (list, dict, set)):
            _check_growth(owner, args)
        return super().call(context, function, *args, **kwargs)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        wrapped = super().wrap_str_format(value)
        if wrapped is None:
            return None

        @functools.wraps(wrapped)
        def bounded(*args: Any, **kwargs: Any) -> str:
            values = [v for a in args if isinstance(a, dict) for v in a.values()]
            _check_widths(str(value.__self__), (*args, *kwargs.values(), *values))
            return wrapped(*args, **kwargs)

        return bounded

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        self.budget.step()
        if _size_of(operator, left, right) > LONGEST_OUTPUT:
            raise TooMuch(f"The result of '{operator}' is too large")
        return super().call_binop(context, operator, left, right)

    @pass_context
    def _written(self, context: Context, value: Any) -> str:  # noqa: ARG002  (keeps constants from being folded)
        text = str(value)
        self.budget.capture(len(text))
        return text

    def _counted(self, values: Iterable[Any]) -> Iterator[Any]:
        for value in values:
            self.budget.step()
            yield value

    def _joined(self, values: Iterable[Any]) -> str:
        texts = [str(value) for value in values]
        if sum(map(len, texts)) > LONGEST_OUTPUT:
            raise TooMuch("The result of '~' is too large")
        return "".join(texts)


def _bounded(function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that takes no huge width or count."""

    @functools.wraps(function)
    def bounded(*args: Any, **kwargs: Any) -> Any:
        _check_counts((*args[1:], *kwargs.values()))
        return function(*args, **kwargs)

    return bounded


def _check_text_method(text: str | bytes, name: str, arguments: tuple[Any, ...]) -> None:
    _check_counts(arguments)
    lengths = [len(a) for a in arguments if isinstance(a, (str, list, tuple))]
    if name in ("replace", "join", "translate") and (len(text) + 1) * max(lengths, default=0) > LONGEST_OUTPUT:
        raise TooMuch(f"The result of {name}() is too large")


def _check_growth(collection: Collection[Any], arguments: tuple[Any, ...]) -> None:
    if len(collection) + sum(len(a) for a in arguments if isinstance(a, Sized)) > _LARGEST_COUNT:
        raise TooMuch("A list or mapping grows too large")


def _check_widths(text: str, arguments: tuple[Any, ...]) -> None:
    """Widths as digits, or as arguments of their own: '{:{}}'."""
    if re.search(r"\d{6,}", text):
        raise TooMuch("A width in a format is too large")
    if re.search(r":[^{}]*\{", text):
        _check_counts(arguments)


def _check_counts(arguments: tuple[Any, ...]) -> None:
    if any(isinstance(argument, int) and abs(argument) > _LARGEST_COUNT for argument in arguments):
        raise TooMuch("A width or count is too large")


def _size_of(operator: str, left: Any, right: Any) -> int:
    """About how many characters or items an operation makes, 0 where that cannot be many."""
    if isinstance(left, Undefined) or isinstance(right, Undefined):
        return 0
    if operator == "+":
        return len(left) + len(right) if isinstance(left, (str, list, tuple)) and isinstance(right, (str, list, tuple)) else 0
    if operator == "%":
        if isinstance(left, str):
            arguments = right if isinstance(right, tuple) else (right,)
            _check_widths(left, arguments)
            if "*" in left:
                _check_counts(arguments)
        return 0
    if isinstance(left, int) and isinstance(right, int):
        bits = left.bit_length() * right if operator == "**" else left.bit_length() + right.bit_length()
        return LONGEST_OUTPUT + 1 if bits > _LARGEST_BITS and abs(left) > 1 else 0
    for sequence, times in ((left, right), (right, left)):
        if operator == "*" and isinstance(sequence, (str, bytes, list, tuple)) and isinstance(times, int):
            return len(sequence) * times
    return 0
