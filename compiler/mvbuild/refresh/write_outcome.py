"""The outcome of an incremental refresh: WriteOutcome, or NotIncremental if a full one must replace it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mvbuild.dataclass import dataclass
from mvbuild.storage.history import deleted_rows


class NotIncremental(Exception):
    """The chosen strategy cannot be carried out; nothing was published. `code` is one of incremental.reasons."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOutcome:
    """What an incremental refresh wrote; without either count nothing was written, and there is no new snapshot."""

    added: int | None
    """None: the summary of the snapshot has it."""
    removed: int | None
    statements: tuple[str, ...]
    change_above: tuple[Any, Any] | None = None
    """The rows that a query over the storage loses and gets, see `RefreshInputs.above`."""

    @property
    def is_empty(self) -> bool:
        return self.added == 0 and self.removed == 0

    def counted(self, summary: Mapping[str, str]) -> WriteOutcome:
        """With the counts in the summary of its snapshot."""
        added = int(summary.get("added-records", "0")) if self.added is None else self.added
        removed = (deleted_rows(summary) or 0) if self.removed is None else self.removed
        return replace(self, added=added, removed=removed)
