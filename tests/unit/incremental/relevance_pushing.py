"""A generated query -> whether its result stays the same when every table keeps only the rows that can matter to it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import duckdb

from mvbuild.adapters.memory import meets_all
from mvbuild.incremental.scan_conditions import relevant
from mvbuild.incremental.shape import Shape
from unit.incremental.on_duckdb import OnDuckDB, Table
from unit.incremental.queries import Generated, generated


@dataclass
class Pushed:
    queries: int = 0
    narrowed: int = 0
    """Queries with a table that lost rows."""
    rows: int = 0
    rows_left_out: int = 0
    wrong: tuple[str, ...] = ()

    def __add__(self, other: Pushed) -> Pushed:
        return Pushed(**{name: getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__})


def pushed(seed: int, connection: duckdb.DuckDBPyConnection) -> Pushed:
    case = generated(seed)
    if not case.tables:
        return Pushed()
    return pushed_case(case, connection)


def pushed_case(case: Generated, connection: duckdb.DuckDBPyConnection) -> Pushed:
    tables = [replace(t, old=t.new, carried=()) for t in case.tables]
    whole = OnDuckDB(case.query, tables, connection)
    narrow = narrowed(whole.shape(), tables)
    lost = sum(len(t.old) - len(t.new) for t in narrow)
    found = Pushed(queries=1, narrowed=bool(lost), rows=sum(len(t.old) for t in narrow), rows_left_out=lost)
    if lost:
        # Both on the same day, which a query may read.
        expected = whole.full("new")
        if OnDuckDB(case.query, narrow, connection).full("new") != expected:
            found.wrong = (f"seed {case.seed}: {case.query}",)
    return found


def narrowed(shape: Shape, tables: list[Table]) -> list[Table]:
    scans = relevant(shape.root, [t.columns for t in tables])
    return [
        replace(
            t, new=[row for row in t.old if any(meets_all(dict(zip(t.columns, row, strict=True)), found) for found in scans.get(at, ((),)))]
        )
        for at, t in enumerate(tables)
    ]
