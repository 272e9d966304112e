"""The range of a column in files, by their bounds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mvbuild.adapters.iceberg.value_ranges import UNREADABLE, range_in


def file(low: bytes, high: bytes) -> Any:
    return SimpleNamespace(null_value_counts={1: 0}, record_count=2, lower_bounds={1: low}, upper_bounds={1: high})


def test_the_widest_bounds_of_all_files() -> None:
    found = range_in([file(b"b", b"x"), file(b"c", b"z")], 1, "string")
    assert (found.low, found.high, found.has_null) == ("b", "z", False)


@pytest.mark.parametrize(("low", "high"), [(b"\xc3(", b"\xff"), ("\ufffd(".encode(), "\ufffd".encode()), (b"a", "\ufffd".encode())])
def test_bytes_that_are_not_valid_text_have_no_range(low: bytes, high: bytes) -> None:
    """Iceberg stores U+FFFD in their place, which has another order than they have."""
    with pytest.raises(UNREADABLE):
        range_in([file(b"a", b"b"), file(low, high)], 1, "string")
