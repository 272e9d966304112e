"""catalog properties -> connections to the Hive metastore, through PyIceberg's Thrift client and its settings."""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from mvbuild.adapters.iceberg.private_pyiceberg import hive_client
from mvbuild.dataclass import dataclass
from mvbuild.ports.catalog import CatalogError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_IDLE_SECONDS = 5.0
"""A metastore needs 20 ms for a new connection, so connections are reused, but not after so long that they may have been lost."""


@dataclass(frozen=True, slots=True)
class _Connection:
    transport: Any
    client: Any
    used: float = 0.0


class Connections:
    """Threads cannot share a connection: each one has its own until the end of a block."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties
        self._idle: list[_Connection] = []

    @contextmanager
    def open(self) -> Iterator[Any]:
        """Errors of the metastore leave the block as CatalogError, because the exceptions of its interface cannot pass through
        `contextlib`."""
        try:
            from thrift.Thrift import TException
            from thrift.transport.TTransport import TTransportException
        except ModuleNotFoundError:
            raise CatalogError("A Hive metastore needs the Python package 'thrift': pip install 'mvbuild[hive]'.") from None
        found = self._taken() or self._made()
        try:
            yield found.client
        except BaseException as error:
            _close(found)
            if not isinstance(error, TException) or isinstance(error, TTransportException):
                raise
            raise CatalogError(f"The Hive metastore rejected the request: {getattr(error, 'message', None) or error!r}") from None
        self._idle.append(_Connection(found.transport, found.client, time.monotonic()))

    def close(self) -> None:
        """Close idle connections."""
        while self._idle:
            _close(self._idle.pop())

    def _taken(self) -> _Connection | None:
        with suppress(IndexError):  # another thread takes the last one
            while self._idle:
                found = self._idle.pop()
                if time.monotonic() - found.used < _IDLE_SECONDS:
                    return found
                _close(found)
        return None

    def _made(self) -> _Connection:
        """Connect to the first metastore that answers: `uri` may list several, separated by commas."""
        from thrift.transport.TTransport import TTransportException

        *others, last = [uri.strip() for uri in self._properties["uri"].split(",")]
        for uri in others:
            opened = hive_client({**self._properties, "uri": uri})
            with suppress(TTransportException):
                return _Connection(opened, opened.__enter__())
        opened = hive_client({**self._properties, "uri": last})
        return _Connection(opened, opened.__enter__())


def _close(connection: _Connection) -> None:
    connection.transport.__exit__(None, None, None)
