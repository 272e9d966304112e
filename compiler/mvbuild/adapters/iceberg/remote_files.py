"""PyIceberg table -> its metadata JSON, its state, and the FileIO for its files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mvbuild.adapters.iceberg import metadata
from mvbuild.adapters.iceberg.data import IcebergData
from mvbuild.ports.states import TableState

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata

    from mvbuild.adapters.iceberg.metadata import Raw
    from mvbuild.names import TableIdentifier


def full_name(identifier: TableIdentifier) -> tuple[str, ...]:
    return (*identifier.namespace, identifier.name)


def dump(table: Table) -> Raw:
    return _dumped(table.metadata)


def dump_earlier(table: Table, location: str) -> Raw:
    """The table as one of its metadata files has it, in the form of `dump`."""
    from pyiceberg.table.metadata import TableMetadataUtil

    return dump(table) if table.metadata_location == location else _dumped(TableMetadataUtil.parse_obj(read_metadata(table.io, location)))


def _dumped(found: TableMetadata) -> Raw:
    raw: Raw = json.loads(json.dumps(found.model_dump(by_alias=True, mode="json", exclude_none=True)))
    return raw


def read_metadata(io: FileIO, location: str) -> Raw:
    with io.new_input(location).open() as stream:
        return metadata.parse(stream.read(), location)


def state_of(identifier: TableIdentifier, table: Table) -> TableState:
    found = metadata.state(identifier, table.metadata_location, dump(table), is_view=False)
    assert isinstance(found, TableState)
    return found


def data_of(table: Table) -> IcebergData:
    # The table's own FileIO may have credentials that the catalog issued for it.
    return IcebergData(lambda _: table.io)
