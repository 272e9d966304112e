"""events of a run -> the lines that people read: 80 columns, one stream, the reason of a failure where it fails, and the live line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click import unstyle

from mvbuild.cli import progress as module
from mvbuild.cli.progress import Progress, summary
from mvbuild.cli.totals import saved
from mvbuild.diagnostics import error
from mvbuild.freshness.model import Reason, State
from mvbuild.names import TableIdentifier
from mvbuild.ports.engine import Work
from mvbuild.refresh import result as results_of_a_run
from mvbuild.refresh.result import EngineStarted, Entered, Event, Finished, NodeResult, RunResult, Started, TestResult
from unit.worlds import compiled, shop

LONG = "customer_lifetime_value"
FILES = {
    "mvbuild.yml": "name: shop\n",
    f"models/{LONG}.sql": "{{ config(namespace='mart') }}SELECT id FROM raw.orders\n",
    f"models/{LONG}.yml": f"models:\n  - name: {LONG}\n    columns: [{{name: id, data_tests: [not_null]}}]\n",
    "seeds/s.csv": "id\n1\n",
}
ID = f"model.shop.{LONG}"


def of(status: str, **more: object) -> NodeResult:
    given = {"message": "", "seconds": 3.5, "details": {"rows": 1}, **more}
    return NodeResult(node=ID, status=status, reasons=(), started_ms=0, **given)  # type: ignore[arg-type]


def said(graph: object, *events: Event, capsys: pytest.CaptureFixture[str]) -> tuple[list[str], str]:
    """The lines on stdout without their time, and what is on stderr."""
    with Progress(graph) as progress:  # type: ignore[arg-type]
        for event in events:
            progress(event)
    found = capsys.readouterr()
    return [line[10:] for line in unstyle(found.out).splitlines()], unstyle(found.err)


def test_lines_fit_80_columns_and_what_does_not_fit_follows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = "merge: +1,234,567 -1,234,567, 12,345,678,901 rows"
    lines, err = said(
        compiled(tmp_path, FILES),
        Started(node=ID, index=118, total=120, expected_seconds=8.2),
        Finished(result=of("success", message=message), index=118, total=120, left=2),
        Finished(result=of("success", message="3 rows"), index=118, total=120, left=2),
        Finished(result=of("reused"), index=119, total=120, left=1),
        capsys=capsys,
    )
    assert err == ""
    assert [line.partition(" ..")[0] for line in lines] == [
        f"118 of 120 START mart.{LONG}",
        f"118 of 120 OK refreshed mart.{LONG}",
        message,
        f"118 of 120 OK refreshed mart.{LONG}",
        "3 rows",
        f"119 of 120 REUSED mart.{LONG}",
    ]
    assert lines[0].endswith("... [RUN ~8s]")
    assert lines[-1].endswith("... [fresh]")
    assert max(map(len, lines)) <= 70


def test_what_is_published_at_the_end_of_a_run_is_only_built_until_then(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An atomic run that fails later publishes nothing."""
    progress = Progress(compiled(tmp_path, FILES), together=True)
    for status in ("success", "reused", "error"):
        progress(Finished(result=of(status), index=1, total=3, left=2))
    lines = [line[10:] for line in unstyle(capsys.readouterr().out).splitlines()]
    assert [line.partition(" mart.")[0] for line in lines] == ["1 of 3 OK built", "1 of 3 REUSED", "1 of 3 ERROR"]


