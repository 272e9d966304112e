"""changes of the catalog port -> Edits: which names each one reads, and how it changes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mvbuild.adapters.iceberg import mvs
from mvbuild.adapters.iceberg import scratch as scratches
from mvbuild.adapters.iceberg.branch_files import own_identifier
from mvbuild.adapters.iceberg.branches import dropped, published
from mvbuild.adapters.iceberg.entries import Entry, key, read_table
from mvbuild.adapters.iceberg.publish import Edit, Gone, Put
from mvbuild.adapters.iceberg.table_commits import committed
from mvbuild.ports.catalog import AlreadyExists, CatalogError, CommitConflict
from mvbuild.ports.commits import BranchCommit, ConvertCommit, DropCommit, TableCommit, ViewCommit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from mvbuild.adapters.iceberg.files import Files
    from mvbuild.adapters.iceberg.metadata import Raw
    from mvbuild.adapters.iceberg.pointers import Pointers
    from mvbuild.adapters.iceberg.table_commits import Restate
    from mvbuild.names import TableIdentifier
    from mvbuild.ports.commits import Change


class Editor:
    """Makes the edits of one catalog."""

    def __init__(self, pointers: Pointers, files: Files, *, restate: Restate, catalog: str) -> None:
        self._pointers = pointers
        self._files = files
        self._restate = restate
        self._catalog = catalog

    def edits(self, changes: Sequence[Change]) -> list[Edit]:
        """One edit per table, view or MV: a view and the storage that it embeds are one."""
        storages = {c.identifier: c for c in changes if isinstance(c, TableCommit) and c.of_view is not None}
        for storage in storages.values():
            if storage.identifier != storage.of_view:
                raise CatalogError(f"{storage.identifier} is not the name of the view {storage.of_view} that embeds it.")
        return [edit for change in changes for edit in self._edits(change, storages, changes)]

    def _edits(self, change: Change, storages: Mapping[TableIdentifier, TableCommit], changes: Sequence[Change]) -> Iterator[Edit]:
        if isinstance(change, DropCommit):
            yield _drop(change)
        elif isinstance(change, ConvertCommit):
            yield self._conversion(change)
        elif isinstance(change, BranchCommit):
            yield _branch(change)
        elif isinstance(change, ViewCommit):
            if change.identifier not in storages:
                yield self._view(change)
        elif change.of_view is None:
            yield self._table(change)
        else:
            views = [c for c in changes if isinstance(c, ViewCommit) and c.identifier == change.identifier]
            if len(views) > 1:
                raise CatalogError("A commit can change each table or view only once.")
            yield self._mv(change, views[0] if views else None)

    def _table(self, change: TableCommit) -> Edit:
        staged = self._staged(change)
        target = self._target(change.identifier, change.rename_to)

        def make(found: Mapping[TableIdentifier, Entry]) -> list[Put]:
            base = found.get(change.identifier)
            _require_free(found, change.identifier, change.rename_to)
            raw = table_of(change.identifier, base)
            if staged is not None:
                scratches.check_base(raw, staged, change.identifier)
            new = committed(raw, change, staged, self._restate)
            return [Put(identifier=change.rename_to or change.identifier, kind="TABLE", raw=new, base=base)]

        return Edit(reads=target, make=make)

    def _mv(self, change: TableCommit, view: ViewCommit | None) -> Edit:
        staged = self._staged(change)
        rename_to = (view.rename_to if view else None) or change.rename_to
        if change.new_storage is not None:
            self.require_namespace(change.identifier)

        def base() -> Raw:
            assert change.new_storage is not None
            return read_table(self._files, change.identifier, change.new_storage)

        def make(found: Mapping[TableIdentifier, Entry]) -> list[Put]:
            _require_free(found, change.identifier, rename_to)
            entry = found.get(change.identifier)
            if staged is not None:
                scratches.check_base(mvs.table_of(entry, base), staged, change.identifier)
            return [self._put(change.identifier, entry, change, view, base=base, staged=staged)]

        return Edit(reads=self._target(change.identifier, rename_to), make=make)

    def _view(self, change: ViewCommit) -> Edit:
        target = self._target(change.identifier, change.rename_to)
        if change.expect_metadata_location is None:
            self.require_namespace(change.identifier)

        def make(found: Mapping[TableIdentifier, Entry]) -> list[Put]:
            _require_free(found, change.identifier, change.rename_to)
            entry = found.get(change.identifier)
            if entry is not None and entry.mv is not None:
                return [self._put(change.identifier, entry, None, change, base=dict, staged=None)]
            if not self._pointers.has_views:
                raise CatalogError(
                    f"View {change.identifier} cannot be written: the file-system warehouse '{self._catalog}' has no views;"
                    " it can only have tables, and materialized views in the metadata-file format."
                )
            raw = mvs.view_metadata(entry, change, lambda: self._pointers.location(change.identifier))
            return [Put(identifier=change.rename_to or change.identifier, kind="VIEW", raw=raw, base=entry)]

        return Edit(reads=target, make=make)

    def _put(
        self,
        identifier: TableIdentifier,
        entry: Entry | None,
        table: TableCommit | None,
        view: ViewCommit | None,
        *,
        base: Callable[[], Raw],
        staged: Raw | None,
    ) -> Put:
        return mvs.put(identifier, entry, table, view, base=base, staged=staged, restate=self._restate)

    def _conversion(self, change: ConvertCommit) -> Edit:
        if not self._pointers.has_views:
            raise CatalogError(
                f"{change.view.identifier} cannot be converted: the file-system warehouse '{self._catalog}' has no views, and supports"
                " materialized views in the metadata-file format only."
            )
        self.require_namespace(change.storage_name)
        return Edit(reads=(change.view.identifier, change.storage_name), make=lambda found: mvs.converted(change, found))

    def _staged(self, change: TableCommit) -> Raw | None:
        if change.staged is None:
            return None
        found = self._pointers.find([key(change.staged)]).get(key(change.staged))
        if found is None:
            raise CatalogError(f"The scratch table {change.staged} does not exist.")
        raw = read_table(self._files, change.staged, found[0])
        if not scratches.is_scratch(raw):
            raise CatalogError(f"{change.staged} is not a scratch table of mvbuild.")
        return raw

    def _target(self, identifier: TableIdentifier, rename_to: TableIdentifier | None) -> tuple[TableIdentifier, ...]:
        if rename_to is None or rename_to == identifier:
            return (identifier,)
        if not self._pointers.has_views:
            raise CatalogError(f"{identifier} cannot be renamed: in the file-system warehouse '{self._catalog}' its name is its directory.")
        self.require_namespace(rename_to)
        return identifier, rename_to

    def require_namespace(self, identifier: TableIdentifier) -> None:
        if not self._pointers.has_namespace(".".join(identifier.namespace)):
            raise CatalogError(f"Namespace {'.'.join(identifier.namespace)} does not exist in catalog '{self._catalog}'.")


def table_of(identifier: TableIdentifier, entry: Entry | None) -> Raw:
    if entry is None:
        raise CommitConflict(f"Table {identifier} no longer exists.")
    if entry.kind != "TABLE":
        raise CommitConflict(f"{identifier} is a view, not a table.")
    return entry.raw


def _drop(change: DropCommit) -> Edit:
    # Nothing is read, because an entry that cannot be read can still be dropped.
    gone = Gone(identifier=change.identifier, location=change.expect_metadata_location)
    return Edit(reads=(), make=lambda found: [gone])  # noqa: ARG005


def _branch(change: BranchCommit) -> Edit:
    own = own_identifier(change.identifier, change.branch)

    def make(found: Mapping[TableIdentifier, Entry]) -> list[Put | Gone]:
        entry, only_here = found.get(change.identifier), found.get(own)
        if entry is not None and only_here is not None and change.to == "publish":
            raise CommitConflict(f"{change.identifier} has been created since branch '{change.branch}' was built.")
        if entry is not None:
            new = published(entry.raw, change.branch, change.identifier) if change.to == "publish" else dropped(entry.raw, change.branch)
            gone = [Gone(identifier=own, location=only_here.location)] if only_here is not None else []
            return [Put(identifier=change.identifier, kind=entry.kind, raw=new, base=entry), *gone]
        if only_here is None:
            raise CommitConflict(f"{change.identifier} no longer has branch '{change.branch}'.")
        if change.to == "drop":
            return [Gone(identifier=own, location=only_here.location)]
        return [Put(identifier=change.identifier, kind=only_here.kind, raw=only_here.raw, base=only_here)]

    return Edit(reads=(change.identifier, own), make=make)


def _require_free(found: Mapping[TableIdentifier, Entry], identifier: TableIdentifier, rename_to: TableIdentifier | None) -> None:
    if rename_to is not None and rename_to != identifier and rename_to in found:
        raise AlreadyExists(f"{identifier} cannot be renamed: {rename_to} already exists.")
