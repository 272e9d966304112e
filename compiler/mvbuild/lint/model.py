"""The types of linting: Rule (a line of the table), Found (what a rule reports), Finding (the same with its level), Fix and its edits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, Note
from mvbuild.graph.model import ModelNode, NodeId
from mvbuild.project.setting import EMPTY
from mvbuild.source import SourceFile, Span

if TYPE_CHECKING:
    from mvbuild.lint.facts import Facts

Level = Literal["off", "info", "warning", "error"]
LEVELS: tuple[Level, ...] = ("off", "info", "warning", "error")
"""From the lowest to the highest."""
Options = Mapping[str, Any]
"""All options of a rule, with their values for one model."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace a piece of the user's file with `new`."""

    span: Span
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """Edits of one file, and how they change the tree of its query. The fix is kept only if the file then parses to exactly that tree."""

    edits: tuple[Edit, ...]
    rewrite: Callable[[exp.Expr], None] | None = None
    """Changes the tree in place; nodes keep their offsets. None: the tree does not change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a rule reports about one place. Without `help`, the help of the rule is shown."""

    message: str
    span: Span
    help: str = ""
    notes: tuple[Note, ...] = ()
    fix: Fix | None = None
    of_file: bool = False
    """It is about the whole model: an allowance anywhere in its file covers it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a rule reports, at the level configured there."""

    code: str
    level: Level
    found: Found
    node: NodeId | None = None
    """The model, if it is about one."""

    @property
    def span(self) -> Span:
        return self.found.span

    @property
    def diagnostic(self) -> Diagnostic:
        """The diagnostic to show. A finding whose level is off is not shown."""
        severity: Literal["error", "warning", "info"] = "info" if self.level in ("off", "info") else self.level  # type: ignore[assignment]
        found = self.found
        return Diagnostic(code=self.code, message=found.message, span=found.span, notes=found.notes, help=found.help, severity=severity)


_LONGEST_LINE = 2_000


def identity(diagnostic: Diagnostic) -> str:
    """The same for the same finding after lines above it were added or removed, even if several lines are alike."""
    file, line = (diagnostic.span.file.path, " ".join(_line(diagnostic.span).split())) if diagnostic.span is not None else ("", "")
    text = "\x1f".join((diagnostic.code, file, line, diagnostic.message))
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _line(span: Span) -> str:
    """The line of a span; only the span itself if the line is very long and may have very many findings."""
    text, start = span.file.text, span.file.line_starts[span.position[0] - 1]
    end = text.find("\n", start, start + _LONGEST_LINE)
    if end < 0 and len(text) - start > _LONGEST_LINE:
        return span.text[:_LONGEST_LINE]
    return text[start : end if end >= 0 else None]


Check = Callable[["Facts", ModelNode, Options], Iterable[Found]]
"""Reports errors of one model. Pure; an uncertain finding is not reported."""
FileCheck = Callable[[SourceFile], Iterable[Found]]
"""The same for the text of any file of the project."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """An option of a rule. `check` returns what is wrong with a value, empty if nothing is."""

    default: Any
    doc: str
    check: Callable[[Any], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A line of the table."""

    code: str
    level: Level
    title: str
    """What it finds, in one sentence."""
    why: str
    """Why it matters, and where it reports nothing."""
    help: str
    """What to do."""
    wrong: Mapping[str, str]
    """Files of a project in which it finds something; in those of `right` it finds nothing."""
    right: Mapping[str, str]
    check: Check | None = None
    check_file: FileCheck | None = None
    options: Mapping[str, Option] = field(default_factory=lambda: EMPTY)
    needs: Literal["", "types", "catalog"] = ""
    """The information that it needs. Without that information, an allowance of it does not count as unused."""
    fix: str = ""
    """What --fix does, if anything."""
