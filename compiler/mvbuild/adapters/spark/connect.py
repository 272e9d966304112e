"""address of a Spark Connect server -> a session of mvbuild's own there, or the reason why there is none."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Any

from mvbuild.adapters.spark.any_pyspark import condition_of, retry
from mvbuild.adapters.spark.errors import message_of, said_by_server
from mvbuild.adapters.spark.releases import release_of
from mvbuild.ports.engine import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import SparkSession

_RETRIES = 3
"""The timeout until the server has answered once: PySpark alone would try for ten minutes."""
_FOR_GOOD = ("CANNOT_MODIFY_STATIC_CONFIG", "CANNOT_MODIFY_CONFIG")
_USER = re.compile(r"(?<=://)[^/\s@]+@")


def connect(remote: str, conf: Mapping[str, str], say: Callable[[str], None]) -> SparkSession:
    """Connect. Static settings of the server are left as they are. A session that the caller has in this process is not touched."""
    try:
        from pyspark.sql.connect.session import SparkSession
    except ImportError as exc:
        raise not_installed(exc) from exc
    session: Any = None
    try:
        session = SparkSession(remote)
        retry(session.client, _RETRIES)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the retries: their outcome is reported below
            release_of(session.version)
        retry(session.client, None)
        _set(session, conf, say)
    except EngineError:
        session.client.close()
        raise
    except Exception as exc:  # noqa: BLE001  what it says may hold the token
        if session is not None:
            session.client.close()
        raise EngineError("spark-start", f"Spark at {address(remote)} cannot be reached: {_masked(reason_of(exc), remote)}") from None
    return session  # type: ignore[no-any-return]


def _set(session: Any, conf: Mapping[str, str], say: Callable[[str], None]) -> None:
    from pyspark.errors import PySparkException

    for key, value in conf.items():
        try:
            session.conf.set(key, value)
        except PySparkException as exc:
            if not _is_for_good(exc):
                raise
            if session.conf.get(key, None) != value:
                say(f"{key} is not set: set it where you start the Spark Connect server")


def _is_for_good(exc: Exception) -> bool:
    """Over Spark Connect, Spark 3.5 sends the condition only within the message."""
    return condition_of(exc).startswith(_FOR_GOOD) or f"{exc}".partition("[")[2].startswith(_FOR_GOOD)


def address(remote: str) -> str:
    """The address of a Spark Connect server without parameters, one of which may be a token."""
    return _USER.sub("", remote.partition(";")[0]).rstrip("/")


def _masked(text: str, remote: str) -> str:
    parameters = remote.partition(";")[2].split(";")
    for secret in sorted({part for one in parameters for part in (one, one.partition("=")[2]) if part}, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def not_installed(exc: ImportError) -> EngineError:
    return EngineError("spark-start", f"Spark Connect cannot be used: {exc}", help="Install it: pip install 'pyspark[connect]'.")


def reason_of(exc: Exception) -> str:
    """The message of gRPC, which is in the middle of its text, otherwise the first line."""
    cause: BaseException | None = exc
    while cause is not None:
        details = said_by_server(str(cause))
        if details != str(cause):
            return details
        cause = cause.__cause__ or cause.__context__
    return message_of(str(exc)) or type(exc).__name__
