"""Tables + a seed -> History: the rows of three batches, with the changes that a guard may skip."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from datetime import time as clock_time
from typing import Any, Literal

BATCHES = (1, 2, 3)
Kind = Literal["inserts", "updates", "late", "others"]
KINDS: tuple[Kind, ...] = ("inserts", "updates", "late", "others")
"""New rows in order of time; and changed rows that have a new time; and rows and changes that come late; and changes of the tables that no
guard reads."""
_WINDOW = timedelta(minutes=30)
"""How far back the rows of a batch go: further back than that, any guard by the clock looks."""


IN_ARRAY, IN_MAP = "[]", "{}"
"""Parts of a path: the elements of an array, and the values of a map."""


@dataclass(frozen=True)
class Plan:
    """The day before the first batch, how many rows each table has then, and how many days old some of them are."""

    day: date = date(2024, 3, 10)
    rows: int = 6
    ages: tuple[int, ...] = (1, 2, 3)

    def clock(self, batch: int) -> datetime:
        """When dbt runs after a batch."""
        return datetime.combine(self.day, clock_time(12)) + timedelta(days=batch)


@dataclass(frozen=True, kw_only=True)
class Field:
    """A column or a field of a struct, an array or a map. `ordered`: a guard bounds it. `required`: never NULL. `passive`: it is only in projections."""

    path: tuple[str, ...]
    type: str
    ordered: bool = False
    key: bool = False
    required: bool = False
    passive: bool = False
    values: tuple[str, ...] = ()
    size: int = 3
    joined: bool = False
    """Whether it is compared with a column of another table: what comes in a batch often has the values that come in others then."""
    kin: str = ""
    """The same for columns that are compared with each other."""
    share: tuple[int, int] = (0, 1)
    """Which of how many tables it is whose rows together have this key: their values differ."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """`guarded`: a guard bounds one of its columns, or there is none: dbt reads its changes."""

    name: str
    fields: tuple[Field, ...]
    guarded: bool

    @property
    def keys(self) -> tuple[int, ...]:
        return tuple(at for at, f in enumerate(self.fields) if f.key)


Row = tuple[Any, ...]


@dataclass(frozen=True)
class Change:
    """A row that goes or comes in a batch. `late`: dbt's runs may never read it."""

    batch: int
    table: str
    row: Row
    comes: bool
    late: bool


@dataclass
class History:
    tables: Sequence[Table]
    kind: Kind
    first: dict[str, list[Row]] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)

    def rows(self, batch: int, skipped: frozenset[int] = frozenset()) -> Mapping[str, list[Row]]:
        """The tables after a batch, without the changes that are skipped, by their positions."""
        found = {name: list(rows) for name, rows in self.first.items()}
        for at, change in enumerate(self.changes):
            if change.batch > batch or at in skipped:
                continue
            if change.comes:
                found[change.table].append(change.row)
            elif change.row in found[change.table]:
                found[change.table].remove(change.row)
        return found

    @property
    def late(self) -> list[int]:
        return [at for at, change in enumerate(self.changes) if change.late]


def history(tables: Sequence[Table], kind: Kind, seed: int, plan: Plan) -> History:
    return _Made(tables, kind, seed, plan).history


