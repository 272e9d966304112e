"""World + MV + record -> its query with a marker for every table, and each table then and now: the Inputs of a choice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Protocol

from mvbuild.dataclass import dataclass
from mvbuild.formats.record import RefreshRecord
from mvbuild.freshness.clock import columns_below, values_read
from mvbuild.freshness.expansion import expanded_sql
from mvbuild.freshness.leaves import node_inputs
from mvbuild.freshness.observed import Leaf, Pin, World
from mvbuild.freshness.states import recorded_states, states_without_reader
from mvbuild.graph.model import ModelNode
from mvbuild.incremental.algebra import Relation, Scan, walk
from mvbuild.incremental.building import LeafColumns
from mvbuild.incremental.clock import call
from mvbuild.incremental.column_pruning import pruned
from mvbuild.incremental.compared_columns import condition_columns, has_uuid
from mvbuild.incremental.from_clause import MARKER
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.shape import Shape, shape_of
from mvbuild.names import TableIdentifier
from mvbuild.parse.by_position import takes_columns_by_position
from mvbuild.parse.clock_reads import with_values
from mvbuild.ports.catalog import ChangeRefused
from mvbuild.ports.changes import Side, TableChange, ValueRange
from mvbuild.ports.states import Schema, TableState
from mvbuild.source import MappedText, Span
from mvbuild.storage.names import known_as
from mvbuild.storage.reads import recorded_reads
from mvbuild.storage.schema_difference import difference
from mvbuild.storage.schemas_read import REMOVED, recorded_schema_id


class ReadChange(Protocol):
    """`Catalog.change` with a cache, because many MVs read one table."""

    def __call__(self, table: TableState, old: int, new: int, /) -> TableChange: ...

    def share(self, table: TableState, snapshot_id: int, column: str, wanted: ValueRange, /) -> float:
        """The share of a table's rows in files that may have values in the range."""

    def range(self, change: TableChange, side: Side, column: str, /) -> ValueRange | None:
        """The range of a column in the rows that were added or removed, if metadata shows it."""

    def reads_here(self, change: TableChange, columns: Sequence[str], /) -> bool:
        """Whether its rows are read without an engine."""

    def replaces_text(self, storage: TableState, /) -> bool:
        """Whether a partition of a table may have another text than the query returned."""

    def irrelevant(self, shape: Shape, given: Inputs, changes: Mapping[int, TableChange], /) -> Mapping[int, str]:
        """The leaves whose changed rows cannot affect the query, each with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """A table that the query reads: `old` at the last refresh, and pinned now."""

    leaf: Leaf
    pin: Pin
    old: int
    recorded_schema: Schema | None = None
    """The schema with which it was read then, if it was recorded."""
    is_auxiliary_view: bool = False

    @property
    def new(self) -> int:
        return self.pin.snapshot_id

    @property
    def schema(self) -> Schema:
        """The schema with which it is read: its own for a version that the user chose, otherwise the current one."""
        return self.pin.table.schemas[self.pin.schema_id]

    @property
    def old_schema(self) -> Schema | None:
        """The schema with which it was read then: if none was recorded, that of the snapshot, provided that the table had no newer one."""
        if self.recorded_schema is not None and self.pin.follows_schema:
            return self.recorded_schema
        before = self.pin.table.snapshots.get(self.old)
        return self.pin.table.schemas.get(before.schema_id) if before is not None and before.schema_id is not None else None

    @property
    def has_same_schema(self) -> bool:
        """Whether it was read with the same schema then."""
        before = self.old_schema
        return before is not None and before.get("schema-id") == self.schema.get("schema-id")

    @property
    def bytes(self) -> int:
        return total(self.pin.table, self.new, "total-files-size")

    @property
    def rows(self) -> int:
        return total(self.pin.table, self.new, "total-records")


def total(table: TableState, snapshot_id: int | None, key: str) -> int:
    """A total in a snapshot's summary; 0 if it is missing."""
    snapshot = table.snapshots.get(snapshot_id) if snapshot_id is not None else None
    value = snapshot.summary.get(key, "") if snapshot else ""
    return int(value) if value.isdigit() else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """`text` has the marker of `inputs[n]` for the n-th table, and a call of `clock.CALL` for each reading of the clock."""

    text: MappedText
    inputs: tuple[Input, ...]
    clock: Mapping[str, str] = field(default_factory=dict)
    """What the query reads of the clock, by name."""
    clock_before: Mapping[str, str] = field(default_factory=dict)
    """What it read at the last refresh."""

    @property
    def moved(self) -> Mapping[str, str]:
        """The earlier values of what it reads of the clock, where they differ."""
        return {name: before for name, before in self.clock_before.items() if before != self.clock.get(name)}

    @property
    def timeless(self) -> Inputs:
        """For a part of the query that does not read the clock."""
        return replace(self, clock={}, clock_before={})

    @property
    def schemas(self) -> tuple[Schema, ...]:
        """The schemas with which the tables are read."""
        return tuple(one.schema for one in self.inputs)


