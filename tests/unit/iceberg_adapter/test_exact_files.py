"""Which Parquet files are read in mvbuild's process: those of Iceberg's own writers. All others are left to Spark."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mvbuild.adapters.iceberg.exact_files import exact_columns

NOON = datetime(2024, 2, 29, 12, tzinfo=timezone.utc)
D = Decimal("1.00")


def written(file: Path, values: pa.Array, *, id_: int | None = 1, **options: Any) -> pq.ParquetFile:
    """A file with one column, and one of two leaves before it."""
    struct = pa.field("pair", pa.struct([("a", pa.int32()), ("b", pa.int32())]), metadata={"PARQUET:field_id": "7"})
    column = pa.field("c", values.type, metadata={} if id_ is None else {"PARQUET:field_id": str(id_)})
    pairs = pa.array([{"a": 1, "b": 2}] * len(values), struct.type)
    pq.write_table(pa.table([pairs, values], schema=pa.schema([struct, column])), file, **options)
    return pq.ParquetFile(file)


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        ("boolean", pa.array([True])),
        ("int", pa.array([1], pa.int32())),
        ("long", pa.array([1], pa.int64())),
        ("long", pa.array([1], pa.int32())),
        ("float", pa.array([1], pa.float32())),
        ("double", pa.array([1], pa.float64())),
        ("double", pa.array([1], pa.float32())),
        ("date", pa.array([date(1, 1, 1)])),
        ("timestamp", pa.array([datetime(9999, 12, 31)], pa.timestamp("us"))),
        ("timestamptz", pa.array([NOON], pa.timestamp("us", "UTC"))),
        ("string", pa.array(["a"])),
        ("string", pa.array(["a"], pa.large_string())),
        ("binary", pa.array([b"a"])),
        ("decimal(9, 2)", pa.array([D], pa.decimal128(9, 2))),
        ("decimal(12,2)", pa.array([D], pa.decimal128(9, 2))),
        ("decimal(38, 2)", pa.array([D], pa.decimal128(38, 2))),
    ],
)
def test_what_an_iceberg_writer_makes_of_a_type(tmp_path: Path, type_: str, values: pa.Array) -> None:
    assert exact_columns(written(tmp_path / "f.parquet", values), {1: type_}, set()) is not None


@pytest.mark.parametrize(
    ("type_", "values", "options"),
    [
        ("timestamp", pa.array([NOON], pa.timestamp("ns")), {"use_deprecated_int96_timestamps": True}),
        ("timestamptz", pa.array([NOON], pa.timestamp("ns")), {"use_deprecated_int96_timestamps": True}),
        ("timestamp", pa.array([NOON], pa.timestamp("ms")), {}),
        ("timestamp", pa.array([NOON], pa.timestamp("ns")), {"version": "2.6"}),
        ("timestamptz", pa.array([NOON], pa.timestamp("us")), {}),
        ("timestamp", pa.array([NOON], pa.timestamp("us", "UTC")), {}),
        ("timestamp", pa.array([1], pa.int64()), {}),
        ("timestamp_ns", pa.array([NOON], pa.timestamp("ns")), {"version": "2.6"}),
        ("int", pa.array([1], pa.uint32()), {"version": "2.6"}),
        ("long", pa.array([1], pa.uint64()), {}),
        ("long", pa.array([1], pa.uint32()), {"version": "2.6"}),
        ("int", pa.array([1], pa.int8()), {}),
        ("int", pa.array([1], pa.int64()), {}),
        ("float", pa.array([1], pa.float64()), {}),
        ("float", pa.array([1], pa.float16()), {}),
        ("double", pa.array([1], pa.int32()), {}),
        ("date", pa.array([1], pa.int32()), {}),
        ("date", pa.array([datetime(2024, 1, 1)], pa.timestamp("us")), {}),
        ("string", pa.array([b"a"]), {}),
        ("binary", pa.array(["a"]), {}),
        ("binary", pa.array([b"ab"], pa.binary(2)), {}),
        ("fixed[2]", pa.array([b"ab"], pa.binary(2)), {}),
        ("uuid", pa.array([b"a" * 16], pa.binary(16)), {}),
        ("time", pa.array([1], pa.time64("us")), {}),
        ("variant", pa.array([{"metadata": b"", "value": b""}]), {}),
        ("decimal(9, 2)", pa.array([Decimal("1.000")], pa.decimal128(9, 3)), {}),
        ("decimal(9, 2)", pa.array([D], pa.decimal128(12, 2)), {}),
        ("decimal(9, 2)", pa.array([1], pa.int32()), {}),
        ("int", pa.array([[1]], pa.list_(pa.int32())), {}),
    ],
)
def test_what_another_writer_may_have_made_of_it(tmp_path: Path, type_: str, values: pa.Array, options: dict[str, Any]) -> None:
    file = written(tmp_path / "f.parquet", values, **options)
    assert exact_columns(file, {1: type_}, set()) is None
    assert exact_columns(file, {2: "int"}, set()) is not None, "a column that the query does not read"


def test_a_file_without_field_ids(tmp_path: Path) -> None:
    """Its columns are found by their names, or by their places: readers do not agree."""
    assert exact_columns(written(tmp_path / "f.parquet", pa.array([1], pa.int32()), id_=None), {1: "int"}, set()) is None
    assert exact_columns(written(tmp_path / "f.parquet", pa.array([1], pa.int32()), id_=None), {2: "int"}, set()) is None


def test_a_column_that_a_file_lacks_may_be_its_partition(tmp_path: Path) -> None:
    file = written(tmp_path / "f.parquet", pa.array([1], pa.int32()))
    assert exact_columns(file, {2: "int"}, set()) is not None
    assert exact_columns(file, {2: "int"}, {2}) is None
