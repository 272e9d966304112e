"""Plan + what was changed -> Refreshes: what the next run does because of it, how, and the expected bytes. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from mvbuild.graph.model import Graph, ModelNode, NodeId, SeedNode
from mvbuild.plan.model import Plan, Step
from mvbuild.review.model import NodeChange, Refresh

_SPREADING = ("reordered", "columns-added", "filter-narrowed", "filter-widened", "rows", "breaking")


def concerned(graph: Graph, changes: Iterable[NodeChange]) -> frozenset[NodeId]:
    """What was changed, and everything that reads other rows or columns because of it."""
    own = {c.id for c in changes if c.matters and c.id in graph.nodes}
    spreading = {c.id for c in changes if c.id in own and (c.what == "added" or any(f.kind in _SPREADING for f in c.findings))}
    return frozenset(own | graph.descendants(spreading))


def of_plan(planned: Plan, ids: Collection[NodeId]) -> tuple[Refresh, ...]:
    """The steps for these nodes."""
    return tuple(_refresh(planned, step) for step in planned.steps if step.node in ids and step.action != "reuse")


def _refresh(planned: Plan, step: Step) -> Refresh:
    choice = step.choice
    why = [r.message for r in step.reasons if r.effect != "fresh"] or [r.message for r in step.reasons]
    if choice is not None and choice.code and choice.message not in why:
        why.append(f"{choice.strategy} because {choice.message}")
    if step.diagnostic is not None:
        why = [step.diagnostic.message]
    return Refresh(
        node=step.node,
        relation=str(planned.world.graph.nodes[step.node].identifier),
        action=step.action,
        strategy=step.strategy,
        why="; ".join(why),
        expected=choice.expected if choice else None,
        full=choice.full if choice else None,
    )


def without_plan(graph: Graph, changes: Iterable[NodeChange], ids: Collection[NodeId]) -> tuple[Refresh, ...]:
    """What is certain from the versions alone: these MVs are affected, but their freshness is unknown."""
    reasons: dict[NodeId, str] = {c.id: _reason(c) for c in changes if c.matters and c.resource_type != "test"}
    found = []
    for id_, node in graph.nodes.items():
        is_built = isinstance(node, SeedNode) or (isinstance(node, ModelNode) and node.materialized != "ephemeral")
        if id_ not in ids or not is_built:
            continue
        why = reasons.get(id_) or _from_above(graph, id_, reasons)
        if why:
            found.append(Refresh(node=id_, relation=str(node.identifier), action="unknown", strategy=None, why=why))
    return tuple(found)


def _reason(change: NodeChange) -> str:
    if change.what == "added":
        return "it is new"
    if any(f.kind not in ("formatting", "equal") for f in change.findings):
        return "its definition was changed" if change.resource_type == "model" else "it was changed"
    if any(f.kind == "equal" for f in change.findings):
        return "its definition is written differently"
    if change.what == "renamed":
        return "it was renamed"
    return "its configuration was changed" if change.settings else "its documentation was changed"


def _from_above(graph: Graph, id_: NodeId, reasons: Mapping[NodeId, str]) -> str:
    rows = ("its definition was changed", "it was changed", "it is new")
    above = [graph.nodes[a] for a in graph.ancestors([id_]) if reasons.get(a) in rows]
    names = sorted(n.model.name if isinstance(n, ModelNode) else n.identifier.name for n in above)
    return f"it reads {', '.join(names[:3])}{' and others' if len(names) > 3 else ''}" if names else ""
