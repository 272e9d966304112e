"""pointers + metadata files + data files -> Catalog: the catalog port for SQL catalogs, and for memory."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, Protocol

from mvbuild.adapters.iceberg import scratch as scratches
from mvbuild.adapters.iceberg import tables, views
from mvbuild.adapters.iceberg.failures import Translator
from mvbuild.adapters.iceberg.layout import with_layout
from mvbuild.adapters.iceberg.metadata import Raw, current_snapshot_id, state
from mvbuild.adapters.iceberg.publish import Current, Edit, Published, decoded, key, publish, read
from mvbuild.names import TableIdentifier
from mvbuild.ports.catalog import AlreadyExists, CatalogError, CommitConflict, TableCommit, TableLayout, TableState, ViewCommit, ViewState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mvbuild.adapters.iceberg.files import Files
    from mvbuild.adapters.iceberg.pointers import Pointers

_SAFE_FOLDER = re.compile(r"[\w. =+-]+")
_DELETE_TRIES = 12


class Data(Protocol):
    """Content of tables, as opposed to their metadata."""

    def empty_manifest_list(self, location: str, raw: Raw, snapshot_id: int) -> None:
        """The manifest list of a snapshot without files, written to `location`."""

    def overwrite(self, raw: Raw, columns: Mapping[str, Sequence[Any]]) -> Raw:
        """The JSON of a snapshot whose whole content is `columns`, on top of the current one; its files are written."""

    def rows(self, raw: Raw, location: str, limit: int) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """Column names and rows of the current snapshot."""


class MetadataCatalog:
    """A catalog whose tables and views are metadata files and whose commits move pointers to them."""

    atomic = True

    def __init__(
        self, *, name: str, pointers: Pointers, files: Files, data: Data, warehouse: str, translator: Translator | None = None
    ) -> None:
        self.name = name
        self._pointers = pointers
        self._files = files
        self._data = data
        self._warehouse = warehouse.rstrip("/")
        self._guard = (translator or Translator(name, {})).guard

    def load(self, identifiers: Iterable[TableIdentifier]) -> Mapping[TableIdentifier, TableState | ViewState]:
        wanted = [identifier for identifier in identifiers if identifier.catalog == self.name and identifier.namespace]
        with self._guard():
            found = self._pointers.find(key(identifier) for identifier in wanted)
            present = [identifier for identifier in dict.fromkeys(wanted) if key(identifier) in found]
            contents = self._files.read_all([found[key(identifier)][0] for identifier in present])
            states = {}
            for identifier, content in zip(present, contents, strict=True):
                location, kind = found[key(identifier)]
                raw = decoded(identifier, location, kind, content)
                states[identifier] = state(identifier, location, raw, is_view=kind == "VIEW")
            return states

    def list_names(self, namespace: tuple[str, ...]) -> tuple[TableIdentifier, ...]:
        with self._guard():
            names = self._pointers.names(".".join(namespace))
        return tuple(TableIdentifier(self.name, namespace, name) for name in names)

    def ensure_namespace(self, namespace: tuple[str, ...]) -> None:
        with self._guard():
            for level in range(1, len(namespace) + 1):
                self._pointers.add_namespace(".".join(namespace[:level]))

    def create_table(self, identifier: TableIdentifier, layout: TableLayout, properties: Mapping[str, str]) -> TableState:
        with self._guard():
            self._require_namespace(identifier)
            raw = tables.new_table(self._location(identifier), layout, properties)
            return self._create(identifier, raw)

    def create_branch(self, table: TableState, branch: str) -> TableState:
        def make(current: Current | None) -> Raw:
            raw = _table(table.identifier, current)
            tables.check(raw, table.identifier, table.uuid, table.current_snapshot_id)
            return tables.with_branch(raw, branch, None if table.current_snapshot_id is not None else self._empty_snapshot(raw))

        with self._guard():
            return self._edit_table(table.identifier, make)

    def stage(self, table: TableState, layout: TableLayout, scratch: TableIdentifier) -> TableState:
        with self._guard():
            raw = read(self._files, table.identifier, table.metadata_location, "TABLE")
            return self._create_scratch(scratch, scratches.staged(raw, table, layout))

    def pin_schema(self, table: TableState, snapshot_id: int, scratch: TableIdentifier) -> TableState:
        with self._guard():
            raw = read(self._files, table.identifier, table.metadata_location, "TABLE")
            location = f"{self._root()}/{scratches.FOLDER}/{_folder(scratch.name)}"
            return self._create_scratch(scratch, scratches.pinned(raw, table, snapshot_id, location))

    def drop_scratch(self, identifier: TableIdentifier) -> None:
        with self._guard():
            for _ in range(_DELETE_TRIES):
                found = self._pointers.find([key(identifier)]).get(key(identifier))
                if found is None:
                    return
                location, kind = found
                raw = read(self._files, identifier, location, kind)
                if not scratches.is_scratch(raw):
                    raise CatalogError(f"{identifier} is not a scratch table of mvbuild.")
                if self._pointers.delete(key(identifier), location):
                    for file in scratches.own_files(raw, location):
                        self._files.delete(file)
                    return
            raise CommitConflict(f"Scratch table {identifier} keeps changing.")

    def commit(self, changes: Sequence[TableCommit | ViewCommit]) -> Mapping[TableIdentifier, TableState | ViewState]:
        with self._guard():
            edits = [self._view_edit(c) if isinstance(c, ViewCommit) else self._table_edit(c) for c in changes]
            return {p.identifier: _state(p) for p in publish(self._pointers, self._files, edits)} if edits else {}

    def replace_rows(
        self, identifier: TableIdentifier, layout: TableLayout, columns: Mapping[str, Sequence[Any]], properties: Mapping[str, str]
    ) -> TableState:
        with self._guard():
            location = self._load_or_create(identifier, layout, properties)
            base = read(self._files, identifier, location, "TABLE")
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
            return self._edit_table(identifier, lambda current: tables.committed(_table(identifier, current), change, source))

    def rows(self, table: TableState, limit: int) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        with self._guard():
            raw = read(self._files, table.identifier, table.metadata_location, "TABLE")
            return self._data.rows(raw, table.metadata_location, max(limit, 0))

    def drop(self, identifier: TableIdentifier) -> None:
        with self._guard():
            for _ in range(_DELETE_TRIES):
                found = self._pointers.find([key(identifier)]).get(key(identifier))
                if found is None or self._pointers.delete(key(identifier), found[0]):
                    return
            raise CommitConflict(f"{identifier} keeps changing.")

    def close(self) -> None:
        """Give database connections back; the catalog can still be used and takes new ones."""
        close = getattr(self._pointers, "close", None)
        if close:
            close()

    def _load_or_create(self, identifier: TableIdentifier, layout: TableLayout, properties: Mapping[str, str]) -> str:
        found = self._pointers.find([key(identifier)]).get(key(identifier))
        if found is None:
            self.ensure_namespace(identifier.namespace)
            try:
                # Without `properties`: they say what the rows are, and the rows are not there yet.
                kept = {name: value for name, value in properties.items() if name == "format-version"}
                return self._create(identifier, tables.new_table(self._location(identifier), layout, kept)).metadata_location
            except AlreadyExists:
                found = self._pointers.find([key(identifier)])[key(identifier)]
        if found[1] == "VIEW":
            raise AlreadyExists(f"{identifier} is a view.")
        return found[0]

    def _create_scratch(self, scratch: TableIdentifier, raw: Raw) -> TableState:
        self.ensure_namespace(scratch.namespace)
        return self._create(scratch, raw)

    def _create(self, identifier: TableIdentifier, raw: Raw) -> TableState:
        def make(current: Current | None) -> Raw:
            if current is not None:
                raise AlreadyExists(f"{identifier} already exists: it is a {current.kind.lower()}.")
            return raw

        return self._edit_table(identifier, make)

    def _edit_table(self, identifier: TableIdentifier, make: Callable[[Current | None], Raw]) -> TableState:
        (published,) = publish(self._pointers, self._files, [Edit(identifier=identifier, kind="TABLE", make=make)])
        found = _state(published)
        assert isinstance(found, TableState)
        return found

    def _table_edit(self, change: TableCommit) -> Edit:
        staged = self._staged(change)

        def make(current: Current | None) -> Raw:
            raw = _table(change.identifier, current)
            if staged is not None:
                scratches.check_base(raw, staged, change.identifier)
            return tables.committed(raw, change, staged)

        return Edit(identifier=change.identifier, kind="TABLE", make=make)

    def _staged(self, change: TableCommit) -> Raw | None:
        if change.staged is None:
            return None
        found = self._pointers.find([key(change.staged)]).get(key(change.staged))
        if found is None:
            raise CatalogError(f"The scratch table {change.staged} does not exist.")
        raw = read(self._files, change.staged, *found)
        if not scratches.is_scratch(raw):
            raise CatalogError(f"{change.staged} is not a scratch table of mvbuild.")
        return raw

    def _view_edit(self, change: ViewCommit) -> Edit:
        if change.expect_metadata_location is None:
            self._require_namespace(change.identifier)

        def make(current: Current | None) -> Raw:
            if (current.location if current else None) != change.expect_metadata_location:
                raise CommitConflict(f"View {change.identifier} was {_how(change, current)} by another process.")
            if current is None:
                return views.new_view(change, self._location(change.identifier))
            if current.kind != "VIEW":
                raise CommitConflict(f"{change.identifier} is a table, not a view.")
            return views.with_version(current.raw, change)

        return Edit(identifier=change.identifier, kind="VIEW", make=make)

    def _empty_snapshot(self, raw: Raw) -> Raw:
        snapshot_id = tables.new_snapshot_id()
        location = f"{tables.metadata_folder(raw)}/snap-{snapshot_id}-0-{raw['table-uuid']}.avro"
        self._data.empty_manifest_list(location, raw, snapshot_id)
        return tables.empty_snapshot(raw, location, snapshot_id)

    def _require_namespace(self, identifier: TableIdentifier) -> None:
        if not self._pointers.has_namespace(".".join(identifier.namespace)):
            raise CatalogError(f"Namespace {'.'.join(identifier.namespace)} does not exist in catalog '{self.name}'.")

    def _root(self) -> str:
        if not self._warehouse:
            raise CatalogError(f"Catalog '{self.name}' has no 'warehouse': nothing says where new tables and views should go.")
        return self._warehouse

    def _location(self, identifier: TableIdentifier) -> str:
        return "/".join((self._root(), *map(_folder, identifier.namespace), _folder(identifier.name)))


def _folder(part: str) -> str:
    """A part of a name as a folder. Characters that mean something in a location are replaced, and a hash keeps the names apart."""
    if _SAFE_FOLDER.fullmatch(part) and part.strip(". "):
        return part
    return re.sub(r"[^\w.-]", "_", part).strip(".") + "-" + hashlib.sha256(part.encode()).hexdigest()[:8]


def _table(identifier: TableIdentifier, current: Current | None) -> Raw:
    if current is None:
        raise CommitConflict(f"Table {identifier} does not exist any more.")
    if current.kind != "TABLE":
        raise CommitConflict(f"{identifier} is a view, not a table.")
    return current.raw


def _how(change: ViewCommit, current: Current | None) -> str:
    if current is None:
        return "dropped"
    return "changed" if change.expect_metadata_location else "created"


def _state(published: Published) -> TableState | ViewState:
    return state(published.identifier, published.location, published.raw, is_view=published.kind == "VIEW")
