"""Two tables or views that swap their names: each query reads the other one, at a snapshot that the record has."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvbuild.freshness.rules import judge
from mvbuild.ports.states import ViewState
from unit.freshness.foreign_views import write_view
from unit.worlds import Shop, base_table, name, shop

FORMATS = ("table-properties", "metadata-file")


def made(root: Path, storage: str, query: str) -> Shop:
    found = shop(root, {"mvbuild.yml": f"name: shop\nmodels: {{+storage: {{format: {storage}}}}}\n", "models/m.sql": query})
    base_table(found.catalog, "raw.more")
    return found


def swap(of: Shop, one: str, other: str, third: str = "") -> None:
    """As three statements ALTER ... RENAME TO do. With a third one, each gets the name of the next."""
    pointers = of.catalog._pointers._found  # type: ignore[attr-defined]
    keys = [("raw", text) for text in (one, other, third) if text]
    before = [pointers[key] for key in keys]
    pointers.update(zip(keys, [*before[1:], before[0]], strict=True))


def codes(of: Shop) -> list[str]:
    return [r.code for r in judge(of.world())["model.shop.m"].reasons]


@pytest.mark.parametrize("storage", FORMATS)
def test_tables(storage: str, tmp_path: Path) -> None:
    of = made(tmp_path, storage, "SELECT id FROM raw.orders WHERE id NOT IN (SELECT id FROM raw.more)\n")
    of.run()
    swap(of, "orders", "more")
    assert codes(of) == ["base-table-not-recorded"] * 2
    (step,) = of.plan().steps
    assert step.strategy == "full"
    of.run()
    assert codes(of) == []


def test_three_tables(tmp_path: Path) -> None:
    of = made(tmp_path, FORMATS[0], "SELECT id FROM raw.orders EXCEPT SELECT id FROM raw.more EXCEPT SELECT id FROM raw.third\n")
    base_table(of.catalog, "raw.third")
    of.run()
    swap(of, "orders", "more", "third")
    assert codes(of) == ["base-table-not-recorded"] * 3


def test_a_table_that_takes_the_name_of_one_that_is_gone(tmp_path: Path) -> None:
    of = made(tmp_path, FORMATS[0], "SELECT id FROM raw.orders WHERE id NOT IN (SELECT id FROM raw.more)\n")
    of.run()
    pointers = of.catalog._pointers._found  # type: ignore[attr-defined]
    pointers["raw", "more"] = pointers["raw", "orders"]
    assert codes(of) == ["base-table-recreated"]


@pytest.mark.parametrize("storage", FORMATS)
def test_views(storage: str, tmp_path: Path) -> None:
    of = made(tmp_path, storage, "SELECT 1 AS n, id FROM raw.low UNION ALL SELECT 2 AS n, id FROM raw.high\n")
    for view, where in (("low", "id < 2"), ("high", "id >= 2")):
        write_view(of, f"raw.{view}", f"SELECT id FROM raw.orders WHERE {where}", namespace=("raw",))
    of.run()
    assert codes(of) == []
    swap(of, "low", "high")
    assert isinstance(of.catalog.load([name("raw.low")])[name("raw.low")], ViewState)
    assert codes(of) == ["child-view-not-recorded"] * 2
