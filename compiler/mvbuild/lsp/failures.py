"""an error in the server -> one sentence, for the client and for stderr: tracebacks are not for users."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import Any

from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

_REFUSED = -32803
"""RequestFailed of the protocol: the answer has the reason, and nothing is wrong with the server."""
Failed = Callable[[Exception], str]
"""The message for the user about an unexpected error."""


def refusal(reason: str) -> JsonRpcException:
    """The answer to a request that cannot be done."""
    return JsonRpcException(reason, _REFUSED)


class Server(LanguageServer):
    """A server whose answers have no traceback, unlike those of pygls."""

    def __init__(self, name: str, version: str, failed: Failed) -> None:
        super().__init__(name, version)
        self._failed = failed

    def feature(self, feature_name: str, options: Any = None) -> Callable[[Any], Any]:
        register = super().feature(feature_name, options)
        return lambda handler: register(self._answering(handler))

    def _answering(self, handler: Callable[[Any], Any]) -> Callable[[Any], Any]:
        @wraps(handler)
        def answer(params: Any) -> Any:
            try:
                return handler(params)
            except JsonRpcException:
                raise
            except Exception as exc:
                raise JsonRpcException(self._failed(exc)) from exc

        return answer


def log_sentences() -> None:
    """Log the warnings of pygls to stderr without tracebacks, and without refusals."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Sentences())
    handler.addFilter(lambda record: not _is_refusal(record))
    logger = logging.getLogger("pygls")
    logger.addHandler(handler)
    logger.propagate = False


def _is_refusal(record: logging.LogRecord) -> bool:
    exc = record.exc_info[1] if record.exc_info else None
    return isinstance(exc, JsonRpcException) and exc.code == _REFUSED


class _Sentences(logging.Formatter):
    def formatException(  # noqa: N802 - the name is that of the standard library
        self, ei: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
    ) -> str:
        return str(ei[1])
