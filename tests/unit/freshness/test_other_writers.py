"""Storages that other writers refreshed, in each of the formats that mvbuild reads: their freshness, and what a run does with them."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from mvbuild.formats import metadata_file
from mvbuild.freshness.model import Freshness
from mvbuild.freshness.observe import observe
from mvbuild.freshness.rules import judge
from mvbuild.ports.commits import TableCommit
from mvbuild.ports.states import TableState, ViewState
from other_programs import drop
from unit.worlds import Shop, append, base_table, compiled, name, shop

FILES = {
    "mvbuild.yml": "name: shop\n",
    "models/orders_clean.sql": "{{ config(materialized='view') }}\nSELECT id FROM raw.orders WHERE id > 0\n",
    "models/daily.sql": "SELECT id FROM {{ ref('orders_clean') }} JOIN raw.customers USING (id)\n",
    "models/above.sql": "SELECT id FROM {{ ref('daily') }}\n",
}
EMBEDDED = "name: shop\nmodels: {+storage: {format: metadata-file}}\n"
OURS = ("iceberg.", "mvbuild.")


# --- what the catalog has --------------------------------------------------------------------------------------------------------


def view(of: Shop, text: str) -> ViewState:
    found = of.catalog.load([name(text)])[name(text)]
    assert isinstance(found, ViewState)
    return found


def storage(of: Shop) -> TableState:
    world = observe(compiled(of.root), of.catalog, of.sources, at_ms=of.clock.at_ms)
    found = world.observed.table(world.graph.model("model.shop.daily").storage)
    assert found is not None
    return found


def answer(of: Shop, model: str = "daily") -> Freshness:
    return judge(of.world())[f"model.shop.{model}"]


def told(of: Shop) -> tuple[str, list[str]]:
    """State and codes, in any order."""
    found = answer(of)
    return found.state, sorted(r.code for r in found.reasons)


def snapshot_of(of: Shop, table: str) -> int:
    found = of.table(table).current_snapshot_id
    assert found is not None
    return found


def sources(of: Shop) -> tuple[TableState, TableState]:
    return of.table("raw.orders"), of.table("raw.customers")


# --- what other writers do -------------------------------------------------------------------------------------------------------


def edit_view(of: Shop, text: str, edit: Callable[[dict[str, Any]], None]) -> None:
    """Another writer's metadata file of a view, under the catalog's pointer."""
    state = view(of, text)
    files, pointers = of.catalog._files, of.catalog._pointers  # type: ignore[attr-defined]
    raw = json.loads(files.read(state.metadata_location))
    edit(raw)
    location = f"{state.location}/metadata/{uuid4()}.metadata.json"
    files.write(location, json.dumps(raw).encode())
    key = (".".join(state.identifier.namespace), state.identifier.name)
    pointers._found[key] = (location, "VIEW")


def edit_file(of: Shop, edit: Callable[[dict[str, Any]], None]) -> None:
    """Another writer's file of the MV, and the view that points at it."""
    mv = storage(of).mv
    assert mv is not None
    raw = deepcopy(dict(mv.raw))
    edit(raw)
    location = f"{mv.location}/metadata/00099-{uuid4()}.mv.metadata.json"
    of.catalog._files.write(location, metadata_file.write(metadata_file.check(raw)))  # type: ignore[attr-defined]
    edit_view(of, "main.daily", lambda view: view["properties"].update({metadata_file.METADATA_LOCATION: location}))


def disown(of: Shop, *, keep: Callable[[str], bool] = lambda key: False) -> None:
    """No property of mvbuild's is left on storage and view, but those that make the view an MV."""
    state = storage(of)
    gone = tuple(k for k in state.properties if k.startswith(OURS) and not keep(k))
    if state.mv is None:
        of.catalog.commit(
            [
                TableCommit(
                    identifier=state.identifier,
                    expect_uuid=state.uuid,
                    expect_snapshot_id=state.current_snapshot_id,
                    remove_properties=gone,
                )
            ]
        )

    def remove(raw: dict[str, Any]) -> None:
        raw["properties"] = {k: v for k, v in raw["properties"].items() if not k.startswith("mvbuild.")}

    edit_view(of, "main.daily", remove)