def inputs_of(world: World, node: ModelNode, record: RefreshRecord, pins: Mapping[Leaf, Pin]) -> Inputs:
    """Raises Refused if the record does not contain the earlier state of a table."""
    _require_one_name(pins.values())
    storage = world.observed.table(node.storage)

    def input_of(leaf: Leaf) -> Input:
        found = pins[leaf]
        if not found.moves and states_without_reader(record, found, pins.values()):
            raise Refused("record-incomplete", f"the query now names a different version of {known_as(found.table)}")
        old = recorded_at(record, found, of_several=_is_one_of_several(found, pins.values()))
        recorded = recorded_schema_id(storage, found.table, found.ref, old) if storage is not None else None
        if recorded == REMOVED and found.follows_schema:
            raise Refused("column-changed", f"the schema by which {known_as(found.table)} was read no longer exists")
        return Input(leaf=leaf, pin=found, old=old, recorded_schema=found.table.schemas.get(recorded) if recorded is not None else None)

    found = marked(world, node, input_of)
    before = recorded_reads(storage) if storage is not None else {}
    if found.clock.keys() - before.keys():
        raise Refused("record-incomplete", "the record of the last refresh does not have the time that it read")
    return replace(found, clock_before={name: before[name] for name in found.clock})


def _require_one_name(pins: Iterable[Pin]) -> None:
    """Raise Refused if two tables have one UUID (`register_table`): a record may have one snapshot for both."""
    names: dict[str, TableIdentifier] = {}
    for found in pins:
        name = known_as(found.table)
        other = names.setdefault(found.table.uuid, name) if found.table.uuid else name
        if other != name:
            raise Refused("record-incomplete", f"{other} and {name} have the same UUID, which identifies tables in a record")


def _is_one_of_several(found: Pin, pins: Iterable[Pin]) -> bool:
    """Whether the query also reads the table at other branches, tags or versions."""
    return len({(one.ref, one.moves, one.moves or one.snapshot_id) for one in pins if one.table.uuid == found.table.uuid}) > 1


def marked(world: World, node: ModelNode, input_of: Callable[[Leaf], Input]) -> Inputs:
    """The expanded query with a marker for every table."""
    below = node_inputs(world.graph, node)
    leaves = below.leaves
    numbers = {leaf: at for at, leaf in enumerate(leaves)}
    text = expanded_sql(world.graph, node.query, node.reads, lambda leaf: f"`{MARKER}{numbers[leaf]}`")
    clock = values_read(world, node)
    if clock:
        text = with_values(text, clock, columns_below(world, below), call)
    return Inputs(text=text, inputs=tuple(input_of(leaf) for leaf in leaves), clock=clock)


def recorded_at(record: RefreshRecord, found: Pin, *, of_several: bool = False) -> int:
    """The snapshot of a table that the last refresh read. Raises Refused if the record does not contain it. `of_several`: the query reads
    the table at several branches, tags or versions, so a state of another one does not count."""
    name = known_as(found.table)
    if record.incomplete:
        raise Refused("record-incomplete", "the record of the last refresh does not name every table")
    states = recorded_states(record, found)
    if not states:
        named = any((t.namespace, t.name) == (name.namespace, name.name) for t in record.base_tables)
        code = "source-recreated" if named else "record-incomplete"
        what = "was dropped and recreated" if named else "is not in the record of the last refresh"
        raise Refused(code, f"{name} {what}")
    if not found.moves:
        same = [t for t in states if t.snapshot_id == found.snapshot_id]
        if not same:
            raise Refused("record-incomplete", f"the record does not have the version of {name} that the query names")
        return found.snapshot_id
    if of_several and states[0].ref != found.ref:
        raise Refused("record-incomplete", f"the record does not say at which snapshot {found.ref or 'main'} of {name} was read")
    return states[0].snapshot_id


