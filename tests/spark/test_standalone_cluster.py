"""`mvbuild run` in a process of its own, its Spark on a standalone cluster of two workers: built, left alone, refreshed incrementally."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from servers import standalone
from spark import quick
from spark.projects import NoSpark, Project, arrow_bag, bag, new_project

pytestmark = pytest.mark.proof

MODELS = {
    "by_group": "SELECT grp, count(*) AS n, sum(amount) AS total FROM raw.a GROUP BY grp",
    "large": "SELECT grp, total FROM {{ ref('by_group') }} WHERE total > 10",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[standalone.Cluster]:
    try:
        with standalone.running(tmp_path_factory.mktemp("cluster")) as cluster:
            yield cluster
    except standalone.NoCluster as error:
        pytest.skip(f"no Spark cluster: {error}")


def settings(master: str) -> str:
    memory = {"spark.driver.memory": "512m", "spark.executor.memory": "512m", "spark.driver.host": "127.0.0.1"}
    quickly = {**quick.JVM, "spark.executor.extraJavaOptions": quick.JVM["spark.driver.extraJavaOptions"], **quick.QUERIES}
    config = {**memory, "spark.driver.bindAddress": "127.0.0.1", **quickly}
    # One group of rows a task: both workers have something to do.
    config["spark.sql.files.openCostInBytes"] = "128m"
    target = {"namespace": "main", "spark": {"master": master, "config": config}}
    # Whatever it costs.
    models = {"+refresh_policy": "incremental"}
    return f"name: clustered\ntarget: c\ntargets: {json.dumps({'c': target})}\nmodels: {json.dumps(models)}\n"


def rows(first: int, last: int) -> pa.Table:
    return pa.table({"id": range(first, last), "grp": [n % 5 for n in range(first, last)], "amount": [n % 7 for n in range(first, last)]})


def run(project: Project) -> dict[str, tuple[str, str]]:
    """Name -> status and strategy."""
    result = project.command("run")
    assert result.returncode == 0, result.stdout + result.stderr
    told = json.loads((project.root / "target" / "run_results.json").read_text())["results"]
    return {one["unique_id"].rpartition(".")[2]: (one["status"], one["adapter_response"].get("strategy") or "") for one in told}


def expected(table: pa.Table) -> pa.Table:
    grouped = table.group_by("grp").aggregate([("id", "count"), ("amount", "sum")])
    return grouped.rename_columns(["grp", "n", "total"])


def test_built_left_alone_and_refreshed_on_two_workers(cluster: standalone.Cluster, tmp_path: Path) -> None:
    models = {f"models/{name}.sql": sql for name, sql in MODELS.items()}
    project = new_project(tmp_path / "project", {"mvbuild.yml": settings(cluster.master), **models}, None)
    project.make("raw.a", rows(0, 100))
    project.table("raw.a").append(rows(100, 200))
    assert {status for status, _ in run(project).values()} == {"success"}
    assert project.only_reused()
    assert set(project.statuses(spark=NoSpark()).values()) == {"reused"}

    project.table("raw.a").append(rows(200, 203))
    again = run(project)
    assert again["by_group"] == ("success", "merge")
    assert arrow_bag(project.arrow("main.by_group__storage")) == arrow_bag(expected(rows(0, 203)))
    large = [(row["grp"], row["total"]) for row in expected(rows(0, 203)).to_pylist() if row["total"] > 10]
    assert arrow_bag(project.arrow("main.large__storage")) == bag(large)
    launched = re.findall(r"Launching executor \S+ on worker (\S+)", cluster.log.read_text(encoding="utf-8"))
    assert len(set(launched)) == standalone.WORKERS
