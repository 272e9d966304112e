"""PyIceberg catalog -> Catalog: the catalog port for REST, Glue, Hive and any other catalog that PyIceberg knows.

The same edits of metadata JSON as for SQL catalogs; what they changed is sent as table updates, one table after the other.
"""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from mvbuild.adapters.iceberg import metadata, tables
from mvbuild.adapters.iceberg import scratch as scratches
from mvbuild.adapters.iceberg.data import IcebergData, scanned
from mvbuild.adapters.iceberg.failures import Translator
from mvbuild.adapters.iceberg.layout import with_layout
from mvbuild.adapters.iceberg.remote_views import open_views
from mvbuild.adapters.iceberg.table_commits import committed
from mvbuild.adapters.iceberg.updates import as_models, requirements, updates
from mvbuild.names import TableIdentifier
from mvbuild.ports.catalog import AlreadyExists, CatalogError, CommitConflict, TableCommit, TableState, ViewCommit, ViewState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyiceberg.catalog import Catalog as PyCatalog
    from pyiceberg.io import FileIO
    from pyiceberg.table import Table

    from mvbuild.adapters.iceberg.metadata import Raw
    from mvbuild.adapters.iceberg.table_commits import Restate
    from mvbuild.ports.catalog import TableLayout

_READERS = 8
_TRIES = 8
_BACKOFF_SECONDS = 0.1


