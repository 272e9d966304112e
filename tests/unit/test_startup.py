"""Commands in separate processes -> the modules that they import: a command does not pay for what it does not need."""

from __future__ import annotations

from pathlib import Path

import pytest

from unit.imports import WORLD, imported
from unit.worlds import write_project

LATE = ("sqlglot", "jinja2", "yaml", "pyspark", "pyiceberg", "sqlalchemy", "pyarrow", "rich")
PROJECT = {
    "mvbuild.yml": "name: shop\n",
    "seeds/countries.csv": "code,name\nDE,Germany\nFR,France\n",
    "seeds/countries.yml": "seeds: [{name: countries, columns: [{name: code, data_tests: [not_null]}]}]\n",
}
MODEL = {"models/names.sql": "SELECT {{ var('column', 'name') }} AS name FROM {{ ref('countries') }}\n"}


@pytest.fixture
def project(tmp_path: Path) -> str:
    return str(write_project(tmp_path, {**PROJECT, **MODEL}))


def test_version_imports_nothing_that_is_slow() -> None:
    modules = imported("--version")
    assert "click" in modules
    assert modules.isdisjoint(LATE)


def test_help_imports_nothing_that_is_slow() -> None:
    assert imported("--help").isdisjoint(LATE)


@pytest.mark.parametrize("command", ["compile", "ls"])
def test_commands_without_a_catalog_import_no_catalog_and_no_engine(command: str, project: str) -> None:
    modules = imported(command, "--project-dir", project)
    assert {"sqlglot", "jinja2", "yaml"} <= modules
    assert modules.isdisjoint(WORLD)


@pytest.mark.parametrize("command", ["plan", "status"])
def test_reading_the_catalog_imports_no_engine_and_no_pyiceberg(command: str, project: str) -> None:
    assert imported(command, "--project-dir", project).isdisjoint(WORLD)


def test_a_site_is_built_without_an_engine(project: str) -> None:
    assert imported("docs", "build", "--project-dir", project).isdisjoint(("pyspark", "pyarrow", "deltalake", "http"))


def test_loading_seeds_never_imports_spark_and_a_run_with_nothing_to_do_not_even_pyiceberg_and_sqlglot(tmp_path: Path) -> None:
    project = str(write_project(tmp_path, PROJECT))
    loading = imported("run", "--project-dir", project)
    assert "pyiceberg" in loading
    assert "pyspark" not in loading
    assert imported("run", "--project-dir", project).isdisjoint((*WORLD, "sqlglot", "jinja2"))
