"""MV + RunSession -> StrategyChoice, and how it is reported: in messages, in run_results.json and as errors of a strict policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mvbuild.diagnostics import ProjectError
from mvbuild.freshness.observed import Leaf, Pin, World
from mvbuild.freshness.rules import judge_one
from mvbuild.graph.model import ModelNode
from mvbuild.incremental.choose import StrategyChoice, choose
from mvbuild.incremental.strategies import FULL
from mvbuild.plan.question import question
from mvbuild.plan.strictness import strict_error
from mvbuild.ports.states import Snapshot
from mvbuild.refresh.result import count_rows
from mvbuild.refresh.session import RunSession
from mvbuild.storage.history import EXPECTED_BYTES, EXPECTED_ROWS, EXPECTED_SECONDS, FULL_BYTES, REASON, bytes_written, rows_removed

if TYPE_CHECKING:
    from mvbuild.refresh.write_outcome import NotIncremental, WriteOutcome


def chosen(session: RunSession, world: World, node: ModelNode, pins: Mapping[Leaf, Pin], *, forced: bool) -> StrategyChoice:
    """Raises ProjectError if the policy forbids the remaining strategies."""
    if session.changes is None:
        return StrategyChoice(strategy=FULL, code="forced", message="")
    reasons = judge_one(world, node, {}).reasons
    choice = choose(question(world, node, reasons, pins, session.changes, forced=forced))
    refused = strict_error(node, choice)
    if refused:
        raise ProjectError([refused])
    return choice


def fallen_back(node: ModelNode, choice: StrategyChoice, why: NotIncremental) -> StrategyChoice:
    """A full refresh instead of a strategy that could not be carried out."""
    full = replace(choice, strategy=FULL, code=why.code, message=why.message, expected=choice.full, rewrite=None, difference=None)
    refused = strict_error(node, full)
    if refused:
        raise ProjectError([refused])
    return full


def summary_of_choice(choice: StrategyChoice) -> dict[str, str]:
    """What the summary of the refresh's snapshot records about the choice, besides the strategy."""
    numbers = {
        EXPECTED_BYTES: choice.expected.bytes if choice.expected else None,
        EXPECTED_ROWS: choice.expected.rows if choice.expected else None,
        FULL_BYTES: choice.full.bytes if choice.full else None,
        EXPECTED_SECONDS: f"{choice.expected.uncorrected:.3f}" if choice.expected else None,
    }
    told = {key: str(number) for key, number in numbers.items() if number is not None}
    return {**told, REASON: choice.code} if choice.code else told


def progress_text(node: ModelNode, choice: StrategyChoice, done: WriteOutcome | None, rows: int | None) -> str:
    """For the line of progress: `merge: +3 -1, 1,888 rows` or `full: not-cheaper, 1,888 rows`."""
    counted = count_rows(rows) if rows is not None else ""
    if done is not None:
        how = f"{choice.strategy}: +{'?' if done.added is None else f'{done.added:,}'} -{done.removed:,}"
    elif choice.code in _EXPECTED or node.model.config.refresh_policy == "full":
        how = ""
    else:
        how = f"{choice.strategy}: {choice.code}"
    return ", ".join(part for part in (how, counted) if part)


_EXPECTED = ("never-refreshed", "forced")
"""Why a refresh is full if there is no other reason."""


def result_details(
    choice: StrategyChoice, done: WriteOutcome | None, made: Sequence[Snapshot] = (), before: Snapshot | None = None
) -> dict[str, Any]:
    """For run_results.json: the strategy and its reason, what was expected of it, and what it did. `made`: the snapshots of the refresh,
    last one first, and `before` the one from which it started."""
    full_removed = rows_removed(made, before) if made else None
    return {
        "strategy": choice.strategy,
        "reason": choice.code or None,
        "reason_message": choice.message or None,
        "expected_bytes": choice.expected.bytes if choice.expected else None,
        "expected_rows": choice.expected.rows if choice.expected else None,
        "expected_seconds": round(choice.expected.seconds, 3) if choice.expected else None,
        "full_bytes": choice.full.bytes if choice.full else None,
        "full_rows": choice.full.rows if choice.full else None,
        "full_seconds": round(choice.full.seconds, 3) if choice.full else None,
        "changed_rows": sum(change.rows for change in choice.changes.values()) if choice.changes else None,
        "bytes_written": bytes_written(made),
        "rows_added": done.added if done else _added(made),
        "rows_removed": done.removed if done else full_removed,
    }


def _added(made: Sequence[Snapshot]) -> int | None:
    value = made[0].summary.get("added-records", "") if made else ""
    return int(value) if value.isdigit() else None
