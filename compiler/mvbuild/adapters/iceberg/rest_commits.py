"""edits of tables of a REST catalog -> one request: for one table, or the transaction of several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mvbuild.adapters.iceberg.remote_answers import Outdated
from mvbuild.adapters.iceberg.rest_requests import Refused, Rest
from mvbuild.adapters.iceberg.updates import requirements, updates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyiceberg.catalog import Catalog as PyCatalog

    from mvbuild.adapters.iceberg.metadata import Raw
    from mvbuild.adapters.iceberg.remote_commits import EditedTable

_TABLE = "namespaces/{namespace}/tables/{name}"
_TRANSACTION = "transactions/commit"
_MOVED = (404, 409)


class RestCommits:
    """The JSON of metadata is sent unchanged, because PyIceberg's models lack some fields of newer formats."""

    def __init__(self, catalog: PyCatalog) -> None:
        self._rest = Rest(catalog)

    @property
    def together(self) -> bool:
        return self._rest.offers("POST", _TRANSACTION)

    def send(self, steps: Sequence[EditedTable]) -> None:
        changes = [_change(step) for step in steps]
        try:
            if len(steps) == 1:
                self._rest.write("POST", self._rest.url(_TABLE, steps[0].identifier), changes[0])
            else:
                self._rest.write("POST", self._rest.url(_TRANSACTION), {"table-changes": changes})
        except Refused as error:
            if error.status not in _MOVED and not _is_behind(error):
                raise
            raise Outdated(str(error)) from error


def _is_behind(error: Refused) -> bool:
    """Whether another branch changed in the meantime. A first snapshot has no parent, so a server uses its number as the table's highest,
    and then finds higher ones in the other branch. Any other snapshot that comes too late is a conflict by itself."""
    return error.kind == "ValidationException" and "last sequence number" in str(error)


def _change(step: EditedTable) -> Raw:
    return {
        "identifier": {"namespace": list(step.identifier.namespace), "name": step.identifier.name},
        "requirements": requirements(step.old, step.new),
        "updates": updates(step.old, step.new),
    }
