"""An observation without names that no longer exist, whether its states were read or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from mvbuild.freshness.lazy_states import LazyStates
from mvbuild.freshness.observed import Observed
from mvbuild.names import TableIdentifier

A, B, C = (TableIdentifier("lake", ("main",), name) for name in "abc")
STATE: Any = object()
NEWER: Any = object()


def lazy(*known: TableIdentifier) -> LazyStates:
    return LazyStates(dict.fromkeys(known, STATE), frozenset({A, B} - set(known)), lambda: {A: STATE, B: STATE})


@pytest.mark.parametrize("states", [{A: STATE, B: STATE}, lazy(), lazy(A), lazy(A, B)], ids=["read", "unread", "one read", "all read"])
def test_they_are_left_out(states: Mapping[TableIdentifier, Any]) -> None:
    found = Observed(states=states, at_ms=0).updated({C: NEWER}, gone=[A]).states
    assert dict(found) == {B: STATE, C: NEWER}
    assert found.get(A) is None
    assert A not in found
    assert dict(Observed(states=found, at_ms=0).updated({A: NEWER}).states) == {A: NEWER, B: STATE, C: NEWER}, "made again"
