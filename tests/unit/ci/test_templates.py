"""The steps of the templates for CI, run by bash in a repository, with stand-ins for what only the services have."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from unit.cli.bad_input import Outcome, call
from unit.imports import COMPILER
from unit.review.repositories import commit, git, repository
from unit.worlds import write_project

ROOT = Path(__file__).parents[3]
TEMPLATES = ROOT / "templates/mvbuild_templates/ci"
FILES = {
    "shop/mvbuild.yml": "name: shop\nlint: {missing-description: off, missing-tests: off}\n",
    "shop/models/a.sql": "SELECT 1 AS id, 2 AS amount\n",
    "shop/models/b.sql": "SELECT id, amount FROM {{ ref('a') }}\n",
    "shop/models/b.yml": "models: [{name: b, columns: [{name: nope}]}]\n",
}
PROGRAMS = {
    "mvbuild": f'exec "{sys.executable}" -m mvbuild.cli.main "$@"\n',
    "pip": 'echo "pip $*" >> "$SAID"\n',
    "gh": 'echo "gh $*" >> "$SAID"; case "$*" in *--paginate*) printf "%s\\n" "$KNOWN";; esac\n',
    "curl": 'echo "curl $*" >> "$SAID"; case "$*" in *per_page*) printf "%s\\n" "$KNOWN";; esac\n',
}

QUICK = "echo '<!-- mvbuild plan -->'\n"
"""A mvbuild for tests of what comes after it."""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone with a branch in which a column goes that another model reads, and a LIMIT comes."""
    top = tmp_path_factory.mktemp("ci")
    origin = repository(top / "origin", FILES)
    git(top, "clone", "-q", str(origin), str(top / "clone"))
    root = top / "clone"
    git(root, "checkout", "-q", "-b", "change")
    write_project(
        root, {"shop/models/a.sql": "SELECT 1 AS id, 2 AS total\n", "shop/models/b.sql": "SELECT id FROM {{ ref('a') }} LIMIT 3\n"}
    )
    commit(root)
    for name, script in {**{f"bin/{name}": script for name, script in PROGRAMS.items()}, "quick/mvbuild": QUICK}.items():
        program = top / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n{script}")
        program.chmod(0o755)
    return root


