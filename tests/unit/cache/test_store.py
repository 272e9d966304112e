"""A cache finds what was put into it, or nothing: whatever happens to its file."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from mvbuild.cache import store
from mvbuild.cache.keys import digest
from mvbuild.cache.store import FILE, Cache

ENTRIES = {digest(n): "".join(random.Random(n).choices("[]{} \n\u00e9\u4e2d0123", k=n * 7 % 200)) for n in range(40)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / FILE


def filled(path: Path, entries: dict[str, str] = ENTRIES) -> Cache:
    cache = Cache(path)
    for key, text in entries.items():
        cache.files.put(key, text)
    cache.save()
    return cache


def found(cache: Cache) -> dict[str, str]:
    return {key: text for key in ENTRIES if (text := cache.files.get(key)) is not None}


def test_every_entry_is_found_in_its_table_and_in_no_other(path: Path):
    assert found(Cache(path)) == {}
    assert found(filled(path)) == ENTRIES
    assert found(Cache(path)) == ENTRIES
    assert Cache(path).graphs.get(digest(1)) is None
    assert Cache(path).files.get(digest(-1)) is None


def test_a_command_that_saves_a_part_keeps_the_rest(path: Path):
    filled(path)
    one = Cache(path)
    one.files.put(digest("more"), "more")
    one.fingerprints.put(digest(1), "other")
    one.save()
    assert found(Cache(path)) == ENTRIES
    assert Cache(path).files.get(digest("more")) == "more"
    assert Cache(path).fingerprints.get(digest(1)) == "other"


def test_unused_rows_are_deleted_when_they_outnumber_the_used_ones(path: Path):
    filled(path)
    one = Cache(path)
    used = list(ENTRIES)[:20]
    assert [one.files.get(key) for key in used] == [ENTRIES[key] for key in used]
    one.save(one.files)
    assert found(Cache(path)) == ENTRIES
    one = Cache(path)
    assert [one.files.get(key) for key in used[:19]] == [ENTRIES[key] for key in used[:19]]
    one.graphs.put("graph", "one")
    one.save(one.files)
    assert list(found(Cache(path))) == used[:19]
    assert Cache(path).graphs.get("graph") == "one"


def test_nothing_is_created_for_a_command_that_only_reads(tmp_path: Path):
    filled(tmp_path / "target" / FILE)
    assert found(Cache(tmp_path / "target" / FILE)) == {}
    assert list(tmp_path.iterdir()) == []


def test_without_a_path_nothing_is_cached():
    cache = Cache()
    cache.files.put("a", "b")
    cache.save(cache.files)
    assert cache.files.get("a") is None


def test_another_version_of_the_code_finds_nothing(path: Path, monkeypatch: pytest.MonkeyPatch):
    filled(path)
    monkeypatch.setattr(store, "code_version", lambda: "another")
    assert found(Cache(path)) == {}
    assert found(filled(path)) == ENTRIES
    assert found(Cache(path)) == ENTRIES
    monkeypatch.undo()
    assert found(Cache(path)) == {}


@pytest.mark.parametrize("seed", range(60))
def test_a_damaged_file_gives_nothing_wrong_and_is_replaced(path: Path, seed: int):
    filled(path)
    rng = random.Random(seed)
    content = bytearray(path.read_bytes())
    for _ in range(rng.choice((1, 1, 20, 2000))):
        # The first page has the head and the tables, the last ones have entries.
        content[rng.randrange(rng.choice((100, 4096, len(content))))] ^= 1 << rng.randrange(8)
    path.write_bytes(content[: rng.randrange(len(content)) if rng.random() < 0.3 else None])
    assert found(Cache(path)).items() <= ENTRIES.items()
    for _ in range(2):
        cache = Cache(path)
        for key in ENTRIES.keys() - found(cache):
            cache.files.put(key, ENTRIES[key])
        cache.save(cache.files)
    assert found(Cache(path)) == ENTRIES


@pytest.mark.parametrize("content", [b"", b"\xff\xfe" * 5000, b"SQLite format 3\0"])
def test_a_foreign_file_is_replaced(path: Path, content: bytes):
    path.write_bytes(content)
    cache = Cache(path)
    assert found(cache) == {}
    cache.files.put(digest(1), ENTRIES[digest(1)])
    cache.save()
    assert list(found(Cache(path))) == [digest(1)]


def test_a_row_that_another_program_wrote_is_not_found(path: Path):
    filled(path)
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("UPDATE files SET content = (SELECT content FROM files WHERE key = ?)", (digest(2),))
        other.execute("UPDATE files SET content = 'text' WHERE key = ?", (digest(0),))
        other.execute("UPDATE files SET content = NULL WHERE key = ?", (digest(1),))
    assert list(found(Cache(path))) == [digest(2)]


def test_a_file_that_cannot_be_read_or_written_is_no_cache(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(store, "_PATIENCE", 0.01)
    (tmp_path / "folder" / FILE).mkdir(parents=True)
    assert found(filled(tmp_path / "folder" / FILE)) == ENTRIES, "what was not saved is still known"
    assert found(Cache(tmp_path / "folder" / FILE)) == {}
    filled(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert found(Cache(path)) == {}
        filled(path, {"a": "b"})
    assert found(Cache(path)) == ENTRIES
    assert Cache(path).files.get("a") is None


def test_two_commands_at_once_both_save(path: Path):
    filled(path)
    one, two = Cache(path), Cache(path)
    assert found(one) == found(two) == ENTRIES
    one.files.put("one", "1")
    two.files.put("two", "2")
    one.save()
    two.save()
    assert (one.files.get("two"), two.files.get("one")) == ("2", "1")
