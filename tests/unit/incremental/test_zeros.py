"""0.0 and -0.0 are equal but not the same: the storage has the one that a full refresh would write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from unit.incremental import on_duckdb
from unit.incremental.on_duckdb import OnDuckDB, Table

QUERIES = [
    "SELECT k, CAST(x AS DOUBLE) AS r FROM {a}",
    "SELECT k, CAST(x AS DOUBLE) AS r, CAST(x AS FLOAT) AS f FROM {a}",
    "SELECT k, CAST(x AS DOUBLE) AS r FROM {a} WHERE CAST(x AS DOUBLE) = 0",
    "SELECT k, -CAST(x AS DOUBLE) AS r FROM {a} UNION ALL SELECT k, CAST(x AS DOUBLE) FROM {b}",
    "SELECT a.k, CAST(a.x AS DOUBLE) AS r, CAST(b.x AS DOUBLE) AS s FROM {a} AS a JOIN {b} AS b ON a.k = b.k",
]


def exactly(rows: Sequence[tuple[Any, ...]]) -> Counter[Any]:
    """Floats by their texts: those of the two zeros differ."""
    return Counter(tuple(repr(value) if isinstance(value, float) else value for value in row) for row in rows)


@pytest.fixture(scope="module")
def connection() -> Any:
    return on_duckdb.connected()


@pytest.mark.proof
@pytest.mark.parametrize("strategy", ["bag", "affected-keys", "full-diff"])
@pytest.mark.parametrize("query", QUERIES)
def test_a_zero_keeps_its_sign(connection: Any, monkeypatch: pytest.MonkeyPatch, query: str, strategy: str) -> None:
    monkeypatch.setattr(on_duckdb, "bag", exactly)
    for seed in range(8):
        random = Random(f"{seed} {query}")

        def rows(count: int, random: Random = random) -> list[tuple[Any, ...]]:
            return [(random.randrange(3), random.choice(["0.0", "-0.0", "-0.0", "1.5", "NaN", None])) for _ in range(count)]

        kept = rows(3)
        tables = [Table(name, {"k": "int", "x": "string"}, old=kept + rows(4), new=kept + rows(4)) for name in "ab"]
        case = OnDuckDB(query, tables, connection)
        assert case.refreshed(strategy) == case.full(), f"seed {seed}"


# --- functions that distinguish zeros ------------------------------------------------------------------------------------------------

WINDOWS = "(SELECT f, count(*) OVER (PARTITION BY f) AS n FROM {a}) AS q"
ONE = Table("a", {"f": "double", "x": "int"}, [(0.0, 1)], [(0.0, 1)])
OTHER = Table("b", {"f": "double", "x": "int"}, [(-0.0, 1)], [(-0.0, 1)])
MORE = replace(ONE, new=[(0.0, 1), (-0.0, 2)])


@pytest.mark.parametrize("strategy", ["bag", "affected-keys"])
@pytest.mark.parametrize(
    ("query", "tables"),
    [
        (f"SELECT DISTINCT CAST(f AS STRING) AS t, n FROM {WINDOWS}", [MORE]),
        (f"SELECT CAST(f AS STRING) AS t, max(n) AS m FROM {WINDOWS} GROUP BY CAST(f AS STRING)", [MORE]),
        (
            "SELECT CAST(f AS STRING) AS t, count(*) AS m FROM (SELECT f FROM {a} EXCEPT SELECT f FROM {b}) AS q GROUP BY CAST(f AS STRING)",
            [ONE, replace(OTHER, new=[])],
        ),
        (
            "SELECT CAST(f AS STRING) AS t, count(*) AS m FROM (SELECT f FROM {a} EXCEPT ALL SELECT f FROM {b}) AS q GROUP BY CAST(f AS STRING)",
            [replace(ONE, new=[(0.0, 1), (0.0, 3)]), OTHER],
        ),
        ("SELECT DISTINCT CAST(f AS STRING) AS t FROM (SELECT f FROM {a} INTERSECT SELECT f FROM {b}) AS q", [replace(ONE, new=[]), OTHER]),
    ],
)
def test_a_key_that_distinguishes_zeros_does_not_divide_rows_that_are_equal(query: str, tables: list[Table], strategy: str) -> None:
    """0.0 and -0.0 are in one partition of a window, and a row of one side of EXCEPT is one of the other."""
    case = OnDuckDB(query, tables)
    assert case.refreshed(strategy) == case.full()
