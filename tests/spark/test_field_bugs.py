"""Every bug that materialized views of other systems had in the field, as a test: real Spark and Iceberg, in both storage formats.

The rows of a storage are read by PyIceberg from the metadata file that the catalog leads to, and compared with the query that Spark computes.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

from mvbuild import api
from mvbuild.adapters.spark.engine import SparkQuery
from mvbuild.diagnostics import ProjectError
from mvbuild.formats import metadata_file
from mvbuild.freshness.model import Freshness
from mvbuild.ports.states import TableState
from mvbuild.refresh.result import Event, Finished, Started
from mvbuild.storage.history import history
from spark.projects import NoSpark, Project, arrow_bag, bag, customers, messages, named, of, order, orders
from spark.shop import MakeProject

pytestmark = pytest.mark.proof

# By name `a_total` comes before `revenue`, which it reads.
FILES = {
    "models/active_customers.sql": "{{ config(materialized='view') }}\nSELECT customer_id, country FROM raw.customers WHERE active\n",
    "models/revenue.sql": (
        "SELECT c.country, sum(o.amount) AS revenue, count(*) AS orders\n"
        "FROM raw.orders o JOIN {{ ref('active_customers') }} c ON o.customer_id = c.customer_id\n"
        "GROUP BY c.country\n"
    ),
    "models/a_total.sql": "SELECT sum(revenue) AS revenue, sum(orders) AS orders FROM {{ ref('revenue') }}\n",
}
MODEL = "models/revenue.sql"
REVENUE = (
    "SELECT c.country, sum(o.amount) AS revenue, count(*) AS orders FROM lake.raw.orders o"
    " JOIN (SELECT * FROM lake.raw.customers WHERE active) c ON o.customer_id = c.customer_id GROUP BY c.country"
)
ORDERS = ((1, 1, "2026-01-05", "10.00"), (2, 2, "2026-01-05", "5.50"), (3, 1, "2026-02-01", "1.25"))
CUSTOMERS = ((1, "DE", True), (2, "FR", True), (3, "IT", False))


CONFIG = "name: bugs\nmodels: {+storage: {format: %s}, +refresh_history: 3, +refresh_policy: full}\n"
"""What is refreshed is the matter here, and not how: an incremental refresh that finds the same rows would write nothing."""


@pytest.fixture(scope="module", params=["table-properties", "metadata-file"])
def house(request: pytest.FixtureRequest, project: MakeProject) -> Project:
    made = project({**FILES, "mvbuild.yml": CONFIG % request.param})
    for key, value in {"spark.sql.shuffle.partitions": "1", "spark.sql.adaptive.enabled": "false"}.items():
        made.spark.conf.set(key, value)
    made.make("raw.orders", orders(*ORDERS))
    made.make("raw.customers", customers(*CUSTOMERS))
    assert made.refreshed(on_event=made.events.append, threads=2) == {"active_customers", "revenue", "a_total"}
    return made


@pytest.fixture
def built(house: Project) -> Iterator[Project]:
    """The one project of a format: each test finds its files and base tables, with everything fresh, and more of its own."""
    yield house
    for file in (house.root / "models").iterdir():
        if f"models/{file.name}" not in FILES:
            file.unlink()
    house.write(FILES)
    for name, rows in (("orders", orders(*ORDERS)), ("customers", customers(*CUSTOMERS))):
        if ("raw", name) in house.catalog.list_tables("raw") and set(house.table(f"raw.{name}").schema().column_names) != set(
            rows.column_names
        ):
            house.catalog.drop_table(f"raw.{name}")
        if ("raw", name) not in house.catalog.list_tables("raw"):
            house.make(f"raw.{name}", rows)
    for _ in range(2):
        # The second run moves records on over what the first one has altered.
        result = house.run()
        assert result.ok, messages(result)


# --- what is asked of it ---------------------------------------------------------------------------------------------------------


def status(of: Project, model: str) -> tuple[Freshness, TableState]:
    world, answers = api.status(of.root)
    node = world.graph.model(f"model.bugs.{model}")
    storage = world.observed.table(node.storage)
    assert storage is not None
    return answers[node.id], storage


def storage(of: Project, model: str = "revenue") -> TableState:
    return status(of, model)[1]


def state(of: Project, model: str = "revenue") -> str:
    return status(of, model)[0].state


def stored(of: Project, model: str = "revenue") -> Counter[str]:
    """The rows in the storage, whether they are fresh or not."""
    return arrow_bag(StaticTable.from_metadata(storage(of, model).metadata_location).scan().to_arrow())


def recorded(of: Project, uuid: str, model: str = "revenue") -> int:
    """The snapshot that the record names for a table, as the format has it."""
    found = storage(of, model)
    if found.mv is None:
        return int(found.properties[f"iceberg.base.snapshot.{uuid}"])
    assert found.mv.current_refresh is not None
    (reference,) = (
        t["snapshot-reference"] for t in found.mv.current_refresh["base-tables"].values() if t.get("properties", {}).get("uuid") == uuid
    )
    return int(reference)


def recorded_views(of: Project, model: str) -> dict[str, str]:
    found, prefix = storage(of, model), "iceberg.child.view.version."
    properties = found.properties if found.mv is None else found.mv.properties
    indirect = properties.get("mvbuild.record.indirect", "").split(",")
    return {u: v for k, v in properties.items() if k.startswith(prefix) and (u := k.removeprefix(prefix)) not in indirect}


def refresh_state(of: Project, model: str) -> set[tuple[str, int, str | None]]:
    """(uuid, snapshot, ref) of every table in the record of the storage's snapshot."""
    snapshot = storage(of, model).current_snapshot
    assert snapshot is not None
    states = json.loads(snapshot.summary["refresh-state"])["source-states"]
    return {(s["uuid"], s["snapshot-id"], s.get("ref")) for s in states if s["type"] == "table"}


