"""a plan in the making -> the plan, and the engine that it needs, which starts meanwhile: each of the two takes seconds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Protocol

from mvbuild.plan.model import OnWork, Plan
from mvbuild.ports.engine import Engine

_STACK = 16 * 1024 * 1024
"""Bytes. On some systems, a thread has much less than the main one, too little for deeply nested SQL."""


class Make(Protocol):
    """Makes a plan; `on_work`: see `build_plan`."""

    def __call__(self, *, on_work: OnWork) -> Plan: ...


def planned_beside(make: Make, start: Callable[[Plan], Engine]) -> tuple[Plan, Engine | None]:
    """The plan of `make`, and the engine of `start`, which is called with the steps that are expected, once it is clear that they need it;
    None if that is never clear before the plan is made.

    The plan is made in another thread, so that an interrupt reaches the start of the engine, which must leave no JVM behind.
    """
    needed: Future[Plan] = Future()
    made: Future[Plan] = Future()

    def work() -> None:
        try:
            made.set_result(make(on_work=needed.set_result))
        except BaseException as exc:  # noqa: BLE001  it is raised where the plan is needed
            made.set_exception(exc)

    before = threading.stack_size(_STACK)
    try:
        # Planning only reads: the end of the process need not wait for it.
        threading.Thread(target=work, name="plan", daemon=True).start()
    finally:
        threading.stack_size(before)
    wait((needed, made), return_when=FIRST_COMPLETED)
    if not needed.done():
        return made.result(), None
    engine = start(needed.result())
    try:
        return made.result(), engine
    except BaseException:
        engine.close()
        raise
