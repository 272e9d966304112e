"""World + MV + record -> its query with a marker for every table, and what each table was and is: the Inputs of a choice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from mvbuild.formats.record import RefreshRecord
from mvbuild.freshness.expansion import expanded_sql
from mvbuild.freshness.leaves import node_inputs
from mvbuild.freshness.observed import Leaf, Pin, World
from mvbuild.freshness.pins import known_as
from mvbuild.graph.model import ModelNode
from mvbuild.incremental.algebra import Relation, Scan, walk
from mvbuild.incremental.kinds import of_iceberg
from mvbuild.incremental.prune import pruned
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.shape import MARKER, LeafColumns, Shape, shape_of
from mvbuild.ports.catalog import ChangeRefused, Schema, Side, TableChange, TableState, ValueRange
from mvbuild.source import MappedText, Span


class ReadChange(Protocol):
    """`Catalog.change`, each answer kept: many MVs read one table."""

    def __call__(self, table: TableState, old: int, new: int, /) -> TableChange: ...

    def share(self, table: TableState, snapshot_id: int, column: str, wanted: ValueRange, /) -> float:
        """Of a table's rows, those in files that may have values in the range."""

    def range(self, change: TableChange, side: Side, column: str, /) -> ValueRange | None:
        """Of a column in the rows that came or went, where metadata tells it."""

    def irrelevant(self, shape: Shape, given: Inputs, changes: Mapping[int, TableChange], /) -> Mapping[int, str]:
        """The leaves none of whose changed rows can matter to the query, each with why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """A table that the query reads: at `old` when it was refreshed last, and pinned now."""

    leaf: Leaf
    pin: Pin
    old: int

    @property
    def new(self) -> int:
        return self.pin.snapshot_id

    @property
    def schema(self) -> Schema:
        """With which it is read: its own of a version that the user chose, else the current one."""
        snapshot = self.pin.table.snapshots.get(self.new)
        if self.leaf.travel is None or snapshot is None or snapshot.schema_id is None:
            return self.pin.table.schema
        return self.pin.table.schemas[snapshot.schema_id]

    @property
    def has_same_schema(self) -> bool:
        """Whether it was read with the same schema then."""
        before = self.pin.table.snapshots.get(self.old)
        return before is not None and before.schema_id is not None and before.schema_id == self.schema.get("schema-id")

    @property
    def bytes(self) -> int:
        return total(self.pin.table, self.new, "total-files-size")

    @property
    def rows(self) -> int:
        return total(self.pin.table, self.new, "total-records")


def total(table: TableState, snapshot_id: int | None, key: str) -> int:
    """A total of a snapshot's summary; 0 where it is not told."""
    snapshot = table.snapshots.get(snapshot_id) if snapshot_id is not None else None
    value = snapshot.summary.get(key, "") if snapshot else ""
    return int(value) if value.isdigit() else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """`text` has the marker of `inputs[n]` for the n-th table."""

    text: MappedText
    inputs: tuple[Input, ...]


def inputs_of(world: World, node: ModelNode, record: RefreshRecord, pins: Mapping[Leaf, Pin]) -> Inputs:
    """Refused where the record does not tell what a table was."""
    return marked(world, node, lambda leaf: Input(leaf=leaf, pin=pins[leaf], old=recorded_at(record, pins[leaf])))


def marked(world: World, node: ModelNode, input_of: Callable[[Leaf], Input]) -> Inputs:
    """The expanded query with a marker for every table."""
    leaves = node_inputs(world.graph, node).leaves
    numbers = {leaf: at for at, leaf in enumerate(leaves)}
    text = expanded_sql(world.graph, node.query, node.reads, lambda leaf: f"`{MARKER}{numbers[leaf]}`")
    return Inputs(text=text, inputs=tuple(input_of(leaf) for leaf in leaves))


