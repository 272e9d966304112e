"""Runs on MVs in both storage formats, in memory: what is recorded, what a change of configuration does, history and rollback."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvbuild.formats import metadata_file, properties
from mvbuild.freshness.history import history
from mvbuild.freshness.rules import judge
from mvbuild.ports.catalog import TableState, ViewState
from mvbuild.refresh.rollback import rollback
from unit.worlds import PROJECT, Shop, append, name, shop

FILE = {**PROJECT, "mvbuild.yml": "name: shop\nmodels: {+storage: {format: metadata-file}, +refresh_history: 3}\n"}


@pytest.fixture(params=["table-properties", "metadata-file"])
def built(request: pytest.FixtureRequest, tmp_path: Path) -> Shop:
    made = shop(tmp_path, FILE if request.param == "metadata-file" else PROJECT)
    assert set(made.statuses().values()) == {"success"}
    return made


def storage(of: Shop, model: str) -> TableState:
    world = of.world()
    found = world.observed.table(world.graph.model(f"model.shop.{model}").storage)
    assert found is not None
    return found


def configure(of: Shop, model: str, yaml: str, description: str = "") -> None:
    of.write({f"models/{model}.yml": f"models:\n  - name: {model}\n    description: '{description}'\n    config: {yaml}\n"})


def test_what_was_built_is_fresh_and_a_second_run_reuses_it(built: Shop) -> None:
    assert set(built.statuses().values()) == {"reused"}
    assert {f.state for f in judge(built.world()).values()} == {"fresh"}


def test_a_metadata_file_has_the_record_and_no_storage_stands_beside_it(tmp_path: Path) -> None:
    made = shop(tmp_path, FILE)
    made.run()
    view = made.catalog.load([name("main.daily")])[name("main.daily")]
    assert isinstance(view, ViewState)
    assert view.storage is not None
    assert view.storage.mv is not None
    record = metadata_file.current_record(view.storage.mv)
    assert record is not None
    assert [t.name for t in record.base_tables] == ["orders"]
    assert record.child_views[0].name == "orders_clean"
    assert properties.STORAGE_TABLE not in view.properties
    assert name("main.daily__storage") not in made.catalog.load([name("main.daily__storage")])
    assert made.catalog.list_names(("mvbuild_scratch",)) == ()


def test_a_downstream_mv_records_the_upstream_and_is_refreshed_with_it(built: Shop) -> None:
    append(built.catalog, "raw.orders")
    assert built.statuses() == {"orders_clean": "reused", "daily": "success", "monthly": "success"}
    upstream = storage(built, "daily")
    record = judge(built.world())["model.shop.monthly"].record
    assert record is not None
    assert upstream.uuid in {t.uuid for t in record.base_tables}
    assert set(built.statuses().values()) == {"reused"}


def test_only_formatting_gives_the_view_its_new_text_and_touches_no_row(built: Shop) -> None:
    before = storage(built, "daily")
    built.write({"models/daily.sql": "SELECT\n  id\nFROM {{ ref('orders_clean') }}\n"})
    assert built.actions() == {"orders_clean": "reuse", "daily": "alter", "monthly": "reuse"}
    built.engine.executed.clear()
    assert set(built.statuses().values()) == {"reused"}
    after = storage(built, "daily")
    view = built.catalog.load([name("main.daily")])[name("main.daily")]
    assert isinstance(view, ViewState)
    assert "SELECT\n  id\n" in view.representations["spark"]
    assert built.engine.executed == []
    assert after.current_snapshot_id == before.current_snapshot_id
    assert judge(built.world())["model.shop.daily"].record.view_version_id == view.version_id  # type: ignore[union-attr]
    assert {f.state for f in judge(built.world()).values()} == {"fresh"}
    assert set(built.actions().values()) == {"reuse"}


def test_names_inside_a_query_are_redefined_when_spark_proves_it(built: Shop, tmp_path: Path) -> None:
    built.engine.plans = {
        "SELECT": "== Optimized Logical Plan ==\nRelationV2[id#1L] lake.raw.orders\n\n== Physical Plan ==\nBatchScan lake.raw.orders[id#1L]\n"
    }
    built.write({"models/daily.sql": "WITH o AS (SELECT id FROM {{ ref('orders_clean') }}) SELECT id FROM o\n"})
    assert built.run("daily").ok
    before = storage(built, "daily")
    built.write({"models/daily.sql": "WITH renamed AS (SELECT id FROM {{ ref('orders_clean') }}) SELECT id FROM renamed\n"})
    assert built.actions("daily") == {"daily": "redefine"}
    assert built.statuses("daily") == {"daily": "reused"}
    assert storage(built, "daily").current_snapshot_id == before.current_snapshot_id
    assert built.actions("daily") == {"daily": "reuse"}


def test_names_inside_a_query_are_refreshed_when_spark_does_not_prove_it(built: Shop) -> None:
    built.write({"models/daily.sql": "WITH o AS (SELECT id FROM {{ ref('orders_clean') }}) SELECT id FROM o\n"})
    assert built.run("daily").ok
    built.engine.plans = {"renamed": "== Optimized Logical Plan ==\nLocalRelation [id#1L]\n"}
    built.write({"models/daily.sql": "WITH renamed AS (SELECT id FROM {{ ref('orders_clean') }}) SELECT id FROM renamed\n"})
    assert built.statuses("daily") == {"daily": "success"}


@pytest.mark.parametrize(
    ("yaml", "told"),
    [
        ("{partition_by: ['bucket(4, id)']}", "partitioning"),
        ("{sort_by: [id desc]}", "sort order"),
        ("{table_properties: {write.target-file-size-bytes: 1000000}}", "table properties"),
    ],
)
def test_a_changed_layout_is_followed_without_a_rebuild(built: Shop, yaml: str, told: str) -> None:
    before = storage(built, "daily")
    configure(built, "daily", yaml)
    (step,) = built.plan("daily").steps
    assert (step.action, told in step.reasons[0].message) == ("alter", True)
    built.engine.executed.clear()
    assert built.statuses("daily") == {"daily": "reused"}
    after = storage(built, "daily")
    assert after.current_snapshot_id == before.current_snapshot_id
    assert built.engine.executed == []
    assert built.actions("daily") == {"daily": "reuse"}
    assert (after.partition_by, after.sort_by, dict(after.properties)) != (before.partition_by, before.sort_by, dict(before.properties))


def test_descriptions_reach_the_catalog_without_a_rebuild(built: Shop) -> None:
    built.write(
        {
            "models/daily.yml": "models:\n  - name: daily\n    description: Orders of a day.\n"
            "    columns: [{name: id, description: The order.}]\n"
        }
    )
    built.engine.executed.clear()
    assert built.statuses("daily") == {"daily": "reused"}
    view = built.catalog.load([name("main.daily")])[name("main.daily")]
    assert isinstance(view, ViewState)
    assert view.properties["comment"] == "Orders of a day."
    assert [f.get("doc") for f in view.schema["fields"]] == ["The order."]
    assert [f.get("doc") for f in storage(built, "daily").schema["fields"]] == ["The order."]
    assert built.engine.executed == []
    built.write({"models/daily.yml": "models:\n  - name: daily\n"})
    assert built.statuses("daily") == {"daily": "reused"}
    view = built.catalog.load([name("main.daily")])[name("main.daily")]
    assert "comment" not in view.properties  # type: ignore[union-attr]
    assert [f.get("doc") for f in storage(built, "daily").schema["fields"]] == [None]
    built.run()
    assert set(built.actions().values()) == {"reuse"}


@pytest.mark.parametrize("to", ["table-properties", "metadata-file"])
def test_a_changed_format_converts_and_rebuilds_nothing(built: Shop, to: str) -> None:
    before = storage(built, "daily")
    built.write({"mvbuild.yml": f"name: shop\nmodels: {{+storage: {{format: {to}}}}}\n"})
    built.engine.executed.clear()
    is_same = (before.of_view is not None) == (to == "metadata-file")
    assert built.actions("daily") == {"daily": "reuse" if is_same else "convert"}
    assert set(built.statuses().values()) == {"reused"}
    after = storage(built, "daily")
    assert (after.uuid, after.current_snapshot_id) == (before.uuid, before.current_snapshot_id)
    assert (after.of_view is not None) == (to == "metadata-file")
    assert built.engine.executed == []
    assert {f.state for f in judge(built.world()).values()} == {"fresh"}
    assert set(built.actions().values()) == {"reuse"}
    append(built.catalog, "raw.orders")
    assert built.statuses() == {"orders_clean": "reused", "daily": "success", "monthly": "success"}


def test_history_counts_refreshes_and_rollback_goes_back_and_forward(built: Shop) -> None:
    append(built.catalog, "raw.orders")
    built.run()
    past = history(storage(built, "daily"))
    assert [(p.refresh_id, p.strategy, p.is_current) for p in past] == [(1, "full", False), (2, "full", True)]
    went(built, 1)
    assert [p.is_current for p in history(storage(built, "daily"))] == [True, False]
    assert judge(built.world())["model.shop.daily"].has("base-table-changed")
    went(built, 2)
    assert judge(built.world())["model.shop.daily"].is_fresh
    went(built, 1)
    assert built.statuses() == {"orders_clean": "reused", "daily": "success", "monthly": "success"}
    assert [p.refresh_id for p in history(storage(built, "daily"))] == [1, 2, 3]


def test_a_rollback_to_the_same_definition_in_another_format_is_fresh(built: Shop) -> None:
    append(built.catalog, "raw.orders")
    built.run()
    built.write({"models/daily.sql": "SELECT\n  id\nFROM {{ ref('orders_clean') }}\n"})
    built.run()
    went(built, 1)
    went(built, 2)
    assert judge(built.world())["model.shop.daily"].is_fresh


def went(of: Shop, refresh_id: int) -> None:
    from mvbuild.refresh.session import RunSession
    from mvbuild.refresh.staging import RunId

    run = RunId(host="here", pid=1, started_ms=of.clock.at_ms, nonce="abc")
    world = of.world()
    session = RunSession(
        catalog=of.catalog, clock=of.clock, run=run, world=world, start_engine=lambda: of.engine, is_alive=lambda pid: True
    )
    rollback(session, world.graph.model("model.shop.daily"), refresh_id)


def test_the_metadata_file_keeps_as_many_refreshes_as_are_configured(tmp_path: Path) -> None:
    made = shop(tmp_path, FILE)
    for _ in range(5):
        append(made.catalog, "raw.orders")
        assert made.run("daily", "orders_clean").ok
    found = storage(made, "daily")
    assert found.mv is not None
    assert [r["refresh-id"] for r in found.mv.refreshes] == [3, 4, 5]
    assert found.mv.raw["current-refresh-id"] == 5


def test_one_table_at_two_snapshots_is_refused_in_the_metadata_file_format(tmp_path: Path) -> None:
    made = shop(tmp_path, FILE)
    first = made.table("raw.orders").current_snapshot_id
    append(made.catalog, "raw.orders")
    made.write({"models/both.sql": f"SELECT id FROM raw.orders UNION ALL SELECT id FROM raw.orders VERSION AS OF {first}\n"})
    result = made.run("both")
    (both,) = result.results
    assert [d.code for d in both.diagnostics] == ["unsupported-format"]
    assert "raw.orders" in both.diagnostics[0].message
