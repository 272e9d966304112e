"""Catalog -> the change of a table between two snapshots, read once however many MVs ask for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock

from mvbuild.ports.catalog import Catalog, ChangeRefused, TableChange, TableState

_Key = tuple[str, str, int, int, int]


@dataclass
class Changes:
    """Shared by the threads of a run."""

    catalog: Catalog
    _known: dict[_Key, TableChange | ChangeRefused] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def __call__(self, table: TableState, old: int, new: int, /) -> TableChange:
        """ChangeRefused where it cannot be told."""
        key = (table.uuid, str(table.identifier), table.current_schema_id, old, new)
        with self._lock:
            if key not in self._known:
                try:
                    self._known[key] = self.catalog.change(table, old, new)
                except ChangeRefused as exc:
                    self._known[key] = exc
            found = self._known[key]
        if isinstance(found, ChangeRefused):
            raise found
        return found
