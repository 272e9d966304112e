"""The types of what became of an incremental refresh: WriteOutcome, or NotIncremental where a full one must take its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mvbuild.freshness.history import deleted_rows


class NotIncremental(Exception):
    """The strategy that was chosen cannot be carried out; nothing was published. `code` is one of incremental.reasons."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOutcome:
    """What an incremental refresh wrote; without either nothing was, and there is no new snapshot."""

    added: int | None
    """None: the summary of the snapshot tells."""
    removed: int | None
    statements: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        return self.added == 0 and self.removed == 0

    def counted(self, summary: Mapping[str, str]) -> WriteOutcome:
        """With what the summary of its snapshot tells."""
        added = int(summary.get("added-records", "0")) if self.added is None else self.added
        removed = (deleted_rows(summary) or 0) if self.removed is None else self.removed
        return replace(self, added=added, removed=removed)
