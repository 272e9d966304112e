"""Events of a run -> lines in dbt's style: results on stdout, progress on stderr."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from textwrap import wrap
from threading import Lock
from typing import TYPE_CHECKING

import click

from mvbuild.cli.live import LiveLine
from mvbuild.cli.modes import is_json, is_quiet, is_terminal
from mvbuild.cli.output import colored, table
from mvbuild.cli.totals import done, moved, saved
from mvbuild.dataclass import dataclass
from mvbuild.diagnostics.render import to_text
from mvbuild.freshness.model import state_of
from mvbuild.graph.model import Graph, ModelNode, NodeId, SeedNode
from mvbuild.refresh.result import EngineStarted, Entered, Finished, Message, NodeResult, RunResult, Started, Tested, TestResult, count_rows

if TYPE_CHECKING:
    from mvbuild.api.sessions import Event
    from mvbuild.cli.json_log import JsonLog
    from mvbuild.ports.engine import Work
    from mvbuild.verify.model import Checked, Verification, Verified

_WIDTH = 80
_STAMP = len("00:00:00  ")
_VERDICTS = {"same": "PASS", "different": "FAIL", "unverifiable": "SKIP", "error": "ERROR"}
_COLORS = {"OK": "green", "REUSED": "cyan", "ERROR": "red", "SKIP": "yellow", "PASS": "green", "FAIL": "red", "WARN": "yellow"}


class Progress:
    """Prints a line per finished node. On a terminal, a live line below shows what is running, for how long, and how much remains."""

    def __init__(self, graph: Graph, *, quiet: bool = False, err: bool = False, together: bool = False) -> None:
        """`err`: stdout is for other data, so what begins is printed to stderr. `together`: see `progress_of`."""
        self._graph = graph
        self._quiet = quiet
        self._together = together
        self._err = err
        context = click.get_current_context(silent=True)
        self._color = context.color if context else None  # the reporting threads have no context
        self._is_colored = sys.stdout.isatty() if self._color is None else self._color
        self._lock = Lock()
        self._running: dict[str, _Running] = {}
        self._work: Callable[[], Work | None] = lambda: None
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
                self._running[event.message] = _Running(time.monotonic())
                if not self._live and not self._quiet:
                    click.echo(_stamped(event.message), err=True)
            elif isinstance(event, Started):
                self._end_said()
                name = self._graph.nodes[event.node].identifier.dotted
                self._running[name] = _Running(time.monotonic(), expected=event.expected_seconds)
                if not self._live and not self._quiet:
                    expected = f" ~{_seconds(event.expected_seconds)}" if event.expected_seconds else ""
                    self._print(_lines(f"{event.index} of {event.total} START {name}", "", f"RUN{expected}"), err=self._err)
            elif isinstance(event, Entered):
                running = self._running.get(self._graph.nodes[event.node].identifier.dotted)
                if running:
                    running.stage = event.stage
            elif isinstance(event, EngineStarted):
                self._end_said()
                self._work = event.work
            elif isinstance(event, Tested):
                self._end_said()
                if not self._quiet or event.result.status != "pass":
                    self._print(*_test_lines(event.result, event.index, event.total))
                    if event.result.details:
                        click.echo(f"\n{event.result.details}\n")
            elif isinstance(event, Finished):
                self._running.pop(self._graph.nodes[event.result.node].identifier.dotted, None)
                self._left = event.left
                self._result(event)
            else:
                self._end_said()
                self._checked(event)

    def renamed(self, result: RunResult) -> None:
        """What the run renamed and dropped."""
        for line in moved(result):
            click.echo(line)

    def completed(self, result: RunResult) -> None:
        """The end of the command."""
        if not self._quiet:
            click.echo(summary(self._graph, result))

    def verified(self, found: Verification, total: str) -> None:  # noqa: ARG002
        """The end of `verify`. `total`: its last lines."""
        click.echo(total)

    def _end_said(self) -> None:
        self._running.pop(self._said, None)

    def running(self) -> str:
        """The text of the live line: what runs, in which stage, for how long and how long it may take, and what Spark does."""
        now = time.monotonic()
        names = [running.text(name, now) for name, running in list(self._running.items())]
        if not names:
            return ""
        left = f"{self._left} left | " if self._left else ""
        return f"{left}{', '.join(names)}{_work_text(self._work())}"

    def _print(self, lines: Sequence[str], word: str = "", *, err: bool = False) -> None:
        """`word`: what is colored in the first line."""
        text = "\n".join(lines)
        if word and (err or self._is_colored):
            text = text.replace(word, click.style(word, fg=_COLORS[word]), 1)
        # Whether stdout is a terminal is not asked again for each of thousands of lines.
        click.echo(text, err=err, color=self._color if err else True)

    def _checked(self, event: Checked) -> None:
        one = event.result
        self._running.pop(self._graph.nodes[one.node].identifier.dotted, None)
        self._left = event.total - event.index
        word = _VERDICTS[one.status]
        head = f"{event.index} of {event.total} {word} {describe(self._graph, one.node)}"
        if not self._quiet or word in ("FAIL", "ERROR"):
            self._print(_lines(head, "", f"{one.seconds:.2f}s"), word)
            for finding in _findings(one):
                click.echo(_stamped(f"  {finding}"))
        if one.rows:
            rows = ((f"only in {d.only_in}", d.copies, *d.row) for d in one.rows)
            click.echo(table(("difference", "copies", *one.columns), rows))

    def _result(self, event: Finished) -> None:
        word, verb, end = _outcome(event.result)
        if verb and self._together:
            verb = "built"  # it is published at the end, or not at all
        what = f"{word} {verb}" if verb else word
        name = self._graph.nodes[event.result.node].identifier.dotted
        if not self._quiet or event.result.status == "error":
            self._print(_lines(f"{event.index} of {event.total} {what} {name}", _more(event.result), end), word)
        for test in event.result.tests:
            if test.status != "pass":
                count = "" if test.failures is None else f" {test.failures}"
                click.echo(_stamped(f"  {test.status.upper()}{count} {test.name}: {test.message}"))
        # Errors in the SQL of models were reported when they were compiled.
        why = [found for found in event.result.diagnostics if found not in self._graph.problems]
        if why and event.result.status == "error":
            click.echo(f"\n{colored(to_text(why))}\n", err=True, color=self._color)


def progress_of(graph: Graph, *, together: bool = False) -> Progress | JsonLog:
    """Text or JSON, as the command asks for. `together`: everything is published in one commit at the end."""
    if is_json():
        from mvbuild.cli.json_log import JsonLog

        return JsonLog(graph, together=together)
    return Progress(graph, quiet=is_quiet(), together=together)


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
    head = wrap(f"Finished running {', '.join(parts)} in {_duration(result.seconds)}.", _WIDTH - _STAMP)
    head += wrap(saved(result), _WIDTH - _STAMP)
    if not result.ok:
        verdict = click.style("Completed with errors", fg="red")
    elif result.results or result.all_tests or result.renamed or result.dropped:
        verdict = click.style("Completed successfully", fg="green")
    else:
        verdict = click.style("Nothing was done: nothing was selected", fg="yellow")
    return "\n".join(_stamped(line) for line in ("", *head, "", verdict, "", done(result)))


def _duration(seconds: float) -> str:
    """`19.67s`, `2m 4s`, `1h 2m 4s`."""
    if seconds < 60:
        return f"{seconds:.2f}s"
    minutes, hours = int(seconds // 60) % 60, int(seconds // 3600)
    return f"{hours}h " * bool(hours) + f"{minutes}m {int(seconds % 60)}s"


def _test_lines(test: TestResult, index: int, total: int) -> tuple[list[str], str]:
    """The lines of one data test of `mvbuild test`, and its verdict in them."""
    word = {"pass": "PASS", "warn": "WARN", "skipped": "SKIP"}.get(test.status, "FAIL" if test.failures else "ERROR")
    count = f" {test.failures}" if test.failures else ""
    why = f" ({test.message})" if test.status in ("skipped", "error") else ""
    return _lines(f"{index} of {total} {word}{count} {test.name}", why, f"{test.seconds:.2f}s"), word


def _outcome(result: NodeResult) -> tuple[str, str, str]:
    """The word of a node's line, what was done, and how long it took."""
    took = f"{result.seconds:.2f}s"
    if result.status == "success":
        return "OK", "loaded" if result.node.startswith("seed.") else "refreshed" if result.details else "created", took
    if result.status == "reused":
        # What took some work was not fresh before, and is now.
        return "REUSED", "", took if result.message else state_of(result.reasons)
    if result.status == "skipped":
        return "SKIP", "", "skipped"
    return "ERROR", "", took


