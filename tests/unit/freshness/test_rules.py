"""Every condition of the specification, and what it leaves open: state and reason."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest

from mvbuild.freshness.model import Freshness
from mvbuild.freshness.observed import Leaf
from mvbuild.freshness.pins import pin
from mvbuild.freshness.rules import judge
from mvbuild.incremental.table_changes import Changes
from mvbuild.ports.commits import TableCommit, ViewCommit
from mvbuild.ports.session import session_of
from mvbuild.ports.states import TableState, ViewState
from mvbuild.storage.sessions import SESSION_KEY
from other_programs import drop
from unit.worlds import PROJECT, Shop, append, base_table, name, shop


@pytest.fixture
def built(tmp_path: Path) -> Shop:
    made = shop(tmp_path)
    made.run()
    return made


def answer(of: Shop, model: str = "daily") -> Freshness:
    return judge(of.world())[f"model.shop.{model}"]


def codes(of: Shop, model: str = "daily") -> list[str]:
    return [r.code for r in answer(of, model).reasons]


def commit(of: Shop, table: str, **changes: object) -> None:
    state = of.table(table)
    of.catalog.commit(
        [TableCommit(identifier=state.identifier, expect_uuid=state.uuid, expect_snapshot_id=state.current_snapshot_id, **changes)]  # type: ignore[arg-type]
    )


def test_an_mv_that_was_never_refreshed_is_stale(tmp_path: Path) -> None:
    of = shop(tmp_path)
    assert answer(of).state == "stale"
    assert "never-refreshed" in codes(of)


def test_after_a_run_everything_is_fresh(built: Shop) -> None:
    assert [f.state for f in judge(built.world()).values()] == ["fresh", "fresh"]
    assert codes(built) == []


def test_new_data_makes_exactly_the_descendants_stale(built: Shop) -> None:
    append(built.catalog, "raw.customers")
    assert answer(built, "daily").state == "fresh"
    assert codes(built, "monthly") == ["base-table-changed"]
    reason = answer(built, "monthly").reasons[0]
    assert (reason.table, reason.current) == (name("raw.customers"), built.table("raw.customers").current_snapshot_id)
    assert reason.recorded != reason.current


def test_staleness_passes_to_the_mvs_below(built: Shop) -> None:
    append(built.catalog, "raw.orders")
    assert codes(built, "daily") == ["base-table-changed"]
    assert codes(built, "monthly") == ["upstream-stale"]


def test_a_compacted_base_table_has_the_same_rows(built: Shop) -> None:
    append(built.catalog, "raw.orders", operation="replace")
    append(built.catalog, "raw.orders", operation="replace")
    assert answer(built).state == "fresh"
    assert codes(built) == ["base-table-compacted"]


def test_compaction_with_an_append_before_it_is_a_change(built: Shop) -> None:
    append(built.catalog, "raw.orders")
    append(built.catalog, "raw.orders", operation="replace")
    assert codes(built) == ["base-table-changed"]


@pytest.mark.parametrize(
    ("summary", "code"),
    [
        ({"added-records": "3", "deleted-records": "3"}, "base-table-compacted"),
        ({"added-records": "4", "deleted-records": "3"}, "base-table-changed"),
        ({"added-records": "2", "deleted-records": "3"}, "base-table-changed"),
    ],
)
def test_a_replace_whose_counts_say_otherwise_is_a_change(built: Shop, summary: dict[str, str], code: str) -> None:
    built.catalog.append_snapshot(name("raw.orders"), operation="replace", summary=summary)
    assert codes(built) == [code]


def test_a_rolled_back_base_table(tmp_path: Path) -> None:
    of = shop(tmp_path)
    first = of.table("raw.orders").current_snapshot_id
    append(of.catalog, "raw.orders")
    of.run()
    commit(of, "raw.orders", set_snapshot_id=first)
    assert codes(of) == ["base-table-rolled-back"]
    assert answer(of).reasons[0].current == first


def test_a_base_table_that_was_dropped_is_unknown(built: Shop) -> None:
    drop(built.catalog, name("raw.orders"))
    assert answer(built).state == "unknown"
    assert codes(built) == ["base-table-missing"]


def test_a_base_table_that_was_dropped_and_created_again(built: Shop) -> None:
    drop(built.catalog, name("raw.orders"))
    base_table(built.catalog, "raw.orders")
    assert answer(built).state == "stale"
    assert codes(built) == ["base-table-recreated"]


def test_an_empty_base_table_stays_fresh_until_it_has_rows(tmp_path: Path) -> None:
    of = Shop(tmp_path).write(PROJECT)
    base_table(of.catalog, "raw.orders", rows=None)
    base_table(of.catalog, "raw.customers")
    of.run()
    assert answer(of).state == "fresh"
    append(of.catalog, "raw.orders")
    assert codes(of) == ["base-table-changed"]


def test_a_base_table_without_snapshots_that_the_record_does_not_cover_is_unknown(tmp_path: Path) -> None:
    of = Shop(tmp_path).write(PROJECT)
    base_table(of.catalog, "raw.orders", rows=None)
    base_table(of.catalog, "raw.customers")
    of.run()
    key = "iceberg.base.snapshot." + of.table("raw.orders").uuid
    commit(of, "main.daily__storage", remove_properties=(key,))
    assert answer(of).state == "unknown"
    assert codes(of) == ["base-table-empty"]


def test_a_dependency_that_the_record_does_not_cover_is_unknown(built: Shop) -> None:
    table = built.table("raw.orders")
    commit(built, "main.daily__storage", remove_properties=(f"iceberg.base.snapshot.{table.uuid}",))
    assert answer(built).state == "unknown"
    assert codes(built) == ["base-table-not-recorded"]


def test_a_replaced_child_view(built: Shop) -> None:
    view = built.catalog.load([name("main.orders_clean")])[name("main.orders_clean")]
    assert isinstance(view, ViewState)
    same = ViewCommit(
        identifier=view.identifier,
        expect_metadata_location=view.metadata_location,
        version_id=view.last_version_id + 1,
        schema=view.schema,
        representations=view.representations,
        default_namespace=("main",),
        properties={},
    )
    built.catalog.commit([same])
    assert codes(built) == ["child-view-changed"]
    assert (answer(built).reasons[0].recorded, answer(built).reasons[0].current) == (1, 2)


def test_an_edited_child_view_model(built: Shop) -> None:
    built.write({"models/orders_clean.sql": "{{ config(materialized='view') }} SELECT id FROM raw.orders WHERE id > 1"})
    assert codes(built) == ["child-view-edited"]


def test_a_reformatted_definition_is_the_same(built: Shop) -> None:
    built.write({"models/daily.sql": "-- every order\nselect\n    id\nfrom {{ ref('orders_clean') }} /* cleaned */\n"})
    assert answer(built).state == "fresh"


def test_a_changed_definition(built: Shop) -> None:
    built.write({"models/daily.sql": "SELECT id FROM {{ ref('orders_clean') }} WHERE id < 100"})
    assert codes(built) == ["definition-changed"]
    assert codes(built, "monthly") == ["upstream-stale"]


def test_a_view_that_somebody_else_replaced(built: Shop) -> None:
    view = built.catalog.load([name("main.daily")])[name("main.daily")]
    assert isinstance(view, ViewState)
    other = ViewCommit(
        identifier=view.identifier,
        expect_metadata_location=view.metadata_location,
        version_id=view.last_version_id + 1,
        schema=view.schema,
        representations=view.representations,
        default_namespace=("main",),
        properties={},
    )
    built.catalog.commit([other])
    assert codes(built) == ["view-version-differs"]


def test_a_storage_table_that_is_gone(built: Shop) -> None:
    drop(built.catalog, name("main.daily__storage"))
    assert codes(built)[0] == "storage-missing"


def test_a_view_that_is_gone(built: Shop) -> None:
    drop(built.catalog, name("main.daily"))
    assert codes(built) == ["view-missing"]


def test_a_foreign_write_to_the_storage(built: Shop) -> None:
    state = append(built.catalog, "main.daily__storage")
    assert codes(built)[0] == "storage-changed"
    assert answer(built).reasons[0].current == state.current_snapshot_id


def test_compacted_storage_keeps_its_record(built: Shop) -> None:
    append(built.catalog, "main.daily__storage", operation="replace")
    assert answer(built, "daily").state == "fresh"
    assert codes(built, "monthly") == ["base-table-compacted"]


def test_storage_that_was_rolled_back(built: Shop) -> None:
    first = built.table("main.daily__storage").current_snapshot_id
    append(built.catalog, "raw.orders")
    built.run()
    commit(built, "main.daily__storage", set_snapshot_id=first)
    assert codes(built) == ["storage-changed"]


def test_a_record_that_cannot_be_read(built: Shop) -> None:
    commit(built, "main.daily__storage", set_properties={"iceberg.view.version": "newest"})
    assert codes(built)[0] == "record-unreadable"
    assert "iceberg.view.version" in answer(built).reasons[0].message


WINDOW = PROJECT | {"models/daily.sql": "{{ config(freshness={'max_staleness': '10s'}) }}\n" + PROJECT["models/daily.sql"]}


@pytest.mark.parametrize(
    ("lag_ms", "code", "state"),
    [(9_999, "within-window", "fresh"), (10_000, "within-window", "fresh"), (10_001, "base-table-changed", "stale")],
)
def test_the_window_compares_snapshot_timestamps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lag_ms: int, code: str, state: str
) -> None:
    of = shop(tmp_path, WINDOW)
    of.run()
    before = of.table("raw.orders").current_snapshot
    assert before is not None
    after = append(of.catalog, "raw.orders")
    _set_time(of, after, before.timestamp_ms + lag_ms)
    assert codes(of) == [code]
    assert answer(of).state == state
    assert answer(of).reasons[0].lag_ms == lag_ms


def _set_time(of: Shop, table: TableState, at_ms: int) -> None:
    """Move the newest snapshot to a time, in the metadata itself."""
    import json

    files = of.catalog._files._contents  # type: ignore[attr-defined]
    content, changed_ms = files[table.metadata_location]
    raw = json.loads(content)
    for snapshot in raw["snapshots"]:
        if snapshot["snapshot-id"] == table.current_snapshot_id:
            snapshot["timestamp-ms"] = at_ms
    files[table.metadata_location] = (json.dumps(raw).encode(), changed_ms)


def test_a_tag_is_followed_and_main_is_not(tmp_path: Path) -> None:
    of = shop(tmp_path, PROJECT | {"models/daily.sql": "SELECT id FROM raw.orders VERSION AS OF 'v1'"})
    orders = of.table("raw.orders")
    of.catalog.create_branch(orders, "v1")
    of.run()
    append(of.catalog, "raw.orders")
    assert answer(of).state == "fresh"
    of.catalog.append_snapshot(name("raw.orders"), {"id": [9]}, branch="v1")
    assert codes(of) == ["base-table-changed"]


def test_a_snapshot_that_the_user_pinned_never_changes(tmp_path: Path) -> None:
    of = shop(tmp_path)
    snapshot = of.table("raw.orders").current_snapshot_id
    of.write({"models/daily.sql": f"SELECT id FROM raw.orders VERSION AS OF {snapshot}"})
    of.run()
    append(of.catalog, "raw.orders")
    assert answer(of).state == "fresh"


@pytest.mark.parametrize(
    "column", ["_file", "_POS", "`_spec_id`", "_deleted", "_row_id", "_last_updated_sequence_number", "_metadata.file_path"]
)
def test_a_compaction_is_a_change_to_a_query_that_asks_for_files(tmp_path: Path, column: str) -> None:
    view = {"models/orders_clean.sql": f"{{{{ config(materialized='view') }}}}\nSELECT id FROM raw.orders WHERE {column} IS NOT NULL\n"}
    of = shop(tmp_path, {**PROJECT, **view})
    of.run()
    assert answer(of).state == "fresh"
    append(of.catalog, "raw.orders", operation="replace")
    assert (answer(of).state, codes(of)) == ("stale", ["base-table-rewritten"])
    of.changes = Changes(of.catalog.changes)
    assert of.actions("daily") == {"daily": "refresh"}
    choice = of.plan("daily").steps[0].choice
    assert choice is not None
    assert (choice.strategy, choice.code) == ("full", "metadata-columns")
    of.run()
    assert answer(of).state == "fresh"


def test_a_new_partition_spec_goes_unseen_so_that_a_query_that_asks_for_partitions_is_never_fresh(tmp_path: Path) -> None:
    of = shop(tmp_path, {**PROJECT, "models/daily.sql": "SELECT id FROM raw.orders WHERE _partition IS NOT NULL\n"})
    of.run()
    assert (answer(of).state, codes(of)) == ("unknown", ["nondeterministic"])


@pytest.mark.parametrize(
    "condition", ["'${cut}' = 'x'", "'${env:CUT}' = 'x'", "limit_of(id) > 1", "raw.abs(id) > 1", "id > system.session.cut"]
)
def test_what_the_session_puts_in_is_no_constant(tmp_path: Path, condition: str) -> None:
    of = shop(tmp_path, {**PROJECT, "models/daily.sql": f"SELECT id FROM {{{{ ref('orders_clean') }}}} WHERE {condition}\n"})
    of.run()
    assert (answer(of).state, codes(of)) == ("unknown", ["nondeterministic"])
    of.changes = Changes(of.catalog.changes)
    append(of.catalog, "raw.orders")
    choice = of.plan("daily").steps[0].choice
    assert choice is not None
    assert (choice.strategy, choice.code) == ("full", "nondeterministic")


@pytest.mark.parametrize(
    "condition",
    [
        "user = 'x'",
        "`current_user` = 'x'",
        "`now`() > TIMESTAMP '2026-01-31 00:00:00'",
        "CAST('now' AS TIMESTAMP) > TIMESTAMP '2026-01-31 00:00:00'",
        "to_date('today') > DATE '2026-01-31'",
        "unix_date('yesterday') > id",
        "TIMESTAMP '10:30' > CAST(id AS TIMESTAMP)",
    ],
)
def test_a_function_without_brackets_and_a_string_that_means_now_are_no_constants(tmp_path: Path, condition: str) -> None:
    of = shop(tmp_path, {**PROJECT, "models/daily.sql": f"SELECT id FROM {{{{ ref('orders_clean') }}}} WHERE {condition}\n"})
    of.run()
    assert (answer(of).state, codes(of)) == ("unknown", ["nondeterministic"])


@pytest.mark.parametrize("condition", ["t.user = 'x'", "id = 1 AND 'today' = concat('to', 'day')"])
def test_a_qualified_name_and_other_strings_are_what_they_say(tmp_path: Path, condition: str) -> None:
    query = f"SELECT t.id FROM (SELECT id, 'y' AS user FROM {{{{ ref('orders_clean') }}}}) AS t WHERE {condition}\n"
    of = shop(tmp_path, {**PROJECT, "models/daily.sql": query})
    of.run()
    assert answer(of).state == "fresh"


# --- the session -----------------------------------------------------------------------------------------------------------------


def seen_from(of: Shop, **settings: str) -> Freshness:
    """What a reader's own session makes of `daily`."""
    world = of.world()
    session = session_of(
        {"spark.sql.session.timeZone": "UTC", **{f"spark.sql.{key.replace('_', '.')}": value for key, value in settings.items()}}
    )
    return judge(replace(world, observed=replace(world.observed, session=session)))["model.shop.daily"]


