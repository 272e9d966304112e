"""NodeChanges + lineage -> the same with the users of what was removed, renamed or retyped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic
from mvbuild.equivalence.edit import Finding
from mvbuild.graph.model import Graph, ModelNode, NodeId
from mvbuild.lineage.model import Bound, Origin
from mvbuild.project.loaded import DataTest
from mvbuild.review.model import Break, NodeChange


@dataclass(frozen=True, kw_only=True)
class Impact:
    """`before` and `now`: the columns of both versions, if they were bound. `changed`: models with another query now."""

    graph: Graph
    before: Bound | None
    now: Bound
    changed: frozenset[NodeId]
    renamed: Mapping[NodeId, NodeId]

    def of(self, change: NodeChange) -> NodeChange:
        """Add the columns that only lineage finds, and the consumers of everything that was removed."""
        if change.resource_type == "test" or change.what in ("added", "removed"):
            return change
        findings = [*change.findings, *self._retyped(change)]
        columns = dict.fromkeys(name for f in findings if f.kind == "breaking" for name in f.columns)
        breaks = [b for column in columns for b in self._breaks(change.id, column, set())]
        unique = {(b.column, b.consumer): b for b in reversed(breaks)}
        ordered = sorted(unique.values(), key=lambda b: (not b.certain, b.name, b.column))
        return replace(change, findings=tuple(findings), breaks=tuple(ordered))

    def _retyped(self, change: NodeChange) -> Iterator[Finding]:
        """Columns with another type than before, whatever the cause."""
        old_id = next((old for old, new in self.renamed.items() if new == change.id), change.id)
        if self.before is None or old_id not in self.before.columns:
            return
        named = {name.lower() for f in change.findings if f.kind == "breaking" for name in f.columns}
        for column in self.now.columns.get(change.id, ()):
            former = self.before.column(old_id, column.name)
            if former and former.type and column.type and former.type != column.type and column.key not in named:
                message = f"column '{column.name}' is now {column.type}, and was {former.type}"
                yield Finding(kind="breaking", message=message, columns=(column.name,))

    def _breaks(self, id_: NodeId, column: str, seen: set[tuple[NodeId, str]]) -> Iterator[Break]:
        """Direct readers that name the column; for readers that only pass it on with a star, their readers."""
        if (id_, column.lower()) in seen:
            return
        seen.add((id_, column.lower()))
        for test in self.graph.tests:
            if isinstance(test.test, DataTest) and test.reads[:1] == (id_,) and test.test.column.lower() == column.lower():
                yield Break(column=column, consumer=test.id, name=test.name, certain=True, span=test.span)
        for child in self.graph.children.get(id_, ()):
            node = self.graph.nodes[child]
            if not isinstance(node, ModelNode):
                continue
            used = self._used(node, id_, column)
            if used is not None:
                yield used
            for passed in self._passed(child, id_, column):
                yield from self._breaks(child, passed, seen)

    def _used(self, node: ModelNode, parent: NodeId, column: str) -> Break | None:
        """Whether a reader names a column: certainly, or as far as its text shows. A star does not name columns."""
        text = node.query.sql.text
        match = re.search(rf"(?<!\w){re.escape(column)}(?!\w)", text, re.IGNORECASE)
        if match is None:
            return None
        missed = next((d for d in self.now.diagnostics if d.span and d.span.file is node.model.file and _is_named(d, column)), None)
        if missed is not None:
            return Break(column=column, consumer=node.id, name=node.model.name, certain=True, span=missed.span)
        takes = self._takes(node, parent, column)
        if takes is False:
            return None
        span = node.query.sql.span(match.start(), match.end())
        return Break(column=column, consumer=node.id, name=node.model.name, certain=takes is True, span=span)

    def _takes(self, node: ModelNode, parent: NodeId, column: str) -> bool | None:
        """What lineage knows; None if it does not know everything."""
        if node.id not in self.changed:
            former = next((old for old, new in self.renamed.items() if new == parent), parent)
            return _takes(self.before, node.id, Origin(former, column))
        if node.model.file.path in self._wrong or parent not in self.now.columns:
            return None
        return _takes(self.now, node.id, Origin(parent, column))

    @cached_property
    def _wrong(self) -> frozenset[str]:
        """Files with names that were not found."""
        return frozenset(d.span.file.path for d in self.now.diagnostics if d.span)

    def _passed(self, child: NodeId, parent: NodeId, column: str) -> Iterable[str]:
        """The columns of a reader that disappeared too, because a star included them."""
        if self.before is None or child in self.changed:
            return ()
        node = self.graph.nodes[child]
        if isinstance(node, ModelNode) and re.search(rf"(?<!\w){re.escape(column)}(?!\w)", node.query.sql.text, re.IGNORECASE):
            return ()
        return [o.column for o in self.before.readers(parent, column) if o.node == child]


def _is_named(diagnostic: Diagnostic, column: str) -> bool:
    """Whether a name that was not found is that of a column."""
    text = diagnostic.span.text if diagnostic.span else ""
    return diagnostic.code == "unknown-column" and text.rpartition(".")[2].strip(" `").lower() == column.lower()


def _takes(bound: Bound | None, node: NodeId, column: Origin) -> bool | None:
    lineage = bound.lineage.get(node) if bound else None
    if bound is None or lineage is None:
        return None
    if any(column.key == origin.key for origins in (*lineage.values, lineage.rows) for origin in origins):
        return True
    return None if node not in bound.columns or lineage.unsure else False
