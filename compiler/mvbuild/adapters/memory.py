"""nothing -> Catalog: a catalog in memory that behaves like the SQL catalogs, for fast tests; thread-safe."""

from __future__ import annotations

import operator
import threading
from collections import Counter
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from mvbuild.adapters.iceberg import tables
from mvbuild.adapters.iceberg.catalog import MetadataCatalog
from mvbuild.adapters.iceberg.change_tables import PartFiles
from mvbuild.adapters.iceberg.data import column_names
from mvbuild.adapters.iceberg.metadata import Raw, current_schema, current_snapshot_id
from mvbuild.adapters.iceberg.metadata_changes import MetadataChanges
from mvbuild.adapters.iceberg.pointer_publisher import PointerPublisher
from mvbuild.adapters.iceberg.pointers import PlacedInWarehouse, levels
from mvbuild.adapters.iceberg.publish import publish, table_edit
from mvbuild.adapters.iceberg.subset import with_snapshot
from mvbuild.ports.catalog import CatalogError
from mvbuild.ports.changes import AnyOf, ChangePart, FileGroup, NetRows, Operator, Predicate, RowChange, Side, TableChange, ValueRange
from mvbuild.ports.states import TableState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mvbuild.adapters.iceberg.change_tables import Subset
    from mvbuild.adapters.iceberg.entries import Entry
    from mvbuild.adapters.iceberg.pointers import Key, Kind, Swap
    from mvbuild.names import TableIdentifier


class MemoryCatalog(MetadataCatalog):
    """Two `MemoryCatalog`s share nothing. `append_snapshot` acts as a writer other than mvbuild."""

    def __init__(self, name: str = "memory") -> None:
        self._pointers, self._files, self._held = _MemoryPointers(), _MemoryFiles(), _Held()
        publisher = PointerPublisher(name=name, pointers=self._pointers, files=self._files, data=self._held)
        super().__init__(publisher, _MemoryChanges)

    def append_snapshot(
        self,
        identifier: TableIdentifier,
        columns: Mapping[str, Sequence[Any]] | None = None,
        *,
        branch: str = "main",
        operation: str = "append",
        summary: Mapping[str, str] | None = None,
    ) -> TableState:
        """Add a snapshot to a branch, as another engine would. `columns` are its whole content; None keeps the content."""

        def make(current: Entry | None) -> Raw:
            if current is None or current.kind != "TABLE":
                raise CatalogError(f"Unknown table {identifier}.")
            raw = current.raw
            head = (raw.get("refs") or {}).get(branch, {}).get("snapshot-id")
            content = self._held.columns(head) if columns is None else columns
            snapshot = self._held.snapshot(raw, content, parent=head, summary={"operation": operation, **(summary or {})})
            if branch != "main":
                return tables.with_branch(raw, branch, snapshot)
            return tables.with_main(tables.with_snapshots(raw, [snapshot], None), snapshot["snapshot-id"], identifier)

        with self._guard():
            publish(self._pointers, self._files, [table_edit(identifier, make)])
        found = self.load([identifier])[identifier]
        assert isinstance(found, TableState)
        return found


class _MemoryPointers(PlacedInWarehouse):
    has_views = True
    atomic = True

    def __init__(self) -> None:
        super().__init__("memory:/")
        self._lock = threading.Lock()
        self._found: dict[Key, tuple[str, Kind]] = {}
        self._namespaces: set[str] = set()

    def find(self, keys: Iterable[Key]) -> dict[Key, tuple[str, Kind]]:
        with self._lock:
            return {key: self._found[key] for key in keys if key in self._found}

    def names(self, namespace: str) -> list[Key]:
        with self._lock:
            return sorted(key for key in self._found if key[0] == namespace)

    def views(self) -> list[Key]:
        with self._lock:
            return [key for key, (_, kind) in self._found.items() if kind == "VIEW"]

    def in_use(self, location: str) -> bool:
        with self._lock:
            return any(found.startswith(f"{location}/metadata/") for found, _ in self._found.values())

    def swap(self, swaps: Sequence[Swap]) -> bool:
        with self._lock:
            if any(self._found.get(swap.key, (None, swap.kind))[0] != swap.old for swap in swaps):
                return False
            for swap in swaps:
                if swap.new is None:
                    del self._found[swap.key]
                else:
                    self._found[swap.key] = (swap.new, swap.kind)
            return True

    def delete(self, key: Key, location: str) -> bool:
        with self._lock:
            if self._found.get(key, ("", "TABLE"))[0] != location:
                return False
            del self._found[key]
            return True

    def has_namespace(self, namespace: str) -> bool:
        with self._lock:
            known = self._namespaces | {of for of, _ in self._found}
        return any(one == namespace or one.startswith(f"{namespace}.") for one in known)

    def add_namespace(self, namespace: str) -> None:
        with self._lock:
            self._namespaces.update(levels(namespace))