def set_properties(of: Shop, properties: dict[str, str]) -> None:
    state = storage(of)
    of.catalog.commit(
        [
            TableCommit(
                identifier=state.identifier,
                expect_uuid=state.uuid,
                expect_snapshot_id=state.current_snapshot_id,
                set_properties=properties,
            )
        ]
    )


def write_storage(of: Shop, operation: str, summary: dict[str, str] | None = None) -> None:
    """A snapshot of the storage by another writer; in a file, as a writer would make it that knows only the data part of the format."""
    if storage(of).mv is None:
        of.catalog.append_snapshot(name("main.daily__storage"), {"id": [1, 2]}, operation=operation, summary=summary)
        return

    def edit(raw: dict[str, Any]) -> None:
        parent, number = raw["snapshots"][-1], raw["last-sequence-number"] + 1
        new = {**parent, "sequence-number": number, "snapshot-id": number * 1000 + 7, "parent-snapshot-id": raw["current-snapshot-id"]}
        new |= {"timestamp-ms": raw["last-updated-ms"] + 1, "summary": {"operation": operation, **(summary or {})}}
        raw["snapshots"] = [*raw["snapshots"], new]
        raw |= {"last-sequence-number": number, "current-snapshot-id": new["snapshot-id"], "last-updated-ms": new["timestamp-ms"]}
        raw["refs"] = {"main": {"type": "branch", "snapshot-id": new["snapshot-id"]}}
        raw["snapshot-log"] = [*raw["snapshot-log"], {"timestamp-ms": new["timestamp-ms"], "snapshot-id": new["snapshot-id"]}]

    edit_file(of, edit)


def forget(of: Shop) -> None:
    """The snapshots that mvbuild made are gone, as if it never had been here."""
    state = storage(of)
    old = frozenset(state.snapshots) - {state.current_snapshot_id}
    of.catalog.commit(
        [
            TableCommit(
                identifier=state.identifier,
                expect_uuid=state.uuid,
                expect_snapshot_id=state.current_snapshot_id,
                expire=old,  # type: ignore[arg-type]
            )
        ]
    )


def old_state(of: Shop, **changes: Any) -> dict[str, str]:
    """The state under the names of older writers."""
    clean = view(of, "main.orders_clean")
    tables = [
        {"name": t.identifier.name, "namespace": list(t.identifier.namespace), "uuid": t.uuid, "snapshot-id": t.current_snapshot_id}
        for t in sources(of)
    ]
    views = [{"name": "orders_clean", "namespace": ["main"], "uuid": clean.uuid, "version-id": clean.version_id}]
    state = {
        "refresh-version-id": view(of, "main.daily").version_id,
        "source-table-states": tables,
        "source-view-states": views,
        "refresh-start-timestamp-ms": 1_700_000_000_000,
        **changes,
    }
    return {"refresh-state": json.dumps({k: v for k, v in state.items() if v is not None})}


def new_state(of: Shop) -> dict[str, str]:
    """The state under the names of today."""
    old = json.loads(old_state(of)["refresh-state"])
    states = [{"type": "table", **s} for s in old["source-table-states"]] + [{"type": "view", **s} for s in old["source-view-states"]]
    return {
        "refresh-state": json.dumps(
            {"view-version-id": old["refresh-version-id"], "source-states": states, "refresh-start-timestamp-ms": 1_700_000_000_000}
        )
    }


def trino_state(of: Shop, *more: str, **flags: str) -> dict[str, str]:
    return {"dependsOnTables": ",".join([*(f"raw.{t.identifier.name}={t.current_snapshot_id}" for t in sources(of)), *more]), **flags}


def record_properties(of: Shop) -> dict[str, str]:
    """The record of the property-based specification, and nothing else."""
    clean = view(of, "main.orders_clean")
    tables = {f"iceberg.base.snapshot.{t.uuid}": str(t.current_snapshot_id) for t in sources(of)}
    return {"iceberg.view.version": "1", f"iceberg.child.view.version.{clean.uuid}": str(clean.version_id), **tables}


