"""docs/development.md says what to touch to add a strategy, a data test, ...: the names of each occur in those modules, and in no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from itertools import chain
from pathlib import Path

import pytest

from mvbuild.adapters import iceberg
from mvbuild.adapters.spark import catalog_conf, session_catalogs
from mvbuild.cli.main import COMMANDS, _module
from mvbuild.formats.record import STORAGE_FORMATS
from mvbuild.incremental.strategies import _MODULES, STRATEGIES
from mvbuild.lint.rules import RULES
from mvbuild.project.keys import TEST_ARGUMENTS
from mvbuild.refresh.data_test_sql import SQL

ROOT = Path(__file__).parents[2]
CODE = ROOT / "compiler/mvbuild"
PAGE = (ROOT / "docs/development.md").read_text(encoding="utf-8").partition("## Extension points")[2].partition("\n## ")[0]
ROWS = dict(re.findall(r"^\| ([a-z ]+) \| (.+) \|$", PAGE, re.MULTILINE))


@cache
def sources() -> Mapping[str, str]:
    """Not read when tests are collected, which each process does for all of them."""
    return {str(path.relative_to(CODE)): path.read_text(encoding="utf-8") for path in sorted(CODE.rglob("*.py"))}


@cache
def tree(path: str) -> ast.Module:
    return ast.parse(sources()[path])


@cache
def texts(path: str) -> frozenset[str]:
    """The string literals of a module, without docstrings."""
    nodes = list(ast.walk(tree(path)))
    docs = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    return frozenset(n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str) and id(n) not in docs)


def naming(name: str, *packages: str) -> set[str]:
    """The modules with this string literal, below these packages or in all."""
    possible = (path for path, text in sources().items() if name in text and (not packages or path.partition("/")[0] in packages))
    return {path for path in possible if name in texts(path)}


def importing(name: str) -> set[str]:
    """The modules that import this module, or this name of a module."""
    return {path for path, text in sources().items() if name.rpartition(".")[2] in text and name in imports(tree(path))}


def imports(tree: ast.Module) -> set[str]:
    """Modules, and names as `module.name`."""
    found = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module)
    return set(chain.from_iterable((node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)) for node in found))


def test_the_page_has_a_row_for_each_extension_point() -> None:
    points = ("strategy", "catalog type", "lint rule", "command", "data test", "key of unit tests", "storage format", "artifact")
    assert set(ROWS) - {"to add a"} == set(points)


def test_the_page_names_files_that_exist() -> None:
    named = set(re.findall(r"`([\w/]+/[\w/]*(?:\.py)?)`", PAGE))
    assert len(named) > 15
    assert [name for name in named if not (CODE / name).exists() and not (ROOT / name).exists()] == []


@pytest.mark.parametrize("module", _MODULES, ids=lambda module: module.NAME)
def test_a_strategy_is_named_by_its_own_module_alone(module) -> None:
    path = f"{module.__name__.removeprefix('mvbuild.').replace('.', '/')}.py"
    # The names of some are words with other meanings elsewhere: Iceberg's `append`, dbt's `merge`.
    assert naming(module.NAME, "incremental", "plan", "refresh", "lint", "review", "cli", "api", "serve", "lsp") == {path}
    assert importing(module.__name__) == {"incremental/strategies/__init__.py"}


def test_every_module_of_a_strategy_is_in_the_table() -> None:
    assert {path.stem for path in (CODE / "incremental/strategies").glob("*.py")} - {"__init__"} == {
        module.__name__.rpartition(".")[2] for module in _MODULES
    }
    assert set(STRATEGIES) == {module.NAME for module in _MODULES}


# `row_keys` takes the column of a `unique` test for a key; `dbt` translates dbt's tests.
ALSO = {
    "unique": {"verify/row_keys.py", "dbt/generic_tests.py"},
    "not_null": {"dbt/generic_tests.py"},
    "relationships": {"dbt/generic_tests.py"},
}


@pytest.mark.parametrize("kind", TEST_ARGUMENTS)
def test_a_data_test_is_a_line_of_the_table_and_its_sql(kind: str) -> None:
    assert naming(kind) - ALSO.get(kind, set()) == {"project/keys.py", "refresh/data_test_sql.py"}


def test_every_data_test_has_its_sql() -> None:
    assert set(SQL) == set(TEST_ARGUMENTS)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_lint_rule_is_named_by_its_own_module_alone(rule) -> None:
    (path,) = naming(rule.code)
    assert path.startswith("lint/rules/")


def test_every_command_is_a_module_and_every_module_with_a_command_is_in_the_table() -> None:
    modules = {path.stem for path in (CODE / "cli").glob("*.py") if "\ndef command(" in path.read_text(encoding="utf-8")}
    assert {_module(name) for name in COMMANDS} == modules
    assert all(import_module(f"mvbuild.cli.{module}").command.name for module in modules)


@pytest.mark.parametrize("kind", [kind for kind in iceberg._TYPES if kind != "sql"])
def test_a_catalog_type_is_named_by_the_adapters_alone(kind: str) -> None:
    """`sql` is a word with other meanings."""
    assert {path.partition("/")[0] for path in naming(kind)} == {"adapters"}
    assert {"adapters/iceberg/__init__.py", "adapters/spark/catalog_conf.py"} <= naming(kind)


def test_both_sides_of_the_adapters_know_the_same_catalog_types() -> None:
    assert set(catalog_conf._TYPES) == {*iceberg._TYPES, "rest"}
    # There Spark's names are the keys.
    assert set(session_catalogs._KINDS) == {"jdbc" if kind == "sql" else kind for kind in catalog_conf._TYPES}


@pytest.mark.parametrize("name", STORAGE_FORMATS)
def test_a_storage_format_is_named_where_the_page_says(name: str) -> None:
    assert {"formats/record.py", "storage/format.py", "refresh/convert.py"} <= naming(name)


def test_artifacts_are_written_by_one_function() -> None:
    assert importing("mvbuild.artifacts.files.write_json") == {"api/compilation.py"}