class _MemoryFiles:
    """Contents are bytes, so that callers cannot change each other's data."""

    def __init__(self) -> None:
        self._contents: dict[str, tuple[bytes, int]] = {}

    def read(self, location: str) -> bytes:
        if location not in self._contents:
            raise FileNotFoundError(location)
        return self._contents[location][0]

    def read_all(self, locations: list[str]) -> list[bytes | Exception]:
        held = self._contents
        return [held[location][0] if location in held else FileNotFoundError(location) for location in locations]

    def stamp(self, location: str) -> str | None:
        found = self._contents.get(location)
        return f"{location} {sha256(found[0]).hexdigest()}" if found is not None else None

    def write(self, location: str, content: bytes) -> None:
        self._contents[location] = (content, tables.now_ms())

    def delete(self, location: str) -> None:
        self._contents.pop(location, None)

    def delete_all(self, locations: list[str]) -> int:
        return sum(self._contents.pop(location, None) is not None for location in locations)

    def below(self, location: str) -> list[tuple[str, int]]:
        folder = location.rstrip("/") + "/"
        return [(found, at) for found, (_, at) in list(self._contents.items()) if found.startswith(folder)]

    def spelled(self, location: str) -> str:
        return location


class _Held:
    """The rows of each snapshot, by its id."""

    def __init__(self) -> None:
        self._columns: dict[int, dict[str, list[Any]]] = {}

    def columns(self, snapshot_id: int | None) -> Mapping[str, Sequence[Any]]:
        return self._columns.get(snapshot_id, {}) if snapshot_id is not None else {}

    def snapshot(self, raw: Raw, columns: Mapping[str, Sequence[Any]], *, parent: int | None, summary: Mapping[str, str]) -> Raw:
        snapshot_id = tables.new_snapshot_id()
        self._columns[snapshot_id] = {name: list(values) for name, values in columns.items()}
        snapshot = tables.empty_snapshot(raw, f"memory:/snap-{snapshot_id}.avro", snapshot_id)
        height = max((len(values) for values in columns.values()), default=0)
        snapshot["summary"] = {**snapshot["summary"], "total-records": str(height), **summary}
        return snapshot if parent is None else {**snapshot, "parent-snapshot-id": parent}

    def empty_manifest_list(self, location: str, raw: Raw, snapshot_id: int) -> None:  # noqa: ARG002
        self._columns[snapshot_id] = {}

    def repeated_manifest_list(self, location: str, raw: Raw, snapshot_id: int) -> str | None:
        self._columns[snapshot_id] = dict(self._columns.get(current_snapshot_id(raw) or 0, {}))
        return location

    def change(self, raw: Raw, table: TableState, old: int, new: int) -> TableChange:  # noqa: ARG002
        names = [field["name"] for field in table.schema["fields"]]
        before, after = (Counter(self._rows(snapshot_id, names)) for snapshot_id in (old, new))
        removed, added = tuple((before - after).elements()), tuple((after - before).elements())
        part = ChangePart(
            old=old,
            new=new,
            added=_group(added),
            removed=_group(removed),
            altered=FileGroup(),
            only_deletes=True,
            had_deletes=False,
            deleted_rows=0,
            files=PartFiles(added=added, removed=removed),
        )
        parts = (part,) if added or removed else ()
        return TableChange(table=table, old=old, new=new, parts=parts, manifests_read=0, manifest_bytes_read=0)

    def net_rows(self, raw: Raw, change: TableChange, columns: Sequence[str]) -> NetRows | None:  # noqa: ARG002
        return None

    def rows_within(self, raw: Raw, change: TableChange, columns: Sequence[str], wanted: tuple[str, ValueRange]) -> Any | None:  # noqa: ARG002
        return None

    def positions(self, raw: Raw, snapshot_id: int | None, minus: Any, plus: Any) -> RowChange | None:  # noqa: ARG002
        return None

    def stored_rows(self, raw: Raw, snapshot_id: int | None) -> Any | None:  # noqa: ARG002
        return None

    def row_change(self, raw: Raw, head: Raw, change: RowChange, summary: Mapping[str, str]) -> Raw | None:  # noqa: ARG002
        return None

    def with_subset(self, pinned: Raw, subset: Subset) -> Raw:
        names = [field["name"] for field in current_schema(pinned)["fields"]]
        snapshot_id = tables.new_snapshot_id()
        self._columns[snapshot_id] = {name: [row[at] for row in subset.files] for at, name in enumerate(names)}
        main = {**pinned["refs"]["main"], "snapshot-id": snapshot_id}
        changed = with_snapshot(pinned, subset, {"snapshot-id": snapshot_id})
        return {**changed, "current-snapshot-id": snapshot_id, "refs": {"main": main}, "snapshot-log": []}

    def reached(self, raw: Raw) -> set[str]:
        return {snapshot["manifest-list"] for snapshot in raw.get("snapshots") or ()}

    def overwrite(self, raw: Raw, columns: Mapping[str, Sequence[Any]]) -> Raw:
        unknown = set(columns) - {field["name"] for field in current_schema(raw)["fields"]}
        if unknown:
            raise CatalogError(f"The table has no column '{min(unknown)}'.")
        parent = current_snapshot_id(raw)
        return self.snapshot(raw, columns, parent=parent, summary={"operation": "append" if parent is None else "overwrite"})

    def rows(
        self,
        raw: Raw,
        location: str,  # noqa: ARG002
        limit: int,
        snapshot_id: int | None,
    ) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        names = column_names(raw, snapshot_id)
        return names, self._rows(current_snapshot_id(raw) if snapshot_id is None else snapshot_id, names)[:limit]

    def _rows(self, snapshot_id: int | None, names: Sequence[str]) -> list[tuple[Any, ...]]:
        held = self.columns(snapshot_id)
        height = max((len(values) for values in held.values()), default=0)
        return list(zip(*[held.get(name, [None] * height) for name in names], strict=True))


