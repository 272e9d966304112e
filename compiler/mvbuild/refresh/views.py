"""World + model -> ViewCommit: the next version of a view, or None if the catalog has it already."""

from __future__ import annotations

from uuid import uuid4

from mvbuild.diagnostics import ProjectError, error
from mvbuild.formats import properties
from mvbuild.freshness.leaves import node_inputs
from mvbuild.freshness.observed import World
from mvbuild.freshness.pending import same_definition, selects_storage, view_text_differs, wanted_representations
from mvbuild.graph.definition import definition
from mvbuild.graph.model import ModelNode
from mvbuild.graph.representations import DEFINITION
from mvbuild.plan.alterations import changed_comment
from mvbuild.plan.collisions import OWNER
from mvbuild.plan.formats import is_embedded, is_mv
from mvbuild.plan.layout import docs, documented, same_columns
from mvbuild.ports.catalog import CommitConflict
from mvbuild.ports.commits import ViewCommit
from mvbuild.ports.states import Schema, ViewState
from mvbuild.refresh.queries import prepare
from mvbuild.refresh.session import RunSession
from mvbuild.refresh.sql import pinned_sql

_QUERY_COLUMNS = "spark.query-column-names"


def mv_commit(world: World, node: ModelNode, schema: Schema) -> ViewCommit | None:
    """The version of an MV's view that fits its definition and result columns; or its new comment, where nothing else differs."""
    commit, view = _commit(world, node, schema, _marks(world, node)), world.observed.view(node.identifier)
    comment = changed_comment(node, view) if view is not None else None
    return commit_of_comment(view, comment) if commit is None and view is not None and comment is not None else commit


def commit_of_comment(view: ViewState, comment: str) -> ViewCommit:
    """No new version: what the view means stays."""
    return ViewCommit(
        identifier=view.identifier,
        expect_metadata_location=view.metadata_location,
        version_id=None,
        schema=view.schema,
        representations=view.representations,
        default_namespace=view.default_namespace,
        properties={"comment": comment} if comment else {},
        remove_properties=() if comment else ("comment",),
    )


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
            session.publish([commit])
            return f"version {commit.version_id}"
        except CommitConflict:
            session.reload([node.identifier])
    raise ProjectError([error("commit-conflict", f"the view {node.identifier} is being changed by others")])


def _was_mv(world: World, node: ModelNode) -> bool:
    view = world.observed.view(node.identifier)
    return view is not None and is_mv(view)


def _commit(world: World, node: ModelNode, schema: Schema, marks: dict[str, str]) -> ViewCommit | None:
    view = world.observed.view(node.identifier)
    if view is not None and _is_right(world, node, view, schema, marks):
        return None
    return _version(world, node, view, schema, marks)


def next_version(world: World, node: ModelNode, view: ViewState, schema: Schema) -> ViewCommit:
    """A further version of an MV's view, whether or not it needs one."""
    return _version(world, node, view, schema, _marks(world, node))


def _version(world: World, node: ModelNode, view: ViewState | None, schema: Schema, marks: dict[str, str]) -> ViewCommit:
    wanted = {**marks, OWNER: node.id}
    description = node.model.properties.description
    if description:
        wanted["comment"] = description
    names = [f["name"] for f in schema["fields"]]
    if not any("," in n for n in names):
        wanted[_QUERY_COLUMNS] = ",".join(names)
    if selects_storage(world, node):
        wanted[DEFINITION] = definition(world.graph, node).text
    return ViewCommit(
        identifier=node.identifier,
        expect_metadata_location=view.metadata_location if view else None,
        version_id=view.last_version_id + 1 if view else 1,
        schema=schema,
        representations=wanted_representations(world, node, names),
        default_namespace=node.identifier.namespace,
        properties=wanted,
        remove_properties=tuple(k for k in (DEFINITION, "comment") if k not in wanted and view is not None and k in view.properties),
        storage_table=None if node.storage is None or is_embedded(world, node) else node.storage,
        uuid=None if view else str(uuid4()),
    )


def _is_right(world: World, node: ModelNode, view: ViewState, schema: Schema, marks: dict[str, str]) -> bool:
    """A new comment alone is no new version; what the format asks for is. A plain view keeps its text, and its columns' comments, while it
    means the same: a new version would make those that read it stale."""
    same_text = same_definition(world, node, view) if node.storage is None else not view_text_differs(world, node, view)
    marked = all(view.properties.get(k) == v for k, v in {**marks, OWNER: node.id}.items())
    same_docs = node.storage is None or docs(view.schema) == docs(schema)
    return same_text and marked and same_columns(view.schema, schema) and same_docs


def _marks(world: World, node: ModelNode) -> dict[str, str]:
    """What makes the view an MV. One that named no storage table would break the rule of the property-based specification."""
    assert node.storage is not None
    return {} if is_embedded(world, node) else properties.view_properties(node.storage)
