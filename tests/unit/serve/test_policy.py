"""World + settings -> storage, query or refusal, for every combination."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mvbuild.diagnostics import ProjectError
from unit.serve.readers import BASE, chain, choice, lagging, sources, without
from unit.worlds import append, base_table, name, shop

POLICIES = ("query", "serve", "fail")


def policy(word: str) -> str:
    return f"when_stale='{word}'"


def refused(error: ProjectError) -> list[str]:
    """The models that fail, by the messages."""
    assert {d.code for d in error.diagnostics} == {"stale"}
    return [d.message.split("'")[1] for d in error.diagnostics]


@pytest.mark.parametrize("when_stale", POLICIES)
def test_fresh_is_served_from_storage_whatever_the_policy(tmp_path: Path, when_stale: str) -> None:
    of = chain(tmp_path, policy(when_stale), policy(when_stale))
    assert sources(of.world(), "a") == {"a": "storage"}
    assert sources(of.world(), "b") == {"b": "storage"}


EDGES = [
    (9_999, "query", "storage"),
    (10_000, "query", "storage"),
    (10_001, "query", "query"),
    (9_999, "serve", "storage"),
    (10_000, "serve", "storage"),
    (10_001, "serve", "storage"),
    (9_999, "fail", "storage"),
    (10_000, "fail", "storage"),
    (10_001, "fail", None),
]


@pytest.mark.parametrize(("ms", "when_stale", "source"), EDGES)
@pytest.mark.parametrize("table", ["raw.orders", "raw.customers"])
def test_the_window_of_each_base_table(tmp_path: Path, table: str, ms: int, when_stale: str, source: str | None) -> None:
    settings = f"when_stale='{when_stale}', freshness={{'max_staleness': '10s'}}"
    both = {"models/mart/m.sql": f"{{{{ config({settings}) }}}}\nSELECT id FROM raw.orders JOIN raw.customers USING (id)\n"}
    of = shop(tmp_path, {"mvbuild.yml": BASE["mvbuild.yml"], **both})
    of.run()
    append(of.catalog, table)
    world = lagging(of.world(), table, ms)
    if source is None:
        with pytest.raises(ProjectError) as refusal:
            choice(world, "m")
        assert refused(refusal.value) == ["m"]
        return
    (served,) = choice(world, "m").served
    assert served.source == source
    assert served.behind_ms == ms
    assert served.state == ("fresh" if ms <= 10_000 else "stale")


def test_one_table_inside_the_window_does_not_excuse_the_other(tmp_path: Path) -> None:
    of = shop(
        tmp_path,
        {
            "mvbuild.yml": BASE["mvbuild.yml"],
            "models/mart/m.sql": "{{ config(freshness={'max_staleness': '10s'}) }}\nSELECT id FROM raw.orders JOIN raw.customers USING (id)\n",
        },
    )
    of.run()
    append(of.catalog, "raw.orders")
    append(of.catalog, "raw.customers")
    inside = lagging(lagging(of.world(), "raw.orders", 10_000), "raw.customers", 1)
    assert sources(inside, "m") == {"m": "storage"}
    (served,) = choice(inside, "m").served
    assert served.behind_ms == 10_000
    assert sources(lagging(inside, "raw.customers", 10_001), "m") == {"m": "query"}


UNKNOWN = [
    ("query", False, "query"),
    ("serve", False, "storage"),
    ("fail", False, None),
    ("query", True, "storage"),
    ("serve", True, "storage"),
    ("fail", True, "storage"),
]


@pytest.mark.parametrize(("when_stale", "serve_unknown", "source"), UNKNOWN)
def test_unknown_is_as_stale_unless_it_is_allowed(tmp_path: Path, when_stale: str, serve_unknown: bool, source: str | None) -> None:
    of = chain(tmp_path, f"{policy(when_stale)}, serve_unknown={serve_unknown}")
    world = without(of.world(), "raw.orders")
    if source is None:
        with pytest.raises(ProjectError, match="'a' is unknown"):
            choice(world, "a")
    else:
        assert sources(world, "a") == {"a": source}
        assert choice(world, "a").served[0].state == "unknown"


@pytest.mark.parametrize("when_stale", ["query", "serve"])
def test_what_was_never_built_has_no_storage_to_serve(tmp_path: Path, when_stale: str) -> None:
    of = shop(tmp_path, {**BASE, "models/mart/a.sql": f"{{{{ config({policy(when_stale)}) }}}}\n{BASE['models/mart/a.sql']}"})
    assert sources(of.world(), "a") == {"a": "query"}
    base_table(of.catalog, "mart.a__storage", rows=None)  # what a first refresh leaves that was killed
    assert sources(of.world(), "a") == {"a": "query"}
    (served,) = choice(of.world(), "a").served
    assert (served.age_ms, served.behind_ms, served.unseen_ms, served.refreshed_at_ms) == (None, None, None, None)


def test_what_was_never_built_fails_where_it_should(tmp_path: Path) -> None:
    of = shop(tmp_path, {**BASE, "models/mart/a.sql": f"{{{{ config({policy('fail')}) }}}}\n{BASE['models/mart/a.sql']}"})
    with pytest.raises(ProjectError, match="never refreshed"):
        choice(of.world(), "a")


def test_rows_of_another_definition_or_of_another_writer_are_never_served(tmp_path: Path) -> None:
    of = chain(tmp_path, policy("serve"))
    append(of.catalog, "raw.orders")
    assert sources(of.world(), "a") == {"a": "storage"}
    append(of.catalog, "mart.a__storage")
    assert sources(of.world(), "a") == {"a": "query"}
    of = chain(tmp_path / "edited", policy("serve"))
    of.write({"models/mart/a.sql": f"{{{{ config({policy('serve')}) }}}}\nSELECT id + 1 AS id FROM raw.orders\n"})
    assert sources(of.world(), "a") == {"a": "query"}


OF_ORDERS = {
    # raw.orders changed: a is stale, and b by it.
    ("query", "query"): {"b": "query", "a": "query"},
    ("query", "serve"): {"b": "storage"},
    ("query", "fail"): ["b"],
    ("serve", "query"): {"b": "query", "a": "storage"},
    ("serve", "serve"): {"b": "storage"},
    ("serve", "fail"): ["b"],
    ("fail", "query"): ["a"],
    ("fail", "serve"): {"b": "storage"},
    ("fail", "fail"): ["b"],
}


@pytest.mark.parametrize(("policies", "expected"), OF_ORDERS.items())
def test_a_stale_mv_above_a_stale_mv(tmp_path: Path, policies: tuple[str, str], expected: dict[str, str] | list[str]) -> None:
    of = chain(tmp_path, policy(policies[0]), policy(policies[1]))
    append(of.catalog, "raw.orders")
    if isinstance(expected, list):
        with pytest.raises(ProjectError) as refusal:
            choice(of.world(), "b")
        assert refused(refusal.value) == expected
    else:
        assert sources(of.world(), "b") == expected


@pytest.mark.parametrize("above", POLICIES)
def test_a_fresh_mv_above_a_stale_one_is_read_from_its_storage(tmp_path: Path, above: str) -> None:
    of = chain(tmp_path, policy(above), policy("query"))
    append(of.catalog, "raw.customers")
    assert sources(of.world(), "b") == {"b": "query", "a": "storage"}
    assert choice(of.world(), "b").expanded == {"model.shop.b"}


def test_all_that_refuse_are_told_at_once(tmp_path: Path) -> None:
    more = {"models/mart/c.sql": "{{ config(when_stale='fail') }}\nSELECT id FROM raw.orders WHERE id > 1\n"}
    of = chain(tmp_path, policy("fail"), more=more)
    append(of.catalog, "raw.orders")
    with pytest.raises(ProjectError) as refusal:
        choice(of.world(), "b", "c")
    assert refused(refusal.value) == ["a", "c"]
    first = refusal.value.diagnostics[0]
    assert "raw.orders has new data" in first.message
    assert str(first.span) == "models/mart/a.sql:1:22"
    assert "mvbuild run --select +a" in first.help


def test_views_and_ephemeral_models_are_looked_through(tmp_path: Path) -> None:
    more = {
        "models/v.sql": "{{ config(materialized='view') }}\nSELECT id FROM {{ ref('a') }}\n",
        "models/e.sql": "{{ config(materialized='ephemeral') }}\nSELECT v.id FROM {{ ref('v') }} JOIN {{ ref('b') }} USING (id)\n",
    }
    of = chain(tmp_path, policy("serve"), more=more)
    append(of.catalog, "raw.orders")
    assert sources(of.world(), "e") == {"a": "storage", "b": "query"}


def test_how_old_it_is(tmp_path: Path) -> None:
    of = chain(tmp_path, policy("serve"), policy("serve"))
    (fresh,) = choice(of.world(), "b", now_ms=of.clock.at_ms + 5_000).served
    assert (fresh.refreshed_at_ms, fresh.age_ms, fresh.behind_ms, fresh.unseen_ms) == (of.clock.at_ms, 5_000, 0, 0)
    append(of.catalog, "raw.orders")
    append(of.catalog, "raw.orders")
    world = lagging(of.world(), "raw.orders", 60_000)
    orders = world.observed.table(name("raw.orders"))
    assert orders is not None
    first, second, third = sorted(orders.snapshots.values(), key=lambda s: s.sequence_number)
    (served,) = choice(world, "b", now_ms=third.timestamp_ms + 1_000).served
    assert [r.code for r in served.reasons] == ["upstream-stale"]
    # What its upstream has not seen it has not seen either.
    assert served.behind_ms == third.timestamp_ms - first.timestamp_ms
    assert served.unseen_ms == third.timestamp_ms + 1_000 - second.timestamp_ms


def test_a_compaction_is_nothing_unseen(tmp_path: Path) -> None:
    of = chain(tmp_path)
    append(of.catalog, "raw.orders", 0, operation="replace")
    (served,) = choice(lagging(of.world(), "raw.orders", 60_000), "a").served
    assert (served.source, served.behind_ms, served.unseen_ms) == ("storage", 0, 0)


def test_the_first_unseen_snapshot_may_be_gone(tmp_path: Path) -> None:
    of = chain(tmp_path, policy("serve"))
    append(of.catalog, "raw.orders")
    append(of.catalog, "raw.orders")
    world = of.world()
    orders = world.observed.table(name("raw.orders"))
    assert orders is not None
    kept = {i: s for i, s in orders.snapshots.items() if i == orders.current_snapshot_id}
    expired = replace(world, observed=world.observed.updated({name("raw.orders"): replace(orders, snapshots=kept)}))
    (served,) = choice(expired, "a").served
    assert [r.code for r in served.reasons] == ["snapshot-expired"]
    assert (served.behind_ms, served.unseen_ms) == (None, None)
