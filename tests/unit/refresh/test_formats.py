"""Runs on MVs in both storage formats, in memory: what is recorded, what a change of configuration does, history and rollback."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mvbuild.formats import metadata_file, properties
from mvbuild.freshness.rules import judge
from mvbuild.incremental.table_changes import Changes
from mvbuild.lifecycle.drop import drop_all
from mvbuild.lifecycle.maintain import maintain
from mvbuild.lifecycle.removed_models import find_removed
from mvbuild.lifecycle.rollback import rollback
from mvbuild.names import TableIdentifier
from mvbuild.ports.commits import TableCommit
from mvbuild.ports.states import TableState, ViewState
from mvbuild.refresh.run_id import RunId
from mvbuild.refresh.session import RunSession
from mvbuild.storage.history import history
from mvbuild.storage.layout import CONFIGURED
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
    downstream = "reuse" if before.of_view else "record"
    assert built.actions() == {"orders_clean": "reuse", "daily": "alter", "monthly": downstream}
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


def test_a_property_that_is_no_longer_configured_goes(built: Shop) -> None:
    configure(built, "daily", "{table_properties: {a: 1, write.delete.mode: copy-on-write, b: 2}}")
    assert built.statuses("daily") == {"daily": "reused"}
    found = storage(built, "daily").properties
    assert (found["a"], found["b"], found["write.delete.mode"]) == ("1", "2", "copy-on-write")
    configure(built, "daily", "{table_properties: {b: 2}}")
    built.engine.executed.clear()
    (step,) = built.plan("daily").steps
    assert (step.action, "table properties" in step.reasons[0].message) == ("alter", True)
    assert built.statuses("daily") == {"daily": "reused"}
    found = storage(built, "daily").properties
    assert ("a" in found, found["b"], found["write.delete.mode"]) == (False, "2", "merge-on-read")
    configure(built, "daily", "{}")
    assert built.statuses("daily") == {"daily": "reused"}
    assert not {"a", "b", CONFIGURED} & set(storage(built, "daily").properties)
    assert built.actions("daily") == {"daily": "reuse"}
    assert built.engine.executed == []
    assert {f.state for f in judge(built.world()).values()} == {"fresh"}


@pytest.mark.parametrize("listed", [None, "nonsense", '{"a": 1}', '["mvbuild.model", 7]'])
def test_a_storage_without_a_list_of_its_properties_is_left_alone(built: Shop, listed: str | None) -> None:
    configure(built, "daily", "{table_properties: {a: 1}}")
    built.run()
    _set(built, {CONFIGURED: listed} if listed else {}, () if listed else (CONFIGURED,))
    if listed is None:
        assert built.actions("daily") == {"daily": "reuse"}
    append(built.catalog, "raw.orders")
    assert built.run().ok
    found = storage(built, "daily").properties
    assert found["mvbuild.model"] == "model.shop.daily"
    if listed is not None:
        assert found[CONFIGURED] == '["a"]'
    assert set(built.actions().values()) == {"reuse"}


POLICY = "{freshness: {max_staleness: 90m}, when_stale: fail, when_tests_fail: query, serve_unknown: true}"
POLICY_PROPERTIES = {
    "mvbuild.max-staleness-ms": "5400000",
    "mvbuild.when-stale": "fail",
    "mvbuild.when-tests-fail": "query",
    "mvbuild.serve-unknown": "true",
}


def policy(of: Shop, model: str) -> dict[str, str]:
    view = of.world().observed.view(name(f"main.{model}"))
    assert view is not None
    return {k: v for k, v in view.properties.items() if k in POLICY_PROPERTIES}


def test_the_serving_policy_is_in_the_catalog_after_the_first_run(tmp_path: Path) -> None:
    for number, files in enumerate((PROJECT, FILE)):
        made = shop(tmp_path / str(number), files)
        configure(made, "daily", POLICY)
        made.run()
        assert policy(made, "daily") == POLICY_PROPERTIES
        assert policy(made, "monthly") == {}
        assert policy(made, "orders_clean") == {}


def test_a_changed_serving_policy_is_one_commit_of_view_properties(built: Shop) -> None:
    before, view = storage(built, "monthly"), built.world().observed.view(name("main.daily"))
    configure(built, "daily", POLICY)
    (step,) = built.plan("daily").steps
    assert (step.action, step.reasons[0].message) == ("alter", "changed: serving policy")
    built.engine.executed.clear()
    assert built.statuses() == {"orders_clean": "reused", "daily": "reused", "monthly": "reused"}
    assert policy(built, "daily") == POLICY_PROPERTIES
    after = built.world().observed.view(name("main.daily"))
    assert view is not None
    assert after is not None
    assert after.version_id == view.version_id
    assert storage(built, "monthly") == before
    assert built.engine.executed == []
    assert {f.state for f in judge(built.world()).values()} == {"fresh"}
    assert set(built.actions().values()) == {"reuse"}
    configure(built, "daily", "{when_stale: serve}")
    assert built.statuses("daily") == {"daily": "reused"}
    assert policy(built, "daily") == {"mvbuild.when-stale": "serve"}
    configure(built, "daily", "{}")
    assert built.statuses("daily") == {"daily": "reused"}
    assert policy(built, "daily") == {}
    assert set(built.actions().values()) == {"reuse"}


@pytest.mark.parametrize("change", ["data", "definition", "formatting", "layout"])
def test_a_serving_policy_that_changes_with_something_else_is_in_the_same_run(built: Shop, change: str) -> None:
    configure(built, "daily", "{when_stale: serve, sort_by: [id]}" if change == "layout" else "{when_stale: serve}")
    if change == "data":
        append(built.catalog, "raw.orders")
    if change in ("definition", "formatting"):
        text = {
            "definition": "SELECT id FROM {{ ref('orders_clean') }} WHERE id > 1",
            "formatting": "SELECT\n id FROM {{ ref('orders_clean') }}",
        }
        built.write({"models/daily.sql": text[change]})
    assert built.run("daily").ok
    assert policy(built, "daily") == {"mvbuild.when-stale": "serve"}
    assert built.actions("daily") == {"daily": "reuse"}


def test_a_serving_policy_changes_with_a_refresh_that_finds_the_same_rows(built: Shop) -> None:
    """Only the record moves on then, and the view's properties with it."""
    built.changes = Changes(built.catalog.changes)
    append(built.catalog, "raw.orders", 3)
    configure(built, "daily", "{when_stale: serve}")
    assert built.actions("daily") == {"daily": "record"}
    assert built.statuses("daily") == {"daily": "reused"}
    assert policy(built, "daily") == {"mvbuild.when-stale": "serve"}
    assert built.actions("daily") == {"daily": "reuse"}


