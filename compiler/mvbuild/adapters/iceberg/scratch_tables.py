"""name of a scratch table -> its entry and metadata files removed; no data file is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mvbuild.adapters.iceberg.scratch import is_scratch, own_files
from mvbuild.ports.catalog import CatalogError, CommitConflict

if TYPE_CHECKING:
    from mvbuild.adapters.iceberg.publisher import Publisher
    from mvbuild.names import TableIdentifier

_TRIES = 12


def drop_scratch(publisher: Publisher, identifier: TableIdentifier) -> None:
    for _ in range(_TRIES):
        found = publisher.read(identifier)
        if found is None:
            return
        if not is_scratch(found.raw):
            raise CatalogError(f"{identifier} is not a scratch table of mvbuild.")
        if publisher.remove(identifier, found.location):
            # Including empty directories: the scratch table may have had one of its own.
            publisher.files.delete_all(list(own_files(found.raw, found.location)))
            return
    raise CommitConflict(f"Scratch table {identifier} keeps changing.")
