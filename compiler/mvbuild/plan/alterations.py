"""World + MV -> Alteration: what of its catalog entries differs from the configuration and can follow it without touching a row."""

from __future__ import annotations

from dataclasses import dataclass

from mvbuild.freshness.observed import World
from mvbuild.freshness.pending import view_text_differs
from mvbuild.graph.model import ModelNode
from mvbuild.plan.layout import PropertyChanges, changed_properties, docs, documented, storage_layout
from mvbuild.ports.commits import TableLayout
from mvbuild.ports.states import TableState, ViewState


@dataclass(frozen=True, slots=True, kw_only=True)
class Alteration:
    """Nothing of it makes data stale."""

    layout: TableLayout | None
    """Partition spec, sort order and column comments for the storage table, where they differ."""
    properties: PropertyChanges
    view_version: bool
    """The view needs a new version: its text or its columns' comments differ."""
    comment: str | None
    """The view's comment, where it differs; empty removes it."""
    what: tuple[str, ...]
    """In words, for messages."""


def alteration(world: World, node: ModelNode) -> Alteration | None:
    """None if there is nothing to alter, or nothing to alter it on. ProjectError for a column that the storage does not have."""
    storage, view = world.observed.table(node.storage), world.observed.view(node.identifier)
    if storage is None or view is None:
        return None
    wanted = storage_layout(node, storage.schema)
    properties = changed_properties(node, storage)
    words = {
        "partitioning": wanted.partition_by != storage.partition_by,
        "sort order": wanted.sort_by != storage.sort_by,
        "column comments": docs(wanted.schema) != docs(storage.schema) or docs(documented(node, view.schema)) != docs(view.schema),
        "table properties": bool(properties),
        "description": changed_comment(node, view) is not None,
        "text of the view": view_text_differs(world, node, view),
    }
    what = tuple(word for word, differs in words.items() if differs)
    if not what:
        return None
    return Alteration(
        layout=wanted if _differs(wanted, storage) else None,
        properties=properties,
        view_version=words["text of the view"] or docs(documented(node, view.schema)) != docs(view.schema),
        comment=changed_comment(node, view),
        what=what,
    )


def _differs(wanted: TableLayout, storage: TableState) -> bool:
    return (wanted.partition_by, wanted.sort_by, docs(wanted.schema)) != (storage.partition_by, storage.sort_by, docs(storage.schema))


def changed_comment(node: ModelNode, view: ViewState) -> str | None:
    """The view's comment, where it is another; empty removes it."""
    wanted = node.model.properties.description
    return wanted if wanted != view.properties.get("comment", "") else None
