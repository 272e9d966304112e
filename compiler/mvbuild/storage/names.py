"""MV or view -> the names of its storage: in records, in the property of its view, and before it was renamed."""

from __future__ import annotations

from collections.abc import Container, Mapping

from mvbuild.formats import properties
from mvbuild.graph.model import Graph, ModelNode, NodeId
from mvbuild.names import TableIdentifier
from mvbuild.ports.catalog import Catalog
from mvbuild.ports.states import State, TableState, ViewState


def known_as(table: TableState) -> TableIdentifier:
    """The name of a table in records: an embedded storage has that of its MV."""
    return table.of_view or table.identifier


def former_name(graph: Graph, node: ModelNode) -> TableIdentifier | None:
    """The meaning of `previous_name`: a model's name in the current namespace, or `namespace.name`, with the namespace as in `+namespace`
    or as in the catalog."""
    text = node.model.config.previous_name
    if not text or node.materialized == "ephemeral":
        return None
    if "." not in text:
        return TableIdentifier(node.identifier.catalog, node.identifier.namespace, text)
    found = TableIdentifier.parse(text, node.identifier.catalog)
    return found._replace(namespace=graph.project.target.prefixed(found.namespace))


def storage_name(view: ViewState) -> TableIdentifier | None:
    """The table that a view's property points to, which is in the view's own catalog; None for an embedded storage."""
    pointer = view.properties.get(properties.STORAGE_TABLE)
    if view.storage is not None or not pointer:
        return None
    found = TableIdentifier.parse(pointer, view.identifier.catalog)
    return found if found.namespace else TableIdentifier(found.catalog, view.identifier.namespace, found.name)


def former_states(
    graph: Graph, known: Mapping[TableIdentifier, State], catalog: Catalog, without: Container[NodeId] = frozenset()
) -> dict[TableIdentifier, State]:
    """The former views and storage tables of renamed models. `known`: the states of the current names; `without`: models that have no
    former names.

    At most two reads of the catalog; none if no model was renamed and no storage table has another name.
    """
    models = [node for node in graph.models if node.id not in without]
    names = [n for node in models if (n := former_name(graph, node))]
    found = {n: known[n] for n in names if n in known}
    missing = [n for n in names if n not in known]
    found.update(catalog.load(missing) if missing else {})
    pointers = {storage_name(v) for v in found.values() if isinstance(v, ViewState)}
    pointers |= {storage_name(v) for node in models if node.storage and isinstance(v := known.get(node.identifier), ViewState)}
    storages = [p for p in pointers if p is not None and not isinstance(known.get(p), TableState)]
    return {**found, **(catalog.load(storages) if storages else {})}