def by_summary(state: Callable[[Shop], dict[str, str]]) -> Callable[[Shop], None]:
    def left(of: Shop) -> None:
        disown(of)
        write_storage(of, "overwrite", state(of))
        forget(of)

    return left


def by_properties(of: Shop) -> None:
    disown(of)
    write_storage(of, "overwrite")
    set_properties(of, record_properties(of))
    forget(of)


def by_both(of: Shop) -> None:
    disown(of)
    write_storage(of, "overwrite", new_state(of))
    set_properties(of, record_properties(of))
    forget(of)


def by_file(*, numbered: bool) -> Callable[[Shop], None]:
    """Base tables without `uuid`, no property of mvbuild's, no name of a file that the table side was taken from. The draft has a place for
    child views nowhere, but properties of mvbuild's."""

    def left(of: Shop) -> None:
        disown(of)

        def edit(raw: dict[str, Any]) -> None:
            raw["properties"] = {k: v for k, v in raw["properties"].items() if k.startswith("write.")}
            for snapshot in raw["snapshots"]:
                snapshot["summary"] = {"operation": "overwrite"}
            for refresh in raw["refreshes"]:
                for table in refresh["base-tables"].values():
                    del table["properties"]
                if not numbered:
                    del refresh["sequence-number"]

        edit_file(of, edit)

    return left


@dataclass(frozen=True, kw_only=True)
class Writer:
    left: Callable[[Shop], None]
    """Makes of mvbuild's MV one that this writer refreshed."""
    codes: tuple[str, ...] = ()
    """Why it is not known to be fresh, with nothing changed since."""
    tampered: str = "storage-changed"
    """The reason after a foreign append; empty if it cannot be detected."""
    files: tuple[tuple[str, str], ...] = ()

    @property
    def state(self) -> str:
        return "unknown" if self.codes else "fresh"


TABLES_ONLY = (("models/daily.sql", "SELECT id FROM raw.orders JOIN raw.customers USING (id)\n"),)
FILE = (("mvbuild.yml", EMBEDDED),)
VERSION, TABLE, VIEW = "view-version-not-recorded", "base-table-not-recorded", "child-view-not-recorded"

# Where the state is the snapshot's own, an append on top leaves a storage without a record.
WRITERS = {
    "refresh-state, old names": Writer(left=by_summary(old_state), tampered="never-refreshed"),
    "refresh-state, today's names": Writer(left=by_summary(new_state), tampered="never-refreshed"),
    # The property-based specification knows no snapshot of the storage, and so no foreign write to it.
    "properties": Writer(left=by_properties, tampered=""),
    "properties and refresh-state": Writer(left=by_both),
    "Trino": Writer(left=by_summary(trino_state), codes=(VERSION,), tampered="never-refreshed", files=TABLES_ONLY),
    "Trino, over a view": Writer(left=by_summary(trino_state), codes=(VIEW, VERSION), tampered="never-refreshed"),
    "Trino, UNKNOWN": Writer(
        left=by_summary(lambda of: trino_state(of, "UNKNOWN")), codes=(TABLE, VERSION), tampered="never-refreshed", files=TABLES_ONLY
    ),
    "Trino, table functions": Writer(
        left=by_summary(lambda of: trino_state(of, dependsOnTableFunctions="true")),
        codes=(TABLE, VERSION),
        tampered="never-refreshed",
        files=TABLES_ONLY,
    ),
    "Trino, non-deterministic functions": Writer(
        left=by_summary(lambda of: trino_state(of, dependsOnNonDeterministicFunctions="true")),
        codes=(TABLE, VERSION),
        tampered="never-refreshed",
        files=TABLES_ONLY,
    ),
    "Trino, flags that say no": Writer(
        left=by_summary(lambda of: trino_state(of, dependsOnTableFunctions="false", dependsOnNonDeterministicFunctions="false")),
        codes=(VERSION,),
        tampered="never-refreshed",
        files=TABLES_ONLY,
    ),
    "metadata file": Writer(left=by_file(numbered=True), files=FILE + TABLES_ONLY),
    "metadata file, over a view": Writer(left=by_file(numbered=True), codes=(VIEW,), files=FILE),
    "metadata file, without sequence numbers": Writer(left=by_file(numbered=False), tampered="", files=FILE + TABLES_ONLY),
}