def test_a_view_that_is_no_mv_any_more_has_no_serving_policy(built: Shop) -> None:
    configure(built, "daily", POLICY)
    built.run()
    configure(built, "daily", "{materialized: view}")
    assert built.run().ok
    assert policy(built, "daily") == {}


def test_the_storage_of_a_view_that_is_no_mv_any_more_is_listed_and_pruned(built: Shop) -> None:
    configure(built, "daily", "{materialized: view}")
    assert built.statuses("daily") == {"daily": "success"}
    world = built.world()
    found = world.observed.view(name("main.daily"))
    assert found is not None
    assert found.storage is None
    assert built.actions("daily") == {"daily": "reuse"}
    (removed,) = find_removed(world, built.catalog)
    assert [n.dotted for n in removed.names] == ["main.daily__storage"]
    assert "which is now a view" in removed.note
    drop_all(built.catalog, [removed])
    assert find_removed(built.world(), built.catalog) == ()
    configure(built, "daily", "{materialized: materialized_view}")
    assert built.statuses("daily") == {"daily": "success"}
    assert built.actions("daily") == {"daily": "reuse"}


def test_properties_are_set_before_the_rows_are_written(built: Shop) -> None:
    """A property that Spark cannot read fails the write; another value must be in the table before the next one."""
    configure(built, "daily", "{table_properties: {bad: x, worse: y}}")
    built.run()
    configure(built, "daily", "{table_properties: {bad: good}}")
    append(built.catalog, "raw.orders")
    seen: list[tuple[str | None, str | None]] = []

    def look(table: TableIdentifier) -> None:
        state = built.catalog.load([table])[table]
        assert isinstance(state, TableState)
        if storage(built, "daily").location in (state.location, state.properties.get("write.data.path", "").removesuffix("/data")):
            seen.append((state.properties.get("bad"), state.properties.get("worse")))

    built.engine.before_write = look
    assert built.statuses() == {"orders_clean": "reused", "daily": "success", "monthly": "success"}
    assert seen == [("good", None)]
    assert set(built.actions().values()) == {"reuse"}