def recorded_at(record: RefreshRecord, found: Pin) -> int:
    """The snapshot of a table that the last refresh read; Refused where the record does not tell."""
    name = known_as(found.table)
    if record.incomplete:
        raise Refused("record-incomplete", "the record of the last refresh does not name every table")
    states = record.of_table(found.table.uuid, name.namespace, name.name)
    if not states:
        named = any((t.namespace, t.name) == (name.namespace, name.name) for t in record.base_tables)
        code = "source-recreated" if named else "record-incomplete"
        what = "was dropped and created again" if named else "is not in the record of the last refresh"
        raise Refused(code, f"{name} {what}")
    if not found.moves:
        same = [t for t in states if t.snapshot_id == found.snapshot_id]
        if not same:
            raise Refused("record-incomplete", f"the record does not have the version of {name} that the query names")
        return found.snapshot_id
    return next((t.snapshot_id for t in states if t.ref == found.ref), states[0].snapshot_id)


def shape_of_inputs(given: Inputs, outputs: Iterable[str] | None) -> Shape:
    """The query's shape over its tables' columns."""
    return shape_of(given.text.text, [_columns(one.schema) for one in given.inputs], None if outputs is None else list(outputs))


def _columns(schema: Schema) -> LeafColumns:
    fields = schema["fields"]
    required = frozenset(f["name"] for f in fields if f.get("required"))
    return LeafColumns(kinds={f["name"]: of_iceberg(f["type"]) for f in fields}, required=required)


def changes_of(given: Inputs, shape: Shape, read: ReadChange) -> dict[int, TableChange]:
    """What changed, by leaf; tables without any change are left out. Refused where it cannot be told."""
    used = columns_read(shape.root)
    found = {}
    for at, one in enumerate(given.inputs):
        if one.old == one.new:
            continue
        _require_same_columns(one, used.get(at, frozenset()))
        try:
            change = read(one.pin.table, one.old, one.new)
        except ChangeRefused as exc:
            raise Refused(exc.code, str(exc)) from exc
        if not change.is_empty:
            found[at] = change
    return found


def columns_read(root: Relation) -> dict[int, frozenset[str]]:
    """Leaf -> the columns of it that matter."""
    found: dict[int, frozenset[str]] = {}
    for node in walk(pruned(root)):
        if isinstance(node, Scan):
            found[node.leaf] = found.get(node.leaf, frozenset()) | {source for _, source in node.sources}
    return found


def _require_same_columns(one: Input, used: frozenset[str]) -> None:
    """A column means the same at both snapshots if it has one field id and one type."""
    snapshot = one.pin.table.snapshots.get(one.old)
    before = one.pin.table.schemas.get(snapshot.schema_id) if snapshot and snapshot.schema_id is not None else None
    if before is None or before is one.schema:
        return
    was, by_id = {f["name"]: f for f in before["fields"]}, {f["id"]: f for f in before["fields"]}
    for field in one.schema["fields"]:
        if field["name"] not in used:
            continue
        old = by_id.get(field["id"])
        if (old is None and field["name"] in was) or (old is not None and _type(old["type"]) != _type(field["type"])):
            raise Refused("column-changed", f"column {field['name']} of {known_as(one.pin.table)} is another one, or has another type")


def _type(type_: Any) -> Any:
    return str(type_).replace(" ", "")


def span_of(text: MappedText, refused: Refused) -> Span | None:
    """The operator that was refused, where the user wrote it."""
    found = list(_spans(text, refused))
    if not found:
        return None
    start, end = min(start for start, _ in found), max(end for _, end in found)
    return text.span(start, _closed(text.text, start, end))


def _closed(text: str, start: int, end: int) -> int:
    """The end, behind the parentheses that are open there."""
    depth = text.count("(", start, end) - text.count(")", start, end)
    while depth > 0 and text[end:].lstrip().startswith(")"):
        end, depth = text.index(")", end) + 1, depth - 1
    return end


def _spans(text: MappedText, refused: Refused) -> Iterator[tuple[int, int]]:
    """Offsets in the text of the identifiers below the operator that was refused."""
    for node in refused.node.walk() if refused.node is not None else ():
        if "start" in node.meta and "end" in node.meta and node.meta["end"] < len(text.text):
            yield node.meta["start"], node.meta["end"] + 1
