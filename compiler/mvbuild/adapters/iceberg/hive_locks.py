"""names -> the Hive metastore's exclusive locks on them, held until the end of a block."""

from __future__ import annotations

import getpass
import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mvbuild.ports.catalog import CatalogError, CommitConflict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from mvbuild.adapters.iceberg.pointers import Key

_PATIENCE = 180.0
_LONGEST_HOLD = 60.0
"""A metastore gives a lock to another process if its holder was silent for `hive.txn.timeout`, five minutes by default."""
_FIRST_PAUSE, _LAST_PAUSE = 0.01, 1.0


class Locks:
    """Lock all of some names or none; an empty list needs no locks. (Exceptions of the metastore's interface cannot pass through a
    generator of `contextlib`.)"""

    def __init__(self, client: Any, keys: Sequence[Key], *, another: Callable[[], AbstractContextManager[Any]]) -> None:
        """`another` opens a second connection, to release the locks if `client` was lost."""
        self._client = client
        self._keys = sorted(set(keys))
        self._another = another
        self._id: int | None = None
        self._since = 0.0

    def __enter__(self) -> Locks:
        if self._keys:
            self._id = _got(self._client, self._keys)
            self._since = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        if self._id is not None:
            _given_back(self._client, self._id, self._another)

    def require(self) -> None:
        """Raise CommitConflict if the locks may have expired, because this process was suspended for too long."""
        if self._id is not None and time.monotonic() - self._since > _LONGEST_HOLD:
            raise CommitConflict("The lock in the Hive metastore was held for too long.")


def _got(client: Any, keys: Sequence[Key]) -> int:
    from hive_metastore.ttypes import CheckLockRequest, LockComponent, LockLevel, LockRequest, LockState, LockType, UnlockRequest

    parts = [LockComponent(type=LockType.EXCLUSIVE, level=LockLevel.TABLE, dbname=namespace, tablename=name) for namespace, name in keys]
    answer = client.lock(LockRequest(component=parts, user=getpass.getuser(), hostname=socket.gethostname(), agentInfo="mvbuild"))
    end, pause = time.monotonic() + _PATIENCE, _FIRST_PAUSE
    try:
        while answer.state == LockState.WAITING and time.monotonic() < end:
            time.sleep(pause)
            pause = min(pause * 1.5, _LAST_PAUSE)
            answer = client.check_lock(CheckLockRequest(lockid=answer.lockid))
        if answer.state == LockState.ACQUIRED:
            return int(answer.lockid)
    except BaseException:
        with suppress(Exception):
            client.unlock(UnlockRequest(lockid=answer.lockid))
        raise
    with suppress(Exception):
        client.unlock(UnlockRequest(lockid=answer.lockid))
    names = ", ".join(".".join(key) for key in keys)
    raise CatalogError(f"The Hive metastore did not grant the lock of {names} within {_PATIENCE:.0f} seconds: another process has it.")


def _given_back(client: Any, lock_id: int, another: Callable[[], AbstractContextManager[Any]]) -> None:
    """At this point the swap is made or not. A lock that could not be released expires."""
    from hive_metastore.ttypes import UnlockRequest

    try:
        client.unlock(UnlockRequest(lockid=lock_id))
    except Exception:  # noqa: BLE001  a connection that broke meanwhile
        with suppress(Exception), another() as second:
            second.unlock(UnlockRequest(lockid=lock_id))
