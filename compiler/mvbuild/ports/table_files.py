"""A table -> its rows, read without an engine, and the files that it refers to; a location -> what is below it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from mvbuild.ports.states import TableState


class TableFiles(Protocol):
    """Where tables are stored. Every method may raise CatalogError."""

    def rows(self, table: TableState, limit: int, snapshot_id: int | None = None) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """Column names and up to `limit` rows of the current snapshot, or of another one under its own schema, read without Spark."""

    def of(self, table: TableState) -> frozenset[str]:
        """Every file that the table's metadata refers to: its logged metadata files, manifest lists, manifests, data and delete files of
        all snapshots, and statistics."""

    def spelled(self, location: str) -> str:
        """The spelling of a location that `of` and `below` use: engines write file:/x, file:///x and /x."""

    def below(self, location: str) -> tuple[tuple[str, int], ...]:
        """(file, modification time in ms since the epoch) of everything below a location, spelled as in `of`."""

    def delete(self, files: Iterable[str]) -> int:
        """Delete files, and local directories that become empty. Returns how many files there were; missing files are ignored."""
