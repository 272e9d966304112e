"""A built project with MVs -> which modules the commands import that have nothing to compute."""

from __future__ import annotations

from spark.projects import order
from spark.shop import MakeProject, shop
from unit.imports import WORLD, imported


def test_neither_spark_nor_pyiceberg_where_there_is_nothing_to_do(project: MakeProject) -> None:
    built = shop(project)
    assert built.refreshed() == {"active_customers", "revenue_daily"}
    for command in ("run", "plan", "status"):
        assert imported(command, "--project-dir", str(built.root)).isdisjoint(WORLD), command
    built.append("raw.orders", order(9, 1, "2026-03-01", "1.00"))
    # Changes are in manifests, which PyIceberg reads; Spark is for refreshes only.
    assert "pyspark" not in imported("plan", "--project-dir", str(built.root))
    assert built.refreshed() == {"revenue_daily"}
