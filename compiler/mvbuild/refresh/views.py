"""World + model -> ViewCommit: the next version of a view, or None if the catalog has it already."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import uuid4

from mvbuild.diagnostics import ProjectError, error
from mvbuild.formats import properties
from mvbuild.formats.properties import OWNER
from mvbuild.freshness.leaves import node_inputs
from mvbuild.freshness.observed import World
from mvbuild.freshness.pending import foreign_representations, same_definition, selects_storage, view_text_differs, wanted_representations
from mvbuild.graph.definition import definition
from mvbuild.graph.model import ModelNode
from mvbuild.graph.view_text import DEFINITION
from mvbuild.names import STORAGE_SUFFIX
from mvbuild.parse.fingerprint import fingerprint
from mvbuild.plan.removed import of_target
from mvbuild.ports.catalog import CommitConflict
from mvbuild.ports.commits import OWN_CATALOG, ConvertCommit, ViewCommit
from mvbuild.ports.states import Schema, ViewState
from mvbuild.refresh.queries import prepare
from mvbuild.refresh.session import RunSession
from mvbuild.refresh.sql import pinned_sql
from mvbuild.storage.alterations import changed_marks, changed_view_properties, wanted_view_properties
from mvbuild.storage.format import is_embedded, is_mv
from mvbuild.storage.layout import PropertyChanges, docs, documented, same_columns

_QUERY_COLUMNS = "spark.query-column-names"
_MARKS = (properties.IS_MATERIALIZED, properties.STORAGE_TABLE)


def mv_commit(world: World, node: ModelNode, schema: Schema) -> ViewCommit | None:
    """The version of an MV's view that fits its definition and result columns; or only its properties, if nothing else differs."""
    return _commit(world, node, schema, _marks(world, node)) or properties_commit(world, node)


def properties_commit(world: World, node: ModelNode) -> ViewCommit | None:
    """The comment, the serving policy and the marks of an MV, if they differ. There is no new version, because the view means the same."""
    view, storage = world.observed.view(node.identifier), world.observed.table(node.storage)
    if view is None:
        return None
    changes = changed_view_properties(node, view)
    if storage is not None:
        marks = changed_marks(node, view, storage)
    else:
        # The view was a plain one before, or an MV in the other format.
        marks = PropertyChanges(set={}, remove=tuple(k for k in _MARKS if k in view.properties) if is_embedded(node, None) else ())
    if not (changes or marks):
        return None
    return ViewCommit(
        identifier=view.identifier,
        expect_metadata_location=view.metadata_location,
        version_id=None,
        schema=view.schema,
        representations=view.representations,
        default_namespace=view.default_namespace,
        properties={**changes.set, **marks.set},
        remove_properties=(*changes.remove, *marks.remove),
    )


def create_or_replace(session: RunSession, node: ModelNode) -> str:
    """Give a plain view its definition. The message says what was done."""
    below = node_inputs(session.world.graph, node)
    sql = pinned_sql(session.world.graph, node.query, node.reads, session.pins(below), session.schema_pin)
    schema = documented(node, prepare(session.engine, sql, node).schema)
    for _ in range(3):
        try:
            _set_storage_apart(session, node)
            commit = _commit(session.world, node, schema, {properties.IS_MATERIALIZED: "false"} if _was_mv(session.world, node) else {})
            if commit is None:
                return "another run wrote it"
            session.catalog.ensure_namespace(node.identifier.namespace)
            session.publish([commit])
            return f"version {commit.version_id}"
        except CommitConflict:
            session.reload([node.identifier])
    raise ProjectError([error("commit-conflict", f"other processes keep changing the view {node.identifier}")])


def _set_storage_apart(session: RunSession, node: ModelNode) -> None:
    """The storage in the metadata file of a former MV becomes a table, as in the other format: no reader takes the view for an MV, and
    `--prune` drops the table with its auxiliary views."""
    view = session.world.observed.view(node.identifier)
    if view is None or view.storage is None:
        return
    name = view.identifier._replace(name=f"{view.identifier.name}{STORAGE_SUFFIX}")
    apart = ConvertCommit(view=view, storage=view.storage, to="table-properties", storage_name=name)
    session.observe(dict(session.catalog.commit([apart])))


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
    wanted = {**marks, OWNER: node.id, **of_target(world.graph), **wanted_view_properties(node)}
    names = [f["name"] for f in schema["fields"]]
    if not any("," in n for n in names):
        wanted[_QUERY_COLUMNS] = ",".join(names)
    if selects_storage(world, node):
        wanted[DEFINITION] = definition(world.graph, node).text
    texts = wanted_representations(world, node, names)
    foreign = _other_dialects(node, view, schema, texts["spark"]) if view else {}
    return ViewCommit(
        identifier=node.identifier,
        expect_metadata_location=view.metadata_location if view else None,
        version_id=view.last_version_id + 1 if view else 1,
        schema=schema,
        representations={**texts, **foreign},
        # All names in mvbuild's own SQL are full names; names in other engines' SQL may need the previous defaults.
        default_namespace=view.default_namespace if view and foreign else node.identifier.namespace,
        default_catalog=view.default_catalog if view and foreign else OWN_CATALOG,
        properties=wanted,
        remove_properties=_removed(node, view, wanted),
        storage_table=None if node.storage is None or is_embedded(node, world.observed.table(node.storage)) else node.storage,
        uuid=None if view else str(uuid4()),
    )


def _other_dialects(node: ModelNode, view: ViewState, schema: Schema, spark: str) -> dict[str, str]:
    """What other engines added to the view, if it still means the same for Spark with the same columns; otherwise theirs is another
    query."""
    before = view.representations.get("spark")
    is_same = before is not None and (before == spark or fingerprint(before) == fingerprint(spark))
    return foreign_representations(node, view) if is_same and same_columns(view.schema, schema) else {}


def _removed(node: ModelNode, view: ViewState | None, wanted: Mapping[str, str]) -> tuple[str, ...]:
    if view is None:
        return ()
    definition_goes = (DEFINITION,) if DEFINITION in view.properties and DEFINITION not in wanted else ()
    marks_go = tuple(k for k in _MARKS if k in view.properties and k not in wanted) if node.storage is not None else ()
    return (*definition_goes, *marks_go, *changed_view_properties(node, view).remove)


def _is_right(world: World, node: ModelNode, view: ViewState, schema: Schema, marks: dict[str, str]) -> bool:
    """A new comment alone makes no new version; a requirement of the format does. A plain view keeps its text and its columns' comments
    while it means the same, because a new version would make its readers stale."""
    same_text = same_definition(world, node, view) if node.storage is None else not view_text_differs(world, node, view)
    marked = all(view.properties.get(k) == v for k, v in {**marks, OWNER: node.id}.items())
    same_docs = node.storage is None or docs(view.schema) == docs(schema)
    return same_text and marked and same_columns(view.schema, schema) and same_docs


def _marks(world: World, node: ModelNode) -> dict[str, str]:
    """The properties that make the view an MV. Without a storage table they would break the rule of the property-based specification."""
    assert node.storage is not None
    return {} if is_embedded(node, world.observed.table(node.storage)) else properties.view_properties(node.storage)
