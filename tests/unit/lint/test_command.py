"""`mvbuild lint` in this process: exit codes, streams, selection, --fix."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mvbuild.cli.main import group
from mvbuild.lint import reference
from unit.imports import imported
from unit.lint.linted import QUIET, SHOP
from unit.worlds import write_project

ROOT = Path(__file__).parents[3]
STAR = "select *\nfrom {{ ref('customers') }}\n"


def lint(root: Path, files: Mapping[str, str], *args: str) -> Result:
    write_project(root, {**SHOP, **QUIET, **files})
    return CliRunner().invoke(group, ["lint", "--project-dir", str(root), *args], standalone_mode=False)


def test_nothing_found(tmp_path: Path) -> None:
    result = lint(tmp_path, {"models/m.sql": "select id from {{ ref('customers') }}\n"})
    assert (result.return_value, result.stdout) == (0, "")
    assert result.stderr == "No findings in 1 model.\n"
    assert not (tmp_path / ".mvbuild").exists()
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize(("args", "code"), [((), 0), (("--fail-on", "warning"), 1), (("--fail-on", "error"), 0)])
def test_the_exit_code(args: tuple[str, ...], code: int, tmp_path: Path) -> None:
    result = lint(tmp_path, {"models/m.sql": STAR}, *args)
    assert result.return_value == code
    assert result.stdout.startswith("warning[select-star]: The columns are whatever 'customers' has")
    assert "  --> models/m.sql:1:8\n  1 | select *\n    |        ^\n" in result.stdout
    assert result.stderr == "Found 1 warning in 1 model. 1 fixable with --fix.\n"


def test_a_remark_fails_nothing(tmp_path: Path) -> None:
    files = {"mvbuild.yml": "name: shop\nlint: {select-star: info, missing-description: off, missing-tests: off}\n", "models/m.sql": STAR}
    result = lint(tmp_path, files, "--fail-on", "warning")
    assert result.return_value == 0
    assert result.stdout.startswith("info[select-star]")


def test_errors_are_1(tmp_path: Path) -> None:
    assert lint(tmp_path, {"models/m.sql": "{% set password = 'abcdefgh' %}select 1 as x\n"}).return_value == 1


@pytest.mark.parametrize("output", ["json", "github", "sarif"])
def test_a_project_that_does_not_compile_is_in_the_output(output: str, tmp_path: Path) -> None:
    result = lint(tmp_path, {"models/m.sql": "select from\n"}, "--output", output)
    assert result.return_value == 2
    assert "sql-syntax" in result.stdout
    assert "error[sql-syntax]" in result.stderr


def test_selection_and_rules(tmp_path: Path) -> None:
    files = {"models/a.sql": STAR, "models/b.sql": STAR + "limit 1\n", "models/m.yml": "models: [{name: a, config: {tags: [t]}}]\n"}

    def codes(*args: str) -> list[tuple[str, str]]:
        return [(one["node"], one["code"]) for one in json.loads(lint(tmp_path, files, "--output", "json", *args).stdout)]

    a, b = "model.shop.a", "model.shop.b"
    assert codes() == [(a, "select-star"), (b, "select-star"), (b, "limit-without-order")]
    assert codes("--select", "a") == [(a, "select-star")]
    assert codes("--select", "tag:t") == [(a, "select-star")]
    assert codes("--exclude", "a", "--rule", "limit-without-order") == [(b, "limit-without-order")]
    assert codes("--rule", "limit-without-order", "select-star", "--select", "b") == [(b, "select-star"), (b, "limit-without-order")]
    assert codes("--rule", "limit-without-order,unused-cte") == [(b, "limit-without-order")]
    assert codes("--select", "nothing") == []


def test_files_that_are_not_there(tmp_path: Path) -> None:
    write_project(tmp_path, {"models/m.sql": STAR, "notes.sql": "select 1\n"})
    result = lint(tmp_path, {}, str(tmp_path / "models/m.sql"), str(tmp_path / "nosuch.sql"))
    assert result.return_value == 2
    assert "error[command-line]: File '" in result.stderr
    assert "--select" in result.stderr
    assert lint(tmp_path, {}, str(tmp_path / "notes.sql")).return_value == 0


def test_fix(tmp_path: Path) -> None:
    result = lint(tmp_path, {"models/m.sql": STAR}, "--fix", "--fail-on", "warning")
    assert (result.return_value, result.stdout) == (0, "")
    assert result.stderr == "fixed 1 finding in models/m.sql\nNo findings in 1 model.\n"
    assert (tmp_path / "models/m.sql").read_text() == "select id, name, country\nfrom {{ ref('customers') }}\n"


def test_fix_of_a_file_in_a_directory_that_is_read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, content: bytes) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "write_bytes", refuse)
    result = lint(tmp_path, {"models/m.sql": STAR}, "--fix")
    assert result.return_value == 2
    assert f"error[unwritable-file]: Cannot write to {tmp_path / 'models/m.sql'}: Permission denied\n" in result.stderr
    assert "help: Check the permissions of the file and of its directory." in result.stderr


def test_fix_of_a_selection_leaves_the_others(tmp_path: Path) -> None:
    lint(tmp_path, {"models/a.sql": STAR, "models/b.sql": STAR}, "--fix", "--select", "a")
    assert (tmp_path / "models/b.sql").read_text() == STAR
    assert (tmp_path / "models/a.sql").read_text() != STAR


def test_paths_count_from_the_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    result = lint(tmp_path / "shop", {"models/m.sql": STAR}, "--output", "github")
    assert result.stdout.startswith("::warning file=shop/models/m.sql,line=1,endLine=1,col=8,endColumn=9,")


def test_what_is_unknown_is_2(tmp_path: Path) -> None:
    result = lint(tmp_path, {"models/m.sql": STAR}, "--rule", "selectstar")
    assert result.return_value == 2
    assert "Did you mean 'select-star'?" in result.stderr


def test_the_page_of_rules_is_current() -> None:
    """`python -m mvbuild.lint.reference > docs/lint-rules.md` writes it."""
    assert (ROOT / "docs/lint-rules.md").read_text(encoding="utf-8") == reference.page()


def test_the_template_and_the_sample_project_are_clean() -> None:
    for folder in ("templates/mvbuild_templates/init", "sample_project"):
        result = CliRunner().invoke(group, ["lint", "--project-dir", str(ROOT / folder), "--fail-on", "warning"], standalone_mode=False)
        assert (result.stdout, result.exception) == ("", None)


def test_no_catalog_and_no_spark_is_loaded(tmp_path: Path) -> None:
    write_project(tmp_path, {**SHOP, "models/m.sql": STAR})
    modules = imported("lint", "--project-dir", str(tmp_path))
    assert {"mvbuild", "sqlglot"} <= modules
    assert modules.isdisjoint(("pyspark", "pyiceberg", "pyarrow", "sqlalchemy"))
