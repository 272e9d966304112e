"""0.0 and -0.0 are equal but not the same: the storage has the one that a full refresh would write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
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
