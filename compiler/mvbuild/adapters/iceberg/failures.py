"""foreign exception -> CatalogError without credentials, which distinguishes a lost connection from a refusal."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from mvbuild.diagnostics.secret_names import SECRET_NAMES
from mvbuild.ports.catalog import CatalogError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SECRET_KEY = re.compile(SECRET_NAMES, re.IGNORECASE)
_USERINFO = re.compile(r"(?<=://)[^/\s@]+@")
_ASSIGNMENT = re.compile(rf"(?i)\b([\w.-]*(?:{SECRET_NAMES})[\w.-]*\s*[=:]\s*)[^\s&;,'\"]+")
_MASK = "***"
_LONG = 8
_REFUSED = re.compile(r"host='([^']+)', port=(\d+)\).*?\[Errno -?\d+\] ([^\")]+)")
"""How urllib3 reports where a connection failed, in the middle of four lines of class names."""

# By name along the class hierarchy, so that comparing classes does not import requests, botocore or thrift.
_UNREACHABLE = frozenset(
    (
        *("OperationalError", "InterfaceError"),  # SQLAlchemy and its drivers, sqlite3
        *("ConnectionError", "Timeout", "TimeoutError", "MaxRetryError", "gaierror", "TTransportException", "EndpointConnectionError"),
        *("UnauthorizedError", "ForbiddenError", "AuthorizationExpiredError", "OAuthError", "ServiceUnavailableError"),
        *("NoCredentialsError", "ClientAuthenticationError"),
    )
)
OWN_BUGS = (AssertionError, NameError)
"""Exceptions that are not of a library."""


class Translator:
    """Knows the secrets in one catalog's properties, and turns exceptions of libraries into CatalogError."""

    def __init__(self, catalog: str, properties: Mapping[str, str]) -> None:
        self._catalog = catalog
        # Longest first, because one secret may be part of another.
        self._secrets = sorted(_secrets(properties), key=len, reverse=True)
        self._is_unencoded = any("@" in one for value in properties.values() for one in _passwords(value))

    def masked(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, _MASK)
        text = _USERINFO.sub(f"{_MASK}@", text)
        return _ASSIGNMENT.sub(rf"\1{_MASK}", text)

    def masked_in_sql(self, text: str) -> str:
        """Mask secrets in a text about a query. Its words are short, and columns may have the names of settings."""
        for secret in self._secrets:
            text = text.replace(secret, _MASK) if len(secret) >= _LONG else text
        return _USERINFO.sub(f"{_MASK}@", text)

    @contextmanager
    def guard(self) -> Iterator[None]:
        """No exception of a library leaves this block, and none that shows a secret."""
        try:
            yield
        except CatalogError as error:
            error.args = tuple(self.masked(str(a)) for a in error.args)
            raise
        except OWN_BUGS:
            raise
        except Exception as error:  # noqa: BLE001  libraries raise what they like, and none of it may leave
            # `from None`: a printed cause would show what the message hides.
            raise self.error(error) from None

    def error(self, error: Exception) -> CatalogError:
        reason = self.masked(_first_lines(error))
        if "attempt to write a readonly database" in reason:
            what = f"The file of catalog '{self._catalog}' cannot be written: {reason}"
            return CatalogError(f"{what}. Check the permissions of the file and of its folder")
        if is_unreachable(error):
            advice = ". The password in its address contains an @: write it as %40" if self._is_unencoded else ""
            return CatalogError(f"Catalog '{self._catalog}' cannot be reached: {reason}{advice}", unreachable=True)
        if isinstance(error, FileNotFoundError):
            return CatalogError(
                f"A file of catalog '{self._catalog}' is missing: {reason.removeprefix('FileNotFoundError: ')}. If it belongs to an MV, "
                "`mvbuild run --full-refresh --select <MV>` rewrites its rows"
            )
        if type(error).__name__ == "ValidationError" and "ConfigResponse" in str(error):
            return CatalogError(f"Catalog '{self._catalog}' does not answer like an Iceberg REST catalog: check its `uri`")
        return CatalogError(f"Catalog '{self._catalog}' failed: {reason}")


def is_unreachable(error: BaseException) -> bool:
    if "is locked" in str(error):
        return False
    return any(kind.__name__ in _UNREACHABLE for kind in type(error).__mro__)


def _first_lines(error: Exception) -> str:
    refused = _REFUSED.search(str(error))
    if refused:
        return f"{refused[1]}:{refused[2]}: {refused[3]}"
    if isinstance(error, ModuleNotFoundError):
        return f"the Python package '{error.name}' is not installed: pip install {error.name}"
    # SQLAlchemy and pydantic add the statement, its parameters and links after the first line.
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"


def _secrets(properties: Mapping[str, str]) -> set[str]:
    found = {value for key, value in properties.items() if _SECRET_KEY.search(key)}
    for password in (one for value in properties.values() for one in _passwords(value)):
        found |= {password, unquote(password)}
        # A driver that splits the address at the first @ takes the rest of the password for a part of the host.
        found |= {f"{rest}@" for rest in password.split("@")[1:]}
    # A credential property of OAuth is "id:secret", a header "Bearer <token>"; a message may contain either half alone.
    found |= {part for value in tuple(found) for part in re.split(r"[:\s;@]", value)}
    return {secret for secret in found if len(secret) > 3 or secret.endswith("@")}


def _passwords(value: str) -> tuple[str, ...]:
    """The password in an address, as it is written."""
    if "@" not in value:
        return ()
    try:
        # Someone may have left out the scheme.
        password = urlsplit(value if "://" in value else f"//{value}").password
    except ValueError:
        return ()
    return (password,) if password else ()
