"""results of batches -> when each node may be tried again. An MV that fails waits longer each time, and holds up no other."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field

from mvbuild.dataclass import dataclass
from mvbuild.freshness.model import Freshness
from mvbuild.graph.model import NodeId
from mvbuild.watch.due import Waiting

FIRST_MS, LONGEST_MS = 15_000, 30 * 60_000
"""The wait after the first failure, and the longest. It doubles with each failure in a row."""
QUIET_MS = 60_000
"""How long to wait for a node that had nothing to do although it looked stale, or that is stale right after its refresh. New data ends the
wait."""


Facts = frozenset[object]
"""What is known of an MV, without times: equal as long as nothing else has changed."""


def facts_of(found: Freshness) -> Facts:
    return frozenset((r.code, r.table, r.current) for r in (*found.reasons, *found.unseen))


@dataclass
class Retries:
    """What the watcher remembers of each node; used by one thread."""

    failures: dict[NodeId, int] = field(default_factory=dict)
    """How often a node has failed in a row."""
    retry_ms: dict[NodeId, int] = field(default_factory=dict)
    quiet_ms: dict[NodeId, int] = field(default_factory=dict)
    known: dict[NodeId, Facts] = field(default_factory=dict)
    """An MV that had nothing to do -> what was known of it then."""
    settled_ms: dict[NodeId, int] = field(default_factory=dict)
    first_seen_ms: dict[NodeId, int] = field(default_factory=dict)

    def failed(self, id: NodeId, now_ms: int) -> int:
        """Note a failure. Returns how long the node has to wait."""
        count = self.failures[id] = self.failures.get(id, 0) + 1
        wait = min(LONGEST_MS, FIRST_MS << min(count - 1, 20))
        self.retry_ms[id] = now_ms + wait
        return wait

    def succeeded(self, id: NodeId, now_ms: int) -> bool:
        """Note a success. Returns whether it had failed before."""
        self.settled_ms[id] = now_ms + QUIET_MS
        self.retry_ms.pop(id, None)
        self._lift(id)
        self.first_seen_ms.pop(id, None)
        return self.failures.pop(id, 0) > 0

    def quiet(self, id: NodeId, now_ms: int, known: Facts | None = None) -> None:
        """Leave a node alone for a while; with `known`, until something else is known of it."""
        self._lift(id)
        self.quiet_ms[id] = now_ms + QUIET_MS
        if known is not None:
            self.known[id] = known

    def _lift(self, id: NodeId) -> None:
        self.quiet_ms.pop(id, None)
        self.known.pop(id, None)

    def see(self, freshness: Mapping[NodeId, Freshness], now_ms: int) -> None:
        """Note when MVs are first seen to be out of date, and which of those that had nothing to do have something new."""
        for id in [id for id, known in self.known.items() if id in freshness and facts_of(freshness[id]) not in (known, frozenset())]:
            self._lift(id)
        for id, found in freshness.items():
            if found.is_fresh and not found.unseen:
                self.first_seen_ms.pop(id, None)
            else:
                self.first_seen_ms.setdefault(id, now_ms)

    def healed(self, needed: Collection[NodeId]) -> list[NodeId]:
        """Forget failures of nodes that need nothing any more, because another command refreshed them, an edit was undone, or the project
        no longer has them. Returns these. `needed`: MVs to refresh, seeds to load and views to create."""
        found = [id for id in self.failures if id not in needed]
        for id in found:
            del self.failures[id]
            self.retry_ms.pop(id, None)
        return found

    def forget(self) -> None:
        """The project was edited: what failed may work now."""
        self.retry_ms.clear()
        self.settled_ms.clear()
        self.quiet_ms.clear()
        self.known.clear()

    @property
    def waiting(self) -> Waiting:
        return Waiting(first_seen_ms=self.first_seen_ms, settled_ms=self.settled_ms, retry_ms=self.retry_ms, quiet_ms=self.quiet_ms)
