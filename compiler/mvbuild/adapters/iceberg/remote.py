"""PyIceberg catalog -> Catalog: the catalog port for REST, and for any catalog without an adapter of its own.

It makes the same edits of metadata JSON as for SQL catalogs, and sends the differences as table updates: to a REST catalog with
transactions in one request, to others one table after the other.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

from mvbuild.adapters.iceberg import metadata, tables
from mvbuild.adapters.iceberg import scratch as scratches
from mvbuild.adapters.iceberg.branch_files import NAMESPACE as BRANCHES
from mvbuild.adapters.iceberg.change_tables import require_change, stage
from mvbuild.adapters.iceberg.data import IcebergData, column_names, scanned
from mvbuild.adapters.iceberg.file_matching import matching, may_match
from mvbuild.adapters.iceberg.net_rows import compares
from mvbuild.adapters.iceberg.remote_changes import no_file_format, require_on_branch, require_possible, with_uuids
from mvbuild.adapters.iceberg.remote_commits import in_parallel
from mvbuild.adapters.iceberg.remote_files import data_of, dump, full_name, restating, whole
from mvbuild.adapters.iceberg.remote_tables import RemoteTables
from mvbuild.adapters.iceberg.remote_views import NoViews
from mvbuild.adapters.iceberg.table_commits import committed
from mvbuild.adapters.iceberg.value_ranges import value_ranges
from mvbuild.names import TableIdentifier
from mvbuild.ports.catalog import AlreadyExists, CatalogError
from mvbuild.ports.changes import NetRows, StagedChange
from mvbuild.ports.commits import BranchCommit, DropCommit, TableCommit, ViewCommit
from mvbuild.ports.states import State, TableState, ViewState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyiceberg.table import Table

    from mvbuild.adapters.iceberg.change_tables import Subset
    from mvbuild.adapters.iceberg.metadata import Raw
    from mvbuild.ports.changes import FileGroup, Predicate, Side, TableChange, ValueRange
    from mvbuild.ports.commits import Change, TableLayout


class RemoteCatalog(RemoteTables):
    """A catalog that stores its own pointers. It is connected on first use."""

    @property
    def atomic(self) -> bool:
        with self._guard():
            return self._sender().together

    @property
    def has_views(self) -> bool:
        with self._guard():
            return not isinstance(self._views(), NoViews)

    @property
    def has_branches(self) -> bool:
        return self.has_views

    def on_branch(self, branch: str) -> RemoteCatalog:
        if not self.has_branches:
            raise CatalogError(f"Catalog '{self.name}' has no views, so it cannot have branches of MVs: '{branch}' cannot be used on it.")
        found = copy(self)
        found._branch = branch
        return found

    def load(self, identifiers: Iterable[TableIdentifier]) -> Mapping[TableIdentifier, State]:
        wanted = [i for i in dict.fromkeys(identifiers) if i.catalog == self.name and i.namespace]
        with self._guard():
            self._catalog()
            found = in_parallel(self._find_or_reason, wanted)
            return {identifier: one for identifier, one in zip(wanted, found, strict=True) if one is not None}

    def list_names(self, namespace: tuple[str, ...]) -> tuple[TableIdentifier, ...]:
        from pyiceberg.exceptions import NoSuchNamespaceError

        with self._guard():
            try:
                names = {*self._catalog().list_tables(namespace), *self._views().names(namespace)}
            except NoSuchNamespaceError:
                return ()
        return tuple(TableIdentifier(self.name, namespace, name[-1]) for name in sorted(names))

    def list_views(self) -> tuple[TableIdentifier, ...]:
        with self._guard():
            views = self._views()
            if isinstance(views, NoViews):
                return ()
            found = [name for namespace in self._namespaces(()) for name in views.names(namespace)]
        return tuple(
            sorted(TableIdentifier(self.name, tuple(name[:-1]), name[-1]) for name in found if name[0] not in (scratches.FOLDER, BRANCHES))
        )

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
            data_of(current).empty_manifest_list(location, raw, snapshot_id)
            return tables.with_branch(raw, branch, tables.empty_snapshot(raw, location, snapshot_id))

        with self._guard():
            return self._edit(table.identifier, make)

    def new_storage(self, view: TableIdentifier, layout: TableLayout, properties: Mapping[str, str]) -> TableState:  # noqa: ARG002
        with self._guard():
            raise no_file_format(view, self._views())

    def stage(self, table: TableState, layout: TableLayout, scratch: TableIdentifier) -> TableState:
        with self._guard():
            current = self._table(table.identifier)
            return self._register(scratch, scratches.staged(self._seen(whole(current)), table, layout), current.io)

    def pin_schema(self, table: TableState, snapshot_id: int, scratch: TableIdentifier, *, own_schema: bool = False) -> TableState:
        with self._guard():
            raw, io = self._readable(table)
            location = f"{self._scratch_root(table, scratch)}/{scratches.FOLDER}/{scratch.name}"
            return self._register(scratch, scratches.pinned(raw, table, snapshot_id, location, own_schema=own_schema), io)

    def change(self, table: TableState, old: int, new: int) -> TableChange:
        with self._guard():
            require_change(table, old, new)
            raw, io = self._readable(table)
            return IcebergData(lambda _: io).change(raw, table, old, new)

    def may_match(self, change: TableChange, conjunctions: Sequence[tuple[Predicate, ...]]) -> bool:
        return may_match(change, conjunctions)

    def matching(self, change: TableChange, predicates: Sequence[Predicate]) -> FileGroup:
        return matching(change, predicates)

    def value_ranges(self, change: TableChange, side: Side, columns: Iterable[str]) -> Mapping[str, ValueRange]:
        return value_ranges(change, side, columns)

    def compares(self, change: TableChange, columns: Sequence[str]) -> bool:
        return compares(change, columns)

    def net_rows(self, change: TableChange, columns: Sequence[str]) -> NetRows | None:
        with self._guard():
            raw, io = self._readable(change.table)
            return IcebergData(lambda _: io).net_rows(raw, change, columns)

    def stage_change(self, change: TableChange, new_scratch: Callable[[], TableIdentifier]) -> StagedChange:
        def register(change: TableChange, subset: Subset, scratch: TableIdentifier) -> None:
            location = f"{self._scratch_root(change.table, scratch)}/{scratches.FOLDER}/{scratch.name}"
            pinned = scratches.pinned(raw, change.table, subset.snapshot_id, location)
            made = IcebergData(lambda _: io).with_subset(pinned, subset)
            try:
                self._register(scratch, made, io)
            except BaseException:
                for written in scratches.own_files(made, "")[1:]:
                    io.delete(written)
                raise

        with self._guard():
            if change.is_empty:
                return StagedChange(parts=())
            raw, io = self._readable(change.table)
            return stage(change, new_scratch, register, self.drop_scratch)

    def drop_scratch(self, identifier: TableIdentifier) -> None:
        from pyiceberg.exceptions import NoSuchTableError

        with self._guard():
            try:
                table = self._catalog().load_table(full_name(identifier))
                raw = dump(table)
                if not scratches.is_scratch(raw):
                    raise CatalogError(f"{identifier} is not a scratch table of mvbuild.")
                self._catalog().drop_table(full_name(identifier))
            except NoSuchTableError:
                return
            for location in scratches.own_files(raw, table.metadata_location):
                table.io.delete(location)

    def commit(self, changes: Sequence[Change]) -> Mapping[TableIdentifier, TableState | ViewState]:
        with self._guard():
            require_possible(changes, self._views())
            if self._branch is not None:
                require_on_branch(changes, self._branch)
            views = [change for change in changes if isinstance(change, ViewCommit)]
            of_tables = [change for change in changes if isinstance(change, TableCommit)]
            self._check(views, of_tables)
            moves = [change for change in changes if isinstance(change, BranchCommit)]
            are_tables = dict(
                zip(moves, in_parallel(lambda move: self._catalog().table_exists(full_name(move.identifier)), moves), strict=True)
            )
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
            return self._edit(identifier, lambda raw, table: committed(raw, change, source, restating(table)))

    def rows(self, table: TableState, limit: int, snapshot_id: int | None = None) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        with self._guard():
            current = self._table(table.identifier)
            raw = self._seen(dump(current))
            if snapshot_id is None and self._branch is not None:
                snapshot_id = table.current_snapshot_id
            if snapshot_id is not None:
                tables.require_snapshot(raw, snapshot_id, table.identifier)
            names = column_names(raw, snapshot_id)
            empty = table.current_snapshot_id is None and snapshot_id is None
            return names, [] if empty or limit <= 0 else scanned(current, limit, snapshot_id)

    def files(self, table: TableState) -> frozenset[str]:
        with self._guard():
            current = self._table(table.identifier)
            raw = whole(current)
            log = {current.metadata_location, *(entry["metadata-file"] for entry in raw.get("metadata-log") or ())}
            return frozenset(map(self._files().spelled, log | data_of(current).reached(raw)))

    def spelled(self, location: str) -> str:
        return self._files().spelled(location)

    def list_files(self, location: str) -> tuple[tuple[str, int], ...]:
        with self._guard():
            return tuple(sorted(self._files().below(location)))

    def delete_files(self, files: Iterable[str]) -> int:
        with self._guard():
            return self._files().delete_all(list(files))

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
            if not self._catalog().namespace_exists(to.namespace):
                raise CatalogError(f"{identifier} cannot be renamed: namespace {'.'.join(to.namespace)} does not exist.")
            if self._find(to) is not None:
                raise AlreadyExists(f"{identifier} cannot be renamed: {to} already exists.")
