"""properties of a catalog on a server -> the shop on it: built, left alone, changed and built again, read by plain Spark and plain PyIceberg."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyiceberg.catalog import load_catalog

from mvbuild import api
from mvbuild.adapters.spark.catalog_conf import catalog_conf
from spark.conftest import Lake
from spark.projects import NoSpark, Project, arrow_bag, messages, named, order
from spark.shop import DAILY, FILES, MORE, shop

SECRETS = {"s3.secret-access-key": "LAKE_SECRET"}
"""Properties that the project takes from the environment."""
FORMAT = "models:\n  - name: countries\n    config: {{storage: {{format: {of}}}}}\n"


@contextmanager
def built(lake: Lake, root: Path, properties: Mapping[str, str]) -> Iterator[Project]:
    session = lake.session.newSession()
    for key, value in catalog_conf("lake", properties).items():
        session.conf.set(key, value)
    catalog: Any = load_catalog("lake", **properties)
    project = Project(root=root, spark=session, catalog=catalog)
    settings = {"mvbuild.yml": FILES["mvbuild.yml"] + _target(properties)}
    shop(lambda files: project.write({**files, **settings}), {**MORE, "models/marts/countries.yml": FORMAT.format(of="metadata-file")})
    result = project.run()
    assert result.ok, messages(result)
    yield project
    catalog.close()


def _target(properties: Mapping[str, str]) -> str:
    values = {key: f"{{{{ env_var('{SECRETS[key]}') }}}}" if key in SECRETS else value for key, value in properties.items()}
    lines = "".join(f'      {key}: "{value}"\n' for key, value in values.items())
    return f"target: served\ntargets:\n  served:\n    namespace: main\n    catalog:\n      name: lake\n{lines}"


def assert_right(project: Project, query: str = DAILY, *, views: bool = True) -> None:
    """For Spark and PyIceberg, view and storage."""
    expected = project.bag(query)
    assert project.bag("SELECT * FROM lake.mart.revenue_daily__storage") == expected
    assert arrow_bag(project.arrow("mart.revenue_daily__storage")) == expected
    if views:
        assert project.bag("SELECT * FROM lake.mart.revenue_daily") == expected
        assert project.bag("SELECT * FROM lake.mart.countries") == project.bag(
            "SELECT country, count(*) FROM lake.raw.customers GROUP BY 1"
        )


def live(project: Project, *, views: bool = True) -> None:
    """From the first run on."""
    assert_right(project, views=views)
    assert project.only_reused()
    project.append("raw.orders", order(9, 1, "2026-03-01", "7.00"))
    assert project.refreshed() == {"revenue_daily", "revenue_total"}
    assert_right(project, views=views)
    daily = FILES["models/marts/revenue_daily.sql"]
    project.write({"models/marts/revenue_daily.sql": daily.replace("count(*) AS orders", "count(*) AS orders, max(o.amount) AS best")})
    assert "revenue_daily" in project.refreshed()
    assert_right(project, DAILY.replace("count(*) AS orders", "count(*) AS orders, max(o.amount) AS best"), views=views)
    project.write({"models/marts/countries.yml": FORMAT.format(of="table-properties")})
    result = project.run()
    assert result.ok, messages(result)
    assert project.arrow("mart.countries__storage").num_rows == 3
    assert project.only_reused()
    project.assert_tidy()


def live_on_branch(project: Project) -> None:
    """New rows, another schema, a new view and a new MV are on the branch alone, until it is published."""
    project.append("raw.orders", order(21, 2, "2026-03-05", "3.00"))
    daily = (project.root / "models/marts/revenue_daily.sql").read_text(encoding="utf-8")
    project.write(
        {
            "models/marts/revenue_daily.sql": daily.replace("count(*) AS orders", "count(*) AS orders, min(o.amount) AS least"),
            "models/french.sql": "{{ config(materialized='view') }}\nSELECT customer_id FROM {{ ref('active_customers') }} WHERE country = 'FR'\n",
            "models/marts/french_orders.sql": "SELECT count(*) AS n FROM raw.orders JOIN {{ ref('french') }} USING (customer_id)\n",
        }
    )
    storage = project.table("mart.revenue_daily__storage")
    graph = api.compile(project.root, branch="pr-42")
    result = api.run(graph, spark=project.spark)
    assert result.ok, messages(result)
    assert {"french", "french_orders", "revenue_daily"} <= {name for name, status in named(result).items() if status == "success"}
    assert set(named(api.run(graph, spark=NoSpark())).values()) == {"reused"}
    now = project.table("mart.revenue_daily__storage")
    assert (now.current_snapshot(), now.schema()) == (storage.current_snapshot(), storage.schema())
    assert project.table("mart.french_orders__storage").current_snapshot() is None
    api.publish(project.root, "pr-42")
    assert "least" in project.table("mart.revenue_daily__storage").schema().column_names
    assert project.arrow("mart.french_orders__storage").num_rows == 1
    assert project.only_reused()
