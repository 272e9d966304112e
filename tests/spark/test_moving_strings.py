"""Strings that mean now: mvbuild finds every one that Spark's optimizer replaces with a moment of today."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from py4j import java_gateway, protocol
from sqlglot.errors import SqlglotError

from mvbuild.lineage.moving_strings import moving_strings
from mvbuild.parse.dialect import parse, tokenize
from spark.conftest import Lake
from spark.function_registry import functions
from unit.lineage.test_moving_strings import MOMENTS, TYPES

pytestmark = pytest.mark.proof

_GROUPS = ("array_funcs", "collection_funcs", "conditional_funcs", "conversion_funcs", "datetime_funcs", "map_funcs", "predicate_funcs")
"""Groups of functions with arguments that become dates and timestamps. Of all groups, no other had one (tried with Spark 4.1)."""
_BESIDE = ((), ("d",), ("at",), ("n",), ("s",), ("d", "d"), ("at", "at"), ("n", "n"), ("s", "s"), ("n", "d"), ("s", "at"))
"""The other arguments of a call."""
_FLOOR = 150
"""Calls with such a string."""


class Optimizer:
    """Two rules of Spark's optimizer: the one that writes functions as expressions, and the one that replaces strings that mean now."""

    def __init__(self, lake: Lake) -> None:
        self._session = lake.session._jsparkSession
        columns = ", ".join(f"{name} {type_}" for name, type_ in TYPES.items())
        lake.session.createDataFrame([], columns).createOrReplaceTempView("t")
        jvm = lake.session._jvm
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        for_name = jvm.java.lang.Class.forName
        names = [f"org.apache.spark.sql.catalyst.optimizer.{name}$" for name in ("ReplaceExpressions", "SpecialDatetimeValues")]
        self._expressions, self._moments = (for_name(name, True, loader).getField("MODULE$").get(None) for name in names)

    def replaces(self, sql: str) -> bool | None:
        """None if Spark refuses the query."""
        try:
            analyzed = self._session.sql(sql).queryExecution().analyzed()
        except protocol.Py4JJavaError:
            return None
        plan = self._expressions.apply(analyzed)
        return not self._moments.apply(plan).fastEquals(plan)


@pytest.fixture
def optimizer(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Optimizer:
    found = Optimizer(lake)
    # PySpark's own makes a Python error with all its texts of each refusal, which takes longer than the query.
    monkeypatch.setattr(java_gateway, "get_return_value", protocol.get_return_value)
    return found


_OTHER = ("10:30", "DATE 'today UTC'", "EXISTS", "unknown")
"""Spark finds times without a date when it casts them, and typed literals when it parses them; a subquery has a plan of its own, and
`unknown` is not a column of t."""


@pytest.mark.parametrize("condition", [one for one in MOMENTS if not any(word in one for word in _OTHER)])
def test_conditions(condition: str, optimizer: Optimizer) -> None:
    assert optimizer.replaces(f"SELECT n FROM t WHERE {condition}")


def test_every_function(lake: Lake, optimizer: Optimizer) -> None:
    replaced = [sql for sql in _calls(lake) if optimizer.replaces(sql)]
    assert len(replaced) >= _FLOOR
    assert [sql for sql in replaced if _is_read(sql) and not any(moving_strings(sql, lambda: TYPES))] == []


def _calls(lake: Lake) -> Iterator[str]:
    """Each function with the string at each place, beside columns of several types."""
    for function in functions(lake.session):
        for others in _BESIDE if function.group in _GROUPS else ():
            for place in range(len(others) + 1):
                arguments = ", ".join((*others[:place], "'today'", *others[place:]))
                yield f"SELECT {function.name}({arguments}) AS found FROM t"


def _is_read(sql: str) -> bool:
    """Spark accepts `hour(x, y)`; mvbuild does not."""
    try:
        return bool(parse(tokenize(sql), sql))
    except SqlglotError:
        return False
