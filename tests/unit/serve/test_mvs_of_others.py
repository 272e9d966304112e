"""MVs that are not models of the project: by their own record, by the policy in the catalog, and never if that could be wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mvbuild.diagnostics import ProjectError
from mvbuild.formats import properties as of_record
from mvbuild.ports.commits import DropCommit, TableCommit, TableLayout, ViewCommit
from mvbuild.ports.states import ViewState
from mvbuild.serve import frames
from mvbuild.serve.rows import choose_rows
from unit.freshness.other_hands import edit, evolve
from unit.serve.readers import read, session, sql
from unit.worlds import PROJECT, SCHEMA, Shop, append, compiled, name, shop

EMPTY = {"mvbuild.yml": "name: shop\n"}
TEXT = "SELECT id FROM raw.orders"


def view(of: Shop, text: str) -> ViewState:
    found = of.catalog.load([name(text)])[name(text)]
    assert isinstance(found, ViewState)
    return found


def write_view(of: Shop, text: str, sql: str, properties: dict[str, str], schema: Any = SCHEMA) -> ViewState:
    """Another engine's CREATE VIEW, or CREATE OR REPLACE VIEW."""
    identifier = name(text)
    of.catalog.ensure_namespace(identifier.namespace)
    before = of.catalog.load([identifier]).get(identifier)
    assert before is None or isinstance(before, ViewState)
    commit = ViewCommit(
        identifier=identifier,
        expect_metadata_location=before.metadata_location if before else None,
        version_id=before.last_version_id + 1 if before else 1,
        schema=schema,
        representations={"spark": sql},
        default_namespace=("raw",),
        properties=properties,
    )
    of.catalog.commit([commit])
    return view(of, text)


def set_properties(of: Shop, table: str, wanted: dict[str, str], remove: tuple[str, ...] = ()) -> None:
    found = of.table(table)
    of.catalog.commit(
        [
            TableCommit(
                identifier=found.identifier,
                expect_uuid=found.uuid,
                expect_snapshot_id=found.current_snapshot_id,
                set_properties=wanted,
                remove_properties=remove,
            )
        ]
    )


def record(of: Shop, mv: str, tables: list[str], views: list[str], storage: str | None = None) -> None:
    """A refresh by the property-based specification, and nothing else."""
    found = of.table(storage or f"{mv}_data")
    wanted = {of_record.VIEW_VERSION: str(view(of, mv).version_id)}
    wanted |= {of_record.BASE_SNAPSHOT + of.table(t).uuid: str(of.table(t).current_snapshot_id) for t in tables}
    wanted |= {of_record.CHILD_VIEW_VERSION + view(of, v).uuid: str(view(of, v).version_id) for v in views}
    gone = tuple(k for k in found.properties if k.startswith("iceberg.") and k not in wanted)
    set_properties(of, storage or f"{mv}_data", wanted, gone)


def other_mv(of: Shop, mv: str = "mart.other", sql: str = TEXT, policy: dict[str, str] | None = None, **read: list[str]) -> None:
    """An MV that another engine made and refreshed."""
    storage = f"{mv}_data"
    marks = {of_record.IS_MATERIALIZED: "true", of_record.STORAGE_TABLE: storage}
    write_view(of, mv, sql, {**marks, **(policy or {})})
    of.catalog.create_table(name(storage), TableLayout(schema=SCHEMA), {})
    of.catalog.append_snapshot(name(storage), {"id": [0, 1, 2]}, summary={"added-records": "3"})
    record(of, mv, read.get("tables", ["raw.orders"]), read.get("views", []))


def source(of: Shop, mv: str = "mart.other") -> str:
    """What an MV is served from, by `read` and by `sql`."""
    one, other = (frames.served(found) for found in (read(of, mv), sql(of, f"SELECT id FROM {mv}")))
    assert [(s.name, s.source) for s in one] == [(s.name, s.source) for s in other]
    if not one:
        return "view"
    found = next(s for s in one if s.identifier == name(mv))
    return found.source if found.source == "storage" else f"query: {', '.join(sorted(r.code for r in found.reasons))}"


@pytest.fixture
def of(tmp_path: Path) -> Shop:
    made = shop(tmp_path, EMPTY)
    other_mv(made)
    return made


