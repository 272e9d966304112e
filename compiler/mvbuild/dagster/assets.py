"""project -> an AssetsDefinition: an asset per model and seed, a check per data test, and a run of mvbuild as their computation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dagster import (
    AssetCheckSpec,
    AssetKey,
    AssetsDefinition,
    AssetSpec,
    Failure,
    MetadataValue,
    TableColumn,
    TableSchema,
    multi_asset,
)

from mvbuild import api
from mvbuild.dagster.events import Reporter, live
from mvbuild.dagster.keys import asset_of_test, assets_of, parents_of
from mvbuild.graph.definition import fingerprint_of
from mvbuild.graph.model import Graph, ModelNode, NodeId, SeedNode

PROJECT = "mvbuild/project"
"""The key of an asset's metadata with the directory of its project."""


def mvbuild_assets(
    project: str | Path | Graph,
    *,
    name: str | None = None,
    group: str | None = None,
    target: str | None = None,
    vars: Mapping[str, Any] | None = None,
    full_refresh: bool = False,
    threads: int | None = None,
    spark: Any = None,
) -> AssetsDefinition:
    """The assets of a project. They can be run together or in part: a run refreshes what is stale among the chosen ones.

    A fresh MV is observed and not materialized, so nothing below it is triggered; only the first time it is materialized, since Dagster
    would call it missing. `group`: one group for all assets, instead of the folders of the models. Raises ProjectError.
    """
    graph = project if isinstance(project, Graph) else api.compile(project, target=target, vars=vars)
    assets = assets_of(graph)

    @multi_asset(  # type: ignore[untyped-decorator]
        name=name or graph.project.name,
        specs=[_spec(graph, id, key, group) for id, key in assets.items()],
        check_specs=list(_checks(graph, assets)),
        can_subset=True,
    )
    def run(context) -> Iterator[Any]:  # type: ignore[no-untyped-def]
        # Dagster accepts only its own class as the type of `context`, and not its name as text.
        # Compiled when it runs: the files may have changed since the definitions were loaded.
        now = project if isinstance(project, Graph) else api.compile(project, target=target, vars=vars)
        reporter = Reporter(context, now, assets)
        is_part = context.selected_asset_keys != set(assets.values())
        select = _selectors(now, assets, context.selected_asset_keys) if is_part else []
        for event in live(now, select=select, full_refresh=full_refresh, threads=threads, spark=spark):
            yield from reporter.of(event)
        if reporter.failed:
            raise Failure(description="\n".join(reporter.failed))

    return run


def _spec(graph: Graph, id_: NodeId, key: AssetKey, group: str | None) -> AssetSpec:
    node = graph.nodes[id_]
    assert isinstance(node, ModelNode | SeedNode), id_
    made = node.model if isinstance(node, ModelNode) else node.seed
    config = node.model.config if isinstance(node, ModelNode) else node.seed.config
    columns = [TableColumn(c.name, type=c.data_type or "string", description=c.description) for c in made.properties.columns]
    folder = "_".join(node.model.folders) if isinstance(node, ModelNode) else "seeds"
    defined = isinstance(node, ModelNode) and id_ not in graph.undefined
    return AssetSpec(
        key=key,
        deps=parents_of(graph, id_),
        skippable=True,
        description=made.properties.description or None,
        group_name=group or (folder if folder.isidentifier() else None),
        kinds={"iceberg", "mvbuild"},
        code_version=fingerprint_of(graph, node) if defined else None,  # type: ignore[arg-type]
        tags={f"mvbuild/{tag}": "" for tag in config.tags if tag.replace("-", "_").isidentifier()},
        metadata={
            PROJECT: str(graph.project.root),
            "mvbuild/relation": str(node.identifier),
            **({"dagster/column_schema": MetadataValue.table_schema(TableSchema(columns))} if columns else {}),
        },
    )


def _checks(graph: Graph, assets: Mapping[NodeId, AssetKey]) -> Iterator[AssetCheckSpec]:
    for test in graph.tests:
        asset = asset_of_test(test, assets)
        if asset is not None:
            yield AssetCheckSpec(name=test.name, asset=asset, metadata={"mvbuild/severity": test.severity})


def _selectors(graph: Graph, assets: Mapping[NodeId, AssetKey], keys: set[AssetKey]) -> Sequence[str]:
    """Selectors of the files of the chosen assets: no two of them share one."""
    chosen = [graph.nodes[id] for id, key in assets.items() if key in keys and id in graph.nodes]
    return [f"path:{n.model.file.path if isinstance(n, ModelNode) else n.seed.path}" for n in chosen if isinstance(n, ModelNode | SeedNode)]