def _more(result: NodeResult) -> str:
    message = result.message
    if result.status == "reused" and not message:
        # What it reads is not fresh, and this run does not change that.
        message = next((reason.message for reason in result.reasons if reason.effect != "fresh"), "")
    return f" ({message})" if message and result.status != "error" else ""


@dataclass
class _Running:
    """Something that runs."""

    began: float
    expected: float | None = None
    stage: str = ""

    def text(self, name: str, now: float) -> str:
        """`mart.daily writing 3s of ~8s`."""
        of = f" of ~{_seconds(self.expected)}" if self.expected else ""
        return " ".join(part for part in (name, self.stage, f"{now - self.began:.0f}s{of}") if part)


def _seconds(number: float) -> str:
    return f"{number:.0f}s" if number >= 1 else f"{number:.1f}s"


def _work_text(work: Work | None) -> str:
    """` | Spark: 12 of 40 tasks, 1.2M rows, 48 MB read`."""
    if work is None:
        return ""
    read = [f"{_short(work.rows_read)} rows"] * bool(work.rows_read) + [f"{_short(work.bytes_read)}B read"] * bool(work.bytes_read)
    written = [f"{_short(work.rows_written)} rows written"] * bool(work.rows_written)
    return " | " + ", ".join((f"Spark: {work.tasks_done} of {work.tasks} tasks", *read, *written))


def _short(number: int) -> str:
    """`950`, `1.2k`, `48M`."""
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if number >= size:
            return f"{number / size:.1f}".removesuffix(".0") + unit if number < 10 * size else f"{number // size}{unit}"
    return str(number)


def _lines(head: str, more: str, end: str) -> list[str]:
    """`head more ... [end]` with the time, in 80 columns if the names allow it: what does not fit follows on a line of its own."""
    room = _WIDTH - _STAMP - len(f" ... [{end}]")
    fits = len(head) + len(more) <= room
    text = head + more if fits else head
    dots = "." * max(3, room + 3 - len(text))
    return [
        _stamped(f"{text} {dots} [{end}]"),
        *([f"{' ' * _STAMP}{more.strip().removeprefix('(').removesuffix(')')}"] if more and not fits else []),
    ]


def _stamped(line: str) -> str:
    return f"{time.strftime('%H:%M:%S')}  {line}"
