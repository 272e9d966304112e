"""If only a full refresh is right: `auto` reports nothing, `incremental` warns, `incremental_strict` refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvbuild.incremental.table_changes import Changes
from mvbuild.plan.model import Plan, Step
from mvbuild.project.settings import RefreshPolicy
from unit.worlds import SCHEMA, Shop, append, base_table

TOTAL = "SELECT id FROM raw.orders\nORDER BY id LIMIT 3 OFFSET 1\n"
"""OFFSET can only be refreshed in full."""
CLEAN = "SELECT id FROM raw.orders WHERE id > 0\n"


def made(root: Path, policy: RefreshPolicy, sql: str = TOTAL) -> Shop:
    of = Shop(root).write({"mvbuild.yml": f"name: shop\nmodels: {{+refresh_policy: {policy}}}\n", "models/total.sql": sql})
    of.changes = Changes(of.catalog.changes)
    of.engine.schema = SCHEMA
    base_table(of.catalog, "raw.orders")
    return of


def built(root: Path, policy: RefreshPolicy, sql: str = TOTAL) -> Shop:
    of = made(root, policy, sql)
    assert of.run().ok
    append(of.catalog, "raw.orders", 5)
    return of


def step(planned: Plan) -> Step:
    (found,) = planned.steps
    return found


@pytest.mark.parametrize("policy", ["auto", "full"])
def test_nothing_is_said(policy: RefreshPolicy, tmp_path: Path) -> None:
    planned = built(tmp_path, policy).plan()
    assert (step(planned).action, step(planned).strategy, planned.warnings) == ("refresh", "full", ())


def test_incremental_warns(tmp_path: Path) -> None:
    of = built(tmp_path, "incremental")
    planned = of.plan()
    assert (step(planned).action, step(planned).strategy) == ("refresh", "full")
    (warned,) = planned.warnings
    assert (warned.code, warned.severity) == ("not-incremental", "warning")
    assert warned.message == "'total' cannot be refreshed incrementally (limit): LIMIT depends on every row"
    assert str(warned.span) == "models/total.sql:2:19"
    assert warned.help == "Select the columns you sort by, and sort by their names, or put the LIMIT into the query that reads the MV."
    assert of.statuses() == {"total": "success"}


def test_incremental_strict_refuses(tmp_path: Path) -> None:
    of = built(tmp_path, "incremental_strict")
    found = step(of.plan())
    assert found.action == "blocked"
    assert found.diagnostic is not None
    assert (found.diagnostic.code, found.diagnostic.severity) == ("not-incremental", "error")
    before = of.table("main.total__storage").current_snapshot_id
    assert of.statuses() == {"total": "error"}
    assert of.table("main.total__storage").current_snapshot_id == before


def test_strict_allows_the_first_refresh(tmp_path: Path) -> None:
    of = made(tmp_path, "incremental_strict")
    assert of.plan().warnings == ()
    assert of.statuses() == {"total": "success"}


def test_strict_allows_a_new_definition(tmp_path: Path) -> None:
    of = built(tmp_path, "incremental_strict").write({"models/total.sql": "SELECT id FROM raw.orders\nORDER BY id LIMIT 4\n"})
    choice = step(of.plan()).choice
    assert choice is not None
    assert (choice.strategy, choice.code) == ("full", "definition-changed")
    assert of.statuses() == {"total": "success"}


def test_strict_allows_a_full_refresh_that_is_asked_for(tmp_path: Path) -> None:
    assert built(tmp_path, "incremental_strict").statuses(full_refresh=True) == {"total": "success"}


def test_strict_refuses_what_was_planned_incrementally_and_fails(tmp_path: Path) -> None:
    """Spark does not prove the rewrite: the plans of this engine are the SQL."""
    of = built(tmp_path, "incremental_strict", CLEAN)
    assert step(of.plan()).strategy == "append"
    (result,) = of.run().results
    assert result.status == "error"
    assert [d.code for d in result.diagnostics] == ["not-incremental"]
    assert "round-trip-unproven" in result.message
    assert of.table("main.total__storage").branches == {"main"}


@pytest.mark.parametrize("policy", ["incremental", "incremental_strict"])
def test_cost_does_not_matter(policy: RefreshPolicy, tmp_path: Path) -> None:
    """Tables of this catalog have no sizes: nothing is cheaper than a full refresh."""
    assert step(built(tmp_path, policy, CLEAN).plan()).strategy == "append"


def test_cost_matters_under_auto(tmp_path: Path) -> None:
    choice = step(built(tmp_path, "auto", CLEAN).plan()).choice
    assert choice is not None
    assert (choice.strategy, choice.code) == ("full", "not-cheaper")
