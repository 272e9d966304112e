"""PyIceberg catalog -> ViewStore: how each kind of catalog keeps views. A new kind is one class and one line in `_STORES`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Protocol

from mvbuild.adapters.iceberg import metadata, views
from mvbuild.ports.catalog import CatalogError, CommitConflict, ViewState

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyiceberg.catalog import Catalog as PyCatalog
    from pyiceberg.view import View

    from mvbuild.names import TableIdentifier
    from mvbuild.ports.catalog import ViewCommit


class ViewStore(Protocol):
    """Views of one catalog."""

    def load(self, identifier: TableIdentifier) -> ViewState | None:
        """None if there is no such view."""

    def names(self, namespace: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Namespace and name of each view."""

    def put(self, change: ViewCommit) -> ViewState:
        """CommitConflict if the expectation does not hold."""

    def drop(self, identifier: TableIdentifier) -> None:
        """Nothing happens if there is none."""


class NoViews:
    """A catalog that cannot hold views, as far as PyIceberg goes."""

    def __init__(self, catalog: PyCatalog) -> None:
        self._catalog = catalog

    def load(self, _: TableIdentifier) -> ViewState | None:
        return None

    def names(self, _: tuple[str, ...]) -> list[tuple[str, ...]]:
        return []

    def put(self, change: ViewCommit) -> ViewState:
        kind = type(self._catalog).__name__
        raise CatalogError(f"View {change.identifier} cannot be written: PyIceberg's {kind} has no views. Use a REST or a SQL catalog.")

    def drop(self, _: TableIdentifier) -> None:
        return None


class RestViews:
    """Views of a REST catalog, as far as PyIceberg goes: it loads, lists, creates and drops them, but cannot replace one."""

    def __init__(self, catalog: PyCatalog) -> None:
        self._catalog = catalog

    def load(self, identifier: TableIdentifier) -> ViewState | None:
        from pyiceberg.exceptions import NoSuchViewError

        try:
            return _state(identifier, self._catalog.load_view(_name(identifier)))
        except (NoSuchViewError, NotImplementedError):
            return None

    def names(self, namespace: tuple[str, ...]) -> list[tuple[str, ...]]:
        return self._catalog.list_views(namespace)

    def put(self, change: ViewCommit) -> ViewState:
        from pyiceberg.exceptions import ViewAlreadyExistsError
        from pyiceberg.schema import Schema
        from pyiceberg.view.metadata import ViewVersion

        if change.expect_metadata_location is not None:
            raise CatalogError(f"View {change.identifier} cannot be changed: PyIceberg cannot replace views of a REST catalog yet.")
        raw = views.new_view(change, "")
        try:
            view = self._catalog.create_view(
                _name(change.identifier),
                schema=Schema.model_validate(raw["schemas"][-1]),
                view_version=ViewVersion.model_validate(raw["versions"][-1]),
                properties=dict(change.properties),
            )
        except ViewAlreadyExistsError:
            raise CommitConflict(f"View {change.identifier} was created by another process.") from None
        return _state(change.identifier, view)

    def drop(self, identifier: TableIdentifier) -> None:
        from pyiceberg.exceptions import NoSuchViewError

        try:
            self._catalog.drop_view(_name(identifier))
        except NoSuchViewError:
            return


_STORES: dict[str, Callable[[PyCatalog], ViewStore]] = {"RestCatalog": RestViews}


def open_views(catalog: PyCatalog) -> ViewStore:
    return _STORES.get(type(catalog).__name__, NoViews)(catalog)


def _name(identifier: TableIdentifier) -> tuple[str, ...]:
    return (*identifier.namespace, identifier.name)


def _state(identifier: TableIdentifier, view: View) -> ViewState:
    raw = json.loads(json.dumps(view.metadata.model_dump(by_alias=True, mode="json", exclude_none=True)))
    # PyIceberg does not keep where the metadata file is; the uuid and version name one state just as well.
    location = getattr(view, "metadata_location", None) or f"{raw['view-uuid']}/{raw['current-version-id']}"
    found = metadata.state(identifier, location, raw, is_view=True)
    assert isinstance(found, ViewState)
    return found
