"""All private parts of PyIceberg that mvbuild uses. Another release may change them: a test names the release that they are known from.

Each function imports what it needs when it is called: most runs need no PyArrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import DataFile, ManifestEntry, ManifestFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import Transaction
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.typedef import Record

RELEASE = "0.12"
_NAN_COUNTS = 9
"""The place of `nan_value_counts` in a data file."""


def inheritance() -> Callable[[ManifestEntry, ManifestFile], ManifestEntry]:
    """Adds the sequence number and the snapshot that an entry inherits from its manifest. PyIceberg has no public function for that."""
    from pyiceberg.manifest import _inherit_from_manifest

    return _inherit_from_manifest


def values_of(record: Record) -> list[Any]:
    """The values of all fields. A record has no length and is not iterable."""
    return record._data


def written_files(metadata: TableMetadata, rows: Any, io: FileIO, commit: Any) -> Iterable[DataFile]:
    """Data files with these rows, in no snapshot yet. The public `overwrite` makes two snapshots."""
    from pyiceberg.io.pyarrow import _dataframe_to_data_files

    return _dataframe_to_data_files(metadata, rows, io, commit)


def delete_manifest_writer() -> Any:
    """The class that writes manifests of delete files: PyIceberg has one for data files only."""
    from pyiceberg.manifest import ManifestContent, ManifestWriterV2

    class DeleteManifestWriter(ManifestWriterV2):
        def content(self) -> ManifestContent:
            return ManifestContent.DELETES

        @property
        def _meta(self) -> dict[str, str]:
            return {**super()._meta, "content": "deletes"}

    return DeleteManifestWriter


def set_nan_counts(file: DataFile, counts: dict[int, int]) -> None:
    """Field id -> count of NaN: PyIceberg's writer leaves them out, and the property cannot be set."""
    file[_NAN_COUNTS] = counts


def updates_of(transaction: Transaction) -> Iterable[Any]:
    """What a transaction would commit; mvbuild makes the commit itself."""
    return transaction._updates


def deleted_positions(io: FileIO, file: DataFile) -> Mapping[str, Any]:
    """The positions in a delete file, by data file. Public scans apply them, but do not return them."""
    from pyiceberg.io.pyarrow import _read_deletes

    return _read_deletes(io, file)


def bounds_test(schema: Schema, expression: BooleanExpression) -> Callable[[DataFile], bool]:
    """Whether a data file may have rows that satisfy a condition. The public scan plans a whole table."""
    from pyiceberg.expressions.visitors import _InclusiveMetricsEvaluator

    return _InclusiveMetricsEvaluator(schema, expression).eval


def raise_for_answer(error: Any) -> None:
    """Raise PyIceberg's exception for an HTTP error of a REST catalog."""
    from pyiceberg.catalog.rest.response import _handle_non_200_response

    _handle_non_200_response(error, {})


def hive_client(properties: Mapping[str, str]) -> Any:
    """A client of a Hive metastore. PyIceberg's catalog opens one for each request."""
    from pyiceberg.catalog.hive import HiveCatalog

    return HiveCatalog._create_hive_client(dict(properties))


class RestInternals:
    """The session of a REST catalog with its authentication and its rules for addresses: PyIceberg has no requests for some endpoints."""

    def __init__(self, catalog: Any) -> None:
        self._catalog = catalog

    def offers(self, method: str, path: str) -> bool:
        return any(one.http_method.value == method and one.path == path for one in self._catalog._supported_endpoints)

    def path_parts(self, name: Any) -> Mapping[str, str]:
        parts: Mapping[str, str] = self._catalog._split_identifier_for_path(name)
        return parts

    def joined(self, namespace: tuple[str, ...]) -> str:
        return str(self._catalog._namespace_separator.join(namespace))

    def request(self, method: str, url: str, body: Any, seconds: Any, headers: Mapping[str, str] | None = None) -> Any:
        return self._catalog._session.request(method, url, json=body, timeout=seconds, headers=headers)

    def table(self, name: tuple[str, ...], answer: str) -> Any:
        """The table of an answer of the server, with a FileIO that has the credentials of the answer."""
        from pyiceberg.catalog.rest import TableResponse

        return self._catalog._response_to_table(name, TableResponse.model_validate_json(answer))

    def refresh_token(self) -> None:
        self._catalog._refresh_token()
