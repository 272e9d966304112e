"""Random queries over instants, dates and texts -> whether DuckDB gives other rows in another time zone."""

from __future__ import annotations

from random import Random
from typing import Any

import duckdb
import pyarrow as pa

ZONES = ("UTC", "Europe/Berlin", "America/New_York")
SCHEMAS = [
    {"fields": [{"id": 1, "name": n, "type": t} for n, t in columns.items()]}
    for columns in (
        {"id": "int", "ts": "timestamptz", "d": "date", "n": "timestamp", "s": "string"},
        {"id": "int", "seen": "timestamptz", "d": "date"},
    )
]
_TABLES = (
    "CREATE TABLE a (id INT, ts TIMESTAMPTZ, d DATE, n TIMESTAMP, s VARCHAR)",
    "CREATE TABLE b (id INT, seen TIMESTAMPTZ, d DATE)",
    """INSERT INTO a VALUES (1, '2026-01-01 23:30:00+00', '2026-01-02', '2026-01-01 23:30:00', '2026-01-01'),
    (2, '2026-01-02 00:00:00+00', '2026-01-02', '2026-01-02 00:00:00', 'x'), (3, '2026-07-01 02:30:00+00', '2026-07-01', NULL, NULL),
    (4, NULL, NULL, '2026-01-02 01:00:00', 'y')""",
    "INSERT INTO b VALUES (1, '2026-01-01 23:30:00+00', '2026-01-01'), (2, '2026-01-02 05:00:00+00', '2026-01-02'), (5, NULL, NULL)",
)
_OF_ONE = ("{}", "max({})", "CAST({} AS DATE)", "CAST({} AS STRING)", "year({})", "count({})", "{} IS NULL", "({})", "count(DISTINCT {})")
_OF_TWO = ("{} < {}", "{} = {}", "coalesce({}, {})", "CASE WHEN {} IS NULL THEN {} END", "greatest({}, {})", "max({}) OVER (ORDER BY {})")
_CONSTANTS = ("1", "'2026-01-02'", "DATE '2026-01-02'", "TIMESTAMP '2026-01-02 00:00:00'", "NULL")


def connected() -> duckdb.DuckDBPyConnection:
    db = duckdb.connect()
    for statement in _TABLES:
        db.execute(statement)
    return db


def query(random: Random) -> str:
    value = _value(random)
    condition = random.choice(("", "", f" WHERE {_value(random)} {random.choice(('<', '=', '>='))} {_value(random)}"))
    return random.choice(
        (
            f"SELECT {value} AS v FROM a{condition}",
            f"SELECT id, {value} AS v FROM a{condition} GROUP BY ALL",
            f"SELECT v FROM (SELECT {value} AS v FROM a{condition}) q WHERE {random.choice(('v', 'year(v)', 'CAST(v AS STRING)'))} IS NOT NULL",
            f"WITH q AS (SELECT {value} AS v FROM a) SELECT CAST(v AS {random.choice(('DATE', 'STRING'))}) AS w FROM q",
            f"WITH q(w) AS (SELECT {value} FROM a) SELECT {random.choice(('w', 'CAST(w AS DATE)'))} AS w FROM q",
            f"SELECT {value} AS v FROM a UNION ALL SELECT {random.choice(('seen', 'd'))} FROM b",
            f"SELECT a.id, b.id AS other FROM a JOIN b ON {random.choice(('a.ts', 'a.d', 'a.n'))} = {random.choice(('b.seen', 'b.d'))}",
            f"SELECT id FROM a WHERE {random.choice(('ts', 'd', 'n'))} IN (SELECT {random.choice(('seen', 'd', 'max(seen)'))} FROM b)",
            f"SELECT id FROM a WHERE {random.choice(('ts', 'd', 'n'))} <= (SELECT max({random.choice(('seen', 'd'))}) FROM b)",
        )
    )


def _value(random: Random, depth: int = 2) -> str:
    if not depth or random.random() < 0.3:
        return random.choice(("ts", "ts", "d", "n", "s", "id", *_CONSTANTS))
    shape = random.choice((*_OF_ONE, *_OF_TWO))
    return shape.format(*(_value(random, depth - 1) for _ in range(shape.count("{}"))))


def depends(db: duckdb.DuckDBPyConnection, sql: str) -> bool | None:
    """None for a query that does not run."""
    try:
        first, *others = [_rows(db, sql, zone) for zone in ZONES]
    except duckdb.Error:
        return None
    return any(other != first for other in others)


def _rows(db: duckdb.DuckDBPyConnection, sql: str, zone: str) -> list[Any]:
    """Instants as numbers."""
    db.execute(f"SET TimeZone = '{zone}'")
    table = db.sql(sql).to_arrow_table()
    columns = [c.cast(pa.int64()) if pa.types.is_timestamp(c.type) else c for c in table.columns]
    return sorted(map(repr, zip(*(c.to_pylist() for c in columns), strict=True)))
