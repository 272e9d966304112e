"""Publisher -> TableFiles: the rows and files of tables, from their metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mvbuild.adapters.iceberg.tables import require_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mvbuild.adapters.iceberg.publisher import Publisher
    from mvbuild.ports.states import TableState


class MetadataFiles:
    """The files of the tables that a publisher can read."""

    def __init__(self, publisher: Publisher) -> None:
        self._publisher = publisher

    def rows(self, table: TableState, limit: int, snapshot_id: int | None = None) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        with self._publisher.guard():
            found = self._publisher.read_state(table)
            if snapshot_id is not None:
                require_snapshot(found.raw, snapshot_id, table.identifier)
            return found.data.rows(found.raw, found.location, max(limit, 0), snapshot_id)

    def of(self, table: TableState) -> frozenset[str]:
        with self._publisher.guard():
            found = self._publisher.read_state(table)
            files = found.data.reached(found.raw) | self._publisher.metadata_files(table, found)
            # Only files of this entry, even if others are in the same directory, because dropping the table deletes everything listed here.
            return frozenset(map(self._publisher.files.spelled, filter(None, files)))

    def spelled(self, location: str) -> str:
        return self._publisher.files.spelled(location)

    def below(self, location: str) -> tuple[tuple[str, int], ...]:
        with self._publisher.guard():
            return tuple(sorted(self._publisher.below(location)))

    def delete(self, files: Iterable[str]) -> int:
        with self._publisher.guard():
            return self._publisher.files.delete_all(list(files))
