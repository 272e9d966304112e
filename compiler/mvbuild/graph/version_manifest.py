"""manifest.json of mvbuild -> Version: another version of a project, from what was kept of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mvbuild.diagnostics import ProjectError, error
from mvbuild.graph.version import NodeVersion, Version


def read_manifest(path: Path, name: str) -> Version:
    """ProjectError where the file cannot be read, or is none that this mvbuild, or a newer one, has written."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as exc:
        raise ProjectError([error("bad-state", f"{path} cannot be read: {exc.strerror or exc}")]) from exc
    except (ValueError, RecursionError) as exc:
        raise ProjectError([error("bad-state", f"{path} is no JSON")]) from exc
    metadata = content.get("metadata") if isinstance(content, dict) else None
    if not isinstance(metadata, dict) or "mvbuild_version" not in metadata:
        help = "Name the manifest.json that `mvbuild compile` or `mvbuild run` has written."
        raise ProjectError([error("bad-state", f"{path} is no manifest of mvbuild", help=help)])
    try:
        return _version(content, name)
    except (KeyError, TypeError, AttributeError, ValueError) as exc:
        message = f"{path} was written by mvbuild {metadata['mvbuild_version']} in another form"
        raise ProjectError([error("bad-state", message)]) from exc


def _version(content: Mapping[str, Any], name: str) -> Version:
    nodes = [_node(id_, node) for id_, node in (*content["nodes"].items(), *content["sources"].items())]
    macros = {id_: str(macro["macro_sql"]) for id_, macro in content["macros"].items()}
    return Version(name=name, nodes={n.id: n for n in nodes}, macros=macros, vars=dict(content["metadata"]["mvbuild_vars"]))


def _node(id_: str, node: Mapping[str, Any]) -> NodeVersion:
    kept = node["config"]["meta"]["mvbuild"]
    kind = node["resource_type"]
    described = {"": node["description"]} | {name: column["description"] for name, column in node["columns"].items()}
    name = f"{node['source_name']}.{node['name']}" if kind == "source" else node["name"]
    return NodeVersion(
        id=id_,
        name=name,
        path=node["original_file_path"],
        relation=node["relation_name"] or "",
        text=node["checksum"]["checksum"] if kind in ("model", "seed") else "",
        body=kept["fingerprint"],
        sql=node.get("compiled_code") or "",
        settings=kept["settings"],
        described={column: text for column, text in described.items() if text},
        columns={column: facts["data_type"] for column, facts in node["columns"].items()},
        outputs=tuple(kept["columns"]) if kept.get("columns") is not None else None,
        reads=tuple(node["depends_on"]["nodes"]),
        macros=tuple(node["depends_on"]["macros"]),
        former=kept.get("previous_name"),
    )
