"""ages of sources -> target/sources.json in the shape of dbt's sources v3."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from mvbuild.artifacts.manifest import criteria
from mvbuild.artifacts.timestamps import timestamp
from mvbuild.graph.model import Graph, TableNode
from mvbuild.project.source_freshness import SourceFreshness

SCHEMA = "https://schemas.getdbt.com/dbt/sources/v3.json"


def sources_json(
    graph: Graph, ages: Iterable[tuple[TableNode, int | None, timedelta | None, str]], *, now_ms: int, version: str
) -> dict[str, Any]:
    """Each source with the time of its snapshot in milliseconds, its age and its status."""
    return {
        "metadata": {
            "dbt_schema_version": SCHEMA,
            "dbt_version": "2.0.0",
            "generated_at": timestamp(now_ms),
            "invocation_id": graph.project.invocation.id,
            "env": {"mvbuild_version": version},
        },
        "results": [_result(node, loaded, age, status, now_ms) for node, loaded, age, status in ages],
        "elapsed_time": 0.0,
    }


def _result(node: TableNode, loaded_ms: int | None, age: timedelta | None, status: str, now_ms: int) -> dict[str, Any]:
    if loaded_ms is None or age is None:
        return {"unique_id": node.id, "error": "the table has no snapshot, or cannot be read", "status": "runtime error"}
    freshness = (node.source.freshness if node.source else None) or SourceFreshness()
    return {
        "unique_id": node.id,
        "max_loaded_at": timestamp(loaded_ms),
        "snapshotted_at": timestamp(now_ms),
        "max_loaded_at_time_ago_in_s": age.total_seconds(),
        "status": status,
        "criteria": criteria(freshness),
        "adapter_response": {},
        "timing": [],
        "thread_id": "MainThread",
        "execution_time": 0.0,
    }