def test_a_fresh_mv_of_another_writer_is_read_from_its_storage(of: Shop) -> None:
    found = read(of, "mart.other")
    storage = of.table("mart.other_data")
    assert found.sql == f"SELECT * FROM lake.mart.other_data VERSION AS OF {storage.current_snapshot_id}"
    (served,) = frames.served(found)
    assert (served.name, served.state, served.storage) == ("other", "fresh", storage.identifier)
    assert f"FROM lake.mart.other_data VERSION AS OF {storage.current_snapshot_id} o" in sql(of, "SELECT o.id FROM mart.other o").sql
    shown = choose_rows(session(of, of_world(of, "mart.other")), "mart.other", 10)
    assert shown.rows.rows == ((0,), (1,), (2,))
    assert shown.origin.startswith("storage lake.mart.other_data: fresh")


def of_world(of: Shop, text: str) -> Any:
    from mvbuild.freshness.observe import observe
    from mvbuild.serve.lookup import with_name

    return observe(with_name(compiled(of.root), text), of.catalog, at_ms=of.clock.at_ms)


def test_a_stale_one_is_read_by_its_query_until_it_is_refreshed(of: Shop) -> None:
    append(of.catalog, "raw.orders")
    assert source(of) == "query: base-table-changed"
    assert f"lake.raw.orders VERSION AS OF {of.table('raw.orders').current_snapshot_id}" in read(of, "mart.other").sql
    record(of, "mart.other", ["raw.orders"], [])
    assert source(of) == "storage"
    append(of.catalog, "raw.orders", operation="replace")
    assert source(of) == "storage"


def test_a_view_that_is_no_mv_is_a_view(of: Shop) -> None:
    for marks in ({of_record.IS_MATERIALIZED: "false"}, {of_record.IS_MATERIALIZED: "maybe"}):
        write_view(of, "mart.other", TEXT, marks)
        record(of, "mart.other", ["raw.orders"], [])
        assert source(of) == "view"


# --- what could be wrong ---------------------------------------------------------------------------------------------------------

REFRESH_STATE = "refresh-state"


def state_of(of: Shop, snapshot_id: int | None = None) -> str:
    orders = of.table("raw.orders")
    told = {"type": "table", "name": "orders", "namespace": ["raw"], "uuid": orders.uuid}
    at = orders.current_snapshot_id if snapshot_id is None else snapshot_id
    states = [{**told, "snapshot-id": at}]
    return json.dumps({"view-version-id": view(of, "mart.other").version_id, "source-states": states, "refresh-start-timestamp-ms": 1})


def written_by_hand(of: Shop) -> None:
    of.catalog.append_snapshot(name("mart.other_data"), {"id": [1]}, summary={REFRESH_STATE: state_of(of)})
    of.catalog.append_snapshot(name("mart.other_data"), {"id": [1, 7]})


def of_another_refresh(of: Shop) -> None:
    of.catalog.append_snapshot(name("mart.other_data"), {"id": [1]}, summary={REFRESH_STATE: state_of(of, 7)})


def another_column(of: Shop) -> None:
    evolve(of, lambda fields: [*fields, {"id": 2, "name": "more", "type": "long", "required": False}], "mart.other_data")


def retyped(of: Shop) -> None:
    evolve(of, lambda fields: [{**fields[0], "type": "string"}], "mart.other_data")


def another_under_its_name(of: Shop) -> None:
    evolve(of, lambda fields: [{**fields[0], "id": 2}], "mart.other_data")


def replaced_view(of: Shop) -> None:
    write_view(of, "mart.other", TEXT + " WHERE id > 1", {})


def of_other_model(of: Shop) -> None:
    set_properties(of, "mart.other_data", {"mvbuild.model": "model.shop.another"})
    found = view(of, "mart.other")
    write_view(of, "mart.other", TEXT, {"mvbuild.model": "model.shop.other"})
    set_properties(of, "mart.other_data", {of_record.VIEW_VERSION: str(found.version_id + 1)})


def further_table(of: Shop) -> None:
    set_properties(of, "mart.other_data", {of_record.BASE_SNAPSHOT + "00000000-0000-0000-0000-000000000001": "5"})


def further_view(of: Shop) -> None:
    set_properties(of, "mart.other_data", {of_record.CHILD_VIEW_VERSION + "00000000-0000-0000-0000-000000000001": "1"})


def less_than_all_tables(of: Shop) -> None:
    set_properties(of, "mart.other_data", {}, (of_record.BASE_SNAPSHOT + of.table("raw.orders").uuid,))


def no_version(of: Shop) -> None:
    set_properties(of, "mart.other_data", {}, (of_record.VIEW_VERSION,))


