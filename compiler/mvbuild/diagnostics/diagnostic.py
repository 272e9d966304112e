"""code, message, span -> Diagnostic; Diagnostics -> ProjectError."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Literal

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics.codes import CODES
from mvbuild.source import Span

Severity = Literal["error", "warning", "info"]
_MOST_KNOWN = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A second place, or a fact, that explains a diagnostic."""

    message: str
    span: Span | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One finding. `code` is a key of `CODES`; `span` is None only where no file of the user is involved."""

    code: str
    message: str
    span: Span | None = None
    notes: tuple[Note, ...] = ()
    help: str = ""
    severity: Severity = "error"


class ProjectError(Exception):
    """All errors that one stage found. Raised once per stage, never for the first error only."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("; ".join(f"{d.code}: {d.message}" for d in self.diagnostics))


def error(code: str, message: str, span: Span | None = None, *, help: str = "", notes: Iterable[Note] = ()) -> Diagnostic:
    """An error with a code of the table. Without `help`, it gets the general help of its code."""
    return Diagnostic(code=code, message=message, span=span, notes=tuple(notes), help=help or CODES[code].help)


def warning(code: str, message: str, span: Span | None = None, *, help: str = "") -> Diagnostic:
    """Like `error`, for findings that do not stop a stage."""
    return Diagnostic(code=code, message=message, span=span, help=help or CODES[code].help, severity="warning")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The help for a misspelled word: the most similar known word, or all known words if none is similar."""
    known = sorted(set(known))
    near = get_close_matches(word, known, n=1)
    if near:
        return f"Did you mean '{near[0]}'?"
    return f"Known names: {', '.join(known[:_MOST_KNOWN])}{', ...' if len(known) > _MOST_KNOWN else '.'}" if known else ""
