from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from mvbuild import api
from mvbuild.cli.main import group
from mvbuild.dbt.write import write as write_files
from mvbuild.diagnostics import ProjectError
from mvbuild.graph.model import ModelNode
from unit.dbt.projects import taken, write

GOOD = {"models/m.sql": "select 1 as a\r\n", "seeds/s.csv": b"\xef\xbb\xbfa,b\r\n1,x\r\n"}
BAD = {"models/bad.sql": "select {{ adapter.x() }}"}


def run(*arguments: str):
    return CliRunner().invoke(group, ["import", "dbt", *arguments], standalone_mode=False)


def test_check_writes_nothing_and_tells_by_its_exit_code(tmp_path: Path) -> None:
    root = write(tmp_path / "shop", {**GOOD, **BAD})
    before = sorted(tmp_path.rglob("*"))
    result = run(str(root), "--check", "--output", "json")
    assert result.return_value == 1
    card = json.loads(result.stdout)
    assert card["counts"] == {"unchanged": 2, "changed": 2, "disabled": 0, "refused": 1}
    assert card["kinds"]["model"] == {"unchanged": 1, "changed": 0, "disabled": 0, "refused": 1}
    bad = next(i for i in card["items"] if i["name"] == "bad")
    assert bad["reasons"][0]["code"] == "adapter-call"
    assert bad["reasons"][0]["location"]["column"] == 11
    assert card["files"] == []
    assert sorted(tmp_path.rglob("*")) == before
    assert "adapter-call" in run(str(root), "--check").stdout


def test_the_result_compiles_and_unchanged_files_keep_their_bytes(tmp_path: Path) -> None:
    root = write(tmp_path / "shop", GOOD)
    assert run(str(root)).return_value == 0
    into = tmp_path / "shop-mvbuild"
    assert [m.model.name for m in api.compile(into).models if isinstance(m, ModelNode)] == ["m"]
    assert (into / "models/m.sql").read_bytes() == b"select 1 as a\r\n"
    assert (into / "seeds/s.csv").read_bytes() == GOOD["seeds/s.csv"]


def test_files_are_never_overwritten_unasked(tmp_path: Path) -> None:
    root = write(tmp_path / "shop", GOOD)
    into = tmp_path / "there"
    (into / "models").mkdir(parents=True)
    (into / "models/m.sql").write_text("mine")
    with pytest.raises(ProjectError) as caught:
        write_files(taken(root, GOOD).files, into, root=root, force=False)
    assert caught.value.diagnostics[0].code == "file-exists"
    assert sorted(p.name for p in into.rglob("*")) == ["m.sql", "models"]
    assert run(str(root), "--into", str(into), "--force").return_value == 0
    assert (into / "models/m.sql").read_bytes() == b"select 1 as a\r\n"


def test_a_failure_leaves_everything_as_it_was(tmp_path: Path) -> None:
    root = write(tmp_path / "shop", GOOD)
    into = tmp_path / "there"
    (into / "seeds" / "s.csv").mkdir(parents=True)  # a folder where a file is to go
    (into / "seeds" / "s.csv" / "keep").write_text("x")
    (into / "mvbuild.yml").write_text("mine")
    files = taken(root, GOOD).files
    blocked = {**files, "mvbuild.yml/inside": files["mvbuild.yml"]}
    with pytest.raises(ProjectError):
        write_files(blocked, into, root=root, force=True)
    assert (into / "mvbuild.yml").read_text() == "mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["shop", "there"]


def test_no_project(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "mvbuild.cli.main", "import", "dbt", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert "error[not-a-project]" in result.stderr


OUTSIDE = ["../shared", "models/../../shared", "/{tmp}/shared", "..", "a/../../.."]


@pytest.mark.parametrize("path", OUTSIDE)
@pytest.mark.parametrize("key", ["model-paths", "source-paths", "macro-paths", "test-paths", "seed-paths", "data-paths", "docs-paths"])
def test_a_path_that_leads_out_of_the_project_is_refused_and_never_written(tmp_path: Path, key: str, path: str) -> None:
    (tmp_path / "work" / "shared").mkdir(parents=True)
    for name, content in (
        ("m.sql", "select 1 as theirs"),
        ("s.csv", "a\n1\n"),
        ("x.yml", "models: [{name: m}]\n"),
        ("d.md", "{% docs d %}theirs{% enddocs %}"),
    ):
        (tmp_path / "work" / "shared" / name).write_text(content)
    outside = path.replace("/{tmp}", str(tmp_path / "work"))
    project = f"name: shop\nprofile: shop\n{key}: ['{outside}', good]\n"
    root = write(tmp_path / "work" / "shop", {"dbt_project.yml": project, "models/m.sql": "select 1 as a", "good/n.sql": "select 2 as a"})
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    result = run(str(root), "--check", "--output", "json")
    card = json.loads(result.stdout)
    whole = next(i for i in card["items"] if i["kind"] == "project")
    (found,) = [r for r in whole["reasons"] if r["code"] == "outside-project"]
    assert result.return_value == 1
    assert found["location"]["line"] == 3
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before
    run(str(root), "--into", str(tmp_path / "new"))
    after = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file() and tmp_path / "new" not in p.parents}
    assert after == before
    assert outside not in (tmp_path / "new" / "mvbuild.yml").read_text()


def test_the_name_of_a_test_does_not_choose_the_folder(tmp_path: Path) -> None:
    macro = "{% test mine(model) %}select * from {{ model }}{% endtest %}"
    yml = "models:\n  - name: m\n    data_tests: [{mine: {name: '../../../escaped'}}]\n"
    root = write(tmp_path / "work" / "shop", {"models/m.sql": "select 1 as a", "macros/mine.sql": macro, "models/m.yml": yml})
    assert run(str(root), "--into", str(tmp_path / "new")).return_value is not None
    assert not list(tmp_path.rglob("*escaped.sql")) or all(tmp_path / "new" / "tests" in p.parents for p in tmp_path.rglob("*escaped.sql"))


def test_a_link_in_the_output_folder_is_not_followed(tmp_path: Path) -> None:
    root = write(tmp_path / "shop", GOOD)
    (tmp_path / "theirs").mkdir()
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "models").symlink_to(tmp_path / "theirs")
    with pytest.raises(ProjectError) as caught:
        write_files(taken(root, GOOD).files, tmp_path / "there", root=root, force=True)
    assert caught.value.diagnostics[0].code == "unwritable-target"
    assert not list((tmp_path / "theirs").iterdir())


def test_nothing_written_is_said_and_is_an_error(tmp_path: Path) -> None:
    root = write(tmp_path / "shop", {"dbt_project.yml": "name: shop\nvars: [1]\n", **GOOD})
    result = run(str(root))
    assert result.return_value == 2
    assert "error[nothing-imported]: Nothing was written: 'vars' must be a mapping" in result.stderr
    assert "[does-not-compile]" in result.stdout
    assert not (tmp_path / "shop-mvbuild").exists()
    assert "Nothing would be written" in run(str(root), "--check").stderr