def _set(of: Shop, properties: dict[str, str], remove: tuple[str, ...] = ()) -> None:
    found = storage(of, "daily")
    commit = TableCommit(
        identifier=found.of_view or found.identifier,
        of_view=found.of_view,
        expect_uuid=found.uuid,
        expect_snapshot_id=found.current_snapshot_id,
        set_properties=properties,
        remove_properties=remove,
    )
    of.catalog.commit([commit])


def test_a_refresh_after_a_rollback_leaves_nothing_to_alter(built: Shop) -> None:
    built.write(
        {"models/daily.yml": "models:\n  - name: daily\n    description: Of a day.\n    columns: [{name: id, description: The order.}]\n"}
    )
    append(built.catalog, "raw.orders")
    assert built.run().ok
    assert [f.get("doc") for f in storage(built, "daily").schema["fields"]] == ["The order."]
    assert set(built.actions().values()) == {"reuse"}
    went(built, 1)
    assert built.run().ok
    assert [f.get("doc") for f in storage(built, "daily").schema["fields"]] == ["The order."]
    assert set(built.actions().values()) == {"reuse"}
    assert {f.state for f in judge(built.world()).values()} == {"fresh"}


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


def test_a_storage_of_a_name_of_its_own_becomes_part_of_the_mv(tmp_path: Path) -> None:
    """The metadata-file format has no `storage_table`: the key goes when the format changes."""
    made = shop(tmp_path)
    configure(made, "daily", "{storage_table: daily_rows}")
    made.run()
    before = made.table("main.daily_rows")
    configure(made, "daily", "{storage: {format: metadata-file}}")
    made.engine.executed.clear()
    assert set(made.statuses().values()) == {"reused"}
    after = storage(made, "daily")
    assert after.of_view == name("main.daily")
    assert (after.uuid, after.current_snapshot_id) == (before.uuid, before.current_snapshot_id)
    assert name("main.daily_rows") not in made.catalog.load([name("main.daily_rows")])
    assert made.engine.executed == []
    assert set(made.actions().values()) == {"reuse"}


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


def went(of: Shop, refresh_id: int, model: str = "daily") -> None:
    session = session_of(of)
    rollback(session, session.world.graph.model(f"model.shop.{model}"), refresh_id)


def session_of(of: Shop) -> RunSession:
    run = RunId(host="here", pid=1, started_ms=of.clock.at_ms, nonce="abc")
    return RunSession(
        catalog=of.catalog,
        clock=of.clock,
        run=run,
        world=of.world(),
        start_engine=lambda: of.engine,
        is_alive=lambda pid: True,
        sources=of.sources,
    )


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


def listed(of: Shop, model: str) -> list[int]:
    found = storage(of, model).mv
    assert found is not None
    return [r["refresh-id"] for r in found.refreshes]


def known(of: Shop, model: str) -> list[int]:
    return [p.refresh_id for p in history(storage(of, model))]


def refreshed(of: Shop, times: int) -> None:
    for _ in range(times):
        append(of.catalog, "raw.orders")
        assert of.run().ok


def kept_up(of: Shop, days: float) -> None:
    of.clock.at_ms = time.time_ns() // 1_000_000 + int(days * 24 * 3600 * 1000)
    session = session_of(of)
    done = maintain(session, list(session.world.graph.views), dry_run=False, on_done=lambda _: None)
    assert [d for one in done for d in one.diagnostics] == []


