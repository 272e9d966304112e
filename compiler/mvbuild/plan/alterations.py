"""World + MV -> Alteration: what of its catalog entries differs from the configuration and can follow it without touching a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mvbuild.freshness.observed import World
from mvbuild.freshness.pending import view_text_differs
from mvbuild.graph.model import ModelNode
from mvbuild.plan.layout import changed_properties, documented, storage_layout
from mvbuild.ports.catalog import TableLayout, TableState, ViewState


@dataclass(frozen=True, slots=True, kw_only=True)
class Alteration:
    """Nothing of it makes data stale."""

    layout: TableLayout | None
    """Partition spec, sort order and column comments for the storage table, where they differ."""
    properties: Mapping[str, str]
    """Table properties to set."""
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
        "column comments": _docs(wanted.schema) != _docs(storage.schema) or _docs(documented(node, view.schema)) != _docs(view.schema),
        "table properties": bool(properties),
        "description": _comment(node, view) is not None,
        "text of the view": view_text_differs(world, node, view),
    }
    what = tuple(word for word, differs in words.items() if differs)
    if not what:
        return None
    return Alteration(
        layout=wanted if _differs(wanted, storage) else None,
        properties=properties,
        view_version=words["text of the view"] or _docs(documented(node, view.schema)) != _docs(view.schema),
        comment=_comment(node, view),
        what=what,
    )


def _differs(wanted: TableLayout, storage: TableState) -> bool:
    return (wanted.partition_by, wanted.sort_by, _docs(wanted.schema)) != (storage.partition_by, storage.sort_by, _docs(storage.schema))


def _docs(schema: Mapping[str, object]) -> list[object]:
    return [field.get("doc") for field in schema["fields"]]  # type: ignore[attr-defined]


def _comment(node: ModelNode, view: ViewState) -> str | None:
    wanted = node.model.properties.description
    return wanted if wanted != view.properties.get("comment", "") else None
