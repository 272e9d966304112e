"""`mvbuild verify`: exit codes and what is printed, without Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click import unstyle

from mvbuild.cli.progress import Progress
from mvbuild.cli.verify import to_object, total
from mvbuild.freshness.model import Reason
from mvbuild.verify.model import Checked, Difference, Verification, Verified
from unit.cli.test_life import call
from unit.worlds import compiled, write_project

FILES = {"mvbuild.yml": "name: shop\n", "models/daily.sql": "SELECT 1 AS id\n"}
NOTE = Reason(code="storage-changed", message="its storage was changed", effect="stale")
FAILED = Verified(
    node="model.shop.daily",
    status="different",
    missing=1200,
    extra=1,
    columns=("id",),
    rows=(Difference(only_in="query", copies=1, row=(None,)), Difference(only_in="storage", copies=1, row=(2,))),
    notes=(NOTE,),
    sql="SELECT 1",
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_project(tmp_path, FILES)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["daily", "--select", "daily"], "not both"),
        (["--seed", "1"], "--sample"),
        (["--sample", "0"], "above 0 and at most 1"),
        (["--sample", "10"], "See `mvbuild verify --help`."),
        (["--sample", "nan"], "above 0 and at most 1"),
        (["--float-tolerance", "-1"], "not below 0"),
        (["--float-tolerance", "inf"], "not below 0"),
        (["--limit", "-1"], "--limit"),
        (["dayly"], "Unknown model 'dayly'"),
    ],
)
def test_a_wrong_command_line(project: Path, arguments: list[str], says: str) -> None:
    done = call(project, "verify", *arguments)
    assert (done.return_value, done.stdout) == (2, "")
    assert says in done.stderr


def test_as_a_log(project: Path) -> None:
    done = call(project, "verify", "--log-format", "json")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    names = ["MainReportVersion", "NodeStart", "LogStartLine", "LogTestResult", "NodeFinished", "Note", "StatsLine", "CommandCompleted"]
    assert [one["info"]["name"] for one in found] == names
    assert (found[3]["data"]["status"], found[3]["data"]["reason"]) == ("skipped", "it was never refreshed")
    assert found[-1]["data"]["success"]


def test_what_was_never_refreshed(project: Path) -> None:
    done = call(project, "verify")
    assert done.return_value == 0, done.stderr
    assert "1 of 1 SKIP materialized view main.daily" in done.stdout
    assert "it was never refreshed" in done.stdout
    assert "warning[unverifiable]" in done.stderr
    assert done.stdout.splitlines()[-1] == "Done. PASS=0 FAIL=0 ERROR=0 SKIP=1 TOTAL=1"
    done = call(project, "verify", "daily", "--output", "json", "--sample", "0.5", "--seed", "3")
    assert done.return_value == 1
    assert "error[unverifiable]: 'daily' cannot be verified: it was never refreshed" in done.stderr
    found = json.loads(done.stdout)
    assert (found["ok"], found["sample"], found["seed"]) == (False, 0.5, 3)
    assert found["results"][0]["reason"]["code"] == "never-refreshed"


def test_the_lines_of_a_difference(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(compiled(project)) as progress:
        progress(Checked(result=FAILED, index=1, total=1))
    first, *rest = unstyle(capsys.readouterr().out).splitlines()
    assert "1 of 1 FAIL materialized view main.daily ..." in first
    assert [line[10:] for line in rest[:2]] == [
        "  its storage was changed",
        "  1 row only in its storage, 1,200 rows only in its query; 2 of them:",
    ]
    assert [line.split() for line in rest[2:]] == [
        ["difference", "copies", "id"],
        ["---------------", "------", "--"],
        ["only", "in", "query", "1"],
        ["only", "in", "storage", "1", "2"],
    ]


def test_the_result_for_programs(project: Path) -> None:
    found = Verification(results=(FAILED,), sample=0.25, seed=7)
    (one,) = to_object(compiled(project), found)["results"]
    assert (one["only_in_query"], one["only_in_storage"], one["status"]) == (1200, 1, "different")
    assert one["rows"][1] == {"only_in": "storage", "copies": 1, "row": {"id": 2}}
    assert one["notes"][0]["code"] == "storage-changed"
    assert total(found).splitlines()[0].endswith("--sample 0.25 --seed 7")
