"""Rows that two tables share are cancelled as often as both have them, but no rows that only look alike."""

from __future__ import annotations

import struct
from collections import Counter
from datetime import date, datetime, timezone
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mvbuild.adapters.iceberg import cancel
from mvbuild.adapters.iceberg.cancel import cancelled
from seeds import seeds

NAN = float("nan")
VALUES: dict[Any, list[Any]] = {
    pa.int32(): [0, 1, -1, 2**31 - 1],
    pa.int64(): [0, 1, 2**32, -(2**63)],
    pa.bool_(): [True, False],
    pa.float32(): [0.0, -0.0, NAN, 1.5],
    pa.float64(): [0.0, -0.0, NAN, float("inf"), 5e-324],
    pa.decimal128(9, 2): [Decimal("0.00"), Decimal("-0.01"), Decimal("1.00")],
    pa.decimal128(38, 0): [Decimal(0), Decimal(2**64), Decimal(2**65), Decimal(-1)],
    pa.date32(): [date(1970, 1, 1), date(2024, 2, 29), date(1, 1, 1)],
    pa.timestamp("us"): [datetime(1970, 1, 1), datetime(2024, 2, 29, 1, 2, 3, 4)],
    pa.timestamp("us", "UTC"): [datetime(1970, 1, 1, tzinfo=timezone.utc), datetime(2024, 2, 29, tzinfo=timezone.utc)],
    pa.string(): ["", "a", "A", "\u00e9", "e\u0301", "a\x00"],
    pa.large_string(): ["", "a", "b"],
    pa.binary(): [b"", b"\xff", b"\x00"],
}


@pytest.fixture(params=[1, 7, 1 << 16], autouse=True)
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are compared in blocks, which end inside of what is equal, and at its end."""
    monkeypatch.setattr(cancel, "_BLOCK", request.param)


def _bag(rows: pa.Table) -> Counter[tuple[Any, ...]]:
    """With floats as bits: 0.0 is -0.0 to Python, and no NaN is another."""
    columns = [[struct.pack("d", v) if isinstance(v, float) else v for v in column.to_pylist()] for column in rows.columns]
    return Counter(zip(*columns, strict=True))


def _drawn(random: Random, types: list[Any], rows: int) -> pa.Table:
    """In several chunks, some of which begin inside of what they are made of."""
    columns = {f"c{at}": pa.array([random.choice([*VALUES[of], None]) for _ in range(rows + 1)], of) for at, of in enumerate(types)}
    table = pa.table(columns)
    cut = random.randrange(1, rows + 1)
    return pa.concat_tables([table.slice(1, cut - 1), table.slice(cut)])


@pytest.mark.parametrize("seed", seeds(150))
def test_what_both_have_goes_from_both(seed: int) -> None:
    random = Random(seed)
    types = random.choices(list(VALUES), k=random.randrange(1, 4))
    plus, minus = (_drawn(random, types, random.randrange(1, 40)) for _ in range(2))
    came, went = cancelled(plus, minus)
    assert _bag(came) == _bag(plus) - _bag(minus)
    assert _bag(went) == _bag(minus) - _bag(plus)


@pytest.mark.parametrize("seed", seeds(20))
def test_rows_that_stand_as_they_stood(seed: int) -> None:
    """As a DELETE leaves them, in the order of the file; or as another engine writes them, in any order."""
    random = Random(seed)
    drawn = {"x": ["a", None], "zero": [0.0, -0.0, None]}
    old = pa.table({"id": [at // 3 for at in range(500)], **{name: random.choices(of, k=500) for name, of in drawn.items()}})
    begin = random.randrange(500)
    gone = set(range(begin, min(500, begin + 20))) | {random.randrange(500)}
    stays = [at for at in range(500) if at not in gone]
    if seed % 2:
        random.shuffle(stays)
    came, went = cancelled(old.take(stays), old)
    assert came.num_rows == 0
    assert _bag(went) == _bag(old.take(sorted(gone)))


@pytest.mark.parametrize("seed", seeds(20))
def test_rows_with_one_hash_are_not_taken_for_each_other(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cancel, "_hashes", lambda cells: np.zeros(len(cells[0]), dtype=np.uint64))
    random = Random(seed)
    plus, minus = (_drawn(random, [pa.int64(), pa.string()], 30) for _ in range(2))
    came, went = cancelled(plus, minus)
    # It may find fewer that are the same, and never one that is not.
    lefts, rights = _bag(plus) - _bag(came), _bag(minus) - _bag(went)
    assert lefts == rights
    assert _bag(plus) - lefts == _bag(came)


@pytest.mark.parametrize(("column", "value"), [("id", None), ("text", None), ("when", 1), ("zero", -0.0)])
def test_one_value_that_differs_is_found_in_any_column(column: str, value: Any) -> None:
    """The other rows are left out by their places, before anything is hashed."""
    rows = [{"id": at, "text": None if at % 3 else "x" * (at % 5), "when": None if at % 7 else at, "zero": 0.0} for at in range(100)]
    old = pa.Table.from_pylist(rows)
    new = pa.Table.from_pylist([*rows[:51], {**rows[51], column: value}, *rows[52:]])
    came, went = cancelled(new, old)
    assert (came.num_rows, went.num_rows) == (1, 1)
    assert went.to_pylist() == rows[51:52]


def test_nothing_on_one_side() -> None:
    rows = pa.table({"id": [1, 2]})
    assert cancelled(rows, rows.slice(0, 0)) == (rows, rows.slice(0, 0))
    assert [one.num_rows for one in cancelled(rows, rows)] == [0, 0]
