"""Random queries that join VALUES, and that take the newest row of each key below joins: every strategy is right, and so are auxiliary views."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mvbuild.incremental import constant_rows
from mvbuild.incremental.algebra import Union
from mvbuild.incremental.delta import Delta, Deltas
from mvbuild.incremental.reasons import Refused
from unit.incremental.on_cuts import through_cuts
from unit.incremental.on_duckdb import connected
from unit.incremental.oracle import ACCEPTED, seen, shrunk
from unit.incremental.queries import KINDS, NEWEST, PROOF, VALUED, generated, kind_of_seed
from unit.incremental.realistic import Realistic

pytestmark = pytest.mark.proof

Patch = pytest.MonkeyPatch


@pytest.mark.parametrize(("first", "least"), [(VALUED, 30), (NEWEST, 12)])
def test_every_strategy_is_right_and_taken_often(first: int, least: int) -> None:
    connection, accepted = connected(), 0
    for seed in range(first, first + 40):
        found = seen(generated(seed), connection)
        assert not found.wrong, "\n\n".join(str(shrunk(one, connection)) for one in found.wrong[:3])
        accepted += found.codes.get("affected-keys") == ACCEPTED
    assert accepted >= least


def test_so_are_refreshes_from_auxiliary_views() -> None:
    connection, cuts = connected(), 0
    for seed in range(NEWEST, NEWEST + 30):
        found = through_cuts(generated(seed), connection, seed)
        assert not found.wrong, str(found.wrong[0])
        cuts += found.cuts
    assert cuts >= 40


def test_proofs_of_many_cases_have_every_kind() -> None:
    """A new kind must not take the place of all others."""
    kinds = [kind_of_seed(PROOF * 7 + at) for at in range(240)]
    assert set(kinds) == set(KINDS)
    assert max(kinds.count(kind) for kind in kinds) < 100


@pytest.mark.parametrize(
    "values",
    ["(1), (2, 3)", "(1), ('a')", "(NULL)", "(customer_id)", "(rand())", "(1, 2)", "(year(current_date()))", "(1), (length('a'))"],
)
def test_other_values_are_refused(values: str) -> None:
    with pytest.raises(Refused) as caught:
        _ = Realistic("refused", f"SELECT v.a FROM {{customers}} AS c JOIN VALUES {values} AS v(a) ON v.a = c.customer_id").shape
    assert caught.value.code == "unsupported-operator"


def constants_come_again_with_each_change(patch: Patch) -> None:
    true = Deltas.of

    def of(self: Deltas, relation: object) -> Delta:
        is_constant = isinstance(relation, Union) and not self.changes(relation)
        return Delta(plus=(relation,)) if is_constant else true(self, relation)  # type: ignore[arg-type]

    patch.setattr(Deltas, "of", of)


def equal_rows_are_one(patch: Patch) -> None:
    patch.setattr(constant_rows, "union", lambda parts: parts[0])


@pytest.mark.parametrize("fault", [constants_come_again_with_each_change, equal_rows_are_one], ids=lambda fault: fault.__name__)
def test_wrong_rules_are_caught(fault: Callable[[Patch], None], monkeypatch: Patch) -> None:
    connection = connected()
    fault(monkeypatch)
    assert any(seen(generated(seed), connection).wrong for seed in range(VALUED, VALUED + 40))