def test_one_table_at_two_snapshots_is_told_by_the_plan(tmp_path: Path) -> None:
    made = shop(tmp_path, FILE)
    first = made.table("raw.orders").current_snapshot_id
    append(made.catalog, "raw.orders")
    made.write({"models/both.sql": f"SELECT id FROM raw.orders UNION ALL SELECT id FROM raw.orders VERSION AS OF {first}\n"})
    (step,) = made.plan("both").steps
    assert step.action == "blocked"
    assert step.diagnostic is not None
    assert step.diagnostic.code == "unsupported-format"
    assert "lake.raw.orders is read at two snapshots" in step.diagnostic.message
    made.write({"mvbuild.yml": "name: shop\n"})
    assert made.statuses("both") == {"both": "success"}
    made.write({"mvbuild.yml": FILE["mvbuild.yml"]})
    assert made.actions("both") == {"both": "blocked"}


def test_a_version_of_an_upstream_that_is_refreshed_now_is_another_snapshot(tmp_path: Path) -> None:
    made = shop(tmp_path, FILE)
    made.run()
    first = storage(made, "daily").current_snapshot_id
    made.write({"models/both.sql": f"SELECT id FROM daily UNION ALL SELECT id FROM daily VERSION AS OF {first}\n"})
    assert made.actions("both") == {"both": "refresh"}
    append(made.catalog, "raw.orders")
    assert made.actions("daily", "both", "orders_clean")["both"] == "blocked"


def test_there_and_back_keeps_the_refreshes_that_are_configured(tmp_path: Path) -> None:
    project = {**PROJECT, "mvbuild.yml": "name: shop\nmodels: {+storage: {format: metadata-file}, +refresh_history: all}\n"}
    made = shop(tmp_path, project)
    made.run()
    refreshed(made, 2)
    before = storage(made, "daily").mv
    assert listed(made, "daily") == [1, 2, 3]
    made.write({"mvbuild.yml": "name: shop\nmodels: {+storage: {format: table-properties}, +refresh_history: all}\n"})
    assert made.run().ok
    made.write({"mvbuild.yml": project["mvbuild.yml"]})
    assert made.run().ok
    after = storage(made, "daily").mv
    assert after is not None
    assert before is not None
    assert after.refreshes == before.refreshes
    assert after.raw["current-refresh-id"] == 3
    made.write({"mvbuild.yml": "name: shop\nmodels: {+storage: {format: table-properties}}\n"})
    made.run()
    made.write({"mvbuild.yml": "name: shop\nmodels: {+storage: {format: metadata-file}, +refresh_history: 2}\n"})
    made.run()
    assert listed(made, "daily") == [2, 3]


@pytest.mark.parametrize("to", ["table-properties", "metadata-file"])
def test_what_a_rollback_left_is_reachable_after_snapshots_have_expired(tmp_path: Path, to: str) -> None:
    config = f"name: shop\nmodels: {{+storage: {{format: {to}}}, +refresh_history: 2, +maintain: {{expire_after: 1s}}}}\n"
    made = shop(tmp_path, {**PROJECT, "mvbuild.yml": config})
    made.run()
    refreshed(made, 2)
    went(made, 1)
    made.run()
    assert known(made, "daily") == [1, 2, 3, 4]
    kept_up(made, 1)
    assert known(made, "daily") == [3, 4]
    other = "metadata-file" if to == "table-properties" else "table-properties"
    made.write({"mvbuild.yml": config.replace(to, other)})
    made.run()
    assert known(made, "daily") == [3, 4]
    went(made, 3)
    assert [(p.refresh_id, p.is_current) for p in history(storage(made, "daily"))] == [(3, True), (4, False)]
    kept_up(made, 2)
    assert known(made, "daily") == [3, 4]
    refreshed(made, 1)
    kept_up(made, 3)
    assert known(made, "daily") == [4, 5]


