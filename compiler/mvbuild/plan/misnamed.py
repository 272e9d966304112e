"""World + selection -> the MVs that name a missing column in `partition_by`, `sort_by` or a data test, or one of a wrong type, and must not
be computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mvbuild.diagnostics import Diagnostic
from mvbuild.freshness.observed import World
from mvbuild.graph.model import NodeId
from mvbuild.lineage.layout_types import mistyped_in_layout
from mvbuild.lineage.named import misnamed_in_layout, misnamed_in_test
from mvbuild.project.loaded import DataTest


def misnamed_columns(world: World, selected: frozenset[NodeId]) -> Mapping[NodeId, Diagnostic]:
    """By the current catalog; empty if columns are unknown before Spark sees the query. Settled MVs are not computed."""
    graph, selected = world.graph, selected - world.settled
    shaped = [n for n in graph.views if n.id in selected and (n.model.config.partition_by or n.model.config.sort_by)]
    gated = (test for test in graph.tests if not selected.isdisjoint(test.gates))
    tests = [test for test in gated if isinstance(test.test, DataTest) and test.query is None]
    if not shaped and not tests:
        return {}
    # Imported here because a run with nothing to refresh needs no SQL parser.
    from mvbuild.lineage.bind import bind
    from mvbuild.lineage.schemas import of_states

    asked = {node.id for node in shaped} | {id for test in tests for id in test.reads}
    read = {graph.nodes[id].identifier for id in asked | graph.ancestors(asked)}
    bound = bind(graph, of_states({name: state for name in read if (state := world.observed.states.get(name)) is not None}), asked)

    def columns(id_: NodeId) -> Sequence[str] | None:
        found = bound.columns.get(id_)
        return None if found is None else [column.name for column in found]

    wrong: dict[NodeId, Diagnostic] = {}
    for node in shaped:
        for diagnostic in misnamed_in_layout(node, names) if (names := columns(node.id)) is not None else ():
            wrong.setdefault(node.id, diagnostic)
        for diagnostic in mistyped_in_layout(node, bound.columns.get(node.id, ())):
            wrong.setdefault(node.id, diagnostic)
    for test in tests:
        for diagnostic in misnamed_in_test(graph, test, columns):
            # The one of them that is refreshed last would depend on the test.
            wrong |= {gate: diagnostic for gate in test.gates if gate not in wrong}
    return wrong
