"""Events of a run -> lines in dbt's style: results on stdout, progress on stderr."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import nullcontext
from threading import Lock
from typing import TYPE_CHECKING

import click

from mvbuild.cli.live import LiveLine
from mvbuild.cli.options import is_terminal
from mvbuild.cli.output import table
from mvbuild.graph.model import Graph, ModelNode, NodeId, SeedNode
from mvbuild.refresh.result import Finished, Message, NodeResult, RunResult, Started, Tested, TestResult, count_rows
from mvbuild.verify.model import Checked, Verified

if TYPE_CHECKING:
    from mvbuild.api.sessions import Event

_WIDTH = 90
_VERDICTS = {"same": "PASS", "different": "FAIL", "unverifiable": "SKIP", "error": "ERROR"}
_COLORS = {"OK": "green", "REUSED": "cyan", "ERROR": "red", "SKIP": "yellow", "PASS": "green", "FAIL": "red", "WARN": "yellow"}


class Progress:
    """Prints a line per finished node. On a terminal, a live line below shows what is running, for how long, and how much remains."""

    def __init__(self, graph: Graph, *, quiet: bool = False) -> None:
        self._graph = graph
        self._quiet = quiet
        context = click.get_current_context(silent=True)
        self._color = context.color if context else None  # the reporting threads have no context
        self._lock = Lock()
        self._running: dict[str, float] = {}
        self._said = ""
        self._left = 0
        self._live = LiveLine(self.running) if is_terminal() and not quiet else None

    def __enter__(self) -> Progress:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def __call__(self, event: Event) -> None:
        with self._lock, self._live or nullcontext():
            if isinstance(event, Message):
                self._end_said()
                self._said = event.message
                self._begin(event.message, event.message)
            elif isinstance(event, Started):
                self._end_said()
                line = _dots(f"{event.index} of {event.total} START {describe(self._graph, event.node)}", "[RUN]")
                self._begin(self._graph.nodes[event.node].identifier.dotted, line)
            elif isinstance(event, Tested):
                self._end_said()
                if not self._quiet or event.result.status != "pass":
                    click.echo(_test_line(event.result, event.index, event.total), color=self._color)
                    if event.result.details:
                        click.echo(f"\n{event.result.details}\n")
            elif isinstance(event, Checked):
                self._end_said()
                self._checked(event)
            elif isinstance(event, Finished):
                self._running.pop(self._graph.nodes[event.result.node].identifier.dotted, None)
                self._left = event.left
                self._result(event)

    def _end_said(self) -> None:
        self._running.pop(self._said, None)

    def running(self) -> str:
        """The text of the live line."""
        now = time.monotonic()
        names = [f"{name} {now - began:.0f}s" for name, began in list(self._running.items())]
        left = f"  ({self._left} left)" if self._left else ""
        return f"running {', '.join(names)}{left}" if names else ""

    def _begin(self, name: str, line: str) -> None:
        """Something starts running: the live line shows it, or a line of its own if there is no terminal."""
        self._running[name] = time.monotonic()
        if not self._live and not self._quiet:
            click.echo(_stamped(line), err=True)

    def _checked(self, event: Checked) -> None:
        one = event.result
        self._running.pop(self._graph.nodes[one.node].identifier.dotted, None)
        self._left = event.total - event.index
        word = _VERDICTS[one.status]
        line = _dots(f"{event.index} of {event.total} {word} {describe(self._graph, one.node)}", f"[{word} in {one.seconds:.2f}s]")
        if not self._quiet or word in ("FAIL", "ERROR"):
            click.echo(_stamped(line.replace(word, click.style(word, fg=_COLORS[word]), 1)), color=self._color)
            for finding in _findings(one):
                click.echo(_stamped(f"  {finding}"))
        if one.rows:
            rows = ((f"only in {d.only_in}", d.copies, *d.row) for d in one.rows)
            click.echo(table(("difference", "copies", *one.columns), rows))

    def _result(self, event: Finished) -> None:
        word, what, end = _outcome(event.result)
        what = f"{what} {describe(self._graph, event.result.node)}{_more(event.result)}"
        line = _dots(f"{event.index} of {event.total} {word} {what}", f"[{end}]")
        if not self._quiet or event.result.status == "error":
            click.echo(_stamped(line.replace(word, click.style(word, fg=_COLORS[word]), 1)), color=self._color)
        for test in event.result.tests:
            if test.status != "pass":
                count = "" if test.failures is None else f" {test.failures}"
                click.echo(_stamped(f"  {test.status.upper()}{count} {test.name}: {test.message}"))


def _findings(one: Verified) -> list[str]:
    """What is reported about one MV in addition to the result."""
    extra, missing = f"{count_rows(one.extra)} only in its storage", f"{count_rows(one.missing)} only in its query"
    counts = [t for n, t in ((one.extra, extra), (one.missing, missing)) if n]
    shown = sum(d.copies for d in one.rows)
    rest = f"; {shown:,} of them:" if one.rows and shown < one.extra + one.missing else ":" if one.rows else ""
    reason = [one.reason.message] if one.reason else []
    return [*(note.message for note in one.notes), *reason, *([f"{', '.join(counts)}{rest}"] if counts else [])]


def describe(graph: Graph, id_: NodeId) -> str:
    """`materialized view mart.revenue_daily`."""
    return f"{_kind(graph, id_)} {graph.nodes[id_].identifier.dotted}"


def _kind(graph: Graph, id_: NodeId) -> str:
    node = graph.nodes[id_]
    if isinstance(node, SeedNode):
        return "seed"
    return "view" if isinstance(node, ModelNode) and node.storage is None else "materialized view"


def summary(graph: Graph, result: RunResult) -> str:
    """The last lines of a run."""
    kinds = Counter(_kind(graph, r.node) for r in result.results)
    units = sum(test.id.startswith("unit_test.") for test in result.all_tests)
    kinds |= {"data test": len(result.all_tests) - units, "unit test": units}
    kinds = +kinds
    parts = [f"{n} {kind}{'s' * (n != 1)}" for kind, n in sorted(kinds.items())] or ["nothing"]
    hours, minutes = int(result.seconds // 3600), int(result.seconds % 3600 // 60)
    took = f"{hours} hours {minutes} minutes and {result.seconds % 60:.2f} seconds ({result.seconds:.2f}s)"
    head = f"Finished running {', '.join(parts)} in {took}."
    if not result.ok:
        verdict = click.style("Completed with errors", fg="red")
    elif result.results or result.all_tests:
        verdict = click.style("Completed successfully", fg="green")
    else:
        verdict = click.style("Nothing was done: nothing was selected", fg="yellow")
    return "\n".join(_stamped(line) for line in ("", head, "", verdict, "", _done(result)))


def _test_line(test: TestResult, index: int, total: int) -> str:
    """The line of one data test of `mvbuild test`."""
    word = {"pass": "PASS", "warn": "WARN", "skipped": "SKIP"}.get(test.status, "FAIL" if test.failures else "ERROR")
    count = f" {test.failures}" if test.failures else ""
    why = f": {test.message}" if test.status in ("skipped", "error") else ""
    line = _dots(f"{index} of {total} {word}{count} {test.name}{why}", f"[{word}{count} in {test.seconds:.2f}s]")
    return _stamped(line.replace(word, click.style(word, fg=_COLORS[word]), 1))


def _done(result: RunResult) -> str:
    statuses = Counter(r.status for r in result.results)
    tests = Counter(t.status for t in result.all_tests)
    numbers = {
        "PASS": statuses["success"] + tests["pass"],
        "WARN": tests["warn"],
        "ERROR": statuses["error"] + tests["fail"] + tests["error"],
        "SKIP": statuses["skipped"] + tests["skipped"],
        "NO-OP": 0,
        "REUSED": statuses["reused"],
    }
    return "Done. " + " ".join(f"{k}={v}" for k, v in numbers.items()) + f" TOTAL={sum(numbers.values())}"


def _outcome(result: NodeResult) -> tuple[str, str, str]:
    took = f" in {result.seconds:.2f}s"
    if result.status == "success":
        verb = "loaded" if result.node.startswith("seed.") else "refreshed" if result.details else "created"
        return "OK", verb, f"OK{took}"
    if result.status == "reused":
        return "REUSED", "fresh", "REUSED"
    if result.status == "skipped":
        return "SKIP", "relation", "SKIP"
    return "ERROR", "refreshing", f"ERROR{took}"


def _more(result: NodeResult) -> str:
    return f" ({result.message})" if result.message and result.status != "error" else ""


def _dots(text: str, end: str) -> str:
    return f"{text} {'.' * max(3, _WIDTH - len(text) - len(end))} {end}"


def _stamped(line: str) -> str:
    return f"{time.strftime('%H:%M:%S')}  {line}"
