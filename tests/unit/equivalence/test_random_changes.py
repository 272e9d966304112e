"""Random queries and random changes of them, run by DuckDB over rows with NULLs: what is reported as certain holds."""

from __future__ import annotations

import random
from collections import Counter

import duckdb
import pytest
import sqlglot

from mvbuild.equivalence.ladder import compare
from seeds import more_seeds
from unit.equivalence.generated import changed, query, text

pytestmark = pytest.mark.proof

SCHEMA = {"t": ("id", "a", "b"), "u": ("id", "x", "y")}
ROWS = 40


def database(seed: int) -> duckdb.DuckDBPyConnection:
    rng = random.Random(seed)
    found = duckdb.connect()
    for table, columns in SCHEMA.items():
        found.execute(f"CREATE TABLE {table} ({', '.join(f'{c} INT' for c in columns)})")
        for _ in range(ROWS):
            found.execute(f"INSERT INTO {table} VALUES ({', '.join(str(rng.choice(['NULL', 0, 1, 2, 3])) for _ in columns)})")
    return found


def rows(connection: duckdb.DuckDBPyConnection, sql: str) -> list[dict[str, object]]:
    answer = connection.execute(sqlglot.transpile(sql, read="spark", write="duckdb")[0])
    names = [column[0] for column in answer.description]
    return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]


def bag(found: list[dict[str, object]], names: list[str]) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row[name] for name in names) for row in found)


@pytest.mark.parametrize("block", range(2))
def test_what_is_certain_holds(block: int) -> None:
    kinds: Counter[str] = Counter()
    connection = database(block)
    for seed in (*range(block * 150, block * 150 + 150), *more_seeds(50 * block)):
        rng = random.Random(seed)
        parts = query(rng)
        old, new = text(rng, parts), text(rng, changed(rng, parts))
        kind = compare(old, new).kind
        kinds[kind] += 1
        if kind in ("rows", "breaking"):
            continue
        before, after = rows(connection, old), rows(connection, new)
        names = list(before[0]) if before else []
        computes = "GROUP BY" in old
        if kind in ("equal", "formatting") and before:
            assert names == list(after[0]), (old, new)
        if kind in ("equal", "formatting", "columns-added", "reordered"):
            assert bag(before, names) == bag(after, names), (kind, old, new)
        elif not computes:
            less, more = (after, before) if kind == "filter-narrowed" else (before, after)
            assert bag(less, names) <= bag(more, names), (kind, old, new)
    assert kinds["equal"] > 40
    assert kinds["filter-narrowed"] + kinds["filter-widened"] > 0
