"""ViewCommit -> requests of the REST protocol for views. PyIceberg implements a part of it: it can neither replace nor rename a view.

The protocol only compares the UUID before it replaces a view. So the state that a commit is based on is checked just before, and the new
version is made current by the number that it must have: if another writer came between, their version stays current.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import uuid4

from mvbuild.adapters.iceberg import views
from mvbuild.adapters.iceberg.branch_files import own_identifier
from mvbuild.adapters.iceberg.branches import dropped, published, put_back, seen
from mvbuild.adapters.iceberg.metadata import current_version, state
from mvbuild.adapters.iceberg.remote_answers import LostAnswer, Outdated, settled
from mvbuild.adapters.iceberg.remote_files import full_name
from mvbuild.adapters.iceberg.rest_requests import Refused, Rest
from mvbuild.adapters.iceberg.rest_view_updates import marked, marked_version, permitting, same_text, view_updates
from mvbuild.adapters.iceberg.updates import property_updates
from mvbuild.ports.catalog import AlreadyExists, CommitConflict
from mvbuild.ports.states import ViewState

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog as PyCatalog

    from mvbuild.adapters.iceberg.metadata import Raw
    from mvbuild.names import TableIdentifier
    from mvbuild.ports.commits import BranchCommit, ViewCommit

_LIST = "namespaces/{namespace}/views"
_VIEW = "namespaces/{namespace}/views/{name}"
_RENAME = "views/rename"


class RestViews:
    """The views of a REST catalog. A view is passed on as the server returns it: `metadata-location` and `metadata`."""

    no_swap = "a REST catalog replaces a view without comparing it with the version that the change is based on"

    def __init__(self, catalog: PyCatalog, branch: str | None = None) -> None:
        """`branch`: show views as this Iceberg branch sees them, see `branches`."""
        self._catalog = catalog
        self._rest = Rest(catalog)
        self._branch = branch

    @property
    def offered(self) -> bool:
        """Whether the server supports views."""
        return self._rest.offers("GET", "namespaces/{namespace}/views/{view}")

    def load(self, identifier: TableIdentifier) -> ViewState | None:
        found = self._read(identifier) or (self._read(own_identifier(identifier, self._branch)) if self._branch else None)
        return None if found is None else self._state(identifier, found)

    def names(self, namespace: tuple[str, ...]) -> list[tuple[str, ...]]:
        return self._catalog.list_views(namespace)

    def check(self, change: ViewCommit) -> None:
        self._expected(change)

    def move(self, change: BranchCommit) -> ViewState | None:
        """Publish or drop what the branch has of a view."""
        identifier, own = change.identifier, own_identifier(change.identifier, change.branch)
        base, only_there = self._read(identifier), self._read(own)
        if base is None and only_there is None:
            raise CommitConflict(f"{identifier} no longer has branch '{change.branch}'.")
        if change.to == "drop" and only_there is not None:
            self.drop(own)
        if only_there is not None and change.to == "publish":
            if base is not None:
                raise CommitConflict(f"{identifier} has been created since branch '{change.branch}' was built.")
            return self._renamed(own, identifier, only_there["metadata"]["view-uuid"])
        if base is None:
            return None
        old = base["metadata"]
        new = published(old, change.branch, identifier) if change.to == "publish" else dropped(old, change.branch)
        wanted = view_updates(old, {**new, "versions": old["versions"]})
        if wanted:
            body = {"requirements": [{"type": "assert-view-uuid", "uuid": old["view-uuid"]}], "updates": wanted}
            settled(
                f"the change of view {identifier}",
                lambda: self._rest.write("POST", self._rest.url(_VIEW, identifier), body),
                lambda: found if (found := self._read(identifier)) and not property_updates(found["metadata"], new) else None,
            )
        return self.load(identifier)

    def put(self, change: ViewCommit) -> ViewState:
        if self._branch is not None and self._read(change.identifier) is None:
            # A new view gets an internal name until it is published.
            own = own_identifier(change.identifier, self._branch)
            self._catalog.create_namespace_if_not_exists(own.namespace)
            return replace(self._put(replace(change, identifier=own)), identifier=change.identifier)
        return self._put(change)

    def _put(self, change: ViewCommit) -> ViewState:
        made = self._created(change) if change.expect_metadata_location is None else self._changed(change)
        if change.rename_to is None or change.rename_to == change.identifier:
            return self._state(change.identifier, made)
        return self._renamed(change.identifier, change.rename_to, made["metadata"]["view-uuid"])

    def drop(self, identifier: TableIdentifier) -> None:
        def ask() -> bool:
            try:
                self._rest.write("DELETE", self._rest.url(_VIEW, identifier))
            except Refused as error:
                if error.status != 404:
                    raise
            return True

        settled(f"the drop of view {identifier}", ask, lambda: True if self._read(identifier) is None else None)

    def _read(self, identifier: TableIdentifier) -> Raw | None:
        return self._rest.read(self._rest.url(_VIEW, identifier))

    def _expected(self, change: ViewCommit) -> Raw | None:
        """Raise CommitConflict if the view is not the one that the commit is based on."""
        found = self._read(change.identifier)
        if (found["metadata-location"] if found else None) == change.expect_metadata_location:
            return found
        if found is None and self._catalog.table_exists(full_name(change.identifier)):
            raise CommitConflict(f"{change.identifier} is a table, not a view.")
        how = "dropped" if found is None else "changed" if change.expect_metadata_location else "created"
        raise CommitConflict(f"View {change.identifier} was {how} by another process.")

    def _created(self, change: ViewCommit) -> Raw:
        raw = views.new_view(change, "")
        version, name = raw["versions"][-1], change.identifier.name
        body = {"name": name, "schema": raw["schemas"][-1], "view-version": version, "properties": raw["properties"]}

        def ask() -> Raw:
            try:
                return self._rest.write("POST", self._rest.url(_LIST, change.identifier), body)
            except Refused as error:
                if error.status == 409:
                    self.check(change)
                    raise CommitConflict(f"{change.identifier} already exists: {error}") from None
                raise

        def made() -> Raw | None:
            found = self._read(change.identifier)
            return found if found and same_text(current_version(found["metadata"]), version) else None

        return settled(f"view {change.identifier}", ask, made)

    def _changed(self, change: ViewCommit) -> Raw:
        base, mark = self._expected(change), uuid4().hex
        assert base is not None
        old = base["metadata"]
        new = self._after(old, change, mark)
        version = current_version(self._seen(new))
        sent = permitting(old, new)
        wanted = view_updates(old, sent)
        if not wanted:
            return base

        def ask() -> Raw:
            self.check(change)
            return self._updated(change, old["view-uuid"], wanted)

        def made() -> Raw | None:
            found = self._read(change.identifier)
            if found is None or change.version_id is None:
                return found if found and not property_updates(found["metadata"], self._after(found["metadata"], change, mark)) else None
            return found if marked_version(found["metadata"], version, mark) else None

        answer = settled(f"the change of view {change.identifier}", ask, made)
        if change.version_id is not None:
            ours = marked_version(answer["metadata"], version, mark)
            if ours is None or ours["version-id"] != change.version_id:
                raise CommitConflict(f"View {change.identifier} was changed by another process at the same moment.")
        return self._set_back(change, answer, property_updates(sent, new))

    def _after(self, old: Raw, change: ViewCommit, mark: str) -> Raw:
        """The metadata after the change, with a mark at its version."""
        new = views.changed(self._seen(old), change)
        if change.version_id is not None:
            new = marked(new, mark)
        return new if self._branch is None else put_back(new, self._branch)

    def _seen(self, raw: Raw) -> Raw:
        return raw if self._branch is None else seen(raw, self._branch)

    def _state(self, identifier: TableIdentifier, answer: Raw) -> ViewState:
        found = state(identifier, answer["metadata-location"], self._seen(answer["metadata"]), is_view=True)
        assert isinstance(found, ViewState)
        return found

    def _updated(self, change: ViewCommit, uuid: str, wanted: list[Raw]) -> Raw:
        body = {"requirements": [{"type": "assert-view-uuid", "uuid": uuid}], "updates": wanted}
        try:
            return self._rest.write("POST", self._rest.url(_VIEW, change.identifier), body)
        except Refused as error:
            if error.status != 400:
                raise Outdated(str(error)) from error
            # The server's refusal may be due to a change by another writer.
            self.check(change)
            raise

    def _set_back(self, change: ViewCommit, answer: Raw, wanted: list[Raw]) -> Raw:
        """Remove the properties that were set for this change only. If that fails they remain, which does no harm."""
        if not wanted:
            return answer
        with suppress(LostAnswer, Outdated):
            return self._updated(change, answer["metadata"]["view-uuid"], wanted)
        return self._read(change.identifier) or answer

    def _renamed(self, identifier: TableIdentifier, to: TableIdentifier, uuid: str) -> ViewState:
        names = [{"namespace": list(one.namespace), "name": one.name} for one in (identifier, to)]

        def ask() -> bool:
            try:
                self._rest.write("POST", self._rest.url(_RENAME), {"source": names[0], "destination": names[1]})
            except Refused as error:
                if error.status == 409:
                    raise AlreadyExists(f"{identifier} cannot be renamed: {to} already exists.") from None
                if self._read(identifier) is None:
                    raise CommitConflict(f"View {identifier} was dropped by another process.") from None
                raise
            return True

        def made() -> bool | None:
            found = self._read(to)
            return True if found and found["metadata"]["view-uuid"] == uuid else None

        settled(f"the rename of view {identifier}", ask, made)
        found = self.load(to)
        if found is None:
            raise CommitConflict(f"View {to} was dropped by another process.")
        return found
