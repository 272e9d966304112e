"""The rows of a change are read once, with the columns of all MVs of a plan."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from mvbuild.incremental.samples import shape
from mvbuild.refresh import shared_rows
from mvbuild.refresh.shared_rows import SharedRows

CHANGE: Any = SimpleNamespace(table=SimpleNamespace(uuid="u", identifier="t", current_schema_id=0), old=1, new=2)
OTHER: Any = SimpleNamespace(table=CHANGE.table, old=2, new=3)


class Source:
    """Reads everything, except columns in `refused`."""

    def __init__(self, refused: str = "") -> None:
        self.refused = refused
        self.read: list[tuple[str, ...]] = []

    def reads_here(self, change: Any, columns: Any) -> bool:
        return self.refused not in columns

    def net_rows(self, change: Any, columns: Any) -> Any:
        self.read.append(tuple(columns))
        return SimpleNamespace(plus=SimpleNamespace(count=3), minus=SimpleNamespace(count=2))


def planned(*queries: str, is_incremental: bool = True) -> SharedRows:
    rows = SharedRows()
    choices: list[Any] = [SimpleNamespace(shape=shape(sql), is_incremental=is_incremental, changes={0: CHANGE}) for sql in queries]
    rows.expect(choices)
    return rows


TWO = ("SELECT id, status FROM {orders}", "SELECT customer_id, count(*) AS n FROM {orders} GROUP BY customer_id")


def test_all_columns_are_read_once() -> None:
    rows, source = planned(*TWO), Source()
    first = rows.of(source, CHANGE, ["id", "status"])  # type: ignore[arg-type]
    assert rows.of(source, CHANGE, ["customer_id"]) is first  # type: ignore[arg-type]
    assert source.read == [("customer_id", "id", "status")]
    assert rows.of(source, OTHER, ["id"]) is not first  # type: ignore[arg-type]


def test_columns_that_only_the_engine_reads_are_left_out() -> None:
    rows, source = planned(*TWO), Source(refused="status")
    assert rows.of(source, CHANGE, ["id", "status"]) is None  # type: ignore[arg-type]
    assert rows.of(source, CHANGE, ["customer_id"]) is not None  # type: ignore[arg-type]
    assert source.read == [("customer_id",)]


def test_a_full_refresh_reads_no_change() -> None:
    rows, source = planned(*TWO, is_incremental=False), Source()
    rows.of(source, CHANGE, ["id"])  # type: ignore[arg-type]
    assert source.read == [("id",)]


def test_many_rows_are_not_kept(monkeypatch: Any) -> None:
    monkeypatch.setattr(shared_rows, "MAX_KEPT", 4)
    rows, source = planned(), Source()
    for _ in range(2):
        assert rows.of(source, CHANGE, ["id"]) is not None  # type: ignore[arg-type]
    assert len(source.read) == 2
