"""What a command remembers of a catalog never changes an answer; a cache that is lost, damaged or of something else only costs a read."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.fresh_world import Shape, make
from mvbuild import api
from mvbuild.adapters.iceberg import tables
from mvbuild.adapters.iceberg.files import FileStore
from mvbuild.adapters.iceberg.metadata import parse, serialize
from mvbuild.adapters.iceberg.pointers import SqlPointers, Swap
from mvbuild.adapters.iceberg.sql import open_database
from mvbuild.api.compilation import write_artifacts
from mvbuild.api.sessions import catalog_of, observed
from mvbuild.cache import keys, store
from mvbuild.cli.main import group
from mvbuild.graph import graph_cache
from mvbuild.plan.model import Plan
from unit.imports import COMPILER
from unit.worlds import PROJECT, append, base_table, shop, write_project

FORMATS = ("table-properties", "metadata-file")
MVS = 4


@pytest.fixture(params=FORMATS)
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A project of fresh MVs in an embedded catalog, which a command has found settled."""
    made = tmp_path / "wide"
    make(made, MVS, request.param, Shape())
    write_artifacts(api.compile(made))
    assert actions(made) == REUSED
    return made


REUSED = {f"m{number}": "reuse" for number in range(MVS)}
STALE_1 = {**REUSED, "m1": "refresh"}


def planned(root: Path) -> Plan:
    return api.plan(api.compile(root), removed=False)


def actions(root: Path) -> dict[str, str]:
    return {step.node.rpartition(".")[2]: step.action for step in planned(root).steps}


def settled(root: Path) -> set[str]:
    graph = api.compile(root)
    return {id.rpartition(".")[2] for id in observed(graph, catalog_of(graph), lazily=True).settled}


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The metadata files that are read."""
    found: list[str] = []
    read_all = FileStore.read_all

    def counting(self: FileStore, locations: list[str]) -> list[bytes | Exception]:
        found.extend(locations)
        return read_all(self, locations)

    monkeypatch.setattr(FileStore, "read_all", counting)
    return found


def pointers(root: Path) -> SqlPointers:
    target = api.compile(root).project.target
    return SqlPointers(target.catalog_name, open_database(target.catalog["uri"], create=False), target.catalog["warehouse"])


def location(root: Path, namespace: str, name: str) -> str:
    return pointers(root).find([(namespace, name)])[namespace, name][0]


def swap(root: Path, name: str, change: Callable[[dict], dict], kind: str = "TABLE", namespace: str = "raw") -> None:  # type: ignore[type-arg]
    """Another writer commits new metadata."""
    files, old = FileStore({}), location(root, namespace, name)
    new = f"{old.rpartition('/')[0]}/{tables.new_snapshot_id():05d}-00000000-0000-4000-8000-000000000001.metadata.json"
    files.write(new, serialize(change(parse(files.read(old), old)), new))
    assert pointers(root).swap([Swap(key=(namespace, name), kind=kind, old=old, new=new)])  # type: ignore[arg-type]


def with_snapshot(raw: dict) -> dict:  # type: ignore[type-arg]
    last = raw["snapshots"][-1]
    new = {**last, "snapshot-id": last["snapshot-id"] + 1, "parent-snapshot-id": last["snapshot-id"], "sequence-number": 9}
    return {
        **raw,
        "last-sequence-number": 9,
        "snapshots": [*raw["snapshots"], new],
        "current-snapshot-id": new["snapshot-id"],
        "refs": {"main": {"type": "branch", "snapshot-id": new["snapshot-id"]}},
    }


def test_a_second_command_reads_no_metadata_file(root: Path, reads: list[str]) -> None:
    assert settled(root) == REUSED.keys()
    assert actions(root) == REUSED
    assert reads == []


@pytest.mark.parametrize("command", ["run", "build", "status"])
def test_a_command_with_nothing_to_do_reads_no_model(root: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand of them would take longer than everything else."""
    arguments = [command, "--project-dir", str(root)]
    assert CliRunner().invoke(group, arguments).exit_code == 0
    models: list[str] = []
    parse_model = graph_cache.parse_model
    monkeypatch.setattr(graph_cache, "parse_model", lambda file, templates: models.append(file.name) or parse_model(file, templates))
    done = CliRunner().invoke(group, arguments)
    assert (done.exit_code, models) == (0, []), done.output


def test_a_command_that_needs_a_state_after_all_has_it(root: Path) -> None:
    world, found = api.status(api.compile(root))
    assert world.settled
    whole = observed(api.compile(root), catalog_of(api.compile(root)))
    assert dict(world.observed.states) == dict(whole.observed.states)
    assert len({answer.record.base_tables for answer in found.values() if answer.record}) == MVS


