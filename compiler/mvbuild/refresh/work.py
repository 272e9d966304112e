"""Step + RunSession -> Outcome: what each action of a plan does."""

from __future__ import annotations

from mvbuild.graph.model import ModelNode, SeedNode
from mvbuild.plan.model import Plan, Step
from mvbuild.refresh import seeds, views
from mvbuild.refresh.alter import alter
from mvbuild.refresh.convert import convert
from mvbuild.refresh.outcome import Outcome
from mvbuild.refresh.redefine import redefine
from mvbuild.refresh.session import RunSession


def work(session: RunSession, plan: Plan, step: Step) -> Outcome:
    """Carry out a step that is a change. Raises whatever its parts raise."""
    node = plan.world.graph.nodes[step.node]
    if isinstance(node, SeedNode):
        return seeds.load(session, node, plan.rows[node.id])
    assert isinstance(node, ModelNode)
    if node.storage is None:
        return Outcome(message=views.create_or_replace(session, node))
    if step.action == "alter" or (step.action == "record" and step.choice is None):
        return alter(session, node)
    if step.converts:
        converted = convert(session, node)
        if step.action == "convert":
            return converted
    if step.action == "redefine":
        proven = redefine(session, node)
        if proven is not None:
            return proven
    # Imported here because the other actions compute no rows.
    from mvbuild.refresh.materialize import refresh

    return refresh(session, plan, step)
