"""Plan -> the rows of the seeds that it loads."""

from __future__ import annotations

from mvbuild.diagnostics import Diagnostic, ProjectError
from mvbuild.graph.model import NodeId, SeedNode
from mvbuild.plan.model import Plan
from mvbuild.project.seeds import SeedRows, read


def seed_rows(planned: Plan) -> dict[NodeId, SeedRows]:
    """The rows of the seeds that the plan loads; one ProjectError with all bad values of all files."""
    rows: dict[NodeId, SeedRows] = {}
    diagnostics: list[Diagnostic] = []
    for step in planned.steps:
        node = planned.world.graph.nodes[step.node]
        if step.action == "load" and isinstance(node, SeedNode):
            try:
                rows[step.node] = read(node.seed)
            except ProjectError as exc:
                diagnostics.extend(exc.diagnostics)
    if diagnostics:
        raise ProjectError(diagnostics)
    return rows
