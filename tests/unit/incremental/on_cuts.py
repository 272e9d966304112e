"""A generated case -> the same query refreshed through auxiliary views, on DuckDB: each view by a strategy, and then the query over them.

What must hold for every strategy of the query: its storage has the rows that the query returns over the refreshed auxiliary views, and these are the
rows of the user's query. A query that only picks from the rows of its last view must also return them for each row by itself.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import duckdb

from mvbuild.incremental.algebra import Join, OneRow, Relation, Scan, column, leaves, walk, with_part
from mvbuild.incremental.clock import at_values, is_timeless
from mvbuild.incremental.column_pruning import pruned
from mvbuild.incremental.cuts import divided, reduced, with_inner_groups
from mvbuild.incremental.division import Cut, Division
from mvbuild.incremental.emit import sql_of
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.row_order import nondeterministic_part
from mvbuild.incremental.row_query import RowQuery, row_query
from mvbuild.incremental.shape import Shape, with_lifted_readings
from mvbuild.incremental.strategies import STRATEGIES
from unit.incremental.on_duckdb import SQL_TYPES, TODAY, OnDuckDB, Row, Table, bag, like_spark
from unit.incremental.oracle import ACCEPTED, Wrong
from unit.incremental.queries import Generated

CLOCK = {"current_date": TODAY["old"]}


@dataclass
class OnTree(OnDuckDB):
    """A tree instead of a text."""

    tree: Shape = field(kw_only=True)
    _earlier: str = field(init=False)
    """At the earlier time."""

    def __post_init__(self) -> None:
        def source(read: Any) -> str:
            return f'"{self.tables[read.leaf].name}_VERSION"'

        outputs = [(name, f"c{at}") for at, (name, _) in enumerate(self.tree.outputs)]
        tree = with_lifted_readings(self.tree, CLOCK).root
        self._text, self._earlier = (
            like_spark(sql_of(pruned(one), source, outputs=outputs, dialect="duckdb")) for one in (tree, at_values(tree, CLOCK))
        )
        self._begin()

    def text(self, version: str) -> str:
        return (self._earlier if version == "old" else self._text).replace("_VERSION", f"_{version}")

    def shape(self) -> Shape:
        outputs = tuple((name, f"c{at}") for at, (name, _) in enumerate(self.tree.outputs))
        return replace(self.tree, outputs=outputs)


@dataclass
class Through:
    """`codes`: (whether of an auxiliary view, strategy) and its outcome."""

    codes: list[tuple[str, str, str]] = field(default_factory=list)
    wrong: list[Wrong] = field(default_factory=list)
    cuts: int = 0
    inner: int = 0
    """Queries with inner groups."""
    reduced: int = 0
    """Queries in which a join restricts groups."""
    picked: int = 0
    """Queries that only pick from the rows of their view."""


def through_cuts(case: Generated, connection: duckdb.DuckDBPyConnection, seed: int) -> Through:
    """All ways to cut: where it helps, at inner groups, where joins restrict groups, and anywhere."""
    found = Through()
    if not any(table.is_changed for table in case.tables) and "{today}" not in case.query:
        return found
    try:
        ready = OnDuckDB(case.query, case.tables, connection)
        shape = ready.shape()
    except (duckdb.BinderException, Refused):
        return found
    chance = random.Random(seed)
    tables = len(case.tables)
    of_groups = reduced(shape, tables)
    found.reduced += of_groups is not None
    inner = with_inner_groups(shape, tables)
    found.inner += inner is not None
    for division in (divided(shape, tables), inner, of_groups, cut_anywhere(shape, tables, chance)):
        if division is not None:
            found.cuts += len(division.cuts)
            _play(case, ready, division, chance, found)
    return found


def cut_anywhere(shape: Shape, first: int, chance: random.Random) -> Division | None:
    """One or two inner relations, wherever they are."""
    cuts: list[Cut] = []
    for _ in range(chance.choice((1, 1, 2))):
        # A mark that may be NULL is for conditions only: mvbuild keeps groups and windows, which have none.
        marks = {n.mark for n in walk(shape.root) if isinstance(n, Join) and n.kind == "mark" and n.form == "in"}
        inner = [
            n
            for n in list(walk(shape.root))[1:]
            if leaves(n) and n.columns and not isinstance(n, Scan | OneRow) and marks.isdisjoint(n.columns) and is_timeless(n)
        ]
        if not inner:
            break
        chosen = chance.choice(inner)
        cut = Cut(leaf=first + len(cuts), shape=_shape(shape, chosen, first))
        cuts.append(cut)
        shape = _shape(shape, with_part(shape.root, chosen, Scan(cut.leaf, tuple((n, n) for n in chosen.columns))), first, shape.outputs)
    return Division(cuts=tuple(cuts), shape=shape) if cuts else None


def _shape(shape: Shape, root: Relation, first: int, outputs: tuple[tuple[str, str], ...] | None = None) -> Shape:
    of_cuts = {name for node in walk(root) if isinstance(node, Scan) and node.leaf >= first for name in node.columns}
    outputs = outputs or tuple((name, name) for name in dict.fromkeys(root.columns))
    return replace(shape, root=root, outputs=outputs, required=shape.required - of_cuts)


def _play(case: Generated, ready: OnDuckDB, division: Division, chance: random.Random, found: Through) -> None:
    tables: list[Table] = list(case.tables)

    def wrong(what: str, problem: str) -> None:
        found.wrong.append(Wrong(case.seed, what, case.query, case.tables, problem))

    steady = nondeterministic_part(ready.shape().root, ready.shape().types) is None
    for cut in division.cuts:
        view = OnTree(case.query, tables, ready.connection, tree=cut.shape)
        if not all(kind in SQL_TYPES.values() or kind.startswith("DECIMAL") or kind == "HUGEINT" for kind in view.types):
            return
        new = view.full()
        for strategy, code, got in _outcomes(view, chance):
            found.codes.append(("auxiliary", strategy, code))
            if code == "error":
                wrong(f"auxiliary {strategy}", str(got))
            elif code == ACCEPTED:
                if got != view.full() and not view.is_full(got):
                    wrong(f"auxiliary {strategy}", f"too many: {got - view.full()}, missing: {view.full() - got}")
                new = got
                break
        names = [name for name, _ in cut.shape.outputs]
        columns = dict(zip(names, map(_column, view.types), strict=True))
        # As the query computes them: a bag has fractions without their last digits.
        rows = view.rows("new") if new == view.full() else list(new.elements())
        tables.append(Table(f"aux_{cut.leaf}", columns, old=view.rows("old"), new=rows, carried=rows[: chance.choice((0, 0, 1, 2))]))
    try:
        outer = OnTree(case.query, tables, ready.connection, tree=division.shape)
    except Refused:  # its rows at the earlier time are not those of a tree
        return
    want = outer.full()
    if steady and want != ready.full():
        wrong("division", f"over the auxiliary views: too many {want - ready.full()}, missing {ready.full() - want}")
        return
    for strategy, code, got in _outcomes(outer, chance):
        found.codes.append(("query", strategy, code))
        if code == "error":
            wrong(strategy, str(got))
        elif code == ACCEPTED and got != want and not outer.is_full(got):
            wrong(strategy, f"too many: {got - want}, missing: {want - got}")
    of_rows = row_query(division.shape, division.cuts[-1].leaf)
    if of_rows is not None:
        found.picked += 1
        got = _of_each_row(of_rows, tables[-1], ready.connection)
        if got != want:
            wrong("each row by itself", f"too many: {got - want}, missing: {want - got}")


def _of_each_row(query: RowQuery, view: Table, connection: duckdb.DuckDBPyConnection) -> Counter[Row]:
    """Rows that are not there count for nothing, whatever they hold."""
    columns = {name: column(name) for name in view.columns}
    parts = [like_spark(one.sql("duckdb")) for one in query.of(columns, column("is_row"))]
    rows = " UNION ALL ".join(
        f'SELECT *, {is_row} AS "is_row" FROM "{view.name}_{at}"' for is_row, at in (("true", "new"), ("false", "old"))
    )
    found = connection.execute(f"SELECT {', '.join(parts)} FROM ({rows}) AS q").fetchall()
    return bag([row[1:] for row in found if row[0]])


def _outcomes(ready: OnDuckDB, chance: random.Random) -> Iterator[tuple[str, str, Any]]:
    for strategy in chance.sample(list(STRATEGIES), len(STRATEGIES)):
        try:
            yield strategy, ACCEPTED, ready.refreshed(strategy)
        except Refused as exc:
            yield strategy, exc.code, None
        except Exception as exc:  # noqa: BLE001 any error is what is looked for
            yield strategy, "error", f"{type(exc).__name__}: {str(exc).splitlines()[0] if str(exc) else ''}"


def _column(kind: str) -> str:
    known: Mapping[str, str] = {sql: iceberg for iceberg, sql in SQL_TYPES.items()}
    return "long" if kind == "HUGEINT" else known.get(kind, kind.lower())
