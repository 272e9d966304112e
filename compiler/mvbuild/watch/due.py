"""World + Freshness + target lags -> Due: the nodes to refresh now, how far each MV is behind, and when to look again. Pure.

An MV without a target lag is due as soon as something that it reads has changed. One with a target is due when its oldest unseen change, at
any depth, would otherwise become older than the target before a refresh could end. Such an MV takes everything stale that it reads into the
same batch, and a refreshed MV takes its readers without a target: so an MV that several read is refreshed once for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta

from mvbuild.dataclass import dataclass
from mvbuild.freshness.model import Freshness, Reason
from mvbuild.freshness.observed import World
from mvbuild.freshness.pending import pending_seeds, pending_views
from mvbuild.graph.model import Graph, ModelNode, NodeId
from mvbuild.graph.target_lags import mv_parents, target_lags
from mvbuild.plan.build import OF_OTHERS

SLACK = 1.5
"""A refresh may take this many times as long as the last one did."""
MOST_RESERVED = 0.5
"""At most this share of a target lag is reserved for the refresh."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """What to do now."""

    nodes: frozenset[NodeId]
    """MVs, seeds and views to refresh, load and create, in one batch or several."""
    wanted: Mapping[NodeId, Reason]
    """Those that are refreshed although their own staleness windows would allow them to be older."""
    behind_since_ms: Mapping[NodeId, int]
    """MV -> the time of its oldest unseen change; only MVs that have one."""
    next_ms: int | None
    """When the next node is due if nothing changes until then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """What the watcher remembers of earlier turns."""

    first_seen_ms: Mapping[NodeId, int]
    """MV -> when it was first seen to be out of date, for changes without a time of their own."""
    retry_ms: Mapping[NodeId, int]
    """A node that failed -> when it may be tried again."""
    quiet_ms: Mapping[NodeId, int]
    """A node that had nothing to do -> when to look at it again. It is not here any more once there is new data."""
    settled_ms: Mapping[NodeId, int]
    """An MV that was refreshed -> until when only new data counts: one whose query reads the clock is never fresh."""


def find_due(world: World, freshness: Mapping[NodeId, Freshness], waiting: Waiting, now_ms: int, reserve_ms: int) -> Due:
    """`reserve_ms`: the time that passes before a refresh can begin, such as the start of Spark."""
    graph, lags = world.graph, target_lags(world.graph)
    nodes: set[NodeId] = set()
    for id in pending_seeds(world) | pending_views(world):
        nodes.add(id)
    behind: dict[NodeId, int] = {}
    later: list[int] = []
    wanted: dict[NodeId, Reason] = {}
    for node in graph.views:
        found, lag = freshness[node.id], lags[node.id]
        first = waiting.first_seen_ms.get(node.id, now_ms)
        since = _since(found, first)
        if since is not None:
            behind[node.id] = since
        at = _due_ms(world, node, freshness, lag, first, reserve_ms, waiting.settled_ms.get(node.id, 0))
        if at is None:
            continue
        at = max(at, waiting.quiet_ms.get(node.id, 0))
        if at > now_ms:
            later.append(at)
            continue
        nodes.add(node.id)
        if lag is not None:
            with_parents = (node.id, *_stale_parents(graph, node, freshness))
            nodes.update(with_parents)
            wanted.update((id, _reason(node)) for id in with_parents)
    later += [at for id, at in waiting.retry_ms.items() if at > now_ms]
    nodes -= {id for id, at in waiting.retry_ms.items() if at > now_ms}
    nodes |= _readers_without_target(graph, nodes, lags)
    nodes -= {id for id, at in waiting.retry_ms.items() if at > now_ms}
    ready = frozenset(nodes - {id for id in nodes if id not in freshness and waiting.quiet_ms.get(id, 0) > now_ms})
    return Due(nodes=ready, wanted=wanted, behind_since_ms=behind, next_ms=min(later, default=None))


