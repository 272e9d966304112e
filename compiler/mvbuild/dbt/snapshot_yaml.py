"""`snapshots:` in YAML -> the snapshots that it declares, which stay in dbt. An entry without a relation only describes a SQL block."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from mvbuild.dbt.import_state import ImportState
from mvbuild.dbt.read import get, items_of, text_of
from mvbuild.project.yaml_spans import Node, plain

_NAME = re.compile(r"[A-Za-z_]\w*")


def read_declared(work: ImportState) -> None:
    """Add the snapshots of YAML to ImportState, after models, seeds and SQL blocks."""
    for node in snapshot_nodes(work):
        name = text_of(node, "name") or "?"
        key = name.lower()
        if key in work.snapshots:
            continue
        if get(node, "relation") is None:
            work.item("resource", f"snapshot {name}", node.span).add("unknown-name", f"Unknown snapshot '{name}'", node.span)
            continue
        item = work.item("snapshot", name, node.span)
        config = _config(work, node)
        item.add("snapshot", _why(config), node.span, help=advice(config))
        if _NAME.fullmatch(name) and key not in work.models and key not in work.seeds:
            work.snapshots[key] = item
            work.snapshot_settings[key] = config


def snapshot_nodes(work: ImportState) -> Iterator[Node]:
    for file in (*work.project.yamls, *work.project.other_yamls):
        yield from items_of(file.tree, "snapshots")


def advice(config: dict[str, Any]) -> str:
    """How to write the MV by hand, with the names of a snapshot; empty if there is no way."""
    if config.get("strategy") != "timestamp" or not isinstance(config.get("updated_at"), str):
        return ""
    keys = ", ".join(config["unique_key"]) if isinstance(config.get("unique_key"), list) else config.get("unique_key")
    time = config["updated_at"]
    return (
        "Keep it in dbt and read its table as a source. If a table has every version of a row, write a model: "
        f"select *, {time} as dbt_valid_from, lead({time}) over (partition by {keys} order by {time}) as dbt_valid_to from that table."
    )


def _config(work: ImportState, node: Node) -> dict[str, Any]:
    config = get(node, "config")
    values = plain(work.project.rendered(config)) if config else None
    return {str(key).removeprefix("+"): value for key, value in values.items()} if isinstance(values, dict) else {}


def _why(config: dict[str, Any]) -> str:
    if config.get("strategy") == "timestamp":
        return "mvbuild cannot prove that its relation has every version of a row"
    return "Its versions begin when a run of dbt sees them, which only dbt's table knows"
