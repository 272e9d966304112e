"""The type of what a watcher reports: Event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from mvbuild.dataclass import dataclass
from mvbuild.graph.model import NodeId

Kind = Literal[
    "started",
    "reloaded",
    "reload-failed",
    "poll-failed",
    "poll-recovered",
    "refreshing",
    "refreshed",
    "failed",
    "recovered",
    "skipped",
    "late",
    "in-time",
    "spark",
    "warning",
    "stopped",
]
"""late: an MV is farther behind than its target lag · in-time: it is no longer · recovered: a node that had failed was refreshed, or needs
nothing any more · spark: the engine is starting or was stopped."""
NOTABLE: frozenset[Kind] = frozenset(("reload-failed", "poll-failed", "poll-recovered", "failed", "recovered", "late", "in-time"))
"""What `--notify-command` and `--notify-url` report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that the watcher did or noticed."""

    kind: Kind
    at_ms: int
    message: str
    node: NodeId | None = None
    name: str = ""
    """The name of the node in the catalog."""
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_bad(self) -> bool:
        return self.kind in ("reload-failed", "poll-failed", "failed", "late")

    def as_json(self) -> dict[str, Any]:
        """For logs and notifications."""
        of_node = {"node": self.node, "name": self.name} if self.node else {}
        level = "error" if self.is_bad else "warning" if self.kind in ("skipped", "warning") else "info"
        return {"at_ms": self.at_ms, "level": level, "event": self.kind, **of_node, "message": self.message, **self.data}
