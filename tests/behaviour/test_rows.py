"""Seeds: replacing and reading rows."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from behaviour.world import World, layout, name
from mvbuild.ports.catalog import CatalogError

SEED = name("seeds.countries")


def test_create_and_replace(world: World) -> None:
    wanted = layout(code="string", n="int")
    first = world.catalog.replace_rows(SEED, wanted, {"code": ["de", "fr"], "n": [1, None]}, {"hash": "a"})
    assert world.catalog.files.rows(first, 9) == (("code", "n"), [("de", 1), ("fr", None)])
    second = world.catalog.replace_rows(SEED, wanted, {"code": ["it"], "n": [3]}, {"hash": "b"})
    assert world.catalog.files.rows(second, 9) == (("code", "n"), [("it", 3)])
    assert world.catalog.files.rows(first, 1)[0] == ("code", "n")
    assert (first.properties["hash"], second.properties["hash"]) == ("a", "b")
    assert (len(first.snapshots), len(second.snapshots)) == (1, 2)
    assert second.current_snapshot
    assert second.current_snapshot.parent_id == first.current_snapshot_id
    assert second.current_snapshot.operation == "overwrite"
    assert second.schemas == first.schemas
    assert world.catalog.load([SEED])[SEED] == second


def test_evolve(world: World) -> None:
    first = world.catalog.replace_rows(SEED, layout(a="int", b="string", c="string"), {"a": [1], "b": ["x"], "c": ["y"]}, {})
    second = world.catalog.replace_rows(
        SEED, layout(c="date", a="long", d="boolean"), {"c": [dt.date(2026, 1, 2)], "a": [2], "d": [True]}, {}
    )
    assert world.catalog.files.rows(second, 9) == (("c", "a", "d"), [(dt.date(2026, 1, 2), 2, True)])
    assert len(second.snapshots) == len(first.snapshots) + 1
    assert [f["id"] for f in second.schema["fields"]] == [4, 1, 5]
    assert second.current_snapshot
    assert second.current_snapshot.schema_id == second.current_schema_id


def test_empty(world: World) -> None:
    first = world.catalog.replace_rows(SEED, layout(a="int"), {"a": []}, {})
    assert first.current_snapshot_id is not None
    assert world.catalog.files.rows(first, 9) == (("a",), [])
    second = world.catalog.replace_rows(SEED, layout(a="int"), {"a": [1]}, {})
    third = world.catalog.replace_rows(SEED, layout(a="int"), {}, {})
    assert third.current_snapshot_id != second.current_snapshot_id
    assert world.catalog.files.rows(third, 9)[1] == []


def test_types_and_limit(world: World) -> None:
    values = {
        "d": [Decimal("1.50"), Decimal("-2.25")],
        "t": [dt.datetime(2026, 1, 2, 3, 4, 5), None],
        "f": [0.5, 1.5],
        "s": ["a", "b"],
    }
    state = world.catalog.replace_rows(SEED, layout(d="decimal(9, 2)", t="timestamp", f="double", s="string"), values, {})
    assert world.catalog.files.rows(state, 1) == (("d", "t", "f", "s"), [(Decimal("1.50"), dt.datetime(2026, 1, 2, 3, 4, 5), 0.5, "a")])
    assert world.catalog.files.rows(state, 0)[1] == []


def test_wrong_columns(world: World) -> None:
    with pytest.raises(CatalogError, match="no column 'z'"):
        world.catalog.replace_rows(SEED, layout(a="int"), {"z": [1]}, {})


def test_wrong_values(sql_world: World) -> None:
    with pytest.raises(CatalogError, match="column 'a'"):
        sql_world.catalog.replace_rows(SEED, layout(a="int"), {"a": ["x"]}, {})