def made_by(root: Path, writer: Writer) -> Shop:
    of = shop(root, {**FILES, **dict(writer.files)})
    of.run("daily", "orders_clean")
    writer.left(of)
    assert not any(k.startswith("mvbuild.") for k in (*storage(of).properties, *view(of, "main.daily").properties))
    return of


@pytest.fixture(params=WRITERS)
def writer(request: pytest.FixtureRequest) -> Writer:
    return WRITERS[request.param]


@pytest.fixture
def left(tmp_path: Path, writer: Writer) -> Shop:
    return made_by(tmp_path, writer)


def assert_ours(of: Shop) -> None:
    """A run ends with a record of ours, whatever was there; and the next one has nothing to do."""
    result = of.run()
    assert result.ok, [d for r in result.results for d in r.diagnostics]
    found, state = answer(of), storage(of)
    assert (found.state, found.reasons) == ("fresh", ())
    assert found.record is not None
    assert {(t.uuid, t.snapshot_id) for t in found.record.base_tables} == {(t.uuid, t.current_snapshot_id) for t in sources(of)}
    assert all(t.uuid for t in found.record.base_tables)
    assert (found.record.view_version_id, found.record.incomplete) == (view(of, "main.daily").version_id, False)
    assert state.properties["mvbuild.model"] == "model.shop.daily"
    snapshot = state.current_snapshot
    assert snapshot is not None
    assert "dependsOnTables" not in snapshot.summary
    if state.mv is None:
        written = {k: v for k, v in state.properties.items() if k.startswith("iceberg.base.snapshot.")}
        assert written == {f"iceberg.base.snapshot.{t.uuid}": str(t.current_snapshot_id) for t in sources(of)}
    assert answer(of, "above").state == "fresh"
    assert set(of.actions().values()) == {"reuse"}


# --- every writer ----------------------------------------------------------------------------------------------------------------


def test_as_the_writer_left_it(left: Shop, writer: Writer) -> None:
    assert told(left) == (writer.state, list(writer.codes))
    # To adopt it is to mark it as the model's; no row is computed for that.
    assert left.actions("daily")["daily"] == ("alter" if writer.state == "fresh" else "refresh")


def test_a_run_makes_the_record_ours_once_there_is_something_to_do(left: Shop, writer: Writer) -> None:
    append(left.catalog, "raw.customers")
    assert_ours(left)


def test_a_run_leaves_what_another_writer_keeps_fresh_and_refreshes_the_rest(left: Shop, writer: Writer) -> None:
    snapshot = storage(left).current_snapshot_id
    left.run("daily", "orders_clean")
    assert answer(left).is_fresh
    assert (storage(left).current_snapshot_id == snapshot) == (writer.state == "fresh")


def test_new_data_in_a_source(left: Shop, writer: Writer) -> None:
    before = snapshot_of(left, "raw.orders")
    append(left.catalog, "raw.orders")
    assert told(left) == ("stale", sorted([*writer.codes, "base-table-changed"]))
    (reason,) = (r for r in answer(left).reasons if r.code == "base-table-changed")
    assert (reason.table, reason.recorded, reason.current) == (name("raw.orders"), before, snapshot_of(left, "raw.orders"))
    assert_ours(left)


def test_a_compacted_source(left: Shop, writer: Writer) -> None:
    append(left.catalog, "raw.orders", operation="replace")
    assert told(left) == (writer.state, sorted([*writer.codes, "base-table-compacted"]))
    left.run("daily", "orders_clean")
    left.run("daily", "orders_clean")
    found = answer(left)
    assert (found.state, found.reasons) == ("fresh", ())
    assert found.record is not None
    assert snapshot_of(left, "raw.orders") in {t.snapshot_id for t in found.record.base_tables}
    append(left.catalog, "raw.customers")
    assert_ours(left)


