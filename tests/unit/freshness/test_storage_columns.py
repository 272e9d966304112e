"""Columns of a storage that another writer renames, drops, adds, moves or retypes: Iceberg makes no snapshot of that."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mvbuild.formats.properties import REFRESH_SCHEMA, REFRESH_SNAPSHOT
from mvbuild.freshness.rules import judge
from mvbuild.incremental.table_changes import Changes
from mvbuild.lifecycle.compaction import compact
from mvbuild.lifecycle.rollback import rollback
from mvbuild.names import TableIdentifier
from mvbuild.ports.engine import Rows
from mvbuild.ports.states import TableState
from mvbuild.refresh.run_id import RunId
from mvbuild.refresh.session import RunSession
from mvbuild.serve.policy import choose
from unit.freshness.other_hands import Fields, added, edit, evolve, swapped
from unit.worlds import PROJECT, SCHEMA, Shop, append, shop

Change = Callable[[Fields], Fields]
TWO = {"type": "struct", "schema-id": 0, "fields": [*SCHEMA["fields"], {"id": 2, "name": "customer", "type": "long", "required": False}]}


@pytest.fixture(params=["table-properties", "metadata-file"])
def built(request: pytest.FixtureRequest, tmp_path: Path) -> Shop:
    files = {
        **PROJECT,
        "mvbuild.yml": f"name: shop\nmodels: {{+storage: {{format: {request.param}}}}}\n",
        "models/daily.sql": "SELECT id, customer FROM raw.orders\n",
    }
    made = shop(tmp_path, files)
    made.engine.schema = TWO
    assert made.run().ok
    assert codes(made) == []
    return made


def storage(of: Shop) -> TableState:
    found = of.world().observed.table(of.world().graph.model("model.shop.daily").storage)
    assert found is not None
    return found


def entry(of: Shop) -> str:
    """Where the catalog has the storage."""
    return (storage(of).of_view or storage(of).identifier).dotted


def codes(of: Shop, model: str = "daily") -> list[str]:
    return [r.code for r in judge(of.world())[f"model.shop.{model}"].reasons]


def other_ids(fields: Fields) -> Fields:
    """Both were renamed, and put back in the order that they had: names, types and order are the same."""
    return [{**fields[1], "name": fields[0]["name"]}, {**fields[0], "name": fields[1]["name"]}]


def dropped(fields: Fields) -> Fields:
    return fields[:1]


def made_again(fields: Fields) -> Fields:
    """DROP COLUMN and ADD COLUMN: it is NULL in every row."""
    return [fields[0], {**fields[1], "id": 7}]


def moved(fields: Fields) -> Fields:
    return [fields[1], fields[0]]


def retyped(fields: Fields) -> Fields:
    return [{**fields[0], "type": "string"}, fields[1]]


def described(fields: Fields) -> Fields:
    return [{**f, "doc": "What it is.", "required": False} for f in fields]


CHANGES = [swapped, other_ids, dropped, made_again, added, moved, retyped]


@pytest.mark.parametrize("change", CHANGES)
def test_columns_of_a_storage_that_somebody_else_changed(built: Shop, change: Change) -> None:
    evolve(built, change, entry(built))
    assert codes(built) == ["storage-schema-changed"]
    assert "upstream-stale" in codes(built, "monthly")
    assert built.statuses("daily") == {"daily": "success"}
    assert codes(built) == []


@pytest.mark.parametrize("change", [swapped, dropped])
def test_a_record_of_before_the_note(built: Shop, change: Change) -> None:
    """The snapshot shows with which schema it was written."""
    unnoted = {k: v for k, v in storage(built).properties.items() if k != REFRESH_SCHEMA}
    assert unnoted != storage(built).properties
    edit(built, entry(built), lambda raw: {**raw, "properties": unnoted})
    assert codes(built) == []
    evolve(built, change, entry(built))
    assert codes(built) == ["storage-schema-changed"]


def test_a_comment_by_somebody_else_changes_no_row(built: Shop) -> None:
    evolve(built, described, entry(built))
    assert codes(built) == []


def test_own_changes_of_comments_are_no_change_of_columns(built: Shop) -> None:
    built.write({"models/daily.yml": "models:\n  - name: daily\n    columns:\n      - {name: id, description: Its number.}\n"})
    assert built.actions("daily") == {"daily": "alter"}
    assert built.run("daily").ok
    assert codes(built) == []


def test_the_schema_that_the_refresh_left_is_not_kept(built: Shop) -> None:
    """A metadata file whose snapshot names such a schema breaks a rule of its format."""
    left = storage(built).current_schema_id
    evolve(built, swapped, entry(built))
    edit(built, entry(built), lambda raw: {**raw, "schemas": [s for s in raw["schemas"] if s["schema-id"] != left]})
    assert codes(built) in (["storage-schema-changed"], ["metadata-unreadable"])


def test_the_rows_are_served_under_no_policy(built: Shop) -> None:
    built.write({"models/daily.yml": "models:\n  - {name: daily, config: {when_stale: serve}}\n"})
    evolve(built, swapped, entry(built))
    world = built.world()
    (served,) = choose(world, judge(world), ["model.shop.daily"], built.clock.now_ms()).served
    assert served.source == "query"


def test_no_incremental_refresh_goes_on_from_such_rows(built: Shop) -> None:
    built.changes = Changes(built.catalog.changes)
    append(built.catalog, "raw.orders", 7)
    evolve(built, swapped, entry(built))
    (step,) = built.plan("daily").steps
    assert step.choice is not None
    assert (step.strategy, step.choice.code) == ("full", "storage-changed-by-others")


def test_a_compaction_does_not_hide_it(built: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def call(statement: str) -> Rows:
        parts = statement.split("table => '")[1].split("'")[0].split(".")
        built.catalog.append_snapshot(TableIdentifier("lake", tuple(parts[:-1]), parts[-1]), operation="replace")
        return Rows(columns=(), rows=())

    monkeypatch.setattr(built.engine, "call", call)
    evolve(built, swapped, entry(built))
    session, before = session_of(built), storage(built).properties[REFRESH_SNAPSHOT]
    compact(session, session.world.graph.model("model.shop.daily"), storage(built))
    assert storage(built).properties[REFRESH_SNAPSHOT] != before
    assert codes(built) == ["storage-schema-changed"]


def test_a_rollback_leaves_the_columns_of_its_snapshot(built: Shop) -> None:
    append(built.catalog, "raw.orders")
    evolve(built, swapped, entry(built))
    assert built.run("daily").ok
    session = session_of(built)
    rollback(session, session.world.graph.model("model.shop.daily"), 1)
    assert "storage-schema-changed" not in codes(built)
    evolve(built, swapped, entry(built))
    assert "storage-schema-changed" in codes(built)


def test_columns_that_change_while_a_refresh_writes(built: Shop) -> None:
    """It begins again, and knows what it left."""
    append(built.catalog, "raw.orders")
    times = []

    def before_write(table: TableIdentifier) -> None:
        if not times:
            times.append(1)
            evolve(built, swapped, entry(built))

    built.engine.before_write = before_write
    assert built.run("daily").ok
    assert codes(built) == []
    assert [f["name"] for f in storage(built).schema["fields"]] == ["id", "customer"]


def session_of(of: Shop) -> RunSession:
    run = RunId(host="here", pid=1, started_ms=of.clock.at_ms, nonce="abc")
    return RunSession(catalog=of.catalog, clock=of.clock, run=run, world=of.world(), start_engine=lambda: of.engine, is_alive=of.alive)
