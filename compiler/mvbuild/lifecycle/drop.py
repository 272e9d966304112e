"""Removed -> a catalog without the entries, and a store without their files."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, error
from mvbuild.formats.metadata_file import METADATA_LOCATION
from mvbuild.names import TableIdentifier
from mvbuild.plan.dependents import Dependent
from mvbuild.plan.removed import Removed, refusal
from mvbuild.ports.catalog import Catalog, CatalogError, CommitConflict
from mvbuild.ports.commits import DropCommit
from mvbuild.ports.states import State, TableState, Unreadable, ViewState
from mvbuild.ports.table_files import TableFiles

_CHECKSUM = re.compile(r"/\.[^/]+\.crc\Z")
"""For a deleted file: the deleter did not know about Hadoop's checksum."""
_METADATA = re.compile(r"/metadata/[^/]+\.metadata\.json(\.gz)?\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """One dropped view or MV: its entries, and how many files were deleted."""

    names: tuple[TableIdentifier, ...]
    files: int
    unreadable: tuple[TableIdentifier, ...] = ()
    """The names whose files are unknown and were not deleted."""


def drop_all(catalog: Catalog, items: Iterable[Removed]) -> tuple[tuple[Dropped, ...], tuple[Diagnostic, ...]]:
    """Drop everything that no remaining node reads; the rest is reported. `items` are in order, readers first."""
    dropped: list[Dropped] = []
    diagnostics: list[Diagnostic] = []
    staying: dict[tuple[str, ...], Dependent] = {}
    for item in items:
        kept_by = item.kept_by or tuple(d for d in item.dependents if d.identifier.key in staying)
        if kept_by:
            diagnostics.append(refusal(item, kept_by))
        else:
            try:
                dropped.append(drop(catalog, item))
                continue
            except CommitConflict as exc:
                diagnostics.append(error("commit-conflict", f"{item.identifier} is not dropped: {exc}"))
            except CatalogError as exc:
                code = "catalog-unreachable" if exc.unreachable else "catalog-error"
                diagnostics.append(error(code, f"{item.identifier} is not dropped: {exc}"))
        staying[item.identifier.key] = Dependent(identifier=item.identifier)
    return tuple(dropped), tuple(diagnostics)


def drop(catalog: Catalog, item: Removed) -> Dropped:
    """Drop view, storage and auxiliary views in one commit, and then delete the files that only they referred to."""
    states = [s for s in (item.view, item.storage, *item.auxiliary) if s is not None]
    # A view of mvbuild's is in the directory of its storage; no file is deleted for an entry that cannot be read.
    files = set() if item.view and item.unreadable else _files(catalog.files, item, neighbours(catalog, states))
    catalog.commit(
        [DropCommit(identifier=s.identifier, expect_metadata_location=s.metadata_location) for s in (*item.auxiliary, *item.entries)]
    )
    broken = tuple(s.identifier for s in item.unreadable)
    return Dropped(names=item.names, files=catalog.files.delete(files), unreadable=broken)


def neighbours(catalog: Catalog, states: Iterable[TableState | ViewState]) -> list[State]:
    """Everything else in the namespaces of some tables and views: a directory may be shared, above all after a rename."""
    own = {s.identifier for s in states}
    return [s for s in everything(catalog, {i.namespace for i in own}) if s.identifier not in own]


def everything(catalog: Catalog, namespaces: Iterable[tuple[str, ...]]) -> list[State]:
    """All tables and views of some namespaces, in one read."""
    names = {i for ns in sorted(set(namespaces)) for i in catalog.list_names(ns)}
    return list(catalog.load(sorted(names)).values())


def tables_of(states: Iterable[State]) -> list[TableState]:
    """The tables among them, including embedded ones."""
    found = [s.storage if isinstance(s, ViewState) else s for s in states]
    return [t for t in found if isinstance(t, TableState)]


def metadata_files(store: TableFiles, state: TableState | ViewState) -> set[str]:
    """The current metadata; for an MV in the metadata-file format, the view's own file and the one that it points to."""
    of_mv = state.properties.get(METADATA_LOCATION) if isinstance(state, ViewState) else None
    return {store.spelled(file) for file in (state.metadata_location, of_mv) if file}


def shares_directory(location: str, others: Iterable[State]) -> bool:
    """Whether another table or view is in, below or above a location."""
    here = location.rstrip("/") + "/"
    return any((there := _place(o) + "/").startswith(here) or here.startswith(there) for o in others)


def _place(state: State) -> str:
    """For an entry that cannot be read, only the metadata file is known, which is in a folder below its location."""
    location = state.metadata_location.rpartition("/metadata/")[0] if isinstance(state, Unreadable) else state.location
    return location.rstrip("/")


def _files(store: TableFiles, item: Removed, others: list[State]) -> set[str]:
    files: set[str] = set()
    storage = item.storage or (item.view.storage if item.view else None)
    own = [table for table in (storage, *item.auxiliary) if table is not None]
    around = tables_of(others)
    # A table that was registered a second time under another name still has an owner.
    removed = [table for table in own if not any(t.uuid == table.uuid for t in around)]
    for table in removed:
        files |= store.of(table)
    for table in around if files else ():
        if shares_directory(table.location, own):
            files -= store.of(table)
    for table in removed:
        files |= _versions(store, table, others, files)
    if item.view:
        files |= metadata_files(store, item.view) | _versions(store, item.view, others, files)
    return files


def _versions(store: TableFiles, state: TableState | ViewState, others: list[State], own: set[str]) -> set[str]:
    """The metadata files of all versions of a view, and those of a table from the time before it was converted. There is no list of them,
    so if others use the directory, none of them is known."""
    listed = {file for file, _ in store.below(f"{state.location.rstrip('/')}/metadata") if not _CHECKSUM.search(file)}
    versions = {file for file in listed if _METADATA.search(file)}
    return set() if shares_directory(state.location, others) or not listed <= versions | own else versions