def no_number(of: Shop) -> None:
    set_properties(of, "mart.other_data", {of_record.VIEW_VERSION: "first"})


def no_storage(of: Shop) -> None:
    write_view(of, "mart.other", TEXT, {of_record.STORAGE_TABLE: "mart.nowhere"})


def no_rows(of: Shop) -> None:
    edit(of, "mart.other_data", lambda raw: {**raw, "current-snapshot-id": None, "snapshots": [], "refs": {}, "snapshot-log": []})


def recreated(of: Shop) -> None:
    edit(of, "raw.orders", lambda raw: {**raw, "table-uuid": "00000000-0000-0000-0000-000000000002"})


@pytest.mark.parametrize(
    ("happened", "code"),
    [
        (written_by_hand, "storage-changed"),
        (of_another_refresh, "records-disagree"),
        (another_column, "storage-schema-differs"),
        (retyped, "storage-schema-differs"),
        (another_under_its_name, "storage-schema-differs"),
        (replaced_view, "view-version-differs"),
        (of_other_model, "storage-of-another"),
        (further_table, "recorded-table-differs"),
        (further_view, "recorded-view-differs"),
        (less_than_all_tables, "base-table-not-recorded"),
        (no_version, "record-unreadable"),
        (no_number, "record-unreadable"),
        (no_storage, "storage-missing"),
        (no_rows, "never-refreshed"),
        (recreated, "base-table-recreated"),
    ],
    ids=lambda value: value.__name__ if callable(value) else value,
)
def test_what_could_be_wrong_is_not_served(of: Shop, happened: Callable[[Shop], None], code: str) -> None:
    assert source(of) == "storage"
    happened(of)
    assert code in source(of)


@pytest.mark.parametrize("happened", [written_by_hand, of_another_refresh, another_column, retyped, another_under_its_name, of_other_model])
def test_what_are_no_rows_of_the_mv_is_not_served_as_stale_either(of: Shop, happened: Callable[[Shop], None]) -> None:
    write_view(of, "mart.other", TEXT, {"mvbuild.when-stale": "serve"})
    record(of, "mart.other", ["raw.orders"], [])
    append(of.catalog, "raw.orders")
    assert source(of) == "storage"
    happened(of)
    assert source(of).startswith("query")


def test_a_refresh_state_that_agrees_is_served(of: Shop) -> None:
    of.catalog.append_snapshot(name("mart.other_data"), {"id": [1]}, summary={REFRESH_STATE: state_of(of)})
    of.catalog.append_snapshot(name("mart.other_data"), {"id": [1]}, operation="replace")
    assert source(of) == "storage"


def test_a_query_that_asks_the_clock_is_unknown(of: Shop) -> None:
    other_mv(of, "mart.clock", "SELECT id FROM orders WHERE current_date() > DATE '2020-01-01'")
    assert source(of, "mart.clock") == "query: clock-not-recorded, session-not-recorded"
    other_mv(of, "mart.exact", "SELECT id FROM orders WHERE now() > TIMESTAMP '2020-01-01'")
    assert source(of, "mart.exact") == "query: nondeterministic"


# --- views and MVs below ---------------------------------------------------------------------------------------------------------


def test_child_views_count_by_their_versions(of: Shop) -> None:
    write_view(of, "raw.clean", "SELECT id FROM orders WHERE id > 0", {})
    other_mv(of, "mart.over", "SELECT id FROM clean", views=["raw.clean"])
    assert source(of, "mart.over") == "storage"
    write_view(of, "raw.clean", "SELECT id FROM orders WHERE id > 1", {})
    assert source(of, "mart.over") == "query: child-view-changed"
    record(of, "mart.over", ["raw.orders"], [])
    assert source(of, "mart.over") == "query: child-view-not-recorded"


@pytest.mark.parametrize("how", ["storage", "child view"])
def test_an_mv_over_an_mv_is_judged_as_it_was_recorded(of: Shop, how: str) -> None:
    below = {"tables": ["mart.other_data"]} if how == "storage" else {"views": ["mart.other"]}
    other_mv(of, "mart.over", "SELECT id FROM mart.other", **below)
    assert source(of, "mart.over") == "storage"
    append(of.catalog, "raw.orders")
    assert source(of, "mart.over") == f"query: {'upstream-stale' if how == 'storage' else 'base-table-changed'}"
    record(of, "mart.other", ["raw.orders"], [])
    assert source(of, "mart.over") == ("storage" if how == "storage" else "query: base-table-changed")
    found = read(of, "mart.over")
    assert [(s.name, s.source) for s in frames.served(found)][1:] == ([] if how == "storage" else [("other", "storage")])


