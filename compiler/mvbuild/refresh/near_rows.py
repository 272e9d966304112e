"""Relation with bounds -> the same rows, with large tables replaced by their rows within the bounds, read in this process if these are few.

The keys of a change are often neighbours, and a table is often written in the order of its keys: then one row group has all rows with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import date
from typing import Any

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.formats.record import NO_SNAPSHOT
from mvbuild.incremental.algebra import Filter, Ref, Relation, Scan, conjuncts, renamed, with_children
from mvbuild.incremental.inputs import Input, total
from mvbuild.incremental.sizes import LITTLE
from mvbuild.incremental.stored_rows import STORAGE
from mvbuild.incremental.table_changes import MAX_FILES
from mvbuild.ports.catalog import ChangeRefused
from mvbuild.ports.changes import TableChange, ValueRange
from mvbuild.ports.states import TableState
from mvbuild.ports.table_changes import TableChanges
from mvbuild.refresh.skipped_values import has_skipped_value

_NUMBERS = (exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT)
_Key = tuple[int, str, tuple[str, ...], str, Any, Any]


@dataclass
class NearRows:
    """What one refresh read in this way."""

    changes: TableChanges
    inputs: Sequence[Input]
    supply: Callable[[Any], Ref]
    """Gives rows of a table to the engine."""
    floats: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    """Leaf -> columns, see `skipped_values.compared_floats`."""
    _known: dict[_Key, Ref | None] = field(default_factory=dict)
    _whole: dict[tuple[int, str], TableChange | None] = field(default_factory=dict)

    def of(self, relation: Relation) -> Relation:
        if isinstance(relation, Filter):
            predicates, below = _filters(relation)
            rows = self._rows(below, predicates) if isinstance(below, Scan) else None
            if rows is not None:
                for predicate in reversed(predicates):
                    rows = Filter(rows, predicate)
                return rows
        return with_children(relation, tuple(map(self.of, relation.children)))

    def _rows(self, scan: Scan, predicates: Sequence[exp.Expr]) -> Relation | None:
        """The rows of a table within one of the ranges that the predicates require."""
        one = self.inputs[scan.leaf] if scan.leaf != STORAGE else None
        if one is None or scan.version not in ("new", "old") or one.leaf.travel is not None or one.bytes < LITTLE:
            return None
        types, sources = {each["name"]: each["type"] for each in one.schema["fields"]}, dict(scan.sources)
        for name, low, high in (found for predicate in predicates for found in ranges(predicate)):
            source = sources.get(name, "")
            if types.get(source) in (("date",) if isinstance(low, date) else ("int", "long")):
                key = (scan.leaf, scan.version, tuple(sorted({each for _, each in scan.sources})), source, low, high)
                if key not in self._known:
                    self._known[key] = self._read(key, one)
                rows = self._known[key]
                if rows is not None:
                    return renamed(rows, scan.sources)
        return None

    def _read(self, key: _Key, one: Input) -> Ref | None:
        leaf, version, columns, source, low, high = key
        if (leaf, version) not in self._whole:
            self._whole[leaf, version] = self._all_of(one.pin.table, one.new if version == "new" else one.old)
        whole = self._whole[leaf, version]
        if whole is None:
            return None
        wanted = ValueRange(type="date" if isinstance(low, date) else "long", low=low, high=high, has_null=False)
        rows = self.changes.rows_within(whole, columns, (source, wanted))
        # Iceberg may skip the files of such rows in a full refresh.
        is_known = rows is not None and not has_skipped_value(rows, self.floats.get(leaf, {}))
        return self.supply(rows) if is_known else None

    def _all_of(self, table: TableState, snapshot_id: int) -> TableChange | None:
        """The files of a snapshot. None if they are many, or have rows that cannot be read here."""
        if not 0 < total(table, snapshot_id, "total-data-files") <= MAX_FILES:
            return None
        try:
            return self.changes.between(table, NO_SNAPSHOT, snapshot_id)
        except ChangeRefused:
            return None


def _filters(relation: Filter) -> tuple[list[exp.Expr], Relation]:
    """The predicates of filters above each other, from the top, and what is below."""
    predicates: list[exp.Expr] = []
    below: Relation = relation
    while isinstance(below, Filter):
        predicates.append(below.predicate)
        below = below.child
    return predicates, below


def ranges(predicate: exp.Expr) -> Iterator[tuple[str, Any, Any]]:
    """(column, smallest value, largest value) of each conjunct that requires a column to be in a range of integers or dates, as `bounds`
    writes it; NULL does not satisfy it."""
    for part in conjuncts(predicate):
        ends: Sequence[exp.Expr] = ()
        if isinstance(part, exp.In) and part.expressions and not set(part.args) - {"this", "expressions"}:
            ends = part.expressions
        elif isinstance(part, exp.Between):
            ends = (part.args["low"], part.args["high"])
        column, values = part.this, _values(ends)
        if isinstance(column, exp.Column) and values:
            yield column.name, min(values), max(values)


def _values(bounds: Sequence[exp.Expr]) -> list[Any]:
    """Empty if one is unknown, or they cannot be compared."""
    values = [_value(bound) for bound in bounds]
    return values if None not in values and len({type(value) for value in values}) == 1 else []


def _value(bound: exp.Expr) -> Any:
    """An int or a date; None for another constant than `bounds` writes."""
    if isinstance(bound, exp.Least | exp.Greatest):
        values = _values((bound.this, *bound.expressions))
        return (min if isinstance(bound, exp.Least) else max)(values) if values else None
    if not isinstance(bound, exp.Cast) or not isinstance(bound.this, exp.Literal):
        return None
    try:
        if bound.to.this in _NUMBERS:
            return int(bound.this.this)
        return date.fromisoformat(bound.this.this) if bound.to.this == exp.DType.DATE else None
    except ValueError:
        return None
