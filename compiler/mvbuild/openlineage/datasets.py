"""World + node -> an OpenLineage dataset: how it is named, its columns, its snapshot, and what its columns are computed from.

Names follow OpenLineage's rules for Iceberg: a table is the place of its files, and its name in the catalog is a symlink. So the events of
Spark and of mvbuild describe the same datasets.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from mvbuild.freshness.observed import World
from mvbuild.graph.model import ModelNode, Node, NodeId, SeedNode, TableNode
from mvbuild.lineage.model import Bound, Origin
from mvbuild.lineage.schemas import of_schema
from mvbuild.names import TableIdentifier
from mvbuild.ports.states import TableState, ViewState

Dataset = dict[str, Any]
"""`namespace`, `name` and `facets`, as JSON."""


def dataset(world: World, id_: NodeId) -> Dataset:
    """A node as an input or output."""
    node = world.graph.nodes[id_]
    namespace, name = _place(world, node)
    return {"namespace": namespace, "name": name, "facets": _facets(world, node)}


def parents(world: World, id_: NodeId) -> list[NodeId]:
    """What a node reads, through ephemeral models."""

    def below(id_: NodeId) -> Iterator[NodeId]:
        for read in world.graph.nodes[id_].reads:
            if _is_ephemeral(world.graph.nodes[read]):
                yield from below(read)
            else:
                yield read

    return list(dict.fromkeys(below(id_)))


def column_lineage(world: World, bound: Bound, id_: NodeId) -> dict[str, Any] | None:
    """The facet `columnLineage`; None if the columns are not known."""
    taken = bound.lineage.get(id_)
    if taken is None:
        return None
    fields = {}
    for column, values in zip(taken.columns, taken.values, strict=True):
        inputs = [_field(world, origin, "DIRECT") for origin in sorted(_through(world, bound, values))]
        fields[column.name] = {"inputFields": inputs}
    rows = [_field(world, origin, "INDIRECT") for origin in sorted(_through(world, bound, taken.rows))]
    return {"fields": fields, "dataset": rows}


def _through(world: World, bound: Bound, origins: frozenset[Origin]) -> set[Origin]:
    """The same columns, with those of ephemeral models replaced by what they are computed from."""
    found: set[Origin] = set()
    for origin in origins:
        if _is_ephemeral(world.graph.nodes[origin.node]):
            found |= _through(world, bound, bound.parents(origin.node, origin.column))
        else:
            found.add(origin)
    return found


def _field(world: World, origin: Origin, kind: str) -> dict[str, Any]:
    namespace, name = _place(world, world.graph.nodes[origin.node])
    return {"namespace": namespace, "name": name, "field": origin.column, "transformations": [{"type": kind}]}


def _facets(world: World, node: Node) -> dict[str, Any]:
    storage, entry = _storage(world, node), _entry(world, node)
    state = entry or storage
    documented = _documented(node)
    facets: dict[str, Any] = {
        "datasetType": {"datasetType": _type(node, entry)},
        "symlinks": {"identifiers": [{"namespace": _catalog(world), "name": name.dotted, "type": "TABLE"} for name in _names(node)]},
    }
    if state is not None:
        columns = ((c.name, c.type, documented[1].get(c.name.lower())) for c in of_schema(state.schema))
        facets["schema"] = {"fields": [{"name": n, "type": t, "description": d} for n, t, d in columns]}
    if storage is not None:
        facets["storage"] = {"storageLayer": "iceberg", "fileFormat": storage.properties.get("write.format.default", "parquet")}
        if storage.current_snapshot_id is not None:
            facets["version"] = {"datasetVersion": str(storage.current_snapshot_id)}
    if documented[0]:
        facets["documentation"] = {"description": documented[0]}
    return facets


def _place(world: World, node: Node) -> tuple[str, str]:
    """Namespace and name: where the files are; without a state, the name in the catalog."""
    state = _storage(world, node) or _entry(world, node)
    if state is None or not state.location:
        return _catalog(world), node.identifier.dotted
    return place_of(state.location)


def place_of(location: str) -> tuple[str, str]:
    """`s3a://bucket/a/b` -> (`s3://bucket`, `a/b`), `file:///a/b` -> (`file`, `/a/b`)."""
    url = urlsplit(location)
    if url.scheme in ("", "file"):
        return "file", url.path
    scheme = "s3" if url.scheme in ("s3a", "s3n") else url.scheme
    # `container@account` belongs to the name; `user:password@host` must not.
    host = url.netloc if url.password is None else url.netloc.rpartition("@")[2]
    return f"{scheme}://{host}", url.path.strip("/") or "/"


def _catalog(world: World) -> str:
    """The catalog as a URI, without the user and password in it."""
    target = world.graph.project.target
    url = urlsplit(target.catalog.get("uri") or target.catalog.get("warehouse") or "")
    if not url.scheme:
        return f"iceberg://{target.catalog_name}"
    port = f":{url.port}" if url.port else ""
    return f"{url.scheme}://{url.hostname or ''}{port}{url.path}".rstrip("/")


def _storage(world: World, node: Node) -> TableState | None:
    """The table with the rows of a node."""
    name: TableIdentifier | None = node.storage if isinstance(node, ModelNode) else node.identifier
    return world.observed.table(name) if name is not None else None


def _entry(world: World, node: Node) -> TableState | ViewState | None:
    return world.observed.view(node.identifier) or world.observed.table(node.identifier)


def _names(node: Node) -> list[TableIdentifier]:
    storage = node.storage if isinstance(node, ModelNode) else None
    return [node.identifier, *([storage] if storage else [])]


def _type(node: Node, entry: TableState | ViewState | None) -> str:
    if isinstance(node, ModelNode) and node.storage is not None:
        return "MATERIALIZED_VIEW"
    is_view = isinstance(entry, ViewState) or not isinstance(node, SeedNode | TableNode)
    return "VIEW" if is_view else "TABLE"


def _documented(node: Node) -> tuple[str, dict[str, str | None]]:
    """The description of a node, and those of its columns."""
    if isinstance(node, ModelNode):
        found = node.model.properties
    elif isinstance(node, SeedNode):
        found = node.seed.properties
    elif node.source is not None:
        found = node.source.properties
    else:
        return "", {}
    return found.description, {column.name.lower(): column.description or None for column in found.columns}


def _is_ephemeral(node: Node) -> bool:
    return isinstance(node, ModelNode) and node.materialized == "ephemeral"