class RemoteCatalog:
    """A catalog that keeps its own pointers. It is connected on first use."""

    atomic = False

    def __init__(self, name: str, properties: Mapping[str, str]) -> None:
        self.name = name
        self._properties = dict(properties)
        self._guard = Translator(name, properties).guard
        self._opened: PyCatalog | None = None

    def load(self, identifiers: Iterable[TableIdentifier]) -> Mapping[TableIdentifier, TableState | ViewState]:
        wanted = [i for i in dict.fromkeys(identifiers) if i.catalog == self.name and i.namespace]
        with self._guard():
            self._catalog()
            if not wanted:
                return {}
            with ThreadPoolExecutor(min(_READERS, len(wanted))) as pool:
                found = pool.map(self._find, wanted)
                return {identifier: one for identifier, one in zip(wanted, found, strict=True) if one is not None}

    def list_names(self, namespace: tuple[str, ...]) -> tuple[TableIdentifier, ...]:
        from pyiceberg.exceptions import NoSuchNamespaceError

        with self._guard():
            try:
                names = {*self._catalog().list_tables(namespace), *self._views().names(namespace)}
            except NoSuchNamespaceError:
                return ()
        return tuple(TableIdentifier(self.name, namespace, name[-1]) for name in sorted(names))

    def ensure_namespace(self, namespace: tuple[str, ...]) -> None:
        with self._guard():
            for level in range(1, len(namespace) + 1):
                self._ensure_level(namespace[:level])

    def create_table(self, identifier: TableIdentifier, layout: TableLayout, properties: Mapping[str, str]) -> TableState:
        with self._guard():
            return self._create(identifier, layout, properties)

    def create_branch(self, table: TableState, branch: str) -> TableState:
        def make(raw: Raw, current: Table) -> Raw:
            tables.check(raw, table.identifier, table.uuid, table.current_snapshot_id)
            if table.current_snapshot_id is not None:
                return tables.with_branch(raw, branch, None)
            snapshot_id = tables.new_snapshot_id()
            location = f"{tables.metadata_folder(raw)}/snap-{snapshot_id}-0-{raw['table-uuid']}.avro"
            _data(current).empty_manifest_list(location, raw, snapshot_id)
            return tables.with_branch(raw, branch, tables.empty_snapshot(raw, location, snapshot_id))

        with self._guard():
            return self._edit(table.identifier, make)

    def stage(self, table: TableState, layout: TableLayout, scratch: TableIdentifier) -> TableState:
        with self._guard():
            current = self._table(table.identifier)
            return self._register(scratch, scratches.staged(_whole(current), table, layout), current.io)

    def pin_schema(self, table: TableState, snapshot_id: int, scratch: TableIdentifier) -> TableState:
        with self._guard():
            raw, io = self._readable(table)
            location = f"{self._scratch_root(table, scratch)}/{scratches.FOLDER}/{scratch.name}"
            return self._register(scratch, scratches.pinned(raw, table, snapshot_id, location), io)

    def drop_scratch(self, identifier: TableIdentifier) -> None:
        from pyiceberg.exceptions import NoSuchTableError

        with self._guard():
            try:
                table = self._catalog().load_table(_name(identifier))
                raw = _dump(table)
                if not scratches.is_scratch(raw):
                    raise CatalogError(f"{identifier} is not a scratch table of mvbuild.")
                self._catalog().drop_table(_name(identifier))
            except NoSuchTableError:
                return
            for location in scratches.own_files(raw, table.metadata_location):
                table.io.delete(location)

    def commit(self, changes: Sequence[TableCommit | ViewCommit]) -> Mapping[TableIdentifier, TableState | ViewState]:
        with self._guard():
            done: dict[TableIdentifier, TableState | ViewState] = {}
            for view in [c for c in changes if isinstance(c, ViewCommit)]:
                done[view.identifier] = self._views().put(view)
            for table in [c for c in changes if isinstance(c, TableCommit)]:
                done[table.identifier] = self._commit_table(table)
            return done

    def replace_rows(
        self, identifier: TableIdentifier, layout: TableLayout, columns: Mapping[str, Sequence[Any]], properties: Mapping[str, str]
    ) -> TableState:
        with self._guard():
            base, laid, snapshot = self._written(identifier, layout, columns, properties)
            change = TableCommit(
                identifier=identifier,
                expect_uuid=base["table-uuid"],
                expect_snapshot_id=metadata.current_snapshot_id(base),
                set_snapshot_id=snapshot["snapshot-id"],
                set_properties={name: value for name, value in properties.items() if name != "format-version"},
            )
            source = tables.with_snapshots(laid, [snapshot], None)
            return self._edit(identifier, lambda raw, table: committed(raw, change, source, _restate(table)))

    def rows(self, table: TableState, limit: int) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        names = tuple(field["name"] for field in table.schema["fields"])
        with self._guard():
            if table.current_snapshot_id is None or limit <= 0:
                return names, []
            return names, scanned(self._table(table.identifier), limit)

    def drop(self, identifier: TableIdentifier) -> None:
        from pyiceberg.exceptions import NoSuchTableError

        with self._guard():
            try:
                self._catalog().drop_table(_name(identifier))
            except NoSuchTableError:
                self._views().drop(identifier)

    def close(self) -> None:
        """Close connections; the catalog can still be used and opens new ones."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _ensure_level(self, namespace: tuple[str, ...]) -> None:
        try:
            self._catalog().create_namespace_if_not_exists(namespace)
        except Exception:
            # Two processes may both have found it missing; who comes second fails in a way of its own in each catalog.
            if not self._catalog().namespace_exists(namespace):
                raise

    def _catalog(self) -> PyCatalog:
        if self._opened is None:
            from pyiceberg.catalog import load_catalog

            self._opened = load_catalog(self.name, **self._properties)
        return self._opened

    def _views(self) -> Any:
        return open_views(self._catalog())

    def _find(self, identifier: TableIdentifier) -> TableState | ViewState | None:
        from pyiceberg.exceptions import NoSuchTableError

        try:
            return _state(identifier, self._catalog().load_table(_name(identifier)))
        except NoSuchTableError:
            found: ViewState | None = self._views().load(identifier)
            return found

    def _table(self, identifier: TableIdentifier) -> Table:
        from pyiceberg.exceptions import NoSuchTableError

        try:
            return self._catalog().load_table(_name(identifier))
        except NoSuchTableError:
            raise CommitConflict(f"Table {identifier} does not exist any more.") from None

    def _create(self, identifier: TableIdentifier, layout: TableLayout, properties: Mapping[str, str]) -> TableState:
        from pyiceberg.exceptions import TableAlreadyExistsError
        from pyiceberg.partitioning import PartitionSpec
        from pyiceberg.schema import Schema
        from pyiceberg.table.sorting import SortOrder

        raw = tables.new_table("", layout, properties)
        spec, order = raw["partition-specs"][-1], raw["sort-orders"][-1]
        if self._views().load(identifier) is not None:
            raise AlreadyExists(f"{identifier} already exists: it is a view.")
        try:
            table = self._catalog().create_table(
                _name(identifier),
                schema=Schema.model_validate(raw["schemas"][-1]),
                partition_spec=PartitionSpec.model_validate(spec),
                sort_order=SortOrder.model_validate(order),
                properties=dict(properties),
            )
        except TableAlreadyExistsError:
            raise AlreadyExists(f"{identifier} already exists.") from None
        return _state(identifier, table)

    def _readable(self, table: TableState) -> tuple[Raw, FileIO]:
        """A table's metadata, and what reads its files: the catalog may hand out credentials for a table of its own."""
        from pyiceberg.io import load_file_io

        if table.identifier.catalog == self.name:
            current = self._table(table.identifier)
            return _whole(current), current.io
        io = load_file_io(self._properties, table.metadata_location)
        return _read(io, table.metadata_location), io

    def _scratch_root(self, table: TableState, scratch: TableIdentifier) -> str:
        root = self._properties.get("warehouse", "").rstrip("/")
        if "/" in root:
            return root
        # A REST warehouse may be just a name: then the copy goes below the table, whose store is known to be writable. But not below one
        # that is not of this catalog, where mvbuild writes nothing.
        if table.identifier.catalog == self.name:
            return table.location.rstrip("/")
        self.ensure_namespace(scratch.namespace)
        found = self._catalog().load_namespace_properties(scratch.namespace).get("location")
        if not found:
            raise CatalogError(
                f"Catalog '{self.name}' tells no place for a copy of {table.identifier}: namespace {scratch.namespace[0]} has none."
            )
        return str(found).rstrip("/")

    def _register(self, scratch: TableIdentifier, raw: Raw, io: FileIO) -> TableState:
        from pyiceberg.exceptions import TableAlreadyExistsError

        location = f"{tables.metadata_folder(raw)}/00000-{raw['table-uuid']}.metadata.json"
        self.ensure_namespace(scratch.namespace)
        with io.new_output(location).create() as stream:
            stream.write(metadata.serialize(raw, location))
        try:
            return _state(scratch, self._catalog().register_table(_name(scratch), location))
        except TableAlreadyExistsError:
            io.delete(location)
            raise AlreadyExists(f"{scratch} already exists.") from None

    def _commit_table(self, change: TableCommit) -> TableState:
        staged = None
        if change.staged is not None:
            staged = _dump(self._table(change.staged))

        def make(raw: Raw, table: Table) -> Raw:
            if staged is not None:
                scratches.check_base(raw, staged, change.identifier)
            return committed(raw, change, staged, _restate(table))

        return self._edit(change.identifier, make)

    def _edit(self, identifier: TableIdentifier, make: Callable[[Raw, Table], Raw]) -> TableState:
        from pyiceberg.exceptions import CommitFailedException

        for attempt in range(_TRIES):
            time.sleep(_BACKOFF_SECONDS * attempt)
            table = self._table(identifier)
            raw = _dump(table)
            new = make(raw, table)
            try:
                self._catalog().commit_table(table, *as_models(requirements(raw), updates(raw, new)))
            except CommitFailedException:
                continue
            return _state(identifier, self._table(identifier))
        raise CommitConflict(f"Other processes changed {identifier} {_TRIES} times in a row.")

    def _written(
        self, identifier: TableIdentifier, layout: TableLayout, columns: Mapping[str, Sequence[Any]], properties: Mapping[str, str]
    ) -> tuple[Raw, Raw, Raw]:
        found = self._find(identifier)
        if isinstance(found, ViewState):
            raise AlreadyExists(f"{identifier} is a view.")
        if found is None:
            self.ensure_namespace(identifier.namespace)
            kept = {name: value for name, value in properties.items() if name == "format-version"}
            self._create(identifier, layout, kept)
        table = self._table(identifier)
        base = _dump(table)
        laid = with_layout(base, layout)
        return base, laid, _data(table).overwrite(laid, columns)


