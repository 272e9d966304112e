"""Every reason why a strategy cannot be used -> a query or a catalog that causes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from mvbuild.adapters.memory import MemoryCatalog
from mvbuild.formats.record import RefreshRecord
from mvbuild.freshness.leaves import node_inputs
from mvbuild.freshness.model import Reason
from mvbuild.freshness.observed import Pin
from mvbuild.freshness.pins import pin
from mvbuild.graph.model import ModelNode
from mvbuild.incremental import choose as choosing
from mvbuild.incremental.choice import StrategyChoice
from mvbuild.incremental.hypothetical import Kinds, answers
from mvbuild.incremental.inputs import recorded_at
from mvbuild.incremental.reasons import CODES, Refused
from mvbuild.incremental.samples import Sample, case
from mvbuild.incremental.strategies import STRATEGIES
from mvbuild.incremental.table_changes import Changes
from mvbuild.plan.question import question
from mvbuild.ports.catalog import CatalogError, ChangeRefused
from mvbuild.ports.changes import TableChange
from mvbuild.ports.commits import TableCommit, TableLayout
from mvbuild.ports.states import TableState
from mvbuild.project.settings import RefreshPolicy
from mvbuild.storage.history import REASON, history
from other_programs import drop
from unit.incremental.on_duckdb import OnDuckDB, Table
from unit.worlds import PROJECT, SCHEMA, Shop, append, base_table, name, shop

PLAN = "== Optimized Logical Plan ==\nRelationV2[id#1] orders\n\n== Physical Plan ==\nBatchScan orders[id#1]\n"
GROUP = "GROUP BY customer_id"

OF_QUERIES: dict[str, tuple[str, Kinds, str]] = {
    # code: (query, change, strategy that says it)
    "nondeterministic-order": (
        "SELECT id, row_number() OVER (PARTITION BY customer_id ORDER BY amount) AS r FROM {orders}",
        "inserts",
        "bag",
    ),
    "limit": ("SELECT id FROM {orders} ORDER BY id LIMIT 3", "inserts", "bag"),
    "window-without-partition": ("SELECT id, rank() OVER (ORDER BY amount) AS r FROM {orders}", "inserts", "bag"),
    "scalar-subquery-changed": ("SELECT id, (SELECT max(customer_id) FROM {customers}) AS newest FROM {orders}", "inserts", "bag"),
    "global-aggregate": ("SELECT max(amount) AS m FROM {orders}", "inserts", "bag"),
    "uncomparable-column": ("SELECT id, labels FROM {orders}", "inserts", "bag"),
    "no-aggregate": ("SELECT id FROM {orders}", "inserts", "merge"),
    "no-limit": ("SELECT id FROM {orders}", "inserts", "top-k"),
    "no-min-max": ("SELECT count(*) AS n FROM {orders}", "deletes", "min-max"),
    "not-linear": (f"SELECT customer_id, count(*) AS n FROM {{orders}} {GROUP}", "inserts", "append"),
    "rows-removed": ("SELECT id FROM {orders}", "deletes", "append"),
    "not-mergeable": (f"SELECT customer_id, avg(amount) AS a FROM {{orders}} {GROUP}", "inserts", "merge"),
    "deletes-need-count": (f"SELECT customer_id, sum(amount) AS s FROM {{orders}} {GROUP}", "deletes", "merge"),
    "float-sum": (f"SELECT customer_id, sum(weight) AS s FROM {{orders}} {GROUP}", "inserts", "merge"),
    "having": (f"SELECT customer_id, count(*) AS n FROM {{orders}} {GROUP} HAVING count(*) > 1", "inserts", "merge"),
    "no-key": (f"SELECT count(*) AS n FROM {{orders}} {GROUP}", "inserts", "merge"),
    "no-partitions": ("SELECT id FROM {orders}", "inserts", "partitions"),
    "no-children": ("SELECT id FROM {orders}", "inserts", "full-diff"),
}


@pytest.mark.parametrize("code", OF_QUERIES)
def test_of_a_query(code: str) -> None:
    sql, change, strategy = OF_QUERIES[code]
    found = {one.strategy: one.refused for one in answers(Sample(code, sql).shape, change)}
    refused = found[strategy]
    assert refused is not None
    assert refused.code == code


def unsupported() -> str:
    with pytest.raises(Refused) as caught:
        _ = Sample("sample", "SELECT customer_id FROM {orders} TABLESAMPLE (10 PERCENT)").shape
    return caught.value.code


@dataclass
class Refusing(Changes):
    """A catalog whose metadata does not show what changed."""

    code: str = ""

    def __call__(self, table: TableState, old: int, new: int, /) -> TableChange:
        raise ChangeRefused(self.code, f"{table.identifier} at {old} and {new}")  # type: ignore[arg-type]


class Replacing(Changes):
    """A catalog whose partitions have another text than the query returned."""

    def replaces_text(self, storage: TableState) -> bool:
        return True


def configured(of: Shop, policy: RefreshPolicy = "auto", more: str = "") -> Shop:
    """The same definition under another configuration."""
    return of.write({"models/daily.yml": f"models: [{{name: daily, config: {{refresh_policy: {policy}{more}}}}}]\n"})


def choice(of: Shop, changes: Changes | None = None, *, full_refresh: bool = False) -> StrategyChoice:
    planned = of.plan("+daily", changes=changes or Changes(of.catalog.changes), full_refresh=full_refresh)
    step = next(one for one in planned.steps if one.node == "model.shop.daily")
    assert step.choice is not None, step
    return step.choice


def built(root: Path) -> Shop:
    made = shop(root)
    made.run()
    return made


def alone(root: Path) -> Shop:
    """No other MV reads it."""
    made = shop(root, {path: text for path, text in PROJECT.items() if "monthly" not in path})
    made.run()
    return changed(made)


def changed(of: Shop) -> Shop:
    append(of.catalog, "raw.orders", 5)
    return of


def commit(catalog: MemoryCatalog, text: str, **changes: object) -> None:
    state = catalog.load([name(text)])[name(text)]
    assert isinstance(state, TableState)
    expected = {"identifier": state.identifier, "expect_uuid": state.uuid, "expect_snapshot_id": state.current_snapshot_id}
    catalog.commit([TableCommit(**expected, **changes)])  # type: ignore[arg-type]


def never_refreshed(root: Path) -> str:
    return choice(shop(root)).code


def definition_changed(root: Path) -> str:
    return choice(built(root).write({"models/daily.sql": "SELECT id FROM {{ ref('orders_clean') }} WHERE id > 1\n"})).code


def storage_changed_by_others(root: Path) -> str:
    made = built(root)
    append(made.catalog, "main.daily__storage", 7)
    return choice(made).code


def layout_changed(root: Path) -> str:
    return choice(configured(changed(built(root)), more=", partition_by: [id]")).code


def record_incomplete(root: Path) -> str:
    made = shop(root)
    record = RefreshRecord(view_version_id=1, base_tables=(), child_views=(), refresh_start_ms=1)
    found = Pin(table=made.table("raw.orders"), snapshot_id=1, ref=None, moves=True)
    with pytest.raises(Refused) as caught:
        recorded_at(record, found)
    return caught.value.code


def snapshot_expired(root: Path) -> str:
    made = built(root)
    old = made.table("raw.orders").current_snapshot_id
    changed(made)
    commit(made.catalog, "raw.orders", expire=frozenset({old}))
    return choice(made).code


def source_recreated(root: Path) -> str:
    made = built(root)
    drop(made.catalog, name("raw.orders"))
    base_table(made.catalog, "raw.orders", rows=4)
    return choice(made).code


def column_changed(root: Path) -> str:
    made = shop(root)
    fields = [{"id": 1, "name": "id", "type": "int", "required": False}]
    commit(made.catalog, "raw.orders", layout=TableLayout(schema={**SCHEMA, "fields": fields}))
    append(made.catalog, "raw.orders", 4)
    made.run()
    commit(made.catalog, "raw.orders", layout=TableLayout(schema=SCHEMA))
    append(made.catalog, "raw.orders", 5)
    return choice(made).code


def refused_by_metadata(code: str) -> Callable[[Path], str]:
    return lambda root: choice(made := changed(built(root)), Refusing(made.catalog, code=code)).code


def text_not_kept(root: Path) -> str:
    made = changed(built(root))
    return choice(made, Replacing(made.catalog.changes)).code


def nondeterministic(root: Path) -> str:
    made = shop(root).write({"models/daily.sql": "SELECT id FROM {{ ref('orders_clean') }} WHERE rand() > 0.5\n"})
    made.run()
    return choice(made).code


def metadata_columns(root: Path) -> str:
    made = shop(root).write({"models/daily.sql": "SELECT id FROM {{ ref('orders_clean') }} WHERE _file IS NOT NULL\n"})
    made.run()
    return choice(changed(made)).code


def not_cheaper(root: Path) -> str:
    return choice(alone(root)).code


def dearer(root: Path) -> str:
    found = choice(configured(alone(root), "incremental"))
    assert found.strategy == "append"
    return next(one.code for one in found.considered if one.work and one.strategy not in ("append", "full"))


def forced(root: Path) -> str:
    assert choice(configured(changed(built(root)), "full")).code == "forced"
    return choice(configured(changed(built(root)), "auto"), full_refresh=True).code


def ran(of: Shop) -> str:
    """The reason that a refresh has noted."""
    of.changes = Changes(of.catalog.changes)
    done = of.run("daily")
    assert done.ok, done
    past = history(of.table("main.daily__storage"))[-1]
    assert done.results[0].details["reason"] == past.reason == past.snapshot.summary[REASON]
    assert past.strategy == "full"
    return past.reason


def round_trip_unproven(root: Path) -> str:
    return ran(configured(alone(root), "incremental"))


def incremental_failed(root: Path) -> str:
    made = configured(alone(root), "incremental")
    made.engine.plans = {"": PLAN}
    made.engine.fails = lambda sql: "out of memory" if "mvbuild_scratch" in sql else None
    return ran(made)


def over_another_column(root: Path, type_: str, condition: str) -> Shop:
    """An MV with a condition on a column `x` of that type, which was refreshed once."""
    fields = [*SCHEMA["fields"], {"id": 2, "name": "x", "type": type_, "required": False}]
    files = {path: text for path, text in PROJECT.items() if "monthly" not in path}
    made = shop(root, {**files, "models/daily.sql": f"SELECT id FROM raw.orders WHERE {condition}\n"})
    commit(made.catalog, "raw.orders", layout=TableLayout(schema={**SCHEMA, "fields": fields}))
    made.run()
    return configured(changed(made), "incremental")


def nan_or_negative_zero(root: Path) -> str:
    """The engine in memory finds a row for every question."""
    made = over_another_column(root, "double", "x > 0.1")
    made.engine.plans = {"": PLAN}
    return ran(made)


def uuid_compared(root: Path) -> str:
    return choice(over_another_column(root, "uuid", "concat(x, '') = 'a' OR x < 'b'")).code


def session_changed(root: Path) -> str:
    made = configured(alone(root), "incremental")
    made.engine.plans = {"": PLAN}
    made.engine.session = {"spark.sql.session.timeZone": "Asia/Tokyo"}
    return ran(made)


def clock_moved() -> str:
    tables = [Table(table, {"k": "int", "t": "date"}, [(1, None)], [(1, None)]) for table in "ab"]
    case = OnDuckDB("SELECT a.k, b.t FROM {a} AS a LEFT JOIN {b} AS b ON a.k = b.k AND a.t >= {today}", tables)
    with pytest.raises(Refused) as caught:
        case.refreshed("bag")
    return caught.value.code


def first_rows_removed() -> str:
    case = OnDuckDB("SELECT k FROM {a} ORDER BY k LIMIT 1", [Table("a", {"k": "int"}, [(1,), (2,)], [(2,)])])
    with pytest.raises(Refused) as caught:
        case.refreshed("top-k")
    return caught.value.code


def extreme_removed() -> str:
    case = OnDuckDB("SELECT min(k) AS k FROM {a}", [Table("a", {"k": "int"}, [(1,), (2,)], [(2,)])])
    with pytest.raises(Refused) as caught:
        case.refreshed("min-max")
    return caught.value.code


def with_views(root: Path) -> Shop:
    """An MV that was refreshed without auxiliary views, and has some now."""
    files = {path: text for path, text in PROJECT.items() if "monthly" not in path}
    made = shop(root, {**files, "models/daily.sql": "SELECT sum(id) AS id FROM {{ ref('orders_clean') }}\n"})
    made.run()
    made.engine.plans = {"": PLAN}
    return configured(changed(made), "incremental", ", auxiliary_views: always")


def auxiliary_views_built(root: Path) -> str:
    return ran(with_views(root))


def auxiliary_name_taken(root: Path) -> str:
    made = with_views(root)
    base_table(made.catalog, "main.daily__auxiliary_1")
    return ran(made)


def auxiliary_view_refused(root: Path) -> str:
    made = with_views(root)

    def refuse(*_: object) -> None:
        raise CatalogError("403 Forbidden")

    made.catalog.create_table = refuse  # type: ignore[method-assign, assignment]
    return ran(made)


def auxiliary_type(root: Path) -> str:
    made = with_views(root)
    made.engine.described = "smallint"
    return ran(made)


def internal(root: Path) -> str:
    def failing(*_: object) -> object:
        raise TypeError("something that mvbuild does not expect")

    return choice(changed(built(root)), Changes(failing)).code  # type: ignore[arg-type]


OF_WORLDS: dict[str, Callable[[Path], str]] = {
    "clock-moved": lambda _: clock_moved(),
    "first-rows-removed": lambda _: first_rows_removed(),
    "extreme-removed": lambda _: extreme_removed(),
    "never-refreshed": never_refreshed,
    "nan-or-negative-zero": nan_or_negative_zero,
    "uuid-compared": uuid_compared,
    "definition-changed": definition_changed,
    "storage-changed-by-others": storage_changed_by_others,
    "layout-changed": layout_changed,
    "record-incomplete": record_incomplete,
    "snapshot-expired": snapshot_expired,
    "source-recreated": source_recreated,
    "column-changed": column_changed,
    "partition-column-dropped": refused_by_metadata("partition-column-dropped"),
    "equality-deletes": refused_by_metadata("equality-deletes"),
    "text-not-kept": text_not_kept,
    "files-missing": refused_by_metadata("files-missing"),
    "non-iceberg-source": refused_by_metadata("non-iceberg-source"),
    "nondeterministic": nondeterministic,
    "metadata-columns": metadata_columns,
    "unsupported-operator": lambda _: unsupported(),
    "not-cheaper": not_cheaper,
    "dearer": dearer,
    "forced": forced,
    "round-trip-unproven": round_trip_unproven,
    "incremental-failed": incremental_failed,
    "session-changed": session_changed,
    "auxiliary-views-built": auxiliary_views_built,
    "auxiliary-name-taken": auxiliary_name_taken,
    "auxiliary-view-refused": auxiliary_view_refused,
    "auxiliary-type": auxiliary_type,
    "internal": internal,
}


@pytest.mark.parametrize("code", OF_WORLDS)
def test_of_a_world(code: str, tmp_path: Path) -> None:
    assert OF_WORLDS[code](tmp_path) == code


def test_every_code_has_a_case() -> None:
    assert sorted({*OF_QUERIES, *OF_WORLDS}) == sorted(CODES)


def test_every_code_says_what_it_means_and_what_to_do() -> None:
    for code, (means, what) in CODES.items():
        assert means.endswith("."), code
        assert what.endswith("."), code


NOT_ABOUT_ROWS = ("child-view-recreated", "child-view-not-recorded", "child-view-changed", "version-missing", "something-new")


@pytest.mark.parametrize("code", NOT_ABOUT_ROWS)
def test_what_may_be_another_query_is_refreshed_in_full(code: str, tmp_path: Path) -> None:
    """Though not one row of the base tables is another."""
    made = built(tmp_path)
    world = made.world()
    node = world.graph.nodes["model.shop.daily"]
    assert isinstance(node, ModelNode)
    pins = {leaf: p for leaf in node_inputs(world.graph, node).leaves if (p := pin(world.graph, world.observed, leaf))}
    same = question(world, node, (), pins, Changes(made.catalog.changes))
    assert choosing.choose(same).strategy == "no-change"
    other = replace(same, reasons=(Reason(code=code, message="it is another one", effect="stale"),))
    assert (choosing.choose(other).strategy, choosing.choose(other).code) == ("full", "definition-changed")


def test_a_storage_that_has_a_map_is_not_compared() -> None:
    """The type of a function may be known only from the storage."""
    made = case("SELECT customer_id, map_from_entries(collect_set(struct(id, 1))) AS m FROM {orders} GROUP BY customer_id")
    held = replace(made, types={**made.types, "m": {"type": "map", "key": "string", "value": "int"}})
    with pytest.raises(Refused, match="column m has a map") as found:
        STRATEGIES["affected-keys"](held)
    assert found.value.code == "uncomparable-column"
