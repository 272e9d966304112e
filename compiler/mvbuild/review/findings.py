"""changes + what is bound of both versions -> the findings of lint that the change brings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from mvbuild.diagnostics import Diagnostic
from mvbuild.graph.model import ModelNode, NodeId
from mvbuild.lineage.model import Bound
from mvbuild.lint.check import lint
from mvbuild.lint.facts import Facts
from mvbuild.lint.model import Finding as LintFinding
from mvbuild.review.model import NodeChange


def new_findings(changes: Iterable[NodeChange], before: Bound | None, now: Bound) -> tuple[Diagnostic, ...] | None:
    """Of the models that were changed, and those around them: who reads a model decides on what is said of it. None: nothing is known of
    the version before."""
    if before is None:
        return None
    listed = tuple(changes)
    sides = []
    for side in (before, now):
        graph = side.graph
        own = {c.id for c in listed} & graph.nodes.keys()
        around = own | graph.ancestors(own, 1) | graph.descendants(own, 1)
        selected = frozenset(id for id in around if isinstance(graph.nodes[id], ModelNode))
        sides.append(lint(Facts(graph=graph, selected=selected, columns=side.columns)).findings)
    return _only_new(sides[0], sides[1], {c.former_id: c.id for c in listed if c.former})


def _only_new(before: Iterable[LintFinding], now: Iterable[LintFinding], renamed: Mapping[NodeId, NodeId]) -> tuple[Diagnostic, ...]:
    """What lint says now and has not said before: as often, of the same model or file, wherever it stands there."""
    known = Counter(_key(f, renamed) for f in before)
    found = []
    for finding in now:
        key = _key(finding, {})
        if known[key] > 0:
            known[key] -= 1
        else:
            found.append(finding.diagnostic)
    return tuple(found)


def _key(finding: LintFinding, renamed: Mapping[NodeId, NodeId]) -> tuple[str, str, str]:
    place = renamed.get(finding.node, finding.node) if finding.node else finding.span.file.path
    return finding.code, place, finding.found.message
