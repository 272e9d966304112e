"""an event of a run -> lines in the log of a task."""

from __future__ import annotations

from typing import Any

from mvbuild.api.sessions import Event
from mvbuild.refresh.result import Finished, Message, Started, Tested, TestResult

FAILED = ("fail", "error")
"""The statuses of a test that fail a task."""


def log_event(log: Any, event: Event) -> None:
    """Errors and warnings of nodes and tests have their levels."""
    if isinstance(event, Message):
        log.info(event.message)
    elif isinstance(event, Started):
        log.info("%s of %s START %s", event.index, event.total, event.node)
    elif isinstance(event, Finished):
        one = event.result
        write = log.error if one.status == "error" else log.info
        write("%s of %s %s %s %s", event.index, event.total, one.status.upper(), one.node, one.message)
        for found in one.diagnostics:
            log.error(found.message)
        for test in one.tests:
            _log_test(log, test)
    elif isinstance(event, Tested):
        _log_test(log, event.result)


def _log_test(log: Any, test: TestResult) -> None:
    write = log.error if test.status in FAILED else log.warning if test.status == "warn" else log.info
    write("%s %s %s", test.status.upper(), test.name, test.message)
