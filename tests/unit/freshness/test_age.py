"""an MV is as old as the oldest data that it was computed from: in status, in plans and runs, and for readers."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvbuild.diagnostics import ProjectError
from mvbuild.freshness.model import Freshness
from mvbuild.freshness.observed import World
from mvbuild.freshness.rules import judge
from mvbuild.plan.build import build_plan
from mvbuild.serve.policy import choose
from unit.serve.readers import choice, lagging, read, sources
from unit.worlds import Shop, append, name, shop

HOUR, MINUTE, SECOND = 3_600_000, 60_000, 1_000


def chain(root: Path, *settings: str, view: bool = False) -> Shop:
    """raw.orders -> MV a -> MV b -> MV c ..., with settings for each; with a plain view between the first two."""
    files, names = {"mvbuild.yml": "name: shop\n"}, "abcdef"
    for at, config in enumerate(settings):
        reads = "raw.orders" if at == 0 else f"{{{{ ref('{'v' if view and at == 1 else names[at - 1]}') }}}}"
        files[f"models/{names[at]}.sql"] = f"{{{{ config({config}) }}}}\nSELECT id FROM {reads}\n"
    if view:
        files["models/v.sql"] = "{{ config(materialized='view') }}\nSELECT id FROM {{ ref('a') }}\n"
    made = shop(root, files)
    made.run()
    return made


def window(text: str, more: str = "") -> str:
    return f"freshness={{'max_staleness': '{text}'}}{', ' + more if more else ''}"


def behind(of: Shop, ms: int) -> World:
    """After an append to raw.orders, so much later than what was read."""
    append(of.catalog, "raw.orders")
    return lagging(of.world(), "raw.orders", ms)


def answers(world: World) -> dict[str, Freshness]:
    return {id.rpartition(".")[2]: found for id, found in judge(world).items()}


def states(world: World) -> dict[str, str]:
    return {model: found.state for model, found in answers(world).items()}


def actions(world: World, *models: str) -> dict[str, str]:
    chosen = frozenset(f"model.shop.{m}" for m in models)
    return {s.node.rpartition(".")[2]: s.action for s in build_plan(world, chosen).steps}


@pytest.mark.parametrize("view", [False, True])
def test_a_window_does_not_pass_to_what_reads_the_mv(tmp_path: Path, view: bool) -> None:
    of = chain(tmp_path, window("1h"), window("1s", "when_stale='fail'"), view=view)
    world = behind(of, HOUR)
    assert states(world) == {"a": "fresh", "b": "stale"}
    (reason,) = answers(world)["b"].reasons
    assert (reason.code, reason.table, reason.lag_ms) == ("upstream-behind", name("main.a"), HOUR)
    with pytest.raises(ProjectError) as caught:
        choice(world, "b")
    assert [d.code for d in caught.value.diagnostics] == ["stale"]
    assert choice(world, "a").served[0].source == "storage"


@pytest.mark.parametrize(("ms", "state"), [(0, "fresh"), (MINUTE, "fresh"), (MINUTE + 1, "stale"), (HOUR, "stale")])
def test_the_edge_is_inside_through_several_mvs(tmp_path: Path, ms: int, state: str) -> None:
    of = chain(tmp_path, window("1h"), window("2h"), window("3h"), window("1m"))
    assert states(behind(of, ms)) == {"a": "fresh", "b": "fresh", "c": "fresh", "d": state}


def test_an_mv_without_a_window_has_to_be_exact(tmp_path: Path) -> None:
    of = chain(tmp_path, window("1h"), "tags=[]")
    assert states(behind(of, 0)) == {"a": "fresh", "b": "stale"}


def test_an_old_snapshot_of_an_mv_is_as_old_as_what_it_was_made_of(tmp_path: Path) -> None:
    """b read the first refresh of a, which was made long before its storage got another one."""
    of = chain(tmp_path, "tags=[]", window("1m"))
    append(of.catalog, "raw.orders")
    of.run("a")
    storages = lagging(of.world(), "main.a__storage", SECOND)
    assert states(storages)["b"] == "fresh"
    world = lagging(storages, "raw.orders", HOUR)
    assert states(world) == {"a": "fresh", "b": "stale"}
    assert answers(world)["b"].has("base-table-changed")
    assert actions(world, "a", "b") == {"a": "reuse", "b": "refresh"}
    assert choice(lagging(storages, "raw.orders", SECOND), "b").served[0].behind_ms == SECOND
    assert states(lagging(storages, "raw.orders", MINUTE))["b"] == "fresh"


def test_a_run_refreshes_what_a_stricter_mv_reads_and_ends(tmp_path: Path) -> None:
    of = chain(tmp_path, window("1h"), window("1h"), "tags=[]")
    append(of.catalog, "raw.orders")
    assert of.actions() == {"a": "refresh", "b": "refresh", "c": "refresh"}
    reasons = {s.node: [r.code for r in s.reasons] for s in of.plan().steps}
    assert reasons["model.shop.a"] == ["needed-fresher", "within-window"]
    assert reasons["model.shop.b"] == ["needed-fresher"]
    assert reasons["model.shop.c"] == ["upstream-behind"]
    assert of.statuses() == {"a": "success", "b": "success", "c": "success"}
    assert set(states(of.world()).values()) == {"fresh"}
    assert set(of.statuses().values()) == {"reused"}


@pytest.mark.parametrize("selected", [("c",), ("b", "c"), ("a", "c")])
def test_what_cannot_become_newer_is_left_alone_and_says_why(tmp_path: Path, selected: tuple[str, ...]) -> None:
    of = chain(tmp_path, window("1h"), window("1h"), "tags=[]")
    append(of.catalog, "raw.orders")
    of.engine.executed.clear()
    for _ in range(2):
        assert set(of.statuses(*selected).values()) == {"reused"}
    assert of.engine.executed == []
    assert answers(of.world())["c"].has("upstream-behind")


def test_a_window_that_is_wide_enough_leaves_all_alone(tmp_path: Path) -> None:
    of = chain(tmp_path, window("1h"), window("1h"))
    append(of.catalog, "raw.orders")
    assert set(of.actions().values()) == {"reuse"}


def test_readers_of_a_stricter_mv_get_the_query_of_what_is_too_old_for_it(tmp_path: Path) -> None:
    of = chain(tmp_path, window("1h"), window("1m"), window("1s"))
    world = behind(of, 10 * SECOND)
    assert states(world) == {"a": "fresh", "b": "fresh", "c": "stale"}
    assert sources(world, "c") == {"c": "query", "b": "query", "a": "query"}
    assert sources(world, "b") == {"b": "storage"}
    assert sources(world, "b", "c") == sources(world, "c", "b") == {"c": "query", "b": "query", "a": "query"}


def test_what_the_engine_gets_for_a_reader_of_a_stricter_mv(tmp_path: Path) -> None:
    of = chain(tmp_path, window("1h"), "tags=[]")
    append(of.catalog, "raw.orders")
    assert "raw.orders VERSION AS OF" in read(of, "b").sql
    assert "main.a__storage VERSION AS OF" in read(of, "a").sql


def test_two_readers_of_one_mv_and_another_table_that_is_new(tmp_path: Path) -> None:
    of = shop(
        tmp_path,
        {
            "mvbuild.yml": "name: shop\n",
            "models/a.sql": f"{{{{ config({window('1h')}) }}}}\nSELECT id FROM raw.orders\n",
            "models/lax.sql": f"{{{{ config({window('2h')}) }}}}\nSELECT id FROM {{{{ ref('a') }}}}\n",
            "models/strict.sql": f"{{{{ config({window('1m')}) }}}}\nSELECT a.id FROM {{{{ ref('a') }}}} a JOIN raw.customers USING (id)\n",
        },
    )
    of.run()
    world = behind(of, 10 * MINUTE)
    assert states(world) == {"a": "fresh", "lax": "fresh", "strict": "stale"}
    assert actions(world, "a", "lax") == {"a": "reuse", "lax": "reuse"}
    assert actions(world, "a", "lax", "strict") == {"a": "refresh", "lax": "reuse", "strict": "refresh"}
    append(of.catalog, "raw.customers")
    newer = lagging(of.world(), "raw.orders", 10 * MINUTE)
    both = lagging(newer, "raw.customers", HOUR)
    assert actions(both, "strict") == {"strict": "refresh"}
    assert choose(both, judge(both), ["model.shop.lax"], 0).served[0].behind_ms == 10 * MINUTE
