"""views of the catalog + graph -> the nodes and views that read a view or its storage. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import ProjectError
from mvbuild.freshness.view_names import Catalogs, name_in_view
from mvbuild.graph.model import Graph, ModelNode
from mvbuild.names import TableIdentifier
from mvbuild.parse.project import parse_text
from mvbuild.parse.renaming import mentions
from mvbuild.ports.states import ViewState
from mvbuild.storage.names import storage_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependent:
    """A view of the catalog, or a model of the project that the catalog may not have yet."""

    identifier: TableIdentifier
    is_model: bool = False
    why: str = ""
    """Empty if it certainly reads the target."""

    def __str__(self) -> str:
        return f"{self.identifier}{' (' + self.why + ')' if self.why else ''}"


def dependents(
    targets: Mapping[TableIdentifier, Iterable[TableIdentifier]], views: Iterable[ViewState], graph: Graph
) -> dict[TableIdentifier, tuple[Dependent, ...]]:
    """For each target, by its own names and those of its storage, everything that reads it directly."""
    views, catalogs = tuple(views), Catalogs.of(graph.project).names
    return {target: tuple(_of_one(target, tuple(names), views, graph, catalogs)) for target, names in targets.items()}


def _of_one(
    target: TableIdentifier, names: tuple[TableIdentifier, ...], views: Iterable[ViewState], graph: Graph, catalogs: tuple[str, ...]
) -> list[Dependent]:
    keys = {n.key for n in names}
    found = {}
    for view in views:
        why = _reads(view, names, catalogs) if view.identifier.key != target.key else None
        if why is not None:
            found[view.identifier.key] = Dependent(identifier=view.identifier, why=why)
    for node in graph.models:
        reads = [graph.nodes[r].identifier.key for r in node.reads if not isinstance(graph.nodes[r], ModelNode)]
        if keys & set(reads) and node.identifier.key not in found:
            found[node.identifier.key] = Dependent(identifier=node.identifier, is_model=True, why=f"model {node.model.name}")
    return sorted(found.values(), key=lambda d: d.identifier)


def _reads(view: ViewState, names: tuple[TableIdentifier, ...], catalogs: tuple[str, ...]) -> str | None:
    """None if it does not read it, otherwise a note. An unknown catalog may be this one under another name."""
    keys, known = {n.key for n in names}, {c.lower() for c in (view.identifier.catalog, *catalogs)}
    pointer = storage_name(view)
    if pointer is not None and pointer.key in keys:
        return "has it as its storage"
    for dialect, sql in view.representations.items():
        # Most views mention none of the names, and parsing takes most of the time.
        if not any(mentions(sql, n) for n in names):
            continue
        try:
            query = parse_text(f"view {view.identifier}", sql)
        except ProjectError:
            return f"its {dialect} text cannot be parsed, and mentions the name"
        for found in (name_in_view(read, view, catalogs) for read in query.reads):
            if found.key in keys:
                return ""
            if found.catalog.lower() not in known and found.key[1:] in {key[1:] for key in keys}:
                return f"its {dialect} text names it in the catalog '{found.catalog}', which this project does not know"
    return None