BERLIN = {"session_timeZone": "Europe/Berlin"}


def test_utc_by_another_name(tmp_path: Path) -> None:
    of = shop(tmp_path, {**PROJECT, "models/daily.sql": "SELECT hour(ts) AS h FROM raw.orders\n"})
    of.run()
    assert seen_from(of, **BERLIN).state == "stale"
    assert seen_from(of, session_timeZone="Etc/UTC").state == "fresh"


def test_rows_that_depend_on_the_time_zone_are_stale_in_another_one(tmp_path: Path) -> None:
    view = {"models/orders_clean.sql": "{{ config(materialized='view') }}\nSELECT id FROM raw.orders WHERE hour(ts) > 1\n"}
    of = shop(tmp_path, {**PROJECT, **view})
    of.run()
    assert seen_from(of).state == answer(of).state == "fresh"
    found = seen_from(of, **BERLIN)
    assert (found.state, [r.code for r in found.reasons]) == ("stale", ["session-differs"])
    assert "(UTC then, Europe/Berlin now), and HOUR(ts) may" in found.reasons[0].message


def test_rows_that_do_not_depend_on_the_time_zone_stay_fresh(built: Shop) -> None:
    assert seen_from(built, **BERLIN).state == "fresh"


def test_other_rules_of_sql_make_any_mv_stale(built: Shop) -> None:
    found = seen_from(built, ansi_enabled="false")
    assert [(r.code, r.effect) for r in found.reasons] == [("session-differs", "stale")]
    assert "spark.sql.ansi.enabled was different (true then, false now)" in found.reasons[0].message
    assert seen_from(built, storeAssignmentPolicy="LEGACY", shuffle_partitions="7").state == "fresh"


