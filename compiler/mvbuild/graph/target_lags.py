"""Graph -> the target lag of each MV, and the lags that cannot be kept.

An MV without a target is refreshed as soon as something that it reads has changed, so it is as far behind as what it reads. One with
`downstream` is refreshed when an MV that reads it needs that, so its target is the shortest of its readers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta

from mvbuild.diagnostics import Diagnostic, Note, error
from mvbuild.graph.model import Graph, ModelNode, NodeId
from mvbuild.project.setting_values import written
from mvbuild.source import Span


def target_lags(graph: Graph) -> Mapping[NodeId, timedelta | None]:
    """The lag of every MV. None: it is refreshed as soon as something that it reads has changed."""
    readers = mv_readers(graph)
    found: dict[NodeId, timedelta | None] = {}
    for node in reversed(list(graph.views)):
        own = node.model.config.target_lag
        if own == "downstream":
            of_readers = [found[id] for id in readers[node.id]]
            known = [lag for lag in of_readers if lag is not None]
            found[node.id] = min(known) if known and len(known) == len(of_readers) else None
        else:
            found[node.id] = own
    return found


def mv_readers(graph: Graph) -> Mapping[NodeId, tuple[NodeId, ...]]:
    """MV -> the MVs that read it, directly or through views and ephemeral models."""
    found: dict[NodeId, list[NodeId]] = {node.id: [] for node in graph.views}
    for node in graph.views:
        for id in mv_parents(graph, node):
            found[id].append(node.id)
    return {id: tuple(readers) for id, readers in found.items()}


def mv_parents(graph: Graph, node: ModelNode) -> tuple[NodeId, ...]:
    """The MVs that an MV reads, directly or through views and ephemeral models."""
    found: dict[NodeId, None] = {}
    seen: set[NodeId] = set()
    waiting = list(node.reads)
    while waiting:
        id = waiting.pop()
        if id in seen:
            continue
        seen.add(id)
        below = graph.nodes[id]
        if isinstance(below, ModelNode) and below.storage is not None:
            found[id] = None
        else:
            waiting += below.reads
    return tuple(found)


def bad_lags(graph: Graph) -> Iterator[tuple[NodeId, Diagnostic]]:
    """Each MV with a target lag that what it reads does not allow, and each `downstream` that no MV reads, with what is wrong."""
    if not any(node.model.config.target_lag for node in graph.views):
        return
    readers = mv_readers(graph)
    # What a model reads is not known if it does not compile.
    knows_readers = not any(node.model.problems for node in graph.models)
    behind: dict[NodeId, ModelNode] = {}
    """MV -> the one with the longest lag among itself and what it reads, up to the nearest targets."""
    for node in graph.views:
        own = node.model.config.target_lag
        slowest = max((behind[id] for id in mv_parents(graph, node) if id in behind), key=_lag, default=None)
        if isinstance(own, timedelta):
            if slowest is not None and _lag(slowest) > own:
                yield node.id, _too_short(node, own, slowest)
            behind[node.id] = node
        elif slowest is not None:
            behind[node.id] = slowest
        if own == "downstream" and not readers[node.id] and knows_readers:
            message = f"'{node.model.name}' has `target_lag: downstream`, and no MV reads it"
            yield node.id, error("bad-target-lag", message, _span(node), help="Give it a duration, like `target_lag: 15m`.")


def _lag(node: ModelNode) -> timedelta:
    lag = node.model.config.target_lag
    return lag if isinstance(lag, timedelta) else timedelta()


def _too_short(node: ModelNode, own: timedelta, slow: ModelNode) -> Diagnostic:
    most = written(_lag(slow))
    message = f"'{node.model.name}' cannot be at most {written(own)} behind: '{slow.model.name}', which it reads, may be {most}"
    help = f"Use a lag of {most} or more, or give '{slow.model.name}' a shorter one, or `target_lag: downstream`."
    notes = (Note(message=f"the target lag of '{slow.model.name}'", span=_span(slow)),)
    return error("bad-target-lag", message, _span(node), help=help, notes=notes)


def _span(node: ModelNode) -> Span:
    return node.model.config.spans.get("target_lag") or node.model.file.line_span(1)
