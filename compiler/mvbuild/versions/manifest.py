"""manifest.json of mvbuild -> Version: another version of a project, from its manifest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mvbuild.diagnostics import ProjectError, error
from mvbuild.versions.model import NodeVersion, Version


def read_manifest(path: Path, name: str) -> Version:
    """Raises ProjectError if the file cannot be read, or was not written by this or an older compatible version of mvbuild."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as exc:
        raise ProjectError([error("bad-state", f"{path} cannot be read: {exc.strerror or exc}")]) from exc
    except (ValueError, RecursionError) as exc:
        raise ProjectError([error("bad-state", f"{path} is not valid JSON")]) from exc
    metadata = content.get("metadata") if isinstance(content, dict) else None
    written_by = _written_by(metadata) if isinstance(metadata, dict) else None
    if written_by is None:
        help = "Choose the manifest.json that `mvbuild compile` or `mvbuild run` wrote."
        raise ProjectError([error("bad-state", f"{path} is not a manifest of mvbuild", help=help)])
    try:
        return _version(content, name)
    except (KeyError, TypeError, AttributeError, ValueError) as exc:
        message = f"{path} was written by mvbuild {written_by} in another format"
        raise ProjectError([error("bad-state", message)]) from exc


def _written_by(metadata: Mapping[str, Any]) -> str | None:
    """The version of mvbuild that wrote a manifest; early versions store it beside `env`."""
    env = metadata.get("env")
    found = (env.get("mvbuild_version") if isinstance(env, dict) else None) or metadata.get("mvbuild_version")
    return str(found) if found else None


def _version(content: Mapping[str, Any], name: str) -> Version:
    plain = {id_: source["config"]["meta"]["mvbuild"].get("node") for id_, source in content["sources"].items()}
    sources = ((id_, source) for id_, source in content["sources"].items() if plain[id_] is None)
    nodes = [_node(id_, node, plain) for id_, node in (*content["nodes"].items(), *sources)]
    macros = {id_: str(macro["macro_sql"]) for id_, macro in content["macros"].items()}
    vars = json.loads(content["metadata"]["env"]["mvbuild_vars"])
    units = {id_: str(unit["checksum"]) for id_, unit in content.get("unit_tests", {}).items()}
    return Version(name=name, nodes={n.id: n for n in nodes}, macros=macros, vars=dict(vars), units=units)


def _node(id_: str, node: Mapping[str, Any], plain: Mapping[str, str | None]) -> NodeVersion:
    """`plain`: a source that only the manifest has -> the table that is read by its plain name."""
    kept = node["config"]["meta"]["mvbuild"]
    kind = node["resource_type"]
    depends_on = node.get("depends_on", {})
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
        reads=tuple(kept.get("reads") or (plain.get(read) or read for read in depends_on.get("nodes", ()))),
        macros=tuple(depends_on.get("macros", ())),
        former=kept.get("previous_name"),
    )
