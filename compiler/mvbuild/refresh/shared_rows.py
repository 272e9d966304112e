"""Change + columns -> its rows, read in this process once for all MVs of a run that need them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import field
from threading import Lock
from typing import TYPE_CHECKING

from mvbuild.dataclass import dataclass
from mvbuild.ports.changes import NetRows, TableChange
from mvbuild.ports.table_changes import TableChanges

if TYPE_CHECKING:
    from mvbuild.incremental.choice import StrategyChoice

MAX_KEPT = 500_000
"""The limit of rows that are kept until the end of a run."""
_Key = tuple[str, str, int, int, int]


@dataclass
class SharedRows:
    """The rows of changes, shared by the threads of a run. One change is read at a time: comparing files may take a gigabyte."""

    _wanted: dict[_Key, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The columns that the MVs of the plan read: rows with all of them serve each MV."""
    _read: dict[_Key, tuple[frozenset[str], NetRows]] = field(default_factory=dict)
    _kept: int = 0
    _lock: Lock = field(default_factory=Lock)

    def expect(self, choices: Iterable[StrategyChoice]) -> None:
        """What the MVs of a plan will ask for."""
        for choice in choices:
            # Imported here because a run that finds nothing to do interprets no query.
            from mvbuild.incremental.inputs import columns_read

            columns = columns_read(choice.shape.root) if choice.shape is not None and choice.is_incremental else {}
            for leaf, change in choice.changes.items():
                self._wanted[_key(change)] |= columns.get(leaf, frozenset())

    def of(self, source: TableChanges, change: TableChange, columns: Sequence[str]) -> NetRows | None:
        """The rows, perhaps with more columns; None if the engine must read them."""
        if not source.reads_here(change, columns):
            return None
        key = _key(change)
        with self._lock:
            held, rows = self._read.get(key, (frozenset(), None))
            if rows is not None and held >= set(columns):
                return rows
            for some in dict.fromkeys((tuple(sorted({*columns, *self._wanted.get(key, ())})), tuple(columns))):
                found = source.net_rows(change, some) if source.reads_here(change, some) else None
                if found is not None:
                    self._keep(key, some, found)
                    return found
        return None

    def _keep(self, key: _Key, columns: Sequence[str], rows: NetRows) -> None:
        count = rows.plus.count + rows.minus.count
        if self._kept + count <= MAX_KEPT:
            self._read[key] = frozenset(columns), rows
            self._kept += count


def _key(change: TableChange) -> _Key:
    table = change.table
    return table.uuid, str(table.identifier), table.current_schema_id, change.old, change.new
