"""World + selection + format -> Plan that converts MVs to that format and does nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mvbuild.diagnostics import Diagnostic, warning
from mvbuild.formats.record import StorageFormat
from mvbuild.freshness.model import Reason
from mvbuild.freshness.observed import World
from mvbuild.freshness.readable import unreadable
from mvbuild.freshness.rules import judge
from mvbuild.graph.model import Graph, ModelNode, NodeId
from mvbuild.plan.model import Plan, Step
from mvbuild.storage.format import found_format


def conversions(world: World, selected: frozenset[NodeId], to: StorageFormat) -> Plan:
    """A step for each selected MV with storage, blocked if that cannot be read. A warning for each one with another format in its
    configuration: a run would convert it back."""
    steps = []
    for node in world.graph.views:
        storage = world.observed.table(node.storage)
        if node.id not in selected:
            continue
        broken = unreadable(world, node)
        if broken is not None:
            steps.append(Step(node=node.id, action="blocked", reasons=(), diagnostics=(broken,)))
        if broken is not None or storage is None:
            continue
        found = found_format(storage)
        reason = Reason(code="storage-format-changed", message=f"from {found} to {to}", effect="fresh")
        differs = found != to
        steps.append(Step(node=node.id, action="convert" if differs else "reuse", reasons=(reason,) if differs else (), converts=differs))
    warnings = tuple(_warnings(world.graph, {s.node for s in steps if s.action != "blocked"}, to))
    graph = replace(world.graph, nodes={id: _configured(n, to) if id in selected else n for id, n in world.graph.nodes.items()})
    return Plan(world=replace(world, graph=graph), steps=tuple(steps), freshness=judge(world), warnings=warnings)


def _configured(node: object, to: StorageFormat):  # type: ignore[no-untyped-def]
    if not isinstance(node, ModelNode):
        return node
    return replace(node, model=replace(node.model, config=replace(node.model.config, storage_format=to)))


def _warnings(graph: Graph, converted: set[NodeId], to: StorageFormat) -> Iterator[Diagnostic]:
    others = [graph.model(id) for id in sorted(converted) if _is_configured_otherwise(graph.model(id), to)]
    for node in others:
        message = f"'{node.model.name}' is configured for the format {node.model.config.storage_format}: the next run would convert it back"
        yield warning("format-differs", message, node.model.config.spans["storage_format"], help=f"Configure `storage: {{format: {to}}}`.")


def _is_configured_otherwise(node: ModelNode, to: StorageFormat) -> bool:
    return node.model.config.storage_format not in (None, to)