def test_a_failed_refresh_is_no_past_refresh_after_snapshots_have_expired(tmp_path: Path) -> None:
    made = shop(tmp_path, {**PROJECT, "mvbuild.yml": "name: shop\nmodels: {+refresh_history: 2, +maintain: {expire_after: 1s}}\n"})
    made.write({"models/daily.yml": "models:\n  - name: daily\n    columns: [{name: id, data_tests: [not_null]}]\n"})
    made.run()
    refreshed(made, 2)
    went(made, 1)
    before = len(storage(made, "daily").snapshots)
    made.engine.failures = {"IS NULL": 1}
    assert made.statuses("daily", "orders_clean")["daily"] == "error"
    made.engine.failures = {}
    assert len(storage(made, "daily").snapshots) == before + 1
    assert known(made, "daily") == [1, 2, 3]
    made.run()
    kept_up(made, 1)
    assert known(made, "daily") == [3, 4]
    assert len(storage(made, "daily").snapshots) == 2


def test_a_rollback_and_its_undoing_list_the_newest_again(tmp_path: Path) -> None:
    made = shop(tmp_path, {**PROJECT, "mvbuild.yml": "name: shop\nmodels: {+storage: {format: metadata-file}, +refresh_history: 2}\n"})
    made.run()
    refreshed(made, 4)
    assert listed(made, "daily") == [4, 5]
    went(made, 1)
    assert listed(made, "daily") == [1, 5]
    went(made, 5)
    assert listed(made, "daily") == [4, 5]


def test_the_details_of_a_refresh_name_the_storage_table_if_there_is_one(built: Shop) -> None:
    append(built.catalog, "raw.orders")
    details = {r.node: r.details for r in built.run().results}["model.shop.daily"]
    embedded = storage(built, "daily").of_view is not None
    assert details["storage_table"] == (None if embedded else "lake.main.daily__storage")


def damage(of: Shop, model: str, change: Callable[[dict[str, Any]], Any]) -> None:
    """Another writer's hand on the metadata file of an MV."""
    view = of.world().observed.view(name(f"main.{model}"))
    assert view is not None
    files = of.catalog._files._contents  # type: ignore[attr-defined]
    location = view.properties["materialized-view.metadata-location"]
    content, changed_ms = files[location]
    raw = json.loads(content)
    change(raw)
    files[location] = (json.dumps(raw).encode(), changed_ms)


def renamed_key(raw: dict[str, Any]) -> None:
    tables = raw["refreshes"][-1]["base-tables"]
    tables["raw.orders"] = tables.pop("lake.raw.orders")


FLAWS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "snapshot-log": lambda raw: raw["snapshot-log"].insert(0, {"timestamp-ms": 1, "snapshot-id": 9}),
    "base-tables": renamed_key,
    "refreshes": lambda raw: raw.update(refreshes="x"),
}


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_metadata_file_with_a_flaw_is_read_and_the_next_refresh_writes_it_right(tmp_path: Path, flaw: str) -> None:
    made = shop(tmp_path, FILE)
    made.run()
    damage(made, "daily", FLAWS[flaw])
    found = judge(made.world())
    assert {f.state for f in found.values()} == {"fresh"}
    (first, *_) = found["model.shop.daily"].reasons
    assert (first.code, flaw in first.message) == ("metadata-flawed", True)
    planned = made.plan()
    assert {s.action for s in planned.steps} == {"reuse"}
    assert {d.code for d in planned.warnings} == {"flawed-metadata"}
    append(made.catalog, "raw.orders")
    assert made.run().ok
    assert made.plan().warnings == ()
    assert not judge(made.world())["model.shop.daily"].reasons


def test_a_metadata_file_without_a_certain_record_is_stale(tmp_path: Path) -> None:
    made = shop(tmp_path, FILE)
    made.run()

    def uncertain(raw: dict[str, Any]) -> None:
        raw["refreshes"][-1]["sequence-number"] = 99
        for snapshot in raw["snapshots"]:
            snapshot["summary"].pop("refresh-state", None)

    damage(made, "daily", uncertain)
    assert judge(made.world())["model.shop.daily"].has("never-refreshed")
    assert made.run().ok
    assert made.plan().warnings == ()
    assert {f.state for f in judge(made.world()).values()} == {"fresh"}
