"""view + storage of an MV -> which of the marks that make it an MV are wrong, and whether a metadata commit can correct them.

The marks are the flag and the pointer of the property-based specification. Other engines rely on them: without the flag the view is not an
MV, and with another pointer they read the rows of another table. An MV in the metadata-file format has neither.
"""

from __future__ import annotations

from collections.abc import Iterator

from mvbuild.formats.properties import (
    CHILD_VIEW_VERSION,
    INDIRECT,
    IS_MATERIALIZED,
    OWNER,
    STORAGE_TABLE,
    is_materialized,
    view_properties,
)
from mvbuild.formats.record import RefreshRecord
from mvbuild.parse.fingerprint import fingerprint
from mvbuild.ports.states import TableState, ViewState
from mvbuild.storage.history import DEFINITION
from mvbuild.storage.names import storage_name
from mvbuild.storage.stored import summary_value

Mark = tuple[str, str]
"""Code and message of a reason."""


def wrong_marks(view: ViewState, storage: TableState) -> Iterator[Mark]:
    """Check flag and pointer, in the format of the MV."""
    pointer = view.properties.get(STORAGE_TABLE)
    if storage.of_view is not None:
        if pointer is not None:
            yield "storage-pointer-differs", f"the view names {pointer} as its storage table, and its rows are in its metadata file"
        if IS_MATERIALIZED in view.properties and not is_materialized(view.properties):
            yield "view-not-marked", f"the view says that it is not a materialized view: {IS_MATERIALIZED} is not true"
        return
    if not is_materialized(view.properties):
        yield "view-not-marked", f"the view does not say that it is a materialized view: {IS_MATERIALIZED} is not true"
    if not points_at(view, storage):
        found = f"names {pointer} as its storage table" if pointer else "does not name its storage table"
        yield "storage-pointer-differs", f"the view {found}, and its rows are in {storage.identifier}"


def points_at(view: ViewState, storage: TableState) -> bool:
    """Whether the pointer means this table, in any spelling."""
    found = storage_name(view)
    return view.properties.get(STORAGE_TABLE) == storage.identifier.dotted or (found is not None and found.key == storage.identifier.key)


def is_recreated(view: ViewState, storage: TableState) -> bool:
    """Whether the view is not the one that mvbuild wrote for this storage: it lacks the name of the model, or has another UUID."""
    return (OWNER in storage.properties and OWNER not in view.properties) or is_of_another_view(storage, view)


def is_of_another_view(storage: TableState, view: ViewState) -> bool:
    """Whether the record names the refreshed view, and it is not this one. In a metadata file the record is not in properties."""
    return storage.of_view is None and INDIRECT in storage.properties and CHILD_VIEW_VERSION + view.uuid not in storage.properties


def has_rows_of(view: ViewState, storage: TableState, record: RefreshRecord, definition: str) -> bool:
    """Whether the storage certainly has the rows of the view with this definition. If the view is not the one that was refreshed, its
    version number proves nothing, and the definition that the refresh recorded must agree."""
    columns, stored = ([field["name"] for field in of.schema["fields"]] for of in (view, storage))
    is_same = record.view_version_id == view.version_id and not is_recreated(view, storage)
    return columns == stored and (is_same or summary_value(storage, DEFINITION) == fingerprint(definition))


def wanted_marks(view: ViewState, storage: TableState, owner: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """The properties to set on the view, and those to remove."""
    if storage.of_view is not None:
        wanted, gone = {OWNER: owner}, tuple(name for name in (IS_MATERIALIZED, STORAGE_TABLE) if name in view.properties)
    else:
        wanted, gone = {OWNER: owner, **view_properties(storage.identifier)}, ()
        if points_at(view, storage):
            del wanted[STORAGE_TABLE]
        if is_materialized(view.properties):
            del wanted[IS_MATERIALIZED]
    return {name: value for name, value in wanted.items() if view.properties.get(name) != value}, gone
