"""PyIceberg catalog -> Publisher: for REST, and for any catalog without pointers of its own here.

The differences of edited metadata are sent as table updates: to a REST catalog with transactions in one request, to others one table after
the other. Views are separate, and go first.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from copy import copy
from typing import TYPE_CHECKING, TypeVar

from mvbuild.adapters.iceberg import metadata, tables
from mvbuild.adapters.iceberg import scratch as scratches
from mvbuild.adapters.iceberg.branches import dropped, published, put_back, seen
from mvbuild.adapters.iceberg.data import IcebergData
from mvbuild.adapters.iceberg.failures import Translator
from mvbuild.adapters.iceberg.files import FileStore
from mvbuild.adapters.iceberg.publisher import TableMetadata
from mvbuild.adapters.iceberg.remote_changes import no_file_format, require_on_branch, require_possible, with_uuids
from mvbuild.adapters.iceberg.remote_commits import Edit, OneByOne, Sender, commit, in_parallel, rename
from mvbuild.adapters.iceberg.remote_files import data_of, dump, dump_earlier, full_name, read_metadata, state_of
from mvbuild.adapters.iceberg.remote_lookup import RemoteLookup, Seen, Tag, origin_of, tag_of
from mvbuild.adapters.iceberg.remote_views import NoViews, ViewStore, open_views
from mvbuild.adapters.iceberg.rest_commits import RestCommits
from mvbuild.adapters.iceberg.rest_requests import Rest, is_rest
from mvbuild.adapters.iceberg.table_commits import committed, restating
from mvbuild.names import TableIdentifier
from mvbuild.ports.catalog import AlreadyExists, CatalogError, CommitConflict
from mvbuild.ports.commits import BranchCommit, DropCommit, TableCommit, ViewCommit
from mvbuild.ports.states import State, TableState, Unreadable, ViewState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyiceberg.catalog import Catalog as PyCatalog
    from pyiceberg.io import FileIO
    from pyiceberg.table import Table

    from mvbuild.adapters.iceberg.metadata import Raw
    from mvbuild.adapters.iceberg.publisher import Data
    from mvbuild.ports.commits import Change, TableLayout


_Found = TypeVar("_Found")


class RemotePublisher:
    """A catalog that stores its own pointers. It is connected on first use."""

    spark_reads_views = True

    def __init__(self, name: str, properties: Mapping[str, str]) -> None:
        self.name = name
        self._properties = dict(properties)
        self._translator = Translator(name, properties)
        self._opened: PyCatalog | None = None
        self._ios: dict[str, FileIO] = {}
        """Location of a table -> its FileIO as last loaded: the catalog may have issued credentials with it."""
        self._branch: str | None = None
        """The Iceberg branch that this catalog shows."""

    def guard(self) -> AbstractContextManager[None]:
        return self._translator.guard()

    @property
    def atomic(self) -> bool:
        return self._sender().together

    @property
    def has_views(self) -> bool:
        return not isinstance(self._views(), NoViews)

    @property
    def files(self) -> FileStore:
        return FileStore(self._properties, self._ios)

    def on_branch(self, branch: str) -> RemotePublisher:
        found = copy(self)
        found._branch = branch
        return found

    def load(self, identifiers: Sequence[TableIdentifier]) -> Mapping[TableIdentifier, State]:
        self.catalog()
        found = in_parallel(self._find_or_reason, identifiers)
        return {identifier: one for identifier, one in zip(identifiers, found, strict=True) if one is not None}

    def look_up(self, identifiers: Sequence[TableIdentifier], tags: Mapping[str, str]) -> RemoteLookup:
        origin = origin_of(self._properties)

        def seen_of(identifier: TableIdentifier) -> Seen | None:
            return self._look_up(identifier, tag_of(tags.get(str(identifier)), origin), origin)

        self.catalog()
        found = zip(identifiers, in_parallel(seen_of, identifiers), strict=True)
        return RemoteLookup(seen={identifier: one for identifier, one in found if one is not None}, files=self.files, read=self._state_at)

    def stamps(self, identifiers: Sequence[TableIdentifier]) -> Mapping[TableIdentifier, str]:
        return {identifier: found.metadata_location for identifier, found in self.load(identifiers).items()}

    def read(self, identifier: TableIdentifier) -> TableMetadata | None:
        from pyiceberg.exceptions import NoSuchTableError

        try:
            table = self._loaded(identifier)
        except NoSuchTableError:
            return None
        return TableMetadata(raw=self._seen(dump(table)), location=table.metadata_location, data=data_of(table))

    def read_state(self, table: TableState) -> TableMetadata:
        from pyiceberg.io import load_file_io

        if table.identifier.catalog == self.name:
            current = self._table(table.identifier)
            io, location = current.io, table.metadata_location if table.is_held and self._branch is None else current.metadata_location
        else:
            io, location = load_file_io(self._properties, table.metadata_location), table.metadata_location
        # Not the metadata that the catalog returned: PyIceberg's models lack some fields, and a copy would lose them.
        raw = read_metadata(io, location)
        raw = self._seen(raw) if table.identifier.catalog == self.name else raw
        return TableMetadata(raw=raw, location=location, data=IcebergData(lambda _: io))

    def metadata_files(self, table: TableState, found: TableMetadata) -> set[str]:  # noqa: ARG002
        return {found.location, *(entry["metadata-file"] for entry in found.raw.get("metadata-log") or ())}

    def names(self, namespace: tuple[str, ...]) -> Iterable[TableIdentifier]:
        from pyiceberg.exceptions import NoSuchNamespaceError

        try:
            names = {*self.catalog().list_tables(namespace), *self._views().names(namespace)}
        except NoSuchNamespaceError:
            return ()
        return [TableIdentifier(self.name, namespace, name[-1]) for name in sorted(names)]

    def views(self) -> Iterable[TableIdentifier]:
        views = self._views()
        if isinstance(views, NoViews):
            return ()
        found = [name for namespace in self._namespaces(()) for name in views.names(namespace)]
        return [TableIdentifier(self.name, tuple(name[:-1]), name[-1]) for name in found]

    def add_namespace(self, namespace: tuple[str, ...]) -> None:
        for level in range(1, len(namespace) + 1):
            self._ensure_level(namespace[:level])

    def scratch_location(self, table: TableState, scratch: TableIdentifier) -> str:
        found = f"{self._scratch_root(table, scratch)}/{scratches.FOLDER}/{scratch.name}"
        if table.location.rstrip("/") in self._ios:
            self._ios[found] = self._ios[table.location.rstrip("/")]
        return found

    def staging_location(self, table: TableState, scratch: TableIdentifier) -> None:
        """A scratch table can have the location of its base."""

    def create(self, identifier: TableIdentifier, layout: TableLayout, properties: Mapping[str, str]) -> TableState:
        from pyiceberg.exceptions import TableAlreadyExistsError
        from pyiceberg.partitioning import PartitionSpec
        from pyiceberg.schema import Schema
        from pyiceberg.table.sorting import SortOrder

        raw = tables.new_table("", layout, properties)
        spec, order = raw["partition-specs"][-1], raw["sort-orders"][-1]
        if self._views().load(identifier) is not None:
            raise AlreadyExists(f"{identifier} already exists: it is a view.")
        try:
            table = self.catalog().create_table(
                full_name(identifier),
                schema=Schema.model_validate(raw["schemas"][-1]),
                partition_spec=PartitionSpec.model_validate(spec),
                sort_order=SortOrder.model_validate(order),
                properties=dict(properties),
            )
        except TableAlreadyExistsError:
            raise AlreadyExists(f"{identifier} already exists.") from None
        return state_of(identifier, table)

    def register(self, scratch: TableIdentifier, raw: Raw) -> TableState:
        from pyiceberg.exceptions import TableAlreadyExistsError

        location = f"{tables.metadata_folder(raw)}/00000-{raw['table-uuid']}.metadata.json"
        self.add_namespace(scratch.namespace)
        self.files.write(location, metadata.serialize(raw, location))
        try:
            return state_of(scratch, self.catalog().register_table(full_name(scratch), location))
        except TableAlreadyExistsError:
            self.files.delete(location)
            raise AlreadyExists(f"{scratch} already exists.") from None

    def new_storage(self, view: TableIdentifier, layout: TableLayout, properties: Mapping[str, str]) -> TableState:  # noqa: ARG002
        raise no_file_format(view, self._views())

    def edit(self, identifier: TableIdentifier, make: Callable[[Raw, Data], Raw]) -> TableState:
        commit([self._edit(identifier, make)], self._table, self._sender())
        return self._state(identifier, self._table(identifier))

    def commit(self, changes: Sequence[Change]) -> Mapping[TableIdentifier, TableState | ViewState]:
        require_possible(changes, self._views())
        if self._branch is not None:
            require_on_branch(changes, self._branch)
        views = [change for change in changes if isinstance(change, ViewCommit)]
        of_tables = [change for change in changes if isinstance(change, TableCommit)]
        self._check(views, of_tables)
        moves = [change for change in changes if isinstance(change, BranchCommit)]
        exist = in_parallel(lambda move: self.catalog().table_exists(full_name(move.identifier)), moves)
        are_tables = dict(zip(moves, exist, strict=True))
        made = [self._views().put(view) for view in views]
        made += [found for move, is_table in are_tables.items() if not is_table and (found := self._views().move(move))]
        uuids = {view.uuid: state.uuid for view, state in zip(views, made, strict=False) if view.uuid and view.uuid != state.uuid}
        done: dict[TableIdentifier, TableState | ViewState] = {state.identifier: state for state in made}
        try:
            moved = [move for move, is_table in are_tables.items() if is_table]
            done |= self._commit_tables([*(with_uuids(change, uuids) for change in of_tables), *moved])
        except CatalogError as error:
            if made:
                error.args = (f"{error} These views of the same commit were already changed: {', '.join(map(str, done))}.",)
            raise
        for drop in [change for change in changes if isinstance(change, DropCommit)]:
            self._drop(drop)
        return done

    def remove(self, identifier: TableIdentifier, location: str) -> bool:  # noqa: ARG002
        from pyiceberg.exceptions import NoSuchTableError

        try:
            self.catalog().drop_table(full_name(identifier))
        except NoSuchTableError:
            return False
        return True

    def below(self, location: str) -> Iterable[tuple[str, int]]:
        return self.files.below(location)

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def catalog(self) -> PyCatalog:
        """PyIceberg's catalog, connected."""
        if self._opened is None:
            from pyiceberg.catalog import load_catalog

            self._opened = load_catalog(self.name, **self._properties)
        return self._opened

    def _views(self) -> ViewStore:
        return open_views(self.catalog(), self._branch)

    def _sender(self) -> Sender:
        catalog = self.catalog()
        return RestCommits(catalog) if is_rest(catalog) else OneByOne(catalog)

    def _namespaces(self, above: tuple[str, ...]) -> list[tuple[str, ...]]:
        catalog = self.catalog()
        found = Rest(catalog).namespaces(above) if is_rest(catalog) else [tuple(one) for one in catalog.list_namespaces(above)]
        # Some catalogs return all levels at once, some include the parent levels.
        below = [one for one in found if len(one) > len(above)]
        return sorted({*below, *(deeper for one in below for deeper in self._namespaces(one))})

    def _ensure_level(self, namespace: tuple[str, ...]) -> None:
        try:
            self.catalog().create_namespace_if_not_exists(namespace)
        except Exception:
            # Two processes may both have found it missing; the error of the second one differs in each catalog.
            if not self.catalog().namespace_exists(namespace):
                raise

    def _loaded(self, identifier: TableIdentifier) -> Table:
        return self._known(self.catalog().load_table(full_name(identifier)))

    def _known(self, table: Table) -> Table:
        self._ios[table.location().rstrip("/")] = table.io
        return table

    def _table(self, identifier: TableIdentifier) -> Table:
        from pyiceberg.exceptions import NoSuchTableError

        try:
            return self._loaded(identifier)
        except NoSuchTableError:
            raise CommitConflict(f"Table {identifier} no longer exists.") from None

    def _find(self, identifier: TableIdentifier) -> TableState | ViewState | None:
        from pyiceberg.exceptions import NoSuchTableError

        try:
            return self._state(identifier, self._loaded(identifier))
        except NoSuchTableError:
            return self._views().load(identifier)

    def _look_up(self, identifier: TableIdentifier, tag: Tag | None, origin: str) -> Seen | None:
        """None if there is nothing of this name."""
        if not is_rest(self.catalog()):
            state = self._find_or_reason(identifier)
            return None if state is None else Seen(state=state, tag=None)
        if tag is not None and not tag.etag:
            return self._view_seen(identifier, origin) or self._table_seen(identifier, None, origin)
        return self._table_seen(identifier, tag, origin) or self._view_seen(identifier, origin)

    def _view_seen(self, identifier: TableIdentifier, origin: str) -> Seen | None:
        state = self._or_reason(identifier, lambda: self._views().load(identifier))
        tag = Tag(origin=origin, location=state.metadata_location, etag="") if isinstance(state, ViewState) else None
        return None if state is None else Seen(state=state, tag=tag)

    def _table_seen(self, identifier: TableIdentifier, tag: Tag | None, origin: str) -> Seen | None:
        answer = self._or_reason(identifier, lambda: Rest(self.catalog()).table(identifier, tag.etag if tag else ""))
        if answer is None or isinstance(answer, Unreadable):
            return None if answer is None else Seen(state=answer, tag=None)
        table, etag = answer
        if table is None:
            return Seen(state=None, tag=tag)
        state = self._or_reason(identifier, lambda: self._state(identifier, self._known(table)))
        return Seen(state=state, tag=Tag(origin=origin, location=table.metadata_location, etag=etag) if etag else None)

    def _state_at(self, identifier: TableIdentifier, location: str) -> State:
        def read() -> State:
            # The table as it is now has the credentials.
            raw = dump_earlier(self._table(identifier), location)
            return metadata.state(identifier, location, self._seen(raw), is_view=False)

        return self._or_reason(identifier, read)

    def _find_or_reason(self, identifier: TableIdentifier) -> State | None:
        return self._or_reason(identifier, lambda: self._find(identifier))

    def _or_reason(self, identifier: TableIdentifier, find: Callable[[], _Found]) -> _Found | Unreadable:
        from pyiceberg.exceptions import ValidationError

        try:
            return find()
        except CatalogError as error:
            if error.unreachable:
                raise
            return Unreadable(identifier=identifier, reason=str(error))
        except (ValueError, LookupError, FileNotFoundError, ValidationError) as error:
            reason = self._translator.error(error)
            return Unreadable(identifier=identifier, reason=f"The metadata of {identifier} cannot be read: {reason}")

    def _seen(self, raw: Raw) -> Raw:
        return raw if self._branch is None else seen(raw, self._branch)

    def _state(self, identifier: TableIdentifier, table: Table) -> TableState:
        found = metadata.state(identifier, table.metadata_location, self._seen(dump(table)), is_view=False)
        assert isinstance(found, TableState)
        return found

    def _scratch_root(self, table: TableState, scratch: TableIdentifier) -> str:
        root = self._properties.get("warehouse", "").rstrip("/")
        if "/" in root:
            return root
        # A REST warehouse may be only a name: then the copy goes below the table, whose store is known to be writable. But not below a
        # table of another catalog, where mvbuild writes nothing.
        if table.identifier.catalog == self.name:
            return table.location.rstrip("/")
        self.add_namespace(scratch.namespace)
        found = self.catalog().load_namespace_properties(scratch.namespace).get("location")
        if not found:
            raise CatalogError(
                f"Catalog '{self.name}' has no location for a copy of {table.identifier}: namespace {scratch.namespace[0]} has none."
            )
        return str(found).rstrip("/")

    def _check(self, views: Sequence[ViewCommit], changes: Sequence[TableCommit]) -> None:
        """Later steps must fail before a view is changed, because views and tables are not one commit here."""
        for view in views:
            self._views().check(view)
        if views:
            for change, table in zip(changes, in_parallel(self._table, [change.identifier for change in changes]), strict=True):
                tables.check(dump(table), change.identifier, change.expect_uuid, change.expect_snapshot_id)
        renames = [*((view.identifier, view.rename_to) for view in views), *((change.identifier, change.rename_to) for change in changes)]
        for identifier, to in renames:
            if to is None or to == identifier:
                continue
            if not self.catalog().namespace_exists(to.namespace):
                raise CatalogError(f"{identifier} cannot be renamed: namespace {'.'.join(to.namespace)} does not exist.")
            if self._find(to) is not None:
                raise AlreadyExists(f"{identifier} cannot be renamed: {to} already exists.")

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
        return to, state_of(to, rename(self.catalog(), change.identifier, to, change.expect_uuid))

    def _edit_of(self, change: TableCommit) -> Edit:
        staged = dump(self._table(change.staged)) if change.staged is not None else None

        def make(raw: Raw, data: Data) -> Raw:
            if staged is not None:
                scratches.check_base(raw, staged, change.identifier)
            return committed(raw, change, staged, restating(data))

        return self._edit(change.identifier, make)

    def _edit(self, identifier: TableIdentifier, make: Callable[[Raw, Data], Raw]) -> Edit:
        branch = self._branch
        if branch is None:
            return Edit(identifier=identifier, make=make)
        return Edit(identifier=identifier, make=lambda raw, data: put_back(make(seen(raw, branch), data), branch))

    def _drop(self, change: DropCommit) -> None:
        if change.expect_metadata_location:
            found = self._find(change.identifier)
            if found is None or found.metadata_location != change.expect_metadata_location:
                raise CommitConflict(f"{change.identifier} was changed or dropped by another process.")
        if not self.remove(change.identifier, change.expect_metadata_location):
            self._views().drop(change.identifier)


def _moved(change: BranchCommit) -> Edit:
    def make(raw: Raw, _: Data) -> Raw:
        return published(raw, change.branch, change.identifier) if change.to == "publish" else dropped(raw, change.branch)

    return Edit(identifier=change.identifier, make=make)
