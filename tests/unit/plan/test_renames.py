"""`previous_name` -> entries with new names, and nothing is rebuilt."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvbuild.formats import properties
from mvbuild.formats.properties import OWNER
from mvbuild.freshness.rules import judge
from mvbuild.ports.commits import ViewCommit
from mvbuild.ports.states import TableState, ViewState
from mvbuild.storage.names import former_name
from unit.worlds import PROJECT, Shop, compiled, name, shop, unmarked, write_project

FILE = {"mvbuild.yml": "name: shop\nmodels:\n  +storage: {format: metadata-file}\n"}


@pytest.fixture(params=["table-properties", "metadata-file"])
def built(request: pytest.FixtureRequest, tmp_path: Path) -> Shop:
    made = shop(tmp_path, {**PROJECT, **(FILE if request.param == "metadata-file" else {})})
    made.run()
    made.engine.executed.clear()
    return made


def move(shop: Shop, old: str, new: str, config: str = "", *, previous: str | None = None) -> None:
    """The user renames a model's file, and every ref to it."""
    for path in sorted((shop.root / "models").glob("*.sql")):
        text = path.read_text().replace(f"ref('{old}')", f"ref('{new}')").replace(f"FROM {old} ", f"FROM {new} ")
        path.unlink()
        target = path.with_name(f"{new}.sql") if path.stem == old else path
        target.write_text(text)
    previous = old if previous is None else previous
    shop.write({f"models/{new}.yml": f"models:\n  - name: {new}\n    config: {{previous_name: {previous}{config}}}\n"})


def state(shop: Shop, text: str) -> TableState | ViewState | None:
    found = shop.catalog.load([name(text)]).get(name(text))
    assert found is None or isinstance(found, TableState | ViewState)
    return found


def view(shop: Shop, text: str) -> ViewState:
    found = state(shop, text)
    assert isinstance(found, ViewState)
    return found


def fresh(shop: Shop) -> bool:
    return {f.state for f in judge(shop.world()).values()} == {"fresh"}


def storage(shop: Shop, model: str) -> TableState:
    world = shop.world()
    found = world.observed.table(world.graph.model(f"model.shop.{model}").storage)
    assert found is not None
    return found


def test_a_renamed_mv_keeps_its_storage_and_nothing_is_rebuilt(built: Shop) -> None:
    before, uuid = storage(built, "daily"), view(built, "main.daily").uuid
    move(built, "daily", "per_day")
    planned = built.plan()
    assert {s.action for s in planned.steps} == {"reuse"}, planned.steps
    assert name("main.daily") in planned.renames[0].names
    assert set(built.statuses().values()) == {"reused"}
    after = storage(built, "per_day")
    assert (after.uuid, after.current_snapshot_id) == (before.uuid, before.current_snapshot_id)
    assert after.properties[OWNER] == "model.shop.per_day"
    assert view(built, "main.per_day").uuid == uuid
    assert state(built, "main.daily") is None
    assert state(built, "main.daily__storage") is None
    assert built.engine.executed == []
    assert fresh(built)


def test_the_mv_downstream_reads_the_new_name(built: Shop) -> None:
    move(built, "daily", "per_day")
    built.run()
    assert "main.per_day" in view(built, "main.monthly").representations["spark"]
    assert set(built.statuses().values()) == {"reused"}


def test_the_key_may_stay(built: Shop) -> None:
    move(built, "daily", "per_day")
    built.run()
    assert built.plan().renames == ()


def test_a_renamed_plain_view_leaves_its_readers_fresh(built: Shop) -> None:
    move(built, "orders_clean", "clean")
    assert {s.action for s in built.plan().steps} == {"reuse"}
    built.run()
    assert view(built, "main.clean").version_id == 1
    assert state(built, "main.orders_clean") is None
    assert built.engine.executed == []
    assert fresh(built)


def test_both_at_once(built: Shop) -> None:
    move(built, "orders_clean", "clean")
    move(built, "daily", "per_day")
    built.run()
    assert built.engine.executed == []
    assert fresh(built)


