"""changes of one commit -> the changes that a remote catalog accepts, in the form that it accepts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mvbuild.ports.catalog import CatalogError
from mvbuild.ports.commits import ConvertCommit, DropCommit, TableCommit, ViewCommit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mvbuild.adapters.iceberg.remote_views import ViewStore
    from mvbuild.names import TableIdentifier
    from mvbuild.ports.commits import Change


def require_possible(changes: Sequence[Change], views: ViewStore) -> None:
    """Raise CatalogError for a change that needs a view to be swapped like a table."""
    for change in changes:
        if isinstance(change, ConvertCommit):
            raise CatalogError(f"{change.view.identifier} cannot be converted: {views.no_swap}.")
        if isinstance(change, TableCommit) and change.of_view is not None:
            raise no_file_format(change.of_view, views)


def require_on_branch(changes: Sequence[Change], branch: str) -> None:
    """Raise CatalogError for a change that a branch cannot have alone."""
    for change in changes:
        if isinstance(change, DropCommit) or (isinstance(change, TableCommit | ViewCommit) and change.rename_to is not None):
            raise CatalogError(f"{change.identifier} cannot be dropped or renamed on branch '{branch}': it is also on `main`.")


def no_file_format(view: TableIdentifier, views: ViewStore) -> CatalogError:
    return CatalogError(
        f"{view} cannot be stored in the metadata-file format: {views.no_swap}. Use the format table-properties, or a SQL catalog."
    )


def with_uuids(change: TableCommit, uuids: Mapping[str, str]) -> TableCommit:
    """A server chooses the UUIDs of new views, but the record that names them was made before. The summary of a written snapshot keeps the
    old UUID."""
    if not uuids:
        return change
    restate = None if change.restate is None else _replaced(change.restate, uuids)
    return replace(change, set_properties=_replaced(change.set_properties, uuids), restate=restate)


def _replaced(texts: Mapping[str, str], uuids: Mapping[str, str]) -> dict[str, str]:
    def replaced(text: str) -> str:
        for chosen, given in uuids.items():
            text = text.replace(chosen, given)
        return text

    return {replaced(key): replaced(value) for key, value in texts.items()}
