"""requests to the server of a REST catalog -> JSON. PyIceberg handles authentication, prefix, headers and names in addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from mvbuild.adapters.iceberg.private_pyiceberg import RestInternals, raise_for_answer
from mvbuild.adapters.iceberg.remote_answers import LostAnswer, is_lost
from mvbuild.adapters.iceberg.remote_files import full_name
from mvbuild.ports.catalog import CatalogError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.catalog import Catalog as PyCatalog
    from pyiceberg.table import Table

    from mvbuild.adapters.iceberg.metadata import Raw
    from mvbuild.names import TableIdentifier

_SECONDS = (10, 300)
"""To connect, and to answer. Without limits, a server that hangs would hang the run."""
_TOKEN_EXPIRED = (401, 419)
_TOLD = (400, 404, 409)
"""The server understood the request, and did nothing."""
_UNKNOWN = (500, 502, 503, 504)
_NOT_MODIFIED = 304
_MODE = "snapshot-loading-mode"
"""A property of PyIceberg's: which snapshots the server returns with a table."""


class Refused(CatalogError):
    """The server refused the request."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        """The name of the server's exception, as in the examples of the REST specification."""


class Rest:
    """One REST catalog."""

    def __init__(self, catalog: PyCatalog) -> None:
        self._catalog: Any = catalog
        self._internals = RestInternals(catalog)

    def offers(self, method: str, endpoint: str) -> bool:
        """Whether the server announces this endpoint. One that announces none has those that tables need."""
        return self._internals.offers(method, f"/v1/{{prefix}}/{endpoint}")

    def url(self, endpoint: str, identifier: TableIdentifier | None = None) -> str:
        """`endpoint` contains `{namespace}` and `{name}`."""
        names: dict[str, str] = {}
        if identifier is not None:
            parts = self._internals.path_parts(full_name(identifier))
            names = {"namespace": parts["namespace"], "name": parts["table"]}
        return str(self._catalog.url(endpoint, **names))

    def read(self, url: str) -> Raw | None:
        """The response as JSON; None if the server has nothing at this address."""
        response = self._answer("GET", url, None)
        if response.status_code == 404:
            return None
        if not response.ok:
            raise _failure(response)
        found: Raw = response.json()
        return found

    def table(self, identifier: TableIdentifier, etag: str) -> tuple[Table | None, str] | None:
        """A table and its ETag, which is empty if the server returns none. The table is None if it has not changed since the server
        returned `etag`. None if the table does not exist."""
        mode = self._catalog.properties.get(_MODE)
        url = self.url("namespaces/{namespace}/tables/{name}", identifier) + (f"?snapshots={mode}" if mode else "")
        response = self._answer("GET", url, None, {"If-None-Match": etag} if etag else None)
        if response.status_code == _NOT_MODIFIED and etag:
            return None, etag
        if response.status_code == 404:
            return None
        if not response.ok:
            raise _failure(response)
        return self._internals.table(full_name(identifier), response.text), response.headers.get("ETag", "")

    def namespaces(self, above: tuple[str, ...]) -> list[tuple[str, ...]]:
        """PyIceberg's own list encodes the parent twice, so a server does not find a parent with letters beyond ASCII."""
        parent = {"parent": self._internals.joined(above)} if above else {}
        found: list[tuple[str, ...]] = []
        page: str | None = ""
        while page is not None:
            given = parent | ({"pageToken": page} if page else {})
            answer = self.read(self.url("namespaces") + (f"?{urlencode(given, quote_via=quote)}" if given else "")) or {"namespaces": []}
            found += [tuple(one) for one in answer["namespaces"]]
            page = answer.get("next-page-token") or None
        return found

    def write(self, method: str, url: str, body: Raw | None = None) -> Raw:
        """Send a change. Raises Refused, or LostAnswer if it may have been executed."""
        try:
            response = self._answer(method, url, body)
            if response.ok:
                found: Raw = response.json() if response.content else {}
                return found
        except Exception as error:
            # A truncated answer is not valid JSON.
            if not is_lost(error) and not isinstance(error, ValueError):
                raise
            raise LostAnswer(f"{type(error).__name__}: {error}") from error
        if response.status_code in _UNKNOWN:
            raise LostAnswer(str(_failure(response)))
        raise _failure(response)

    def _answer(self, method: str, url: str, body: Raw | None, headers: Mapping[str, str] | None = None) -> Any:
        def send() -> Any:
            return self._internals.request(method, url, body, _SECONDS, headers)

        response = send()
        if response.status_code in _TOKEN_EXPIRED:
            self._internals.refresh_token()
            response = send()
        return response


def is_rest(catalog: PyCatalog) -> bool:
    # By name: importing the class would load PyIceberg's HTTP client for every catalog.
    return any(kind.__name__ == "RestCatalog" for kind in type(catalog).__mro__)


def _failure(response: Any) -> Exception:
    if response.status_code in _TOLD:
        kind, message = _error_of(response)
        return Refused(response.status_code, kind, message)
    try:
        try:
            response.raise_for_status()
        except Exception as error:  # noqa: BLE001  requests' HTTPError, which mvbuild does not import
            http: Any = error
            raise_for_answer(http)
    except Exception as error:  # noqa: BLE001  one of PyIceberg's classes for each status
        return error
    return CatalogError(f"Unexpected HTTP {response.status_code}.")


def _error_of(response: Any) -> tuple[str, str]:
    try:
        error = response.json()["error"]
        return str(error.get("type", "")), f"{error.get('type', 'Refused')}: {error['message']}"
    except (ValueError, LookupError, TypeError, AttributeError):
        # An answer that is not JSON comes from a proxy, for example as a page of HTML.
        return "", f"HTTP {response.status_code} {response.reason}"
