"""dbt-core's own readers of the three artifacts."""

from __future__ import annotations

import sys
from pathlib import Path

from dbt.artifacts.schemas.catalog import CatalogArtifact
from dbt.artifacts.schemas.manifest import WritableManifest
from dbt.artifacts.schemas.run import RunResultsArtifact

target = Path(sys.argv[1]) / "target"
manifest = WritableManifest.read_and_check_versions(str(target / "manifest.json"))
results = RunResultsArtifact.read_and_check_versions(str(target / "run_results.json"))
catalog = CatalogArtifact.read_and_check_versions(str(target / "catalog.json"))
unknown = {result.unique_id for result in results.results} - manifest.nodes.keys()
assert not unknown, unknown
# What is loaded can be used as a state: refs are found, and every parent has an entry.
from dbt.contracts.graph.manifest import Manifest  # noqa: E402

loaded = Manifest.from_writable_manifest(manifest)
loaded.build_flat_graph()
assert all(parent in loaded.nodes or parent in loaded.sources for n in loaded.nodes.values() for parent in n.depends_on_nodes)
print(
    f"{len(manifest.nodes)} nodes, {len(manifest.sources)} sources, {len(results.results)} results, {len(catalog.nodes)} tables in the catalog"
)
