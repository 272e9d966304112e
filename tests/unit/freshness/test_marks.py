"""the flag and the pointer of the property-based specification on an MV's view: errors are noticed, and corrected by a commit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from mvbuild.formats.properties import IS_MATERIALIZED, STORAGE_TABLE
from mvbuild.freshness.model import Freshness
from mvbuild.freshness.rules import judge
from mvbuild.ports.states import ViewState
from unit.serve.readers import read
from unit.worlds import PROJECT, Shop, append, name, shop

Properties = dict[str, str]
OWNER = "mvbuild.model"
FORMATS = ("table-properties", "metadata-file")


def project(kept_in: str = "table-properties", catalog_view: str = "definition") -> dict[str, str]:
    settings = f"models: {{+storage: {{format: {kept_in}}}, +catalog_view: {catalog_view}}}\n"
    return {**PROJECT, "mvbuild.yml": f"name: shop\n{settings}"}


@pytest.fixture
def built(tmp_path: Path) -> Shop:
    made = shop(tmp_path, project())
    made.run()
    return made


def view(of: Shop) -> ViewState:
    found = of.catalog.load([name("main.daily")])[name("main.daily")]
    assert isinstance(found, ViewState)
    return found


def edit(of: Shop, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Other metadata of the view, as another engine would leave it."""
    files, location = of.catalog._files._contents, view(of).metadata_location  # type: ignore[attr-defined]
    content, changed_ms = files[location]
    files[location] = (json.dumps(change(json.loads(content))).encode(), changed_ms)


def with_properties(of: Shop, change: Callable[[Properties], Properties]) -> None:
    edit(of, lambda raw: {**raw, "properties": change(raw["properties"])})


def recreated(raw: dict[str, Any], *, version: int = 1, sql: str | None = None) -> dict[str, Any]:
    """DROP VIEW and CREATE VIEW by an engine that knows no MVs."""
    current = next(v for v in raw["versions"] if v["version-id"] == raw["current-version-id"])
    texts = [{**r, "sql": sql or r["sql"]} for r in current["representations"]]
    only = {**current, "version-id": version, "representations": texts}
    log = [{"timestamp-ms": 1, "version-id": version}]
    return {**raw, "view-uuid": str(uuid4()), "versions": [only], "version-log": log, "current-version-id": version, "properties": {}}


def answer(of: Shop, model: str = "daily") -> Freshness:
    return judge(of.world())[f"model.shop.{model}"]


def codes(of: Shop, model: str = "daily") -> list[str]:
    return [r.code for r in answer(of, model).reasons]


def healed(of: Shop) -> None:
    """The next run changes the view alone, computes nothing, and leaves nothing to do."""
    before = of.world().observed.table(name("main.daily__storage"))
    assert before is not None
    assert answer(of).state == "stale"
    assert answer(of, "monthly").state == "fresh"
    planned = of.actions()
    # The record of an MV names the views of its upstream MVs: with another version or UUID it moves on, too.
    assert planned.pop("monthly") in ("reuse", "record")
    assert planned == {"orders_clean": "reuse", "daily": "alter"}
    of.engine.executed.clear()
    of.run()
    assert of.engine.executed == []
    after = of.world().observed.table(name("main.daily__storage"))
    assert after is not None
    assert (after.uuid, after.current_snapshot_id) == (before.uuid, before.current_snapshot_id)
    assert codes(of) == []
    assert set(of.actions().values()) == {"reuse"}
    assert view(of).properties[OWNER] == "model.shop.daily"
    if after.of_view is None:
        assert view(of).properties[IS_MATERIALIZED] == "true"
        assert view(of).properties[STORAGE_TABLE] == "main.daily__storage"
    else:
        assert not {IS_MATERIALIZED, STORAGE_TABLE} & set(view(of).properties)


WRONG: dict[str, tuple[Callable[[Properties], Properties], list[str]]] = {
    "false": (lambda p: {**p, IS_MATERIALIZED: "false"}, ["view-not-marked"]),
    "no flag": (lambda p: {k: v for k, v in p.items() if k != IS_MATERIALIZED}, ["view-not-marked"]),
    "another table": (lambda p: {**p, STORAGE_TABLE: "raw.orders"}, ["storage-pointer-differs"]),
    "another mv's": (lambda p: {**p, STORAGE_TABLE: "main.monthly__storage"}, ["storage-pointer-differs"]),
    "another namespace": (lambda p: {**p, STORAGE_TABLE: "raw.daily__storage"}, ["storage-pointer-differs"]),
    "another catalog": (lambda p: {**p, STORAGE_TABLE: "other.main.daily__storage"}, ["storage-pointer-differs"]),
    "nowhere": (lambda p: {**p, STORAGE_TABLE: ""}, ["storage-pointer-differs"]),
    "no pointer": (lambda p: {k: v for k, v in p.items() if k != STORAGE_TABLE}, ["storage-pointer-differs"]),
    "neither": (lambda p: {k: v for k, v in p.items() if k == OWNER}, ["view-not-marked", "storage-pointer-differs"]),
    "nothing": (lambda p: {}, ["view-not-marked", "storage-pointer-differs", "view-recreated"]),
}


