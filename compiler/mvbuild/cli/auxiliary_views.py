"""The auxiliary views of a plan, as text and as JSON: their queries, sizes and strategies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mvbuild.incremental.operators import Operator, outline
from mvbuild.serve.words import size

if TYPE_CHECKING:
    from mvbuild.incremental.choice import AuxiliaryPlan, PlannedView, StrategyChoice


def views_text(choice: StrategyChoice | None) -> list[str]:
    """One line for each: `auxiliary view lake.mart.daily__auxiliary_1: merge, 1,234 rows (12 kB)`."""
    plan = choice.auxiliary if choice else None
    return [f"auxiliary view {one.name}: {_how(one)}" for one in plan.views] if plan else []


def views_trees(choice: StrategyChoice | None) -> Iterator[str]:
    """Each auxiliary view with its query as a tree, and then the query over them."""
    plan = choice.auxiliary if choice else None
    if plan is None:
        return
    names = _tables(plan)
    for one in plan.views:
        yield f"{one.name}: {_how(one)}"
        yield from _lines(outline(one.cut.shape, names))
    yield "the query over them"
    yield from _lines(outline(plan.division.shape, names))


def views_object(choice: StrategyChoice | None) -> list[dict[str, Any]]:
    """As JSON: [{relation, strategy, reason, rows, bytes, query}]."""
    plan = choice.auxiliary if choice else None
    if plan is None:
        return []
    names = _tables(plan)
    return [
        {
            "relation": str(one.name),
            "strategy": one.choice.strategy or None,
            "reason": one.choice.code or None,
            "rows": one.rows,
            "bytes": one.bytes,
            "query": [{"depth": line.depth, "operator": line.text} for line in outline(one.cut.shape, names)],
        }
        for one in plan.views
    ]


def _how(one: PlannedView) -> str:
    what = one.choice.strategy or one.choice.message
    why = f" ({one.choice.code}: {one.choice.message})" if one.choice.code else ""
    held = f", {one.rows:,} row{'s' * (one.rows != 1)} ({size(one.bytes)})" if one.rows is not None and one.bytes is not None else ""
    return f"{what}{why}{held}"


def _tables(plan: AuxiliaryPlan) -> list[str]:
    return [*(str(one.pin.table.of_view or one.pin.table.identifier) for one in plan.given.inputs), *(str(v.name) for v in plan.views)]


def _lines(tree: Sequence[Operator]) -> Iterator[str]:
    return (f"    {'  ' * one.depth}{one.text}" for one in tree)