def test_only_what_a_changed_table_concerns_is_read_and_judged(root: Path, reads: list[str]) -> None:
    swap(root, "t1", with_snapshot)
    plan = planned(root)
    assert {step.node.rpartition(".")[2]: step.action for step in plan.steps} == STALE_1
    assert [r.code for step in plan.steps for r in step.reasons] == ["base-table-changed"]
    read = {place.partition("/warehouse/")[2].partition("/metadata/")[0].removesuffix("__storage") for place in reads}
    assert read == {"raw/t1", "main/m1"}
    assert settled(root) == REUSED.keys() - {"m1"}


def test_a_table_that_was_dropped_and_created_again_is_another_one(root: Path) -> None:
    old = location(root, "raw", "t1")
    assert pointers(root).delete(("raw", "t1"), old)
    assert actions(root) == {**REUSED, "m1": "blocked"}
    catalog = catalog_of(api.compile(root))
    graph = api.compile(root)
    base = next(node.identifier for node in graph.nodes.values() if node.identifier.name == "t1")
    before = parse(FileStore({}).read(old), old)
    catalog.create_table(base, replace(tables_layout(before)), {})
    assert actions(root) == STALE_1
    assert location(root, "raw", "t1") != old


def tables_layout(raw: dict):  # type: ignore[no-untyped-def, type-arg]
    from mvbuild.ports.commits import TableLayout

    return TableLayout(schema={key: value for key, value in raw["schemas"][0].items() if key != "schema-id"})


@pytest.mark.parametrize("what", ["view", "storage", "table"])
@pytest.mark.parametrize("how", ["damaged", "deleted"])
def test_a_file_that_was_damaged_or_deleted_is_noticed(root: Path, what: str, how: str) -> None:
    is_embedded = (root / "mvbuild.yml").read_text().count("metadata-file") > 0
    if what == "table":
        place = location(root, "raw", "t1")
    elif what == "view" or not is_embedded:
        place = location(root, "main", "m1" if what == "view" else "m1__storage")
    else:
        view = location(root, "main", "m1")
        place = parse(FileStore({}).read(view), view)["properties"]["materialized-view.metadata-location"]
    path = Path(place.removeprefix("file://"))
    if how == "damaged":
        path.write_bytes(path.read_bytes()[:-9])
    else:
        path.unlink()
    assert actions(root) == {**REUSED, "m1": "blocked"}


