"""Random queries with UNPIVOT: every strategy is right, and wrong rules are detected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from mvbuild.incremental.algebra import Relation, Unpivot
from mvbuild.incremental.delta import Delta, Deltas
from unit.incremental.on_duckdb import connected
from unit.incremental.oracle import ACCEPTED, seen, shrunk
from unit.incremental.queries import SHAPED, generated

pytestmark = pytest.mark.proof

Patch = pytest.MonkeyPatch
SEEDS = range(SHAPED, SHAPED + 60)
LEAST = 40
"""How many of the cases affected-keys must accept."""


def test_every_strategy_is_right_and_taken_often() -> None:
    connection, accepted = connected(), 0
    for seed in SEEDS:
        found = seen(generated(seed), connection)
        assert not found.wrong, "\n\n".join(str(shrunk(one, connection)) for one in found.wrong[:3])
        accepted += found.codes.get("affected-keys") == ACCEPTED
    assert accepted >= LEAST


# --- wrong rules --------------------------------------------------------------------------------------------------------------------


def _otherwise(patch: Patch, change: Callable[[Any, Deltas, Unpivot], Delta]) -> None:
    true: Any = Deltas.of
    patch.setattr(
        Deltas, "of", lambda self, relation: change(true, self, relation) if isinstance(relation, Unpivot) else true(self, relation)
    )


def rows_without_a_value_come_too(patch: Patch) -> None:
    def change(true: Any, self: Deltas, relation: Unpivot) -> Delta:
        return true(self, replace(relation, outer=True))  # type: ignore[no-any-return]

    _otherwise(patch, change)


def only_the_first_column_has_a_row(patch: Patch) -> None:
    def change(true: Any, self: Deltas, relation: Unpivot) -> Delta:
        made = true(self, relation)
        return Delta(tuple(map(_first, made.plus)), tuple(map(_first, made.minus)))

    _otherwise(patch, change)


def _first(part: Relation) -> Relation:
    assert isinstance(part, Unpivot)
    generator = part.generator.copy()
    generator.set("expressions", generator.expressions[:1])
    return replace(part, generator=generator, labels=part.labels[:1])


@pytest.mark.parametrize("fault", [rows_without_a_value_come_too, only_the_first_column_has_a_row], ids=lambda fault: fault.__name__)
def test_it_is_caught(fault: Callable[[Patch], None], monkeypatch: Patch) -> None:
    connection = connected()
    fault(monkeypatch)
    assert any(seen(generated(seed), connection).wrong for seed in SEEDS)
