"""Entries in a file with an index: each is found, and nothing is found that was not written."""

from __future__ import annotations

import random
from hashlib import blake2b
from pathlib import Path

import pytest

from mvbuild.cache.file import CacheFile, write_cache_file

VERSION = "v" * 32


def key(number: int) -> str:
    return blake2b(str(number).encode(), digest_size=16).hexdigest()


def entries(count: int) -> dict[str, str]:
    rng = random.Random(count)
    return {key(n): "".join(rng.choices("[]{} \n\u00e9\u4e2d0123", k=rng.randrange(200))) for n in range(count)}


@pytest.mark.parametrize("count", [0, 1, 2, 3, 1000])
def test_each_entry_is_found_and_no_other(tmp_path: Path, count: int):
    write_cache_file(tmp_path / "kept", VERSION, entries(count))
    found = CacheFile(tmp_path / "kept", VERSION)
    assert len(found) == count
    assert {key(n): found.get(key(n)) for n in range(count)} == entries(count)
    assert dict(found.items()) == entries(count)
    assert [found.get(key(n)) for n in range(count, count + 100)] == [None] * 100
    assert found.get("0" * 32) is None
    assert found.get("f" * 32) is None


def test_another_version_is_none(tmp_path: Path):
    write_cache_file(tmp_path / "kept", VERSION, entries(3))
    with pytest.raises(ValueError, match="another version"):
        CacheFile(tmp_path / "kept", "w" * 32)


def test_any_byte_that_changed_is_noticed(tmp_path: Path):
    """In the head and the index nothing is found, in a text that one is not."""
    written = entries(5)
    write_cache_file(tmp_path / "kept", VERSION, written)
    content = (tmp_path / "kept").read_bytes()
    for at in range(len(content)):
        (tmp_path / "kept").write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        try:
            found = CacheFile(tmp_path / "kept", VERSION)
        except ValueError:
            continue
        assert [found.get(one) for one in written].count(None) == 1
        assert all(found.get(one) in (None, text) for one, text in written.items())


def test_a_part_of_a_file_is_none(tmp_path: Path):
    write_cache_file(tmp_path / "kept", VERSION, entries(5))
    content = (tmp_path / "kept").read_bytes()
    for length in range(len(content)):
        (tmp_path / "kept").write_bytes(content[:length])
        with pytest.raises(ValueError, match="an incomplete file"):
            CacheFile(tmp_path / "kept", VERSION)


def test_a_file_that_was_replaced_stays_as_it_was_opened(tmp_path: Path):
    write_cache_file(tmp_path / "kept", VERSION, entries(50))
    found = CacheFile(tmp_path / "kept", VERSION)
    write_cache_file(tmp_path / "new", VERSION, entries(3))
    (tmp_path / "new").replace(tmp_path / "kept")
    assert dict(found.items()) == entries(50)
