"""model + columns of its view -> the view's SQL in every dialect: its definition, or a SELECT of its storage."""

from __future__ import annotations

from collections.abc import Sequence

from mvbuild.diagnostics import Diagnostic, ProjectError
from mvbuild.graph.definition import definition
from mvbuild.graph.model import Graph, ModelNode
from mvbuild.names import TableIdentifier, quote

DEFINITION = "mvbuild.definition"
"""Property of a view that selects from the storage: the definition, which its text does not tell any more."""


def representations(graph: Graph, node: ModelNode, columns: Sequence[str], *, of_storage: bool) -> dict[str, str]:
    """Dialect -> SQL. ProjectError where a dialect cannot say it."""
    from mvbuild.graph.dialects import Inexpressible, inexpressible, translate

    storage = node.storage if of_storage else None
    text = storage_select(storage, columns) if storage else definition(graph, node).text
    found, problems = {"spark": text}, []
    for dialect in _further(node):
        try:
            found[dialect] = translate(text, dialect, node.identifier.catalog)
        except Inexpressible as exc:
            problems.append(inexpressible(node, dialect, exc))
    if problems:
        raise ProjectError(problems)
    return found


def storage_select(storage: TableIdentifier, columns: Sequence[str]) -> str:
    """What a view selects for engines that know no MVs."""
    return f"SELECT {', '.join(quote(c) for c in columns)} FROM {storage.sql}"


def dialect_problems(graph: Graph) -> list[Diagnostic]:
    """Dialects that do not exist, and definitions that a dialect cannot say."""
    problems: list[Diagnostic] = []
    for node in graph.models:
        if node.materialized == "ephemeral" or not node.model.config.dialects:
            continue
        from mvbuild.graph.dialects import unknown_dialects

        unknown = unknown_dialects(node)
        problems += unknown
        if not unknown and node.model.config.catalog_view == "definition":
            try:
                representations(graph, node, (), of_storage=False)
            except ProjectError as exc:
                problems += exc.diagnostics
    return problems


def _further(node: ModelNode) -> list[str]:
    return [d for d in dict.fromkeys(name.lower() for name in node.model.config.dialects) if d != "spark"]
