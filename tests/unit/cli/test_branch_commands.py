"""`mvbuild branch`, `publish`, `diff` and `run --branch`: exit codes and what is printed, without Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mvbuild.cli.diff import comparison_lines
from mvbuild.cli.main import group
from mvbuild.names import TableIdentifier
from mvbuild.verify.comparison import ColumnDifference, Comparison
from unit.worlds import write_project

SEED = {"mvbuild.yml": "name: shop\n", "seeds/regions.csv": "id,name\n1,north\n"}


def call(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(group, [*arguments, "--project-dir", str(root)], standalone_mode=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of one seed: it is loaded without Spark."""
    write_project(tmp_path, SEED)
    assert call(tmp_path, "run").return_value == 0
    return tmp_path


def rows(project: Path, *arguments: str) -> str:
    done = call(project, "show", "regions", "--output", "json", *arguments)
    assert done.return_value == 0, done.stderr
    return done.stdout


def test_a_seed_on_a_branch_from_run_to_publish(project: Path) -> None:
    before = rows(project)
    write_project(project, {"seeds/regions.csv": "id,name\n1,north\n2,south\n"})
    assert call(project, "run", "--branch", "pr-1").return_value == 0
    assert rows(project) == before
    assert "south" in rows(project, "--branch", "pr-1")
    listed = json.loads(call(project, "branch", "list", "--output", "json").stdout)
    assert listed == [{"branch": "pr-1", "tables": [{"name": "lake.main.regions", "standing": "changed"}]}]
    assert "1 changed" in call(project, "branch", "list").stdout
    done = call(project, "publish", "--branch", "pr-1")
    assert (done.return_value, done.stdout.splitlines()) == (0, ["published lake.main.regions", "Done. PUBLISHED=1"])
    assert "south" in rows(project)
    assert call(project, "branch", "list").stdout == "no branches\n"


def test_a_branch_of_an_older_main_is_told_as_outdated(project: Path) -> None:
    write_project(project, {"seeds/regions.csv": "id,name\n1,west\n"})
    call(project, "run", "--branch", "pr-1")
    write_project(project, {"seeds/regions.csv": "id,name\n1,east\n"})
    call(project, "run")
    done = call(project, "publish", "--branch", "pr-1")
    assert done.return_value == 2
    assert "branch-outdated" in done.stderr
    assert "--branch again" in done.stderr
    assert "east" in rows(project)
    assert "1 outdated" in call(project, "branch", "list").stdout


def test_dropping(project: Path) -> None:
    write_project(project, {"seeds/more.csv": "id\n1\n"})
    assert call(project, "run", "--branch", "pr-1").return_value == 0
    done = call(project, "branch", "drop", "pr-1")
    assert done.return_value == 0, done.stderr
    assert "dropped branch pr-1: 1 new" in done.stdout
    assert not list(project.glob(".mvbuild/warehouse/main/more*/**/*.parquet"))
    assert call(project, "branch", "drop", "pr-1").return_value == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "--branch", "main"], "not a valid name of a branch"),
        (["run", "--branch", "mvbuild_x"], "not a valid name of a branch"),
        (["run", "--branch", "a b"], "not a valid name of a branch"),
        (["run", "--branch", "pr", "--prune"], "--prune"),
        (["publish", "--branch", "nothing"], "no branch 'nothing'"),
        (["diff", "--branch", "nothing"], "no branch 'nothing'"),
        (["publish"], "--branch"),
        (["maintain", "--branch", "pr"], "--branch"),
    ],
)
def test_what_is_refused(project: Path, arguments: list[str], said: str) -> None:
    done = call(project, *arguments)
    assert done.return_value == 2
    assert said in done.stderr


@pytest.mark.parametrize(
    ("keys", "message", "help"),
    [
        (["nosuch"], "lake.main.regions has no column 'nosuch' of --key", "Known names: id, name."),
        (["ID", "nam"], "lake.main.regions has no column 'nam' of --key", "Did you mean 'name'?"),
    ],
)
def test_an_unknown_key_column_of_a_diff(project: Path, keys: list[str], message: str, help: str) -> None:
    write_project(project, {"seeds/regions.csv": "id,name\n1,west\n"})
    assert call(project, "run", "--branch", "pr-1").return_value == 0
    done = call(project, "diff", "--branch", "pr-1", "--key", *keys)
    assert (done.return_value, done.stdout) == (2, "")
    assert done.stderr == f"error[unknown-column]: {message}\n  help: {help}\n"


def test_a_key_column_of_a_diff_that_no_table_has(project: Path) -> None:
    write_project(project, {"seeds/regions.csv": "id,name\n1,west\n", "seeds/more.csv": "number\n1\n"})
    assert call(project, "run", "--branch", "pr-1").return_value == 0
    done = call(project, "diff", "--branch", "pr-1", "--key", "numbr")
    assert done.stderr == "error[unknown-column]: No compared table has a column 'numbr' of --key\n  help: Did you mean 'number'?\n"


def test_a_branch_that_nothing_was_built_on_shows_main(project: Path) -> None:
    for command in (["status"], ["show", "regions", "--output", "json"]):
        unknown = call(project, *command, "--branch", "pr-2")
        assert unknown.return_value == 0
        assert "warning[unknown-branch]: The project has no branch 'pr-2': showing main" in unknown.stderr
        assert unknown.stdout == call(project, *command).stdout
    write_project(project, {"seeds/regions.csv": "id,name\n1,west\n"})
    call(project, "run", "--branch", "pr-2")
    assert "unknown-branch" not in call(project, "status", "--branch", "pr-2").stderr


def test_an_mv_of_one_file_is_not_built_on_a_branch(tmp_path: Path) -> None:
    model = "{{ config(storage={'format': 'metadata-file'}) }}\nSELECT 1 AS id\n"
    write_project(tmp_path, {"mvbuild.yml": "name: shop\n", "models/one.sql": model})
    done = call(tmp_path, "run", "--branch", "pr-1")
    assert done.return_value == 1
    assert "unsupported-format" in done.stderr
    assert "models/one.sql" in done.stderr


def test_a_difference_in_words() -> None:
    figures = (0, 2, 1, 9, 5.0)
    found = Comparison(
        table=TableIdentifier("lake", ("main",), "t"),
        key=("id",),
        rows_before=3,
        rows_after=3,
        added=0,
        removed=0,
        changed=1,
        columns=(
            ColumnDifference(name="id", changed=0, before=figures, after=figures),
            ColumnDifference(name="v", changed=1, before=figures, after=(1, 2, 1, 9, 5.0)),
            ColumnDifference(name="old", changed=None, before=figures, after=None),
        ),
        samples=(("before", (1, 5)), ("after", (1, None))),
        sample_columns=("id", "v"),
    )
    assert comparison_lines(found) == [
        "lake.main.t  (by id)",
        "  3 rows on main, 3 on the branch: 0 added, 0 removed, 1 changed",
        "  column v: 1 changed, nulls 0 -> 1",
        "  column old: gone",
        "    id | v",
        "  < 1 | 5",
        "  > 1 | None",
    ]
