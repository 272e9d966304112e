"""The engine starts while strategies are chosen, and only if the plan surely needs it."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from typing import cast

import pytest

from mvbuild.api.early_start import planned_beside
from mvbuild.incremental.table_changes import Changes
from mvbuild.plan.model import OnWork, Plan
from mvbuild.ports.engine import Engine
from unit.worlds import Shop, append, shop


class OneEngine:
    """Notes whether it was closed."""

    def __init__(self) -> None:
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def made(tmp_path: Path) -> Shop:
    found = shop(tmp_path)
    found.changes = Changes(found.catalog.changes)
    return found


def expected(of: Shop, *include: str, **options: object) -> list[dict[str, str]]:
    """The steps of each call."""
    calls: list[dict[str, str]] = []
    of.plan(*include, on_work=lambda plan: calls.append({s.node.rpartition(".")[2]: s.action for s in plan.steps}), **options)
    return calls


def test_it_is_told_what_is_expected(made: Shop) -> None:
    """A plain view is known to be needed at once, but the first query whose strategy was chosen is what counts."""
    assert expected(made) == [{"orders_clean": "create", "daily": "refresh", "monthly": "refresh"}]
    assert made.run().ok
    assert expected(made) == []
    append(made.catalog, "raw.orders")
    # The rows of a table in memory are not known, so that it might be any change.
    assert expected(made) == [{"orders_clean": "reuse", "daily": "refresh", "monthly": "refresh"}]
    assert expected(made, "orders_clean") == []


def test_what_is_requested_is_not_compared(made: Shop) -> None:
    assert made.run().ok
    assert expected(made, full_refresh=True) == []


def test_seeds_that_are_loaded_come_first(made: Shop) -> None:
    """How much Spark reads is not known before."""
    made.write({"seeds/zones.csv": "id\n1\n", "models/zoned.sql": "SELECT id FROM {{ ref('zones') }}\n"})
    assert made.run("+daily").ok
    append(made.catalog, "raw.orders")
    (found,) = expected(made)
    assert found["zones"] == "load"
    assert expected(made, "daily") == [{"daily": "refresh"}]


def test_the_engine_starts_before_the_plan_is_made(made: Shop) -> None:
    planned, engine, started = made.plan(), cast("Engine", OneEngine()), Event()

    def make(*, on_work: OnWork) -> Plan:
        on_work(planned)
        assert started.wait(60), "the engine does not start before the plan is made"
        return planned

    def start(plan: Plan) -> Engine:
        assert plan is planned
        started.set()
        return engine

    assert planned_beside(make, start) == (planned, engine)


def test_none_is_started_if_there_is_no_work(made: Shop) -> None:
    planned = made.plan()

    def start(_: Plan) -> Engine:
        raise AssertionError("the engine was started")

    assert planned_beside(lambda *, on_work: planned, start) == (planned, None)


def test_an_engine_without_a_plan_is_closed(made: Shop) -> None:
    planned, engine = made.plan(), OneEngine()

    def make(*, on_work: OnWork) -> Plan:
        on_work(planned)
        raise ValueError("no plan")

    with pytest.raises(ValueError, match="no plan"):
        planned_beside(make, lambda _: cast("Engine", engine))
    assert engine.is_closed


def test_an_engine_that_cannot_start(made: Shop) -> None:
    planned = made.plan()

    def make(*, on_work: OnWork) -> Plan:
        on_work(planned)
        return planned

    def start(_: Plan) -> Engine:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        planned_beside(make, start)
