"""Question + plan for auxiliary views -> what refreshing the views and the query over them would cost, for the changes that were seen.

A view that does not exist yet is estimated as if it had the rows of the storage, if it has the groups of the query, or else as many rows as
are expected below its aggregate. What will change in a view is estimated from what changed below it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.incremental.algebra import (
    Aggregate,
    Distinct,
    Join,
    Limit,
    Relation,
    Scan,
    Sessions,
    SetOperation,
    Window,
    bottom_of,
    leaves,
    walk,
)
from mvbuild.incremental.choose import Question, cheapest_of
from mvbuild.incremental.column_pruning import pruned
from mvbuild.incremental.cost import Cost
from mvbuild.incremental.division import Cut, Division
from mvbuild.incremental.effort import Estimator
from mvbuild.incremental.fixed_costs import Steps
from mvbuild.incremental.hypothetical import guessed_types
from mvbuild.incremental.inputs import Input, Inputs, ReadChange, total
from mvbuild.incremental.kept_views import KeptInput, over
from mvbuild.incremental.key_ranges import Ranges
from mvbuild.incremental.shape import Shape
from mvbuild.incremental.sizes import Sizes, StorageSize, rows_that_differ
from mvbuild.incremental.strategies import COMPLETE
from mvbuild.ports.changes import ChangePart, FileGroup, Side, TableChange, ValueRange
from mvbuild.ports.states import TableState

MOST = 0.25
"""The largest share of the bytes of a query's tables that views of rows, and of the groups that these need, may have: with more, they are
hardly better than the tables."""
_GROUPS = (Aggregate, Distinct, Limit, Sessions, SetOperation, Window)
_EXPECTED = -2
"""In place of the earlier snapshot of a view, whose change is only expected."""


def cost_of_views(
    question: Question,
    storage: TableState,
    given: Inputs,
    division: Division,
    tables: Sequence[TableState | None],
    changes: Mapping[int, TableChange],
) -> Cost | None:
    """The cost of one refresh from auxiliary views; None if a view would be computed in full, or if they would copy much of the tables.
    `tables`: the views as they are."""
    kept: dict[int, KeptInput] = {}
    expected: dict[int, TableChange] = {}
    spent, size = Cost(bytes=0, rows=0), 0
    for cut, table in zip(division.cuts, tables, strict=True):
        held = _as_view(cut, table or _model(cut, division, over(given, kept, {}), question.read, storage))
        cost = _cost(question, held, given.timeless, cut.shape, kept, changes, expected)
        if cost is None:
            return None
        spent += cost
        rows = sum(rows_that_differ(change) for leaf, change in changes.items() if leaf in cut.reads)
        rows += sum(expected[leaf].rows for leaf in cut.reads if leaf in expected)
        size += total(held, held.current_snapshot_id, "total-files-size")
        kept[cut.leaf] = KeptInput(table=held, snapshot_id=held.current_snapshot_id or 0, uuid=held.uuid)
        if rows:
            expected[cut.leaf] = _change(held, rows)
    if any(cut.keys is not None for cut in division.cuts) and size > MOST * sum(one.bytes for one in given.inputs):
        return None
    outer = _cost(question, storage, given, division.shape, kept, changes, expected, may_compute_all=True)
    return None if outer is None else spent + outer


def least_seconds(root: Relation, changed: Set[int]) -> float:
    """About the least that a refresh from auxiliary views costs, however it is divided: one query for a view and one for the MV, with the
    groups of each, and the joins that changes go through before their rows are grouped. `changed`: the tables."""
    blocks = [list(_block(top)) for top in (root, *(child for node in walk(root) if isinstance(node, _GROUPS) for child in node.children))]
    of_changes = [block for block in blocks if any(isinstance(n, Scan) and n.leaf in changed for n in block)]
    joins = sum(isinstance(n, Join) for block in of_changes for n in block)
    return Steps(fetches=2, changes=len(changed) + 1, scans=joins, operators=joins + len(of_changes) + 1).seconds


def _block(relation: Relation) -> Iterator[Relation]:
    """Down to where rows are grouped or compared with others."""
    yield relation
    if not isinstance(relation, _GROUPS):
        for child in relation.children:
            yield from _block(child)


def _cost(
    question: Question,
    held: TableState,
    given: Inputs,
    shape: Shape,
    kept: Mapping[int, KeptInput],
    changes: Mapping[int, TableChange],
    expected: Mapping[int, TableChange],
    *,
    may_compute_all: bool = False,
) -> Cost | None:
    read = leaves(shape.root)
    since = {at: one.old for at, one in enumerate(given.inputs) if at in read} | dict.fromkeys(expected, _EXPECTED)
    inputs = over(given, kept, since)
    below = {leaf: change for leaf, change in changes.items() if leaf in read}
    below |= {leaf: change for leaf, change in expected.items() if leaf in read}
    if not below and not inputs.moved:
        return Cost(bytes=0, rows=0)
    asked = replace(question, has_children=True, read=_Expected(question.read))
    choice = cheapest_of(asked, held, inputs, shape, below)
    if not choice.is_incremental or (choice.strategy in COMPLETE and not may_compute_all):
        return None
    return choice.expected


def _model(cut: Cut, division: Division, given: Inputs, read: ReadChange, storage: TableState) -> TableState:
    """A table with about as many rows as the view will have."""
    outer = bottom_of(division.shape.root)
    if isinstance(outer, Scan) and outer.leaf == cut.leaf:
        # Each row of the storage is one of the view.
        return storage
    read_by_it: list[Input] = [one for leaf, one in enumerate(given.inputs) if leaf in cut.reads]
    largest = max(read_by_it, key=lambda one: one.rows, default=None)
    if largest is None:
        return storage
    sizes = Sizes(inputs=given.inputs, changes={}, storage=StorageSize(table=storage), read=read)
    # Over base tables: what conditions leave of these is expected of the views too.
    expected = Estimator(Ranges(sizes)).flow(pruned(_ungrouped(division.over_tables(cut.shape.root))), {}).rows
    if cut.keys is not None:
        # At most a group for each key.
        expected = min(expected, given.inputs[cut.keys].rows)
    elif (of_keys := _table_of_keys(bottom_of(division.over_tables(cut.shape.root)))) is not None:
        # At most a group for each row of the table that has the keys.
        expected = min(expected, given.inputs[of_keys].rows)
    return _with_rows(largest.pin.table, min(1.0, expected / max(largest.rows, 1)))


def _ungrouped(relation: Relation) -> Relation:
    """What is below its aggregate or window: how many groups there are, and how many rows the first of each, is unknown."""
    found = bottom_of(relation)
    return found.child if isinstance(found, Aggregate | Sessions | Window) else relation


def _table_of_keys(relation: Relation) -> int | None:
    """The number of the table that all keys of an aggregate are columns of."""
    if not isinstance(relation, Aggregate):
        return None
    scans = [node for node in walk(relation.child) if isinstance(node, Scan)]
    keys = {key.expression.name for key in relation.keys if isinstance(key.expression, exp.Column)}
    found = [scan.leaf for scan in scans if len(keys) == len(relation.keys) and keys and keys <= set(scan.columns)]
    return found[0] if found else None


def _with_rows(table: TableState, share: float) -> TableState:
    """The table as if it had this share of its rows."""
    snapshot = table.current_snapshot
    if snapshot is None:
        return table
    totals = {key: str(int(total(table, snapshot.snapshot_id, key) * share)) for key in ("total-records", "total-files-size")}
    fewer = replace(snapshot, summary={**snapshot.summary, **totals})
    return replace(table, snapshots={**table.snapshots, snapshot.snapshot_id: fewer})


def _as_view(cut: Cut, table: TableState) -> TableState:
    """With the columns of the view, and an identity of its own."""
    types = guessed_types(cut.shape)
    fields = [{"id": at, "name": name, "type": type_, "required": False} for at, (name, type_) in enumerate(types.items(), 1)]
    schema = {"type": "struct", "schema-id": 0, "fields": fields}
    return replace(
        table,
        uuid=f"auxiliary view {cut.leaf}",
        schemas={0: schema},
        current_schema_id=0,
        partition_by=(),
        sort_by=(),
        properties=_MERGE_ON_READ,
    )


_MERGE_ON_READ = {"write.delete.mode": "merge-on-read"}


def _change(table: TableState, rows: int) -> TableChange:
    """As many rows as changed below, in one file of the view."""
    held = total(table, table.current_snapshot_id, "total-records")
    size = total(table, table.current_snapshot_id, "total-files-size")
    some = min(rows, max(held, 1))
    share = FileGroup(files=1, rows=some, bytes=size * some // max(held, 1))
    part = ChangePart(
        old=_EXPECTED,
        new=table.current_snapshot_id or 0,
        added=share,
        removed=FileGroup(),
        altered=FileGroup(files=1, rows=some, bytes=share.bytes),
        only_deletes=True,
        had_deletes=False,
        deleted_rows=some,
        files=(),
    )
    return TableChange(table=table, old=part.old, new=part.new, parts=(part,), manifests_read=0, manifest_bytes_read=0)


@dataclass(frozen=True, slots=True)
class _Expected:
    """What is known of changes, without those that are only expected: these have no files."""

    read: ReadChange

    def __call__(self, table: TableState, old: int, new: int, /) -> TableChange:
        return self.read(table, old, new)

    def share(self, table: TableState, snapshot_id: int, column: str, wanted: ValueRange, /) -> float:
        return 1.0 if table.uuid.startswith("auxiliary view ") else self.read.share(table, snapshot_id, column, wanted)

    def range(self, change: TableChange, side: Side, column: str, /) -> ValueRange | None:
        return self.read.range(change, side, column) if change.old != _EXPECTED else None

    def reads_here(self, change: TableChange, columns: Sequence[str], /) -> bool:
        return change.old != _EXPECTED and self.read.reads_here(change, columns)

    def replaces_text(self, storage: TableState, /) -> bool:
        return self.read.replaces_text(storage)

    def irrelevant(self, shape: Shape, given: Inputs, changes: Mapping[int, TableChange], /) -> Mapping[int, str]:
        return self.read.irrelevant(shape, given, changes)
