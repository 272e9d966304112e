"""Spark is asked once how it reads a query: full refreshes keep the answer, until the query or the session is another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvbuild.incremental.table_changes import Changes
from unit.worlds import Shop, append, base_table

PLAN = "== Optimized Logical Plan ==\nRelationV2[id#1] orders\n\n== Physical Plan ==\nBatchScan orders[id#1]\n"


@pytest.fixture
def of(tmp_path: Path) -> Shop:
    """An MV that was refreshed once."""
    made = Shop(tmp_path).write({"mvbuild.yml": "name: shop\n", "models/large.sql": "SELECT id FROM raw.orders WHERE id > 1\n"})
    base_table(made.catalog, "raw.orders")
    made.changes = Changes(made.catalog.changes)
    made.engine.plans = {"": PLAN}
    assert made.run().ok
    return made


def plans_of_a_full_refresh(of: Shop, monkeypatch: pytest.MonkeyPatch) -> int:
    asked: list[str] = []
    explain = of.engine.explain
    with monkeypatch.context() as patch:
        patch.setattr(of.engine, "explain", lambda sql, **_: asked.append(sql) or explain(sql))
        append(of.catalog, "raw.orders", 3)
        assert of.run(full_refresh=True).ok
    return len(asked)


def test_the_same_query_again(of: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    proven = of.table("main.large__storage").properties["mvbuild.proven-query"]
    assert plans_of_a_full_refresh(of, monkeypatch) == 0
    assert of.table("main.large__storage").properties["mvbuild.proven-query"] == proven


def test_another_query(of: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    of.write({"models/large.sql": "SELECT id FROM raw.orders WHERE id > 2\n"})
    assert plans_of_a_full_refresh(of, monkeypatch) == 2


def test_another_session(of: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    of.engine.session = {"spark.sql.session.timeZone": "Europe/Berlin"}
    assert plans_of_a_full_refresh(of, monkeypatch) == 2
