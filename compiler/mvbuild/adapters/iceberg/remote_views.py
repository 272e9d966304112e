"""PyIceberg catalog -> ViewStore: how each kind of catalog stores views. A new kind is one class and one line in `open_views`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from mvbuild.adapters.iceberg.rest_requests import is_rest
from mvbuild.ports.catalog import CatalogError, CommitConflict

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog as PyCatalog

    from mvbuild.names import TableIdentifier
    from mvbuild.ports.commits import BranchCommit, ViewCommit
    from mvbuild.ports.states import ViewState


_NOT_OFFERED = "the server of this REST catalog does not announce views (if it has them, set view-endpoints-supported: true)"


class ViewStore(Protocol):
    """The views of one catalog."""

    no_swap: str
    """Why an MV cannot be one metadata file here: that requires replacing a view only if it is still the one that was read."""

    def load(self, identifier: TableIdentifier) -> ViewState | None:
        """The view; None if it does not exist."""

    def names(self, namespace: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Namespace and name of each view."""

    def check(self, change: ViewCommit) -> None:
        """Raise CommitConflict if the expectation does not hold. Nothing is changed."""

    def put(self, change: ViewCommit) -> ViewState:
        """Create or replace a view. Raises CommitConflict if the expectation does not hold."""

    def move(self, change: BranchCommit) -> ViewState | None:
        """Publish or drop what a branch has. Returns the new state, None for a view that was removed with its branch. Raises CommitConflict
        if the branch is outdated."""

    def drop(self, identifier: TableIdentifier) -> None:
        """Drop a view. Does nothing if there is none."""


class NoViews:
    """A catalog that, through PyIceberg, cannot have views."""

    def __init__(self, reason: str) -> None:
        self.no_swap = reason

    def load(self, _: TableIdentifier) -> ViewState | None:
        return None

    def names(self, _: tuple[str, ...]) -> list[tuple[str, ...]]:
        return []

    def check(self, change: ViewCommit) -> None:
        raise CatalogError(f"View {change.identifier} cannot be written: {self.no_swap}. Use a REST catalog with views, or a SQL catalog.")

    def put(self, change: ViewCommit) -> ViewState:
        self.check(change)
        raise AssertionError

    def move(self, change: BranchCommit) -> ViewState | None:
        raise CommitConflict(f"{change.identifier} no longer has branch '{change.branch}'.")

    def drop(self, _: TableIdentifier) -> None:
        return None


def open_views(catalog: PyCatalog, branch: str | None = None) -> ViewStore:
    if not is_rest(catalog):
        return NoViews(f"PyIceberg's {type(catalog).__name__} has no views")
    from mvbuild.adapters.iceberg.rest_views import RestViews

    found = RestViews(catalog, branch)
    return found if found.offered else NoViews(_NOT_OFFERED)