@pytest.mark.parametrize("catalog_view", ["definition", "storage"])
@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_marks_are_stale_and_put_right_without_computing(tmp_path: Path, wrong: str, catalog_view: str) -> None:
    of = shop(tmp_path, project(catalog_view=catalog_view))
    of.run()
    change, expected = WRONG[wrong]
    with_properties(of, change)
    assert codes(of) == expected
    healed(of)


@pytest.mark.parametrize("pointer", ["main.daily__storage", "lake.main.daily__storage", "daily__storage", "`main`.`daily__storage`"])
def test_other_spellings_of_the_pointer_are_right(built: Shop, pointer: str) -> None:
    with_properties(built, lambda p: {**p, STORAGE_TABLE: pointer, IS_MATERIALIZED: "TRUE"})
    assert codes(built) == []
    assert set(built.actions().values()) == {"reuse"}


@pytest.mark.parametrize("version", [1, 2, 5])
def test_a_view_that_was_created_again_keeps_its_rows(built: Shop, version: int) -> None:
    edit(built, lambda raw: recreated(raw, version=version))
    assert "view-recreated" in codes(built)
    healed(built)
    record = answer(built).record
    assert record is not None
    assert record.view_version_id == version


def test_a_view_that_was_created_again_with_the_next_definition_does_not_get_the_rows_of_the_last(built: Shop) -> None:
    """The version has the number of the one that was refreshed, and its text is that of the project."""
    built.write({"models/daily.sql": "SELECT id FROM {{ ref('orders_clean') }} WHERE id > 7\n"})
    edit(built, lambda raw: recreated(raw, sql="SELECT id FROM lake.main.orders_clean WHERE id > 7"))
    assert answer(built).state == "stale"
    assert "FROM lake.main.daily__storage" not in read(built, "daily").sql
    assert built.actions()["daily"] == "refresh"
    assert built.statuses()["daily"] == "success"
    assert codes(built) == []


def test_rows_whose_definition_was_not_noted_are_computed_again(built: Shop) -> None:
    def without_note(raw: dict[str, Any]) -> dict[str, Any]:
        snapshots = [{**s, "summary": {k: v for k, v in s["summary"].items() if k != "mvbuild.definition"}} for s in raw["snapshots"]]
        return {**raw, "snapshots": snapshots}

    files, location = built.catalog._files._contents, built.table("main.daily__storage").metadata_location  # type: ignore[attr-defined]
    files[location] = (json.dumps(without_note(json.loads(files[location][0]))).encode(), files[location][1])
    with_properties(built, lambda p: {**p, IS_MATERIALIZED: "false"})
    assert built.actions()["daily"] == "alter"
    edit(built, recreated)
    assert built.actions()["daily"] == "refresh"


def test_renamed_columns_of_a_view_that_was_created_again(built: Shop) -> None:
    def renamed(raw: dict[str, Any]) -> dict[str, Any]:
        schemas = [{**s, "fields": [{**f, "name": "other"} for f in s["fields"]]} for s in raw["schemas"]]
        return {**recreated(raw), "schemas": schemas}

    edit(built, renamed)
    assert built.actions()["daily"] == "refresh"
    built.run()
    assert [f["name"] for f in view(built).schema["fields"]] == ["id"]
    assert codes(built) == []


def test_the_rows_of_an_mv_with_wrong_marks_are_served_and_refreshed_with_what_is_new(built: Shop) -> None:
    with_properties(built, lambda p: {**p, STORAGE_TABLE: "raw.orders", IS_MATERIALIZED: "false"})
    assert "FROM lake.main.daily__storage" in read(built, "daily").sql
    append(built.catalog, "raw.orders")
    assert codes(built) == ["view-not-marked", "storage-pointer-differs", "base-table-changed"]
    assert built.actions()["daily"] == "refresh"
    built.run()
    assert codes(built) == []
    assert view(built).properties[STORAGE_TABLE] == "main.daily__storage"


@pytest.mark.parametrize(
    "wrong", [{STORAGE_TABLE: "raw.orders"}, {IS_MATERIALIZED: "false"}, {IS_MATERIALIZED: "true", STORAGE_TABLE: "x.y"}]
)
def test_an_mv_in_a_metadata_file_has_no_marks_of_the_other_format(tmp_path: Path, wrong: Properties) -> None:
    of = shop(tmp_path, project("metadata-file"))
    of.run()
    assert codes(of) == []
    with_properties(of, lambda p: {**p, **wrong})
    healed(of)


@pytest.mark.parametrize("there", FORMATS)
def test_a_conversion_leaves_the_marks_of_the_format(tmp_path: Path, there: str) -> None:
    back = next(f for f in FORMATS if f != there)
    of = shop(tmp_path, project(back))
    of.run()
    of.write(project(there))
    assert of.actions()["daily"] == "convert"
    of.run()
    assert codes(of) == []
    assert (IS_MATERIALIZED in view(of).properties) == (there == "table-properties")
    assert set(of.actions().values()) == {"reuse"}
