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


SCHEMA = {"schema": '{"fields": [{"id": 1, "name": "id", "type": "long"}, {"id": 2, "name": "day", "type": "date"}]}'}
NO_VALUES = (None, None)


def ranged(content: DataFileContent, number: int, *ranges: tuple[int | None, int | None], nulls: int = 0, known: bool = True) -> FileEntry:
    """A file with bounds of the columns 1 and 2, in each of which so many of its ten values are NULL."""
    sizes = {1: 8, 2: 4}
    bounds = {at + 1: pair for at, pair in enumerate(ranges) if pair != NO_VALUES}
    lower, upper = ({id_: pair[side].to_bytes(sizes[id_], "little", signed=True) for id_, pair in bounds.items()} for side in (0, 1))  # type: ignore[union-attr]
    file = DataFile.from_args(
        3,
        content=content,
        file_path="a.parquet",
        partition=Record(),
        record_count=10,
        null_value_counts=dict.fromkeys(range(1, len(ranges) + 1), nulls) if known else None,
        lower_bounds=lower if known else None,
        upper_bounds=upper if known else None,
        equality_ids=list(range(1, len(ranges) + 1)),
    )
    return FileEntry(ManifestEntry.from_args(sequence_number=number, data_file=file), b"", Header(SCHEMA, Schema(), 0))


@pytest.mark.parametrize(
    ("rows", "keys", "is_met"),
    [
        (((1, 3),), ((3, 9),), True),
        (((1, 3),), ((4, 9),), False),
        (((-5, -3),), ((-9, -6),), False),
        (((1, 3), (10, 20)), ((1, 3), (20, 30)), True),
        (((1, 3), (10, 20)), ((1, 3), (21, 30)), False),
        (((1, 3),), (NO_VALUES,), False),
        ((NO_VALUES,), ((1, 3),), False),
    ],
)
def test_keys_beyond_the_bounds_of_a_file(rows: Any, keys: Any, is_met: bool) -> None:
    def matches(file: FileEntry, delete: FileEntry) -> bool:
        return FilesByDelete([file]).matches(delete) == [file]

    def nulls(ranges: Any) -> int:
        return 10 if NO_VALUES in ranges else 0

    file = ranged(DataFileContent.DATA, 1, *rows, nulls=nulls(rows))
    delete = ranged(DataFileContent.EQUALITY_DELETES, 2, *keys, nulls=nulls(keys))
    assert matches(file, delete) is is_met
    # With NULL on both sides, or without bounds on one, there may be such rows.
    with_null = ranged(DataFileContent.DATA, 1, *rows, nulls=10 if NO_VALUES in rows else 1)
    assert matches(with_null, ranged(DataFileContent.EQUALITY_DELETES, 2, *keys, nulls=10 if NO_VALUES in keys else 1))
    assert matches(ranged(DataFileContent.DATA, 1, *rows, known=False), delete)
    assert matches(file, ranged(DataFileContent.EQUALITY_DELETES, 2, *keys, known=False))
    # Files of the same commit are not older.
    assert not matches(ranged(DataFileContent.DATA, 2, *rows, known=False), delete)


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
