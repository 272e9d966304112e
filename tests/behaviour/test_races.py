"""Several writers at once: each wins or gets CommitConflict, and nothing is lost."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from behaviour.world import World, embedded_properties, layout, name, table_commit
from mvbuild.ports.catalog import CommitConflict
from mvbuild.ports.states import TableState

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.proof

_WRITERS = 8
_PROCESS = """
import sys
from behaviour.world import name, table_commit
from mvbuild.adapters import open_catalog
from mvbuild.ports.catalog import CommitConflict
root, number, mode = sys.argv[1:]
catalog = open_catalog("lake", {"type": "sql", "uri": f"sqlite:///{root}/.mvbuild/catalog.db",
                                "warehouse": f"file://{root}/.mvbuild/warehouse"}, embedded=True)
if mode == "first-use":
    catalog.ensure_namespace(("mart",))
    sys.exit()
table = catalog.load([name("mart.t")])[name("mart.t")]
change = dict(set_properties={number: "1"}) if mode == "properties" else dict(set_snapshot_id=int(mode), set_properties={number: "1"})
print("ready", flush=True)
sys.stdin.readline()
try:
    catalog.commit([table_commit(table, **change)])
    print("won")
except CommitConflict:
    print("conflict")
"""


def _table(world: World) -> tuple[TableState, int]:
    world.catalog.create_table(name("mart.t"), layout(id="long"), {})
    table = world.write(name("mart.t"), {"id": [1]}, "main")
    world.catalog.create_branch(table, "audit")
    table = world.write(name("mart.t"), {"id": [2]}, "audit")
    return table, table.refs["audit"]


def _race(count: int, action: Callable[[int], None]) -> list[bool]:
    def run(number: int) -> bool:
        try:
            action(number)
        except CommitConflict:
            return False
        return True

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def test_one_thread_moves_main(world: World) -> None:
    table, audited = _table(world)
    won = _race(
        _WRITERS, lambda n: world.catalog.commit([table_commit(table, set_snapshot_id=audited, set_properties={"by": str(n)})]) and None
    )
    assert sum(won) == 1
    state = world.catalog.load([table.identifier])[table.identifier]
    assert isinstance(state, TableState)
    assert state.current_snapshot_id == audited
    assert state.properties["by"] == str(won.index(True))


def test_threads_that_do_not_conflict_all_win(world: World) -> None:
    table, _ = _table(world)
    writers = 4  # a remote catalog may answer "try again" to each of the others in turn
    won = _race(writers, lambda n: world.catalog.commit([table_commit(table, set_properties={f"p{n}": "1"})]) and None)
    assert all(won)
    assert {f"p{n}" for n in range(writers)} <= set(world.catalog.load([table.identifier])[table.identifier].properties)


def test_threads_create_the_same_names(world: World) -> None:
    _race(_WRITERS, lambda _: world.catalog.ensure_namespace(("x", "y")))
    with ThreadPoolExecutor(_WRITERS) as pool:
        made = [pool.submit(world.catalog.create_table, name("x.y.t"), layout(id="long"), {}) for _ in range(_WRITERS)]
    won = [future.exception() is None for future in made]
    assert sum(won) == 1
    assert world.catalog.list_names(("x", "y")) == (name("x.y.t"),)


def _processes(root: Path, mode: str, *, wait: bool) -> list[str]:
    here = Path(__file__).parents[1]
    path = f"import sys; sys.path[:0] = [{str(here)!r}, {str(here.parent / 'compiler')!r}]\n"
    command = [sys.executable, "-c", path + _PROCESS, str(root)]
    started = [
        subprocess.Popen([*command, str(n), mode], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for n in range(_WRITERS)
    ]
    if wait:
        for process in started:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
    results = []
    for process in started:
        if wait:
            assert process.stdin
            process.stdin.write("\n")
            process.stdin.flush()
    for process in started:
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        results.append(out.strip())
    return results


def test_processes_race(sql_world: World, tmp_path: Path) -> None:
    table, audited = _table(sql_world)
    results = _processes(tmp_path, str(audited), wait=True)
    assert sorted(results) == ["conflict"] * (_WRITERS - 1) + ["won"]
    state = sql_world.catalog.load([table.identifier])[table.identifier]
    assert isinstance(state, TableState)
    assert state.properties == {str(results.index("won")): "1"}
    folder = Path(state.metadata_location.removeprefix("file:")).parent
    logged = 4  # create, append, branch, append: and the one that won
    assert len(list(folder.glob("*.metadata.json"))) == logged + 1


def test_processes_that_do_not_conflict(sql_world: World, tmp_path: Path) -> None:
    table, _ = _table(sql_world)
    results = _processes(tmp_path, "properties", wait=True)
    state = sql_world.catalog.load([table.identifier])[table.identifier]
    assert {str(n) for n, result in enumerate(results) if result == "won"} == set(state.properties)
    assert results.count("won") >= _WRITERS - 1


def test_first_use_by_processes_at_once(tmp_path: Path) -> None:
    _processes(tmp_path, "first-use", wait=False)
    assert (tmp_path / ".mvbuild" / "catalog.db").exists()
    assert embedded_properties(tmp_path)
