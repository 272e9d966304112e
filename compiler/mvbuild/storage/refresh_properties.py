"""a refresh -> the properties of the storage beside the record: none of them is in a specification."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mvbuild.formats import failed_tests
from mvbuild.formats.properties import REFRESH_SNAPSHOT
from mvbuild.ports.states import Snapshot, TableState
from mvbuild.storage.history import SETTINGS
from mvbuild.storage.layout import PropertyChanges
from mvbuild.storage.proof import PROVEN
from mvbuild.storage.reads import read_properties, stale_reads
from mvbuild.storage.schema import schema_property, stale_schema_property
from mvbuild.storage.schemas_read import stale_schemas
from mvbuild.storage.sessions import settings_property


def after_refresh(
    storage: TableState,
    head: Snapshot,
    refresh_id: int,
    *,
    schemas: Mapping[str, str],
    clock: Mapping[str, str],
    settings: str,
    session: Mapping[str, str],
    mark: str,
) -> PropertyChanges:
    """The changes when a refresh is published. `head`: its snapshot. For `schemas`, `clock`, `settings`, `session` and `mark` see
    `schemas_read.py`, `reads.py`, `sessions.py` and `proof.py`."""
    schema = schema_property(head)
    of_refresh = {REFRESH_SNAPSHOT: str(head.snapshot_id), **schema, SETTINGS: settings_property(refresh_id, settings), **session}
    reads = read_properties(refresh_id, clock)
    unproven = (PROVEN,) if not mark and PROVEN in storage.properties else ()
    return PropertyChanges(
        set={**schemas, **reads, **of_refresh, **_proven(mark)},
        remove=(
            *stale_schemas(storage.properties, schemas),
            *stale_reads(storage.properties, reads),
            *stale_schema_property(storage.properties, schema),
            *unproven,
            *_failed(storage),
        ),
    )


def after_advance(
    storage: TableState, refresh_id: int, *, schemas: Mapping[str, str], clock: Mapping[str, str], mark: str
) -> PropertyChanges:
    """The changes when only the record moves on. An earlier proof holds."""
    reads = read_properties(refresh_id, clock)
    return PropertyChanges(
        set={**schemas, **reads, **_proven(mark)},
        remove=(*stale_schemas(storage.properties, schemas), *stale_reads(storage.properties, reads), *_failed(storage)),
    )


def _proven(mark: str) -> dict[str, str]:
    return {PROVEN: mark} if mark else {}


def _failed(storage: TableState) -> Iterator[str]:
    """The mark of data tests that failed before."""
    yield from (failed_tests.KEY,) if failed_tests.KEY in storage.properties else ()