@pytest.mark.parametrize("how", ["emptied", "truncated", "overwritten", "deleted", "a directory"])
def test_a_damaged_cache_costs_a_read(root: Path, how: str) -> None:
    swap(root, "t1", with_snapshot)
    path = root / "target" / store.FILE
    content = path.read_bytes()
    path.unlink()
    if how == "a directory":
        path.mkdir()
    elif how != "deleted":
        path.write_bytes({"emptied": b"", "truncated": content[: len(content) // 2], "overwritten": b"\0" * len(content)}[how])
    assert actions(root) == STALE_1
    assert actions(root) == STALE_1


def test_a_cache_of_another_version_is_not_used(root: Path, monkeypatch: pytest.MonkeyPatch, reads: list[str]) -> None:
    monkeypatch.setattr(store, "code_version", lambda: keys.digest("another"))
    assert settled(root) == set()
    assert actions(root) == REUSED
    assert len(set(reads)) == 3 * MVS


def test_the_cache_of_another_catalog_with_the_same_names_is_not_used(root: Path, tmp_path: Path) -> None:
    """Even if the project is in the same directory and has the same files."""
    kind = "metadata-file" if "metadata-file" in (root / "mvbuild.yml").read_text() else "table-properties"
    cache = (root / "target" / store.FILE).read_bytes()
    shutil.rmtree(root)
    make(root, MVS, kind, Shape())
    swap(root, "t1", with_snapshot)
    write_artifacts(api.compile(root))
    (root / "target" / store.FILE).write_bytes(cache)
    assert settled(root) == set()
    assert actions(root) == STALE_1


def test_the_cache_of_a_copied_project_says_nothing_about_the_copy(root: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns(".mvbuild"))
    assert settled(copy) == set()


def test_an_edited_model_is_judged_with_all_that_read_it(tmp_path: Path) -> None:
    of = shop(write_project(tmp_path / "shop", PROJECT))
    (of.root / "target").mkdir()
    assert of.run().ok

    def plan() -> Plan:
        return api.plan(api.compile(of.root), catalog=of.catalog, removed=False)

    plan()
    assert {id.rpartition(".")[2] for id in plan().world.settled} == {"orders_clean", "daily", "monthly"}
    of.write({"models/daily.sql": "SELECT id FROM {{ ref('orders_clean') }} WHERE id < 9\n"})
    edited = plan()
    assert {id.rpartition(".")[2] for id in edited.world.settled} == {"orders_clean"}
    assert [step.action for step in edited.steps] == ["reuse", "refresh", "refresh"]
    of.write(PROJECT)
    assert [step.action for step in plan().steps] == ["reuse", "reuse", "reuse"]


def test_a_base_table_outside_the_catalog_is_always_read(tmp_path: Path) -> None:
    from unit.freshness.foreign_views import other_metastore

    files = {
        **PROJECT,
        "models/sources.yml": "sources: [{name: crm, catalog: other, schema: crm, properties: {type: memory}, tables: [{name: people}]}]\n",
        "models/people.sql": "SELECT id FROM {{ source('crm', 'people') }}\n",
    }
    of = shop(tmp_path / "shop", files)
    theirs = other_metastore(of, "crm.people")
    assert of.run().ok
    for _ in range(2):
        assert set(of.actions().values()) == {"reuse"}
    before = of.settled.found
    assert of.actions()["people"] == "reuse"
    assert of.settled.found - before == 3, "people is not settled"
    theirs.append_snapshot(next(iter(theirs.list_names(("crm",)))), {"id": [8]})
    assert of.actions()["people"] == "refresh"


def test_a_branch_that_a_dead_run_left_is_found_by_the_next_run(tmp_path: Path) -> None:
    of = shop(tmp_path / "shop")
    assert of.run().ok
    of.actions()
    storage = of.table("main.daily__storage")
    of.catalog.create_branch(storage, "mvbuild_00000000_1_1_abcdef")
    of.actions()
    of.alive = lambda pid: False
    of.run()
    assert of.table("main.daily__storage").branches == {"main"}


@pytest.mark.proof
def test_two_commands_that_write_at_once_both_end_well(root: Path) -> None:
    (root / "target" / store.FILE).unlink()
    command = [sys.executable, "-c", f"from mvbuild import api; api.plan(api.compile({str(root)!r}), removed=False)"]
    both = [subprocess.Popen(command, env={"PYTHONPATH": str(COMPILER)}, stderr=subprocess.PIPE) for _ in range(2)]
    assert [(process.communicate()[1], process.returncode) for process in both] == [(b"", 0), (b"", 0)]
    assert settled(root) == REUSED.keys()
    swap(root, "t1", with_snapshot)
    assert actions(root) == STALE_1


def test_old_entries_are_deleted(root: Path) -> None:
    for number in range(8):
        with (root / "mvbuild.yml").open("a") as file:
            file.write(f"# {number}\n")
        assert actions(root) == REUSED
    with closing(sqlite3.connect(root / "target" / store.FILE)) as cache:
        ((count,),) = cache.execute("SELECT count(*) FROM settled")
    assert count <= 6


def test_a_run_with_nothing_to_do_writes_the_same_artifacts(root: Path) -> None:
    first = artifacts(root)
    api.run(api.compile(root))
    again = artifacts(root)
    assert again == artifacts(root)
    api.run(api.compile(root))
    assert artifacts(root) == again
    assert first["manifest.json"] == again["manifest.json"]
    assert len(again["run_results.json"]["results"]) == MVS
    shutil.rmtree(root / "target")
    api.run(api.compile(root))
    assert artifacts(root) == again


def artifacts(root: Path) -> dict[str, dict]:  # type: ignore[type-arg]
    """Without what differs between any two runs."""
    found = {}
    for path in sorted((root / "target").glob("*.json")):
        found[path.name] = json.loads(path.read_text())
        for key in ("generated_at", "invocation_id"):
            del found[path.name]["metadata"][key]
        found[path.name].pop("elapsed_time", None)
    return found


def test_the_same_views_of_the_catalog_are_expanded_again(tmp_path: Path) -> None:
    from unit.freshness.foreign_views import write_view

    files = {"mvbuild.yml": "name: shop\n", "models/daily.sql": "SELECT id FROM ext.recent\n"}
    of = shop(tmp_path / "shop", files)
    write_view(of, "ext.recent", "SELECT id FROM orders", catalog="lake", namespace=("raw",))
    assert of.run().ok
    assert of.actions() == {"daily": "reuse"}
    assert of.actions() == {"daily": "reuse"}
    assert of.settled.found
    append(of.catalog, "raw.orders")
    assert of.actions() == {"daily": "refresh"}
    assert of.run().ok
    assert of.actions() == {"daily": "reuse"}
    base_table(of.catalog, "raw.others")
    write_view(of, "ext.recent", "SELECT id FROM others", catalog="lake", namespace=("raw",))
    assert of.actions() == {"daily": "refresh"}
