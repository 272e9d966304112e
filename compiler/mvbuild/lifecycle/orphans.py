"""storage -> files below its location that no metadata refers to, and that no run is writing."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mvbuild.lifecycle.drop import metadata_files, shares_directory, tables_of
from mvbuild.ports.catalog import Catalog
from mvbuild.ports.states import State, TableState, ViewState
from mvbuild.ports.table_files import TableFiles
from mvbuild.refresh.run_id import SCRATCH_NAMESPACE, started_ms
from mvbuild.refresh.session import RunSession

_METADATA_FILE = re.compile(r"\.metadata\.json(\.gz)?\Z")


def orphans(session: RunSession, storage: TableState, around: Iterable[State], *, before_ms: int) -> tuple[str, ...]:
    """Only files that are older than every active run. The listing comes first, so that it does not contain later commits.

    `around` is everything that may use the same directory; it may include the storage itself.
    """
    catalog, entry = session.catalog, storage.of_view or storage.identifier
    listed = catalog.files.below(storage.location)
    near = {s.identifier for s in around if shares_directory(storage.location, [s])} | {entry}
    found = catalog.load(sorted(near))
    now = [s for s in found.values() if isinstance(s, TableState | ViewState)]
    if entry not in {s.identifier for s in now} or len(now) < len(found):
        # The files of an entry that cannot be read are unknown.
        return ()
    before_ms = min([before_ms, *_live(catalog, tables_of(now), before_ms)])
    old = {file for file, changed_ms in listed if changed_ms < before_ms}
    for state in now if old else ():
        old -= _referenced_files(catalog.files, state)
    if any(isinstance(s, ViewState) and s.identifier != entry for s in now):
        # No list contains the earlier versions of another view's metadata.
        old = {file for file in old if not _METADATA_FILE.search(file)}
    return tuple(sorted(old))


def _referenced_files(store: TableFiles, state: TableState | ViewState) -> set[str]:
    files = metadata_files(store, state)
    for table in tables_of([state]):
        files |= store.of(table)
    return files


def _live(catalog: Catalog, tables: Iterable[TableState], never: int) -> list[int]:
    """The start times of the runs whose branches and scratch tables exist. Those of dead runs were removed before."""
    names = [*(i.name for i in catalog.list_names(SCRATCH_NAMESPACE)), *(b for t in tables for b in t.branches)]
    return [begun for name in names if (begun := started_ms(name)) is not None and begun < never]
