"""A project on a REST catalog: built, left alone, changed and built again, read by plain Spark and plain PyIceberg."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog

from mvbuild.adapters.spark.catalog_conf import catalog_conf
from servers.proxy import Proxy, between
from servers.rest import NoServer, running
from spark.conftest import Lake
from spark.projects import Project, arrow_bag, messages, order
from spark.served import live_on_branch
from spark.shop import DAILY, FILES, MORE, shop

MONTHLY = "SELECT month(order_date) AS month, sum(revenue) AS revenue FROM {{ ref('revenue_daily') }} GROUP BY 1\n"
LARGE = "{{ config(materialized='view') }}\nSELECT * FROM raw.orders WHERE amount > 5\n"
OF_LARGE = "SELECT count(*) AS orders FROM {{ ref('large_orders') }}\n"
TARGET = "target: rest\ntargets:\n  rest:\n    namespace: main\n    catalog: {{name: lake, type: rest, uri: '{uri}'}}\n"


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """Of a server with nothing in it."""
    try:
        with running(tmp_path_factory.mktemp("rest")) as server, between(server.uri) as proxy:
            yield proxy
    except NoServer as error:
        pytest.skip(f"no REST server: {error}")


@pytest.fixture(scope="module")
def built(lake: Lake, proxy: Proxy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    properties = {"type": "rest", "uri": proxy.uri}
    session = lake.session.newSession()
    for key, value in catalog_conf("lake", properties).items():
        session.conf.set(key, value)
    catalog: Any = load_catalog("lake", **properties)
    project = shop(_maker(tmp_path_factory.mktemp("project"), session, catalog, proxy.uri), MORE)
    result = project.run()
    assert result.ok, messages(result)
    yield project
    catalog.close()


def _maker(root: Path, session: Any, catalog: Any, uri: str) -> Callable[[Mapping[str, str]], Project]:
    def make(files: Mapping[str, str]) -> Project:
        settings = {"mvbuild.yml": FILES["mvbuild.yml"] + TARGET.format(uri=uri)}
        return Project(root=root, spark=session, catalog=catalog).write({**files, **settings})

    return make


def assert_right(project: Project) -> None:
    """For Spark and PyIceberg, view and storage."""
    expected = project.bag(DAILY)
    assert project.bag("SELECT * FROM lake.mart.revenue_daily") == expected
    assert project.bag("SELECT * FROM lake.mart.revenue_daily__storage") == expected
    assert arrow_bag(project.arrow("mart.revenue_daily__storage")) == expected


def test_views_and_storages_have_the_rows_of_the_queries(built: Project) -> None:
    assert_right(built)
    assert [row.viewName for row in built.sql("SHOW VIEWS IN lake.mart")] == ["countries", "revenue_daily", "revenue_total"]
    view = built.catalog.load_view(("mart", "revenue_daily")).metadata
    assert view.properties["iceberg.materialized.view.storage.table"] == "mart.revenue_daily__storage"
    child = built.catalog.load_view(("main", "active_customers")).metadata
    assert built.table("mart.revenue_daily__storage").properties[f"iceberg.child.view.version.{child.view_uuid}"] == "1"


def test_nothing_to_do_then_changes_then_nothing_to_do(built: Project) -> None:
    assert built.only_reused()
    built.append("raw.orders", order(9, 1, "2026-03-01", "7.00"))
    assert built.refreshed() == {"revenue_daily", "revenue_total"}
    assert_right(built)
    assert built.only_reused()
    built.assert_tidy()


@pytest.mark.proof
def test_another_definition_is_another_version(built: Project) -> None:
    daily = FILES["models/marts/revenue_daily.sql"]
    built.write({"models/marts/revenue_daily.sql": daily.replace("count(*) AS orders", "count(*) AS orders, max(o.amount) AS best")})
    assert "revenue_daily" in built.refreshed()
    assert built.catalog.load_view(("mart", "revenue_daily")).metadata.current_version_id == 2
    assert "best" in built.arrow("mart.revenue_daily__storage").column_names
    assert built.bag("SELECT * FROM lake.mart.revenue_daily") == built.bag(
        DAILY.replace("count(*) AS orders", "count(*) AS orders, max(o.amount) AS best")
    )
    built.write({"models/marts/revenue_daily.sql": daily})
    assert "revenue_daily" in built.refreshed()
    assert built.catalog.load_view(("mart", "revenue_daily")).metadata.current_version_id == 3
    assert_right(built)
    assert built.only_reused()


@pytest.mark.proof
def test_a_whole_run_in_one_request(built: Project, proxy: Proxy) -> None:
    built.append("raw.orders", order(10, 2, "2026-03-02", "3.00"))
    built.write({"models/marts/monthly.sql": MONTHLY, "models/large_orders.sql": LARGE, "models/marts/large.sql": OF_LARGE})
    proxy.seen.clear()
    assert built.refreshed(atomic=True) == {"revenue_daily", "revenue_total", "monthly", "large_orders", "large"}
    assert proxy.counted("POST /v1/transactions/commit") == 1
    assert_right(built)
    assert built.bag("SELECT * FROM lake.mart.monthly") == built.bag(
        "SELECT month(order_date), sum(revenue) FROM lake.mart.revenue_daily GROUP BY 1"
    )
    # The server chose the uuid of the new view, after the MV that reads it was built and recorded.
    uuid = built.catalog.load_view(("main", "large_orders")).metadata.view_uuid
    assert built.table("mart.large__storage").properties[f"iceberg.child.view.version.{uuid}"] == "1"
    assert built.only_reused()
    built.assert_tidy()


@pytest.mark.proof
def test_a_branch(built: Project) -> None:
    live_on_branch(built)
