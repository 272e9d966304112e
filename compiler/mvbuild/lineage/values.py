"""The types of binding: Value of an expression, Output columns, the Relation of a FROM item or query, and Findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics.diagnostic import Severity
from mvbuild.lineage.types import Type


class Base(NamedTuple):
    """A column of a relation that the query reads: the index of the read, and the column's name."""

    read: int
    column: str


NOTHING: frozenset[Base] = frozenset()


class Value(NamedTuple):
    """The type and base columns of an expression."""

    type: Type | None = None
    bases: frozenset[Base] = NOTHING
    sure: bool = True
    """False if the value may come from other columns too."""

    def typed(self, type_: Type | None) -> Value:
        return Value(type_, self.bases, self.sure)


def joined(values: Iterable[Value], type_: Type | None = None) -> Value:
    """Several values as one, with one type."""
    parts = list(values)
    if len(parts) == 1:
        return parts[0].typed(type_)
    return Value(type_, NOTHING.union(*(v.bases for v in parts)), all(v.sure for v in parts))


class Attribute:
    """The identity of an output column: a name that means the same attribute twice is not ambiguous."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Output:
    """A column of a relation. `name` is None if only Spark knows it."""

    name: str | None
    value: Value
    place: tuple[int, int] | None = None
    """Offsets in the query's text."""
    attribute: Attribute | None = None

    @property
    def key(self) -> str | None:
        return None if self.name is None else self.name.lower()


_MOST_OF_A_NAME = 100
"""The limit of candidates for one name: without it, a list of 20,000 columns of one name would be searched 20,000 times."""


class Named:
    """Columns by name. It grows while a SELECT list is bound: each item sees the names before it."""

    __slots__ = ("_by_key", "_columns")

    def __init__(self, columns: Iterable[Output] = ()) -> None:
        self._columns: list[Output] = []
        self._by_key: dict[str, list[Output]] = {}
        self.add(columns)

    def add(self, columns: Iterable[Output]) -> None:
        for column in columns:
            key = column.key
            if key is not None:
                self._columns.append(column)
                alike = self._by_key.setdefault(key, [])
                if len(alike) < _MOST_OF_A_NAME:
                    alike.append(column)

    def of(self, key: str) -> tuple[Output, ...]:
        return tuple(self._by_key.get(key, ()))

    def __iter__(self) -> Iterator[Output]:
        return iter(self._columns)

    def __bool__(self) -> bool:
        return bool(self._columns)


@dataclass(frozen=True, slots=True)
class Relation:
    """An item of FROM, or a query."""

    columns: tuple[Output, ...]
    """The known columns, in order."""
    rest: tuple[int | None, ...] = ()
    """If not empty, these reads may add further columns; None stands for an unknown source."""
    rows: frozenset[Base] = NOTHING
    """What decides its rows."""
    hidden: frozenset[str] = frozenset()
    """Further names that a star does not include."""

    @property
    def is_closed(self) -> bool:
        return not self.rest

    def named(self, names: Iterable[str], places: Iterable[tuple[int, int] | None] = ()) -> Relation:
        """The relation with other column names; there must be as many names as columns."""
        given = list(names)
        spots = [*places, *([None] * len(given))]
        columns = tuple(Output(n, c.value, p or c.place, c.attribute) for c, n, p in zip(self.columns, given, spots, strict=False))
        return replace(self, columns=columns)

    def fresh(self) -> Relation:
        """The same relation again: its columns become new attributes."""
        again: dict[int, Attribute] = {}
        columns = tuple(Output(c.name, c.value, c.place, again.setdefault(id(c.attribute), Attribute())) for c in self.columns)
        return replace(self, columns=columns)


UNKNOWN = Relation(columns=(), rest=(None,))


@dataclass(frozen=True, slots=True)
class Finding:
    """A definite error, at offsets in the query's text."""

    code: str
    message: str
    start: int
    end: int
    help: str = ""
    severity: Severity = "error"


def attributes(values: Iterable[tuple[str | None, Value, tuple[int, int] | None]]) -> Iterator[Output]:
    """Turn values into new columns."""
    return (Output(name, value, place, Attribute()) for name, value, place in values)