@pytest.mark.parametrize(("effects", "state"), [(["fresh"], "fresh"), (["unknown"], "unknown"), (["unknown", "stale"], "stale")])
def test_what_stays_as_it_is_has_its_state(effects: list[State], state: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An MV that reads one that is not selected, or cannot be built, is left alone, fresh or not."""
    reasons = tuple(Reason(code="upstream-unknown", message=f"it reads a, which is {effect}", effect=effect) for effect in effects)
    result = replace(of("reused"), reasons=reasons)
    lines, _ = said(compiled(tmp_path, FILES), Finished(result=result, index=1, total=1, left=0), capsys=capsys)
    assert lines[0].endswith(f"... [{state}]")
    assert ("which is" in " ".join(lines)) == (state != "fresh")


def test_quiet_runs_end_without_a_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph, result = compiled(tmp_path, FILES), RunResult(results=(of("success"),), seconds=1.0)
    Progress(graph, quiet=True).completed(result)
    assert capsys.readouterr().out == ""
    Progress(graph).completed(result)
    assert "Completed successfully" in capsys.readouterr().out


def test_a_run_that_only_dropped_something_did_something(tmp_path: Path) -> None:
    graph, gone = compiled(tmp_path, FILES), TableIdentifier("lake", ("main",), "old")
    assert "Nothing was done" not in summary(graph, RunResult(results=(), dropped=(gone,), seconds=1.0))
    assert "Nothing was done" in summary(graph, RunResult(results=(), seconds=1.0))


def test_short_lines_end_in_the_same_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seed = NodeResult(node="seed.shop.s", status="success", message="1 row", seconds=0.25)
    events = (Started(node="seed.shop.s", index=1, total=2), Finished(result=seed, index=1, total=2, left=1))
    lines, _ = said(compiled(tmp_path, FILES), *events, capsys=capsys)
    assert [len(line) for line in lines] == [70, 70]
    assert lines[0].startswith("1 of 2 START main.s ...")
    assert lines[1].startswith("1 of 2 OK loaded main.s (1 row) ...")
    assert lines[1].endswith("... [0.25s]")


def test_the_reason_of_a_failure_follows_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = compiled(tmp_path, FILES)
    failed = of("error", diagnostics=(error("query-failed", "the column x does not exist"),))
    with Progress(graph) as progress:
        progress(Finished(result=failed, index=1, total=2, left=1))
        first = capsys.readouterr()
        progress(Finished(result=NodeResult(node="seed.shop.s", status="success", message=""), index=2, total=2, left=0))
    assert "1 of 2 ERROR mart." in first.out
    assert "error[query-failed]: the column x does not exist" in first.err


def test_the_live_line_says_what_runs_and_how_long_it_may_take(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    at = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: at[0])
    progress = Progress(compiled(tmp_path, FILES))
    progress(Started(node="seed.shop.s", index=1, total=3))
    seed = NodeResult(node="seed.shop.s", status="success", message="")
    progress(Finished(result=seed, index=1, total=3, left=2))
    progress(Started(node=ID, index=2, total=3, expected_seconds=8.2))
    progress(Entered(node=ID, stage="writing"))
    at[0] = 103.2
    assert progress.running() == f"2 left | mart.{LONG} writing 3s of ~8s"
    work = Work(tasks=40, tasks_done=12, rows_read=1_230_000, bytes_read=48_000_000, rows_written=0)
    progress(EngineStarted(work=lambda: work))
    assert progress.running().endswith(" | Spark: 12 of 40 tasks, 1.2M rows, 48MB read")
    progress(Finished(result=of("success"), index=2, total=3, left=1))
    assert progress.running() == ""


def test_a_refresh_goes_through_its_stages(tmp_path: Path) -> None:
    made = shop(tmp_path, FILES)
    events: list[Event] = []
    made.run(on_event=events.append)
    assert [event.stage for event in events if isinstance(event, Entered)] == ["planning", "writing", "testing", "publishing"]
    (begun,) = (event for event in events if isinstance(event, Started) and event.node == ID)
    assert begun.expected_seconds is None or begun.expected_seconds > 0


@pytest.mark.parametrize(
    ("seconds", "text"), [(19.674, "19.67s"), (124.2, "2m 4s"), (3600.0, "1h 0m 0s"), (3599.9, "59m 59s"), (7384.0, "2h 3m 4s")]
)
def test_the_summary_fits_too(tmp_path: Path, seconds: float, text: str) -> None:
    tests = tuple(TestResult(id=f"test.shop.{i}", name="t", status="pass", failures=0, message="", sql="") for i in range(1280))
    graph = compiled(tmp_path, FILES)
    results = (of("success"), NodeResult(node="seed.shop.s", status="success", message=""))
    lines = [unstyle(line) for line in summary(graph, RunResult(results=results, tests=tests, seconds=seconds)).splitlines()]
    assert max(map(len, lines)) <= 80
    assert f"in {text}." in " ".join(line[10:] for line in lines)


def test_what_was_saved(tmp_path: Path) -> None:
    cost = {"full_seconds": 4.0, "full_bytes": 3_000_000, "expected_seconds": 0.75, "expected_bytes": 1_000_000}
    full = {"full_seconds": 9.0, "full_bytes": 7, "expected_seconds": 9.0, "expected_bytes": 7}
    unknown = {"full_seconds": None, "full_bytes": None, "expected_seconds": None, "expected_bytes": None}
    results = tuple(of("success", details=details) for details in (cost, full, unknown, {}))
    text = "Incremental refreshes saved about 3.2s of processor time, and 2.0 MB of reads and writes."
    assert saved(RunResult(results=results, seconds=1.0)) == text
    assert saved(RunResult(results=results[1:], seconds=1.0)) == ""
    lines = summary(compiled(tmp_path, FILES), RunResult(results=results, seconds=1.0)).splitlines()
    assert max(len(unstyle(line)) for line in lines) <= 80
    assert text in " ".join(unstyle(line)[10:] for line in lines)


def test_a_test_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    test = TestResult(id="test.shop.a", name="a", status="warn", failures=2, message="2 rows violate its rule", sql="", seconds=0.5)
    lines, _ = said(compiled(tmp_path, FILES), results_of_a_run.Tested(result=test, index=1, total=1), capsys=capsys)
    assert lines[0].startswith("1 of 1 WARN 2 a ...")
