"""The types of a review: NodeChange, Refresh, Review."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic
from mvbuild.equivalence.edit import Class, Finding
from mvbuild.graph.model import NodeId
from mvbuild.incremental.cost import Cost
from mvbuild.source import Span

What = Literal["added", "removed", "renamed", "changed"]
Kind = Literal["added", "removed", "renamed", "documentation", "configuration"] | Class
ORDER: tuple[Kind, ...] = (
    "formatting",
    "documentation",
    "configuration",
    "equal",
    "added",
    "reordered",
    "columns-added",
    "renamed",
    "filter-narrowed",
    "filter-widened",
    "rows",
    "removed",
    "breaking",
)
"""From the least to the most important, for the order of reports."""
TITLES: dict[Kind, str] = {
    "formatting": "formatting",
    "documentation": "documentation",
    "configuration": "configuration",
    "equal": "equal by rewriting",
    "added": "added",
    "reordered": "columns reordered",
    "columns-added": "columns added",
    "renamed": "renamed",
    "filter-narrowed": "filter narrowed",
    "filter-widened": "filter widened",
    "rows": "rows may change",
    "removed": "removed",
    "breaking": "breaking",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingChange:
    """A setting before and now, as JSON; None for the default."""

    name: str
    old: object
    new: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """A removed or retyped column, and a node or test that still uses it."""

    column: str
    consumer: NodeId
    name: str
    """The name of the consumer."""
    certain: bool
    """False if its query contains the word, and it is not known whether it means this column."""
    span: Span | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChange:
    """The change of one model, seed, source or test."""

    id: NodeId
    name: str
    path: str
    what: What
    findings: tuple[Finding, ...] = ()
    """The changes of its query."""
    settings: tuple[SettingChange, ...] = ()
    documented: bool = False
    former: str = ""
    """Its previous name."""
    because: tuple[str, ...] = ()
    """Other changes that change it: macros, vars, ephemeral models."""
    breaks: tuple[Break, ...] = ()
    downstream: tuple[NodeId, ...] = ()
    """The models that read it, directly or indirectly."""

    @property
    def kind(self) -> Kind:
        if any(f.kind == "breaking" for f in self.findings):
            return "breaking"
        if self.what != "changed":
            return self.what
        kinds: list[Kind] = [f.kind for f in self.findings]
        kinds += ["configuration"] if self.settings else []
        kinds += ["documentation"] if self.documented else []
        return max(kinds, key=ORDER.index, default="formatting")

    @property
    def resource_type(self) -> str:
        return self.id.partition(".")[0]

    @property
    def former_id(self) -> NodeId:
        return ".".join([*self.id.split(".")[:2], self.former]) if self.former else self.id

    @property
    def matters(self) -> bool:
        """Whether it is more than another way to write the same."""
        return self.kind != "formatting"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refresh:
    """What the next run does to an MV, view or seed because of this change."""

    node: NodeId
    relation: str
    action: str
    strategy: str | None
    why: str
    expected: Cost | None = None
    full: Cost | None = None


@dataclass(frozen=True, kw_only=True)
class Review:
    """Two versions of a project, compared."""

    against: str
    changes: tuple[NodeChange, ...]
    """The most important first."""
    macros: tuple[str, ...] = ()
    """Names of macros that were added, removed or changed."""
    vars: tuple[str, ...] = ()
    refreshes: tuple[Refresh, ...] = ()
    unknown: str = ""
    """Why it is not known how they are refreshed; empty if it is known."""
    lint: tuple[Diagnostic, ...] | None = ()
    """New findings; None if there is nothing to compare with."""
    names: dict[NodeId, str]
    """Names of the nodes that are mentioned."""
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def models(self) -> Sequence[NodeChange]:
        return [c for c in self.changes if c.resource_type != "test"]

    @property
    def tests(self) -> Sequence[NodeChange]:
        return [c for c in self.changes if c.resource_type == "test"]

    @property
    def has_changes(self) -> bool:
        """Formatting does not count."""
        return any(c.matters for c in self.changes) or bool(self.macros or self.vars)