def test_a_project_that_configures_its_session_anew_builds_anew(tmp_path: Path) -> None:
    of = shop(tmp_path, {**PROJECT, "models/daily.sql": "SELECT id FROM raw.orders WHERE date_trunc('day', d) > '2026-01-01'\n"})
    of.run()
    target = "name: shop\ntarget: dev\ntargets: {dev: {namespace: main, spark: {config: {spark.sql.session.timeZone: Asia/Tokyo}}}}\n"
    of.write({"mvbuild.yml": target})
    of.changes = Changes(of.catalog.changes)
    assert codes(of) == ["session-differs"]
    choice = of.plan("daily").steps[0].choice
    assert choice is not None
    assert (choice.strategy, choice.code) == ("full", "session-changed")
    of.engine.session = {"spark.sql.session.timeZone": "Asia/Tokyo"}
    of.run()
    assert codes(of) == []


def test_what_the_environment_gives_every_session_is_no_change(built: Shop) -> None:
    built.engine.session = {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "false"}
    append(built.catalog, "raw.orders")
    built.run()
    assert answer(built).state == "fresh"
    assert seen_from(built, ansi_enabled="false").state == "fresh"
    assert seen_from(built).state == "stale"


def test_without_a_note_of_the_session_rows_that_depend_on_the_zone_are_unknown(tmp_path: Path) -> None:
    of = shop(tmp_path, {**PROJECT, "models/daily.sql": "SELECT id FROM raw.orders WHERE hour(ts) > 1\n"})
    of.run()
    world = of.world()
    storage = of.table("main.daily__storage")
    unnoted = {id: replace(s, summary={k: v for k, v in s.summary.items() if k != SESSION_KEY}) for id, s in storage.snapshots.items()}
    kept = {k: v for k, v in storage.properties.items() if k != SESSION_KEY}
    observed = world.observed.updated({storage.identifier: replace(storage, snapshots=unnoted, properties=kept)})
    found = judge(replace(world, observed=observed))["model.shop.daily"]
    assert [(r.code, r.effect) for r in found.reasons] == [("session-not-recorded", "unknown")]


