"""() -> the Jinja environment in which models are rendered: no files, no Python internals, bounded work."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sized
from typing import Any

from jinja2 import StrictUndefined, Undefined, pass_context
from jinja2.runtime import Context, Macro
from jinja2.sandbox import SandboxedEnvironment

from mvbuild.parse.budget import LONGEST_OUTPUT, Budget, TooMuch, check_held
from mvbuild.parse.package_macros import PackageMacros
from mvbuild.parse.test_tag import TestTag

_LARGEST_COUNT = 1_000_000
_LARGEST_BITS = 10_000
_BYTES_EACH = 64
"""The approximate bytes of a value in a list."""

COUNTED, JOINED, MADE, HELD = "mvbuild_counted", "mvbuild_joined", "mvbuild_made", "mvbuild_held"
"""Filters that marking.py puts around the sequences of loops, `~`, expressions that create values without a call, and comparisons."""


class Returned(Exception):
    """`{% do return(value) %}` inside a macro."""

    def __init__(self, value: object) -> None:
        super().__init__("return() outside of a macro")
        self.value = value


class Missing(StrictUndefined):
    """A name without a value, which nothing can use. But a macro may ask whether it was given a parameter: `{% if column %}`."""

    def __bool__(self) -> bool:  # type: ignore[override]
        if self._undefined_hint is not None and self._undefined_hint.startswith("parameter "):
            return False
        return super().__bool__()


class Sandbox(SandboxedEnvironment):
    """Jinja's own sandbox, with a budget per template.

    A template may change its lists and mappings: values from outside are copies (template_names.py), and macro files that keep values are
    reloaded for each template (render.py).
    """

    intercepted_binops = frozenset(("+", "-", "*", "**", "%"))

    def __init__(self) -> None:
        super().__init__(
            undefined=Missing,
            keep_trailing_newline=True,
            optimized=False,
            finalize=self._written,
            extensions=("jinja2.ext.do", "jinja2.ext.loopcontrols", TestTag),
            cache_size=0,
        )
        self.budget = Budget()
        for name in ("lipsum", "cycler", "joiner"):
            del self.globals[name]
        # Results that differ each time; HTML filters that are slow on long texts.
        for name in ("random", "striptags", "urlize", "xmlattr"):
            del self.filters[name]
        for name, function in list(self.filters.items()):
            self.filters[name] = self._bounded(function, _SIZES.get(name))
        for name, function in list(self.tests.items()):
            self.tests[name] = self._bounded(function, None)
        # dbt's filters convert values only in YAML; in SQL they return the value unchanged.
        self.filters |= dict.fromkeys(("as_bool", "as_native", "as_number", "as_text"), _as_is)
        self.filters |= {COUNTED: self._counted, JOINED: self._joined, MADE: self._made, HELD: self._held}

    def call(self, context: Context, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        self.budget.step()
        check_held((*args, *kwargs.values()))
        if isinstance(function, Macro):
            try:
                return self.budget.made(super().call(context, function, *args, **kwargs))
            except Returned as returned:
                return returned.value
        owner = getattr(function, "__self__", None)
        if isinstance(owner, (str, bytes)):
            _check_text_method(owner, function.__name__, (*args, *kwargs.values()))
        elif isinstance(owner, (list, dict, set)):
            if function.__name__ in ("count", "index", "remove", "sort"):
                check_held((owner,))
            _check_growth(owner, args)
            self.budget.grow(8 * sum(len(a) for a in args if isinstance(a, Sized)))
        result = super().call(context, function, *args, **kwargs)
        self.budget.grow(_BYTES_EACH * check_held((result,)))
        return self.budget.made(result)

    def getattr(self, obj: Any, attribute: str) -> Any:
        """A package has macros, and nothing else."""
        return obj.macro(attribute) if isinstance(obj, PackageMacros) else super().getattr(obj, attribute)

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
        check_held((left, right))
        if _size_of(operator, left, right) > LONGEST_OUTPUT:
            raise TooMuch(f"The result of '{operator}' is too large")
        return self.budget.made(super().call_binop(context, operator, left, right))

    @pass_context
    def _written(self, context: Context, value: Any) -> str:  # noqa: ARG002  (keeps constants from being folded)
        check_held((value,))
        text = str(value)
        self.budget.capture(len(text))
        return text

    def _bounded(self, function: Any, size: Callable[..., int] | None) -> Callable[..., Any]:
        """A filter or test that refuses huge widths and counts, and whose result is counted."""
        first = 1 if hasattr(function, "jinja_pass_arg") else 0

        @functools.wraps(function)
        def bounded(*args: Any, **kwargs: Any) -> Any:
            self.budget.step()
            check_held((*args, *kwargs.values()))
            if size is not None:
                values = args[first:]
                if isinstance(values[0], Iterator):
                    values = (list(values[0]), *values[1:])
                    args = (*args[:first], *values)
                _require(size(*values, **kwargs), f"The result of '{function.__name__.removeprefix('do_')}' is too large")
            return self.budget.made(function(*args, **kwargs))

        return bounded

    def _counted(self, values: Iterable[Any]) -> Iterator[Any]:
        for value in values:
            self.budget.step()
            yield value

    def _joined(self, values: Iterable[Any]) -> str:
        values = list(values)
        check_held(values)
        texts = [str(value) for value in values]
        _require(sum(map(len, texts)), "The result of '~' is too large")
        return str(self.budget.made("".join(texts)))

    def _made(self, value: Any) -> Any:
        if isinstance(value, tuple):
            check_held((value,))  # a tuple can become a key, whose hash visits all of it
        return self.budget.made(value)

    def _held(self, value: Any) -> Any:
        check_held((value,))
        return value


# The approximate length of a filter's result. A template may pass any type, which the filter itself refuses.


def _of_replace(value: Any, old: Any, new: Any, *_: Any, **__: Any) -> int:
    return str(value).count(str(old)) * len(str(new)) if str(old) else len(str(value)) * len(str(new))


def _of_join(value: Any, d: Any = "", *_: Any, **__: Any) -> int:
    return len(value) * len(str(d)) if isinstance(value, Sized) else 0


def _of_indent(value: Any, width: Any = 4, *_: Any, **__: Any) -> int:
    return (str(value).count("\n") + 1) * _count(width)


def _of_wordwrap(value: Any, *_: Any, wrapstring: Any = "", **__: Any) -> int:
    return 10 * len(str(value)) * (1 + len(str(wrapstring)))


def _of_width(value: Any, width: Any = 80, *_: Any, **__: Any) -> int:  # noqa: ARG001
    return _count(width)


def _of_lists(value: Any, count: Any = 1, *_: Any, **kwargs: Any) -> int:  # noqa: ARG001
    return 10 * _count(kwargs.get("linecount", kwargs.get("slices", count)))


def _of_tojson(value: Any, indent: Any = 0, *_: Any, **__: Any) -> int:
    return check_held((value,)) * _count(indent)


def _of_pprint(value: Any) -> int:
    return 1000 * check_held((value,))


def _of_format(value: Any, *args: Any, **kwargs: Any) -> int:
    return _size_of("%", str(value), (*args, *kwargs.values()))


_SIZES: dict[str, Callable[..., int]] = {
    "replace": _of_replace,
    "join": _of_join,
    "indent": _of_indent,
    "wordwrap": _of_wordwrap,
    "center": _of_width,
    "batch": _of_lists,
    "slice": _of_lists,
    "tojson": _of_tojson,
    "pprint": _of_pprint,
    "format": _of_format,
}


def _count(value: Any) -> int:
    """A width as a number or as the text itself."""
    return abs(value) if isinstance(value, int) else len(value) if isinstance(value, str) else 0


def _require(size: int, message: str) -> None:
    if size > LONGEST_OUTPUT:
        raise TooMuch(message)


def _check_text_method(text: str | bytes, name: str, arguments: tuple[Any, ...]) -> None:
    _check_counts(arguments)
    if name == "replace" and isinstance(text, str):
        _require(_of_replace(text, *arguments[:2]) if len(arguments) > 1 else 0, "The result of replace() is too large")
    lengths = [len(a) for a in arguments if isinstance(a, (str, list, tuple, dict))]
    if name in ("join", "translate", "expandtabs"):
        times = next((abs(a) for a in arguments if isinstance(a, int)), max(lengths, default=0))
        _require((len(text) + 1) * times, f"The result of {name}() is too large")


def _check_growth(collection: Collection[Any], arguments: tuple[Any, ...]) -> None:
    if len(collection) + sum(len(a) for a in arguments if isinstance(a, Sized)) > _LARGEST_COUNT:
        raise TooMuch("A list or mapping grows too large")


def _check_widths(text: str, arguments: tuple[Any, ...]) -> None:
    """Widths as digits, or as arguments: '{:{}}'."""
    if re.search(r"\d{6,}", text):
        raise TooMuch("A width in a format is too large")
    if re.search(r":[^{}]*\{", text):
        _check_counts(arguments)


def _check_counts(arguments: tuple[Any, ...]) -> None:
    if any(isinstance(argument, int) and abs(argument) > _LARGEST_COUNT for argument in arguments):
        raise TooMuch("A width or count is too large")


def _size_of(operator: str, left: Any, right: Any) -> int:
    """The approximate number of characters or items that an operation creates, 0 if there cannot be many."""
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


def _as_is(value: Any) -> Any:
    return value
