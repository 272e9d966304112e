"""Schema changes of base tables that make no snapshot."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mvbuild.freshness.rules import judge
from mvbuild.incremental.table_changes import Changes
from mvbuild.lifecycle.rollback import rollback
from mvbuild.storage.schemas_read import REMOVED, SCHEMA_READ, recorded_schema_id
from unit.freshness.other_hands import Fields, added, edit, evolve, swapped, two
from unit.serve.readers import session
from unit.worlds import PROJECT, Shop, append, shop


@pytest.fixture(params=["table-properties", "metadata-file"])
def built(request: pytest.FixtureRequest, tmp_path: Path) -> Shop:
    files = {**PROJECT, "mvbuild.yml": f"name: shop\nmodels: {{+storage: {{format: {request.param}}}}}\n"}
    made = shop(tmp_path, files)
    evolve(made, two)
    append(made.catalog, "raw.orders")
    made.run()
    assert codes(made) == []
    return made


def codes(of: Shop, model: str = "daily") -> list[str]:
    return [r.code for r in judge(of.world())[f"model.shop.{model}"].reasons]


def retyped(fields: Fields) -> Fields:
    return [{**fields[0], "type": "string"}, fields[1]]


def dropped(fields: Fields) -> Fields:
    return fields[:1]


def described(fields: Fields) -> Fields:
    return [{**f, "doc": "What it is."} for f in fields]


@pytest.mark.parametrize("change", [swapped, retyped])
def test_what_a_name_means_has_changed(built: Shop, change: Callable[[Fields], Fields]) -> None:
    evolve(built, change)
    assert codes(built) == ["base-table-schema-changed"]
    assert codes(built, "monthly") == ["upstream-stale"]
    assert built.statuses("daily") == {"daily": "success"}
    assert codes(built) == []


@pytest.mark.parametrize("change", [added, described, dropped])
def test_what_changes_no_name_is_no_change(built: Shop, change: Callable[[Fields], Fields]) -> None:
    evolve(built, change)
    assert codes(built) == []


def test_a_star_takes_new_columns(built: Shop) -> None:
    built.write({"models/daily.sql": "SELECT * FROM {{ ref('orders_clean') }}\n"})
    built.run()
    evolve(built, added)
    assert codes(built) == ["base-table-schema-changed"]


def test_a_dropped_column_that_is_read(built: Shop) -> None:
    built.write({"models/daily.sql": "SELECT id FROM raw.orders WHERE Customer > 1\n"})
    built.run()
    evolve(built, dropped)
    assert codes(built) == ["base-table-schema-changed"]


def test_each_base_table_has_one_note(built: Shop) -> None:
    storage = built.world().observed.table(built.world().graph.model("model.shop.daily").storage)
    assert storage is not None
    noted = [k for k in storage.properties if k.startswith("mvbuild.base.schema.")]
    assert len(noted) == 1


ALIAS = "SELECT id * 2 AS more, more + 1 AS most FROM raw.orders\n"
"""`more` is the alias before it, until the table has a column of that name."""
OUTER = "SELECT id FROM raw.orders AS o WHERE EXISTS (SELECT 1 FROM raw.customers AS c WHERE c.id = o.id AND customer = 1)\n"
"""`customer` is a column of orders, until customers has one."""


def renamed_to_more(fields: Fields) -> Fields:
    return [fields[0], {**fields[1], "name": "more"}]


@pytest.mark.parametrize("change", [added, renamed_to_more])
def test_a_new_column_takes_the_name_of_an_alias(built: Shop, change: Callable[[Fields], Fields]) -> None:
    built.write({"models/daily.sql": ALIAS})
    built.run()
    evolve(built, change)
    assert codes(built) == ["base-table-schema-changed"]
    assert built.statuses("daily") == {"daily": "success"}
    assert codes(built) == []


def test_a_new_column_takes_a_name_that_was_a_column_of_the_outer_query(built: Shop) -> None:
    built.write({"models/daily.sql": OUTER})
    built.run()
    evolve(built, lambda fields: [*fields, {"id": 8, "name": "Customer", "type": "long", "required": False}], "raw.customers")
    assert codes(built) == ["base-table-schema-changed"]


def test_the_refresh_after_a_new_column_is_a_full_one_though_rows_came_too(built: Shop) -> None:
    built.changes = Changes(built.catalog.changes)
    built.write({"models/daily.sql": ALIAS})
    built.run()
    evolve(built, added)
    append(built.catalog, "raw.orders", 7)
    (step,) = built.plan("daily").steps
    assert step.choice is not None
    assert (step.strategy, step.choice.code) == ("full", "column-changed")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT /*+ COALESCE(1) */ * FROM raw.orders",
        "SELECT -- all of it\n* FROM raw.orders",
        "SELECT to_json(struct(*)) AS id FROM raw.orders",
        "SELECT * FROM (SELECT id, customer FROM raw.orders) PIVOT (count(*) FOR customer IN (1))",
    ],
)
def test_other_ways_to_take_every_column(built: Shop, sql: str) -> None:
    built.write({"models/daily.sql": f"{sql}\n"})
    built.run()
    evolve(built, added)
    assert codes(built) == ["base-table-schema-changed"]


def test_a_count_takes_no_column(built: Shop) -> None:
    built.write({"models/daily.sql": "SELECT count(*) AS id FROM raw.orders\n"})
    built.run()
    evolve(built, added)
    assert codes(built) == []


def test_the_schema_that_was_read_is_not_kept_any_more(built: Shop) -> None:
    """`expire_snapshots(clean_expired_metadata => true)`: what it had under the names of today is not known."""
    read = built.table("raw.orders").current_schema_id
    evolve(built, swapped)
    edit(built, "raw.orders", lambda raw: {**raw, "schemas": [s for s in raw["schemas"] if s["schema-id"] != read]})
    assert codes(built) == ["base-table-schema-changed"]
    assert built.statuses("daily") == {"daily": "success"}
    assert codes(built) == []


def test_the_id_of_a_schema_that_was_removed_comes_again(built: Shop) -> None:
    """`expire_snapshots` removes schemas that no snapshot was written with."""
    built.changes = Changes(built.catalog.changes)
    evolve(built, added)
    built.run()
    assert codes(built) == []

    def again(raw: dict[str, Any]) -> dict[str, Any]:
        others = [s for s in raw["schemas"] if s["schema-id"] != raw["current-schema-id"]]
        (now,) = (s for s in raw["schemas"] if s["schema-id"] == raw["current-schema-id"])
        fields = [{**f, "id": f["id"] + 10} for f in now["fields"]]
        return {**raw, "schemas": [*others, {**now, "fields": fields}], "last-column-id": raw["last-column-id"] + 10}

    edit(built, "raw.orders", again)
    assert codes(built) == ["base-table-schema-changed"]
    (step,) = (s for s in built.plan("daily").steps if s.node == "model.shop.daily")
    assert (step.strategy, step.choice.code) == ("full", "column-changed")
    built.run()
    assert codes(built) == []


def test_a_schema_that_an_earlier_release_recorded(built: Shop) -> None:
    """By its id alone."""
    storage = built.world().observed.table(built.world().graph.model("model.shop.daily").storage)
    assert storage is not None
    (key,) = (k for k in storage.properties if k.startswith(SCHEMA_READ))
    table = built.table("raw.orders")
    assert table.current_snapshot is not None
    written = table.current_snapshot.snapshot_id
    assert recorded_schema_id(replace(storage, properties={key: "1:00000000"}), table, None, written) == 1, "its snapshot keeps a schema"
    for text, expected in ((storage.properties[key], 1), ("1", 1), ("1:00000000", REMOVED), ("7", REMOVED), ("", None)):
        assert recorded_schema_id(replace(storage, properties={key: text}), table, None, None) == expected


def test_a_rollback_restores_the_schema_of_its_refresh(built: Shop) -> None:
    read = built.table("raw.orders").current_snapshot_id
    evolve(built, swapped)
    built.run()
    for refresh_id, expected in ((1, ["base-table-schema-changed"]), (2, [])):
        rollback(session(built, built.world()), built.world().graph.model("model.shop.daily"), refresh_id)
        assert codes(built) == expected
    # Even if the other schema is gone, and its id comes again.
    rollback(session(built, built.world()), built.world().graph.model("model.shop.daily"), 1)
    edit(built, "raw.orders", lambda raw: {**raw, "schemas": [s for s in raw["schemas"] if s["schema-id"] == raw["current-schema-id"]]})
    assert built.table("raw.orders").current_snapshot_id == read
    assert codes(built) == ["base-table-schema-changed"]


MAPPING = [{"field-id": 1, "names": ["id", "nr"]}, {"field-id": 2, "names": ["customer", "client"]}]


def mapped(of: Shop, mapping: list[dict[str, Any]] | None) -> None:
    """How files without field ids are read: of `add_files`, `snapshot` and `migrate`."""
    text = {"schema.name-mapping.default": json.dumps(mapping)} if mapping else {}
    edit(of, "raw.orders", lambda raw: {**raw, "properties": text})


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ([*MAPPING, {"field-id": 3, "names": ["more"]}], []),
        ([MAPPING[0], {"field-id": 2, "names": ["customer"]}, {"field-id": 3, "names": ["client"]}], ["base-table-schema-changed"]),
        ([{"field-id": 2, "names": ["client", "customer"]}, MAPPING[0]], []),
        ([MAPPING[0], {"field-id": 2, "names": ["customer", "client", "buyer"]}], ["base-table-schema-changed"]),
        (None, ["base-table-schema-changed"]),
    ],
)
def test_a_name_of_a_column_in_files_without_ids_is_given_to_another(
    built: Shop, after: list[dict[str, Any]] | None, expected: list[str]
) -> None:
    built.changes = Changes(built.catalog.changes)
    mapped(built, MAPPING)
    append(built.catalog, "raw.orders")
    built.run()
    assert codes(built) == []
    evolve(built, added)
    assert codes(built) == []
    mapped(built, after)
    assert codes(built) == expected
    if expected:
        (step,) = (s for s in built.plan("daily").steps if s.node == "model.shop.daily")
        assert (step.strategy, step.choice.code) == ("full", "column-changed")
    built.run()
    assert codes(built) == []


def test_iceberg_adds_the_new_name_of_a_column(built: Shop) -> None:
    """`RENAME COLUMN`: files with the old name are read as before."""
    mapped(built, MAPPING)
    append(built.catalog, "raw.orders")
    built.run()
    evolve(built, lambda fields: [fields[0], {**fields[1], "name": "buyer"}])
    mapped(built, [MAPPING[0], {"field-id": 2, "names": ["customer", "client", "buyer"]}])
    assert codes(built) == []


ONE_FORMAT = pytest.mark.parametrize("built", ["table-properties"], indirect=True)
"""The other one has no properties that could be edited here."""


def not_noted(built: Shop) -> None:
    """As another engine records a refresh."""
    storage = built.world().observed.table(built.world().graph.model("model.shop.daily").storage)
    assert storage is not None
    uuid = built.table("raw.orders").uuid
    kept = {k: v for k, v in storage.properties.items() if k != SCHEMA_READ + uuid}
    assert kept != storage.properties
    edit(built, storage.identifier.dotted, lambda raw: {**raw, "properties": kept})


@ONE_FORMAT
@pytest.mark.parametrize(("change", "expected"), [(swapped, ["base-table-schema-changed"]), (added, []), (described, [])])
def test_nobody_noted_the_schema(built: Shop, change: Callable[[Fields], Fields], expected: list[str]) -> None:
    """That of the snapshot, or a later one, was read."""
    not_noted(built)
    assert codes(built) == []
    evolve(built, change)
    assert codes(built) == expected


@ONE_FORMAT
def test_nobody_noted_the_schema_and_the_snapshot_is_gone(built: Shop) -> None:
    not_noted(built)
    read = built.table("raw.orders").current_snapshot_id
    evolve(built, swapped)
    append(built.catalog, "raw.orders")
    edit(built, "raw.orders", lambda raw: {**raw, "snapshots": [s for s in raw["snapshots"] if s["snapshot-id"] != read]})
    assert "base-table-schema-changed" in codes(built)


def reordered(fields: Fields) -> Fields:
    """`ALTER COLUMN customer FIRST`."""
    return [fields[1], fields[0]]


BY_POSITION = [
    "SELECT * FROM raw.orders",
    "SELECT id, customer FROM raw.orders UNION ALL SELECT * FROM raw.orders",
    "SELECT p AS id, q FROM raw.orders AS t(p, q)",
    "SELECT p AS id, q FROM raw.orders t(p, q)",
    "SELECT p AS id FROM (raw.orders) AS t(p, q)",
    "WITH t(p, q) AS (SELECT * FROM raw.orders) SELECT p AS id, q FROM t",
    "WITH t(p, q) AS (TABLE raw.orders) SELECT p AS id, q FROM t",
    "SELECT p AS id FROM (SELECT o.* FROM raw.orders AS o) AS t(p, q)",
    "SELECT concat_ws('|', *) AS id FROM raw.orders",
    "SELECT hash(*) AS id FROM raw.orders",
    "SELECT CAST(struct(*) AS STRING) AS id FROM raw.orders",
    "SELECT max(struct(o.*)) AS id FROM raw.orders AS o",
    "SELECT * FROM raw.orders NATURAL JOIN raw.customers",
    "SELECT * FROM raw.customers JOIN raw.orders USING (id)",
    "SELECT *, count(*) FROM raw.orders GROUP BY 1, 2",
    "SELECT * FROM raw.orders ORDER BY 1 LIMIT 1",
    "FROM raw.orders |> WHERE id = 1",
]


@pytest.mark.proof
@pytest.mark.parametrize("sql", BY_POSITION)
def test_columns_in_another_order_are_a_change_for_who_takes_them_by_position(built: Shop, sql: str) -> None:
    built.changes = Changes(built.catalog.changes)
    built.write({"models/daily.sql": f"{sql}\n"})
    built.run()
    evolve(built, reordered)
    assert codes(built) == ["base-table-schema-changed"]
    append(built.catalog, "raw.orders", 7)
    (step,) = built.plan("daily").steps
    assert step.choice is not None
    assert (step.strategy, step.choice.code) == ("full", "column-changed")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, customer FROM raw.orders",
        "SELECT t.p AS id FROM (SELECT id, customer FROM raw.orders) AS t(p, q)",
        "WITH t(p, q) AS (SELECT id, customer FROM raw.orders) SELECT p AS id, q FROM t",
        "SELECT o.id, count(*) AS n FROM raw.orders AS o GROUP BY o.id",
    ],
)
def test_columns_in_another_order_are_no_change_for_who_names_them(built: Shop, sql: str) -> None:
    built.write({"models/daily.sql": f"{sql}\n"})
    built.run()
    evolve(built, reordered)
    assert codes(built) == []


@pytest.mark.parametrize("wrapped", [lambda s: s, lambda s: {"type": "list", "element-id": 30, "element": s, "element-required": False}])
@pytest.mark.parametrize("sql", ["SELECT CAST(s AS STRING) AS id FROM raw.orders", "SELECT max(s) AS id FROM raw.orders"])
def test_fields_of_a_struct_in_another_order(built: Shop, sql: str, wrapped: Callable[[Any], Any]) -> None:
    """They are ordered, printed and taken apart by their position."""

    def struct(*names: str) -> Callable[[Fields], Fields]:
        inner = [{"id": 31 + "ab".index(name), "name": name, "type": "long", "required": False} for name in names]
        column = {"id": 29, "name": "s", "required": False, "type": wrapped({"type": "struct", "fields": inner})}
        return lambda fields: [*fields[:2], column]

    evolve(built, struct("a", "b"))
    built.write({"models/daily.sql": f"{sql}\n"})
    built.run()
    assert codes(built) == []
    evolve(built, struct("b", "a"))
    assert codes(built) == ["base-table-schema-changed"]


def test_a_column_list_over_a_table_whose_column_was_replaced(built: Shop) -> None:
    """Neither name is in the query."""
    built.write({"models/daily.sql": "SELECT p AS id, q FROM raw.orders AS t(p, q)\n"})
    built.run()
    evolve(built, lambda fields: [fields[0], {"id": 8, "name": "other", "type": "long", "required": False}])
    assert codes(built) == ["base-table-schema-changed"]


@ONE_FORMAT
def test_an_order_that_nobody_noted(built: Shop) -> None:
    """Another engine's record: the schema of the snapshot says enough."""
    built.changes = Changes(built.catalog.changes)
    built.write({"models/daily.sql": "SELECT * FROM raw.orders\n"})
    built.run()
    not_noted(built)
    evolve(built, reordered)
    assert codes(built) == ["base-table-schema-changed"]
