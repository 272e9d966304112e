"""Delete files and the data files that they apply to: by partition, including NaN and specs with only void transforms."""

from __future__ import annotations

from typing import Any

import pytest
from pyiceberg.manifest import DataFile, DataFileContent, ManifestContent, ManifestEntry, ManifestFile, PartitionFieldSummary
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record

from mvbuild.adapters.iceberg.altered import Deletes, FilesByDelete, altered_files, had_deletes
from mvbuild.adapters.iceberg.manifest_pruning import matching_deletes
from mvbuild.adapters.iceberg.manifests import FileEntry, Header


def nan() -> float:
    """A different NaN object each time, as when it is read."""
    return float("nan")


def entry(content: DataFileContent, path: str, *partition: Any, number: int = 1, spec: int = 0) -> FileEntry:
    file = DataFile.from_args(
        3, content=content, file_path=path, partition=Record(*partition), record_count=1, lower_bounds=None, upper_bounds=None
    )
    return FileEntry(ManifestEntry.from_args(sequence_number=number, data_file=file), b"", Header({}, Schema(), spec))


def data(*partition: Any, spec: int = 0) -> FileEntry:
    return entry(DataFileContent.DATA, "data.parquet", *partition, spec=spec)


def positions(*partition: Any) -> FileEntry:
    return entry(DataFileContent.POSITION_DELETES, "deletes.parquet", *partition, number=2)


def equality(*partition: Any, spec: int = 0) -> FileEntry:
    return entry(DataFileContent.EQUALITY_DELETES, "equal.parquet", *partition, number=2, spec=spec)


@pytest.mark.parametrize(
    ("of_data", "of_delete", "is_met"),
    [
        ((nan(),), (nan(),), True),
        ((nan(), 1), (nan(), 1), True),
        ((nan(), 1), (nan(), 2), False),
        ((nan(),), (1.0,), False),
        ((), (), True),
    ],
)
def test_position_deletes_of_a_partition(of_data: tuple[Any, ...], of_delete: tuple[Any, ...], is_met: bool) -> None:
    file, delete = data(*of_data), positions(*of_delete)
    deletes = Deletes(gone=(), fresh=(delete,), kept=(), shared=())
    assert altered_files(None, deletes, [file], []) == ([file] if is_met else [])  # type: ignore[arg-type]
    assert had_deletes(Deletes(gone=(), fresh=(), kept=(delete,), shared=()), [file]) is is_met
    assert deletes.added_rows([file]) == (1 if is_met else 0)


def test_deletes_that_were_merged_in_a_partition_of_nan() -> None:
    merged = Deletes(gone=(positions(nan()),), fresh=(positions(nan()), positions(nan())), kept=(), shared=())
    assert merged.added_rows([data(nan())]) == 1


@pytest.mark.parametrize(
    ("delete", "file", "is_met"),
    [
        (equality(nan()), data(nan()), True),
        (equality(1.0), data(nan()), False),
        (equality(), data(5, spec=1), True),
        (equality(None, spec=1), data(5), True),
        (equality(None, None, spec=2), data(), True),
        (equality(3, spec=1), data(3), False),
    ],
)
def test_equality_deletes(delete: FileEntry, file: FileEntry, is_met: bool) -> None:
    assert FilesByDelete([file]).matches(delete) == ([file] if is_met else [])


def manifest(*partitions: PartitionFieldSummary, spec: int) -> ManifestFile:
    return ManifestFile.from_args(
        manifest_path="m.avro", partition_spec_id=spec, content=ManifestContent.DELETES, sequence_number=2, partitions=list(partitions)
    )


VOID = PartitionFieldSummary(True, None, None, None)
THREE = PartitionFieldSummary(False, False, b"\x03\0\0\0", b"\x03\0\0\0")


@pytest.mark.parametrize(
    ("fields", "spec", "is_met"),
    [([VOID], 1, True), ([VOID, VOID], 1, True), ([THREE], 1, False), ([THREE, VOID], 1, False), ([], 1, True)],
)
def test_delete_manifests_of_another_spec(fields: list[PartitionFieldSummary], spec: int, is_met: bool) -> None:
    found = manifest(*fields, spec=spec)
    assert matching_deletes([found], [data(5)]) == ((found,) if is_met else ())
