"""table + Spark -> the pairs of its snapshots whose change is not exact. The oracle: both snapshots, read under the current schema."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, permutations
from random import Random
from typing import Any

from mvbuild.adapters.spark.engine import SparkEngine
from mvbuild.formats.record import NO_SNAPSHOT
from mvbuild.names import TableIdentifier, quote
from mvbuild.ports.catalog import Catalog
from mvbuild.ports.changes import StagedChange
from mvbuild.ports.states import TableState
from mvbuild.refresh.change_sql import change_sql

_AT_ONCE = 40
"""Queries in one job."""
Pair = tuple[int, int]


@dataclass
class Checker:
    """One table as it is now."""

    spark: Any
    catalog: Catalog
    table: TableState
    kinds: Counter[str] = field(default_factory=Counter)
    """How often there was a side of which kind, to see that the histories reach all of them."""

    def __post_init__(self) -> None:
        self._numbers = count()
        self._columns = [f["name"] for f in self.table.schema["fields"]]
        self._simple = [f["name"] for f in self.table.schema["fields"] if isinstance(f["type"], str)]

    def pairs(self, most: int | None = None, seed: int = 0) -> list[Pair]:
        """All ordered pairs of snapshots and the empty table, or so many of them."""
        found = list(permutations([NO_SNAPSHOT, *self.table.snapshots], 2))
        return found if most is None or most >= len(found) else Random(seed).sample(found, most)

    def wrong(self, wanted: Sequence[Pair]) -> dict[Pair, str]:
        """What differs, by pair."""
        contents = self._contents(sorted({at for pair in wanted for at in pair} - {NO_SNAPSHOT})) | {NO_SNAPSHOT: Counter()}
        found: dict[Pair, str] = {}
        for some in _chunks(wanted):
            for pair, (plus, minus) in self._changes(some).items():
                old, new = contents[pair[0]], contents[pair[1]]
                if old + plus != new + minus:
                    found[pair] = _told(old + plus, new + minus)
            for pair, (plus, minus) in self._nets(some).items():
                old, new = (_only(contents[at], self._some(pair)) for at in pair)
                if old + plus != new + minus:
                    found[pair] = f"read here: {_told(old + plus, new + minus)}"
                elif plus & minus:
                    found[pair] = f"read here: on both sides {dict(plus & minus)}"
        return found

    def _contents(self, snapshots: Sequence[int]) -> dict[int, Counter[str]]:
        pinned = {at: self.catalog.pin_schema(self.table, at, self._scratch()).identifier for at in snapshots}
        try:
            select = ", ".join(map(quote, self._columns))
            return self._rows({at: f"SELECT {select} FROM {scratch.sql}" for at, scratch in pinned.items()})
        finally:
            self._drop(pinned.values())

    def _changes(self, pairs: Sequence[Pair]) -> dict[Pair, tuple[Counter[str], Counter[str]]]:
        staged: dict[Pair, StagedChange] = {}
        try:
            for pair in pairs:
                change = self.catalog.changes.between(self.table, *pair)
                staged[pair] = self.catalog.changes.stage(change, self._scratch)
                self._note(staged[pair])
            sqls = {pair: change_sql(one, self._columns) for pair, one in staged.items()}
            rows = self._rows({(pair, side): sql for pair, of in sqls.items() for side, sql in enumerate(of) if sql is not None})
            return {pair: (rows.get((pair, 0), Counter()), rows.get((pair, 1), Counter())) for pair in pairs}
        finally:
            self._drop(table for one in staged.values() for table in one.tables)

    def _nets(self, pairs: Sequence[Pair]) -> dict[Pair, tuple[Counter[str], Counter[str]]]:
        """Of the pairs whose change mvbuild reads, what it finds without Spark."""
        engine, found = SparkEngine(self.spark, own=False), {}
        for pair in pairs:
            change, columns = self.catalog.changes.between(self.table, *pair), self._some(pair)
            net = self.catalog.changes.net_rows(change, columns) if self.catalog.changes.reads_here(change, columns) else None
            if net is not None:
                self.kinds["read here"] += 1
                for side, rows in (("plus", net.plus), ("minus", net.minus)):
                    engine.supply(f"net_{side}", rows.data)
                queries = {side: f"SELECT * FROM net_{side}" for side in ("plus", "minus")}
                rows_of = self._rows(queries, columns)
                found[pair] = (_only(rows_of["plus"], columns), _only(rows_of["minus"], columns))
        return found

    def _some(self, pair: Pair) -> list[str]:
        """The columns that a query reads: all, the newest one, which older files lack, or some."""
        pick = Random(hash(pair))
        return pick.choice((self._simple, self._simple[-1:], pick.sample(self._simple, pick.randint(1, len(self._simple)))))

    def _note(self, staged: StagedChange) -> None:
        self.kinds["stepwise"] += len(staged.parts) > 1
        for part in staged.parts:
            self.kinds["added"] += part.added is not None
            self.kinds["removed"] += part.removed is not None
            if part.altered_new is not None:
                self.kinds[
                    f"altered, {'had' if part.had_deletes else 'no'} deletes, {'only' if part.only_deletes else 'not only'} more"
                ] += 1

    def _rows(self, queries: dict[Any, str], columns: Sequence[str] = ()) -> dict[Any, Counter[str]]:
        """The rows of several queries, as JSON, in one job."""
        found: dict[Any, Counter[str]] = {}
        keys, struct = list(queries), ", ".join(map(quote, columns or self._columns))
        if not keys:
            return found
        row = f"to_json(struct({struct}), map('ignoreNullFields', 'false')) AS row"
        union = " UNION ALL ".join(f"SELECT {at} AS tag, {row} FROM ({queries[key]})" for at, key in enumerate(keys))
        for tag, text in self.spark.sql(union).collect():
            found.setdefault(keys[tag], Counter())[text] += 1
        return {key: found.get(key, Counter()) for key in keys}

    def _scratch(self) -> TableIdentifier:
        return TableIdentifier(self.catalog.name, ("mvbuild_scratch",), f"pair_{self.table.identifier.name}_{next(self._numbers)}")

    def _drop(self, tables: Iterable[TableIdentifier]) -> None:
        for table in tables:
            self.catalog.drop_scratch(table)


def _told(left: Counter[str], right: Counter[str]) -> str:
    return f"lacks {dict(right - left)}, has too much {dict(left - right)}"


def _only(rows: Counter[str], columns: Sequence[str]) -> Counter[str]:
    """Some columns of rows that are JSON, with the texts of their numbers."""
    found: Counter[str] = Counter()
    for row, times in rows.items():
        whole = json.loads(row, parse_int=str, parse_float=str)
        found[json.dumps({name: whole[name] for name in columns})] += times
    return found


def _chunks(pairs: Sequence[Pair]) -> Iterator[Sequence[Pair]]:
    for at in range(0, len(pairs), _AT_ONCE):
        yield pairs[at : at + _AT_ONCE]
