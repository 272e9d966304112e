"""World + MV -> Explanation: its query as a tree, what changed below it, and the result of every strategy. Pure, without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Literal

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic
from mvbuild.formats.record import RefreshRecord
from mvbuild.freshness.leaves import node_inputs
from mvbuild.freshness.model import Freshness
from mvbuild.freshness.observed import Leaf, World
from mvbuild.freshness.pins import leaf_table, pin
from mvbuild.graph.model import ModelNode, NodeId, SeedNode
from mvbuild.incremental.auxiliary_views import with_auxiliary_views
from mvbuild.incremental.choice import StrategyChoice
from mvbuild.incremental.choose import Question
from mvbuild.incremental.cost import Cost
from mvbuild.incremental.hypothetical import Kinds, answers, keys_of
from mvbuild.incremental.inputs import Input, Inputs, ReadChange, marked, recorded_at, shape_of_inputs, span_of
from mvbuild.incremental.operators import Operator, outline
from mvbuild.incremental.reasons import CODES, Refused
from mvbuild.incremental.shape import Shape, readable
from mvbuild.incremental.strategies import FULL
from mvbuild.plan.build import build_plan
from mvbuild.plan.model import Plan, Step
from mvbuild.plan.question import question
from mvbuild.ports.catalog import ChangeRefused
from mvbuild.ports.changes import TableChange
from mvbuild.ports.states import TableState
from mvbuild.source import Span
from mvbuild.storage.history import PastRefresh, history
from mvbuild.storage.stored import replaced_since, stored

What = Literal["changed", "not-relevant", "compacted", "same-rows", "nothing", "unknown"]
"""same-rows: there are newer snapshots, which together add and remove nothing · unknown: the change cannot be determined."""
_OTHER_QUERY = ("never-refreshed", "definition-changed", "nondeterministic")
"""Reasons after which the storage may have other columns than the query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableNow:
    """A table that the query reads: at the last refresh, and now."""

    name: str
    what: What
    old: int | None = None
    """None: the last refresh did not read it, or there was none."""
    new: int | None = None
    change: TableChange | None = None
    refused: Refused | None = None
    """Why it is unknown."""
    irrelevant: str = ""
    """Why it is not relevant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of a strategy. `code` is empty if it can be used and no other one is better."""

    strategy: str
    code: str = ""
    message: str = ""
    span: Span | None = None
    is_possible: bool = True
    is_chosen: bool = False
    work: Cost | None = None
    keys: tuple[str, ...] = ()
    """Columns of the storage by which the rows to compute again are found."""

    @property
    def help(self) -> str:
        return CODES[self.code][1] if self.code and not self.is_possible else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Supposed:
    """The result of every strategy if all tables changed."""

    change: Kinds
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """How an MV is refreshed."""

    node: ModelNode
    freshness: Freshness
    step: Step
    tree: tuple[Operator, ...]
    tables: tuple[TableNow, ...]
    verdicts: tuple[Verdict, ...]
    """For the actual changes; empty if there is nothing to refresh."""
    supposed: tuple[Supposed, ...]
    """Of the query over its auxiliary views, if it has any."""
    kept: StrategyChoice | None = None
    """The choice with its auxiliary views; if there is nothing to refresh, one for no change."""
    untold: tuple[str, Span | None] | None = None
    """Why there is no tree: a message, and its place."""
    warnings: tuple[Diagnostic, ...] = ()
    """What a run would report, above all if it cannot follow a policy."""
    last: PastRefresh | None = None
    """The refresh that wrote the current rows."""

    @property
    def choice(self) -> StrategyChoice | None:
        return self.step.choice


def explain(
    world: World, node: ModelNode, read: ReadChange, refused: Mapping[NodeId, tuple[Diagnostic, ...]] = MappingProxyType({})
) -> Explanation:
    """What a refresh of this MV alone would be, and why. `refused`: see `build_plan`."""
    planned = build_plan(world, frozenset({node.id}), changes=read, refused=refused)
    step = planned.steps[0]
    if step.diagnostic and step.diagnostic.code == "missing-table":
        # It cannot be refreshed alone, but perhaps together with what it reads.
        below = {id for id in world.graph.ancestors([node.id]) if isinstance(world.graph.nodes[id], ModelNode | SeedNode)}
        planned = build_plan(world, frozenset({node.id, *below}), changes=read, refused=refused)
        step = next(one for one in planned.steps if one.node == node.id)
    return explain_step(planned, step, read)


def explain_step(planned: Plan, step: Step, read: ReadChange) -> Explanation:
    """The same for an MV of a plan that was made already."""
    world, node = planned.world, planned.world.graph.model(step.node)
    leaves = node_inputs(world.graph, node).leaves
    pins = {leaf: p for leaf in leaves if (p := pin(world.graph, world.observed, leaf))}
    asked = question(world, node, step.reasons, pins, read)
    storage = world.observed.table(node.storage)
    record = stored(storage).record if storage else None
    given, shape, untold = _shape(asked, step, storage)
    tables = tuple(_tables(asked, leaves, record, given, shape))
    names = [_name(world, one.leaf) for one in given.inputs] if given else []
    kept = step.choice or (_if_unchanged(asked, given, shape) if given and shape else None)
    kept = kept if kept is not None and kept.auxiliary is not None else None
    over = kept.auxiliary.division.shape if kept is not None and kept.auxiliary is not None else shape
    return Explanation(
        node=node,
        freshness=planned.freshness[node.id],
        step=step,
        tree=outline(shape, names) if shape else (),
        tables=tables,
        verdicts=tuple(verdicts_of(step.choice)) if step.choice else (),
        supposed=tuple(_supposed(asked, given, over, storage, is_kept=kept is not None)) if given and over else (),
        kept=kept,
        untold=untold,
        warnings=planned.warnings,
        last=next((one for one in history(storage) if one.is_current), None) if storage is not None else None,
    )


