"""work of a session -> the same work, with OpenLineage events of its progress if they are configured."""

from __future__ import annotations

import os
from collections.abc import Callable

from mvbuild.api.sessions import Event, OnEvent
from mvbuild.openlineage.configured import is_configured, is_installed
from mvbuild.refresh.result import Message, RunResult
from mvbuild.refresh.session import RunSession


def with_lineage(session: RunSession, on_event: OnEvent, work: Callable[[OnEvent], RunResult]) -> RunResult:
    """Do the work, and pass its progress to `on_event`. What becomes of the events changes nothing about it."""
    if not is_configured(os.environ):
        return work(on_event)
    if not is_installed():
        on_event(Message(message="OpenLineage is configured but not installed: pip install 'mvbuild[openlineage]'"))
        return work(on_event)
    from mvbuild.openlineage.emitter import Emitter

    emitter = Emitter(lambda: session.world, session.clock, os.environ, session.run.started_ms)

    def both(event: Event) -> None:
        on_event(event)
        emitter(event)

    try:
        result = work(both)
    except BaseException as exc:
        emitter.fail(str(exc) or type(exc).__name__)
        raise
    emitter.end(result)
    return result