def test_the_view_of_an_mv_that_is_recorded_beside_its_storage_counts(of: Shop) -> None:
    other_mv(of, "mart.over", "SELECT id FROM mart.other", tables=["mart.other_data"], views=["mart.other"])
    assert source(of, "mart.over") == "storage"
    write_view(of, "mart.other", TEXT, {})
    record(of, "mart.other", ["raw.orders"], [])
    assert source(of, "mart.over") == "query: recorded-view-differs"


def test_an_mv_of_the_project_keeps_reading_it_as_a_child_view(of: Shop) -> None:
    of.write({"models/mine.sql": "SELECT id FROM mart.other\n"})
    assert of.run().ok
    recorded = {k for k in of.table("main.mine__storage").properties if k.startswith("iceberg.")}
    assert recorded == {
        of_record.VIEW_VERSION,
        of_record.BASE_SNAPSHOT + of.table("raw.orders").uuid,
        of_record.CHILD_VIEW_VERSION + view(of, "mart.other").uuid,
        of_record.CHILD_VIEW_VERSION + view(of, "main.mine").uuid,
    }
    assert of.actions() == {"mine": "reuse"}
    append(of.catalog, "raw.orders")
    assert of.actions() == {"mine": "refresh"}
    assert [(s.name, s.source) for s in frames.served(read(of, "mine"))] == [("mine", "query"), ("other", "query")]
    record(of, "mart.other", ["raw.orders"], [])
    assert [(s.name, s.source) for s in frames.served(read(of, "mine"))] == [("mine", "query"), ("other", "storage")]
    assert of.actions() == {"mine": "refresh"}
    assert "lake.raw.orders VERSION AS OF" in of.engine.executed[-1]


# --- the policy ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "wanted"),
    [
        ({"mvbuild.when-stale": "serve"}, "storage"),
        ({"mvbuild.when-stale": "SERVE"}, "query: base-table-changed"),
        ({"mvbuild.max-staleness-ms": "99999999999"}, "storage"),
        ({"mvbuild.max-staleness-ms": "1h"}, "query: base-table-changed"),
        ({"mvbuild.max-staleness-ms": "-1"}, "query: base-table-changed"),
        ({"mvbuild.max-staleness-ms": "9" * 40}, "query: base-table-changed"),
        ({"mvbuild.serve-unknown": "true"}, "query: base-table-changed"),
    ],
)
def test_the_policy_is_that_of_the_view(tmp_path: Path, policy: dict[str, str], wanted: str) -> None:
    made = shop(tmp_path, EMPTY)
    other_mv(made, policy=policy)
    assert source(made) == "storage"
    append(made.catalog, "raw.orders")
    assert source(made) == wanted


def test_a_policy_to_fail_fails(tmp_path: Path) -> None:
    made = shop(tmp_path, EMPTY)
    other_mv(made, policy={"mvbuild.when-stale": "fail"})
    append(made.catalog, "raw.orders")
    with pytest.raises(ProjectError) as caught:
        read(made, "mart.other")
    assert [(d.code, str(d.span)) for d in caught.value.diagnostics] == [("stale", "view lake.mart.other:1:1")]


# --- what mvbuild wrote, read without its project --------------------------------------------------------------------------------

SETTINGS = (
    "{}",
    "{when_stale: serve}",
    "{freshness: {max_staleness: 5000d}}",
    "{serve_unknown: true}",
    "{catalog_view: storage}",
    "{catalog_view: storage, when_stale: serve}",
)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("form", ["table-properties", "metadata-file"])
def test_the_answer_is_the_same_without_the_project(tmp_path: Path, settings: str, form: str) -> None:
    if form == "metadata-file" and "catalog_view" in settings:
        return
    own = shop(tmp_path / "own", PROJECT)
    own.write({"mvbuild.yml": f"name: shop\nmodels: {{+storage: {{format: {form}}}}}\n"})
    own.write({f"models/{m}.yml": f"models:\n  - name: {m}\n    config: {settings}\n" for m in ("daily", "monthly")})
    other = Shop(tmp_path / "other", catalog=own.catalog).write(EMPTY)
    assert own.run().ok
    for step in ("built", "customers", "orders", "one refreshed", "both refreshed", "unknown"):
        if step in ("customers", "orders"):
            append(own.catalog, f"raw.{step}")
        if step == "one refreshed":
            assert own.run("daily").ok
        if step == "both refreshed":
            assert own.run().ok
        if step == "unknown":
            gone = own.table("raw.customers")
            own.catalog.commit([DropCommit(identifier=gone.identifier, expect_metadata_location=gone.metadata_location)])
        for mv in ("main.daily", "main.monthly"):
            mine, theirs = (answer(of, mv) for of in (own, other))
            assert mine == theirs, (step, mv)


