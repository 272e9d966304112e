"""Record -> a session on the server that it describes, if that answers in time."""

from __future__ import annotations

import warnings
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from mvbuild.adapters.spark.warm.folder import Record

_RETRIES = 3
"""A second in all. A server on this machine that is lost does not come back, and PySpark alone would try for ten minutes."""


def import_client() -> None:
    """Import what a session needs, which takes half a second."""
    import pyspark.sql.connect.session  # noqa: F401


def open_session(record: Record, seconds: float) -> SparkSession | None:
    """A session of its own. None if the server does not answer within `seconds`, or refuses the token."""
    import grpc
    from pyspark.sql.connect.client.core import DefaultChannelBuilder
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession

    class Loopback(DefaultChannelBuilder):
        """Its token is only sent to this machine, without TLS."""

        def toChannel(self) -> grpc.Channel:  # noqa: N802
            token = grpc.access_token_call_credentials(record.token)
            credentials = grpc.composite_channel_credentials(grpc.local_channel_credentials(), token)
            return self._secure_channel(f"127.0.0.1:{record.port}", credentials)

    # If the server is lost, `errors` says so in one sentence.
    warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]")
    session: Any = SparkSession(Loopback(f"sc://127.0.0.1:{record.port}"))
    session.client.set_retry_policies([DefaultPolicy(max_retries=_RETRIES)])
    if _answers(session, seconds):
        return session  # type: ignore[no-any-return]
    with suppress(Exception):
        session.client.close()
    return None


def _answers(session: Any, seconds: float) -> bool:
    """In a thread, because PySpark has no deadline: a server that hangs accepts connections."""
    versions: list[str] = []

    def ask() -> None:
        with suppress(Exception):
            versions.append(session.version)

    thread = Thread(target=ask, daemon=True)
    thread.start()
    thread.join(seconds)
    return bool(versions)