class _Made:
    def __init__(self, tables: Sequence[Table], kind: Kind, seed: int, plan: Plan) -> None:
        self.plan = plan
        self.random = random.Random(f"{kind} {seed}")
        self.unique = seed % 2 == 0
        self.ticks = 0
        self.now = 0
        self.kind = kind
        self.history = History(tables, kind)
        for table in tables:
            rows: list[Row] = []
            for _ in range(plan.rows):
                self._add(table, rows, self._old() if self.random.random() < 0.6 else self._instant(1))
            self.history.first[table.name] = rows
        for batch in BATCHES[1:]:
            for table in tables:
                if table.guarded or kind == "others":
                    self._batch(table, batch)

    def _batch(self, table: Table, batch: int) -> None:
        self.now = batch
        rows = list(self.history.rows(batch)[table.name])
        if self.kind in ("updates", "late") or not table.guarded:
            for _ in range(1 if self.kind == "late" else self.random.randint(1, 2)):
                self._update(table, batch, rows)
        for _ in range(self.random.randint(1, 2)):
            self._insert(table, batch, rows, self._instant(batch), late=False)
        if self.kind == "late" and self.random.random() < 0.7:
            self._insert(table, batch, rows, self._late(batch), late=True)

    def _insert(self, table: Table, batch: int, rows: list[Row], instant: datetime | None, *, late: bool) -> None:
        if (row := self._add(table, rows, instant)) is not None:
            self.history.changes.append(Change(batch, table.name, row, comes=True, late=late))

    def _update(self, table: Table, batch: int, rows: list[Row]) -> None:
        """Each row of the first batch changes once at most: so that every subset of the changes is a table."""
        gone = {change.row for change in self.history.changes if not change.comes}
        old = [row for row in self.history.first[table.name] if row not in gone]
        if not old:
            return
        row = self.random.choice(old)
        is_late = self.kind == "late"
        instant = self._late(batch) if is_late and self.random.random() < 0.5 else self._instant(batch)
        values = list(row)
        for at, f in enumerate(table.fields):
            if f.ordered and not (is_late and self.random.random() < 0.3):
                values[at] = _time_of(f, instant)
            elif (f.passive if not is_late else self.random.random() < 0.5) and not f.key and f.type not in ("TIMESTAMP", "DATE"):
                values[at] = self._value(f)
        rows[rows.index(row)] = tuple(values)
        self.history.changes.append(Change(batch, table.name, row, comes=False, late=is_late))
        self.history.changes.append(Change(batch, table.name, tuple(values), comes=True, late=is_late))

    def _add(self, table: Table, rows: list[Row], instant: datetime | None) -> Row | None:
        for _ in range(20):
            row = tuple(self._first(f, instant) for f in table.fields)
            if not self.unique or not table.keys or all(any(row[k] != other[k] for k in table.keys) for other in rows):
                rows.append(row)
                return row
        return None

    def _first(self, f: Field, instant: datetime | None) -> Any:
        if f.ordered or (f.type in ("TIMESTAMP", "DATE") and self.random.random() < 0.8):
            return _time_of(f, instant)
        return self._value(f)

    def _value(self, f: Field) -> Any:
        chance = self.random.random()
        if chance < 0.08 and not f.key and not f.required:
            return None
        if f.values and chance < 0.8 and f.type not in ("TIMESTAMP", "DATE"):
            text = self.random.choice(f.values)
            return text if f.type == "VARCHAR" else _number(text, f.type)
        at, of = f.share
        most = f.size * self.plan.rows // 6
        meets = f.joined and self.now and self.random.random() < 0.7
        number = (most + self.now if meets else self.random.randint(1, most)) * of + at
        if f.type in ("TIMESTAMP", "DATE"):
            return _time_of(f, self._old())
        if f.type == "BOOLEAN":
            return self.random.random() < 0.7
        return {"VARCHAR": f"v{number}", "DOUBLE": float(number)}.get(f.type, number)

    def _instant(self, batch: int) -> datetime:
        """A time of its own in the window of a batch, after all earlier ones."""
        self.ticks += 1
        return self.plan.clock(batch) - _WINDOW + timedelta(seconds=self.ticks)

    def _old(self) -> datetime:
        self.ticks += 1
        return self.plan.clock(1) - timedelta(days=self.random.choice(self.plan.ages), seconds=-self.ticks)

    def _late(self, batch: int) -> datetime | None:
        """A time before a run that has been: in an earlier batch, or long ago. Or none."""
        return self.random.choice((self._instant(batch - 1), self._old(), None))


def _time_of(f: Field, instant: datetime | None) -> Any:
    if f.joined and instant is not None:
        instant = instant.replace(minute=instant.minute // 30 * 30, second=0)
    return _time(f.type, instant)


def _time(kind: str, instant: datetime | None) -> Any:
    if instant is None:
        return None
    values: dict[str, Any] = {"TIMESTAMP": instant, "DATE": instant.date(), "VARCHAR": instant.isoformat(" "), "BOOLEAN": True}
    seconds = int((instant - datetime(2024, 1, 1)).total_seconds())
    return values.get(kind, seconds if kind == "BIGINT" else float(seconds))


def _number(text: str, kind: str) -> Any:
    try:
        return float(text) if kind == "DOUBLE" else int(float(text)) if kind == "BIGINT" else text.lower() == "true"
    except ValueError:
        return None


def subsets(items: Sequence[int], most: int) -> Iterator[frozenset[int]]:
    """None of the items, all of them, and then the others, up to a number of items."""
    kept = items[:most]
    masks = sorted(range(2 ** len(kept)), key=lambda mask: min(mask.bit_count(), len(kept) - mask.bit_count()))
    yield from (frozenset(item for at, item in enumerate(kept) if mask >> at & 1) for mask in masks)
