"""Which rows of a large table are read in this process: those within bounds that a statement requires."""

from __future__ import annotations

from datetime import date
from types import SimpleNamespace
from typing import Any

import pytest
from sqlglot import exp

from mvbuild.incremental.algebra import Filter, Ref, Relation, Scan
from mvbuild.incremental.bounds import Bounds, bounds_of_range
from mvbuild.incremental.emit import sql_of
from mvbuild.ports.changes import ValueRange
from mvbuild.refresh.near_rows import LITTLE, NearRows, ranges


def parsed(sql: str) -> exp.Expr:
    return exp.condition(sql, dialect="spark")


def bounds(low: Any, high: Any, *, has_null: bool = False, values: tuple[Any, ...] = ()) -> Bounds:
    type_ = "date" if isinstance(low, date) else "long"
    found = bounds_of_range(ValueRange(type=type_, low=low, high=high, has_null=has_null, values=values))
    assert found is not None
    return found


def required(found: Bounds, *, null_matches: bool = False) -> list[tuple[str, Any, Any]]:
    condition = found.holds(exp.column("k"), null_matches=null_matches)
    assert condition is not None
    return list(ranges(condition))


def test_bounds_are_understood() -> None:
    assert required(bounds(3, 7)) == [("k", 3, 7)]
    assert required(bounds(-3, 7, values=(7, -3, 1))) == [("k", -3, 7)]
    days = date(2026, 1, 2), date(2026, 3, 4)
    assert required(bounds(*days)) == [("k", *days)]
    assert required(bounds(3, 7, has_null=True)) == [("k", 3, 7)]
    assert required(bounds(3, 7, has_null=True), null_matches=True) == [], "rows with NULL match too"


def test_the_ends_of_several_terms_are_understood() -> None:
    least = "LEAST(CAST('3' AS BIGINT), CAST('1' AS BIGINT))"
    greatest = "GREATEST(CAST('5' AS BIGINT), CAST('9' AS BIGINT))"
    assert list(ranges(parsed(f"a > 1 AND k BETWEEN {least} AND {greatest}"))) == [("k", 1, 9)]
    mixed = "LEAST(CAST('3' AS BIGINT), CAST('2026-01-01' AS DATE))"
    assert list(ranges(parsed(f"k BETWEEN {mixed} AND {greatest}"))) == []


@pytest.mark.parametrize(
    "condition",
    [
        "NOT k BETWEEN CAST('1' AS INT) AND CAST('2' AS INT)",
        "k BETWEEN CAST('1' AS INT) AND CAST('2' AS INT) OR a = 1",
        "k + 1 BETWEEN CAST('1' AS INT) AND CAST('2' AS INT)",
        "k BETWEEN CAST('1.5' AS INT) AND CAST('2' AS INT)",
        "k BETWEEN CAST('1' AS DECIMAL(5, 1)) AND CAST('2' AS DECIMAL(5, 1))",
        "k BETWEEN CAST('x' AS DATE) AND CAST('y' AS DATE)",
        "k BETWEEN a AND b",
        "k IN (SELECT 1)",
        "k NOT IN (CAST('1' AS INT))",
    ],
)
def test_other_conditions_are_not(condition: str) -> None:
    assert list(ranges(parsed(condition))) == []


class Changes:
    """Ten rows for each range, unless they would be too many; remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.found: list[int] = []
        """The snapshots whose files were asked for."""

    def between(self, table: Any, old: int, new: int) -> Any:
        self.found.append(new)
        return SimpleNamespace(old=old, new=new, table=table)

    def rows_within(self, change: Any, columns: Any, wanted: Any) -> Any:
        column, found = wanted
        self.asked.append((change.new, columns, column, found.low, found.high))
        return SimpleNamespace(column_names=list(columns)) if found.high < 100 else None


def reader(changes: Changes, *, bytes_: int = LITTLE, travel: Any = None, files: int = 3) -> NearRows:
    fields = [{"name": "k", "type": "long"}, {"name": "d", "type": "date"}, {"name": "t", "type": "string"}]
    snapshot = SimpleNamespace(summary={"total-data-files": str(files)})
    pin = SimpleNamespace(table=SimpleNamespace(snapshots={1: snapshot, 2: snapshot}))
    one: Any = SimpleNamespace(leaf=SimpleNamespace(travel=travel), bytes=bytes_, schema={"fields": fields}, pin=pin, old=1, new=2)
    return NearRows(changes, [one], lambda rows: Ref(f"near_{len(changes.asked)}", tuple(rows.column_names)))  # type: ignore[arg-type]


def asked(condition: str, version: Any = "new") -> Relation:
    return Filter(Scan(0, (("a", "k"), ("b", "d"), ("c", "k")), version), parsed(condition))


IN_RANGE = "a BETWEEN CAST('1' AS BIGINT) AND CAST('9' AS BIGINT)"


def test_the_rows_have_the_names_of_the_scan_and_the_condition_remains() -> None:
    changes = Changes()
    found = reader(changes).of(asked(f"{IN_RANGE} AND b IS NULL"))
    assert changes.asked == [(2, ("d", "k"), "k", 1, 9)]
    sql = sql_of(found, lambda read: read.name)  # type: ignore[union-attr]
    assert "near_1" in sql
    assert "BETWEEN" in sql
    assert found.columns == ("a", "b", "c")


def test_the_same_rows_are_read_once() -> None:
    changes = Changes()
    near = reader(changes)
    near.of(asked(IN_RANGE))
    near.of(asked(f"b IS NULL AND {IN_RANGE}"))
    assert len(changes.asked) == 1
    near.of(asked(IN_RANGE, "old"))
    assert [snapshot for snapshot, *_ in changes.asked] == [2, 1]


def test_another_range_is_tried_if_one_has_too_many_rows() -> None:
    changes = Changes()
    near = reader(changes)
    wide = "a BETWEEN CAST('1' AS BIGINT) AND CAST('900' AS BIGINT)"
    assert near.of(asked(wide)).columns == ("a", "b", "c")
    assert "near" in sql_of(near.of(asked(f"{wide} AND {IN_RANGE.replace('a ', 'c ')}")), lambda read: getattr(read, "name", "table"))
    assert len(changes.asked) == 2
    assert len(changes.found) == 1, "its files are looked up once"


@pytest.mark.parametrize("how", [{"bytes_": LITTLE - 1}, {"travel": "a version"}, {"files": 2001}, {"files": 0}])
def test_tables_that_are_left_to_the_engine(how: dict[str, Any]) -> None:
    changes = Changes()
    scan = asked(IN_RANGE)
    assert reader(changes, **how).of(scan) is scan
    assert changes.asked == []


def test_changes_are_not_read_again() -> None:
    changes = Changes()
    scan = asked(IN_RANGE, "minus")
    assert reader(changes).of(scan) is scan
