"""World -> Freshness of every MV: of those that an earlier command found settled, and of all others by the rules of `judging`."""

from __future__ import annotations

from collections.abc import Mapping

from mvbuild.cache.lazy import Lazy
from mvbuild.freshness.model import Freshness
from mvbuild.freshness.observed import World
from mvbuild.freshness.pending import pending_seeds, pending_views
from mvbuild.graph.model import ModelNode, NodeId
from mvbuild.storage.stored import stored


def judge(world: World) -> dict[NodeId, Freshness]:
    """The freshness of every MV of the graph, upstreams first."""
    pending = pending_seeds(world) | pending_views(world)
    answers: dict[NodeId, Freshness] = {}
    for node in world.graph.views:
        answers[node.id] = _settled(world, node) if node.id in world.settled else judge_one(world, node, answers, pending)
    return answers


def judge_one(world: World, node: ModelNode, upstream: Mapping[NodeId, Freshness], pending: frozenset[NodeId] = frozenset()) -> Freshness:
    """The freshness of one MV, given that of the MVs that it reads and the nodes that are about to change."""
    # Imported here because a run that finds everything settled needs no rules.
    from mvbuild.freshness.judging import judged

    return judged(world, node, upstream, pending)


class _Settled(Lazy, Freshness):
    """What an earlier command found; the record is read on request."""

    __slots__ = ("_later", "_refreshed_ms")
    _refreshed_ms: int | None

    @property
    def was_refreshed(self) -> bool:
        return True

    @property
    def refreshed_ms(self) -> int | None:
        return self._refreshed_ms


def _settled(world: World, node: ModelNode) -> Freshness:
    def later(_: str) -> Mapping[str, object]:
        storage = world.observed.table(node.storage)
        return {"record": stored(storage).record if storage is not None else None}

    at_ms = world.sighting.earlier.refreshed.get(node.id) if world.sighting is not None else None
    return _Settled.of(later, {"node": node.id, "state": "fresh", "reasons": (), "unseen": (), "failed": None, "_refreshed_ms": at_ms})
