"""SQL of another engine in a view of mvbuild's: Spark goes on reading the view."""

from __future__ import annotations

import pytest

from mvbuild import api
from mvbuild.names import TableIdentifier
from mvbuild.ports.commits import ViewCommit
from mvbuild.ports.states import ViewState
from spark.projects import messages, order, orders
from spark.shop import MakeProject

pytestmark = pytest.mark.proof

VIEW = TableIdentifier("lake", ("mart",), "m")


def test_spark_reads_a_view_that_keeps_the_defaults_of_another_engine(project: MakeProject) -> None:
    files = {"models/mart/m.sql": "SELECT upper('x') AS x, order_id FROM raw.orders\n"}
    made = project({"mvbuild.yml": "name: shop\nmodels: {mart: {+namespace: mart}}\n", **files})
    made.make("raw.orders", orders((1, 1, "2026-01-05", "10.00")))
    assert made.run().ok
    own = api.catalog_of(api.compile(made.root))
    view = own.load([VIEW])[VIEW]
    assert isinstance(view, ViewState)
    commit = ViewCommit(
        identifier=VIEW,
        expect_metadata_location=view.metadata_location,
        version_id=2,
        schema=view.schema,
        representations={**view.representations, "trino": "SELECT 'X' AS x, order_id FROM orders"},
        default_namespace=("raw",),
        default_catalog="another",
        properties={},
    )
    own.commit([commit])
    made.write({"models/mart/m.yml": "models:\n  - name: m\n    columns: [{name: order_id, description: Its number.}]\n"})
    made.append("raw.orders", order(2, 1, "2026-01-06", "1.00"))
    result = made.run()
    assert result.ok, messages(result)
    found = made.view("mart.m")["versions"][-1]
    assert {r["dialect"] for r in found["representations"]} == {"spark", "trino"}
    assert (found.get("default-catalog"), found["default-namespace"]) == ("another", ["raw"])
    assert made.bag("SELECT * FROM lake.mart.m") == made.bag("SELECT upper('x'), order_id FROM lake.raw.orders")
    assert made.only_reused()
