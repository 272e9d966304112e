"""What a refresh from auxiliary views commits, and what drop, rename and later runs make of it, on a catalog in memory."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from mvbuild.artifacts.catalog import catalog
from mvbuild.cli.explain import explanation_text
from mvbuild.formats.properties import REFRESH_SNAPSHOT
from mvbuild.incremental.auxiliary_views import view_names
from mvbuild.incremental.table_changes import Changes
from mvbuild.lifecycle.drop import drop
from mvbuild.lifecycle.removed_models import find_named, find_removed
from mvbuild.plan.explain import explain
from mvbuild.ports.commits import TableCommit, TableLayout, ViewCommit
from mvbuild.ports.states import TableState
from mvbuild.refresh import stage
from mvbuild.refresh.write_outcome import NotIncremental
from mvbuild.storage.auxiliary_views import (
    COMPUTED,
    NAMED,
    OWNED_BY,
    computed_from,
    doubted_views,
    listed_views,
    named_views,
    view_name,
    views_of_rows,
    without_views,
)
from mvbuild.storage.history import history
from mvbuild.storage.stored import stored
from unit.worlds import PROJECT, SCHEMA, Shop, append, name, shop

PLAN = "== Optimized Logical Plan ==\nRelationV2[id#1] orders\n\n== Physical Plan ==\nBatchScan orders[id#1]\n"
VIEW = "main.daily__auxiliary_1"


def made(root: Path, policy: str = "always", more: str = "") -> Shop:
    """A total of all rows, which is refreshed from its sum and count."""
    files = {path: text for path, text in PROJECT.items() if "monthly" not in path}
    found = shop(root, {**files, "models/daily.sql": "SELECT sum(id) AS id FROM {{ ref('orders_clean') }}\n"})
    found.write({"models/daily.yml": f"models: [{{name: daily, config: {{auxiliary_views: {policy}{more}}}}}]\n"})
    found.engine.plans = {"": PLAN}
    found.changes = Changes(found.catalog.changes)
    return found


def refreshed(of: Shop, **options: bool) -> TableState:
    result = of.run(**options)
    assert result.ok, result
    return of.table("main.daily__storage")


def test_without_the_setting_there_is_no_view(tmp_path: Path) -> None:
    of = made(tmp_path, "never")
    assert NAMED not in refreshed(of).properties
    assert name(VIEW) not in of.catalog.load([name(VIEW)])


@pytest.mark.parametrize("atomic", [False, True])
def test_the_storage_names_the_snapshot_of_its_view(tmp_path: Path, atomic: bool) -> None:
    of = made(tmp_path)
    storage, view = refreshed(of, atomic=atomic), of.table(VIEW)
    record = stored(storage).record
    assert record is not None
    (named,) = views_of_rows(storage, record)
    assert (named.name, named.uuid, named.snapshot_id) == (name(VIEW), view.uuid, view.current_snapshot_id)
    assert view.properties[OWNED_BY] == "model.shop.daily"
    found = computed_from(view)
    assert found is not None
    assert found.definition == named.definition
    assert list(found.read.values()) == [(of.table("raw.orders").uuid, None, of.table("raw.orders").current_snapshot_id)]
    assert not view.branches - {"main"}
    assert [past.auxiliary_views for past in history(storage)] == [1]


@pytest.mark.parametrize(
    ("policy", "query", "kept"),
    [
        ("incremental", "SELECT sum(id) AS id FROM {{ ref('orders_clean') }}", True),
        ("incremental_strict", "SELECT sum(id) AS id FROM {{ ref('orders_clean') }}", True),
        ("auto", "SELECT sum(id) AS id FROM {{ ref('orders_clean') }}", False),
        # Deletes are followed from the storage alone, by the keys that changed.
        ("incremental", "SELECT id, avg(id) AS mean FROM {{ ref('orders_clean') }} GROUP BY id", False),
    ],
)
def test_auto_keeps_views_where_the_policy_needs_them(tmp_path: Path, policy: str, query: str, kept: bool) -> None:
    of = made(tmp_path, "auto", f", refresh_policy: {policy}")
    of.write({"models/daily.sql": f"{query}\n"})
    assert (NAMED in refreshed(of).properties) == kept


def test_a_first_refresh_is_full_whatever_its_policy_if_its_views_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise NotIncremental("auxiliary-type", "an inner result has the type smallint")

    monkeypatch.setattr(stage, "write_from_views", refused)
    storage = refreshed(made(tmp_path, "always", ", refresh_policy: incremental_strict"))
    assert [(past.strategy, past.reason) for past in history(storage)] == [("full", "never-refreshed")]


def test_a_view_that_others_wrote_to_has_no_record(tmp_path: Path) -> None:
    of = made(tmp_path)
    refreshed(of)
    append(of.catalog, VIEW, 3)
    assert computed_from(of.table(VIEW)) is None


def test_after_a_refresh_without_views_the_storage_names_none(tmp_path: Path) -> None:
    of = made(tmp_path)
    refreshed(of)
    append(of.catalog, "raw.orders", 4)
    storage = refreshed(of, full_refresh=True)
    record = stored(storage).record
    assert record is not None
    assert views_of_rows(storage, record) == ()
    assert [one.name for one in listed_views(storage)] == [name(VIEW)]


def test_a_record_that_moves_on_keeps_the_views(tmp_path: Path) -> None:
    of = made(tmp_path)
    before = refreshed(of)
    of.catalog.append_snapshot(name("raw.orders"), {}, operation="replace")
    after = refreshed(of)
    record = stored(after).record
    assert record is not None
    assert record != stored(before).record
    assert len(views_of_rows(after, record)) == 1


def test_the_catalog_artifact_names_the_views(tmp_path: Path) -> None:
    of = made(tmp_path)
    refreshed(of)
    found = catalog(of.world(), version="1.0", generated_at="", invocation_id="x")
    assert [one["stats"]["auxiliary_views"]["value"] for one in found["nodes"].values() if "auxiliary_views" in one["stats"]] == [VIEW]


def test_a_changed_property_is_not_trusted(tmp_path: Path) -> None:
    storage = refreshed(made(tmp_path))
    record = stored(storage).record
    assert record is not None
    value = json.loads(storage.properties[NAMED])
    for key, other in (("refresh", "1"), ("read", [])):
        changed = {**storage.properties, NAMED: json.dumps({**value, key: other})}
        assert views_of_rows(_with(storage, changed), record) == ()
    for text in ("", "{", "[]", '{"views": [1]}', '{"views": [{"name": 3}]}'):
        assert listed_views(_with(storage, {**storage.properties, NAMED: text})) == ()


def _with(table: TableState, properties: dict[str, str]) -> TableState:
    from dataclasses import replace

    return replace(table, properties=properties)


def test_a_summary_that_cannot_be_read_is_no_record(tmp_path: Path) -> None:
    of = made(tmp_path)
    refreshed(of)
    for number, text in enumerate(("", "{", "[]", '{"read": {"x": 1}}', '{"definition": "a", "settings": "b", "read": {"0": [1]}}')):
        of.catalog.append_snapshot(name(VIEW), {"id": [number]}, summary={COMPUTED: text})
        assert computed_from(of.table(VIEW)) is None, text


def test_drop_takes_the_views(tmp_path: Path) -> None:
    of = made(tmp_path)
    refreshed(of)
    item = find_named(of.world(), of.catalog, "daily")
    assert [table.identifier for table in item.auxiliary] == [name(VIEW)]
    assert name(VIEW) in drop(of.catalog, item).names
    assert not of.catalog.load([name(VIEW), name("main.daily__storage"), name("main.daily")])


BOTH = "SELECT a.id + b.n AS id FROM (SELECT sum(id) AS id FROM {o}) AS a CROSS JOIN (SELECT count(*) AS n FROM {o}) AS b"


def test_a_view_that_the_definition_needs_no_more_stays_listed(tmp_path: Path) -> None:
    """Until it is needed again, or dropped with its MV."""
    of = made(tmp_path)
    one = (tmp_path / "models/daily.sql").read_text(encoding="utf-8")
    of.write({"models/daily.sql": BOTH.format(o="{{ ref('orders_clean') }}")})
    both = [view.name for view in listed_views(refreshed(of))]
    assert len(both) == 2
    of.write({"models/daily.sql": one})
    storage = refreshed(of)
    record = stored(storage).record
    assert record is not None
    assert [view.name for view in views_of_rows(storage, record)] == both[:1]
    assert [view.name for view in listed_views(storage)] == both
    of.write({"models/daily.sql": BOTH.format(o="{{ ref('orders_clean') }}")})
    assert [view.name for view in listed_views(refreshed(of))] == both
    of.write({"models/daily.sql": one})
    refreshed(of)
    assert [table.identifier for table in find_named(of.world(), of.catalog, "daily").auxiliary] == both


def test_a_removed_model_takes_its_views(tmp_path: Path) -> None:
    of = made(tmp_path)
    refreshed(of)
    (tmp_path / "models/daily.sql").unlink()
    (tmp_path / "models/daily.yml").unlink()
    (item,) = find_removed(of.world(), of.catalog)
    assert name(VIEW) in item.names


def test_a_table_of_others_with_the_name_of_a_view_is_not_dropped(tmp_path: Path) -> None:
    of = made(tmp_path)
    refreshed(of)
    table = of.table(VIEW)
    of.catalog.commit(
        [
            TableCommit(
                identifier=name(VIEW),
                expect_uuid=table.uuid,
                expect_snapshot_id=table.current_snapshot_id,
                remove_properties=(OWNED_BY,),
            )
        ]
    )
    assert find_named(of.world(), of.catalog, "daily").auxiliary == ()


def test_views_are_renamed_with_their_mv(tmp_path: Path) -> None:
    of = made(tmp_path)
    refreshed(of)
    (tmp_path / "models/daily.sql").rename(tmp_path / "models/total.sql")
    of.write({"models/daily.yml": "models: [{name: total, config: {auxiliary_views: always, previous_name: daily}}]\n"})
    assert of.run().ok
    storage = of.table("main.total__storage")
    record = stored(storage).record
    assert record is not None
    assert [one.name for one in views_of_rows(storage, record)] == [name("main.total__auxiliary_1")]
    assert of.table("main.total__auxiliary_1").properties[OWNED_BY] == "model.shop.total"
    assert name(VIEW) not in of.catalog.load([name(VIEW)])


def test_a_full_refresh_that_was_requested_doubts_the_views(tmp_path: Path) -> None:
    """Whoever asks for it may not trust what the MV is computed from."""
    of = made(tmp_path)
    refreshed(of)
    before = of.table(VIEW)
    storage = refreshed(of, full_refresh=True)
    record = stored(storage).record
    assert record is not None
    assert views_of_rows(storage, record) == ()
    assert doubted_views(storage) == {before.uuid}
    assert of.table(VIEW).current_snapshot_id == before.current_snapshot_id


def test_what_reads_a_view_keeps_the_mv(tmp_path: Path) -> None:
    of = made(tmp_path)
    refreshed(of)
    commit = ViewCommit(
        identifier=name("raw.looks"),
        expect_metadata_location=None,
        version_id=1,
        schema=SCHEMA,
        representations={"spark": f"SELECT * FROM lake.{VIEW}"},
        default_namespace=("raw",),
        properties={},
    )
    of.catalog.commit([commit])
    assert [str(one.identifier) for one in find_named(of.world(), of.catalog, "daily").kept_by] == ["lake.raw.looks"]
    (tmp_path / "models/daily.sql").unlink()
    (tmp_path / "models/daily.yml").unlink()
    (item,) = find_removed(of.world(), of.catalog)
    assert [str(one.identifier) for one in item.kept_by] == ["lake.raw.looks"]


@pytest.mark.parametrize(("owner", "free"), [("model.other.daily", False), ("model.shop.removed", True)])
def test_a_view_of_another_project_is_not_taken(tmp_path: Path, owner: str, free: bool) -> None:
    """A table that a removed model of this project left is free."""
    of = made(tmp_path)
    of.catalog.ensure_namespace(("main",))
    of.catalog.create_table(name(VIEW), TableLayout(schema=SCHEMA), {OWNED_BY: owner})
    storage = refreshed(of)
    assert [one.name for one in listed_views(storage)] == ([name(VIEW)] if free else [])
    assert of.table(VIEW).properties[OWNED_BY] == ("model.shop.daily" if free else owner)


def test_a_seed_is_told_what_has_its_name(tmp_path: Path) -> None:
    of = made(tmp_path)
    refreshed(of)
    of.write({"seeds/daily__auxiliary_1.csv": "id\n1\n"})
    (step,) = (one for one in of.plan().steps if one.node == "seed.shop.daily__auxiliary_1")
    assert "an auxiliary view of model.shop.daily" in step.diagnostics[0].message


@pytest.mark.parametrize("kind", ["table-properties", "metadata-file"])
def test_views_move_to_the_namespace_of_their_mv(tmp_path: Path, kind: str) -> None:
    of = made(tmp_path)
    of.write({"models/daily.yml": f"models: [{{name: daily, config: {{auxiliary_views: always, storage: {{format: {kind}}}}}}}]\n"})
    assert of.run().ok
    moved = f"auxiliary_views: always, previous_name: main.daily, namespace: other, storage: {{format: {kind}}}"
    of.write({"models/daily.yml": f"models: [{{name: daily, config: {{{moved}}}}}]\n"})
    assert of.run().ok
    there = {n.dotted for space in ("main", "other") for n in of.catalog.list_names((space,)) if "auxiliary" in n.name}
    assert there == {"other.daily__auxiliary_1"}


@pytest.mark.parametrize("policy", ["always", "never"])
def test_explain_shows_the_views_of_a_fresh_mv(tmp_path: Path, policy: str) -> None:
    """And what is possible with them: nothing is possible without."""
    of = made(tmp_path, policy)
    refreshed(of)
    world = of.world()
    found = explain(world, world.graph.model("model.shop.daily"), of.changes)
    assert found.choice is None
    (_, deletes) = found.supposed
    possible = [one.strategy for one in deletes.verdicts if one.is_possible]
    text = explanation_text(found)
    assert (f"lake.{VIEW}: no-change" in text) == (policy == "always"), text
    assert possible == (["affected-keys", "bag", "full-diff"] if policy == "always" else [])


def test_a_view_gets_a_name_that_the_other_views_do_not_have(tmp_path: Path) -> None:
    """`maintain` drops any view that no refresh needs, not only the last one."""
    of = made(tmp_path)
    storage = refreshed(of)
    (first,) = listed_views(storage)
    other = replace(first, name=view_name(storage.identifier, 2))
    record = stored(storage).record
    assert record is not None
    properties = {**storage.properties, **named_views(storage, storage.properties[REFRESH_SNAPSHOT], record, [other])}
    listed = replace(storage, properties={**properties, **without_views(replace(storage, properties=properties), [first.name])})
    assert [one.name for one in listed_views(listed)] == [other.name]
    world = of.world()
    world = replace(world, observed=world.observed.updated({listed.identifier: listed}))
    question = SimpleNamespace(node=world.graph.model("model.shop.daily"), world=world)
    assert [one.name for one in view_names(question, 3)] == ["daily__auxiliary_2", "daily__auxiliary_1", "daily__auxiliary_3"]  # type: ignore[arg-type]


def test_a_refresh_that_was_never_published_leaves_no_view_when_its_model_is_removed(tmp_path: Path) -> None:
    of = made(tmp_path)
    of.write(
        {"models/daily.yml": "models: [{name: daily, columns: [{name: id, data_tests: [not_null]}], config: {auxiliary_views: always}}]\n"}
    )
    of.engine.failures = {"IS NULL": 1}
    assert not of.run().ok
    assert name(VIEW) in of.catalog.load([name(VIEW)])
    (tmp_path / "models/daily.sql").unlink()
    (tmp_path / "models/daily.yml").unlink()
    (item,) = find_removed(of.world(), of.catalog)
    assert {name("main.daily__storage"), name(VIEW)} <= set(item.names)


def test_a_view_of_another_mv_is_not_taken(tmp_path: Path) -> None:
    """Storages named `daily` and `daily__storage` would have the same names for their views."""
    of = made(tmp_path, more=", storage_namespace: st")
    assert of.run().ok
    config = "{auxiliary_views: always, storage_namespace: st, storage_table: daily}"
    of.write(
        {"models/other.sql": "SELECT sum(id) AS id FROM raw.orders\n", "models/other.yml": f"models: [{{name: other, config: {config}}}]\n"}
    )
    for _ in range(2):
        result = of.run("other")
        assert result.ok, result
        append(of.catalog, "raw.orders")
    assert result.results[0].details["reason"] == "auxiliary-name-taken"
    assert of.table("st.daily__auxiliary_1").properties[OWNED_BY] == "model.shop.daily"
