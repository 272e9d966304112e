"""Graph + columns -> Names: the meaning of the names in a file, and what is known about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from mvbuild.dataclass import dataclass
from mvbuild.graph.model import Graph, ModelNode, Node, SeedNode, TableNode, ViewNode
from mvbuild.lineage.model import Bound, Column
from mvbuild.lsp.cte_columns import cte_columns
from mvbuild.lsp.sql_text import Named, cte_heads, is_cte, tables, without_comments, without_strings
from mvbuild.project.loaded import Properties
from mvbuild.source import SourceFile, Span


@dataclass(frozen=True, kw_only=True)
class Names:
    """Names are compared as in Spark, ignoring case."""

    graph: Graph
    bound: Bound

    def node(self, named: Named) -> Node | None:
        words = tuple(part.lower() for part in named.parts)
        if named.kind == "ref":
            return self._own.get(words[-1]) if named.version is None else self._versions.get((words[-1], named.version.lower()))
        if named.kind == "source":
            return self._sources.get(words)
        target = self.graph.project.target
        full = words if len(words) > 2 else (target.catalog_name.lower(), *words)
        default = (target.catalog_name.lower(), *(part.lower() for part in target.namespace), *words)
        own = self._own.get(words[0]) if len(words) == 1 else self._sources.get(words)
        return self._identified.get(words) or self._identified.get(full) or self._identified.get(default) or own

    def columns(self, node: Node) -> tuple[Column, ...]:
        return self.bound.known(node.id)

    def in_scope(self, text: str) -> Iterator[tuple[str, Node]]:
        """(qualifier of its columns, node) of the tables of a text, without its CTEs."""
        known = cte_heads(text)
        for named in tables(text):
            node = None if is_cte(named, known) else self.node(named)
            if node is not None:
                yield named.alias or named.parts[-1], node

    def ctes_in_scope(self, text: str) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        """(qualifier of its columns, name, columns) of the CTEs that a text reads."""
        known = cte_heads(text)
        for named in tables(text):
            if is_cte(named, known):
                yield named.alias or named.parts[0], named.parts[0], self.columns_of_cte(text, named.parts[0])

    def columns_of_cte(self, text: str, name: str) -> tuple[str, ...]:
        return cte_columns(without_strings(without_comments(text)), name, self._names_of)

    def _names_of(self, named: Named) -> tuple[str, ...]:
        node = self.node(named)
        return tuple(column.name for column in self.columns(node)) if node is not None else ()

    @property
    def models(self) -> Iterable[Node]:
        """Models and seeds; of a model with versions, the latest one."""
        return self._own.values()

    def versions(self, name: str = "") -> Iterable[ModelNode]:
        """The versions of a model, or of all models that have versions."""
        return [node for (model, _), node in self._versions.items() if not name or model == name.lower()]

    @property
    def sources(self) -> Iterable[tuple[str, str]]:
        return [(n.source.source, n.source.name) for n in self._sources.values() if isinstance(n, TableNode | ViewNode) and n.source]

    @cached_property
    def _own(self) -> dict[str, Node]:
        named = (
            n for n in self.graph.nodes.values() if isinstance(n, SeedNode) or (isinstance(n, ModelNode) and not n.model.needs_version)
        )
        return {ref_name_of(n).lower(): n for n in named}

    @cached_property
    def _versions(self) -> dict[tuple[str, str], ModelNode]:
        found = ((n.model.version, n) for n in self.graph.models)
        return {(version.model.lower(), str(version.v).lower()): n for version, n in found if version is not None}

    @cached_property
    def _sources(self) -> dict[tuple[str, ...], Node]:
        found = ((n.source, n) for n in self.graph.nodes.values() if isinstance(n, TableNode | ViewNode) and n.source)
        return {(source.source.lower(), source.name.lower()): n for source, n in found}

    @cached_property
    def _identified(self) -> dict[tuple[str, ...], Node]:
        found = (n for n in self.graph.nodes.values() if not (isinstance(n, ModelNode) and n.materialized == "ephemeral"))
        return {n.identifier.key: n for n in found}


def ref_name_of(node: Node) -> str:
    """The name that files of the project use for it. The versions of a model share it."""
    return node.model.ref_name if isinstance(node, ModelNode) else name_of(node)


def name_of(node: Node) -> str:
    """The name that is shown to users. A version of a model has its version in it."""
    if isinstance(node, ModelNode):
        return node.model.name
    if isinstance(node, SeedNode):
        return node.seed.name
    return f"{node.source.source}.{node.source.name}" if node.source else str(node.identifier)


def properties_of(node: Node) -> Properties:
    if isinstance(node, ModelNode):
        return node.model.properties
    if isinstance(node, SeedNode):
        return node.seed.properties
    return node.source.properties if node.source else Properties()


def home_of(node: Node) -> Span | None:
    """Where it is defined; a table that the project does not declare is defined elsewhere."""
    if isinstance(node, ModelNode):
        return Span(node.model.file, 0, 0)
    if isinstance(node, SeedNode):
        return Span(SourceFile(node.seed.path, ""), 0, 0)
    return node.source.span if node.source else None