def uuid(of: Project, table: str) -> str:
    return str(of.table(table).metadata.table_uuid)


def head(of: Project, table: str) -> int:
    found = of.table(table).metadata.current_snapshot_id
    assert found is not None
    return found


def refreshed(of: Project, *select: str, **options: Any) -> set[str]:
    """`Project.refreshed` of some models."""
    result = of.run(*select, **options)
    assert result.ok, messages(result)
    return {name for name, status in named(result).items() if status == "success"}


def names(of: Project) -> set[str]:
    """What the catalog has in the models' namespace."""
    return {i.name for i in api.catalog_of(api.compile(of.root)).list_names(("main",))}


def add_order(of: Project, number: int = 4) -> None:
    of.append("raw.orders", order(number, 2, "2026-02-01", "7.00"))


def assert_right(of: Project) -> None:
    """Rows, record and freshness; and that a further run finds nothing to do."""
    rows = of.sql(REVENUE)
    assert stored(of) == bag(rows)
    known = [r.revenue for r in rows if r.revenue is not None]
    total = (sum(known) if known else None, sum(r.orders for r in rows) if rows else None)
    assert stored(of, "a_total") == bag([total])
    assert recorded(of, uuid(of, "raw.orders")) == head(of, "raw.orders")
    assert recorded(of, storage(of).uuid, "a_total") == storage(of).current_snapshot_id
    assert (of.codes("revenue"), of.codes("a_total")) == ([], [])
    assert of.only_reused()
    of.assert_tidy()


# --- what others do --------------------------------------------------------------------------------------------------------------


def when_written(
    monkeypatch: pytest.MonkeyPatch, *, before: Callable[[], object] | None = None, after: Callable[[], object] | None = None
) -> None:
    """Do something once: when Spark has planned a query and not read yet, or when it has written and nothing is published yet."""
    original, done = SparkQuery.overwrite, []

    def overwrite(self: SparkQuery, *arguments: Any, **options: Any) -> None:
        is_first = not done
        done.append(True)
        if before and is_first:
            before()
        original(self, *arguments, **options)
        if after and is_first:
            after()

    monkeypatch.setattr(SparkQuery, "overwrite", overwrite)


def by_another_engine(of: Project, act: Callable[[str], object], model: str = "revenue") -> None:
    """Change a storage behind mvbuild's back. An embedded one has no name that an engine could write to: there the engine knows the format,
    and publishes the table metadata that it made in a new file of the MV."""
    found = storage(of, model)
    if found.mv is None:
        act(found.identifier.dotted)
        return
    name = f"raw.other_{uuid4().hex}"
    of.catalog.register_table(name, found.metadata_location)
    act(name)
    location = of.table(name).metadata_location
    of.catalog.drop_table(name)
    record = metadata_file.current_record(found.mv)
    assert record is not None
    content = metadata_file.compose(
        view=metadata_file.view_metadata(found.mv),
        table=json.loads(_path(location).read_text(encoding="utf-8")),
        refreshes=found.mv.refreshes,
        current_refresh_id=found.mv.raw["current-refresh-id"],
        storage_metadata_location=location,
        metadata_log=found.mv.raw.get("metadata-log") or [],
        now_ms=time.time_ns() // 1_000_000,
        child_views=record.child_views,
        refresh_start_ms=record.refresh_start_ms,
    )
    file = _path(found.mv.location) / "metadata" / f"00099-{uuid4()}.mv.metadata.json"
    file.write_bytes(metadata_file.write(content))
    view = of.view(f"main.{model}")
    view["properties"][metadata_file.METADATA_LOCATION] = file.as_uri()
    pointer = of.catalog_file(f"main.{model}").with_name(f"00099-{uuid4()}.metadata.json")
    pointer.write_text(json.dumps(view), encoding="utf-8")
    with closing(sqlite3.connect(of.root / ".mvbuild" / "catalog.db")) as db, db:
        db.execute("UPDATE iceberg_tables SET metadata_location = ? WHERE table_name = ?", [pointer.as_uri(), model])


def _path(location: str) -> Path:
    return Path(location.removeprefix("file://").removeprefix("file:"))


