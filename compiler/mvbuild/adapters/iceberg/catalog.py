"""pointers + metadata files + data files -> Catalog: the catalog port for SQL catalogs, file-system warehouses, and memory."""

from __future__ import annotations

import uuid
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, cast

from mvbuild.adapters.iceberg import scratch as scratches
from mvbuild.adapters.iceberg import tables
from mvbuild.adapters.iceberg.branch_files import NAMESPACE as BRANCHES
from mvbuild.adapters.iceberg.branch_files import BranchFiles, BranchPointers
from mvbuild.adapters.iceberg.change_tables import require_change, stage
from mvbuild.adapters.iceberg.edits import Editor, table_of
from mvbuild.adapters.iceberg.entries import Entry, key, read_entries, read_states, read_table, state, storage_metadata
from mvbuild.adapters.iceberg.failures import Translator
from mvbuild.adapters.iceberg.folders import folder
from mvbuild.adapters.iceberg.layout import with_layout
from mvbuild.adapters.iceberg.metadata import Raw, current_snapshot_id, serialize, table_state
from mvbuild.adapters.iceberg.pointers import numbered
from mvbuild.adapters.iceberg.publish import MV_FILE, publish, table_edit
from mvbuild.adapters.iceberg.table_commits import committed
from mvbuild.names import TableIdentifier
from mvbuild.ports.catalog import AlreadyExists, CatalogError, CommitConflict
from mvbuild.ports.commits import TableCommit, TableLayout
from mvbuild.ports.states import State, TableState, Unreadable, ViewState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mvbuild.adapters.iceberg.change_tables import Subset
    from mvbuild.adapters.iceberg.files import Files
    from mvbuild.adapters.iceberg.pointers import Pointers
    from mvbuild.ports.changes import FileGroup, NetRows, Predicate, Side, StagedChange, TableChange, ValueRange
    from mvbuild.ports.commits import Change

_DELETE_TRIES = 12


class Data(Protocol):
    """The content of tables, as opposed to their metadata."""

    def empty_manifest_list(self, location: str, raw: Raw, snapshot_id: int) -> None:
        """Write the manifest list of a snapshot without files to `location`."""

    def repeated_manifest_list(self, location: str, raw: Raw, snapshot_id: int) -> str | None:
        """Write another manifest list with the files of the current snapshot; None for a snapshot of format 1 without a manifest list."""

    def overwrite(self, raw: Raw, columns: Mapping[str, Sequence[Any]]) -> Raw:
        """Write the files of a snapshot whose content is `columns`, on top of the current one; returns its JSON."""

    def rows(self, raw: Raw, location: str, limit: int, snapshot_id: int | None) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """Column names and rows of the current snapshot, or of another under its own schema."""

    def change(self, raw: Raw, table: TableState, old: int, new: int) -> TableChange:
        """The difference between two snapshots."""

    def may_match(self, change: TableChange, conjunctions: Sequence[tuple[Predicate, ...]]) -> bool:
        """Whether a row of the change can satisfy one of the conjunctions."""

    def matching(self, change: TableChange, predicates: Sequence[Predicate]) -> FileGroup:
        """The added files in which a row can satisfy all predicates."""

    def value_ranges(self, change: TableChange, side: Side, columns: Iterable[str]) -> Mapping[str, ValueRange]:
        """The ranges of columns in the rows that were added or removed."""

    def compares(self, change: TableChange, columns: Sequence[str]) -> bool:
        """Whether the columns of both sides of a change can be read and compared here."""

    def net_rows(self, raw: Raw, change: TableChange, columns: Sequence[str]) -> NetRows | None:
        """The rows of a change that are not on both sides."""

    def with_subset(self, pinned: Raw, subset: Subset) -> Raw:
        """The metadata of a scratch table that has only some files of its snapshot; writes new manifests."""

    def reached(self, raw: Raw) -> set[str]:
        """Manifest lists, manifests, data and delete files of all snapshots, and statistics."""


