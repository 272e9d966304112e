"""text of --select and --exclude -> Expression: unions, intersections and differences of criteria. The grammar is dbt's."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, ProjectError, error
from mvbuild.source import Span

_TERM = re.compile(
    r"(?P<at>@)?(?:(?P<up>\d*)\+)?(?:(?P<method>\w[\w.]*):)?(?P<value>(?![+@]).*?)(?:\+(?P<down>\d*))?\Z",
    re.DOTALL,
)
_FILES = (".sql", ".csv")
EXAMPLES = "Examples: orders, +orders, orders+, 2+orders, @orders, tag:daily, path:models/marts, state:modified+."


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """`2+tag:daily+`: what a method finds, and what is reached from there. A depth of None has no limit."""

    raw: str
    method: str
    value: str
    parents: bool = False
    parents_depth: int | None = None
    children: bool = False
    children_depth: int | None = None
    childrens_parents: bool = False
    span: Span | None = None
    """The place in selectors.yml."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Union:
    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Intersection:
    parts: tuple[Expression, ...]
    raw: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    left: Expression
    right: Expression


Expression = Criterion | Union | Intersection | Difference


def terms_of(given: Iterable[str]) -> tuple[str, ...]:
    """What a caller selects: several texts, or a single one."""
    return (given,) if isinstance(given, str) else tuple(given)


def union_of(texts: Iterable[str]) -> Union:
    """Spaces make a union, commas an intersection. Raises ProjectError for a text that cannot be read."""
    problems: list[Diagnostic] = []
    parts: list[Expression] = []
    for word in (word for text in terms_of(texts) for word in text.split()):
        try:
            parts.append(_intersection(word))
        except ProjectError as exc:
            problems += exc.diagnostics
    if problems:
        raise ProjectError(problems)
    return Union(parts=tuple(parts))


def _intersection(word: str) -> Expression:
    terms = tuple(criterion(term) for term in word.split(",") if term)
    if not terms:
        raise ProjectError([error("unknown-selector", f"The selector '{word}' cannot be parsed", help=EXAMPLES)])
    return terms[0] if len(terms) == 1 else Intersection(parts=terms, raw=word)


def criterion(text: str, span: Span | None = None) -> Criterion:
    """One term."""
    match = _TERM.match(text)
    if match is None or not (match["value"] or match["method"]):
        raise ProjectError([error("unknown-selector", f"The selector '{text}' cannot be parsed", span, help=EXAMPLES)])
    if match["at"] and match["down"] is not None:
        help = "'@' already includes all children and their parents: remove the '+'."
        raise ProjectError([error("unknown-selector", f"The selector '{text}' combines '@' with a '+' at its end", span, help=help)])
    return Criterion(
        raw=text,
        method=match["method"] or implied_method(match["value"]),
        value=match["value"],
        parents=match["up"] is not None,
        parents_depth=_depth(match["up"]),
        children=match["down"] is not None,
        children_depth=_depth(match["down"]),
        childrens_parents=match["at"] is not None,
        span=span,
    )


def implied_method(value: str) -> str:
    """As in dbt, a value with a slash is a path, and one that ends like a file name is a file."""
    return "path" if "/" in value else "file" if PurePosixPath(value).suffix.lower() in _FILES else "fqn"


def _depth(text: str | None) -> int | None:
    return int(text) if text else None