@contextmanager
def reading(of: Project, model: str = "revenue") -> Iterator[list[Counter[str]]]:
    """A reader that reads the storage as fast as it can: the different answers that it got."""
    answers: list[Counter[str]] = []
    failures: list[BaseException] = []
    stop = threading.Event()
    graph = api.compile(of.root)
    node = graph.model(f"model.bugs.{model}")
    embedded = storage(of, model).of_view is not None

    def read() -> None:
        catalog = api.catalog_of(graph)
        wanted = node.identifier if embedded else node.storage
        assert wanted is not None
        try:
            while not stop.is_set():
                found: Any = catalog.load([wanted])[wanted]
                table = found.storage if embedded else found
                rows = arrow_bag(StaticTable.from_metadata(table.metadata_location).scan().to_arrow())
                if rows not in answers:
                    answers.append(rows)
        except BaseException as exc:  # noqa: BLE001  reported in the test's own thread
            failures.append(exc)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield answers
    finally:
        stop.set()
        thread.join()
    assert failures == []


# --- the bugs --------------------------------------------------------------------------------------------------------------------


def test_spark_57897_a_second_run_keeps_the_order_of_the_first(built: Project) -> None:
    """Spark pipelines (issue 57897) ordered the first run by dependencies and, once the tables existed, later runs by name: the name of an
    MV of the pipeline was mistaken for a table of the catalog."""

    def happened(events: list[Any]) -> list[tuple[str, str]]:
        started = [("started", e.node) for e in events if isinstance(e, Started)]
        both = [
            ("started", e.node) if isinstance(e, Started) else ("finished", e.result.node)
            for e in events
            if isinstance(e, Started | Finished)
        ]
        assert both.index(("finished", "model.bugs.revenue")) < both.index(("started", "model.bugs.a_total"))
        return [s for s in started if s[1] != "model.bugs.active_customers"]

    def steps() -> list[str]:
        return [s.node for s in api.plan(built.root).steps]

    first = happened(built.events)
    planned = steps()
    add_order(built)
    assert steps() == planned
    events: list[Event] = []
    assert built.refreshed(on_event=events.append, threads=2) == {"revenue", "a_total"}
    assert happened(events) == first
    # What was refreshed last has read what was refreshed first.
    assert_right(built)


