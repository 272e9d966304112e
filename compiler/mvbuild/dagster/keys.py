"""Graph -> the asset keys of its nodes, and the checks of its data tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dagster import AssetKey

from mvbuild.graph.model import Graph, ModelNode, NodeId, SeedNode, TestNode


def asset_key(graph: Graph, id_: NodeId) -> AssetKey:
    """`[namespace..., name]`, as dagster-dbt's default is for a model with a schema."""
    identifier = graph.nodes[id_].identifier
    return AssetKey([*identifier.namespace, identifier.name])


def assets_of(graph: Graph) -> Mapping[NodeId, AssetKey]:
    """What a run writes: MVs, views and seeds. Ephemeral models are part of what reads them."""
    written = (n for n in graph.nodes.values() if isinstance(n, SeedNode) or (isinstance(n, ModelNode) and n.materialized != "ephemeral"))
    return {node.id: asset_key(graph, node.id) for node in written}


def parents_of(graph: Graph, id_: NodeId) -> Sequence[AssetKey]:
    """The assets that a node reads, through ephemeral models."""

    def below(id_: NodeId) -> Iterator[NodeId]:
        for read in graph.nodes[id_].reads:
            node = graph.nodes[read]
            if isinstance(node, ModelNode) and node.materialized == "ephemeral":
                yield from below(read)
            else:
                yield read

    return [asset_key(graph, id) for id in dict.fromkeys(below(id_))]


def asset_of_test(test: TestNode, assets: Mapping[NodeId, AssetKey]) -> AssetKey | None:
    """The asset that a test is a check of: the one that waits for it, otherwise the first that it reads. None for tests of sources."""
    candidates = (*test.gates[-1:], *test.reads)
    return next((assets[id] for id in candidates if id in assets), None)
