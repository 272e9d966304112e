"""World + Freshness -> what each MV below a query is served from: its storage, its query, or nothing. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from datetime import timedelta
from typing import Literal

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, Note, ProjectError, error
from mvbuild.formats.failed_tests import FailedTests
from mvbuild.freshness.age import allows
from mvbuild.freshness.model import Freshness, Reason, State
from mvbuild.freshness.observed import World
from mvbuild.graph.model import ModelNode, NodeId
from mvbuild.names import TableIdentifier
from mvbuild.parse.model import Query
from mvbuild.ports.states import TableState
from mvbuild.storage.names import known_as

Source = Literal["storage", "query"]

NOT_OF_ITS_DEFINITION = frozenset(
    {
        "never-refreshed",
        "storage-missing",
        "record-unreadable",
        "storage-changed",
        "storage-schema-changed",
        "view-missing",
        "definition-changed",
        "not-compiled",
        "view-version-differs",
        "storage-of-another",
        "storage-schema-differs",
        "records-disagree",
        "view-recreated",
    }
)
"""Reasons after which a storage has rows of something else instead of old rows: these are never served, whatever the policy."""

_NO_GOOD_REFRESH = NOT_OF_ITS_DEFINITION - {"definition-changed"}
"""The same for an MV whose newest data failed its tests: if its definition was edited, the catalog still has the old one with its rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What one MV was served from, and how old its storage is (which was read only if `source` is "storage")."""

    node: NodeId
    name: str
    """The model's name."""
    identifier: TableIdentifier
    storage: TableIdentifier
    source: Source
    state: State
    reasons: tuple[Reason, ...]
    refreshed_at_ms: int | None
    """When the last refresh began; None if that is not recorded."""
    age_ms: int | None
    """Now minus the start of the last refresh."""
    behind_ms: int | None
    """The largest difference between the timestamps of a base table's current and recorded snapshots, which a window is compared with.
    Tables below upstream MVs count. 0 if there is no difference, None if it is not known."""
    unseen_ms: int | None
    """Now minus the timestamp of the first snapshot that the MV has not seen. 0 and None as for `behind_ms`."""
    failed: FailedTests | None = None
    """The newest data of the MV if its data tests failed: the storage has earlier rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingDecision:
    """The MVs of an answer: those that it reads and, below those that are served by their query, the ones that they read."""

    served: tuple[Served, ...]

    @property
    def expanded(self) -> frozenset[NodeId]:
        """The MVs that are read by their query instead of their storage."""
        return frozenset(s.node for s in self.served if s.source == "query")


def choose(world: World, freshness: Mapping[NodeId, Freshness], roots: Iterable[NodeId], now_ms: int) -> ServingDecision:
    """Decide for every MV that is reached from `roots`. Raises one ProjectError with all MVs whose policy is to fail."""
    walk = _Walk(world=world, freshness=freshness, now_ms=now_ms)
    for root in roots:
        walk.visit(root)
    if walk.refused:
        raise ProjectError(list(walk.refused.values()))
    return ServingDecision(served=tuple(walk.served.values()))


def read_now(query: Query, reads: tuple[NodeId, ...]) -> tuple[NodeId, ...]:
    """What a query reads in its current state: a version that the user chose is not a matter of freshness."""
    return tuple(id for read, id in zip(query.reads, reads, strict=True) if read.travel is None)


Limit = timedelta | None
"""A requested window; None for none."""
EXACT = timedelta(-1)


def _stricter(one: Limit, other: Limit) -> Limit:
    return one if other is None else other if one is None else min(one, other)


@dataclass(kw_only=True)
class _Walk:
    """From the roots down through views, ephemeral models and MVs that are served by their query."""

    world: World
    freshness: Mapping[NodeId, Freshness]
    now_ms: int
    served: dict[NodeId, Served] = field(default_factory=dict)
    refused: dict[NodeId, Diagnostic] = field(default_factory=dict)
    seen: dict[NodeId, Limit] = field(default_factory=dict)

    def visit(self, id_: NodeId, limit: Limit = None) -> None:
        """`limit`: how old rows may be for MVs that are read by their query instead of their storage."""
        node = self.world.graph.nodes[id_]
        if id_ in self.seen and _stricter(limit, self.seen[id_]) == self.seen[id_]:
            return
        limit = self.seen[id_] = _stricter(limit, self.seen.get(id_))
        if isinstance(node, ModelNode) and node.storage is not None:
            if not self._decide(node, node.storage, limit):
                return
            limit = _stricter(limit, EXACT if node.model.config.max_staleness is None else node.model.config.max_staleness)
        query = getattr(node, "query", None)
        for below in read_now(query, node.reads) if query else ():
            self.visit(below, limit)

    def _decide(self, node: ModelNode, storage: TableIdentifier, limit: Limit) -> bool:
        """Whether the MV's own query is read."""
        answer = self.freshness[node.id]
        state = self.world.observed.table(storage)
        source = _source(node, answer, state)
        if source is None:
            self.refused[node.id] = _refusal(node, answer)
            return False
        if limit is not None and answer.has_right_rows and not allows(None if limit == EXACT else limit, answer.unseen):
            # Its storage may be read, but not by readers that need newer rows.
            source = "query"
        self.served[node.id] = _served(self, node, answer, source, known_as(state) if state else storage)
        return source == "query"


