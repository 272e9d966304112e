"""names inside views of the catalog -> the tables that they mean: completed from what the view version recorded, in any catalog."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvbuild.diagnostics import ProjectError
from mvbuild.freshness.rules import judge
from mvbuild.lifecycle.removed_models import find_named
from mvbuild.names import TableIdentifier
from mvbuild.plan.dependents import dependents
from mvbuild.ports.states import ViewState
from unit.freshness.foreign_views import Metastores, other_metastore, write_view
from unit.serve.readers import read
from unit.worlds import Shop, append, base_table, name, shop

FILES = {
    "mvbuild.yml": "name: shop\n",
    "models/m.sql": "SELECT id FROM views.v\n",
    "models/n.sql": "SELECT id FROM raw.orders\n",
}
DECLARED = {
    "models/s.yml": "sources: [{name: crm, catalog: other, properties: {type: sql, uri: 'sqlite:///x.db'}, tables: [{name: customers}]}]\n"
}


@pytest.fixture
def of(tmp_path: Path) -> Shop:
    """Two catalogs with a `raw.orders` each, and a project that knows both."""
    made = shop(tmp_path, {**FILES, **DECLARED})
    other_metastore(made, "raw.orders")
    return made


def reads(of: Shop) -> list[str]:
    """The tables that the view reads."""
    graph = of.world().graph
    view = next(n for n in graph.nodes.values() if n.identifier == name("views.v"))
    return [str(graph.nodes[id].identifier) for id in view.reads]


@pytest.mark.parametrize(
    ("sql", "catalog", "namespace", "wanted"),
    [
        ("SELECT id FROM orders", None, ("raw",), "lake.raw.orders"),
        ("SELECT id FROM orders", "lake", ("raw",), "lake.raw.orders"),
        ("SELECT id FROM orders", "LAKE", ("raw",), "lake.raw.orders"),
        ("SELECT id FROM raw.orders", None, (), "lake.raw.orders"),
        ("SELECT id FROM orders", "other", ("raw",), "other.raw.orders"),
        ("SELECT id FROM raw.orders", "other", ("elsewhere",), "other.raw.orders"),
        ("SELECT id FROM other.raw.orders", None, ("raw",), "other.raw.orders"),
        ("SELECT id FROM other.raw.orders", "lake", ("raw",), "other.raw.orders"),
        ("SELECT id FROM other.raw.orders", "other", ("raw",), "other.raw.orders"),
        ("SELECT id FROM OTHER.raw.orders", "lake", ("raw",), "other.raw.orders"),
        ("SELECT id FROM `lake`.`raw`.`orders`", "other", ("raw",), "lake.raw.orders"),
        ("SELECT id FROM lake.raw.orders", "unknown", ("raw",), "lake.raw.orders"),
        ("SELECT id FROM other.raw.orders", "unknown", (), "other.raw.orders"),
    ],
)
def test_names_are_completed_from_the_view_and_not_from_the_project(
    of: Shop, sql: str, catalog: str | None, namespace: tuple[str, ...], wanted: str
) -> None:
    write_view(of, "views.v", sql, catalog=catalog, namespace=namespace)
    assert reads(of) == [wanted]
    assert of.statuses() == {"m": "success", "n": "success"}
    (executed,) = [sql for sql in of.engine.executed if "view_query" in sql]
    assert f"FROM {wanted} VERSION AS OF " in executed
    assert set(of.actions().values()) == {"reuse"}


def test_a_table_of_another_catalog_is_pinned_and_followed(of: Shop) -> None:
    write_view(of, "views.v", "SELECT id FROM orders", catalog="other", namespace=("raw",))
    of.run()
    assert isinstance(of.sources, Metastores)
    append(of.catalog, "raw.orders")
    assert of.actions() == {"m": "reuse", "n": "refresh"}
    other = of.sources.catalogs["other"]
    moved = other.append_snapshot(TableIdentifier("other", ("raw",), "orders"), {"id": [8]})
    assert of.actions() == {"m": "refresh", "n": "refresh"}
    of.run()
    assert of.table("main.m__storage").properties[f"iceberg.base.snapshot.{moved.uuid}"] == str(moved.current_snapshot_id)
    assert {o["type"] for o in of.sources.options} == {"sql"}
    assert set(of.actions().values()) == {"reuse"}


def test_a_view_that_moves_to_another_catalog_makes_its_readers_stale(of: Shop) -> None:
    write_view(of, "views.v", "SELECT id FROM orders", catalog="lake", namespace=("raw",))
    of.run()
    write_view(of, "views.v", "SELECT id FROM orders", catalog="other", namespace=("raw",))
    assert not judge(of.world())["model.shop.m"].is_fresh
    assert of.actions() == {"m": "refresh", "n": "reuse"}


@pytest.mark.parametrize(
    ("sql", "catalog"),
    [("SELECT id FROM orders", "unknown"), ("SELECT id FROM raw.orders", "unknown"), ("SELECT id FROM spark_catalog.raw.orders", None)],
)
def test_a_catalog_that_nobody_knows_blocks_what_reads_the_view_and_nothing_else(of: Shop, sql: str, catalog: str | None) -> None:
    write_view(of, "views.v", sql, catalog=catalog, namespace=("raw",))
    steps = {s.node.rpartition(".")[2]: s for s in of.plan().steps}
    assert {n: s.action for n, s in steps.items()} == {"m": "blocked", "n": "refresh"}
    blocked = steps["m"].diagnostic
    assert blocked is not None
    assert (blocked.code, blocked.span.file.path if blocked.span else "") == ("unknown-catalog", "models/m.sql")
    assert of.statuses() == {"m": "error", "n": "success"}
    answer = judge(of.world())["model.shop.m"]
    assert answer.state != "fresh"
    assert "base-table-unreadable" in [r.code for r in answer.reasons]
    with pytest.raises(ProjectError) as caught:
        read(of, "m")
    assert [d.code for d in caught.value.diagnostics] == ["unknown-catalog"]
    assert "n" in read(of, "n").sql


def test_a_view_below_a_view_is_completed_by_its_own_version(of: Shop) -> None:
    write_view(of, "views.v", "SELECT id FROM below", catalog="lake", namespace=("views",))
    write_view(of, "views.below", "SELECT id FROM orders", catalog="other", namespace=("raw",))
    assert of.statuses() == {"m": "success", "n": "success"}
    assert any("FROM other.raw.orders VERSION AS OF " in sql for sql in of.engine.executed)
    write_view(of, "views.below", "SELECT id FROM orders", catalog="unknown", namespace=("raw",))
    assert of.actions() == {"m": "blocked", "n": "reuse"}


def test_a_metastore_that_fails_blocks_only_what_reads_a_view_into_it(of: Shop) -> None:
    write_view(of, "views.v", "SELECT id FROM orders", catalog="other", namespace=("raw",))
    assert isinstance(of.sources, Metastores)
    of.sources.fails = "orders"
    steps = {s.node.rpartition(".")[2]: s for s in of.plan().steps}
    assert {n: s.action for n, s in steps.items()} == {"m": "blocked", "n": "refresh"}
    assert steps["m"].diagnostic is not None
    assert steps["m"].diagnostic.code == "catalog-unreachable"


def test_a_view_or_nothing_at_all_in_another_metastore_blocks_with_a_code(of: Shop) -> None:
    assert isinstance(of.sources, Metastores)
    write_view(of, "views.v", "SELECT id FROM nowhere", catalog="other", namespace=("raw",))
    assert {s.node: s.diagnostic.code for s in of.plan().steps if s.diagnostic} == {"model.shop.m": "missing-table"}
    there = Shop(of.root, catalog=of.sources.catalogs["other"])
    write_view(there, "raw.nowhere", "SELECT id FROM orders", catalog="other", namespace=("raw",))
    assert {s.node: s.diagnostic.code for s in of.plan().steps if s.diagnostic} == {"model.shop.m": "catalog-error"}


def test_a_catalog_that_only_spark_is_configured_for_is_not_guessed(tmp_path: Path) -> None:
    target = "targets: {dev: {spark: {config: {spark.sql.catalog.other: org.apache.iceberg.spark.SparkCatalog}}}}\n"
    of = shop(tmp_path, {**FILES, "mvbuild.yml": f"name: shop\n{target}"})
    base_table(of.catalog, "other.raw.orders")
    write_view(of, "views.v", "SELECT id FROM other.raw.orders", catalog="lake")
    assert of.actions() == {"m": "blocked", "n": "refresh"}


def test_who_reads_a_table_goes_by_the_catalog_of_the_view(of: Shop) -> None:
    write_view(of, "views.v", "SELECT id FROM orders", catalog="other", namespace=("raw",))
    write_view(of, "views.w", "SELECT id FROM orders", catalog="lake", namespace=("raw",))
    states = of.catalog.load([name("views.v"), name("views.w")]).values()
    found = dependents({name("raw.orders"): [name("raw.orders")]}, [s for s in states if isinstance(s, ViewState)], of.world().graph)
    assert [str(d.identifier) for d in found[name("raw.orders")] if not d.is_model] == ["lake.views.w"]


def test_a_view_that_cannot_be_expanded_still_keeps_what_it_names(of: Shop) -> None:
    """The unknown catalog may be this one under another name."""
    of.run("n")
    write_view(of, "views.v", "SELECT id FROM n", catalog="unknown", namespace=("main",))
    found = find_named(of.world(), of.catalog, "n")
    assert [str(d.identifier) for d in found.dependents] == ["lake.views.v"]
    assert "unknown" in found.dependents[0].why
