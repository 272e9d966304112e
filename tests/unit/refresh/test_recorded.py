"""World + MV -> the query and the snapshots of its last refresh, or why they are not available."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvbuild.freshness.pins import leaf_table
from mvbuild.refresh.recorded import Recorded, Unverifiable, recorded_state
from unit.worlds import Shop, base_table, name, shop


@pytest.fixture
def built(tmp_path: Path) -> Shop:
    made = shop(tmp_path)
    made.run()
    return made


def state(made: Shop, model: str) -> Recorded:
    world = made.world()
    return recorded_state(world, world.graph.model(f"model.shop.{model}"))


def pinned(made: Shop, model: str) -> dict[str, int]:
    graph = made.world().graph
    return {leaf_table(graph, leaf).name: pin.snapshot_id for leaf, pin in state(made, model).pins.items()}


def code(made: Shop, model: str) -> str:
    with pytest.raises(Unverifiable) as caught:
        state(made, model)
    return caught.value.reason.code


def test_snapshots_are_those_of_the_record(built: Shop) -> None:
    before = pinned(built, "monthly")
    assert before == {
        t: built.table(n).current_snapshot_id for t, n in (("daily__storage", "main.daily__storage"), ("customers", "raw.customers"))
    }
    built.catalog.append_snapshot(name("raw.customers"), {"id": [9]})
    built.catalog.append_snapshot(name("raw.orders"), {"id": [9]})
    built.run("daily")
    assert pinned(built, "monthly") == before
    assert pinned(built, "daily") == {"orders": built.table("raw.orders").current_snapshot_id}


def test_the_definition_is_that_of_the_record(built: Shop) -> None:
    built.write({"models/monthly.sql": "SELECT id + 1 AS id FROM raw.customers\n"})
    assert "JOIN" in state(built, "monthly").query.sql.text
    built.write({"models/monthly.sql": "SELECT id /* the same */ FROM daily JOIN raw.customers USING (id)\n"})
    assert "the same" in state(built, "monthly").query.sql.text


def test_what_stands_in_the_way(built: Shop) -> None:
    built.write({"models/new.sql": "SELECT id FROM raw.orders\n"})
    assert code(built, "new") == "never-refreshed"
    built.write({"models/orders_clean.sql": "{{ config(materialized='view') }}\nSELECT id FROM raw.orders WHERE id > 1\n"})
    assert code(built, "daily") == "child-view-edited"
    built.run("orders_clean")
    assert code(built, "daily") == "child-view-changed"


def test_a_clock_is_noted(tmp_path: Path) -> None:
    made = shop(tmp_path, {"mvbuild.yml": "name: shop\n", "models/a.sql": "SELECT id, now() AS at FROM raw.orders\n"})
    made.run()
    assert [n.code for n in state(made, "a").notes] == ["nondeterministic"]


def test_a_version_that_the_user_chose(tmp_path: Path) -> None:
    made = shop(tmp_path, {"mvbuild.yml": "name: shop\n"})
    first = made.table("raw.orders").current_snapshot_id
    made.catalog.append_snapshot(name("raw.orders"), {"id": [9]})
    made.write({"models/a.sql": f"SELECT o.id FROM raw.orders VERSION AS OF {first} o JOIN raw.orders n USING (id)\n"})
    made.run()
    now = made.table("raw.orders").current_snapshot_id
    made.catalog.append_snapshot(name("raw.orders"), {"id": [10]})
    assert sorted(p.snapshot_id for p in state(made, "a").pins.values()) == sorted([first, now])  # type: ignore[type-var]


def test_another_table_under_the_name(built: Shop) -> None:
    other = Shop(built.root)
    base_table(other.catalog, "raw.customers")
    assert code(other, "monthly") == "never-refreshed"
