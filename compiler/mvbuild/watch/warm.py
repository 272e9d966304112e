"""a function that starts an engine -> one engine that several batches share, stopped when it has been idle."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import field
from threading import Lock
from typing import Any, cast

from mvbuild.dataclass import dataclass
from mvbuild.ports.clock import Clock
from mvbuild.ports.engine import Engine


@dataclass
class WarmEngine:
    """Safe to use from several threads."""

    clock: Clock
    idle_seconds: float
    _engine: Engine | None = None
    _users: int = 0
    _last_used: float = 0.0
    _starting: Lock = field(default_factory=Lock)

    def get(self, start: Callable[[], Engine]) -> Engine:
        """The running engine, or a new one, for one batch; it must be returned with `release`."""
        with self._starting:
            if self._engine is None:
                self._engine = start()
            self._users += 1
            return cast("Engine", _Lent(self._engine))

    def release(self, *, is_lost: bool = False) -> None:
        """A batch has ended. `is_lost`: the engine failed, and the next batch must start another."""
        with self._starting:
            self._users -= 1
            self._last_used = self.clock.monotonic()
            if is_lost:
                self._close()

    def stop_if_idle(self) -> bool:
        """Give the machine back what the engine holds, if it was not used for long. Returns whether it was stopped."""
        with self._starting:
            is_idle = self._users == 0 and self.clock.monotonic() - self._last_used >= self.idle_seconds
            if self._engine is None or not is_idle:
                return False
            self._close()
            return True

    def stop(self) -> None:
        """Stop the engine even if it is in use: running queries fail. Does not wait for an engine that is starting."""
        engine, self._engine = self._engine, None
        if engine is not None:
            with suppress(Exception):
                engine.close()

    @property
    def is_running(self) -> bool:
        return self._engine is not None

    def _close(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            # A lost engine may fail to close, which must not hide why it was lost.
            with suppress(Exception):
                engine.close()


class _Lent:
    """The engine for one batch, which must not stop it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def close(self) -> None:
        """The engine continues for other batches."""
