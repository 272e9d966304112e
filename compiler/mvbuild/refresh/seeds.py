"""seed + RunSession -> its rows in the catalog, in one snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mvbuild.formats.properties import OWNER
from mvbuild.freshness.pending import SEED_CHECKSUM
from mvbuild.graph.model import SeedNode
from mvbuild.ports.catalog import AlreadyExists, CommitConflict
from mvbuild.ports.commits import TableCommit, TableLayout
from mvbuild.ports.states import TableState
from mvbuild.project.seeds import SeedRows
from mvbuild.refresh.outcome import Outcome
from mvbuild.refresh.result import count_rows
from mvbuild.refresh.session import RunSession
from mvbuild.refresh.staging_area import staged_copy


def load(session: RunSession, node: SeedNode, rows: SeedRows) -> Outcome:
    """Make the file's rows the content of the seed's table. If another run loaded the same file in the meantime, there is nothing left to
    do."""
    properties = {**node.seed.config.table_properties, SEED_CHECKSUM: node.seed.checksum, OWNER: node.id}
    fields = [
        {"id": i, "name": name, "type": type_, "required": False}
        for i, (name, type_) in enumerate(zip(rows.names, rows.types, strict=True), 1)
    ]
    layout = TableLayout(schema={"type": "struct", "schema-id": 0, "fields": fields})
    columns = dict(zip(rows.names, rows.columns, strict=True))
    for _ in range(3):
        if _is_loaded(session, node):
            return Outcome(message="another run loaded it", reused=True)
        try:
            if node.identifier not in session.world.observed.states:
                # Marked from the start: a run that is killed before the rows exist must not leave a table without an owner.
                session.catalog.ensure_namespace(node.identifier.namespace)
                session.catalog.create_table(node.identifier, layout, {**node.seed.config.table_properties, OWNER: node.id})
            state = _replaced(session, node, layout, columns, properties)
        except (CommitConflict, AlreadyExists):
            continue
        count = len(rows.columns[0]) if rows.columns else 0
        return Outcome(message=count_rows(count), details={"snapshot_id": state.current_snapshot_id, "rows": count})
    raise CommitConflict(f"other processes keep changing {node.identifier}")


def _replaced(
    session: RunSession, node: SeedNode, layout: TableLayout, columns: Mapping[str, Sequence[Any]], properties: Mapping[str, str]
) -> TableState:
    """The table with its new rows: at once, or in a scratch table until the run publishes everything."""
    if session.pending is None:
        state = session.catalog.replace_rows(node.identifier, layout, columns, properties)
        session.observe({node.identifier: state})
        return state
    before = session.load([node.identifier])[node.identifier]
    if not isinstance(before, TableState):
        raise AlreadyExists(f"{node.identifier} is a view.")
    with session.staging_area(staged_copy(session, before, layout)) as scratch:
        written = session.catalog.replace_rows(scratch, layout, columns, {})
        commit = TableCommit(
            identifier=node.identifier,
            expect_uuid=before.uuid,
            expect_snapshot_id=before.current_snapshot_id,
            set_snapshot_id=written.current_snapshot_id,
            staged=scratch,
            set_properties={name: value for name, value in properties.items() if name != "format-version"},
        )
        session.observe({node.identifier: before})
        session.publish([commit], written=written)
        return written


def _is_loaded(session: RunSession, node: SeedNode) -> bool:
    session.reload([node.identifier])
    state = session.world.observed.states.get(node.identifier)
    return isinstance(state, TableState) and state.properties.get(SEED_CHECKSUM) == node.seed.checksum