def batches(graph: Graph, nodes: Iterable[NodeId]) -> Iterator[frozenset[NodeId]]:
    """The nodes in groups that do not depend on each other: no node reads one of another group, and no data test reads both."""
    group = {id: id for id in nodes}

    def root(id: NodeId) -> NodeId:
        while group[id] != id:
            group[id] = group[group[id]]
            id = group[id]
        return id

    below: dict[NodeId, frozenset[NodeId]] = {}
    """Any node -> the nodes of the batches that its readers depend on: itself, or those that it reads. The storage of an MV that is not
    refreshed stays as it is, whatever happens below."""
    for node in graph.nodes.values():
        found = frozenset(other for id in node.reads for other in below[id])
        if node.id in group:
            for id in found:
                group[root(id)] = root(node.id)
            below[node.id] = frozenset((node.id,))
        else:
            below[node.id] = frozenset() if isinstance(node, ModelNode) and node.storage is not None else found
    for test in graph.tests:
        gates = [id for id in test.gates if id in group]
        for id in gates[1:]:
            group[root(id)] = root(gates[0])
    together: dict[NodeId, set[NodeId]] = {}
    for id in group:
        together.setdefault(root(id), set()).add(id)
    return (frozenset(ids) for ids in together.values())


def _due_ms(
    world: World,
    node: ModelNode,
    freshness: Mapping[NodeId, Freshness],
    lag: timedelta | None,
    first_ms: int,
    reserve_ms: int,
    settled_ms: int,
) -> int | None:
    """When its refresh has to begin; None if nothing changed."""
    found = freshness[node.id]
    own = [r for r in found.reasons if r.effect != "fresh" and r.code not in OF_OTHERS]
    changes = set(found.unseen)
    if any(reason not in changes for reason in own):
        # It was never built, or edited: this has nothing to do with new data.
        return max(first_ms, settled_ms)
    if lag is None:
        return first_ms if own else None
    since = _since(found, first_ms)
    if not changes or since is None:
        return None
    ids = (node.id, *_stale_parents(world.graph, node, freshness))
    reserved = reserve_ms + SLACK * sum(last_refresh_ms(world, id, freshness) for id in ids)
    lag_ms = lag / timedelta(milliseconds=1)
    return round(since + lag_ms - min(reserved, MOST_RESERVED * lag_ms))


def last_refresh_ms(world: World, id: NodeId, freshness: Mapping[NodeId, Freshness]) -> int:
    """How long its last refresh took, from the start of the run to its snapshot; 0 if that is not known."""
    storage, record = world.observed.table(world.graph.model(id).storage), freshness[id].record
    snapshot = storage.current_snapshot if storage else None
    if snapshot is None or record is None or record.refresh_start_ms is None:
        return 0
    return max(0, snapshot.timestamp_ms - record.refresh_start_ms)


def _since(found: Freshness, first_ms: int) -> int | None:
    """The time of the oldest change that the MV has not seen."""
    if found.unseen:
        return min(first_ms if r.unseen_since_ms is None else r.unseen_since_ms for r in found.unseen)
    return None if found.is_fresh else first_ms


def _stale_parents(graph: Graph, node: ModelNode, freshness: Mapping[NodeId, Freshness]) -> tuple[NodeId, ...]:
    """The MVs that it reads, at any depth, and that are out of date themselves."""
    found: dict[NodeId, None] = {}
    waiting = list(mv_parents(graph, node))
    while waiting:
        id = waiting.pop()
        if id not in found and (freshness[id].unseen or not freshness[id].is_fresh):
            found[id] = None
            waiting += mv_parents(graph, graph.model(id))
    return tuple(found)


def _readers_without_target(graph: Graph, nodes: Iterable[NodeId], lags: Mapping[NodeId, timedelta | None]) -> set[NodeId]:
    found: set[NodeId] = set()
    waiting = list(nodes)
    seen = set(waiting)
    while waiting:
        for id in graph.children[waiting.pop()]:
            if id in seen or lags.get(id) is not None:
                continue
            seen.add(id)
            waiting.append(id)
            if id in lags:
                found.add(id)
    return found


def _reason(node: ModelNode) -> Reason:
    return Reason(code="target-lag", message=f"the target lag of {node.identifier} requires it", effect="fresh", table=node.identifier)
