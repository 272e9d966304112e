"""Audited -> Published: `main` is the tested snapshot, and the record and the view fit it, in one commit."""

from __future__ import annotations

from mvbuild.dataclass import dataclass
from mvbuild.freshness.indirect import indirect
from mvbuild.ports.commits import TableCommit
from mvbuild.ports.states import Snapshot
from mvbuild.refresh.audit import Audited
from mvbuild.refresh.auxiliary_views import publish_views
from mvbuild.refresh.run_id import left_over
from mvbuild.refresh.session import RunSession
from mvbuild.refresh.stage import Staged
from mvbuild.refresh.write_outcome import WriteOutcome
from mvbuild.storage.auxiliary_views import named_views, with_doubt
from mvbuild.storage.commits import recorded
from mvbuild.storage.history import next_refresh_id, written_in
from mvbuild.storage.layout import changed_properties, docs, storage_layout
from mvbuild.storage.refresh_properties import after_refresh
from mvbuild.storage.stored import stored


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A refresh that readers see; with `--atomic`, at the end of the run."""

    audited: Audited
    snapshots: tuple[Snapshot, ...]
    """The snapshots that the refresh made, with the published one first."""
    outcome: WriteOutcome | None
    """What an incremental refresh wrote, with all counts; None for a full one."""


def publish(session: RunSession, audited: Audited) -> Published:
    """Raises CommitConflict if another writer came first; then nothing is published."""
    staged = audited.staged
    session.on_stage(staged.prepared.pinned.node.id, "publishing")
    prepared, written, head = staged.prepared, staged.written, staged.snapshot
    node, view = prepared.pinned.node, prepared.view
    if view and view.expect_metadata_location is None:
        session.catalog.ensure_namespace(node.identifier.namespace)
    publish_views(session, prepared.pinned.world, staged.views)
    session.publish([*([view] if view else []), _commit(session, audited)], prepared.pinned.world, written)
    made = tuple(s for s in written_in(written, head) if s.snapshot_id not in staged.place.before.snapshots)
    outcome = staged.outcome.counted(head.summary) if staged.outcome else None
    return Published(audited=audited, snapshots=made, outcome=outcome)


def _commit(session: RunSession, audited: Audited) -> TableCommit:
    """Move `main` to the tested snapshot and set the record, or do neither."""
    staged = audited.staged
    prepared, place = staged.prepared, staged.place
    pinned, before, view = prepared.pinned, place.before, prepared.view
    node, number = pinned.node, next_refresh_id(before)
    # The staged table has the columns' comments; after a rollback the table itself may have older ones.
    layout = storage_layout(node, before.schema) if place.branch else None
    of_refresh = after_refresh(
        before,
        staged.snapshot,
        number,
        schemas=pinned.schemas,
        clock=pinned.clock,
        settings=prepared.settings,
        session=prepared.session_property,
        mark=staged.mark,
    )
    return recorded(
        node,
        before,
        prepared.record,
        number,
        indirect=indirect(pinned.world, node, prepared.record, (view.uuid if view else None) or ""),
        set_properties={**changed_properties(node, before).set, **of_refresh.set, **_named(staged)},
        also_remove=of_refresh.remove,
        set_snapshot_id=staged.snapshot.snapshot_id,
        layout=layout if layout and docs(layout.schema) != docs(before.schema) else None,
        staged=None if place.branch else place.table,
        drop_branches=((place.branch,) if place.branch else ()) + left_over(before.branches, session.run, session.is_alive),
        new_storage=before.metadata_location if before.of_view is not None and before.mv is None else None,
    )


def _named(staged: Staged) -> dict[str, str]:
    before, record = stored(staged.place.before).record, staged.prepared.record
    if not staged.views:
        # Forced although there was nothing to refresh: whoever asks for that does not trust the rows.
        is_doubt = staged.choice.code == "forced" and before is not None and before.base_tables == record.base_tables
        return with_doubt(staged.place.before) if is_doubt else {}
    views = [one.named for one in staged.views]
    return named_views(staged.place.before, str(staged.snapshot.snapshot_id), record, views)