def _source(node: ModelNode, answer: Freshness, storage: TableState | None) -> Source | None:
    """The policy. None refuses."""
    config = node.model.config
    if answer.has_right_rows or (answer.state == "unknown" and config.serve_unknown and _holds_rows(storage)):
        return "storage"
    if config.when_stale == "fail" or (answer.failed and config.when_tests_fail == "fail"):
        return None
    if config.when_stale == "serve" and _holds_rows(storage) and not _has(answer, NOT_OF_ITS_DEFINITION):
        return "storage"
    if answer.failed and config.when_tests_fail == "serve":
        return "storage" if _holds_rows(storage) and not _has(answer, _NO_GOOD_REFRESH) else None
    return "query"


def _has(answer: Freshness, codes: frozenset[str]) -> bool:
    return any(r.code in codes and not r.heals for r in answer.reasons)


def _holds_rows(storage: TableState | None) -> bool:
    """A storage table without a snapshot was created by a refresh that never finished."""
    return storage is not None and storage.current_snapshot_id is not None


def _served(walk: _Walk, node: ModelNode, answer: Freshness, source: Source, storage: TableIdentifier) -> Served:
    at = answer.record.refresh_start_ms if answer.record else None
    differences = answer.unseen
    behind = [r.lag_ms for r in differences if r.lag_ms is not None and r.lag_ms >= 0]
    unseen = [r.unseen_since_ms for r in differences if r.unseen_since_ms is not None]
    none = 0 if answer.is_fresh and not differences else None
    return Served(
        node=node.id,
        name=node.model.name,
        identifier=node.identifier,
        storage=storage,
        source=source,
        state=answer.state,
        reasons=answer.reasons,
        refreshed_at_ms=at,
        age_ms=None if at is None else max(0, walk.now_ms - at),
        behind_ms=max(behind) if behind else none,
        unseen_ms=max(0, walk.now_ms - min(unseen)) if unseen else none,
        failed=answer.failed,
    )


def _refusal(node: ModelNode, answer: Freshness) -> Diagnostic:
    why = [r.message for r in answer.reasons if r.effect != "fresh"]
    config = node.model.config
    if answer.failed and config.when_stale != "fail":
        has_none = "it has no good refresh to serve" if config.when_tests_fail == "serve" else "its policy is to fail in that case"
        return error(
            "tests-failed",
            f"the newest data of '{node.model.name}' failed its tests, and {has_none}",
            config.spans.get("when_tests_fail") or node.model.file.line_span(1),
            notes=[Note(message=one) for one in (*answer.failed.tests, *why)],
        )
    failed = [f"its newest data failed its tests: {', '.join(answer.failed.tests)}"] if answer.failed else []
    return error(
        "stale",
        f"'{node.model.name}' is {answer.state}: {why[0]}",
        config.spans.get("when_stale") or node.model.file.line_span(1),
        help=f"Refresh it with `mvbuild run --select +{node.model.name}`, or set `when_stale:` to query or serve.",
        notes=[Note(message=reason) for reason in (*why[1:], *failed)],
    )
