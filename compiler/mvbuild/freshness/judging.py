"""World + MV -> its Freshness. Pure: the same observation always gives the same result.

The conditions are those of the property-based specification (view version, base table snapshots, child view versions, and the relaxed
window on the difference of snapshot timestamps), with what it leaves open: other UUIDs, rollbacks, compaction, foreign writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from mvbuild.formats import failed_tests
from mvbuild.formats.failed_tests import FailedTests
from mvbuild.freshness.age import unseen
from mvbuild.freshness.clock import clock_moved
from mvbuild.freshness.leaves import node_inputs
from mvbuild.freshness.model import Freshness, Reason, State, state_of
from mvbuild.freshness.observed import World
from mvbuild.freshness.pending import same_definition
from mvbuild.freshness.rules_of_inputs import base_tables, child_views, pending_changed, upstream_behind, upstream_not_fresh
from mvbuild.freshness.rules_of_mv import (
    definition_changed,
    flawed,
    marks,
    never_refreshed,
    nondeterministic,
    session_differs,
    storage_changed,
    storage_schema_changed,
    unreadable,
)
from mvbuild.freshness.situation import Situation
from mvbuild.graph.definition import definition
from mvbuild.graph.model import ModelNode, NodeId
from mvbuild.parse.fingerprint import fingerprint
from mvbuild.storage.stored import Stored, stored

Rule = Callable[[Situation], Iterable[Reason]]
RULES: tuple[Rule, ...] = (
    unreadable,
    flawed,
    never_refreshed,
    storage_changed,
    storage_schema_changed,
    definition_changed,
    marks,
    nondeterministic,
    clock_moved,
    session_differs,
    upstream_not_fresh,
    upstream_behind,
    pending_changed,
    base_tables,
    child_views,
)


def judged(world: World, node: ModelNode, upstream: Mapping[NodeId, Freshness], pending: frozenset[NodeId]) -> Freshness:
    """See `rules.judge_one`."""
    situation = _situation(world, node, upstream, pending)
    # A table whose columns changed may be read at several branches.
    reasons = tuple(dict.fromkeys(reason for rule in RULES for reason in rule(situation)))
    state = state_of(reasons)
    return Freshness(
        node=node.id,
        state=state,
        reasons=reasons,
        record=situation.record,
        unseen=unseen(world, situation.inputs, reasons, upstream),
        failed=_failed(situation, state, reasons),
    )


def _situation(world: World, node: ModelNode, upstream: Mapping[NodeId, Freshness], pending: frozenset[NodeId]) -> Situation:
    view = world.observed.view(node.identifier)
    storage = world.observed.table(node.storage)
    of_storage = stored(storage) if storage else Stored(record=None)
    return Situation(
        world=world,
        node=node,
        view=view,
        storage=storage,
        stored=of_storage,
        record=of_storage.record,
        same_definition=same_definition(world, node, view),
        inputs=node_inputs(world.graph, node),
        upstream=upstream,
        pending=pending,
    )


def _failed(s: Situation, state: State, reasons: Iterable[Reason]) -> FailedTests | None:
    """The newest data if its tests failed. If the storage is exactly what the query returns now, the failure is obsolete: a table was
    rolled back, or an edit undone."""
    found = failed_tests.decode(s.storage.properties) if s.storage else None
    is_exact = state == "fresh" and s.record is not None and not any(r.code == "within-window" for r in reasons)
    if found is None or not is_exact or s.record is None:
        return found
    return found if found.is_of(s.record, fingerprint(definition(s.world.graph, s.node).text)) else None
