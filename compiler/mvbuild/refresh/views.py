"""World + model -> ViewCommit: the next version of a view, or None if the catalog has it already."""

from __future__ import annotations

from mvbuild.diagnostics import ProjectError, error
from mvbuild.formats import properties
from mvbuild.freshness.leaves import node_inputs
from mvbuild.freshness.observed import World
from mvbuild.freshness.pending import same_definition
from mvbuild.graph.definition import definition
from mvbuild.graph.model import ModelNode
from mvbuild.plan.collisions import OWNER
from mvbuild.ports.catalog import CommitConflict, Schema, ViewCommit
from mvbuild.refresh.layout import documented, same_columns
from mvbuild.refresh.queries import prepare
from mvbuild.refresh.session import RunSession
from mvbuild.refresh.sql import pinned_sql

_QUERY_COLUMNS = "spark.query-column-names"


def mv_commit(world: World, node: ModelNode, schema: Schema) -> ViewCommit | None:
    """The version of an MV's view that fits its definition and result columns."""
    assert node.storage is not None
    return _commit(world, node, schema, properties.view_properties(node.storage))


def create_or_replace(session: RunSession, node: ModelNode) -> str:
    """Give a plain view its definition. The message tells what was done."""
    below = node_inputs(session.world.graph, node)
    sql = pinned_sql(session.world.graph, node.query, node.reads, session.pins(below), session.schema_pin)
    schema = documented(node, prepare(session.engine, sql, node).schema)
    for _ in range(3):
        commit = _commit(session.world, node, schema, {properties.IS_MATERIALIZED: "false"} if _was_mv(session.world, node) else {})
        if commit is None:
            return "another run wrote it"
        try:
            session.catalog.ensure_namespace(node.identifier.namespace)
            session.observe(session.catalog.commit([commit]))
            return f"version {commit.version_id}"
        except CommitConflict:
            session.reload([node.identifier])
    raise ProjectError([error("commit-conflict", f"the view {node.identifier} is being changed by others")])


def _was_mv(world: World, node: ModelNode) -> bool:
    view = world.observed.view(node.identifier)
    return view is not None and properties.is_materialized(view.properties)


def _commit(world: World, node: ModelNode, schema: Schema, marks: dict[str, str]) -> ViewCommit | None:
    view = world.observed.view(node.identifier)
    wanted = {**marks, OWNER: node.id}
    description = node.model.properties.description
    if description:
        wanted["comment"] = description
    names = [f["name"] for f in schema["fields"]]
    if not any("," in n for n in names):
        wanted[_QUERY_COLUMNS] = ",".join(names)
    if (
        view is not None
        and same_definition(world, node, view)
        and same_columns(view.schema, schema)
        and _has(view.properties, wanted, marks)
    ):
        return None
    return ViewCommit(
        identifier=node.identifier,
        expect_metadata_location=view.metadata_location if view else None,
        version_id=view.last_version_id + 1 if view else 1,
        schema=schema,
        representations={"spark": definition(world.graph, node).text},
        default_namespace=node.identifier.namespace,
        properties=wanted,
        storage_table=node.storage,
    )


def _has(present, wanted: dict[str, str], marks: dict[str, str]) -> bool:  # type: ignore[no-untyped-def]
    """A new comment alone is no new version; what the format asks for is."""
    return all(present.get(k) == wanted[k] for k in (*marks, OWNER))
