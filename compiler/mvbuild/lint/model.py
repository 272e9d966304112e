"""The types of linting: Rule (a line of the table), Found (what a rule says), Finding (the same with its level), Fix and its edits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal

from sqlglot import exp

from mvbuild.diagnostics import Diagnostic, Note
from mvbuild.graph.model import ModelNode, NodeId
from mvbuild.project.settings import EMPTY
from mvbuild.source import SourceFile, Span

if TYPE_CHECKING:
    from mvbuild.lint.facts import Facts

Level = Literal["off", "info", "warning", "error"]
LEVELS: tuple[Level, ...] = ("off", "info", "warning", "error")
"""From the least to the most."""
Options = Mapping[str, Any]
"""The options of a rule as they are for one model: every option that it has."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Put `new` in the place of a piece of the user's file."""

    span: Span
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """Edits of one file, and what they make of the tree of its query. The fix is kept only if the file then parses to exactly that."""

    edits: tuple[Edit, ...]
    rewrite: Callable[[exp.Expr], None] | None = None
    """Changes the tree in place; nodes keep their offsets. None: the tree stays as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a rule says about one place. Without `help` the help of the rule is shown."""

    message: str
    span: Span
    help: str = ""
    notes: tuple[Note, ...] = ()
    fix: Fix | None = None
    of_file: bool = False
    """It is about the model as a whole: an allowance anywhere in its file covers it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a rule says, at the level that is configured there."""

    code: str
    level: Level
    found: Found
    node: NodeId | None = None
    """The model, where it is about one."""

    @property
    def span(self) -> Span:
        return self.found.span

    @property
    def diagnostic(self) -> Diagnostic:
        """As it is shown. What is off is not shown."""
        severity: Literal["error", "warning", "info"] = "info" if self.level in ("off", "info") else self.level  # type: ignore[assignment]
        found = self.found
        return Diagnostic(code=self.code, message=found.message, span=found.span, notes=found.notes, help=found.help, severity=severity)


_LONGEST_LINE = 2_000


def identity(diagnostic: Diagnostic) -> str:
    """The same for the same finding when lines above it come or go; of two on lines that are alike too."""
    file, line = (diagnostic.span.file.path, " ".join(_line(diagnostic.span).split())) if diagnostic.span is not None else ("", "")
    text = "\x1f".join((diagnostic.code, file, line, diagnostic.message))
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _line(span: Span) -> str:
    """Where a span begins; of a very long line, which may have very many findings, no more than the span."""
    text, start = span.file.text, span.file.line_starts[span.position[0] - 1]
    end = text.find("\n", start, start + _LONGEST_LINE)
    if end < 0 and len(text) - start > _LONGEST_LINE:
        return span.text[:_LONGEST_LINE]
    return text[start : end if end >= 0 else None]


Check = Callable[["Facts", ModelNode, Options], Iterable[Found]]
"""Says what is wrong with one model. Pure; what it is not sure of it does not say."""
FileCheck = Callable[[SourceFile], Iterable[Found]]
"""The same for the text of any file of the project."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """An option of a rule. `check` says what is wrong with a value, empty if nothing is."""

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
    """What it is good for, and where it says nothing."""
    help: str
    """What to do."""
    wrong: Mapping[str, str]
    """Files of a project in which it finds something; `right` are files in which it does not."""
    right: Mapping[str, str]
    check: Check | None = None
    check_file: FileCheck | None = None
    options: Mapping[str, Option] = field(default_factory=lambda: EMPTY)
    needs: Literal["", "types", "catalog"] = ""
    """What has to be known for it to say anything, so that an allowance of it is not taken for unused where that is not known."""
    fix: str = ""
    """What --fix does, if it does anything."""
