"""PyIceberg catalog -> its tables one by one: found, created, registered, edited. `remote` builds the catalog port on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mvbuild.adapters.iceberg import metadata, tables
from mvbuild.adapters.iceberg import scratch as scratches
from mvbuild.adapters.iceberg.branches import dropped, published, put_back, seen
from mvbuild.adapters.iceberg.failures import Translator
from mvbuild.adapters.iceberg.files import FileStore
from mvbuild.adapters.iceberg.layout import with_layout
from mvbuild.adapters.iceberg.remote_commits import Edit, OneByOne, Sender, commit, in_parallel, rename
from mvbuild.adapters.iceberg.remote_files import data_of, dump, full_name, read_metadata, restating, state_of, whole
from mvbuild.adapters.iceberg.remote_views import ViewStore, open_views
from mvbuild.adapters.iceberg.rest_commits import RestCommits
from mvbuild.adapters.iceberg.rest_requests import Rest, is_rest
from mvbuild.adapters.iceberg.table_commits import committed
from mvbuild.names import TableIdentifier
from mvbuild.ports.catalog import AlreadyExists, CatalogError, CommitConflict
from mvbuild.ports.commits import BranchCommit, DropCommit, TableCommit
from mvbuild.ports.states import State, TableState, Unreadable, ViewState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyiceberg.catalog import Catalog as PyCatalog
    from pyiceberg.io import FileIO
    from pyiceberg.table import Table

    from mvbuild.adapters.iceberg.metadata import Raw
    from mvbuild.ports.commits import TableLayout


class RemoteTables:
    """The tables of one catalog, connected on first use."""

    def __init__(self, name: str, properties: Mapping[str, str]) -> None:
        self.name = name
        self._properties = dict(properties)
        self._translator = Translator(name, properties)
        self._guard = self._translator.guard
        self._opened: PyCatalog | None = None
        self._ios: dict[str, FileIO] = {}
        """Location of a table -> its FileIO as last loaded: the catalog may have issued credentials with it."""
        self._branch: str | None = None
        """The Iceberg branch that this catalog shows."""

    def ensure_namespace(self, namespace: tuple[str, ...]) -> None:
        with self._guard():
            for level in range(1, len(namespace) + 1):
                self._ensure_level(namespace[:level])

    def drop(self, identifier: TableIdentifier) -> None:
        from pyiceberg.exceptions import NoSuchTableError

        with self._guard():
            try:
                self._catalog().drop_table(full_name(identifier))
            except NoSuchTableError:
                self._views().drop(identifier)

    def close(self) -> None:
        """Close connections; the catalog can still be used and opens new ones."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _namespaces(self, above: tuple[str, ...]) -> list[tuple[str, ...]]:
        catalog = self._catalog()
        found = Rest(catalog).namespaces(above) if is_rest(catalog) else [tuple(one) for one in catalog.list_namespaces(above)]
        # Some catalogs return all levels at once, some include the parent levels.
        below = [one for one in found if len(one) > len(above)]
        return sorted({*below, *(deeper for one in below for deeper in self._namespaces(one))})

    def _files(self) -> FileStore:
        return FileStore(self._properties, self._ios)

    def _loaded(self, identifier: TableIdentifier) -> Table:
        table = self._catalog().load_table(full_name(identifier))
        self._ios[table.location().rstrip("/")] = table.io
        return table

    def _drop(self, change: DropCommit) -> None:
        if not change.expect_metadata_location:
            self.drop(change.identifier)
            return
        found = self._find(change.identifier)
        if found is None or found.metadata_location != change.expect_metadata_location:
            raise CommitConflict(f"{change.identifier} was changed or dropped by another process.")
        self.drop(change.identifier)

    def _ensure_level(self, namespace: tuple[str, ...]) -> None:
        try:
            self._catalog().create_namespace_if_not_exists(namespace)
        except Exception:
            # Two processes may both have found it missing; the error of the second one differs in each catalog.
            if not self._catalog().namespace_exists(namespace):
                raise

    def _catalog(self) -> PyCatalog:
        if self._opened is None:
            from pyiceberg.catalog import load_catalog

            self._opened = load_catalog(self.name, **self._properties)
        return self._opened

    def _views(self) -> ViewStore:
        return open_views(self._catalog(), self._branch)

    def _find_or_reason(self, identifier: TableIdentifier) -> State | None:
        from pyiceberg.exceptions import ValidationError

        try:
            return self._find(identifier)
        except CatalogError as error:
            if error.unreachable:
                raise
            return Unreadable(identifier=identifier, reason=str(error))
        except (ValueError, LookupError, FileNotFoundError, ValidationError) as error:
            reason = self._translator.error(error)
            return Unreadable(identifier=identifier, reason=f"The metadata of {identifier} cannot be read: {reason}")

    def _find(self, identifier: TableIdentifier) -> TableState | ViewState | None:
        from pyiceberg.exceptions import NoSuchTableError

        try:
            return self._state(identifier, self._loaded(identifier))
        except NoSuchTableError:
            return self._views().load(identifier)

    def _table(self, identifier: TableIdentifier) -> Table:
        from pyiceberg.exceptions import NoSuchTableError

        try:
            return self._loaded(identifier)
        except NoSuchTableError:
            raise CommitConflict(f"Table {identifier} no longer exists.") from None

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
                full_name(identifier),
                schema=Schema.model_validate(raw["schemas"][-1]),
                partition_spec=PartitionSpec.model_validate(spec),
                sort_order=SortOrder.model_validate(order),
                properties=dict(properties),
            )
        except TableAlreadyExistsError:
            raise AlreadyExists(f"{identifier} already exists.") from None
        return state_of(identifier, table)

    def _readable(self, table: TableState) -> tuple[Raw, FileIO]:
        """A table's metadata, and the FileIO for its files: the catalog may issue credentials for its own tables."""
        from pyiceberg.io import load_file_io

        if table.identifier.catalog == self.name:
            current = self._table(table.identifier)
            is_other = table.is_held and self._branch is None
            return self._seen(read_metadata(current.io, table.metadata_location) if is_other else whole(current)), current.io
        io = load_file_io(self._properties, table.metadata_location)
        return read_metadata(io, table.metadata_location), io

    def _scratch_root(self, table: TableState, scratch: TableIdentifier) -> str:
        root = self._properties.get("warehouse", "").rstrip("/")
        if "/" in root:
            return root
        # A REST warehouse may be only a name: then the copy goes below the table, whose store is known to be writable. But not below a
        # table of another catalog, where mvbuild writes nothing.
        if table.identifier.catalog == self.name:
            return table.location.rstrip("/")
        self.ensure_namespace(scratch.namespace)
        found = self._catalog().load_namespace_properties(scratch.namespace).get("location")
        if not found:
            raise CatalogError(
                f"Catalog '{self.name}' has no location for a copy of {table.identifier}: namespace {scratch.namespace[0]} has none."
            )
        return str(found).rstrip("/")

    def _register(self, scratch: TableIdentifier, raw: Raw, io: FileIO) -> TableState:
        from pyiceberg.exceptions import TableAlreadyExistsError

        location = f"{tables.metadata_folder(raw)}/00000-{raw['table-uuid']}.metadata.json"
        self.ensure_namespace(scratch.namespace)
        with io.new_output(location).create() as stream:
            stream.write(metadata.serialize(raw, location))
        try:
            return state_of(scratch, self._catalog().register_table(full_name(scratch), location))
        except TableAlreadyExistsError:
            io.delete(location)
            raise AlreadyExists(f"{scratch} already exists.") from None

    def _commit_tables(self, changes: Sequence[TableCommit | BranchCommit]) -> dict[TableIdentifier, TableState]:
        edits, sender = [_moved(c) if isinstance(c, BranchCommit) else self._edit_of(c) for c in changes], self._sender()
        if len({edit.identifier for edit in edits}) < len(edits):
            raise CatalogError("A commit can change each table only once.")
        for some in [edits] if sender.together and edits else [[edit] for edit in edits]:
            commit(some, self._table, sender)
        return dict(in_parallel(self._after, changes))

    def _after(self, change: TableCommit | BranchCommit) -> tuple[TableIdentifier, TableState]:
        to = change.rename_to if isinstance(change, TableCommit) else None
        if to is None or to == change.identifier:
            return change.identifier, self._state(change.identifier, self._table(change.identifier))
        assert isinstance(change, TableCommit)
        return to, state_of(to, rename(self._catalog(), change.identifier, to, change.expect_uuid))

    def _edit_of(self, change: TableCommit) -> Edit:
        staged = dump(self._table(change.staged)) if change.staged is not None else None

        def make(raw: Raw, table: Table) -> Raw:
            if staged is not None:
                scratches.check_base(raw, staged, change.identifier)
            return committed(raw, change, staged, restating(table))

        return Edit(identifier=change.identifier, make=self._on_branch(make))

    def _edit(self, identifier: TableIdentifier, make: Callable[[Raw, Table], Raw]) -> TableState:
        commit([Edit(identifier=identifier, make=self._on_branch(make))], self._table, self._sender())
        return self._state(identifier, self._table(identifier))

    def _on_branch(self, make: Callable[[Raw, Table], Raw]) -> Callable[[Raw, Table], Raw]:
        branch = self._branch
        return make if branch is None else lambda raw, table: put_back(make(seen(raw, branch), table), branch)

    def _seen(self, raw: Raw) -> Raw:
        return raw if self._branch is None else seen(raw, self._branch)

    def _state(self, identifier: TableIdentifier, table: Table) -> TableState:
        found = metadata.state(identifier, table.metadata_location, self._seen(dump(table)), is_view=False)
        assert isinstance(found, TableState)
        return found

    def _sender(self) -> Sender:
        catalog = self._catalog()
        return RestCommits(catalog) if is_rest(catalog) else OneByOne(catalog)

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
        base = dump(table)
        laid = with_layout(base, layout)
        return base, laid, data_of(table).overwrite(laid, columns)


def _moved(change: BranchCommit) -> Edit:
    def make(raw: Raw, _: Table) -> Raw:
        return published(raw, change.branch, change.identifier) if change.to == "publish" else dropped(raw, change.branch)

    return Edit(identifier=change.identifier, make=make)
