"""The change of a table between two snapshots, by files, and the scratch tables that show it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import count, permutations
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.manifest import DataFile, ManifestEntry
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record

from behaviour.large import CHANGED, timed
from behaviour.manifests_of import files_of, with_equality_delete, with_snapshot
from behaviour.world import World, layout, name, table_commit
from mvbuild.adapters.iceberg.change import compared
from mvbuild.adapters.iceberg.manifests import FileEntry, Header
from mvbuild.formats.record import NO_SNAPSHOT
from mvbuild.names import TableIdentifier
from mvbuild.ports.catalog import ChangeRefused
from mvbuild.ports.changes import TableChange
from mvbuild.ports.states import TableState

T = name("mart.t")
LAYOUT = layout(id="long", n="int")


def _write(world: World, *ids: int) -> TableState:
    return world.write(T, {"id": list(ids), "n": [i * 10 for i in ids]}, "main")


def _table(world: World, *ids: int) -> TableState:
    world.catalog.create_table(T, LAYOUT, {})
    return _write(world, *ids)


def _overwrite(world: World, *ids: int) -> TableState:
    return world.catalog.replace_rows(T, LAYOUT, {"id": list(ids), "n": [i * 10 for i in ids]}, {})


def _head(table: TableState) -> int:
    return NO_SNAPSHOT if table.current_snapshot_id is None else table.current_snapshot_id


def _content(world: World, table: TableState, snapshot_id: int) -> Counter[Any]:
    return Counter(world.catalog.files.rows(table, 999, snapshot_id)[1]) if snapshot_id != NO_SNAPSHOT else Counter()


def _rows(world: World, change: TableChange) -> tuple[Counter[Any], Counter[Any]]:
    """Plus and minus, of changes without altered files."""
    numbers = count()
    staged = world.catalog.changes.stage(change, lambda: name(f"mvbuild_scratch.c{next(numbers)}"))

    def rows(identifier: TableIdentifier | None) -> list[Any]:
        if identifier is None:
            return []
        (state,) = world.catalog.load([identifier]).values()
        assert isinstance(state, TableState)
        return world.catalog.files.rows(state, 999)[1]

    plus, minus = Counter[Any](), Counter[Any]()
    for part in staged.parts:
        assert part.altered_old is None
        plus.update(rows(part.added))
        minus.update(rows(part.removed))
    for scratch in staged.tables:
        world.catalog.drop_scratch(scratch)
    assert world.catalog.list_names(("mvbuild_scratch",)) == ()
    return plus, minus


def _balance(world: World, table: TableState, old: int, new: int) -> TableChange:
    """The change, seen to be what turns the old rows into the new."""
    change = world.catalog.changes.between(table, old, new)
    plus, minus = _rows(world, change)
    before = _content(world, table, old)
    assert before + plus == _content(world, table, new) + minus
    return change


def test_append(world: World) -> None:
    old = _table(world, 1, 2)
    new = _write(world, *((1, 2, 3, 4) if world.whole else (3, 4)))
    change = _balance(world, new, _head(old), _head(new))
    assert change.is_insert_only
    assert not change.is_empty
    assert (change.old, change.new) == (_head(old), _head(new))
    assert (change.added.files, change.added.rows, change.rows) == (1, 2, 2)
    assert change.added.bytes == change.bytes > 0
    assert _rows(world, change) == (Counter({(3, 30): 1, (4, 40): 1}), Counter())
    back = _balance(world, new, _head(new), _head(old))
    assert not back.is_insert_only
    assert back.removed == change.added


def test_overwrite_and_delete(world: World) -> None:
    old = _table(world, 1, 2)
    new = _overwrite(world, 2, 3)
    change = _balance(world, new, _head(old), _head(new))
    assert change.removed.files == change.added.files == 1
    empty = _overwrite(world)
    change = _balance(world, empty, _head(new), _head(empty))
    assert (change.added.files, change.removed.files) == (0, 1)


@pytest.mark.proof
def test_every_pair_of_a_history_with_a_rollback(world: World) -> None:
    states = [world.catalog.create_table(T, LAYOUT, {}), _write(world, 1, 2), _write(world, 3), _overwrite(world, 4), _write(world, 5)]
    world.catalog.commit([table_commit(states[-1], set_snapshot_id=_head(states[2]))])
    now = _write(world, 6)
    for old, new in permutations({_head(state) for state in [*states, now]}, 2):
        _balance(world, now, old, new)


def test_nothing_changed(world: World) -> None:
    table = _table(world, 1)
    for at in (_head(table), NO_SNAPSHOT):
        change = world.catalog.changes.between(table, at, at)
        assert change.is_empty
        assert change.is_insert_only
        assert (change.rows, change.bytes, change.added.files) == (0, 0, 0)
        assert world.catalog.changes.stage(change, lambda: name("mvbuild_scratch.never")).tables == ()


def test_from_and_to_the_empty_table(world: World) -> None:
    table = _table(world, 1, 2)
    assert _balance(world, table, NO_SNAPSHOT, _head(table)).is_insert_only
    assert _balance(world, table, _head(table), NO_SNAPSHOT).added.files == 0


def test_what_cannot_be_told_is_refused(world: World) -> None:
    table = _table(world, 1)
    for old, new in ((7, _head(table)), (_head(table), 7)):
        with pytest.raises(ChangeRefused, match="has expired") as refused:
            world.catalog.changes.between(table, old, new)
        assert refused.value.code == "snapshot-expired"
    delta = replace(table, type="deltalake-filesystem")
    with pytest.raises(ChangeRefused) as refused:
        world.catalog.changes.between(delta, NO_SNAPSHOT, _head(table))
    assert refused.value.code == "non-iceberg-source"


def test_a_snapshot_that_expired_meanwhile(world: World) -> None:
    old = _table(world, 1)
    new = _write(world, 2)
    world.catalog.commit([table_commit(new, expire=frozenset({_head(old)}))])
    (now,) = world.catalog.load([T]).values()
    assert isinstance(now, TableState)
    with pytest.raises(ChangeRefused) as refused:
        world.catalog.changes.between(now, _head(old), _head(new))
    assert refused.value.code == "snapshot-expired"


def test_manifests_that_both_snapshots_have_are_not_read(disk_world: World) -> None:
    states = [_table(disk_world, 1), *(_write(disk_world, at) for at in range(2, 8))]
    change = disk_world.catalog.changes.between(states[-1], _head(states[-2]), _head(states[-1]))
    assert change.manifests_read == 1
    assert change.manifest_bytes_read > 0
    assert disk_world.catalog.changes.between(states[-1], _head(states[0]), _head(states[3])).manifests_read == 3


def test_dropped_scratch_tables_leave_every_data_file(disk_world: World, tmp_path: Path) -> None:
    old = _table(disk_world, 1)
    new = _overwrite(disk_world, 2)
    before = {path for path in tmp_path.rglob("*") if path.is_file() and "mvbuild_scratch" not in str(path)}
    _balance(disk_world, new, _head(old), _head(new))
    assert {path for path in tmp_path.rglob("*") if path.is_file() and "mvbuild_scratch" in str(path)} == set()
    assert before <= {path for path in tmp_path.rglob("*") if path.is_file()}


def test_no_scratch_table_is_left_if_one_fails(disk_world: World, tmp_path: Path) -> None:
    old = _table(disk_world, 1)
    new = _overwrite(disk_world, 2)
    change = disk_world.catalog.changes.between(new, _head(old), _head(new))
    with pytest.raises(Exception, match="already exists"):
        disk_world.catalog.changes.stage(change, lambda: name("mvbuild_scratch.twice"))
    assert disk_world.catalog.list_names(("mvbuild_scratch",)) == ()
    assert [path for path in tmp_path.rglob("*mvbuild_scratch/**/*") if path.is_file()] == []


def test_a_manifest_that_is_gone(disk_world: World) -> None:
    old = _table(disk_world, 1)
    new = _write(disk_world, 2)
    for manifest in files_of(new)[1]:
        Path(manifest.removeprefix("file://").removeprefix("file:")).unlink()
    with pytest.raises(ChangeRefused) as refused:
        disk_world.catalog.changes.between(new, _head(old), _head(new))
    assert refused.value.code == "files-missing"


def test_an_equality_delete_alters_the_older_files(sql_world: World) -> None:
    old = _table(sql_world, 1)
    with_deletes = with_snapshot(sql_world, old, with_equality_delete)
    new = _write(sql_world, 2)
    changes = sql_world.catalog.changes
    (part,) = changes.between(new, _head(old), _head(with_deletes)).parts
    assert (part.altered.files, part.only_deletes, part.had_deletes, part.deleted_rows) == (1, True, False, 10)
    (back,) = changes.between(new, _head(with_deletes), _head(old)).parts
    assert (back.altered.files, back.only_deletes, back.had_deletes) == (1, False, True)
    (both,) = changes.between(new, _head(old), _head(new)).parts
    assert (both.altered.files, both.added.files) == (1, 1)


def test_a_file_that_had_equality_deletes_is_removed(sql_world: World) -> None:
    old = _table(sql_world, 1)
    before = with_snapshot(sql_world, old, with_equality_delete)
    new = with_snapshot(sql_world, before, lambda *_: [], without=files_of(old)[1])
    (part,) = sql_world.catalog.changes.between(new, _head(before), _head(new)).parts
    assert (part.removed.files, part.altered.files, len(part.files.old_deletes)) == (1, 0, 1)


def test_equality_deletes_of_other_rows_do_not_matter(sql_world: World) -> None:
    old = _table(sql_world, 1)
    before = with_snapshot(sql_world, old, with_equality_delete)
    new = _write(sql_world, 2)
    assert sql_world.catalog.changes.between(new, _head(before), _head(new)).is_insert_only


def test_deletion_vectors_of_one_file_are_told_apart() -> None:
    def vector(offset: int) -> FileEntry:
        found = DataFile.from_args(3, file_path="a.puffin", partition=Record(), content_offset=offset, content_size_in_bytes=9)
        return FileEntry(ManifestEntry.from_args(sequence_number=1, data_file=found), b"", Header({}, Schema(), 0))

    gone, kept, fresh = compared([vector(4), vector(13), vector(22)], [vector(4), vector(22)])
    assert [entry.vector for entry in gone] == [(13, 9)]
    assert ([entry.vector for entry in kept], fresh) == ([(4, 9), (22, 9)], [])


@pytest.mark.proof
@pytest.mark.parametrize("how", ["append", "rewrite", "delete"])
def test_ten_of_ten_thousand_files_changed(tmp_path: Path, how: str) -> None:
    seconds, change, total = timed(tmp_path, how)
    print(f"{how}: {seconds * 1000:.0f} ms, {change.manifests_read} manifests, {change.manifest_bytes_read / total:.2%} of {total} bytes")
    groups = {"append": (CHANGED, 0, 0), "rewrite": (CHANGED, CHANGED, 0), "delete": (0, 0, CHANGED)}
    assert (change.added.files, change.removed.files, change.altered.files) == groups[how]
    assert change.manifest_bytes_read < 0.02 * total
    if how == "delete":
        (part,) = change.parts
        assert (part.only_deletes, part.had_deletes, part.deleted_rows) == (True, False, 10 * CHANGED)
