"""A project on the SQL catalog of a PostgreSQL server."""

from __future__ import annotations

from pathlib import Path

import pytest

from servers.postgres import PASSWORD, NoServer, running
from spark.conftest import Lake
from spark.served import built, live, live_on_branch

pytestmark = pytest.mark.proof


def test_a_project(lake: Lake, tmp_path: Path) -> None:
    try:
        with running() as server:
            properties = {"type": "sql", "uri": server.fresh(), "warehouse": f"file://{tmp_path}/warehouse"}
            with built(lake, tmp_path / "project", properties) as project:
                live(project)
                live_on_branch(project)
                assert [row.viewName for row in project.sql("SHOW VIEWS IN lake.mart")] == [
                    "countries",
                    "french_orders",
                    "revenue_daily",
                    "revenue_total",
                ]
    except NoServer as error:
        pytest.skip(f"no PostgreSQL: {error}")
    written = [path for path in (tmp_path / "project" / "target").rglob("*") if path.is_file()]
    assert written
    assert not any(PASSWORD.encode() in path.read_bytes() for path in written)
