"""steps -> all made, or those that were made undone: for catalogs that change one name at a time."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mvbuild.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoableStep:
    """One change of one name."""

    do: Callable[[], Any]
    """Returns False if another process was faster."""
    undo: Callable[[], Any] = lambda: None
    order: int = 0
    """Names are added first and removed last, so that a reader in the meantime, or after a crash, finds every name."""


def in_turn(steps: Sequence[UndoableStep]) -> bool:
    """Make the steps in order. Returns False, and changes nothing, if a step was not as expected."""
    done: list[UndoableStep] = []
    try:
        for step in sorted(steps, key=lambda step: step.order):
            if step.do() is False:
                _undone(done)
                return False
            done.append(step)
    except Exception:
        _undone(done)
        raise
    return True


def _undone(done: Sequence[UndoableStep]) -> None:
    for step in reversed(done):
        # The original failure is reported; a failure to undo would only hide it.
        with suppress(Exception):
            step.undo()
