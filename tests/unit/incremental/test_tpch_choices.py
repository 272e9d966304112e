"""All of TPC-H, from the sizes of its tables alone: after deletes of 0.1 % at scale 5, a refresh by the change is estimated to be cheaper than
a full one for every query that reads what changed.

tests/benchmarks/incremental.py measures this with Spark, in twenty minutes. Here a change of the rules of choice shows in seconds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlglot
from sqlglot import exp

from mvbuild.freshness.observed import Leaf, Pin
from mvbuild.incremental.auxiliary_cost import cost_of_views
from mvbuild.incremental.building import LeafColumns
from mvbuild.incremental.choose import Question, cheapest_of
from mvbuild.incremental.clock import with_calls
from mvbuild.incremental.cost import CHEAPER, full_cost
from mvbuild.incremental.cuts import divisions
from mvbuild.incremental.from_clause import MARKER
from mvbuild.incremental.hypothetical import guessed_types
from mvbuild.incremental.inputs import Input, Inputs
from mvbuild.incremental.shape import Shape, shape_of
from mvbuild.incremental.sizes import Sizes, StorageSize
from mvbuild.ports.changes import ValueRange
from mvbuild.source import MappedText, SourceFile
from spark.tpch_streams import second_set
from unit.incremental.sized_tables import READ, deleted, sized
from unit.worlds import Shop, base_table

QUERIES = Path(__file__).parents[2] / "spark" / "tpch"
MONEY = "decimal(15,2)"
TABLES: Mapping[str, tuple[int, Mapping[str, str]]] = {
    "customer": (
        750_000,
        {
            "c_custkey": "long",
            "c_name": "string",
            "c_address": "string",
            "c_nationkey": "long",
            "c_phone": "string",
            "c_acctbal": MONEY,
            "c_mktsegment": "string",
            "c_comment": "string",
        },
    ),
    "lineitem": (
        30_000_000,
        {
            "l_orderkey": "long",
            "l_partkey": "long",
            "l_suppkey": "long",
            "l_linenumber": "int",
            "l_quantity": MONEY,
            "l_extendedprice": MONEY,
            "l_discount": MONEY,
            "l_tax": MONEY,
            "l_returnflag": "string",
            "l_linestatus": "string",
            "l_shipdate": "date",
            "l_commitdate": "date",
            "l_receiptdate": "date",
            "l_shipinstruct": "string",
            "l_shipmode": "string",
            "l_comment": "string",
        },
    ),
    "nation": (25, {"n_nationkey": "long", "n_name": "string", "n_regionkey": "long", "n_comment": "string"}),
    "orders": (
        7_500_000,
        {
            "o_orderkey": "long",
            "o_custkey": "long",
            "o_orderstatus": "string",
            "o_totalprice": MONEY,
            "o_orderdate": "date",
            "o_orderpriority": "string",
            "o_clerk": "string",
            "o_shippriority": "int",
            "o_comment": "string",
        },
    ),
    "part": (
        1_000_000,
        {
            "p_partkey": "long",
            "p_name": "string",
            "p_mfgr": "string",
            "p_brand": "string",
            "p_type": "string",
            "p_size": "int",
            "p_container": "string",
            "p_retailprice": MONEY,
            "p_comment": "string",
        },
    ),
    "partsupp": (
        4_000_000,
        {"ps_partkey": "long", "ps_suppkey": "long", "ps_availqty": "int", "ps_supplycost": MONEY, "ps_comment": "string"},
    ),
    "region": (5, {"r_regionkey": "long", "r_name": "string", "r_comment": "string"}),
    "supplier": (
        50_000,
        {
            "s_suppkey": "long",
            "s_name": "string",
            "s_address": "string",
            "s_nationkey": "long",
            "s_phone": "string",
            "s_acctbal": MONEY,
            "s_comment": "string",
        },
    ),
}
"""The name of each table, its rows at scale 5, and its columns."""
CHANGED = {"lineitem": 30_000, "orders": 7_500}


def _range(_change: object, _side: object, column: str) -> ValueRange | None:
    """Orders with neighbouring keys were deleted."""
    return ValueRange(type="long", low=1, high=30_000, has_null=False) if column.endswith("orderkey") else None


CLUSTERED: Any = SimpleNamespace(**{**vars(READ), "range": _range})


def queries() -> Iterator[tuple[str, str]]:
    """Those that read what changed, with the marker of each table."""
    numbers = {name: at for at, name in enumerate(TABLES)}
    for file in sorted(QUERIES.glob("*.sql")):
        tree = sqlglot.parse_one(second_set(file.read_text(encoding="utf-8")), read="spark")
        read = [table for table in tree.find_all(exp.Table) if table.name in numbers]
        if CHANGED.keys() & {table.name for table in read}:
            for table in read:
                named = exp.to_table(f"`{MARKER}{numbers[table.name]}`", dialect="spark", alias=table.alias or table.name)
                table.replace(named)
            yield file.stem, tree.sql("spark")


def shares(root: Path, query: str) -> Iterator[tuple[str, float]]:
    """Each way to refresh by the change, with its cost as a share of a full refresh."""
    catalog = Shop(root).catalog
    tables = [sized(base_table(catalog, f"raw.{name}"), rows, types) for name, (rows, types) in TABLES.items()]
    columns = [LeafColumns.of_iceberg(types, frozenset()) for _, types in TABLES.values()]
    shape: Shape = shape_of(with_calls(query), columns, None)
    storage = sized(base_table(catalog, "main.mv"), 10_000, guessed_types(shape))
    inputs = [
        Input(leaf=Leaf(node=t.identifier.name), pin=Pin(table=t, snapshot_id=t.current_snapshot_id or 0, ref=None, moves=True), old=1)
        for t in tables
    ]
    given = Inputs(text=MappedText.of(SourceFile(Path("mv.sql"), query)), inputs=tuple(inputs))
    read = {at for at, name in enumerate(TABLES) if f"{MARKER}{at}`" in query and name in CHANGED}
    changes = {at: deleted(tables[at], CHANGED[list(TABLES)[at]]) for at in read}
    node: Any = SimpleNamespace(model=SimpleNamespace(config=SimpleNamespace(float_tolerance=None)))
    nothing: Any = None
    asked = Question(world=nothing, node=node, reasons=(), pins={}, has_children=False, same_layout=True, policy="auto", read=CLUSTERED)
    full = full_cost(shape.root, Sizes(inputs=given.inputs, changes=changes, storage=StorageSize(table=storage), read=CLUSTERED))
    choice = cheapest_of(asked, storage, given, shape, changes, may_be_full=True)
    if choice.is_incremental and choice.expected is not None:
        yield choice.strategy, choice.expected.share_of(full)
    for division in divisions(shape, len(TABLES)):
        cost = cost_of_views(asked, storage, given, division, [None] * len(division.cuts), changes)
        if cost is not None:
            yield f"{len(division.cuts)} views", cost.share_of(full)


QUERIES_OF_CHANGES = dict(queries())


def test_nineteen_read_what_changed() -> None:
    assert len(QUERIES_OF_CHANGES) == 19


@pytest.mark.parametrize("name", QUERIES_OF_CHANGES)
def test_is_refreshed_by_its_change(tmp_path: Path, name: str) -> None:
    found = dict(shares(tmp_path, QUERIES_OF_CHANGES[name]))
    assert min(found.values(), default=1.0) < CHEAPER, found
