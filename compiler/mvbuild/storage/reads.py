"""storage table -> the values of the clock that its last refresh read.

The specifications record tables and views. The record stays as they want it; these are properties beside it, and entries of the summary of
the snapshot, from which a rollback takes them.
"""

from __future__ import annotations

from collections.abc import Mapping

from mvbuild.ports.states import TableState
from mvbuild.storage.history import current_refresh_id, refreshed_at

READ = "mvbuild.read."
"""Prefix of properties of the storage table, and of keys of a snapshot's summary: the name of a value, such as `current_date`. Not part of
any specification."""
OF_REFRESH = "mvbuild.read-by"
"""Property: the number of the refresh that read the values. A rollback, or the refresh of another engine, makes other rows current."""


def read_summary(values: Mapping[str, str]) -> dict[str, str]:
    """What the summary of a refresh's snapshot records."""
    return {READ + name: value for name, value in values.items()}


def read_properties(refresh_id: int, values: Mapping[str, str]) -> dict[str, str]:
    """The properties of a refresh that read these values."""
    return {OF_REFRESH: str(refresh_id), **read_summary(values)} if values else {}


def stale_reads(properties: Mapping[str, str], kept: Mapping[str, str]) -> tuple[str, ...]:
    """The properties of earlier refreshes that are not set again."""
    return tuple(key for key in properties if (key == OF_REFRESH or key.startswith(READ)) and key not in kept)


def recorded_reads(storage: TableState) -> dict[str, str]:
    """Name -> value; empty if the writer of the rows recorded none."""
    current = storage.current_snapshot
    if current is None:
        return {}
    if storage.properties.get(OF_REFRESH) == str(current_refresh_id(storage)):
        return _values(storage.properties)
    return _values(refreshed_at(storage, current).summary)


def _values(found: Mapping[str, str]) -> dict[str, str]:
    return {key.removeprefix(READ): value for key, value in found.items() if key.startswith(READ)}