def test_a_recreated_source(left: Shop, writer: Writer) -> None:
    drop(left.catalog, name("raw.orders"))
    base_table(left.catalog, "raw.orders")
    state, codes = told(left)
    assert state == "stale"
    # By name alone another table is one whose recorded snapshot is not there any more.
    assert set(codes) - set(writer.codes) <= {"base-table-recreated", "snapshot-expired"}
    assert_ours(left)


@pytest.mark.proof
def test_an_edited_definition(left: Shop, writer: Writer) -> None:
    left.write({"models/daily.sql": "SELECT id FROM raw.customers JOIN raw.orders USING (id) WHERE id > 7\n"})
    assert answer(left).state == "stale"
    assert "definition-changed" in told(left)[1]
    assert_ours(left)


def test_a_compacted_storage_keeps_what_its_writer_recorded(left: Shop, writer: Writer) -> None:
    """The state is looked for past `replace` snapshots, which carry none."""
    for _ in range(2):
        write_storage(left, "replace")
    assert told(left) == (writer.state, list(writer.codes))
    append(left.catalog, "raw.orders")
    assert told(left) == ("stale", sorted([*writer.codes, "base-table-changed"]))
    assert_ours(left)


@pytest.mark.proof
@pytest.mark.parametrize("operation", ["append", "overwrite", "delete"])
@pytest.mark.parametrize("compacted", [False, True])
def test_a_foreign_write_to_the_storage(left: Shop, writer: Writer, operation: str, compacted: bool) -> None:
    """No `replace` on top of it makes it harmless."""
    write_storage(left, operation)
    if compacted:
        write_storage(left, "replace")
    if writer.tampered:
        state, codes = told(left)
        assert (state, writer.tampered in codes) == ("stale", True), codes
    else:
        assert told(left) == (writer.state, list(writer.codes))
        append(left.catalog, "raw.orders")
    assert_ours(left)


# --- what only some of them have -------------------------------------------------------------------------------------------------


def by(tmp_path: Path, state: Callable[[Shop], dict[str, str]], *, tables_only: bool = False) -> Shop:
    return made_by(tmp_path, Writer(left=by_summary(state), files=TABLES_ONLY if tables_only else ()))


@pytest.mark.parametrize(
    ("changes", "state", "codes"),
    [
        ({"refresh-version-id": 7}, "stale", ["view-version-differs"]),
        ({"source-view-states": []}, "unknown", [VIEW]),
        ({"source-view-states": None}, "unknown", [VIEW]),
        ({"source-table-states": []}, "unknown", [TABLE, TABLE]),
        ({"refresh-start-timestamp-ms": None}, "fresh", []),
        ({"refresh-version-id": None}, "stale", ["record-unreadable"]),
        ({"source-table-states": "all"}, "stale", ["record-unreadable"]),
        ({"view-version-id": 1, "refresh-version-id": 7}, "fresh", []),
    ],
)
def test_old_names_with_other_values(tmp_path: Path, changes: dict[str, Any], state: str, codes: list[str]) -> None:
    of = by(tmp_path, lambda of: old_state(of, **changes))
    assert told(of) == (state, codes)
    append(of.catalog, "raw.orders")
    assert_ours(of)


def test_an_older_version_of_a_child_view_under_the_old_names(tmp_path: Path) -> None:
    def state(of: Shop) -> dict[str, str]:
        views = json.loads(old_state(of)["refresh-state"])["source-view-states"]
        return old_state(of, **{"source-view-states": [{**v, "version-id": 9} for v in views]})

    of = by(tmp_path, state)
    assert told(of) == ("stale", ["child-view-changed"])
    assert_ours(of)


def test_a_table_that_had_no_snapshot_for_trino(tmp_path: Path) -> None:
    of = by(tmp_path, lambda of: {"dependsOnTables": f"raw.orders=,raw.customers={snapshot_of(of, 'raw.customers')}"}, tables_only=True)
    assert told(of) == ("stale", ["base-table-changed", VERSION])
    assert_ours(of)