def test_another_namespace(built: Shop) -> None:
    built.write({"models/daily.yml": "models:\n  - name: daily\n    config: {namespace: gold, previous_name: main.daily}\n"})
    uuid = view(built, "main.daily").uuid
    built.run()
    assert view(built, "gold.daily").uuid == uuid
    assert built.engine.executed == []
    assert fresh(built)


def test_a_plain_view_between_gets_a_new_version_and_its_readers_records_follow(tmp_path: Path) -> None:
    made = shop(
        tmp_path,
        {
            **PROJECT,
            "models/top.sql": "SELECT id FROM {{ ref('middle') }}\n",
            "models/middle.sql": "{{ config(materialized='view') }}\nSELECT id FROM {{ ref('daily') }}\n",
        },
    )
    made.run()
    made.engine.executed.clear()
    move(made, "daily", "per_day")
    made.run()
    assert view(made, "main.middle").version_id == 2
    assert made.engine.executed == []
    assert fresh(made)


def test_the_storage_table_alone_gets_another_name(tmp_path: Path) -> None:
    made = shop(tmp_path)
    made.run()
    made.engine.executed.clear()
    uuid = made.table("main.daily__storage").uuid
    made.write({"models/daily.yml": "models:\n  - name: daily\n    config: {storage_table: daily_rows}\n"})
    made.run()
    assert made.table("main.daily_rows").uuid == uuid
    assert view(made, "main.daily").properties[properties.STORAGE_TABLE] == "main.daily_rows"
    assert made.engine.executed == []
    assert fresh(made)


def test_only_selected_models_are_renamed(built: Shop) -> None:
    move(built, "daily", "per_day")
    built.run("orders_clean")
    assert state(built, "main.daily") is not None


def test_no_previous_view_is_a_new_model(built: Shop) -> None:
    built.write(
        {"models/fresh.sql": "SELECT 1 AS id", "models/fresh.yml": "models:\n  - name: fresh\n    config: {previous_name: nowhere}\n"}
    )
    assert built.actions("fresh") == {"fresh": "refresh"}


def refused(built: Shop) -> str:
    (found,) = (d for step in built.plan().steps for d in step.diagnostics)
    assert found.code == "bad-previous-name"
    assert found.span is not None
    assert found.span.text in ("daily", "main.foreign")
    assert found.help
    return found.message


def test_the_previous_name_of_a_model_that_is_still_there(built: Shop) -> None:
    built.write({"models/x.sql": "SELECT 1 AS id", "models/x.yml": "models:\n  - name: x\n    config: {previous_name: daily}\n"})
    assert "still in the project" in refused(built)


def test_a_living_model_is_no_previous_name_where_the_new_name_exists_either(built: Shop) -> None:
    built.write({"models/monthly.yml": "models:\n  - name: monthly\n    config: {previous_name: daily}\n"})
    (wrong,) = (d for step in built.plan().steps for d in step.diagnostics)
    assert (wrong.code, str(wrong.span)) == ("bad-previous-name", "models/monthly.yml:3:29")
    assert "still in the project" in wrong.message


def test_both_names_in_the_catalog(built: Shop) -> None:
    (built.root / "models/daily.sql").rename(built.root / "models/per_day.sql")
    built.write({"models/monthly.sql": "SELECT 1 AS id"})
    built.run("per_day")
    built.write({"models/per_day.yml": "models:\n  - name: per_day\n    config: {previous_name: daily}\n"})
    assert "under both names" in refused(built)


def test_a_view_of_somebody_else(built: Shop) -> None:
    found = view(built, "main.orders_clean")
    built.catalog.commit(
        [
            ViewCommit(
                identifier=name("main.foreign"),
                expect_metadata_location=None,
                version_id=1,
                schema=found.schema,
                representations={"spark": "SELECT 1 AS id"},
                default_namespace=("main",),
                properties={},
            )
        ]
    )
    built.write({"models/x.sql": "SELECT 1 AS id", "models/x.yml": "models:\n  - name: x\n    config: {previous_name: main.foreign}\n"})
    assert "not written by mvbuild" in refused(built)