@pytest.mark.parametrize("settings", ["{}", "{when_tests_fail: fail}", "{when_tests_fail: query}", "{when_stale: fail}"])
@pytest.mark.parametrize("form", ["table-properties", "metadata-file"])
@pytest.mark.parametrize("edited", [False, True])
def test_rows_that_a_data_test_refused_are_not_served_without_the_project_either(
    tmp_path: Path, settings: str, form: str, edited: bool
) -> None:
    own = shop(tmp_path / "own", PROJECT)
    own.write({"mvbuild.yml": f"name: shop\nmodels: {{+storage: {{format: {form}}}}}\n"})
    tested = f"models:\n  - name: daily\n    config: {settings}\n    columns: [{{name: id, data_tests: [not_null]}}]\n"
    own.write({"models/daily.yml": tested})
    other = Shop(tmp_path / "other", catalog=own.catalog).write(EMPTY)
    assert own.run().ok
    if edited:
        own.write({"models/daily.sql": "SELECT id FROM {{ ref('orders_clean') }} WHERE id > 1\n"})
    append(own.catalog, "raw.orders")
    own.engine.failures = {"IS NULL": 3}
    assert not own.run().ok
    mine, theirs = (answer(of, "main.daily") for of in (own, other))
    assert mine == theirs
    wanted = {
        "{}": "storage",
        "{when_tests_fail: query}": "query",
        "{when_tests_fail: fail}": "tests-failed",
        "{when_stale: fail}": "stale",
    }
    assert wanted[settings] in (theirs[0], theirs[0][1])


def answer(of: Shop, mv: str) -> Any:
    try:
        found = read(of, mv)
    except ProjectError as exc:
        return [d.code for d in exc.diagnostics]
    return [(s.name, s.source, s.state, s.storage, s.refreshed_at_ms) for s in frames.served(found)]


def test_a_metadata_file_that_names_its_tables_without_uuids_is_served(tmp_path: Path) -> None:
    """The draft asks for names only."""
    own = shop(tmp_path / "own", {**PROJECT, "mvbuild.yml": "name: shop\nmodels: {+storage: {format: metadata-file}}\n"})
    other = Shop(tmp_path / "other", catalog=own.catalog).write(EMPTY)
    assert own.run().ok
    for mv in ("main.daily", "main.monthly"):
        files = own.catalog._files._contents  # type: ignore[attr-defined]
        location = view(own, mv).properties["materialized-view.metadata-location"]
        raw = json.loads(files[location][0])
        for table in raw["refreshes"][-1]["base-tables"].values():
            table.pop("properties", None)
        for snapshot in raw["snapshots"]:
            snapshot["summary"] = {k: v for k, v in snapshot["summary"].items() if not k.startswith("mvbuild.") and k != REFRESH_STATE}
        raw["properties"] = {k: v for k, v in raw["properties"].items() if not k.startswith("mvbuild.")}
        files[location] = (json.dumps(raw).encode(), files[location][1])
    assert [source(other, mv) for mv in ("main.daily", "main.monthly")] == ["storage", "storage"]
    append(own.catalog, "raw.orders")
    assert [source(other, mv) for mv in ("main.daily", "main.monthly")] == ["query: base-table-changed", "query: upstream-stale"]


def test_as_of_needs_no_project(tmp_path: Path) -> None:
    own = shop(tmp_path / "own", PROJECT)
    other = Shop(tmp_path / "other", catalog=own.catalog).write(EMPTY)
    assert own.run().ok
    first = own.table("main.daily__storage").current_snapshot_id
    append(own.catalog, "raw.orders")
    assert own.run().ok
    for as_of in (1, first):
        assert read(other, "main.daily", as_of).sql == read(own, "daily", as_of).sql
        assert f"VERSION AS OF {first}" in read(other, "main.daily", as_of).sql
    with pytest.raises(ProjectError, match="no refresh to go back to"):
        read(other, "raw.orders", 1)
