"""pointers and files -> Entry: what a name refers to, read and checked; Entry -> the states of the catalog port."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mvbuild.adapters.iceberg import metadata
from mvbuild.adapters.iceberg.metadata import Raw, parse, table_state
from mvbuild.adapters.iceberg.packed import PackedMapping
from mvbuild.adapters.iceberg.pointers import Key, Kind
from mvbuild.dataclass import dataclass
from mvbuild.formats import metadata_file
from mvbuild.formats.metadata_file import METADATA_LOCATION, MvMetadata
from mvbuild.formats.record import RecordError
from mvbuild.ports.catalog import CatalogError
from mvbuild.ports.states import TableState, Unreadable, ViewState

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mvbuild.adapters.iceberg.files import Files
    from mvbuild.names import TableIdentifier

METADATA_UUID = "materialized-view.uuid"
"""Property of the catalog's view: the UUID that the MV metadata file must have."""
POINTER_PROPERTIES = (METADATA_LOCATION, METADATA_UUID)

_TOGETHER = 256
"""How many files are in memory at a time."""
_NOUNS = {"TABLE": "table", "VIEW": "view", "MV": "materialized view"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What a name refers to now."""

    identifier: TableIdentifier
    kind: Kind
    location: str
    """The target of the pointer."""
    raw: Raw
    """The table or view; in a catalog without views, the view in the MV's metadata file."""
    mv: MvMetadata | None = None
    mv_location: str = ""


def key(identifier: TableIdentifier) -> Key:
    return ".".join(identifier.namespace), identifier.name


def read_entries(files: Files, found: Sequence[tuple[TableIdentifier, str, Kind]]) -> list[Entry | CatalogError]:
    """Read in two rounds: views show which entries are MVs, and then the metadata files of the MVs are read together."""
    contents = files.read_all([location for _, location, _ in found])
    entries = [_entry(*one, content) for one, content in zip(found, contents, strict=True)]
    pointing = [at for at, entry in enumerate(entries) if isinstance(entry, Entry) and entry.kind == "VIEW" and _pointer(entry)]
    contents = files.read_all([_pointer(entries[at]) for at in pointing])
    for at, content in zip(pointing, contents, strict=True):
        entry = entries[at]
        assert isinstance(entry, Entry)
        entries[at] = _with_mv(entry, content)
    return entries


def read_states(
    files: Files, found: Sequence[tuple[TableIdentifier, str, Kind]]
) -> Iterator[tuple[TableIdentifier, TableState | ViewState | Unreadable]]:
    """Read a few at a time: the parts of a file that its state does not need are released before the next files are read."""
    for at in range(0, len(found), _TOGETHER):
        some = found[at : at + _TOGETHER]
        for (identifier, location, _), entry in zip(some, read_entries(files, some), strict=True):
            yield identifier, state_or_reason(identifier, location, entry)


def read_table(files: Files, identifier: TableIdentifier, location: str) -> Raw:
    """Read a table. CatalogError, with table and file, if it cannot be read."""
    return _decoded(identifier, location, "TABLE", files.read_all([location])[0])


def storage_metadata(files: Files, table: TableState) -> Raw:
    """The metadata that a state was made from."""
    if table.mv is not None:
        return metadata_file.table_metadata(table.mv)
    return read_table(files, table.identifier, table.metadata_location)


def state(entry: Entry) -> TableState | ViewState:
    """CatalogError if the JSON lacks what a table or view must have."""
    found = metadata.state(entry.identifier, entry.location, entry.raw, is_view=entry.kind != "TABLE")
    if entry.mv is None or isinstance(found, TableState):
        return found
    try:
        return replace(found, storage=embedded_state(entry.identifier, entry.mv))
    except (LookupError, TypeError, AttributeError, ValueError, RecursionError) as error:
        rule = metadata.rule_broken(error)
        raise _refused(entry.identifier, "MV", f"is incomplete: {entry.mv_location} ({rule})") from None


def embedded_state(identifier: TableIdentifier, mv: MvMetadata) -> TableState:
    found = table_state(identifier, mv.storage_metadata_location, metadata_file.table_metadata(mv))
    return replace(found, of_view=identifier, mv=replace(mv, raw=PackedMapping(mv.raw)))


def state_or_reason(identifier: TableIdentifier, location: str, entry: Entry | CatalogError) -> TableState | ViewState | Unreadable:
    try:
        if isinstance(entry, CatalogError):
            raise entry
        return state(entry)
    except CatalogError as error:
        return Unreadable(identifier=identifier, reason=str(error), metadata_location=location)


def _entry(identifier: TableIdentifier, location: str, kind: Kind, content: bytes | Exception) -> Entry | CatalogError:
    try:
        if kind == "MV":
            return _with_mv(Entry(identifier=identifier, kind=kind, location=location, raw={}), content)
        return Entry(identifier=identifier, kind=kind, location=location, raw=_decoded(identifier, location, kind, content))
    except CatalogError as error:
        return error


def _pointer(entry: Any) -> str:
    properties: Mapping[str, str] = entry.raw.get("properties") or {}
    return properties.get(METADATA_LOCATION, "") if isinstance(properties, dict) else ""


def _with_mv(entry: Entry, content: bytes | Exception) -> Entry | CatalogError:
    location = _pointer(entry) or entry.location
    uuid = (entry.raw.get("properties") or {}).get(METADATA_UUID)
    try:
        if isinstance(content, Exception):
            raise content
        mv = metadata_file.read(content, expect_uuid=uuid)
    except RecordError as error:
        return _refused(entry.identifier, "MV", f"is invalid: {location} ({error})")
    except Exception as error:  # noqa: BLE001  whatever the file or its store did wrong
        return _unread(entry.identifier, "MV", location, error)
    raw = metadata_file.view_metadata(mv) if entry.kind == "MV" else entry.raw
    return replace(entry, raw=raw, mv=mv, mv_location=location)


def _decoded(identifier: TableIdentifier, location: str, kind: Kind, content: bytes | Exception) -> Raw:
    try:
        if isinstance(content, Exception):
            raise content
        return parse(content, location)
    except Exception as error:  # noqa: BLE001  whatever the file or its store did wrong
        raise _unread(identifier, kind, location, error) from None


def _unread(identifier: TableIdentifier, kind: Kind, location: str, error: Exception) -> CatalogError:
    reason = "the file does not exist" if isinstance(error, FileNotFoundError) else f"{type(error).__name__}: {error}"
    return _refused(identifier, kind, f"cannot be read: {location} ({reason})")


def _refused(identifier: TableIdentifier, kind: Kind, how: str) -> CatalogError:
    return CatalogError(f"The metadata of {_NOUNS[kind]} {identifier} {how}.")
