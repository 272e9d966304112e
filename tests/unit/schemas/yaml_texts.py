"""tests -> the YAML texts in them; a text -> the result of mvbuild, and that of its schema."""

from __future__ import annotations

import ast
import re
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft7Validator

from mvbuild.diagnostics import ProjectError
from mvbuild.lint.check import lint
from mvbuild.lint.facts import Facts
from mvbuild.project.keys import PROJECT
from mvbuild.project.load import load_project
from mvbuild.project.yaml_spans import ListNode, MapNode, plain, read_yaml
from mvbuild.schemas.files import schema
from mvbuild.selection.selectors_file import read_selectors
from mvbuild.source import SourceFile
from unit.worlds import compiled, write_project

TESTS = Path(__file__).parents[1]
FOLDERS = ("project", "graph", "selection", "sources", "lint", "schemas")
_LIKE = re.compile(r"\s*(?:name|models|seeds|sources|selectors|version):(?!.*(?:\{\{|[«»]))", re.DOTALL)
OF_SHAPE = ("unknown-key", "wrong-type", "missing-key", "bad-config", "bad-selectors", "unknown-selector")
"""The codes of what a schema can see."""


@cache
def validator(name: str) -> Draft7Validator:
    return Draft7Validator(schema(name))


def complaints(name: str, text: str) -> list[str]:
    """What the schema says."""
    tree, wrong = read_yaml(SourceFile("file.yml", text))
    assert tree is not None, wrong
    return [f"{'/'.join(map(str, e.absolute_path))}: {e.message[:200]}" for e in validator(name).iter_errors(as_json(plain(tree)))]


def as_json(value: Any) -> Any:
    """As editors read YAML: they know no dates."""
    if isinstance(value, dict):
        return {key: as_json(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [as_json(inner) for inner in value]
    return value.isoformat() if isinstance(value, date) else value


def refusals(name: str, text: str, root: Path) -> list[str]:
    """mvbuild's errors about the structure of a file that is alone in a project; missing folders and models do not count."""
    path = {"mvbuild": "mvbuild.yml", "properties": "models/file.yml", "selectors": "selectors.yml"}[name]
    write_project(root, {"mvbuild.yml": "name: shop\n", path: text})
    try:
        if name == "selectors":
            read_selectors(compiled(root))
        else:
            load_project(root, target=None, vars={}, env={})
            if name == "mvbuild":
                lint(Facts(graph=compiled(root), selected=frozenset()))
    except ProjectError as exc:
        found = [d for d in exc.diagnostics if d.code in OF_SHAPE and d.span is not None and d.span.file.path == path]
        return [f"{d.code}: {d.message}" for d in found if "neither a folder" not in d.message or "'+" in d.message]
    return []


def written() -> set[tuple[str, str]]:
    """(name of the schema, text) of the YAML in all tests: the strings that are mappings with the keys of one of the three files."""
    found = set()
    for file in sorted(path for folder in FOLDERS for path in (TESTS / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _LIKE.match(node.value):
                tree, wrong = read_yaml(SourceFile("text.yml", node.value))
                name = _file_of(tree) if isinstance(tree, MapNode) and not wrong else None
                if name:
                    found.add((name, node.value))
    return found


def _file_of(tree: MapNode) -> str | None:
    """A project has a name; a list under `models` is not a folder."""
    keys = {entry.key: entry.node for entry in tree.entries}
    if "selectors" in keys:
        return "selectors"
    if "name" in keys:
        return "mvbuild" if keys.keys() & PROJECT.keys.keys() - {"name", "vars"} else None
    return "properties" if any(isinstance(keys.get(key), ListNode) for key in ("models", "seeds", "sources")) else None
