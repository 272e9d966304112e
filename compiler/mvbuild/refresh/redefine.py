"""MV with a changed definition + RunSession -> Outcome if Spark proves that its rows are the same, otherwise None: then it is refreshed."""

from __future__ import annotations

from mvbuild.diagnostics import ProjectError
from mvbuild.equivalence.edit import Edit
from mvbuild.equivalence.ladder import proven
from mvbuild.freshness.leaves import inputs, node_inputs
from mvbuild.freshness.observed import World
from mvbuild.freshness.pending import definition_edit, stored_definition
from mvbuild.graph.model import ModelNode, NodeId
from mvbuild.names import TableIdentifier
from mvbuild.parse.model import Query
from mvbuild.parse.project import parse_text
from mvbuild.plan.alter import alteration
from mvbuild.ports.catalog import CommitConflict
from mvbuild.ports.states import ViewState
from mvbuild.refresh.alter import for_new_version
from mvbuild.refresh.outcome import Outcome
from mvbuild.refresh.session import RunSession
from mvbuild.refresh.sql import pinned_sql
from mvbuild.refresh.views import next_version
from mvbuild.storage.layout import documented
from mvbuild.storage.stored import stored


def redefine(session: RunSession, node: ModelNode) -> Outcome | None:
    """Give the view its new text and record the same data for it. None if the proof or the commit fails."""
    world = session.world
    view, storage = world.observed.view(node.identifier), world.observed.table(node.storage)
    record = stored(storage).record if storage else None
    if view is None or storage is None or record is None:
        return None
    edit = _proven(session, node, view)
    if edit is None or edit.rung != "proof":
        return None
    commit = next_version(world, node, view, documented(node, view.schema))
    try:
        session.publish(for_new_version(world, node, storage, commit, record, alteration(world, node)))
    except CommitConflict:
        return None
    message = f"its definition was changed: {edit.message}. Spark's plans prove that it is the same query: only the view has a new text"
    return Outcome(message=message, reused=True)


def _proven(session: RunSession, node: ModelNode, view: ViewState) -> Edit | None:
    """The edit from the catalog's definition to the project's, on the rung of a proof if Spark gives one for the snapshots of this run.
    None if they read other tables, or one that does not exist."""
    world = session.world
    edit, old = definition_edit(world, node, view), stored_definition(view, node.storage)
    found = resolved(world, node, old) if old is not None else None
    if edit is None or found is None:
        return None
    query, reads = found
    below = inputs(world.graph, query, reads)
    if set(below.leaves) != set(node_inputs(world.graph, node).leaves):
        return None
    pins = session.pins(below)
    if len(pins) < len(below.leaves):
        return None
    before = pinned_sql(world.graph, query, reads, pins, session.schema_pin)
    after = pinned_sql(world.graph, node.query, node.reads, pins, session.schema_pin)
    return proven(edit, session.engine, before.text, after.text, has_travel=any(leaf.travel for leaf in below.leaves))


def resolved(world: World, node: ModelNode, sql: str) -> tuple[Query, tuple[NodeId, ...]] | None:
    """The query of a stored definition, whose names are full names, with the nodes of the graph that it reads."""
    try:
        query = parse_text(f"view {node.identifier}", sql)
    except ProjectError:
        return None
    by_key = {n.identifier.key: n.id for n in world.graph.nodes.values() if not _is_ephemeral(n)}
    reads = []
    for read in query.reads:
        namespace = read.parts[1:-1] if len(read.parts) > 1 else node.identifier.namespace
        identifier = TableIdentifier(read.parts[0], namespace, read.parts[-1]) if len(read.parts) > 2 else None
        found = by_key.get(identifier.key) if identifier else None
        if found is None:
            return None
        reads.append(found)
    return query, tuple(reads)


def _is_ephemeral(node: object) -> bool:
    return isinstance(node, ModelNode) and node.materialized == "ephemeral"
