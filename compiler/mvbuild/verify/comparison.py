"""two states of one table -> how their rows differ, by key if rows have one, otherwise as bags; with figures per column and samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mvbuild.dataclass import dataclass
from mvbuild.freshness.observed import Pin
from mvbuild.names import TableIdentifier, quote
from mvbuild.ports.states import Schema, TableState
from mvbuild.refresh.session import RunSession
from mvbuild.refresh.sql import pinned_table
from mvbuild.verify.bags import canonical, counts_sql, differences_sql

STATISTICS = ("nulls", "distinct", "min", "max", "mean")
_NUMBERS = ("int", "long", "float", "double", "decimal")


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDifference:
    """The difference in one column. `changed`: rows with a key in both states and another value; None without a key."""

    name: str
    changed: int | None
    before: tuple[Any, ...] | None
    """By `STATISTICS`; None for a column that only the other state has."""
    after: tuple[Any, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How the rows of `after` differ from those of `before`."""

    table: TableIdentifier
    key: tuple[str, ...]
    """Empty: rows have no key, and a changed row counts as removed and added."""
    rows_before: int
    rows_after: int
    added: int
    removed: int
    changed: int
    columns: tuple[ColumnDifference, ...]
    samples: tuple[tuple[str, tuple[Any, ...]], ...]
    """("added" | "removed" | "before" | "after", row): a changed row appears twice, one after the other."""
    sample_columns: tuple[str, ...]

    @property
    def is_same(self) -> bool:
        return not (self.added or self.removed or self.changed) and all(c.before and c.after for c in self.columns)


def compare(session: RunSession, before: TableState | None, after: TableState, key: Sequence[str], *, limit: int) -> Comparison:
    """`key`: names of columns; ignored if it is not unique in both states."""
    old = _Side.of(session, before) if before is not None and before.current_snapshot_id is not None else None
    new = _Side.of(session, after)
    shared = [c for c in new.columns if old is None or c.lower() in old.names]
    keys = tuple(c for c in new.columns if c.lower() in {k.lower() for k in key} and c in shared)
    is_keyed = bool(keys) and len(keys) == len(set(key)) and all(_is_unique(session, side, keys) for side in (old, new) if side)
    found = _Compared(session=session, old=old, new=new, shared=tuple(shared), keys=keys if is_keyed else ())
    added, removed, changed, by_column = found.counts()
    return Comparison(
        table=after.identifier,
        key=found.keys,
        rows_before=_count(session, old) if old else 0,
        rows_after=_count(session, new),
        added=added,
        removed=removed,
        changed=changed,
        columns=_columns(session, old, new, by_column),
        samples=found.samples(limit),
        sample_columns=tuple(shared),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    sql: str
    schema: Schema

    @staticmethod
    def of(session: RunSession, table: TableState) -> _Side:
        assert table.current_snapshot_id is not None
        pin = Pin(table=table, snapshot_id=table.current_snapshot_id, ref=None, moves=True)
        return _Side(sql=f"SELECT * FROM {pinned_table(pin, session.schema_pin)}", schema=table.schema)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f["name"] for f in self.schema["fields"])

    @property
    def names(self) -> frozenset[str]:
        return frozenset(c.lower() for c in self.columns)

    def type_of(self, column: str) -> Any:
        return next(f["type"] for f in self.schema["fields"] if f["name"].lower() == column.lower())

    def value(self, column: str, alias: str) -> str:
        """The value in a form that can be compared."""
        return canonical(f"{alias}.{quote(column)}", self.type_of(column))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    session: RunSession
    old: _Side | None
    new: _Side
    shared: tuple[str, ...]
    keys: tuple[str, ...]

    def counts(self) -> tuple[int, int, int, dict[str, int]]:
        """Rows added, removed and changed; and for each column, in how many of the changed rows it differs."""
        if self.old is None:
            return _count(self.session, self.new), 0, 0, {}
        if not self.keys:
            missing, extra = self.session.engine.rows(counts_sql(self._bags(), self._schema()), 1).rows[0]
            return extra, missing, 0, {}
        others = [c for c in self.shared if c not in self.keys]
        counted = ["count_if(o.here IS NULL)", "count_if(n.here IS NULL)", f"count_if({self._differ(others)})"]
        counted += [f"count_if({self._differ([c])})" for c in others]
        row = self.session.engine.rows(f"SELECT {', '.join(counted)} {self._joined()}", 1).rows[0]
        return row[0], row[1], row[2], dict(zip(others, row[3:], strict=True))

    def samples(self, limit: int) -> tuple[tuple[str, tuple[Any, ...]], ...]:
        if not limit:
            return ()
        if self.old is None:
            return tuple(("added", tuple(row)) for row in self._rows(self._selected(self.new.sql, "n"), limit))
        if not self.keys:
            rows = self._rows(f"{self._bags()} ORDER BY ALL", limit)
            return tuple(("removed" if row[0] > 0 else "added", tuple(row[1:])) for row in rows)
        order = ", ".join(f"coalesce(n.{quote(k)}, o.{quote(k)})" for k in self.keys)
        both = ", ".join(f"{alias}.{quote(c)} AS {alias}_{at}" for alias in "on" for at, c in enumerate(self.shared))
        others = [c for c in self.shared if c not in self.keys]
        where = f"o.here IS NULL OR n.here IS NULL OR {self._differ(others)}"
        rows = self._rows(f"SELECT o.here AS old_here, n.here AS new_here, {both} {self._joined()} WHERE {where} ORDER BY {order}", limit)
        return tuple(one for row in rows for one in self._pair(row))

    def _pair(self, row: Sequence[Any]) -> list[tuple[str, tuple[Any, ...]]]:
        width = len(self.shared)
        before, after = tuple(row[2 : 2 + width]), tuple(row[2 + width :])
        if row[0] is None:
            return [("added", after)]
        return [("removed", before)] if row[1] is None else [("before", before), ("after", after)]

    def _rows(self, sql: str, limit: int) -> tuple[tuple[Any, ...], ...]:
        return self.session.engine.rows(sql, limit).rows

    def _joined(self) -> str:
        assert self.old is not None
        on = " AND ".join(f"{self.old.value(k, 'o')} <=> {self.new.value(k, 'n')}" for k in self.keys)
        old, new = (f"(SELECT 1 AS here, * FROM ({side.sql}))" for side in (self.old, self.new))
        return f"FROM {old} AS o FULL OUTER JOIN {new} AS n ON {on}"

    def _differ(self, columns: Sequence[str]) -> str:
        assert self.old is not None
        old = self.old
        same = [f"{old.value(c, 'o')} <=> {self.new.value(c, 'n')}" for c in columns] or ["true"]
        return f"(o.here IS NOT NULL AND n.here IS NOT NULL AND NOT ({' AND '.join(same)}))"

    def _selected(self, sql: str, alias: str) -> str:
        return f"SELECT {', '.join(f'{alias}.{quote(c)}' for c in self.shared)} FROM ({sql}) AS {alias}"

    def _schema(self) -> Schema:
        return {"type": "struct", "fields": [f for f in self.new.schema["fields"] if f["name"] in self.shared]}

    def _bags(self) -> str:
        assert self.old is not None
        return differences_sql(self._selected(self.old.sql, "o"), self._selected(self.new.sql, "n"), self._schema())