class MetadataCatalog:
    """A catalog whose tables and views are metadata files and whose commits move pointers to them."""

    def __init__(
        self,
        *,
        name: str,
        pointers: Pointers,
        files: Files,
        data: Data,
        warehouse: str,
        translator: Translator | None = None,
        folder: Callable[[str], str] = folder,
    ) -> None:
        self.name = name
        self.atomic = pointers.atomic
        self.has_views = pointers.has_views
        self._pointers = pointers
        self._files = files
        self._data = data
        self._warehouse = warehouse.rstrip("/")
        self._folder = folder
        self._guard = (translator or Translator(name, {})).guard
        self._editor = self._new_editor(pointers, files)

    @property
    def has_branches(self) -> bool:
        # Without views, every MV is one file with one state.
        return self.has_views

    def on_branch(self, branch: str) -> MetadataCatalog:
        if not self.has_branches:
            raise CatalogError(f"Catalog '{self.name}' has no views, so it cannot have branches of MVs: '{branch}' cannot be used on it.")
        found = copy(self)
        found._pointers = cast("Pointers", BranchPointers(self._pointers, branch))
        found._files = cast("Files", BranchFiles(self._files, branch))
        found._editor = self._new_editor(found._pointers, found._files)
        return found

    def load(self, identifiers: Iterable[TableIdentifier]) -> Mapping[TableIdentifier, State]:
        wanted = [identifier for identifier in identifiers if identifier.catalog == self.name and identifier.namespace]
        with self._guard():
            found = self._pointers.find(key(identifier) for identifier in wanted)
            present = [(identifier, *at) for identifier in dict.fromkeys(wanted) if (at := found.get(key(identifier)))]
            missing = [identifier for identifier in dict.fromkeys(wanted) if key(identifier) not in found]
            foreign = self._pointers.foreign([key(identifier) for identifier in missing]) if missing else {}
            others = {i: _not_ours(i, foreign[key(i)]) for i in missing if key(i) in foreign}
            return {**dict(read_states(self._files, present)), **others}

    def list_names(self, namespace: tuple[str, ...]) -> tuple[TableIdentifier, ...]:
        with self._guard():
            names = self._pointers.names(".".join(namespace))
        return tuple(TableIdentifier(self.name, namespace, name) for name in names)

    def list_views(self) -> tuple[TableIdentifier, ...]:
        with self._guard():
            found = self._pointers.views()
        views = (TableIdentifier(self.name, tuple(namespace.split(".")), name) for namespace, name in found)
        return tuple(sorted(view for view in views if view.namespace[0] not in (scratches.FOLDER, BRANCHES)))

    def ensure_namespace(self, namespace: tuple[str, ...]) -> None:
        with self._guard():
            for level in range(1, len(namespace) + 1):
                self._pointers.add_namespace(".".join(namespace[:level]))

    def create_table(self, identifier: TableIdentifier, layout: TableLayout, properties: Mapping[str, str]) -> TableState:
        with self._guard():
            self._editor.require_namespace(identifier)
            raw = tables.new_table(self._location(identifier), layout, properties)
            return self._create(identifier, raw)

    def create_branch(self, table: TableState, branch: str) -> TableState:
        def make(current: Entry | None) -> Raw:
            raw = table_of(table.identifier, current)
            tables.check(raw, table.identifier, table.uuid, table.current_snapshot_id)
            return tables.with_branch(raw, branch, None if table.current_snapshot_id is not None else self._empty_snapshot(raw))

        with self._guard():
            return self._edit_table(table.identifier, make)

    def new_storage(self, view: TableIdentifier, layout: TableLayout, properties: Mapping[str, str]) -> TableState:
        with self._guard():
            raw = tables.new_table(self._location(view), layout, properties)
            location = numbered(tables.metadata_folder(raw), None, 0, ".metadata.json")
            self._files.write(location, serialize(raw, location))
            return replace(table_state(view, location, raw), of_view=view)

    def stage(self, table: TableState, layout: TableLayout, scratch: TableIdentifier) -> TableState:
        with self._guard():
            raw = storage_metadata(self._files, table)
            # In a file-system warehouse, Spark finds a table only at the path of its name.
            location = None if self.has_views else self._location(scratch)
            self._pointers.note_base(key(scratch), table.location)
            return self._create_scratch(scratch, scratches.staged(raw, table, layout, location))

    def pin_schema(self, table: TableState, snapshot_id: int, scratch: TableIdentifier, *, own_schema: bool = False) -> TableState:
        with self._guard():
            raw = storage_metadata(self._files, table)
            pinned = scratches.pinned(raw, table, snapshot_id, self._scratch_location(scratch), own_schema=own_schema)
            return self._create_scratch(scratch, pinned)

    def change(self, table: TableState, old: int, new: int) -> TableChange:
        with self._guard():
            require_change(table, old, new)
            return self._data.change(storage_metadata(self._files, table), table, old, new)

    def may_match(self, change: TableChange, conjunctions: Sequence[tuple[Predicate, ...]]) -> bool:
        return self._data.may_match(change, conjunctions)

    def matching(self, change: TableChange, predicates: Sequence[Predicate]) -> FileGroup:
        return self._data.matching(change, predicates)

    def value_ranges(self, change: TableChange, side: Side, columns: Iterable[str]) -> Mapping[str, ValueRange]:
        return self._data.value_ranges(change, side, columns)

    def compares(self, change: TableChange, columns: Sequence[str]) -> bool:
        return self._data.compares(change, columns)

    def net_rows(self, change: TableChange, columns: Sequence[str]) -> NetRows | None:
        with self._guard():
            return self._data.net_rows(storage_metadata(self._files, change.table), change, columns)

    def stage_change(self, change: TableChange, new_scratch: Callable[[], TableIdentifier]) -> StagedChange:
        raw = storage_metadata(self._files, change.table) if change.parts else {}

        def register(change: TableChange, subset: Subset, scratch: TableIdentifier) -> None:
            pinned = scratches.pinned(raw, change.table, subset.snapshot_id, self._scratch_location(scratch))
            made = self._data.with_subset(pinned, subset)
            try:
                self._create_scratch(scratch, made)
            except BaseException:
                self._files.delete_all(list(scratches.own_files(made, "")[1:]))
                raise

        with self._guard():
            return stage(change, new_scratch, register, self.drop_scratch)

    def drop_scratch(self, identifier: TableIdentifier) -> None:
        with self._guard():
            for _ in range(_DELETE_TRIES):
                found = self._pointers.find([key(identifier)]).get(key(identifier))
                if found is None:
                    return
                raw = read_table(self._files, identifier, found[0])
                if not scratches.is_scratch(raw):
                    raise CatalogError(f"{identifier} is not a scratch table of mvbuild.")
                if self._pointers.delete(key(identifier), found[0]):
                    # Including empty directories: the scratch table may have had one of its own.
                    self._files.delete_all(list(scratches.own_files(raw, found[0])))
                    return
            raise CommitConflict(f"Scratch table {identifier} keeps changing.")

    def commit(self, changes: Sequence[Change]) -> Mapping[TableIdentifier, TableState | ViewState]:
        with self._guard():
            edits = self._editor.edits(changes)
            together = [edits] if self.atomic and edits else [[edit] for edit in edits]
            return {entry.identifier: state(entry) for some in together for entry in publish(self._pointers, self._files, some)}

    def replace_rows(
        self, identifier: TableIdentifier, layout: TableLayout, columns: Mapping[str, Sequence[Any]], properties: Mapping[str, str]
    ) -> TableState:
        with self._guard():
            location = self._load_or_create(identifier, layout, properties)
            base = read_table(self._files, identifier, location)
            laid = with_layout(base, layout)
            snapshot = self._data.overwrite(laid, columns)
            added = (laid.get("next-row-id") or 0) + snapshot.get("added-rows", 0) if base["format-version"] > 2 else None
            source = tables.with_snapshots(laid, [snapshot], added)
            change = TableCommit(
                identifier=identifier,
                expect_uuid=base.get("table-uuid", ""),
                expect_snapshot_id=current_snapshot_id(base),
                set_snapshot_id=snapshot["snapshot-id"],
                set_properties={name: value for name, value in properties.items() if name != "format-version"},
            )
            restate = self._restating_snapshot
            return self._edit_table(identifier, lambda current: committed(table_of(identifier, current), change, source, restate))

    def rows(self, table: TableState, limit: int, snapshot_id: int | None = None) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        with self._guard():
            raw = storage_metadata(self._files, table)
            if snapshot_id is not None:
                tables.require_snapshot(raw, snapshot_id, table.identifier)
            return self._data.rows(raw, table.metadata_location, max(limit, 0), snapshot_id)

    def drop(self, identifier: TableIdentifier) -> None:
        with self._guard():
            for _ in range(_DELETE_TRIES):
                found = self._pointers.find([key(identifier)]).get(key(identifier))
                if found is None or self._pointers.delete(key(identifier), found[0]):
                    return
            raise CommitConflict(f"{identifier} keeps changing.")

    def files(self, table: TableState) -> frozenset[str]:
        with self._guard():
            raw = storage_metadata(self._files, table)
            found = self._data.reached(raw) | self._metadata_files(table, raw)
            # Only files of this entry, even if others are in the same directory, because dropping the table deletes everything listed here.
            return frozenset(map(self._files.spelled, filter(None, found)))

    def spelled(self, location: str) -> str:
        return self._files.spelled(location)

    def list_files(self, location: str) -> tuple[tuple[str, int], ...]:
        with self._guard():
            places = [location, *self._pointers.borrowed(location)]
            return tuple(sorted(found for place in places for found in self._files.below(place)))

    def delete_files(self, files: Iterable[str]) -> int:
        with self._guard():
            return self._files.delete_all(list(files))

    def close(self) -> None:
        """Close database connections. The catalog can still be used, and opens new ones."""
        close = getattr(self._pointers, "close", None)
        if close:
            close()

    def _metadata_files(self, table: TableState, raw: Raw) -> set[str]:
        found = {table.metadata_location, *self._pointers.hints(key(table.identifier))}
        if table.of_view is None or table.mv is None:
            return found | {entry["metadata-file"] for entry in raw.get("metadata-log") or ()}
        log = {entry["metadata-file"] for entry in table.mv.raw.get("metadata-log") or ()}
        # The file that embeds the table is the current one, or it is in the log of the current one.
        pointer = self._pointers.find([key(table.of_view)]).get(key(table.of_view))
        for now in read_entries(self._files, [(table.of_view, *pointer)] if pointer else []):
            if isinstance(now, CatalogError):
                raise now
            held = now.mv.raw.get("metadata-log") or () if now.mv else ()
            log |= {now.location, now.mv_location, *(entry["metadata-file"] for entry in held)}
        of_log = [location for location in log if location.endswith(MV_FILE)]
        entries = read_entries(self._files, [(table.identifier, location, "MV") for location in of_log])
        return found | log | {entry.mv.storage_metadata_location for entry in entries if isinstance(entry, Entry) and entry.mv}

    def _load_or_create(self, identifier: TableIdentifier, layout: TableLayout, properties: Mapping[str, str]) -> str:
        found = self._pointers.find([key(identifier)]).get(key(identifier))
        if found is None:
            self.ensure_namespace(identifier.namespace)
            try:
                # Not `properties`: they describe the rows, which do not exist yet.
                kept = {name: value for name, value in properties.items() if name == "format-version"}
                return self._create(identifier, tables.new_table(self._location(identifier), layout, kept)).metadata_location
            except AlreadyExists:
                found = self._pointers.find([key(identifier)])[key(identifier)]
        if found[1] != "TABLE":
            raise AlreadyExists(f"{identifier} is a view.")
        return found[0]

    def _create_scratch(self, scratch: TableIdentifier, raw: Raw) -> TableState:
        self.ensure_namespace(scratch.namespace)
        return self._create(scratch, raw)

    def _create(self, identifier: TableIdentifier, raw: Raw) -> TableState:
        def make(current: Entry | None) -> Raw:
            if current is not None:
                raise AlreadyExists(f"{identifier} already exists: it is a {'table' if current.kind == 'TABLE' else 'view'}.")
            return raw

        return self._edit_table(identifier, make)

    def _edit_table(self, identifier: TableIdentifier, make: Callable[[Entry | None], Raw]) -> TableState:
        (entry,) = publish(self._pointers, self._files, [table_edit(identifier, make)])
        found = state(entry)
        assert isinstance(found, TableState)
        return found

    def _empty_snapshot(self, raw: Raw) -> Raw:
        snapshot_id = tables.new_snapshot_id()
        location = tables.manifest_list_location(raw, snapshot_id)
        self._data.empty_manifest_list(location, raw, snapshot_id)
        return tables.empty_snapshot(raw, location, snapshot_id)

    def _restating_snapshot(self, raw: Raw, summary: Mapping[str, str]) -> Raw:
        snapshot_id = tables.new_snapshot_id()
        location = self._data.repeated_manifest_list(tables.manifest_list_location(raw, snapshot_id), raw, snapshot_id)
        return tables.restating_snapshot(raw, location, snapshot_id, summary)

    def _new_editor(self, pointers: Pointers, files: Files) -> Editor:
        return Editor(pointers, files, restate=self._restating_snapshot, location=self._location, catalog=self.name)

    def _root(self) -> str:
        if not self._warehouse:
            raise CatalogError(f"Catalog '{self.name}' has no 'warehouse', so it has no location for new tables and views.")
        return self._warehouse

    def _scratch_location(self, scratch: TableIdentifier) -> str:
        """The location of a scratch table that is only read."""
        return f"{self._root()}/{scratches.FOLDER}/{self._folder(scratch.name)}" if self.has_views else self._location(scratch)

    def _location(self, identifier: TableIdentifier) -> str:
        location = "/".join((self._root(), *map(self._folder, identifier.namespace), self._folder(identifier.name)))
        # If two tables shared a directory, orphan files could not be recognized.
        return f"{location}-{uuid.uuid4().hex[:8]}" if self._pointers.in_use(location) else location


def _not_ours(identifier: TableIdentifier, what: str) -> Unreadable:
    help = "Read the tables of its query, or write the query as a model."
    return Unreadable(identifier=identifier, reason=f"{identifier} is {what}", code="unsupported-view", help=help)
