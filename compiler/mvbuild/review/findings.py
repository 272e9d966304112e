"""changes + the bound columns of both versions -> the lint findings that the change introduces."""

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
    """Findings of the changed models and of those around them, because readers of a model affect its findings. None: nothing is known about
    the previous version."""
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
    """Findings that are new, counted per model or file, wherever they are in it."""
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
