"""TableChanges -> the change of a table between two snapshots, read once for all MVs that need it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from threading import Lock
from typing import TYPE_CHECKING, Any

from mvbuild.dataclass import dataclass
from mvbuild.formats.record import NO_SNAPSHOT
from mvbuild.ports.catalog import ChangeRefused
from mvbuild.ports.changes import Comparison, Predicate, Side, TableChange, ValueRange
from mvbuild.ports.states import TableState
from mvbuild.ports.table_changes import TableChanges
from mvbuild.storage.names import known_as

if TYPE_CHECKING:
    from mvbuild.incremental.inputs import Inputs
    from mvbuild.incremental.shape import Shape

MAX_FILES = 2000
"""The limit of files whose bounds are read to estimate how much of a table a refresh reads; more would cost as much as the refresh."""
_Key = tuple[str, str, int, int, int]


@dataclass
class Changes:
    """The changes of a run, shared by its threads."""

    source: TableChanges
    _known: dict[_Key, TableChange | ChangeRefused] = field(default_factory=dict)
    _ranges: dict[tuple[Any, ...], ValueRange | None] = field(default_factory=dict)
    _shares: dict[tuple[Any, ...], float] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def __call__(self, table: TableState, old: int, new: int, /) -> TableChange:
        """Raises ChangeRefused if the change cannot be determined."""
        key = (*_under(table), old, new)
        with self._lock:
            if key not in self._known:
                try:
                    self._known[key] = self.source.between(table, old, new)
                except ChangeRefused as exc:
                    self._known[key] = exc
            found = self._known[key]
        if isinstance(found, ChangeRefused):
            raise found
        return found

    def share(self, table: TableState, snapshot_id: int, column: str, wanted: ValueRange) -> float:
        """The share of a table's rows in files that may have values in the range; 1 if it is not known, or is expensive to find."""
        snapshot = table.snapshots.get(snapshot_id)
        if wanted.low is None or snapshot is None or not 0 < int(snapshot.summary.get("total-data-files", "0")) <= MAX_FILES:
            return 1.0
        # Under another schema a column's name has another meaning, and tables that are copies of each other have the same UUID.
        key = (*_under(table), snapshot_id, column, wanted.low, wanted.high)
        if key not in self._shares:
            self._shares[key] = self._share(table, snapshot_id, column, wanted)
        return self._shares[key]

    def _share(self, table: TableState, snapshot_id: int, column: str, wanted: ValueRange) -> float:
        predicates = (Comparison(column, ">=", wanted.low), Comparison(column, "<=", wanted.high))
        try:
            held = self(table, NO_SNAPSHOT, snapshot_id)
        except ChangeRefused:
            return 1.0
        return self.source.matching(held, predicates).rows / max(1, held.added.rows)

    def range(self, change: TableChange, side: Side, column: str) -> ValueRange | None:
        key = (*_under(change.table), change.old, change.new, side, column)
        if key not in self._ranges:
            self._ranges[key] = self.source.value_ranges(change, side, (column,)).get(column)
        return self._ranges[key]

    def reads_here(self, change: TableChange, columns: Sequence[str]) -> bool:
        return self.source.reads_here(change, columns)

    def replaces_text(self, storage: TableState) -> bool:
        """Whether a partition of a table may have another text than the query returned: Iceberg only keeps valid UTF-8 there."""
        types = {field["name"]: field["type"] for field in storage.schema["fields"]}
        is_by_text = any(one.transform == "identity" and types.get(one.column) == "string" for one in storage.partition_by)
        if not is_by_text or storage.current_snapshot_id is None:
            return False
        try:
            return self.source.has_replaced_text(self(storage, NO_SNAPSHOT, storage.current_snapshot_id))
        except ChangeRefused:
            return True

    def irrelevant(self, shape: Shape, given: Inputs, changes: Mapping[int, TableChange]) -> Mapping[int, str]:
        """The leaves whose changed rows cannot affect the query, each with the reason."""
        # Imported here, as in `conditions_of`, because a run that finds nothing to do interprets no query.
        from mvbuild.incremental.literals import predicate_text

        scans = conditions_of(shape, given)
        found = {}
        for leaf, change in changes.items():
            conjunctions = scans.get(leaf, ())
            if conjunctions and all(conjunctions) and not self.source.may_match(change, conjunctions):
                what = " or ".join(dict.fromkeys(predicate_text(predicates) for predicates in conjunctions))
                found[leaf] = f"no row that changed in {known_as(change.table)} has {what}"
        return found


def _under(table: TableState) -> tuple[str, str, int]:
    """A table and the schema under which it is read."""
    return table.uuid, str(table.identifier), table.current_schema_id


def conditions_of(shape: Shape, given: Inputs) -> dict[int, tuple[tuple[Predicate, ...], ...]]:
    """Leaf -> for each read of it, the conditions under which a row affects the query. Empty if Spark substitutes text in the query,
    because then no literal is a constant."""
    from mvbuild.incremental.scan_conditions import relevant
    from mvbuild.parse.determinism import variables

    if any(variables(given.text.text)):
        return {}
    # A version that the query names is read with another schema than the current one, which the change uses.
    types = [{f["name"]: f["type"] for f in one.schema["fields"]} if one.leaf.travel is None else {} for one in given.inputs]
    # The meaning of an escape in a string depends on Spark's configuration.
    return relevant(shape.root, types, strings="\\" not in given.text.text)
