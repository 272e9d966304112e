"""seed + RunSession -> its rows in the catalog, in one snapshot."""

from __future__ import annotations

from mvbuild.freshness.pending import SEED_CHECKSUM
from mvbuild.graph.model import SeedNode
from mvbuild.plan.collisions import OWNER
from mvbuild.ports.catalog import AlreadyExists, CommitConflict, TableLayout, TableState
from mvbuild.project.seeds import SeedRows
from mvbuild.refresh.outcome import Outcome
from mvbuild.refresh.result import count_rows
from mvbuild.refresh.session import RunSession


def load(session: RunSession, node: SeedNode, rows: SeedRows) -> Outcome:
    """Make the file's rows the content of the seed's table. If another run loaded the same file meanwhile, nothing is left to do."""
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
                # Marked from the start: a run that is killed before the rows are there must not leave a table that nobody knows.
                session.catalog.ensure_namespace(node.identifier.namespace)
                session.catalog.create_table(node.identifier, layout, {**node.seed.config.table_properties, OWNER: node.id})
            state = session.catalog.replace_rows(node.identifier, layout, columns, properties)
        except (CommitConflict, AlreadyExists):
            continue
        session.observe({node.identifier: state})
        count = len(rows.columns[0]) if rows.columns else 0
        return Outcome(message=count_rows(count), details={"snapshot_id": state.current_snapshot_id, "rows": count})
    raise CommitConflict(f"{node.identifier} is being changed by others")


def _is_loaded(session: RunSession, node: SeedNode) -> bool:
    session.reload([node.identifier])
    state = session.world.observed.states.get(node.identifier)
    return isinstance(state, TableState) and state.properties.get(SEED_CHECKSUM) == node.seed.checksum