def _is_unique(session: RunSession, side: _Side, keys: Sequence[str]) -> bool:
    names = ", ".join(side.value(k, "s") for k in keys)
    found = session.engine.rows(f"SELECT 1 FROM ({side.sql}) AS s GROUP BY {names} HAVING count(*) > 1 LIMIT 1", 1)
    return not found.rows


def _count(session: RunSession, side: _Side) -> int:
    found: int = session.engine.rows(f"SELECT count(*) FROM ({side.sql})", 1).rows[0][0]
    return found


def _columns(session: RunSession, old: _Side | None, new: _Side, changed: dict[str, int]) -> tuple[ColumnDifference, ...]:
    before = _statistics(session, old) if old else {}
    after = _statistics(session, new)
    names = {c.lower(): c for c in (*(old.columns if old else ()), *new.columns)}
    return tuple(
        ColumnDifference(name=name, changed=changed.get(name), before=before.get(key), after=after.get(key)) for key, name in names.items()
    )


def _statistics(session: RunSession, side: _Side) -> dict[str, tuple[Any, ...]]:
    parts = [part for c in side.columns for part in _figures(side, c)]
    row = session.engine.rows(f"SELECT {', '.join(parts)} FROM ({side.sql}) AS s", 1).rows[0]
    width = len(STATISTICS)
    return {c.lower(): tuple(row[at * width : (at + 1) * width]) for at, c in enumerate(side.columns)}


def _figures(side: _Side, column: str) -> tuple[str, ...]:
    value, type_ = side.value(column, "s"), side.type_of(column)
    plain = isinstance(type_, str) and type_ not in ("binary", "variant")
    bounds = (f"min({value})", f"max({value})") if plain else ("NULL", "NULL")
    mean = f"avg(s.{quote(column)})" if plain and str(type_).startswith(_NUMBERS) else "NULL"
    return f"count_if(s.{quote(column)} IS NULL)", f"count(DISTINCT {value})", *bounds, mean
