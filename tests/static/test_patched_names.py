"""A test that patches a name of a module fails when the name moves. Proofs run once in eight days; this finds it at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]
FILES = [file for file in sorted(TESTS.rglob("test_*.py")) if "setattr(" in file.read_text(encoding="utf-8")]


def imported(tree: ast.Module) -> dict[str, Any]:
    """Name in the file -> what it imports from mvbuild."""
    found: dict[str, Any] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "mvbuild":
            for alias in node.names:
                module = import_module(node.module or "")
                if not hasattr(module, alias.name):
                    import_module(f"{node.module}.{alias.name}")
                found[alias.asname or alias.name] = getattr(module, alias.name)
    return found


def missing(tree: ast.Module) -> Iterator[str]:
    known = imported(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "setattr" or len(node.args) < 3:
            continue
        owner, name = node.args[:2]
        if (
            isinstance(owner, ast.Name)
            and owner.id in known
            and isinstance(name, ast.Constant)
            and not hasattr(known[owner.id], name.value)
        ):
            yield f"line {node.lineno}: {owner.id} has no {name.value}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(TESTS)))
def test_a_patched_name_exists(file: Path) -> None:
    assert list(missing(ast.parse(file.read_text(encoding="utf-8")))) == []


def test_a_name_that_moved_is_found() -> None:
    text = """
from mvbuild.incremental.strategies import merge
monkeypatch.setattr(merge, "matched_rows", None)
"""
    assert list(missing(ast.parse(text))) == ["line 3: merge has no matched_rows"]
