"""Graph -> errors in the columns of its models: of all, or only of those that can have changed since a check found none."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence

from mvbuild.cache.keys import digest
from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, ProjectError
from mvbuild.graph.model import Graph, ModelNode, NodeId
from mvbuild.lineage.named import duplicates, misnamed


def check_columns(graph: Graph) -> tuple[Diagnostic, ...]:
    """Raise ProjectError with every definite error in names, types and contracts; without errors, return the warnings."""
    found = column_findings(graph)
    if any(d.severity == "error" for d in found):
        raise ProjectError(found)
    return found


def column_findings(graph: Graph) -> tuple[Diagnostic, ...]:
    """Every definite error in names, types and contracts, and the warnings.

    Without schemas.lock, it checks only queries that have an enforced contract, or that read columns which their models and seeds lack.
    """
    checked = _Checked.of(graph)
    changed = checked.changed() if checked is not None else None
    if changed is not None and not changed:
        return ()
    wrong = _misnamed(graph, graph.nodes.keys() if changed is None else changed)
    bound = _bound(graph, None if changed is None else changed | graph.descendants(changed))
    found = tuple(dict.fromkeys((*wrong, *bound)))
    if checked is not None and not found:
        checked.note()
    return found


def _bound(graph: Graph, ids: Collection[NodeId] | None) -> tuple[Diagnostic, ...]:
    """What the binder finds in some models, or in all."""
    # Imported here because most runs have nothing to check, and importing the SQL parser takes longer than everything else that they do.
    from mvbuild.lineage.bind import bind
    from mvbuild.lineage.lock import of_lock, read_lock
    from mvbuild.lineage.unmatched import unmatched

    try:
        tables = read_lock(graph)
    except ProjectError as exc:
        return exc.diagnostics
    if tables is not None:
        return bind(graph, of_lock(tables, graph), ids, keep=True).diagnostics
    suspects = {*graph.contracts, *unmatched(graph, graph.nodes if ids is None else ids)}
    return bind(graph, only=suspects).diagnostics if suspects else ()


def _misnamed(graph: Graph, ids: Collection[NodeId]) -> tuple[Diagnostic, ...]:
    """Errors that the text of a query shows without schemas: settings and tests that name columns which the query does not select,
    and two columns of one name."""

    def columns(id_: NodeId) -> Sequence[str] | None:
        node = graph.nodes[id_]
        is_plain = isinstance(node, ModelNode) and id_ not in graph.undefined and "|>" not in node.query.sql.text
        return node.query.columns if isinstance(node, ModelNode) and is_plain else None

    return (*misnamed(graph, columns, ids), *duplicates(graph, columns, ids))


@dataclass(frozen=True, slots=True)
class _Checked:
    """The cached result of a check that found nothing, for the next run."""

    graph: Graph
    key: str
    """A hash of everything that the columns depend on, except the texts of some models."""
    texts: Mapping[NodeId, str]
    """Hashes of those texts."""

    @classmethod
    def of(cls, graph: Graph) -> _Checked | None:
        from mvbuild.lineage.lock import lock_path

        if graph.outlined is None:
            return None
        path = lock_path(graph)
        key = digest("columns", graph.outlined.key, path.read_bytes() if path.is_file() else None)
        changed = {node.id: digest(node.model.file.text) for node in graph.models if node.id in graph.outlined.changed}
        return cls(graph, key, changed)

    def changed(self) -> set[NodeId] | None:
        """The models whose text differs from the one that was checked; None if there was no such check."""
        known = self.graph.project.cache.graphs.get(self.key)
        try:
            before: Mapping[NodeId, str] = json.loads(known) if known is not None else {}
            return {id for id in {*before, *self.texts} if before.get(id) != self.texts.get(id)} if known is not None else None
        except (ValueError, TypeError, AttributeError):
            return None

    def note(self) -> None:
        self.graph.project.cache.graphs.put(self.key, json.dumps(self.texts))