def run(root: Path, script: str, variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """As both services do: bash, and the first failure ends it."""
    top = root.parent
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MVBUILD_", "DBT_", "GIT"))}
    environment |= {
        "PATH": f"{top / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": f"{COMPILER}:{ROOT / 'templates'}",
        "SAID": str(top / "said"),
    }
    (top / "said").write_text("")
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        cwd=root,
        env={**environment, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def said(root: Path) -> str:
    return (root.parent / "said").read_text()


# --- GitHub


CONTEXT = {"github.base_ref": "main", "github.token": "t0ken", "github.repository": "me/shop", "github.event.pull_request.number": "7"}


def github(root: Path, known: str = "") -> dict[str, subprocess.CompletedProcess[str]]:
    """Each step by its name."""
    workflow = yaml.safe_load((TEMPLATES / "github.yml").read_text())
    steps = [step for step in workflow["jobs"]["review"]["steps"] if "run" in step]
    runner = {"RUNNER_TEMP": str(root.parent), "GITHUB_STEP_SUMMARY": str(root.parent / "summary"), "KNOWN": known}
    done = {}
    for step in steps:
        assert "${{" not in step["run"], "what comes from a pull request is no part of a script"
        own = {name: re.sub(r"\$\{\{ (\S+) \}\}", lambda m: CONTEXT[m[1]], value) for name, value in step.get("env", {}).items()}
        done[step["name"]] = run(root, step["run"], {**workflow["env"], "MVBUILD_PROJECT_DIR": "shop", **runner, **own})
    return done


def test_the_workflow_annotates_lines_and_comments_the_plan(checkout: Path) -> None:
    done = github(checkout)
    assert [step.returncode for step in done.values()] == [0, 0, 0, 0], done
    assert re.search(r"^::warning file=shop/models/b.sql,line=1,.*limit-without-order", done["Lint"].stdout, re.MULTILINE)
    plan = (checkout.parent / "plan.md").read_text()
    assert plan.startswith("<!-- mvbuild plan -->")
    assert "amount" in plan
    assert plan == (checkout.parent / "summary").read_text()
    assert "gh api --method POST repos/me/shop/issues/7/comments -F body=@" in said(checkout)


@pytest.mark.proof
def test_a_second_plan_takes_the_place_of_the_first(checkout: Path) -> None:
    done = github(checkout, known="41\n42")
    assert done["Comment"].returncode == 0
    assert "gh api --method PATCH repos/me/shop/issues/comments/42 -F body=@" in said(checkout)
    assert "POST" not in said(checkout)


# --- GitLab


def gitlab(root: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    job = yaml.safe_load((TEMPLATES / "gitlab.yml").read_text())["mvbuild"]
    own: dict[str, Any] = {**job["variables"], "MVBUILD_PROJECT_DIR": "shop", "MVBUILD_GITLAB_TOKEN": "", **variables}
    own |= {"CI_API_V4_URL": "https://gitlab.example.com/api/v4", "CI_PROJECT_ID": "5", "CI_MERGE_REQUEST_IID": "7"}
    return run(root, "\n".join([*job["before_script"], *job["script"]]), {**own, "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main"})


@pytest.mark.proof
def test_the_job_keeps_a_code_quality_report_and_the_plan(checkout: Path) -> None:
    done = gitlab(checkout)
    assert (done.returncode, "curl" in said(checkout)) == (0, False), done
    (found,) = json.loads((checkout / "gl-code-quality-report.json").read_text())
    assert (found["check_name"], found["severity"]) == ("limit-without-order", "minor")
    assert found["location"] == {"path": "shop/models/b.sql", "lines": {"begin": 1}}
    assert (checkout / "mvbuild-plan.md").read_text().startswith("<!-- mvbuild plan -->")


@pytest.mark.proof
@pytest.mark.parametrize(
    ("notes", "request_line"),
    [
        ([{"id": 1, "body": "hello"}], "--request POST --header PRIVATE-TOKEN: secret --data-urlencode body@mvbuild-plan.md"),
        ([{"id": 1, "body": "hello"}, {"id": 9, "body": "<!-- mvbuild plan -->\nold"}], "--request PUT"),
    ],
)
def test_with_a_token_the_plan_is_a_note(checkout: Path, notes: list[dict[str, Any]], request_line: str) -> None:
    done = gitlab(checkout, MVBUILD_GITLAB_TOKEN="secret", KNOWN=json.dumps(notes))
    assert done.returncode == 0, done
    assert request_line in said(checkout)
    place = "https://gitlab.example.com/api/v4/projects/5/merge_requests/7/notes"
    assert said(checkout).strip().endswith(f"{place}/9" if "PUT" in request_line else place)


# --- both, and pre-commit


@pytest.mark.parametrize("service", ["github", "gitlab"])
def test_the_command_prints_them(service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(f"ci {service}", tmp_path, {}, monkeypatch, capsys).stdout == (TEMPLATES / f"{service}.yml").read_text()


def test_hooks_run_on_the_files_that_were_changed(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hooks = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    pattern = re.compile(hooks["mvbuild-lint"]["files"])
    names = git(checkout, "diff", "--name-only", "main").split()
    assert [name for name in names if pattern.search(name)] == names
    lint = f"{hooks['mvbuild-lint']['entry']} --fail-on warning --project-dir shop".removeprefix("mvbuild ")

    def linted(files: str) -> Outcome:
        return call(f"{lint} {files}", checkout, {}, monkeypatch, capsys)

    for name in ("README.md", "elsewhere.sql"):
        (checkout / name).touch()
    assert "limit-without-order" in linted(" ".join(names)).stdout
    for files in ("shop/models/a.sql", "README.md elsewhere.sql"):
        assert (linted(files).exit, linted(files).stdout) == (0, "")
    assert (linted("shop/models/b.yml").exit, "models/b.sql" in linted("shop/models/b.yml").stdout) == (1, True)
    assert linted("shop/models/a.sql --select a").exit == 2
    entry = hooks["mvbuild-compile"]["entry"].removeprefix("mvbuild ")
    assert call(f"{entry} --project-dir shop", checkout, {}, monkeypatch, capsys).exit == 0
