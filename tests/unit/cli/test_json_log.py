"""events of a run -> the lines that dagster-dbt and Cosmos read: every node and test once, with dbt's names, statuses and levels."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from mvbuild.cli.json_log import JsonLog
from mvbuild.refresh.result import RunResult
from unit.cli.bad_input import call, lay_out
from unit.worlds import PROJECT, Shop, shop

TESTS = (
    "models:\n  - name: daily\n    columns: [{name: id, data_tests: [not_null, {unique: {severity: warn}}]}]\n"
    "  - name: orders_clean\n    columns: [{name: id, data_tests: [unique]}]\n"
)
FILES = {**PROJECT, "models/m.yml": TESTS, "seeds/countries.csv": "code\nDE\n"}
Lines = list[dict[str, Any]]


@pytest.fixture
def logged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[Shop, RunResult, Lines]]:
    """A run of the project, and its lines."""

    def run(made: Shop | None = None, *, failures: Mapping[str, int] = {}, **options: Any) -> tuple[Shop, RunResult, Lines]:
        made = made or shop(tmp_path, FILES)
        made.engine.failures = failures
        capsys.readouterr()
        log = JsonLog(made.world().graph, together=options.get("atomic", False))
        result = made.run(on_event=log, **options)
        log.completed(result)
        said = capsys.readouterr()
        assert said.err == ""
        return made, result, [json.loads(line) for line in said.out.splitlines()]

    return run


def ended(lines: Lines, *names: str) -> dict[str, str]:
    """The last part of the id of nodes -> their status in the events of these names."""
    return {
        (line["data"]["node_info"]["unique_id"].rpartition(".")[2]): line["data"]["node_info"]["node_status"]
        for line in lines
        if line["info"]["name"] in names
    }


def test_each_node_starts_and_ends_once(logged: Callable[..., tuple[Shop, RunResult, Lines]]) -> None:
    made, result, lines = logged(all_tests=True)
    assert result.ok
    names = [line["info"]["name"] for line in lines]
    assert (names[0], names[-1]) == ("MainReportVersion", "CommandCompleted")
    started = [line["data"]["node_info"]["unique_id"] for line in lines if line["info"]["name"] == "NodeStart"]
    assert sorted(started) == ["model.shop.daily", "model.shop.monthly", "model.shop.orders_clean", "seed.shop.countries"]
    assert ended(lines, "LogSeedResult") == {"countries": "success"}
    assert ended(lines, "LogModelResult") == {"orders_clean": "success", "daily": "success", "monthly": "success"}
    tests = {test.id.rpartition(".")[2] for test in made.world().graph.tests}
    assert len(tests) == 3
    assert ended(lines, "LogTestResult") == dict.fromkeys(tests, "pass")
    finished = [line["data"]["node_info"]["unique_id"] for line in lines if line["info"]["name"] == "NodeFinished"]
    assert len(finished) == len(set(finished)) == 7
    assert all(line["info"]["level"] in ("info", "debug") for line in lines)
    assert len({line["info"]["invocation_id"] for line in lines}) == 1


def test_what_a_reader_gets_of_a_node(logged: Callable[..., tuple[Shop, RunResult, Lines]]) -> None:
    _, _, lines = logged()
    (line,) = (line for line in lines if line["info"]["name"] == "LogModelResult" and line["data"]["node_info"]["node_name"] == "daily")
    info = line["data"]["node_info"]
    assert (info["resource_type"], info["materialized"], info["node_path"]) == ("model", "materialized_view", "daily.sql")
    assert info["node_started_at"] == info["node_finished_at"] == "2023-11-14T22:13:20.000000Z"
    assert info["node_relation"] == {
        "database": "lake",
        "schema": "main",
        "alias": "daily",
        "relation_name": "lake.main.daily",
    }
    assert (line["data"]["status"], line["data"]["execution_time"]) == ("success", 0.0)


def test_a_failing_test_fails_and_says_why(logged: Callable[..., tuple[Shop, RunResult, Lines]]) -> None:
    _, result, lines = logged(failures={"IS NULL": 2, "count(*) > 1": 1}, all_tests=True)
    assert not result.ok
    assert ended(lines, "LogModelResult") == {"orders_clean": "success", "daily": "error", "monthly": "skipped"}
    assert ended(lines, "SkippingDetails") == {"monthly": "skipped"}
    tests = {line["data"]["name"]: line for line in lines if line["info"]["name"] == "LogTestResult"}
    found = {name: (line["data"]["status"], line["data"]["num_failures"], line["info"]["level"]) for name, line in tests.items()}
    assert found == {
        "not_null_daily_id": ("fail", 2, "error"),
        "unique_daily_id": ("warn", 1, "warn"),
        "unique_orders_clean_id": ("fail", 1, "error"),
    }
    reasons = [line["info"]["msg"] for line in lines if line["info"]["name"] in ("RunResultError", "RunResultFailure")]
    assert any("2 rows violate its rule" in reason for reason in reasons)
    assert lines[-1]["data"]["success"] is False


def test_what_is_fresh_is_a_success(logged: Callable[..., tuple[Shop, RunResult, Lines]]) -> None:
    made, _, _ = logged()
    _, _, lines = logged(made)
    assert ended(lines, "LogModelResult", "LogSeedResult") == dict.fromkeys(("countries", "orders_clean", "daily", "monthly"), "success")
    finished = [line["data"]["run_result"]["adapter_response"] for line in lines if line["info"]["name"] == "NodeFinished"]
    assert [response["reused"] for response in finished] == [True] * 4


def test_together_nothing_is_a_success_before_the_commit(logged: Callable[..., tuple[Shop, RunResult, Lines]]) -> None:
    _, result, lines = logged(failures={"IS NULL": 1}, atomic=True)
    assert not result.ok
    assert "success" not in ended(lines, "LogModelResult", "LogSeedResult").values()
    _made, result, lines = logged(atomic=True)
    assert result.ok
    assert set(ended(lines, "LogModelResult", "LogSeedResult").values()) == {"success"}


def test_errors_of_a_project_are_lines_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    lay_out(
        tmp_path, {"models/a.yml": "models: [{name: a, config: {alias: \"{{ var('nothing') }}\"}}]\n", "models/a.sql": "select 1 as id\n"}
    )
    outcome = call("run", tmp_path, {"DBT_LOG_FORMAT": "json"}, monkeypatch, capsys)
    assert (outcome.exit, outcome.stderr) == (2, "")
    (line,) = map(json.loads, outcome.stdout.splitlines())
    assert (line["info"]["name"], line["info"]["level"], line["data"]["code"]) == ("MainEncounteredError", "error", "missing-var")
    assert "models/a.yml:1:36" in line["info"]["msg"]


def test_what_a_command_prints_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    lay_out(tmp_path, {"models/a.sql": "select 1 as id\n"})
    outcome = call("ls -s a nothing", tmp_path, {"MVBUILD_LOG_FORMAT": "json"}, monkeypatch, capsys)
    assert outcome.stdout == "shop.a\n"
    assert json.loads(outcome.stderr)["info"]["level"] == "warn"
