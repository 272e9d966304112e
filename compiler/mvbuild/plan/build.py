"""World + Freshness + selection -> Plan. Reads nothing but the files of the seeds that it loads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, Note, ProjectError, error
from mvbuild.freshness.leaves import Inputs, node_inputs, place_of
from mvbuild.freshness.model import Freshness, Reason
from mvbuild.freshness.observed import World
from mvbuild.freshness.pending import definition_changed, pending_seeds, pending_views
from mvbuild.freshness.pins import leaf_table, pin
from mvbuild.freshness.readable import flaws, unreadable
from mvbuild.freshness.rules import judge
from mvbuild.graph.broken import unrunnable
from mvbuild.graph.model import ModelNode, NodeId, SeedNode, ViewNode
from mvbuild.graph.time_travel import no_versions
from mvbuild.names import TableIdentifier
from mvbuild.plan.collisions import takeovers
from mvbuild.plan.model import Action, OnWork, Plan, Step
from mvbuild.plan.needed import needed_fresher
from mvbuild.plan.refused import refused_nodes
from mvbuild.ports.states import TableState
from mvbuild.project.seeds import SeedRows, read
from mvbuild.storage.format import found_format, unrecordable, wanted_format
from mvbuild.storage.names import known_as

if TYPE_CHECKING:
    from mvbuild.incremental.inputs import ReadChange

# Imports that only a stale MV needs are where they are used: a run that finds nothing to do does not pay for them.

OF_OTHERS = frozenset(("upstream-stale", "upstream-unknown", "upstream-behind", "seed-changed", "child-view-edited"))
"""Reasons that only apply if the run also changes the nodes that they name."""

_METADATA_TABLES = frozenset(
    """all_data_files all_delete_files all_entries all_files all_manifests data_files delete_files entries files history manifests
    metadata_log_entries partitions position_deletes refs snapshots""".split()
)


def build_plan(
    world: World,
    selected: frozenset[NodeId],
    *,
    full_refresh: bool = False,
    warnings: tuple[Diagnostic, ...] = (),
    changes: ReadChange | None = None,
    wanted: Mapping[NodeId, Reason] = MappingProxyType({}),
    refused: Mapping[NodeId, tuple[Diagnostic, ...]] = MappingProxyType({}),
    on_work: OnWork | None = None,
) -> Plan:
    """What a run of the selected nodes would do.

    `changes` returns what changed in a table between two snapshots; without it, every refresh is planned as a full one. `wanted`: MVs
    within their own windows to refresh nevertheless, if there are changes that they have not seen, and why. `refused`: nodes that must not
    be built, and why. `on_work` is called at most once, with the steps that are expected, when it is clear that the engine is needed and
    before the strategies of the other steps are chosen.
    """
    draft = _Draft(
        world=world,
        freshness=judge(world),
        pending=pending_seeds(world) | pending_views(world),
        full_refresh=full_refresh,
        selected=selected,
        changes=changes,
        refused={**refused_nodes(world, selected), **refused},
    )
    draft.needed = {**wanted, **needed_fresher(world, draft.freshness, selected)}
    for id_, node in world.graph.nodes.items():
        if id_ in world.settled and id_ in selected and id_ not in draft.needed and not full_refresh:
            draft.steps[id_] = Step(node=id_, action="reuse", reasons=())
        elif id_ in selected and not (isinstance(node, ModelNode) and node.materialized == "ephemeral"):
            draft.add(draft.step(id_))
            if on_work is not None and draft.has_work_for_engine(id_):
                on_work(draft.expected())
                on_work = None
    warned = tuple(found for step in draft.steps.values() if (found := _warning(world, step)))
    new = (node for id in draft.steps if id not in world.settled and isinstance(node := world.graph.nodes[id], ModelNode))
    warned += tuple(found for node in new for found in flaws(world, node))
    warned += tuple(takeovers(world, [id for id, step in draft.steps.items() if step.is_change]))
    return Plan(world=world, steps=tuple(draft.steps.values()), freshness=draft.freshness, warnings=(*warnings, *warned), rows=draft.rows)


def _warning(world: World, step: Step) -> Diagnostic | None:
    if step.choice is None or step.action != "refresh":
        return None
    from mvbuild.plan.strictness import fallback_warning

    return fallback_warning(world.graph.model(step.node), step.choice)


@dataclass
class _Draft:
    world: World
    freshness: Mapping[NodeId, Freshness]
    pending: frozenset[NodeId]
    full_refresh: bool
    selected: frozenset[NodeId]
    changes: ReadChange | None
    refused: Mapping[NodeId, tuple[Diagnostic, ...]]
    rows: dict[NodeId, SeedRows] = field(default_factory=dict)
    needed: Mapping[NodeId, Reason] = field(default_factory=dict)
    """MVs within their own windows that are too old for another selected one."""
    steps: dict[NodeId, Step] = field(default_factory=dict)
    changing: set[TableIdentifier] = field(default_factory=set)
    """The nodes to which the steps so far give new content or a new definition."""

    def has_work_for_engine(self, id_: NodeId) -> bool:
        """Whether a step surely needs the engine. Not while seeds are left to load: their rows are not known yet."""
        step = self.steps[id_]
        is_sure = step.needs_engine and step.choice is not None and not step.is_forced
        return is_sure and not any(id in self.selected and id not in self.rows and self._is_seed(id) for id in self.pending)

    def expected(self) -> Plan:
        """The steps so far, and refreshes of all others that are selected and not fresh."""
        rest = (id for id in self.world.graph.nodes if id in self.selected and id not in self.steps and id in self.freshness)
        stale = (Step(node=id, action="refresh", reasons=()) for id in rest if not self.freshness[id].is_fresh)
        return Plan(world=self.world, steps=(*self.steps.values(), *stale), freshness=self.freshness, rows=self.rows)

    def _is_seed(self, id_: NodeId) -> bool:
        return isinstance(self.world.graph.nodes[id_], SeedNode)

    def add(self, step: Step) -> None:
        self.steps[step.node] = step
        if step.action in ("load", "create", "replace", "refresh"):
            self.changing.add(self.world.graph.nodes[step.node].identifier)

    def step(self, id_: NodeId) -> Step:
        node = self.world.graph.nodes[id_]
        if id_ in self.refused:
            return Step(node=id_, action="blocked", reasons=self._reasons(id_), diagnostics=self.refused[id_])
        if isinstance(node, SeedNode):
            return self._seed(node)
        assert isinstance(node, ModelNode)
        blocked = self._blocked(node)
        if blocked:
            return Step(node=id_, action="blocked", reasons=self._reasons(id_), diagnostics=(blocked,))
        step = self._mv(node) if node.storage else self._view(node)
        below = self._blocked_below(node) if self._depends_on_others(step) else None
        return step if below is None else replace(step, action="blocked", diagnostics=(self._missing(node, below, "", None),))

    def _blocked_below(self, node: ModelNode) -> NodeId | None:
        """What the node reads and this run cannot build: it may be there, but not as the project has it now."""
        below = node_inputs(self.world.graph, node)
        read = (*below.views, *(leaf.node for leaf in below.leaves))
        return next((id for id in read if id in self.steps and self.steps[id].action == "blocked"), None)

    def _seed(self, node: SeedNode) -> Step:
        if node.id not in self.pending:
            return Step(node=node.id, action="reuse", reasons=())
        exists = self.world.observed.table(node.identifier) is not None
        message = "its file or its declared types changed" if exists else "it was never loaded"
        code = "seed-changed" if exists else "never-loaded"
        reasons = (Reason(code=code, message=message, effect="stale", table=node.identifier),)
        try:
            self.rows[node.id] = read(node.seed)
        except ProjectError as exc:
            return Step(node=node.id, action="blocked", reasons=reasons, diagnostics=exc.diagnostics)
        return Step(node=node.id, action="load", reasons=reasons)

    def _view(self, node: ModelNode) -> Step:
        if node.id not in self.pending:
            return Step(node=node.id, action="reuse", reasons=())
        view = self.world.observed.view(node.identifier)
        if view is not None:
            reason = replace(definition_changed(self.world, node, view), table=node.identifier)
            return Step(node=node.id, action="replace", reasons=(reason,))
        reason = Reason(code="never-created", message="it was never created", effect="stale", table=node.identifier)
        return Step(node=node.id, action="create", reasons=(reason,))

    def _mv(self, node: ModelNode) -> Step:
        from mvbuild.incremental.strategies import FULL
        from mvbuild.plan.alter import alteration

        reasons = self._reasons(node.id)
        storage = self.world.observed.table(node.storage)
        converts = storage is not None and found_format(storage) != wanted_format(node, storage)
        if self.full_refresh:
            forced = Reason(code="forced", message="a full refresh was requested", effect="stale")
            return self._refresh(node, (forced, *reasons), converts=converts)
        counted = tuple(r for r in reasons if self._counts(r))
        needed = self._needed(node)
        if needed or any(not r.heals for r in counted):
            # Only inner names of the query differ: Spark can decide whether it is still the same query.
            redefined = not needed and all(r.edit is not None and r.edit.only_names for r in counted)
            shown = (*needed, *(r for r in reasons if self._counts(r) or r.effect == "fresh"))
            if redefined:
                return Step(node=node.id, action="redefine", reasons=shown, strategy=FULL, converts=converts)
            return self._refresh(node, shown, converts=converts)
        if converts:
            message = f"it has the format {found_format(storage)}, and {wanted_format(node, storage)} is configured"  # type: ignore[arg-type]
            reason = Reason(code="storage-format-changed", message=message, effect="fresh")
            return Step(node=node.id, action="convert", reasons=(reason, *reasons), converts=True)
        try:
            change = alteration(self.world, node)
        except ProjectError as exc:
            return Step(node=node.id, action="blocked", reasons=reasons, diagnostics=exc.diagnostics)
        if change is not None or counted:
            what = ", ".join(change.what) if change is not None else ""
            reason = Reason(code="configuration-changed", message=f"changed: {what}", effect="fresh")
            return Step(node=node.id, action="alter", reasons=reasons if counted else (reason, *reasons))
        if any(r.code == "base-table-compacted" for r in reasons):
            return Step(node=node.id, action="record", reasons=reasons)
        if storage is not None and self._moves_upstream(node, storage):
            message = "the record of an MV that it reads is updated: its own record includes the same inputs"
            reason = Reason(code="upstream-recorded", message=message, effect="fresh")
            return Step(node=node.id, action="record", reasons=(*reasons, reason))
        return Step(node=node.id, action="reuse", reasons=reasons)

    def _refresh(self, node: ModelNode, reasons: tuple[Reason, ...], *, converts: bool) -> Step:
        """With the strategy, unless it depends on what this run writes first."""
        from mvbuild.incremental.chosen_strategy import strategy_for
        from mvbuild.incremental.strategies import FULL
        from mvbuild.plan.question import question
        from mvbuild.plan.strictness import strict_error

        wrong = self._misnamed.get(node.id) or self._untestable.get(node.id)
        if wrong is not None:
            return Step(node=node.id, action="blocked", reasons=reasons, diagnostics=(wrong,))
        step = Step(node=node.id, action="refresh", reasons=reasons, strategy=FULL, converts=converts)
        if self.changes is None:
            return step
        below = node_inputs(self.world.graph, node)
        if any(self._is_written(leaf.node) for leaf in below.leaves) and self.world.observed.table(node.storage) is not None:
            return replace(step, strategy=None)
        pins = {leaf: p for leaf in below.leaves if (p := pin(self.world.graph, self.world.observed, leaf))}
        asked = question(self.world, node, reasons, pins, self.changes, forced=self.full_refresh)
        choice = strategy_for(asked)
        refused = strict_error(node, choice)
        if refused:
            return Step(node=node.id, action="blocked", reasons=reasons, diagnostics=(refused,), choice=choice)
        action: Action = "record" if choice.is_no_change and not converts else "refresh"
        return replace(step, action=action, strategy=choice.strategy, choice=choice)

    def _moves_upstream(self, node: ModelNode, storage: TableState) -> bool:
        """Readers that know only the specification do not read the records of upstream MVs."""
        from mvbuild.freshness.indirect import upstream_mvs

        above = list(upstream_mvs(self.world, node))
        if not above or storage.of_view is not None:
            return False
        if any(self._is_recorded(mv) for mv in above):
            return True
        return self.freshness[node.id].is_fresh and not self._has_written(node)

    def _is_recorded(self, upstream: ModelNode) -> bool:
        """Whether this run gives an MV another record, or its view another version, without changing its rows."""
        step = self.steps.get(upstream.id)
        if step is None or step.action not in ("record", "alter", "redefine", "convert"):
            return False
        from mvbuild.plan.alter import alteration

        change = alteration(self.world, upstream) if step.action == "alter" else None
        return change is None or change.view_version or not self._has_written(upstream)

    def _has_written(self, node: ModelNode) -> bool:
        """Whether the record names what its readers need."""
        from mvbuild.freshness.indirect import is_written

        storage, record = self.world.observed.table(node.storage), self.freshness[node.id].record
        return storage is None or record is None or is_written(self.world, node, storage, record)

    @cached_property
    def _misnamed(self) -> Mapping[NodeId, Diagnostic]:
        """MVs with a setting or a data test that names a missing column, by the current catalog."""
        from mvbuild.plan.misnamed import misnamed_columns

        return misnamed_columns(self.world, self.selected)

    @cached_property
    def _untestable(self) -> Mapping[NodeId, Diagnostic]:
        """MVs whose rows a data test reads that cannot run: nothing is published past it."""
        graph = self.world.graph
        found = ((test, unrunnable(graph, test)) for test in graph.tests if test.gates and graph.undefined)
        return {gate: why for test, why in found if why is not None for gate in test.gates}

    def _is_written(self, id_: NodeId) -> bool:
        step = self.steps.get(id_)
        return step is not None and step.action in ("load", "refresh", "redefine")

    def _reasons(self, id_: NodeId) -> tuple[Reason, ...]:
        return self.freshness[id_].reasons if id_ in self.freshness else ()

    def _needed(self, node: ModelNode) -> tuple[Reason, ...]:
        """Why it is refreshed within its own window, if there are changes that it has not seen, or that this run writes first."""
        if node.id not in self.needed:
            return ()
        graph = self.world.graph
        has_news = any(r.code == "within-window" for r in self._reasons(node.id))
        is_fed = any(graph.nodes[leaf.node].identifier in self.changing for leaf in node_inputs(graph, node).leaves)
        return (self.needed[node.id],) if has_news or is_fed else ()

    def _counts(self, reason: Reason) -> bool:
        if reason.effect == "fresh":
            return False
        return reason.code not in OF_OTHERS or reason.table in self.changing

    def _depends_on_others(self, step: Step) -> bool:
        """Whether what the node reads must be right for this step; or the node is stale, and waits for what it reads."""
        if step.action == "reuse":
            return any(reason.effect != "fresh" for reason in step.reasons)
        return step.is_change and step.action != "convert"

    def _blocked(self, node: ModelNode) -> Diagnostic | None:
        """A table or view that the node reads does not exist, and this run does not create it; or the catalog cannot store the node."""
        graph, below = self.world.graph, node_inputs(self.world.graph, node)
        refused = graph.blocked.get(node.id) or self._refused(node) or self._unreadable(node, below)
        if refused:
            return refused
        for leaf in below.leaves:
            made = leaf.node in self.steps and self.steps[leaf.node].is_change
            if made or pin(graph, self.world.observed, leaf) is not None:
                continue
            return self._missing(node, leaf.node, f"{leaf_table(graph, leaf)}" if leaf.travel is None else "", leaf.travel)
        for id_ in below.views:
            made = id_ in self.steps and self.steps[id_].is_change
            if not made and self.world.observed.view(graph.nodes[id_].identifier) is None:
                return self._missing(node, id_, str(graph.nodes[id_].identifier), None)
        return self._unrecordable(node, below)

    def _unrecordable(self, node: ModelNode, below: Inputs) -> Diagnostic | None:
        """The metadata file has one snapshot per table."""
        graph, observed = self.world.graph, self.world.observed
        if node.storage is None or wanted_format(node, observed.table(node.storage)) != "metadata-file":
            return None
        states: dict[TableIdentifier, set[tuple[int | None, str | None]]] = {}
        for leaf in below.leaves:
            found = pin(graph, observed, leaf)
            if found is None:
                continue
            is_new = leaf.travel is None and graph.nodes[leaf.node].identifier in self.changing
            states.setdefault(known_as(found.table), set()).add((None if is_new else found.snapshot_id, found.ref))
        twice = next((name for name, several in states.items() if len(several) > 1), None)
        return (
            unrecordable(node, f"{twice} is read at two snapshots or references; this format records only one for each table")
            if twice
            else None
        )

    def _refused(self, node: ModelNode) -> Diagnostic | None:
        if self.world.observed.has_views or (node.storage and node.model.config.storage_format == "metadata-file"):
            return None
        span = node.model.config.spans.get("materialized") or node.model.file.line_span(1)
        what = "materialized views in the format table-properties need a view" if node.storage else "it is a view"
        help = "Configure `storage: {format: metadata-file}`." if node.storage else "Make it ephemeral, or a materialized view."
        message = f"'{node.model.name}' cannot be stored in catalog '{node.identifier.catalog}', which has no views: {what}"
        return error("unsupported-format", message, span, help=help)

    def _unreadable(self, node: ModelNode, below: Inputs) -> Diagnostic | None:
        """Metadata that cannot be read: the node's own must not be overwritten, and that of its inputs must not be guessed."""
        graph = self.world.graph
        own = unreadable(self.world, node)
        if own is not None:
            return own
        # The storage of an MV may be embedded in its view.
        tables = ((leaf.node, name) for leaf in below.leaves for name in (graph.nodes[leaf.node].identifier, leaf_table(graph, leaf)))
        for id_, identifier in (*tables, *((id, graph.nodes[id].identifier) for id in below.views)):
            broken = self.world.observed.unreadable(identifier)
            if broken is not None:
                place = place_of(graph, node, id_)
                through = "".join(f" through the view {graph.nodes[id].identifier}" for id in (place.through[:1] if place else ()))
                message = f"'{node.model.name}' reads {identifier}{through}: {broken.reason}"
                span = place.span if place else node.model.file.line_span(1)
                source = getattr(graph.nodes[id_], "source", None)
                notes = (Note(message="it is declared here", span=source.span),) if source else ()
                return error(broken.code, message, span, help=broken.help or "Fix that one first.", notes=notes)
        return None

    def _missing(self, node: ModelNode, id_: NodeId, name: str, travel: tuple[str, str | int] | None) -> Diagnostic:
        parent = self.world.graph.nodes[id_]
        place = place_of(self.world.graph, node, id_)
        span = place.span if place else node.model.file.line_span(1)
        if travel is not None and isinstance(parent, ViewNode):
            return no_versions(str(parent.identifier), span)
        if travel is not None:
            return error("missing-table", f"{parent.identifier} no longer has version {travel[1]!r}", span)
        if isinstance(parent, ModelNode | SeedNode):
            what = parent.model.name if isinstance(parent, ModelNode) else parent.seed.name
            if id_ in self.steps and self.steps[id_].action == "blocked":
                return error("missing-table", f"'{what}', which it reads, cannot be built", span, help="Fix that one first.")
            return error(
                "missing-table", f"'{what}' was never built and is not selected", span, help=f"Select it too: --select +{node.model.name}"
            )
        return error("missing-table", f"The table {name} does not exist", span, help=_part_of_a_table(parent.identifier))


def _part_of_a_table(name: TableIdentifier) -> str:
    """What to write instead of Spark's names for the branches, tags and metadata tables of a table; empty for another name."""
    *namespace, table = name.namespace
    if not namespace:
        return ""
    kind, _, ref = name.name.partition("_")
    if kind in ("branch", "tag") and ref:
        return f"To read a {kind}, write `{'.'.join((*namespace, table))} VERSION AS OF '{ref}'`."
    if name.name.lower() in _METADATA_TABLES:
        return "A model cannot read metadata tables, which have no snapshots."
    return ""
