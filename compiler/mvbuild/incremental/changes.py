"""Catalog -> the change of a table between two snapshots, read once however many MVs ask for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock

from mvbuild.freshness.pins import known_as
from mvbuild.incremental.inputs import Inputs
from mvbuild.incremental.literals import told
from mvbuild.incremental.relevance import relevant
from mvbuild.incremental.shape import Shape
from mvbuild.ports.catalog import Catalog, ChangeRefused, Predicate, TableChange, TableState

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

    def irrelevant(self, shape: Shape, given: Inputs, changes: Mapping[int, TableChange]) -> Mapping[int, str]:
        """The leaves none of whose changed rows can matter to the query, each with why."""
        scans = conditions_of(shape, given)
        found = {}
        for leaf, change in changes.items():
            conjunctions = scans.get(leaf, ())
            if conjunctions and all(conjunctions) and not self.catalog.may_match(change, conjunctions):
                what = " or ".join(dict.fromkeys(told(predicates) for predicates in conjunctions))
                found[leaf] = f"no row that changed in {known_as(change.table)} has {what}"
        return found


def conditions_of(shape: Shape, given: Inputs) -> dict[int, tuple[tuple[Predicate, ...], ...]]:
    """Leaf -> for each time that it is read, what a row must fulfil to matter."""
    # What a version that the query names is read with is not the schema of today, by which a change is told.
    types = [{f["name"]: f["type"] for f in one.schema["fields"]} if one.leaf.travel is None else {} for one in given.inputs]
    # What an escape in a string means depends on Spark's configuration.
    return relevant(shape.root, types, strings="\\" not in given.text.text)