def test_a_table_that_still_has_no_snapshot_for_trino(tmp_path: Path) -> None:
    of = Shop(tmp_path).write({**FILES, **dict(TABLES_ONLY)})
    base_table(of.catalog, "raw.orders", rows=None)
    base_table(of.catalog, "raw.customers")
    of.run("daily", "orders_clean")
    by_summary(lambda of: {"dependsOnTables": f"raw.orders=,raw.customers={snapshot_of(of, 'raw.customers')}"})(of)
    assert told(of) == ("unknown", [VERSION])
    assert of.statuses("daily")["daily"] == "success"
    assert told(of) == ("fresh", [])


@pytest.mark.parametrize(
    ("value", "state", "codes"),
    [
        ("", "unknown", [TABLE, TABLE, TABLE, VERSION]),
        ("UNKNOWN", "unknown", [TABLE, TABLE, TABLE, VERSION]),
        ("elsewhere.items=1", "unknown", [TABLE, TABLE, VERSION]),
        ("raw.orders", "stale", ["record-unreadable"]),
    ],
)
def test_other_values_of_trinos(tmp_path: Path, value: str, state: str, codes: list[str]) -> None:
    of = by(tmp_path, lambda of: {"dependsOnTables": value}, tables_only=True)
    assert told(of) == (state, codes)
    assert_ours(of)


def test_a_refresh_state_counts_for_more_than_trinos(tmp_path: Path) -> None:
    of = by(tmp_path, lambda of: {**new_state(of), "dependsOnTables": "UNKNOWN"})
    assert told(of) == ("fresh", [])


@pytest.mark.parametrize("missing", ["iceberg.view.version", "iceberg.base.snapshot.", "iceberg.child.view.version."])
def test_a_record_in_properties_that_lacks_something(tmp_path: Path, missing: str) -> None:
    def left(of: Shop) -> None:
        disown(of)
        write_storage(of, "overwrite")
        set_properties(of, {k: v for k, v in record_properties(of).items() if not k.startswith(missing)})
        forget(of)

    of = made_by(tmp_path, Writer(left=left))
    expected = {
        "iceberg.view.version": ("stale", ["record-unreadable"]),
        "iceberg.base.snapshot.": ("unknown", [TABLE, TABLE]),
        "iceberg.child.view.version.": ("unknown", [VIEW]),
    }
    assert told(of) == expected[missing]
    assert_ours(of)


def test_properties_of_another_writer_that_disagree_with_an_older_state(tmp_path: Path) -> None:
    """The properties are the contract: the state of mvbuild's own, older, snapshot below says nothing any more."""
    of = shop(tmp_path, FILES)
    of.run("daily", "orders_clean")
    append(of.catalog, "raw.orders")
    assert told(of) == ("stale", ["base-table-changed"])
    disown(of)
    write_storage(of, "overwrite")
    set_properties(of, record_properties(of))
    assert told(of) == ("fresh", [])
    assert_ours_after_change(of)


def assert_ours_after_change(of: Shop) -> None:
    append(of.catalog, "raw.customers")
    assert_ours(of)


def test_a_metadata_file_that_names_another_table(tmp_path: Path) -> None:
    def left(of: Shop) -> None:
        by_file(numbered=True)(of)

        def edit(raw: dict[str, Any]) -> None:
            tables = raw["refreshes"][-1]["base-tables"]
            table = tables.pop("lake.raw.orders")
            tables["lake.raw.elsewhere"] = {**table, "identifier": "lake.raw.elsewhere"}

        edit_file(of, edit)

    of = made_by(tmp_path, Writer(left=left, files=FILE + TABLES_ONLY))
    assert told(of) == ("unknown", [TABLE])
    assert_ours(of)


def test_a_metadata_file_without_a_refresh(tmp_path: Path) -> None:
    """Rows without a record of their origin."""

    def left(of: Shop) -> None:
        by_file(numbered=True)(of)
        edit_file(of, lambda raw: raw.update({"refreshes": [], "current-refresh-id": -1}))

    of = made_by(tmp_path, Writer(left=left, files=FILE + TABLES_ONLY))
    assert told(of) == ("stale", ["never-refreshed"])
    assert_ours(of)