def _if_unchanged(asked: Question, given: Inputs, shape: Shape) -> StrategyChoice:
    return with_auxiliary_views(asked, StrategyChoice(strategy=FULL, code="", message="", inputs=given, shape=shape))


def _shape(asked: Question, step: Step, storage: TableState | None) -> tuple[Inputs | None, Shape | None, tuple[str, Span | None] | None]:
    """The query over the current tables, or why it has no tree."""
    graph, node, pins = asked.world.graph, asked.node, asked.pins
    if node.id in graph.undefined:
        wrong = graph.undefined[node.id]
        return None, None, (wrong.message, wrong.span)
    missing = next((leaf for leaf in node_inputs(graph, node).leaves if leaf not in pins), None)
    if missing is not None:
        return None, None, (f"{_name(asked.world, missing)} {_absent(asked.world, missing)}", None)
    given = marked(asked.world, node, lambda leaf: Input(leaf=leaf, pin=pins[leaf], old=pins[leaf].snapshot_id))
    if step.choice is not None and step.choice.shape is not None:
        return given, step.choice.shape, None
    is_same = storage is not None and (step.choice is None or step.choice.code not in _OTHER_QUERY) and step.action != "redefine"
    outputs = [f["name"] for f in storage.schema["fields"]] if storage is not None and is_same else None
    try:
        return given, shape_of_inputs(given, outputs), None
    except Refused as exc:
        return given, None, (exc.message, span_of(given.text, exc))


def _tables(
    asked: Question, leaves: tuple[Leaf, ...], record: RefreshRecord | None, given: Inputs | None, shape: Shape | None
) -> Iterator[TableNow]:
    found = [_table(asked, leaf, record) for leaf in leaves]
    changes = {at: one.change for at, one in enumerate(found) if one.change is not None}
    without = asked.read.irrelevant(shape, given, changes) if shape and given and changes else {}
    for at, one in enumerate(found):
        yield replace(one, what="not-relevant", irrelevant=without[at]) if at in without else one


def _table(asked: Question, leaf: Leaf, record: RefreshRecord | None) -> TableNow:
    now = asked.pins.get(leaf)
    if now is None:
        refused = Refused("never-refreshed", f"it {_absent(asked.world, leaf)}")
        return TableNow(name=_name(asked.world, leaf), what="unknown", refused=refused)
    name = _name(asked.world, leaf)
    if record is None:
        refused = Refused("never-refreshed", "there was no refresh yet")
        return TableNow(name=name, what="unknown", new=now.snapshot_id, refused=refused)
    old = None
    try:
        old = recorded_at(record, now)
        if old == now.snapshot_id:
            return TableNow(name=name, what="nothing", old=old, new=now.snapshot_id)
        change = asked.read(now.table, old, now.snapshot_id)
    except ChangeRefused as exc:
        return TableNow(name=name, what="unknown", old=old, new=now.snapshot_id, refused=Refused(exc.code, str(exc).rstrip(".")))
    except Refused as exc:
        return TableNow(name=name, what="unknown", old=old, new=now.snapshot_id, refused=exc)
    if change.is_empty:
        what: What = "compacted" if replaced_since(now.table, old) else "same-rows"
        return TableNow(name=name, what=what, old=old, new=now.snapshot_id)
    return TableNow(name=name, what="changed", old=old, new=now.snapshot_id, change=change)


def _absent(world: World, leaf: Leaf) -> str:
    return "cannot be read" if world.observed.unreadable(leaf_table(world.graph, leaf)) else "does not exist yet"


def _name(world: World, leaf: Leaf) -> str:
    """For an MV its own name, although its storage is read."""
    return str(world.graph.nodes[leaf.node].identifier)


def verdicts_of(choice: StrategyChoice) -> Iterator[Verdict]:
    for one in choice.considered:
        is_chosen = one.strategy == choice.strategy
        # From auxiliary views it costs something else, and is not compared with the others.
        is_other = is_chosen and choice.auxiliary is not None
        yield Verdict(
            strategy=one.strategy,
            code="" if is_other else one.code,
            message="" if is_other else one.message,
            span=one.span,
            is_possible=is_other or one.work is not None,
            is_chosen=is_chosen,
            work=choice.expected if is_other else one.work,
            keys=keys_of(choice.rewrite) if is_chosen and choice.rewrite else (),
        )
    if choice.strategy not in [one.strategy for one in choice.considered]:
        yield Verdict(
            strategy=choice.strategy,
            is_chosen=True,
            work=choice.full if choice.strategy == FULL else choice.expected,
        )


def _supposed(asked: Question, given: Inputs, shape: Shape, storage: TableState | None, *, is_kept: bool) -> Iterator[Supposed]:
    """`is_kept`: the query is one over auxiliary views, from which differences are always found."""
    names = [name for _, name in shape.outputs]
    types: Mapping[str, object] = {f["name"]: f["type"] for f in storage.schema["fields"]} if storage else {}
    changes: tuple[Kinds, ...] = ("inserts", "deletes")
    for change in changes:
        found = answers(
            shape,
            change,
            types=types if list(types) == names else None,
            partition_by=storage.partition_by if storage else (),
            float_tolerance=asked.node.model.config.float_tolerance,
            has_children=asked.has_children or is_kept,
        )
        verdicts = [
            Verdict(strategy=one.strategy, keys=one.keys)
            if one.refused is None
            else Verdict(
                strategy=one.strategy,
                code=one.refused.code,
                message=readable(one.refused.message, shape),
                span=span_of(given.text, one.refused),
                is_possible=False,
            )
            for one in found
        ]
        yield Supposed(change=change, verdicts=tuple(verdicts))
