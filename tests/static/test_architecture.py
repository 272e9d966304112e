"""docs/architecture.md and the docstrings of packages -> packages, layers and modules that exist."""

from __future__ import annotations

import ast
import re
from itertools import pairwise
from pathlib import Path

import pytest
from importlinter import api

ROOT = Path(__file__).parents[2]
CODE = ROOT / "compiler/mvbuild"
PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
TABLE = re.findall(r"^\| `(\w+)` \| (.+) \|$", PAGE, re.MULTILINE)
PACKAGES = sorted(path.parent.name for path in CODE.glob("*/__init__.py"))
MODULES = sorted(path.stem for path in CODE.glob("*.py") if path.stem not in ("__init__", "__main__"))


def layers() -> list[set[str]]:
    """The layers of the import-linter contract, the lowest first."""
    contracts = api.read_configuration(str(ROOT / "pyproject.toml"))["contracts_options"]
    (rows,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [{name.strip() for name in re.split(r"[|:]", row)} for row in reversed(rows)]


def docstring(package: str) -> str:
    tree = ast.parse((CODE / package / "__init__.py").read_text(encoding="utf-8"))
    return ast.get_docstring(tree) or ""


def first_files(text: str) -> list[str]:
    """The files that the docstring of a package lists after `Read first:`, up to the end of that sentence."""
    (paragraph,) = (part for part in text.split("\n\n") if part.startswith("Read first:"))
    return re.findall(r"`([\w/]+\.py)`", paragraph.partition(". `")[0])


def test_the_table_names_exactly_the_packages() -> None:
    assert sorted(name for name, _ in TABLE) == sorted([*PACKAGES, *MODULES])


def test_the_table_has_the_order_of_the_layers() -> None:
    level = {name: number for number, names in enumerate(layers()) for name in names}
    rows = [level[name] for name, _ in TABLE]
    assert [(TABLE[i][0], TABLE[i + 1][0]) for i, (one, two) in enumerate(pairwise(rows)) if one > two] == []


def test_the_page_names_modules_that_exist() -> None:
    named = set(re.findall(r"`(\w+(?:/\w+)*/\w+\.py)`", PAGE))
    assert len(named) > 10
    assert sorted(name for name in named if not (CODE / name).is_file()) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_says_what_enters_and_leaves_and_what_to_read_first(package: str) -> None:
    text = docstring(package)
    assert re.search(r"^In: .+?\bOut: |^In and out: ", text, re.MULTILINE | re.DOTALL)
    files = first_files(text)
    assert len(files) == 3
    assert [name for name in files if not (CODE / package / name).is_file()] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_the_docstring_of_a_package_names_modules_that_exist(package: str) -> None:
    """Names are paths below the package, below `mvbuild`, or below the repository."""
    named = set(re.findall(r"[`(\s]((?:\w+/)*\w+\.py)\b", docstring(package)))
    places = (CODE / package, CODE, ROOT)
    assert sorted(name for name in named if not any((place / name).is_file() for place in places)) == []
