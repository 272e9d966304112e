"""A project on a Hive metastore: Spark, which has its own client of it, reads tables and views."""

from __future__ import annotations

from pathlib import Path

import pytest

from servers.hive import NoServer, running
from spark.conftest import Lake
from spark.served import built, live, live_on_branch

pytestmark = pytest.mark.proof


def test_a_project(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "hive").mkdir()
    try:
        with running(tmp_path / "hive") as server, built(lake, tmp_path / "project", server.properties) as project:
            live(project)
            live_on_branch(project)
            assert sorted(r.viewName for r in project.sql("SHOW VIEWS IN lake.mart")) == [
                "countries",
                "french_orders",
                "revenue_daily",
                "revenue_total",
            ]
            # What Spark itself makes is found, too.
            project.sql("CREATE VIEW lake.main.by_spark AS SELECT max(revenue) AS best FROM lake.mart.revenue_daily")
            project.write({"models/best.sql": "SELECT best FROM main.by_spark\n"})
            assert project.refreshed() == {"best"}
            assert project.arrow("main.best__storage").num_rows == 1
    except NoServer as error:
        pytest.skip(f"no Hive metastore: {error}")
