"""`versions:` in YAML -> which file is which version of a model, and what it declares. mvbuild has the same format as dbt."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from mvbuild.dbt.import_state import DeclaredVersion, ImportState
from mvbuild.dbt.read import DbtProject, items_of
from mvbuild.project.model_versions import versions_of
from mvbuild.project.yaml_spans import MapNode, Node


def read_versions(work: ImportState) -> None:
    """Set the versions of ImportState."""
    stems = {file.stem.lower() for file in work.project.files["model"]}
    for one in _declared(work.project):
        key = one.version.name.lower()
        if key not in work.versions:
            work.versions[key] = one
            work.version_files.setdefault(_file_of(one, stems), one)
            if one.version.is_latest:
                work.latest[one.version.model.lower()] = key


def declared_in(work: ImportState, node: Node) -> list[DeclaredVersion]:
    """The versions that the entry of a model declares."""
    return [one for one in work.versions.values() if one.node is node]


def versions_yaml(work: ImportState) -> list[Mapping[str, Any]]:
    """Entries with nothing but the versions that have a file."""
    found: dict[str, dict[str, Any]] = {}
    for file, one in work.version_files.items():
        if one.version.name.lower() in (*work.models, *work.python):
            entry = found.setdefault(one.version.model.lower(), {"name": one.version.model, "versions": []})
            entry["versions"].append({"v": one.version.v, "defined_in": file})
            if one.version.is_latest:
                entry["latest_version"] = one.version.v
    return list(found.values())


def _declared(project: DbtProject) -> Iterator[DeclaredVersion]:
    for file in project.yamls:
        for node in items_of(file.tree, "models"):
            if isinstance(node, MapNode):
                for as_model, item, version in versions_of(node, []):
                    yield DeclaredVersion(version=version, node=node, item=item, as_model=as_model)


def _file_of(one: DeclaredVersion, stems: Collection[str]) -> str:
    """The name of the file, in lower case. As in dbt, that of the latest version may have no version in it."""
    file = one.version.file.lower()
    return one.version.model.lower() if one.version.is_latest and file not in stems else file
