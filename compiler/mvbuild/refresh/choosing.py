"""Plan + Pinned -> StrategyChoice: the planned strategy of a refresh, or a full refresh if Spark or its settings rule the strategy out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mvbuild.diagnostics import ProjectError
from mvbuild.freshness.rules import judge_one
from mvbuild.graph.model import ModelNode
from mvbuild.incremental.choice import StrategyChoice
from mvbuild.incremental.chosen_strategy import strategy_for
from mvbuild.incremental.strategies import FULL, refused_by_settings
from mvbuild.plan.model import Plan, Step
from mvbuild.plan.question import has_moved, question
from mvbuild.plan.strictness import strict_error
from mvbuild.ports.commits import TableLayout
from mvbuild.refresh.pinned import Pinned
from mvbuild.refresh.session import RunSession
from mvbuild.refresh.write_outcome import NotIncremental
from mvbuild.storage.history import EXPECTED_BYTES, EXPECTED_ROWS, EXPECTED_SECONDS, FULL_BYTES, REASON
from mvbuild.storage.layout import same_layout
from mvbuild.storage.sessions import settings_mark, settings_of


def chosen(session: RunSession, pinned: Pinned, plan: Plan, step: Step) -> StrategyChoice:
    """The strategy of the plan. It is chosen here if it depends on what this run wrote first, or if another run changed what it depends on.
    Raises ProjectError if the policy forbids the remaining strategies."""
    if session.changes is None:
        return StrategyChoice(strategy=FULL, code="forced", message="")
    world, node = pinned.world, pinned.node
    if step.choice is not None and not has_moved(plan.world, world, node):
        return step.choice
    reasons = judge_one(world, node, {}).reasons
    asked = question(world, node, reasons, pinned.pins, session.changes, forced=step.is_forced)
    choice = strategy_for(asked)
    refused = strict_error(node, choice)
    if refused:
        raise ProjectError([refused])
    return choice


def possible(pinned: Pinned, choice: StrategyChoice, layout: TableLayout, conf: Mapping[str, str]) -> StrategyChoice:
    """In full if only Spark's analysis of the query or its settings show that it must be."""
    node, storage = pinned.node, pinned.storage
    if choice.auxiliary is not None and dict(choice.auxiliary.given.clock) != dict(pinned.clock):
        # In the zone of this session, it is another day than in the plan.
        choice = replace(choice, auxiliary=None)
    if not choice.is_incremental or storage is None:
        return choice
    if not same_layout(storage, layout):
        # Another writer may have created it, with another order of columns.
        return fallen_back(node, choice, NotIncremental("layout-changed", "the columns of the storage differ from those of the query"))
    before, settings = settings_of(storage), settings_mark(conf)
    reads_as_planned = choice.inputs is not None and dict(choice.inputs.clock) == dict(pinned.clock)
    if before != settings or not reads_as_planned:
        # Rows to remove would be searched with the values that these settings give, and not with the stored ones.
        what = "the settings of the session, or its version of Spark, differ from those of the last refresh"
        if _zone(before) != _zone(settings):
            what += f" ({_zone(before) or 'unknown'} then, {_zone(settings)} now)"
        return fallen_back(node, choice, NotIncremental("session-changed", what))
    refused = refused_by_settings(choice.strategy, conf, (field["type"] for field in layout.schema["fields"]))
    return fallen_back(node, choice, NotIncremental(refused.code, refused.message)) if refused else choice


def _zone(settings: str) -> str:
    return settings.partition(" ")[0]


def fallen_back(node: ModelNode, choice: StrategyChoice, why: NotIncremental) -> StrategyChoice:
    """A full refresh instead of a strategy that could not be carried out. One that is full anyway, for example because
    it is the first one, keeps its reason without auxiliary views."""
    if choice.strategy == FULL and choice.code != "auxiliary-views-built":
        return replace(choice, auxiliary=None)
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
    counts = {key: str(number) for key, number in numbers.items() if number is not None}
    return {**counts, REASON: choice.code} if choice.code else counts
