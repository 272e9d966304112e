"""MV + RunSession -> Choice, and what is told of it: in messages, in run_results.json and as errors of a strict policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mvbuild.diagnostics import ProjectError
from mvbuild.freshness.observed import Leaf, Pin, World
from mvbuild.freshness.rules import judge_one
from mvbuild.graph.model import ModelNode
from mvbuild.incremental.choose import Choice, choose
from mvbuild.incremental.strategies import FULL
from mvbuild.plan.question import question
from mvbuild.plan.strictness import strict_error
from mvbuild.refresh.result import count_rows
from mvbuild.refresh.session import RunSession

if TYPE_CHECKING:
    from mvbuild.refresh.incremental import NotIncremental, Written


def chosen(session: RunSession, world: World, node: ModelNode, pins: Mapping[Leaf, Pin], *, forced: bool) -> Choice:
    """ProjectError where the policy forbids what is left."""
    assert session.changes is not None
    reasons = judge_one(world, node, {}).reasons
    choice = choose(question(world, node, reasons, pins, session.changes, forced=forced))
    refused = strict_error(node, choice)
    if refused:
        raise ProjectError([refused])
    return choice


def fallen_back(node: ModelNode, choice: Choice, why: NotIncremental) -> Choice:
    """A full refresh in the place of a strategy that could not be carried out."""
    full = replace(choice, strategy=FULL, code=why.code, message=why.message, expected=choice.full, rewrite=None, difference=None)
    refused = strict_error(node, full)
    if refused:
        raise ProjectError([refused])
    return full


def told(choice: Choice, done: Written | None, rows: int | None) -> str:
    """For the line of progress."""
    counted = count_rows(rows) if rows is not None else ""
    if done is None:
        return counted
    changed = f"{choice.strategy}: +{'?' if done.added is None else done.added} -{done.removed}"
    return f"{changed}, {counted}" if counted else changed


def facts(choice: Choice, done: Written | None) -> dict[str, Any]:
    """For run_results.json: the strategy, why, and what was expected of it."""
    return {
        "strategy": choice.strategy,
        "reason": choice.code or None,
        "reason_message": choice.message or None,
        "expected_bytes": choice.expected.bytes if choice.expected else None,
        "expected_rows": choice.expected.rows if choice.expected else None,
        "full_bytes": choice.full.bytes if choice.full else None,
        "rows_added": done.added if done else None,
        "rows_removed": done.removed if done else None,
    }