def test_a_lost_race_blocks_the_model_alone(built: Shop) -> None:
    move(built, "daily", "per_day")
    planned = built.plan()
    found = view(built, "main.daily")
    built.catalog.commit(
        [
            ViewCommit(
                identifier=found.identifier,
                expect_metadata_location=found.metadata_location,
                version_id=None,
                schema=found.schema,
                representations=found.representations,
                default_namespace=found.default_namespace,
                properties={"x": "y"},
                storage_table=None,
            )
        ]
    )
    statuses = {r.node.rpartition(".")[2]: (r.status, [d.code for d in r.diagnostics]) for r in built.run(planned=planned).results}
    assert statuses["per_day"] == ("error", ["commit-conflict"])
    assert statuses["orders_clean"] == ("reused", [])


def test_views_that_select_from_the_storage_are_renamed_with_the_definition_that_they_keep(tmp_path: Path) -> None:
    made = shop(tmp_path, {**PROJECT, "mvbuild.yml": "name: shop\nmodels: {+catalog_view: storage}\n"})
    made.run()
    made.engine.executed.clear()
    move(made, "daily", "per_day")
    assert {s.action for s in made.plan().steps} == {"reuse"}
    assert set(made.statuses().values()) == {"reused"}
    assert "main.per_day__storage" in view(made, "main.per_day").representations["spark"]
    assert "main.per_day" in view(made, "main.monthly").properties["mvbuild.definition"]
    assert made.engine.executed == []
    assert fresh(made)


def test_a_new_model_of_the_old_name_gets_a_directory_of_its_own(built: Shop) -> None:
    move(built, "daily", "per_day")
    built.run()
    built.write({"models/daily.sql": "SELECT id FROM {{ ref('orders_clean') }} WHERE id > 1\n"})
    assert built.statuses("daily") == {"daily": "success"}
    assert storage(built, "daily").location != storage(built, "per_day").location


@pytest.mark.parametrize("marked", [True, False], ids=["marked", "written before targets were marked"])
def test_a_developer_renames_nothing_of_production(tmp_path: Path, marked: bool) -> None:
    targets = "targets: {production: {namespace: main}, dev: {namespace: dev_ada}}\nnamespaces: \"{{ 'as_written' if target.name == 'production' else 'prefixed' }}\"\n"
    files = {"models/old.sql": "{{ config(namespace='mart') }} SELECT id FROM raw.orders\n"}
    made = shop(tmp_path, {**files, "mvbuild.yml": f"name: shop\ntarget: production\n{targets}"})
    assert made.run().ok
    before = view(made, "mart.old")
    if not marked:
        unmarked(made, before)
    (tmp_path / "models/old.sql").unlink()
    made.write({"models/new.sql": "{{ config(namespace='mart', previous_name='mart.old') }} SELECT id FROM raw.orders\n"})
    made.write({"mvbuild.yml": f"name: shop\ntarget: dev\n{targets}"})
    assert made.run().ok
    assert view(made, "mart.old").uuid == before.uuid
    assert view(made, "dev_ada_mart.new").uuid != before.uuid
    made.write({"mvbuild.yml": f"name: shop\ntarget: production\n{targets}"})
    assert made.run().ok
    assert view(made, "mart.new").uuid == before.uuid


@pytest.mark.parametrize("written", ["mart.monthly", "dev_ada_mart.monthly"])
def test_a_former_namespace_is_that_of_each_target(tmp_path: Path, written: str) -> None:
    targets = "targets: {dev: {namespace: dev_ada}}\n"
    files = {
        "mvbuild.yml": f"name: shop\ntarget: dev\nnamespaces: prefixed\n{targets}",
        "models/per_month.sql": f"{{{{ config(namespace='fin', previous_name='{written}') }}}}\nSELECT 1 AS id\n",
    }
    graph = compiled(write_project(tmp_path, files))
    assert str(former_name(graph, graph.model("model.shop.per_month"))) == "lake.dev_ada_mart.monthly"
    assert graph.project.target.as_configured(("dev_ada_mart",)) == ("mart",)
    assert graph.project.target.as_configured(("dev_ada",)) == ("dev_ada",)
    assert graph.project.target.prefixed(("dev_ada",)) == ("dev_ada",)
