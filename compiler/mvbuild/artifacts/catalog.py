"""World -> target/catalog.json in the shape of dbt's catalog v1: the columns and sizes that tables and views have in the catalog."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mvbuild.artifacts.manifest import published_ids
from mvbuild.artifacts.timestamps import timestamp
from mvbuild.freshness.observed import World
from mvbuild.graph.model import ModelNode, Node
from mvbuild.lineage.schemas import of_schema
from mvbuild.ports.states import Schema, TableState, ViewState
from mvbuild.storage.auxiliary_views import listed_views
from mvbuild.storage.history import live_rows

SCHEMA = "https://schemas.getdbt.com/dbt/catalog/v1.json"


def catalog(world: World, *, version: str, generated_at: str, invocation_id: str) -> dict[str, Any]:
    """The catalog artifact as a JSON object. Without entries for what the catalog does not have, or what cannot be read."""
    names = published_ids(world.graph)
    found = {names[id]: entry for id, node in world.graph.nodes.items() if (entry := _entry(world, node, names[id])) is not None}
    return {
        "metadata": {
            "dbt_schema_version": SCHEMA,
            "dbt_version": "2.0.0",
            "generated_at": generated_at,
            "invocation_id": invocation_id,
            "env": {"mvbuild_version": version},
        },
        "nodes": {id: entry for id, entry in found.items() if not id.startswith("source.")},
        "sources": {id: entry for id, entry in found.items() if id.startswith("source.")},
        "errors": None,
    }


def _entry(world: World, node: Node, id: str) -> dict[str, Any] | None:
    """For an MV its view, with the size of its storage."""
    observed = world.observed
    storage = observed.table(node.storage) if isinstance(node, ModelNode) else None
    state = observed.view(node.identifier) or observed.table(node.identifier)
    if state is None:
        return None
    identifier = node.identifier
    return {
        "unique_id": id,
        "metadata": {
            "type": "MATERIALIZED VIEW" if storage is not None else "VIEW" if isinstance(state, ViewState) else "TABLE",
            "database": identifier.catalog or None,
            "schema": ".".join(identifier.namespace),
            "name": identifier.name,
            "comment": state.properties.get("comment"),
            "owner": state.properties.get("owner"),
        },
        "columns": _columns(state.schema),
        "stats": dict(_stats(storage or (state if isinstance(state, TableState) else None))),
    }


def _columns(schema: Schema) -> dict[str, Any]:
    """The columns, with types as Spark writes them."""
    documented: Mapping[str, str | None] = {f["name"]: f.get("doc") for f in schema["fields"]}
    return {
        column.name: {"name": column.name, "type": column.type or "unknown", "index": at, "comment": documented[column.name]}
        for at, column in enumerate(of_schema(schema), start=1)
    }


def _stats(table: TableState | None) -> Iterator[tuple[str, dict[str, Any]]]:
    snapshot = table.current_snapshot if table is not None else None
    if snapshot is not None:
        size = snapshot.summary.get("total-files-size", "")
        if (rows := live_rows(snapshot)) is not None:
            yield _stat("num_rows", "Rows", rows, "Rows of the current snapshot.")
        if size.isdigit():
            yield _stat("bytes", "Bytes", int(size), "Size of the files of the current snapshot.")
        yield _stat("last_modified", "Last modified", timestamp(snapshot.timestamp_ms), "When the current snapshot was made.")
    if table is not None and (views := listed_views(table)):
        names = ", ".join(one.name.dotted for one in views)
        yield _stat("auxiliary_views", "Auxiliary views", names, "Tables with inner results, from which the MV is refreshed.")
    has = snapshot is not None
    yield _stat("has_stats", "Has stats?", has, "Whether there are statistics of this table.", include=False)


def _stat(id: str, label: str, value: Any, description: str, *, include: bool = True) -> tuple[str, dict[str, Any]]:
    return id, {"id": id, "label": label, "value": value, "include": include, "description": description}
