"""one table registered in two catalogs, or twice in one: the same UUID, but each entry changes independently."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import spec_reader
from mvbuild.adapters.memory import MemoryCatalog
from mvbuild.freshness.model import Freshness
from mvbuild.freshness.rules import judge
from mvbuild.incremental.table_changes import Changes
from mvbuild.names import TableIdentifier
from mvbuild.ports.states import TableState, ViewState
from unit.freshness.foreign_views import Metastores, write_view
from unit.freshness.other_hands import register
from unit.worlds import Shop, base_table, name

SOURCES = (
    "sources: [{name: crm, catalog: other, properties: {type: sql, uri: 'sqlite:///x.db'}, tables: [{name: orders, identifier: %s}]}]\n"
)
HERE = name("raw.orders")
QUERIES = (
    "SELECT a.id FROM raw.orders a JOIN {{ source('crm', 'orders') }} b USING (id)\n",
    "SELECT a.id FROM {{ source('crm', 'orders') }} a JOIN raw.orders b USING (id)\n",
)
FORMATS = ("table-properties", "metadata-file")


class Twice:
    """The shop, and the other entry of its table."""

    def __init__(self, root: Path, query: str, kept_in: str = "table-properties", namespace: str = "raw", short: str = "orders") -> None:
        self.shop = Shop(root)
        base_table(self.shop.catalog, "raw.orders")
        other = MemoryCatalog("other")
        self.there = TableIdentifier("other", (namespace,), short)
        self.catalogs = {HERE: self.shop.catalog, self.there: other}
        self.shop.sources = Metastores({"other": other})
        self.shop.changes = Changes(self.shop.catalog.changes)
        source = SOURCES.replace("name: crm,", f"name: crm, namespace: {namespace},") % short
        config = f"name: shop\nmodels: {{+storage: {{format: {kept_in}}}}}\n"
        self.shop.write({"mvbuild.yml": config, "models/s.yml": source, "models/m.sql": query})
        self.register()

    def register(self) -> None:
        """`register_table`: the other entry is at what this one is at now."""
        state, other, held = self.state(HERE), self.catalogs[self.there], self.shop.catalog._held
        other._files._contents[state.metadata_location] = self.shop.catalog._files._contents[state.metadata_location]  # type: ignore[attr-defined]
        other._held._columns.update(held._columns)
        other._pointers._found[".".join(self.there.namespace), self.there.name] = (state.metadata_location, "TABLE")  # type: ignore[attr-defined]

    def state(self, which: TableIdentifier) -> TableState:
        found = self.catalogs[which].load([which])[which]
        assert isinstance(found, TableState)
        return found

    def append(self, which: TableIdentifier, *, operation: str = "append") -> None:
        self.catalogs[which].append_snapshot(which, None if operation == "replace" else {"id": [1]}, operation=operation)

    def go_back(self, which: TableIdentifier) -> bool:
        """To the parent of the current snapshot, if there is one."""
        now = self.state(which).current_snapshot
        if now is None or now.parent_id is None:
            return False
        files, location = self.catalogs[which]._files._contents, self.state(which).metadata_location  # type: ignore[attr-defined]
        raw: dict[str, Any] = json.loads(files[location][0])
        raw["current-snapshot-id"] = raw["refs"]["main"]["snapshot-id"] = now.parent_id
        files[location] = (json.dumps(raw).encode(), files[location][1])
        return True

    @property
    def snapshots(self) -> tuple[int | None, int | None]:
        return self.state(HERE).current_snapshot_id, self.state(self.there).current_snapshot_id

    def answer(self) -> Freshness:
        return judge(self.shop.world())["model.shop.m"]

    def codes(self) -> list[str]:
        return [r.code for r in self.answer().reasons]

    def is_fresh_by_properties(self, *known: TableIdentifier) -> bool:
        """What a reader says that knows the property-based specification alone, and these entries of the table."""
        view, storage = self.shop.catalog.load([name("main.m")])[name("main.m")], self.shop.table("main.m__storage")
        assert isinstance(view, ViewState)
        entries = [
            spec_reader.Entry(name="main.m", uuid=view.uuid, properties=view.properties, current=view.version_id, is_view=True),
            *(_entry(one) for one in (storage, *map(self.state, known))),
        ]
        return spec_reader.fresh(entries, "main.m")


def _entry(table: TableState) -> spec_reader.Entry:
    current = -1 if table.current_snapshot_id is None else table.current_snapshot_id
    return spec_reader.Entry(name=table.identifier.dotted, uuid=table.uuid, properties=table.properties, current=current, is_view=False)


@pytest.mark.parametrize(
    ("query", "short", "kept_in"),
    [
        (QUERIES[0], "orders", "table-properties"),
        (QUERIES[1], "orders", "table-properties"),
        (QUERIES[1], "orders", "metadata-file"),
        (QUERIES[0], "customers", "metadata-file"),
    ],
    ids=["first", "second", "second-in-a-file", "other-name-in-a-file"],
)
def test_each_entry_is_followed_by_itself(tmp_path: Path, query: str, short: str, kept_in: str) -> None:
    of = Twice(tmp_path, query, kept_in, short=short)
    assert of.shop.statuses() == {"m": "success"}
    for which in (HERE, of.there, of.there, HERE):
        assert of.codes() == []
        assert of.shop.actions() == {"m": "reuse"}
        of.append(which)
        assert of.codes() == ["base-table-changed"]
        assert of.shop.statuses() == {"m": "success"}
    assert of.codes() == []
    for which in (HERE, of.there):
        assert of.go_back(which)
        assert of.codes() == ["base-table-rolled-back"]
        of.shop.run()
        assert of.codes() == []
        assert of.shop.actions() == {"m": "reuse"}


@pytest.mark.parametrize("query", QUERIES, ids=["first", "second"])
def test_an_entry_that_goes_to_where_the_other_one_is_was_not_read_there(tmp_path: Path, query: str) -> None:
    of = Twice(tmp_path, query)
    of.append(HERE)
    of.shop.run()
    assert of.go_back(HERE)
    assert of.snapshots[0] == of.snapshots[1]
    assert of.codes() == ["base-table-rolled-back"]
    of.shop.run()
    of.append(HERE)
    of.shop.run()
    of.register()
    assert of.snapshots[0] == of.snapshots[1]
    assert of.codes() == ["base-table-changed"]


@pytest.mark.parametrize("kept_in", FORMATS)
def test_a_compaction_of_one_entry_is_recorded_once(tmp_path: Path, kept_in: str) -> None:
    of = Twice(tmp_path, QUERIES[1], kept_in)
    of.shop.run()
    for which in (HERE, of.there, HERE):
        of.append(which, operation="replace")
        assert of.codes() == ["base-table-compacted"]
        assert of.shop.actions() == {"m": "record"}
        of.shop.run()
        assert of.codes() == []
        assert of.shop.actions() == {"m": "reuse"}


def test_who_knows_the_properties_alone_never_takes_it_for_fresh_wrongly(tmp_path: Path) -> None:
    of = Twice(tmp_path, QUERIES[0])
    of.append(HERE)
    of.shop.run()
    of.append(of.there)
    for known in ((HERE,), (of.there,), (HERE, of.there)):
        assert not of.is_fresh_by_properties(*known)


@pytest.mark.proof
@pytest.mark.parametrize("seed", range(1, 5))
def test_random_histories_of_two_entries(tmp_path: Path, seed: int) -> None:
    """Fresh is what reads the snapshots of the last refresh, or compactions of them; and what says so ends in one run."""
    draw = random.Random(seed)
    of = Twice(tmp_path, draw.choice(QUERIES), short=draw.choice(["orders", "customers"]))
    of.shop.run()
    read = of.snapshots
    for _ in range(16):
        which = draw.choice((HERE, of.there))
        what = draw.choice(["append", "replace", "back", "run", "run"])
        if what == "run":
            of.shop.run()
            assert of.codes() == []
            assert of.shop.actions() == {"m": "reuse"}
            read = of.snapshots
        elif what == "back":
            of.go_back(which)
        else:
            of.append(which, operation=what)
        is_same = all(_has_rows_of(of.state(one), then) for one, then in zip((HERE, of.there), read, strict=True))
        assert of.answer().state == ("fresh" if is_same else "stale"), (seed, what, which)
        if not is_same:
            assert not any(of.is_fresh_by_properties(*known) for known in ((HERE,), (of.there,), (HERE, of.there)))


def _has_rows_of(table: TableState, snapshot_id: int | None) -> bool:
    """Whether only compactions lie between."""
    at = table.current_snapshot
    while at is not None and at.snapshot_id != snapshot_id:
        at = table.snapshots.get(at.parent_id) if at.operation == "replace" and at.parent_id is not None else None
    return at is not None


def test_one_table_under_two_names_of_one_catalog(tmp_path: Path) -> None:
    of = Shop(tmp_path)
    base_table(of.catalog, "raw.orders")
    register(of, "raw.orders", "copies.orders")
    of.write({"mvbuild.yml": "name: shop\n", "models/m.sql": "SELECT a.id FROM copies.orders a JOIN raw.orders b USING (id)\n"})
    of.run()
    for text in ("raw.orders", "copies.orders", "raw.orders"):
        of.catalog.append_snapshot(name(text), {"id": [1]})
        assert [r.code for r in judge(of.world())["model.shop.m"].reasons] == ["base-table-changed"]
        of.run()
        assert judge(of.world())["model.shop.m"].reasons == ()


def test_one_view_under_two_names(tmp_path: Path) -> None:
    """Each is at a version of its own, and both have one UUID."""
    of = Shop(tmp_path)
    base_table(of.catalog, "raw.orders")
    of.write({"mvbuild.yml": "name: shop\n", "models/m.sql": "SELECT a.id FROM views.a JOIN views.b USING (id)\n"})
    for view in ("a", "b"):
        write_view(of, f"views.{view}", "SELECT id FROM raw.orders")
        files, found = of.catalog._files._contents, of.catalog.load([name(f"views.{view}")])[name(f"views.{view}")]  # type: ignore[attr-defined]
        assert isinstance(found, ViewState)
        raw = {**json.loads(files[found.metadata_location][0]), "view-uuid": "00000000-0000-4000-8000-000000000001"}
        files[found.metadata_location] = (json.dumps(raw).encode(), 1)
    of.run()
    for view in ("b", "a", "a", "b", "b"):
        assert judge(of.world())["model.shop.m"].reasons == ()
        write_view(of, f"views.{view}", "SELECT id FROM raw.orders WHERE id > 0")
        assert [r.code for r in judge(of.world())["model.shop.m"].reasons] == ["child-view-changed"]
        assert of.statuses() == {"m": "success"}
    assert set(of.statuses().values()) == {"reused"}