def shape_of_inputs(given: Inputs, outputs: Iterable[str] | None) -> Shape:
    """The query's shape over its tables' columns. Raises Refused if it has none, or if the query compares UUIDs."""
    shape = shape_of(given.text.text, [_columns(one.schema) for one in given.inputs], None if outputs is None else list(outputs))
    for leaf, names in condition_columns(shape.root).items():
        fields = given.inputs[leaf].schema["fields"] if leaf < len(given.inputs) else ()
        found = next((field["name"] for field in fields if field["name"] in names and has_uuid(field["type"])), None)
        if found is not None:
            message = f"column {found} of {known_as(given.inputs[leaf].pin.table)} is a UUID, and conditions on one may miss rows"
            raise Refused("uuid-compared", message)
    return shape


def _columns(schema: Schema) -> LeafColumns:
    fields = schema["fields"]
    required = frozenset(f["name"] for f in fields if f.get("required"))
    return LeafColumns.of_iceberg({f["name"]: f["type"] for f in fields}, required)


def changes_of(given: Inputs, shape: Shape, read: ReadChange) -> dict[int, TableChange]:
    """What changed, by leaf; tables without any change are omitted. Raises Refused if a change cannot be determined."""
    used = columns_read(shape.root)
    found = {}
    for at, one in enumerate(given.inputs):
        if one.old == one.new:
            continue
        _require_same_columns(one, used.get(at, frozenset()), given.text.text)
        try:
            change = read(one.pin.table, one.old, one.new)
        except ChangeRefused as exc:
            raise Refused(exc.code, str(exc)) from exc
        if not change.is_empty:
            found[at] = change
    return found


def columns_read(root: Relation) -> dict[int, frozenset[str]]:
    """Leaf -> its columns that the query uses."""
    found: dict[int, frozenset[str]] = {}
    for node in walk(pruned(root)):
        if isinstance(node, Scan):
            found[node.leaf] = found.get(node.leaf, frozenset()) | {source for _, source in node.sources}
    return found


def _require_same_columns(one: Input, used: frozenset[str], sql: str) -> None:
    """A column means the same at both snapshots if it has the same field id, name and type and, where columns are taken by position, the
    same position. A new column's name meant something else before: a column of another table, or an alias. The rows from before are read
    under the schema of now, and Spark relies on it where it allows no NULL."""
    _require_current_schema(one)
    before = one.old_schema
    changed = difference(before, one.schema) if before is not None and before is not one.schema else None
    if changed is None:
        return
    names, table = {path[0].lower() for path in changed.columns}, known_as(one.pin.table)
    required = {path[0].lower() for path in changed.required}
    for name in sorted(used):
        if name.lower() in names:
            raise Refused("column-changed", f"column {name} of {table} is now a different column, or has another type")
        if name.lower() in required:
            raise Refused("column-changed", f"column {name} of {table} could be NULL before, and cannot be now")
    if changed.moved and takes_columns_by_position(sql):
        raise Refused("column-changed", f"the columns of {table} have another order")


def _require_current_schema(one: Input) -> None:
    """A change is read under the current schema of the table, but a tag under that of its snapshot."""
    ids = (s.schema_id for id in (one.old, one.new) if (s := one.pin.table.snapshots.get(id)) is not None)
    if not one.pin.follows_schema and any(id not in (None, one.pin.table.current_schema_id) for id in ids):
        raise Refused("column-changed", f"the schema of {known_as(one.pin.table)} differs from that of the version that the query names")


def span_of(text: MappedText, refused: Refused) -> Span | None:
    """The operator that was refused, where the user wrote it."""
    found = list(_spans(text, refused))
    if not found:
        return None
    start, end = min(start for start, _ in found), max(end for _, end in found)
    return text.span(start, _closed(text.text, start, end))


def _closed(text: str, start: int, end: int) -> int:
    """The end, after the parentheses that are open there."""
    depth = text.count("(", start, end) - text.count(")", start, end)
    while depth > 0 and text[end:].lstrip().startswith(")"):
        end, depth = text.index(")", end) + 1, depth - 1
    return end


def _spans(text: MappedText, refused: Refused) -> Iterator[tuple[int, int]]:
    """Offsets of the identifiers below the refused operator in the text."""
    for node in refused.node.walk() if refused.node is not None else ():
        if "start" in node.meta and "end" in node.meta and node.meta["end"] < len(text.text):
            yield node.meta["start"], node.meta["end"] + 1