def test_a_variable_that_spark_does_not_replace_is_text(tmp_path: Path) -> None:
    of = shop(tmp_path, {**PROJECT, "models/daily.sql": "SELECT id FROM raw.orders WHERE '${cut}' = 'x'\n"})
    of.engine.session = {"spark.sql.session.timeZone": "UTC", "spark.sql.variable.substitute": "false"}
    of.run()
    assert seen_from(of, variable_substitute="false").state == "fresh"
    assert seen_from(of).state == "unknown"


def test_a_time_that_becomes_another_snapshot_in_another_zone_is_stale_where_that_one_is_recorded_too(tmp_path: Path) -> None:
    """The table is read twice, and in the other zone the time names the snapshot that was current: the record has it as well."""
    of = shop(tmp_path)
    first = of.table("raw.orders")
    (at_ms,) = [ms for ms, id in first.snapshot_log if id == first.current_snapshot_id]
    while append(of.catalog, "raw.orders").snapshot_log[-1][0] <= at_ms + 1:
        pass
    text = datetime.fromtimestamp((at_ms + 1) / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")
    query = f"SELECT o.id FROM raw.orders o JOIN raw.orders TIMESTAMP AS OF '{text}' AS p ON o.id = p.id\n"
    of.write({"models/daily.sql": query})
    of.run()
    assert (seen_from(of).state, seen_from(of, session_timeZone="America/New_York").state) == ("fresh", "stale")
    target = "name: shop\ntarget: dev\ntargets: {dev: {namespace: main, spark: {config: {spark.sql.session.timeZone: America/New_York}}}}\n"
    of.write({"mvbuild.yml": target})
    of.changes = Changes(of.catalog.changes)
    choice = of.plan("daily").steps[0].choice
    assert choice is not None
    assert (choice.strategy, choice.code) == ("full", "record-incomplete")


@pytest.mark.parametrize(("zone", "seconds"), [("UTC", 0), ("Europe/Berlin", 3600), ("America/New_York", -5 * 3600)])
def test_a_time_without_a_zone_is_one_of_the_session(built: Shop, zone: str, seconds: int) -> None:
    table = built.table("raw.orders")
    at_s = 1_767_225_600 - seconds
    log = [(1000 * at_s - 1, 1), (1000 * at_s, 2), (1000 * at_s + 1, 3)]
    snapshot = table.snapshots[table.current_snapshot_id]  # type: ignore[index]
    table = replace(table, snapshot_log=log, snapshots={id: replace(snapshot, snapshot_id=id) for _, id in log})
    world = built.world()
    observed = replace(world.observed.updated({table.identifier: table}), session=session_of({"spark.sql.session.timeZone": zone}))
    (node,) = (id for id, n in world.graph.nodes.items() if n.identifier == table.identifier)
    times: list[str | int] = [
        "2026-01-01 00:00:00",
        "2026-01-01",
        at_s,
        f"2026-01-01T00:00:00{'+' if seconds >= 0 else '-'}{abs(seconds) // 3600:02}:00",
    ]
    for text in times:
        found = pin(world.graph, observed, Leaf(node=node, travel=("timestamp", text)))
        assert found is not None
        assert found.snapshot_id == 2, text


def test_a_seed_whose_name_a_table_of_others_has_was_not_edited(tmp_path: Path) -> None:
    of = shop(tmp_path, {"mvbuild.yml": "name: shop\n", "seeds/s.csv": "id\n1\n", "models/m.sql": "SELECT id FROM {{ ref('s') }}\n"})
    base_table(of.catalog, "main.s")
    (reason,) = (one for one in judge(of.world())["model.shop.m"].reasons if one.code == "seed-changed")
    assert reason.message == "the seed lake.main.s is not in the catalog yet"
