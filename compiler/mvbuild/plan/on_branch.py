"""Plan of a run with --branch -> the same in which the steps that cannot be done on a branch are blocked."""

from __future__ import annotations

from dataclasses import replace

from mvbuild.diagnostics import error
from mvbuild.freshness.observed import World
from mvbuild.graph.model import ModelNode
from mvbuild.plan.model import Plan, Step
from mvbuild.storage.format import is_embedded


def branchable(plan: Plan) -> Plan:
    return replace(plan, steps=tuple(_branchable(plan.world, step) for step in plan.steps))


def _branchable(world: World, step: Step) -> Step:
    node = world.graph.nodes[step.node]
    if not isinstance(node, ModelNode) or node.storage is None or not step.is_change:
        return step
    if not (step.converts or step.action == "convert" or is_embedded(node, world.observed.table(node.storage))):
        return step
    span = node.model.config.spans.get("storage_format") or node.model.file.line_span(1)
    message = f"'{node.model.name}' cannot be built on a branch: a metadata file has only one state of its MV"
    wrong = error("unsupported-format", message, span, help="Use `storage: {format: table-properties}`.")
    return replace(step, action="blocked", diagnostics=(wrong,))