def _name(identifier: TableIdentifier) -> tuple[str, ...]:
    return (*identifier.namespace, identifier.name)


def _dump(table: Table) -> Raw:
    found: Raw = json.loads(json.dumps(table.metadata.model_dump(by_alias=True, mode="json", exclude_none=True)))
    return found


def _whole(table: Table) -> Raw:
    """The metadata with the fields that PyIceberg's models do not have; a copy must not lose them."""
    return _read(table.io, table.metadata_location)


def _read(io: FileIO, location: str) -> Raw:
    with io.new_input(location).open() as stream:
        return metadata.parse(stream.read(), location)


def _state(identifier: TableIdentifier, table: Table) -> TableState:
    found = metadata.state(identifier, table.metadata_location, _dump(table), is_view=False)
    assert isinstance(found, TableState)
    return found


def _restate(table: Table) -> Restate:
    def restate(raw: Raw, summary: Mapping[str, str]) -> Raw:
        snapshot_id = tables.new_snapshot_id()
        location = _data(table).repeated_manifest_list(tables.manifest_list_location(raw, snapshot_id), raw, snapshot_id)
        return tables.restating_snapshot(raw, location, snapshot_id, summary)

    return restate


def _data(table: Table) -> IcebergData:
    # The table's own FileIO may carry credentials that the catalog handed out for it.
    return IcebergData(lambda _: table.io)
