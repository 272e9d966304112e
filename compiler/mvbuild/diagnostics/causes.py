"""diagnostics of a file -> the same without those that only follow from a value that is missing there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mvbuild.diagnostics.diagnostic import Diagnostic

UNSET = frozenset(("missing-var", "missing-env-var"))
"""The value is missing, so whatever uses it is wrong too."""
_UNREADABLE = UNSET | {"template-error", "template-syntax", "undefined-name", "unsafe-template", "yaml-syntax"}


def first_causes(diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Leave out further problems of a value in YAML that cannot be read."""
    unreadable = {d.span for d in diagnostics if d.code in _UNREADABLE and d.span is not None}
    return [d for d in diagnostics if d.code in _UNREADABLE or d.span not in unreadable]


def without_unset(problems: Iterable[Diagnostic], rendering: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Leave out problems of values for which a template uses something that is not set."""
    unset = [d.span for d in rendering if d.code in UNSET and d.span is not None]

    def is_unset(problem: Diagnostic) -> bool:
        span = problem.span
        return span is not None and any(span.file == one.file and span.start <= one.start and one.end <= span.end for one in unset)

    return tuple(problem for problem in problems if not is_unset(problem))
