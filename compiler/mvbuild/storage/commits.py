"""RefreshRecord + storage -> TableCommit: the one place that turns a record into a commit, in the format of the MV."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from mvbuild.diagnostics import ProjectError
from mvbuild.formats import metadata_file, properties, refresh_state
from mvbuild.formats.properties import Indirect
from mvbuild.formats.record import RecordError, RefreshRecord
from mvbuild.graph.model import ModelNode
from mvbuild.ports.commits import OtherRefresh, Refresh, TableCommit
from mvbuild.ports.states import TableState
from mvbuild.storage.format import unrecordable
from mvbuild.storage.history import DEFINITION, REFRESH_ID, STRATEGY, current_refresh_id, history
from mvbuild.storage.names import known_as


def summary_of(record: RefreshRecord, refresh_id: int, strategy: str, definition: str) -> dict[str, str]:
    """What the snapshot of a refresh records about it, in every format. `definition`: its fingerprint."""
    return {refresh_state.KEY: refresh_state.encode(record), REFRESH_ID: str(refresh_id), STRATEGY: strategy, DEFINITION: definition}


def restated(storage: TableState, record: RefreshRecord, definition: str) -> dict[str, str] | None:
    """A property has one snapshot per table. If more was read of a table (a branch, a tag, or the same table under another name), only the
    summary of a snapshot can record it, so the same files get a new snapshot."""
    if storage.current_snapshot_id is None or max(Counter(t.uuid for t in record.base_tables).values(), default=0) < 2:
        return None
    strategy = next((past.strategy for past in history(storage) if past.is_current), "")
    return summary_of(record, current_refresh_id(storage), strategy, definition)


def recorded(
    node: ModelNode,
    storage: TableState,
    record: RefreshRecord,
    refresh_id: int,
    *,
    indirect: Indirect,
    set_properties: Mapping[str, str] | None = None,
    also_remove: tuple[str, ...] = (),
    others: tuple[OtherRefresh, ...] = (),
    **changes: Any,
) -> TableCommit:
    """A commit that makes this the record of the storage's data, with further changes."""
    is_embedded = storage.of_view is not None
    of_record = {} if is_embedded else properties.encode(record, indirect)
    return TableCommit(
        identifier=known_as(storage),
        expect_uuid=storage.uuid,
        expect_snapshot_id=storage.current_snapshot_id,
        set_properties={**(set_properties or {}), **of_record},
        remove_properties=also_remove if is_embedded else (*also_remove, *properties.stale_keys(storage.properties, record, indirect)),
        of_view=storage.of_view,
        refresh=Refresh(refresh_id=refresh_id, record=record, keep=kept_refreshes(node), others=others) if is_embedded else None,
        **changes,
    )


def kept_refreshes(node: ModelNode) -> int | None:
    """How many refreshes a metadata file lists; None for all."""
    wanted = node.model.config.refresh_history
    return None if wanted == "all" else wanted


def require_recordable(node: ModelNode, record: RefreshRecord) -> None:
    """Raise ProjectError if the metadata file cannot express the record. Called before anything is computed."""
    try:
        metadata_file.encode_refresh(record, refresh_id=1, sequence_number=None)
    except RecordError as exc:
        raise ProjectError([unrecordable(node, str(exc))]) from exc