class _MemoryChanges(MetadataChanges):
    """Questions about a change, answered from its rows."""

    def may_match(self, change: TableChange, conjunctions: Sequence[tuple[Predicate, ...]]) -> bool:
        rows = [row for part in change.parts for row in (*part.files.added, *part.files.removed)]
        return any(self._meets_any(change, rows, predicates) for predicates in conjunctions)

    def _meets_any(self, change: TableChange, rows: Sequence[Sequence[Any]], predicates: Sequence[Predicate]) -> bool:
        names = [field["name"] for field in change.table.schema["fields"]]
        return any(meets_all(dict(zip(names, row, strict=True)), predicates) for row in rows)

    def has_replaced_text(self, change: TableChange) -> bool:  # noqa: ARG002
        return False

    def matching(self, change: TableChange, predicates: Sequence[Predicate]) -> FileGroup:
        groups = (part.added for part in change.parts if self._meets_any(change, part.files.added, predicates))
        return sum(groups, FileGroup())

    def value_ranges(self, change: TableChange, side: Side, columns: Iterable[str]) -> Mapping[str, ValueRange]:
        fields = {field["name"]: (at, field["type"]) for at, field in enumerate(change.table.schema["fields"])}
        rows = [row for part in change.parts for row in (part.files.added if side == "plus" else part.files.removed)]
        found = {}
        for at, type_ in (fields[name] for name in columns if name in fields):
            if type_ in ("int", "long", "date", "string") or type_.startswith("decimal"):
                values = [row[at] for row in rows if row[at] is not None]
                low, high = (min(values), max(values)) if values else (None, None)
                name = change.table.schema["fields"][at]["name"]
                found[name] = ValueRange(type=type_, low=low, high=high, has_null=len(values) < len(rows))
        return found

    def reads_here(self, change: TableChange, columns: Sequence[str]) -> bool:  # noqa: ARG002
        return False


def meets_all(row: Mapping[str, Any], predicates: Iterable[Predicate]) -> bool:
    return all(_meets(row, predicate) for predicate in predicates)


def _meets(row: Mapping[str, Any], predicate: Predicate) -> bool:
    if isinstance(predicate, AnyOf):
        return any(meets_all(row, branch) for branch in predicate.branches)
    found, value = row[predicate.column], predicate.value
    if predicate.operator == "is null":
        return found is None
    return found is not None and _MEETS[predicate.operator](found, value)


_MEETS: Mapping[Operator, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "is not null": lambda found, value: True,  # noqa: ARG005
    "in": lambda found, value: found in value,
    "starts with": lambda found, value: bool(found.startswith(value)),
}


def _group(rows: Sequence[object]) -> FileGroup:
    """As if all rows were in one file, of one byte each."""
    return FileGroup(files=min(1, len(rows)), rows=len(rows), bytes=len(rows))
