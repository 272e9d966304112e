"""The types of the ladder: an Edit of a query, and the Findings that describe it."""

from __future__ import annotations

from typing import Literal

from mvbuild.dataclass import dataclass

Rung = Literal["tokens", "names", "rewriting", "proof", "different"]
"""What shows that two texts are the same query: their tokens are equal · they are equal but for names inside · their canonical trees are
equal · Spark's plans are equal. `different`: nothing does.

Stored rows are kept only for `tokens` and `proof` (docs/decisions/017)."""

Class = Literal["formatting", "equal", "reordered", "columns-added", "filter-narrowed", "filter-widened", "rows", "breaking"]
CLASSES: tuple[Class, ...] = (
    "formatting",
    "equal",
    "reordered",
    "columns-added",
    "filter-narrowed",
    "filter-widened",
    "rows",
    "breaking",
)
"""From the least to the most important."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One class of the edit, and a clause that describes it."""

    kind: Class
    message: str
    columns: tuple[str, ...] = ()
    """The columns of the result that it is about, with their previous names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """How one text of a query became another. `findings` is never empty; the most important ones come first."""

    rung: Rung
    findings: tuple[Finding, ...]
    only_names: bool = False
    """Whether the texts are equal but for names inside. A name may mean another column now, so that this alone does not put an edit on a
    rung; but it makes a proof by Spark worth trying."""

    @property
    def kind(self) -> Class:
        return self.findings[0].kind

    @property
    def message(self) -> str:
        """Follows "its definition was changed: "."""
        return "; ".join(f.message for f in self.findings)
