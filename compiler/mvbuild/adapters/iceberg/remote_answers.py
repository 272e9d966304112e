"""a request that changes something + a look at the current state -> its outcome, even if the answer was lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from mvbuild.adapters.iceberg.retries import Retries
from mvbuild.ports.catalog import AlreadyExists, CatalogError, CommitConflict

_TRIES = Retries(min_wait_ms=50, max_wait_ms=1000)
"""A server may be restarting, or busy with other commits to the same table."""

# By name along the class hierarchy, as in `failures`.
_LOST = frozenset(
    (
        *("ConnectionError", "Timeout", "TimeoutError", "ChunkedEncodingError", "ReadTimeoutError", "TTransportException"),
        *("CommitStateUnknownException", "ServerError", "ServiceUnavailableError"),
    )
)
_Answer = TypeVar("_Answer")


class Outdated(Exception):
    """The request was refused because something had changed after it was read. Nothing was changed."""


class LostAnswer(Exception):
    """The request may have been executed, may still be executed, or not."""


def is_lost(error: BaseException) -> bool:
    return any(kind.__name__ in _LOST for kind in type(error).__mro__)


def settled(what: str, ask: Callable[[], _Answer], made: Callable[[], _Answer | None]) -> _Answer:
    """The answer of `ask`, which reads, checks and sends. It is called again if it was too late, or if `made` finds no trace of it.

    `made` looks up what a request without an answer has done. It is called before the request is repeated or reported, because the server
    may still have been working on it; in that case the next request is the one that comes too late.
    """
    lost: LostAnswer | None = None
    for _ in _TRIES.attempts():
        late: CatalogError | None = None
        try:
            return ask()
        except LostAnswer as error:
            lost = error
        except Outdated:
            pass
        except (CommitConflict, AlreadyExists) as error:
            late = error
        except Exception as error:
            if lost is None or not is_lost(error):
                raise
            continue
        if lost is not None:
            try:
                found = made()
            except Exception as error:
                if not is_lost(error):
                    raise
                continue
            if found is not None:
                return found
        if late is not None:
            raise late
    if lost is not None:
        raise CatalogError(f"The outcome of {what} is unknown: the server's response was lost ({lost}).", unreachable=True)
    raise CommitConflict(f"{what[0].upper()}{what[1:]} lost to other processes {_TRIES.number + 1} times in a row.")
