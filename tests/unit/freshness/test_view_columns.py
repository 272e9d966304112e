"""A view of the catalog takes the first columns of its query by position, with the names and types that it was created with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mvbuild.freshness.expansion import expanded_sql
from mvbuild.graph.model import ModelNode
from mvbuild.lineage.types import parsed
from mvbuild.lineage.upcasts import may_upcast
from unit.freshness.foreign_views import write_view
from unit.freshness.other_hands import evolve
from unit.worlds import Shop, shop

PROJECT = {"mvbuild.yml": "name: shop\n", "models/m.sql": "SELECT * FROM views.v\n", "models/n.sql": "SELECT id FROM raw.orders\n"}


def field(id_: int, name: str, type_: Any = "long") -> dict[str, Any]:
    return {"id": id_, "name": name, "type": type_, "required": False}


def columns(*fields: dict[str, Any]) -> Any:
    return lambda _: list(fields)


G, V = field(1, "g", "int"), field(2, "v", "string")


@pytest.fixture
def of(tmp_path: Path) -> Shop:
    made = shop(tmp_path, PROJECT)
    evolve(made, columns(G, V))
    return made


def view(of: Shop, sql: str, *fields: dict[str, Any], selected: str = "g,v") -> None:
    schema = {"type": "struct", "schema-id": 0, "fields": list(fields)}
    write_view(of, "views.v", sql, namespace=("raw",), schema=schema, properties={"spark.query-column-names": selected})


def taken(of: Shop) -> str:
    """What m selects from the view's query, and the names that the columns of the query get."""
    world = of.world()
    node = world.graph.model("model.shop.m")
    assert isinstance(node, ModelNode)
    sql = expanded_sql(world.graph, node.query, node.reads, lambda leaf: "t").text.replace("`", "")
    selected, _, _ = sql.removeprefix("SELECT * FROM (SELECT ").partition(" FROM (")
    return f"{selected} of {sql.rpartition('view_query(')[2].partition(')')[0]}"


STAR = "SELECT * FROM orders"


@pytest.mark.parametrize(
    ("sql", "of_view", "of_table", "wanted"),
    [
        ("SELECT g, g FROM orders", (field(1, "a", "int"), field(2, "b", "int")), (G, V), "a, b of a, b"),
        (STAR, (G, V), (G, V), "g, v of g, v"),
        (STAR, (G, V), (G, V, field(3, "z")), "g, v of g, v, further_0"),
        (
            STAR,
            (G, field(2, "further_0", "string")),
            (G, V, field(3, "z")),
            "g, further_0 of g, further_0, further_1",
        ),
        (STAR, (G, V), (field(3, "z", "int"), G, V), "g, CAST(v AS string) AS v of g, v, further_0"),
        (STAR, (G, V), (field(8, "other", "int"), V), "g, v of g, v"),
        (
            "SELECT v, g FROM orders",
            (field(1, "g", "string"), field(2, "v", "int")),
            (G, V),
            "g, v of g, v",
        ),
        (STAR, (field(1, "g"), V), (G, V), "CAST(g AS bigint) AS g, v of g, v"),
        (
            "SELECT o.*, 1 AS one FROM orders o",
            (G, V, field(3, "one", "int")),
            (G, V),
            "g, v, one of g, v, one",
        ),
        (
            "SELECT * FROM orders JOIN orders AS p USING (g)",
            (G, V),
            (G, V),
            "g, v of g, v, further_0",
        ),
    ],
)
def test_columns_are_taken_by_position(of: Shop, sql: str, of_view: Any, of_table: Any, wanted: str) -> None:
    view(of, sql, *of_view)
    evolve(of, columns(*of_table))
    assert taken(of) == wanted


@pytest.mark.parametrize(
    ("of_table", "told"),
    [
        ((G,), "it has 2 columns, and its query now gives 1"),
        ((field(1, "g", "long"), V), "its column g is of type int, and its query now gives bigint there"),
        ((V, G), "its column g is of type int, and its query now gives string there"),
    ],
)
def test_a_view_that_spark_cannot_read_any_more_blocks_what_reads_it(of: Shop, of_table: Any, told: str) -> None:
    view(of, STAR, G, V)
    evolve(of, columns(*of_table))
    steps = {s.node.rpartition(".")[2]: s for s in of.plan().steps}
    assert {name: step.action for name, step in steps.items()} == {"m": "blocked", "n": "refresh"}
    blocked = steps["m"].diagnostic
    assert blocked is not None
    assert told in blocked.message


def test_a_view_of_a_view(of: Shop) -> None:
    """What the lower one gives has the lower one's types."""
    write_view(
        of,
        "views.low",
        STAR,
        namespace=("raw",),
        schema={"type": "struct", "schema-id": 0, "fields": [field(1, "a"), field(2, "b", "string")]},
    )
    view(of, "SELECT * FROM views.low", field(1, "g"), V)
    assert taken(of) == "g, v of g, v"


def test_columns_that_move_make_the_reader_of_a_star_view_stale(of: Shop) -> None:
    view(of, STAR, G, V)
    evolve(of, columns(G, V, field(3, "z", "string")))
    of.run("m")
    evolve(of, columns(G, field(3, "z", "string"), V))
    assert of.actions("m") == {"m": "refresh"}


@pytest.mark.parametrize(
    ("one", "to", "wanted"),
    [
        ("int", "bigint", True),
        ("bigint", "int", False),
        ("bigint", "float", True),
        ("float", "double", True),
        ("double", "float", False),
        ("int", "decimal(10,0)", True),
        ("int", "decimal(9,0)", False),
        ("double", "decimal(38,10)", False),
        ("decimal(9,0)", "int", True),
        ("decimal(10,0)", "int", False),
        ("decimal(9,2)", "double", False),
        ("decimal(9,2)", "decimal(12,2)", True),
        ("decimal(12,2)", "decimal(9,2)", False),
        ("decimal(9,2)", "decimal(10,4)", False),
        ("date", "timestamp", True),
        ("timestamp", "date", False),
        ("timestamp", "timestamp_ntz", True),
        ("int", "string", True),
        ("string", "int", False),
        ("boolean", "int", False),
        ("void", "date", True),
        ("array<int>", "array<bigint>", True),
        ("array<int>", "string", False),
        ("map<string,int>", "map<string,string>", True),
        ("struct<a:int>", "struct<b:bigint>", True),
        ("struct<a:int>", "struct<a:int,b:int>", False),
    ],
)
def test_implicit_casts(one: str, to: str, wanted: bool) -> None:
    ours, theirs = parsed(one), parsed(to)
    assert ours is not None
    assert theirs is not None
    assert may_upcast(ours, theirs) == wanted
