"""Each function whose type depends on its arguments, called with arguments of many types: it has the type that Spark says, or none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from sqlglot import exp

from mvbuild.lineage import functions
from mvbuild.lineage.expression_type import type_of
from mvbuild.lineage.types import parsed, text
from mvbuild.parse.dialect import parse, tokenize
from spark.conftest import Lake

pytestmark = pytest.mark.proof

TYPES = {
    "b": "boolean",
    "i": "int",
    "dc": "decimal(10,2)",
    "s": "string",
    "bi": "binary",
    "dt": "date",
    "ai": "array<int>",
    "m": "map<int,int>",
}
MORE = ("", ", i", ", {}")
"""Further arguments; {} is the first one again."""
DEPENDING = {*functions.SAME, *functions._RULES, *functions.TEXTS, *functions.CONCATENATIONS, *functions.WIDEST}
WINDOWED = ("lag", "lead", "first_value", "last_value", "nth_value")


def expression_of(call: str) -> exp.Expr | None:
    sql = f"SELECT {call} AS x FROM t"
    try:
        (tree,) = parse(tokenize(sql), sql)
    except Exception:  # noqa: BLE001 a call that sqlglot cannot parse has no type
        return None
    assert tree is not None
    found: exp.Expr = tree.expressions[0].unalias()
    return found


def calls(function: str) -> Iterator[str]:
    return (f"{function}({name}{more.format(name)})" for name in TYPES for more in MORE)


@pytest.fixture(scope="module")
def spark(lake: Lake) -> Any:
    columns = ", ".join(f"CAST(NULL AS {type_}) AS {name}" for name, type_ in TYPES.items())
    lake.engine.session.sql(f"CREATE OR REPLACE TEMP VIEW typed AS SELECT {columns}")
    yield lake.engine.session
    lake.engine.session.catalog.dropTempView("typed")


def types(function: str, spark: Any) -> Iterator[tuple[str, str, str]]:
    """(call, its type here, its type in Spark), of those that Spark accepts and whose type is known here."""
    over = " OVER (PARTITION BY i ORDER BY i)" if function in WINDOWED else ""
    columns = {name: parsed(type_) for name, type_ in TYPES.items()}
    for call in calls(function):
        node = expression_of(call)
        own = text(type_of(node, columns)) if node is not None and functions.name_of(node) in DEPENDING else None
        if own is None:
            continue
        try:
            yield call, own, spark.sql(f"SELECT {call}{over} AS x FROM typed").schema[0].dataType.simpleString()
        except AnalysisException:
            continue


def test_types_are_those_of_spark(spark: Any) -> None:
    names = [row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect() if row[0].isidentifier()]
    found = [one for name in names for one in types(name, spark)]
    assert [one for one in found if text(parsed(one[2])) != one[1]] == []
    assert len(found) > 150