def test_trino_30990_a_source_commits_between_planning_and_writing(built: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trino (pull request 30990) read up to the newest snapshot and recorded the planned one: the next refresh took the rows once more."""
    add_order(built)
    planned = head(built, "raw.orders")
    when_written(monkeypatch, before=lambda: add_order(built, 5))
    assert built.refreshed(threads=1) == {"revenue", "a_total"}
    monkeypatch.undo()
    assert head(built, "raw.orders") != planned
    assert recorded(built, uuid(built, "raw.orders")) == planned
    assert stored(built) == built.bag(REVENUE.replace("lake.raw.orders o", f"lake.raw.orders VERSION AS OF {planned} o"))
    assert stored(built) != built.bag(REVENUE)
    assert (state(built), built.codes("revenue")) == ("stale", ["base-table-changed"])
    assert built.refreshed() == {"revenue", "a_total"}
    assert_right(built)


def test_trino_30987_two_refreshes_overlap(built: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """In Trino (pull request 30987, issue 31257) the second of two refreshes appended the same rows again, or replaced newer content."""
    before = [p.refresh_id for p in history(storage(built))]
    add_order(built)

    def another_run() -> None:
        add_order(built, 5)
        assert built.refreshed(threads=1) == {"revenue", "a_total"}

    when_written(monkeypatch, after=another_run)
    result = built.run(threads=1)
    monkeypatch.undo()
    assert result.ok, messages(result)
    assert (of(result, "revenue").status, of(result, "revenue").message) == ("reused", "another run refreshed it")
    assert [p.refresh_id for p in history(storage(built))] == [*before, before[-1] + 1]
    result = built.run()
    assert result.ok, messages(result)
    assert_right(built)


def test_starrocks_41335_the_source_expired_the_recorded_snapshot(built: Project) -> None:
    """StarRocks (issue 41335) looked the recorded snapshot up, and never refreshed again."""
    before = recorded(built, uuid(built, "raw.orders"))
    add_order(built)
    built.table("raw.orders").maintenance.expire_snapshots().by_id(before).commit()
    assert before not in {s.snapshot_id for s in built.table("raw.orders").metadata.snapshots}
    assert (state(built), built.codes("revenue")) == ("stale", ["snapshot-expired"])
    assert built.refreshed() == {"revenue", "a_total"}
    assert_right(built)


def test_the_source_was_rolled_back(built: Project) -> None:
    """The recorded snapshot still exists and is newer than the current one, but no ancestor of it (Trino issue 18203 failed here)."""
    first = head(built, "raw.orders")
    add_order(built)
    built.run("revenue")
    later = recorded(built, uuid(built, "raw.orders"))
    built.sql(f"CALL lake.system.rollback_to_snapshot('raw.orders', {first})")
    assert recorded(built, uuid(built, "raw.orders")) == later
    assert (state(built), built.codes("revenue")) == ("stale", ["base-table-rolled-back"])
    assert built.refreshed() == {"revenue", "a_total"}
    assert recorded(built, uuid(built, "raw.orders")) == first
    # Another branch of history: neither snapshot is the other's ancestor.
    add_order(built, 6)
    built.run("revenue")
    built.sql(f"CALL lake.system.set_current_snapshot('raw.orders', {later})")
    assert built.codes("revenue") == ["base-table-rolled-back"]
    assert built.refreshed() == {"revenue", "a_total"}
    assert recorded(built, uuid(built, "raw.orders")) == later
    assert_right(built)


def test_the_source_was_dropped_and_recreated(built: Project) -> None:
    """Same name, other uuid (StarRocks issue 59149 refreshed it "without any changes")."""
    rows, old = built.arrow("raw.orders"), uuid(built, "raw.orders")
    built.catalog.drop_table("raw.orders")
    built.make("raw.orders", rows.slice(0, 2))
    assert uuid(built, "raw.orders") != old
    assert (state(built), built.codes("revenue")) == ("stale", ["base-table-recreated"])
    assert built.refreshed() == {"revenue", "a_total"}
    assert old not in {t[0] for t in refresh_state(built, "revenue")}
    assert_right(built)


def test_the_source_was_compacted(built: Project) -> None:
    """Only `replace` snapshots since the recorded one: the same data, no refresh; and no licence for what is written beside it."""
    for number in range(10, 13):
        add_order(built, number)
    built.run()
    before, rows = storage(built).current_snapshot_id, stored(built)
    compact = "CALL lake.system.rewrite_data_files(table => 'raw.orders', options => map('rewrite-all', 'true'))"
    built.sql(compact)
    assert built.table("raw.orders").current_snapshot().summary.operation.value == "replace"  # type: ignore[union-attr]
    assert (state(built), built.codes("revenue")) == ("fresh", ["base-table-compacted"])
    assert built.refreshed(spark=NoSpark()) == set()
    assert stored(built) == rows
    if storage(built).mv is None:
        assert storage(built).current_snapshot_id == before
    assert_right(built)
    add_order(built, 13)
    built.sql(compact)
    assert (state(built), built.codes("revenue")) == ("stale", ["base-table-changed"])
    assert built.refreshed() == {"revenue", "a_total"}
    assert_right(built)


def test_trino_30936_the_storage_was_compacted(built: Project) -> None:
    """In Trino (pull request 30936) the state was lost with the snapshot that OPTIMIZE made: it is not on the newest one."""
    before, rows = storage(built).current_snapshot_id, stored(built)
    by_another_engine(
        built, lambda name: built.sql(f"CALL lake.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))")
    )
    now = storage(built).current_snapshot
    assert now is not None
    assert (now.operation, now.parent_id, "refresh-state" in now.summary) == ("replace", before, False)
    assert (state(built), built.codes("revenue")) == ("fresh", [])
    assert (state(built, "a_total"), built.codes("a_total")) == ("fresh", ["base-table-compacted"])
    assert built.refreshed(spark=NoSpark()) == set()
    assert stored(built) == rows
    assert_right(built)
    add_order(built)
    assert (state(built), built.codes("revenue")) == ("stale", ["base-table-changed"])
    assert built.refreshed() == {"revenue", "a_total"}
    assert_right(built)


def test_clickhouse_120364_a_foreign_append_into_the_storage(built: Project) -> None:
    """ClickHouse (issue 120364) lost its cursor with the foreign snapshot, and appended every row of the source once more."""
    row = {"country": "XX", "revenue": Decimal("1.00"), "orders": 1}

    def append(name: str) -> None:
        table = built.table(name)
        table.append(pa.Table.from_pylist([row], schema=table.schema().as_arrow()))

    by_another_engine(built, append)
    assert stored(built) == built.bag(REVENUE) + Counter([repr(tuple(row.values()))])
    assert (state(built), built.codes("revenue")) == ("stale", ["storage-changed"])
    assert Counter(repr(tuple(r)) for r in api.read(built.spark, "revenue", project=built.root).collect()) == built.bag(REVENUE)
    assert built.refreshed() == {"revenue", "a_total"}
    assert_right(built)
    # With a compaction on top the foreign rows are still foreign.
    by_another_engine(built, append)
    by_another_engine(
        built, lambda name: built.sql(f"CALL lake.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))")
    )
    assert (state(built), built.codes("revenue")) == ("stale", ["storage-changed"])
    assert built.refreshed() == {"revenue", "a_total"}
    assert_right(built)


def test_an_empty_result_still_commits(built: Project) -> None:
    """Without a snapshot there is no place for the state, and the MV seems never to have been refreshed."""
    built.write({"models/nothing.sql": "SELECT order_id, amount FROM raw.orders WHERE order_id < 0\n"})
    assert refreshed(built, "nothing") == {"nothing"}
    assert stored(built, "nothing") == Counter()
    assert len(history(storage(built, "nothing"))) == 1
    assert refresh_state(built, "nothing") == {(uuid(built, "raw.orders"), head(built, "raw.orders"), None)}
    assert (state(built, "nothing"), built.codes("nothing")) == ("fresh", [])
    assert built.only_reused()
    add_order(built)
    assert refreshed(built, "nothing") == {"nothing"}
    assert recorded(built, uuid(built, "raw.orders"), "nothing") == head(built, "raw.orders")
    assert len(history(storage(built, "nothing"))) == 2
    # From rows to none: the old ones must go.
    built.sql("DELETE FROM lake.raw.orders WHERE order_id >= 0")
    assert built.refreshed() == {"revenue", "a_total", "nothing"}
    assert stored(built) == Counter()
    assert_right(built)
    built.append("raw.orders", *(order(*row) for row in ORDERS))


def test_a_definition_was_edited(built: Project) -> None:
    """State of another version of the view is invalid: the storage has rows of another query."""
    version = built.view_version("main.revenue")
    built.write({MODEL: FILES[MODEL].replace("GROUP BY", "WHERE c.country = 'FR'\nGROUP BY")})
    assert (state(built), built.codes("revenue")) == ("stale", ["definition-changed"])
    assert built.refreshed() == {"revenue", "a_total"}
    snapshot = storage(built).current_snapshot
    assert snapshot is not None
    assert built.view_version("main.revenue") == json.loads(snapshot.summary["refresh-state"])["view-version-id"] > version
    assert stored(built) == built.bag(REVENUE.replace("GROUP BY", "WHERE c.country = 'FR' GROUP BY"))
    assert built.only_reused()
    # An edit by others: the view in the catalog is at a version that the record does not have.
    built.sql("CREATE OR REPLACE VIEW lake.main.revenue AS SELECT 1 AS one")
    assert state(built) == "stale"
    built.write(FILES)
    assert built.refreshed() == {"revenue", "a_total"}
    assert_right(built)


def test_a_definition_was_only_reformatted(built: Project) -> None:
    """Formatting and comments do not count as a change: no row is read or written for them, and what reads the MV stays fresh."""
    rows, files = stored(built), StaticTable.from_metadata(storage(built).metadata_location).inspect.files()["file_path"].to_pylist()
    built.write({MODEL: "-- What came in.\n" + FILES[MODEL].replace("SELECT ", "select\n    ").replace("GROUP BY", "/* per */ group   by")})
    assert (state(built), built.codes("revenue")) == ("fresh", [])
    assert built.refreshed(spark=NoSpark()) == set()
    assert stored(built) == rows
    assert StaticTable.from_metadata(storage(built).metadata_location).inspect.files()["file_path"].to_pylist() == files
    assert [p.refresh_id for p in history(storage(built)) if p.is_current] == [max(p.refresh_id for p in history(storage(built)))]
    built.run(spark=NoSpark())
    assert_right(built)


def test_an_upstream_was_refreshed_with_no_change_in_its_rows(built: Project) -> None:
    """The source has a row that the upstream does not show. What reads the upstream must come to rest, on the snapshot that there is."""
    rows = stored(built)
    built.append("raw.orders", order(7, 3, "2026-02-01", "7.00"))
    assert built.codes("a_total") == ["upstream-stale"]
    assert "revenue" in built.refreshed()
    assert stored(built) == rows
    assert recorded(built, storage(built).uuid, "a_total") == storage(built).current_snapshot_id
    assert_right(built)
    # The upstream alone: the other knows that it is behind, and the next run brings it there.
    built.append("raw.orders", order(8, 3, "2026-02-01", "7.00"))
    assert refreshed(built, "revenue") == {"revenue"}
    assert state(built, "a_total") == "stale" or recorded(built, storage(built).uuid, "a_total") == storage(built).current_snapshot_id
    built.run()
    assert_right(built)


def test_a_diamond_reads_one_snapshot_of_its_source(built: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both arms of one run see the same source, even if another writer commits in between; the MV below records every table that it read."""
    built.make("raw.keys", orders(*ORDERS))
    built.write(
        {
            "models/left_arm.sql": "SELECT order_id, amount FROM raw.keys\n",
            "models/right_arm.sql": "SELECT order_id, customer_id FROM raw.keys\n",
            "models/tip.sql": (
                "SELECT l.order_id AS l, r.order_id AS r, o.order_id AS o FROM {{ ref('left_arm') }} l FULL JOIN {{ ref('right_arm') }} r"
                " ON l.order_id = r.order_id FULL JOIN raw.keys o ON o.order_id = coalesce(l.order_id, r.order_id)\n"
            ),
        }
    )
    source, planned = uuid(built, "raw.keys"), head(built, "raw.keys")
    ids = [1, 2, 3]
    when_written(monkeypatch, after=lambda: built.append("raw.keys", order(4, 1, "2026-01-05", "1.00")))
    assert refreshed(built, "left_arm", "right_arm", "tip", threads=1) == {"left_arm", "right_arm", "tip"}
    monkeypatch.undo()
    assert head(built, "raw.keys") != planned
    assert [recorded(built, source, model) for model in ("left_arm", "right_arm", "tip")] == [planned] * 3
    arms = {(found.uuid, found.current_snapshot_id, None) for found in (storage(built, "left_arm"), storage(built, "right_arm"))}
    assert refresh_state(built, "tip") == {(source, planned, None), *arms}
    assert stored(built, "tip") == Counter(repr((n, n, n)) for n in ids)
    assert built.codes("tip") == ["upstream-stale", "upstream-stale", "base-table-changed"]
    # One arm alone: the tip has read another state of it, and is not fresh because the rest is.
    assert refreshed(built, "left_arm") == {"left_arm"}
    assert {"base-table-changed", "upstream-stale"} <= set(built.codes("tip"))
    assert refreshed(built, "left_arm", "right_arm", "tip") == {"right_arm", "tip"}
    assert stored(built, "tip") == Counter(repr((n, n, n)) for n in [*ids, 4])
    assert built.codes("tip") == []


def test_one_source_at_two_snapshots_is_recorded_twice(built: Project) -> None:
    """Every distinct state is recorded. A metadata file has room for one of each table, and refuses before anything is written."""
    first = head(built, "raw.orders")
    add_order(built)
    built.write({"models/both.sql": f"SELECT order_id FROM raw.orders EXCEPT SELECT order_id FROM raw.orders VERSION AS OF {first}\n"})
    result = built.run("both")
    if storage(built).mv is not None:
        assert [d.code for d in of(result, "both").diagnostics] == ["unsupported-format"]
        assert "both" not in names(built)
        return
    assert result.ok, messages(result)
    source = uuid(built, "raw.orders")
    assert refresh_state(built, "both") == {(source, head(built, "raw.orders"), None), (source, first, None)}
    assert built.codes("both") == []
    add_order(built, 5)
    assert built.codes("both") == ["base-table-changed"]


@pytest.mark.parametrize("kind", ["branch", "tag"])
def test_a_source_pinned_to_a_branch_or_tag(built: Project, kind: str) -> None:
    """The branch counts, and main does not (StarRocks issue 71968 refreshed from main)."""
    built.sql(f"ALTER TABLE lake.raw.orders CREATE {kind} the_{kind}")
    built.write({"models/pinned.sql": f"SELECT order_id, amount FROM raw.orders VERSION AS OF 'the_{kind}'\n"})
    query = f"SELECT order_id, amount FROM lake.raw.orders VERSION AS OF 'the_{kind}'"
    at = head(built, "raw.orders")
    add_order(built)
    assert refreshed(built, "pinned") == {"pinned"}
    assert refresh_state(built, "pinned") == {(uuid(built, "raw.orders"), at, f"the_{kind}")}
    assert recorded(built, uuid(built, "raw.orders"), "pinned") == at
    assert stored(built, "pinned") == built.bag(query) != built.bag("SELECT order_id, amount FROM lake.raw.orders")
    add_order(built, 5)
    assert (state(built, "pinned"), built.codes("pinned")) == ("fresh", [])
    if kind == "branch":
        built.sql("INSERT INTO lake.raw.orders.branch_the_branch VALUES (9, 1, DATE'2026-01-01', 9.00)")
    else:
        built.sql(f"ALTER TABLE lake.raw.orders REPLACE TAG the_tag AS OF VERSION {head(built, 'raw.orders')}")
    moved = built.table("raw.orders").metadata.refs[f"the_{kind}"].snapshot_id
    assert (state(built, "pinned"), built.codes("pinned")) == ("stale", ["base-table-changed"])
    assert refreshed(built, "pinned") == {"pinned"}
    assert recorded(built, uuid(built, "raw.orders"), "pinned") == moved != at
    assert stored(built, "pinned") == built.bag(query)
    assert (state(built, "pinned"), built.codes("pinned")) == ("fresh", [])


NOW = "SELECT order_id, current_timestamp() AS at FROM raw.orders\n"


def test_trino_28696_nondeterministic_sql_is_computed_anew_for_every_row(built: Project) -> None:
    """In Trino (issue 28696) a refresh gave new rows the new time, and left the old time in the others."""
    built.write({"models/clock.sql": NOW})
    before = time.time()
    assert refreshed(built, "clock") == {"clock"}

    def times() -> list[Any]:
        rows = StaticTable.from_metadata(storage(built, "clock").metadata_location).scan().to_arrow()
        assert rows.num_rows == built.sql("SELECT count(*) AS n FROM lake.raw.orders")[0].n
        return sorted({t.timestamp() for t in rows["at"].to_pylist()})

    (first,) = times()
    add_order(built)
    assert refreshed(built, "clock") == {"clock"}
    (second,) = times()
    assert before - 60 < first < second


def test_trino_22533_nondeterministic_sql_is_not_fresh_because_its_tables_are(built: Project) -> None:
    """In Trino (issue 22533) an MV with current_timestamp was fresh for ever while its tables did not change. It says `unknown` now."""
    built.write({"models/clock.sql": NOW})
    assert refreshed(built, "clock") == {"clock"}
    is_fresh = state(built, "clock") == "fresh"
    assert not is_fresh


@pytest.mark.parametrize("how", ["query", "data test"])
def test_a_failed_refresh_leaves_the_old_data_readable(built: Project, how: str) -> None:
    """Spark pipelines truncate first, so a later failure leaves an empty table. Here readers only ever see the old rows."""
    before, at, files = stored(built), storage(built).current_snapshot_id, dict(FILES)
    record = status(built, "revenue")[0].record
    if how == "query":
        files[MODEL] = FILES[MODEL].replace("sum(o.amount)", "sum(o.amount + assert_true(o.amount > 100))")
        files[MODEL] = FILES[MODEL].replace("count(*) AS orders", "count(if(o.amount < 100, raise_error('no'), 1)) AS orders")
    else:
        built.write(
            {"models/revenue.yml": "models: [{name: revenue, columns: [{name: country, data_tests: [accepted_values: {values: [XX]}]}]}]\n"}
        )
    built.write(files)
    add_order(built)
    with reading(built) as answers:
        result = built.run(threads=1)
    assert (named(result)["revenue"], named(result)["a_total"]) == ("error", "skipped"), messages(result)
    assert [d.code for d in of(result, "revenue").diagnostics] == ["test-failed" if how == "data test" else "query-failed"]
    assert answers == [before]
    assert (storage(built).current_snapshot_id, stored(built)) == (at, before)
    freshness = status(built, "revenue")[0]
    assert (freshness.state, freshness.record) == ("stale", record)
    built.assert_tidy()
    built.write(FILES)
    (built.root / "models/revenue.yml").unlink(missing_ok=True)
    with reading(built) as answers:
        assert built.refreshed() == {"revenue", "a_total"}
    assert all(rows in (before, stored(built)) for rows in answers)
    assert stored(built) != before
    assert_right(built)


def test_the_partition_spec_of_the_storage_was_changed(built: Project) -> None:
    """By the configuration or by others: rows and record stay those of the refresh, and the next one fits the new spec."""

    def spec() -> list[tuple[str, str]]:
        return [(p.column, p.transform) for p in storage(built).partition_by]

    rows = stored(built)
    by_another_engine(built, lambda name: built.sql(f"ALTER TABLE lake.{name} ADD PARTITION FIELD bucket(4, orders)"))
    assert spec() == [("orders", "bucket[4]")]
    assert (state(built), built.codes("revenue")) == ("fresh", [])
    add_order(built)
    assert built.refreshed() == {"revenue", "a_total"}
    assert_right(built)
    built.write({"models/revenue.yml": "models: [{name: revenue, config: {partition_by: [country]}}]\n"})
    before = stored(built)
    assert before != rows
    result = built.run()
    assert result.ok, messages(result)
    assert spec() == [("country", "identity")]
    assert stored(built) == before
    assert_right(built)
    add_order(built, 5)
    assert built.refreshed() == {"revenue", "a_total"}
    files = StaticTable.from_metadata(storage(built).metadata_location).inspect.files()
    assert len(files) == len(stored(built)) > 1
    assert_right(built)


def test_starrocks_71918_a_source_column_was_dropped(built: Project) -> None:
    """StarRocks (issue 71918) skipped the refresh or failed, and continued to serve. A column that is not read does not matter; one that is
    read is an error at its place, and the old rows remain."""
    built.sql("ALTER TABLE lake.raw.orders DROP COLUMN order_date")
    assert built.only_reused()
    built.sql("INSERT INTO lake.raw.orders VALUES (5, 1, 2.00)")
    assert built.refreshed() == {"revenue", "a_total"}
    assert_right(built)
    before = stored(built)
    built.sql("ALTER TABLE lake.raw.orders DROP COLUMN amount")
    assert (state(built), built.codes("revenue")) == ("stale", ["base-table-schema-changed"])
    built.sql("INSERT INTO lake.raw.orders VALUES (6, 2)")
    result = built.run()
    assert (result.ok, named(result)["revenue"], named(result)["a_total"]) == (False, "error", "skipped")
    (diagnostic,) = of(result, "revenue").diagnostics
    assert diagnostic.code == "query-failed"
    assert diagnostic.span is not None
    assert diagnostic.span.file.text[diagnostic.span.start : diagnostic.span.end] == "o.amount"
    assert stored(built) == before
    assert state(built) == "stale"
    # A column of the same name is another one: its old values are not back.
    built.sql("ALTER TABLE lake.raw.orders ADD COLUMN amount DECIMAL(10, 2)")
    built.sql("INSERT INTO lake.raw.orders VALUES (7, 2, 3.00)")
    assert built.refreshed() == {"revenue", "a_total"}
    assert stored(built)[repr(("FR", Decimal("3.00"), stored_orders(built, "FR")))] == 1
    assert_right(built)


def stored_orders(of: Project, country: str) -> int:
    rows = StaticTable.from_metadata(storage(of).metadata_location).scan().to_arrow().to_pylist()
    return next(r["orders"] for r in rows if r["country"] == country)


def test_a_view_is_a_source_and_a_nested_view_was_replaced(built: Project) -> None:
    """Views are expanded, nested ones too: the version of each is recorded, and one that is replaced makes the MV stale."""
    inner, outer = "SELECT order_id, amount FROM lake.raw.orders WHERE order_id > {}", "SELECT order_id, amount FROM lake.raw.inner_view"
    built.sql(f"CREATE OR REPLACE VIEW lake.raw.inner_view AS {inner.format(0)}")
    built.sql(f"CREATE OR REPLACE VIEW lake.raw.outer_view AS {outer}")
    built.write({"models/over_views.sql": "SELECT order_id, amount FROM raw.outer_view\n"})
    assert refreshed(built, "over_views") == {"over_views"}

    def versions() -> dict[str, str]:
        found = (built.view(f"raw.{name}") for name in ("inner_view", "outer_view"))
        return {v["view-uuid"]: str(v["current-version-id"]) for v in found}

    first = versions()
    assert recorded_views(built, "over_views") == first
    assert recorded(built, uuid(built, "raw.orders"), "over_views") == head(built, "raw.orders")
    assert (state(built, "over_views"), built.codes("over_views")) == ("fresh", [])
    built.sql(f"CREATE OR REPLACE VIEW lake.raw.inner_view AS {inner.format(1)}")
    assert versions() != first
    assert (state(built, "over_views"), built.codes("over_views")) == ("stale", ["child-view-changed"])
    assert refreshed(built, "over_views") == {"over_views"}
    assert recorded_views(built, "over_views") == versions()
    assert stored(built, "over_views") == built.bag("SELECT * FROM lake.raw.outer_view") == built.bag(inner.format(1))
    # Dropped and made again with the same text: version 1 of another view.
    built.sql("DROP VIEW lake.raw.inner_view")
    built.sql(f"CREATE VIEW lake.raw.inner_view AS {inner.format(2)}")
    assert (state(built, "over_views"), built.codes("over_views")) == ("stale", ["child-view-recreated"])
    assert refreshed(built, "over_views") == {"over_views"}
    assert recorded_views(built, "over_views") == versions()
    assert stored(built, "over_views") == built.bag(inner.format(2))
    assert (state(built, "over_views"), built.codes("over_views")) == ("fresh", [])


def test_trino_26051_cleaning_up_does_not_break_running_readers(built: Project) -> None:
    """Trino 476 (reverted in pull request 26051) deleted the files of the old snapshot in the refresh, while readers used them."""
    rows = stored(built)
    planned = StaticTable.from_metadata(storage(built).metadata_location).scan()
    files = [_path(task.file.file_path) for task in planned.plan_files()]
    frame = api.read(built.spark, "revenue", project=built.root)
    assert [s.source for s in api.served(frame)] == ["storage"]
    for number in (4, 5):
        add_order(built, number)
        assert built.refreshed() == {"revenue", "a_total"}
        _, maintained, _ = api.maintain(built.root, spark=built.spark)
        assert [d for one in maintained for d in one.diagnostics] == []
    built.write({MODEL: FILES[MODEL].replace("count(*) AS orders", "count(*) AS orders, max(o.amount) AS most")})
    assert "revenue" in built.refreshed()
    assert stored(built) != rows
    assert all(file.exists() for file in files)
    assert arrow_bag(planned.to_arrow()) == rows
    assert Counter(repr(tuple(r)) for r in frame.collect()) == rows
    # The scratch copy of an embedded storage in the DataFrame remains as long as the process, which could read it again.
    for kept in built.catalog.list_tables("mvbuild_scratch") if storage(built).mv is not None else ():
        built.catalog.drop_table(kept)
    built.write(FILES)
    built.run()
    assert_right(built)


def test_what_others_depend_on_is_not_dropped(built: Project) -> None:
    """Neither a view nor an MV goes while something reads it: the reader would be broken, or its storage would never be refreshed again."""
    built.write(
        {"models/below.sql": "SELECT order_id FROM raw.orders\n", "models/above.sql": "SELECT count(*) AS n FROM {{ ref('below') }}\n"}
    )
    built.run("below", "above")
    rows = stored(built)

    def refused(name: str) -> str:
        with pytest.raises(ProjectError) as caught:
            api.drop(built.root, name)
        (diagnostic,) = caught.value.diagnostics
        assert diagnostic.code == "has-dependents"
        return diagnostic.message

    assert "lake.main.revenue" in refused("active_customers")
    assert "lake.main.a_total" in refused("revenue")
    assert "lake.main.above" in refused("below")
    done = built.command("drop", "below", "--yes")
    assert (done.returncode, "has-dependents" in done.stdout + done.stderr) == (1, True), done.stderr
    assert built.only_reused()
    assert stored(built) == rows == built.bag("SELECT * FROM lake.main.revenue")
    # Readers that mvbuild does not know are readers, too.
    dropped = api.drop(built.root, "above")
    assert dropped is not None
    assert "above" in {n.name for n in dropped.names}
    built.sql("CREATE VIEW lake.raw.foreign_reader AS SELECT order_id FROM lake.main.below")
    assert "lake.raw.foreign_reader" in refused("below")
    built.sql("DROP VIEW lake.raw.foreign_reader")
    file = _path(storage(built, "below").metadata_location)
    assert api.drop(built.root, "below") is not None
    assert not file.exists()
    assert {"below", "below__storage", "above", "above__storage"}.isdisjoint(names(built))
