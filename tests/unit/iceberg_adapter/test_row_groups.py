"""The rows of a Parquet file in a range: only row groups that may have them are read, and hidden rows are left out."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow.parquet import ParquetFile, write_table

from mvbuild.adapters.iceberg.exact_files import Inexact
from mvbuild.adapters.iceberg.row_groups import Within, rows_within_range

NAMES = {1: "id", 2: "v"}
EPOCH = date(1970, 1, 1)


def file(folder: Path, ids: list[Any], rows: int = 10, type_: Any = None, **options: Any) -> ParquetFile:
    """`ids`, and the position of each row as `v`."""
    path = folder / "rows.parquet"
    table = pa.table({"id": pa.array(ids, type_ or pa.int64()), "v": pa.array(range(len(ids)), pa.int32())})
    write_table(table, path, row_group_size=rows, **options)
    return ParquetFile(path)


def near(of: ParquetFile, low: int, high: int, hidden: list[int] | None = None, values: int = 1000, bytes_: int = 100_000) -> list[Any]:
    within = Within(id=1, low=low, high=high, values=values, bytes=bytes_)
    found = rows_within_range(of, NAMES, within, None if hidden is None else np.array(hidden, dtype=np.int64))
    values: list[Any] = found.column("v").to_pylist()
    return values


@pytest.mark.parametrize("seed", range(30))
def test_are_those_that_a_filter_returns(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    number = random.choice([0, 1, 9, 10, 11, 95])
    ids = [random.choice([None, at, at + random.randrange(-5, 5)]) for at in range(number)]
    hidden = sorted(random.sample(range(number), random.choice([0, number // 3, number])))
    low = random.randrange(-5, 100)
    high = low + random.choice([-1, 0, 5, 50])
    wanted = [at for at, one in enumerate(ids) if one is not None and low <= one <= high and at not in hidden]
    assert near(file(tmp_path, ids), low, high, hidden) == wanted


def test_other_row_groups_are_not_read(tmp_path: Path) -> None:
    of = file(tmp_path, list(range(100)))
    assert near(of, 20, 29, values=20) == list(range(20, 30)), "two columns of one row group"
    with pytest.raises(Inexact):
        near(of, 20, 30, values=39)
    assert near(of, 200, 300, values=0, bytes_=0) == []
    with pytest.raises(Inexact):
        near(of, 20, 29, bytes_=50)
    without_statistics = file(tmp_path, list(range(100)), write_statistics=False)
    assert near(without_statistics, 20, 29, values=200) == list(range(20, 30))
    with pytest.raises(Inexact):
        near(without_statistics, 20, 29, values=199)


def test_long_texts_count_as_several_values(tmp_path: Path) -> None:
    table = pa.table({"id": pa.array(range(20), pa.int64()), "v": [f"{at}" * 800 for at in range(20)]})
    write_table(table, tmp_path / "texts.parquet", row_group_size=10, use_dictionary=False)
    of = ParquetFile(tmp_path / "texts.parquet")
    assert near(of, 3, 4, values=1500) == ["3" * 800, "4" * 800]
    with pytest.raises(Inexact):
        near(of, 3, 4, values=1000)


def test_dates_are_days(tmp_path: Path) -> None:
    days = [EPOCH + timedelta(days=at - 5) for at in range(20)]
    of = file(tmp_path, days, rows=4, type_=pa.date32())
    assert near(of, -3, 1, values=16) == [2, 3, 4, 5, 6]


def test_a_file_without_the_column_has_no_such_rows(tmp_path: Path) -> None:
    of = file(tmp_path, [1, 2, 3])
    found = rows_within_range(of, {2: "v"}, Within(id=1, low=0, high=9, values=0, bytes=0), None)
    assert (found.num_rows, found.column_names) == (0, ["v"])


def test_a_position_that_the_file_does_not_have(tmp_path: Path) -> None:
    with pytest.raises(Inexact):
        near(file(tmp_path, [1, 2, 3]), 0, 9, hidden=[3])
