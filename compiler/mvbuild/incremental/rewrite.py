"""The types of a rewrite: the statements that bring a storage table up to date, as relations; and what strategies know to write one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from mvbuild.incremental.algebra import Relation
from mvbuild.incremental.delta import Cte, Deltas
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.shape import Shape
from mvbuild.ports.states import Partition

TARGET, SOURCE = "t", "d"
"""The names of storage and delta in the expressions of an Upsert."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyInput:
    """What a strategy is asked about: a query, which tables got rows and which lost some, and the storage table."""

    shape: Shape
    plus: frozenset[int]
    minus: frozenset[int]
    types: Mapping[str, Any]
    """Column of the storage -> Iceberg type in its JSON form, in order."""
    partition_by: tuple[Partition, ...] = ()
    float_tolerance: float | None = None
    has_children: bool = False
    """Whether other MVs read this one."""

    def deltas(self) -> Deltas:
        return Deltas(plus=self.plus, minus=self.minus, kinds=self.shape.kinds)

    @property
    def changed(self) -> frozenset[int]:
        return self.plus | self.minus

    def require_comparable(self) -> None:
        """Refused if rows of the result cannot be told apart by their values."""
        for name, output in self.shape.outputs:
            if self.shape.kinds.get(name) == "uncomparable":
                raise Refused(
                    "uncomparable-column", f"column {output} has a map, a variant, or floats in an array, which cannot be compared"
                )


@dataclass(frozen=True, slots=True, eq=False)
class Append:
    """Insert the rows; nothing else changes."""

    rows: Relation


@dataclass(frozen=True, slots=True, eq=False)
class Upsert:
    """MERGE: each row of `delta` brings the one row of the storage with the same keys up to date, or is a new one.

    Expressions are over `t` (storage) and `d` (delta). A row that stays the same is not written.
    """

    delta: Relation
    keys: tuple[tuple[str, str], ...]
    """(column of the storage, column of the delta); NULL equals NULL. Without keys the storage has one row."""
    updates: Mapping[str, exp.Expr]
    """Column of the storage -> its new value, of all that are no keys."""
    inserts: Mapping[str, exp.Expr]
    delete_when: exp.Expr | None = None
    insert_when: exp.Expr | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Exchange:
    """The rows of the storage with keys that are in `keys` become `rows`, a superset of which is in the keys too. Only differences are
    written. Without keys: all rows of the storage."""

    rows: Relation
    keys: Cte | None
    columns: tuple[tuple[str, str], ...] = ()
    """(column of the storage, column of `keys`)."""


@dataclass(frozen=True, slots=True, eq=False)
class Bag:
    """Remove as many copies of each row as `minus` has, and add `plus`; what is in both cancels out."""

    plus: Relation | None
    minus: Relation | None


NOTHING = Bag(None, None)
"""What changed is not in the query (a common table expression that nobody reads)."""


@dataclass(frozen=True, slots=True, eq=False)
class OverwritePartitions:
    """The partitions of the storage that hold the keys become `rows`, which has all rows of those partitions."""

    rows: Relation
    keys: Cte
    partitions: tuple[tuple[str, str, str], ...]
    """(column of the storage, transform, column of `keys`)."""


Write = Append | Upsert | Exchange | Bag | OverwritePartitions


@dataclass(frozen=True, slots=True, eq=False)
class Rewrite:
    """`lets` come first, in order; `outputs` are the columns of the rows that are written: (name in the tree, column of the storage)."""

    strategy: str
    write: Write
    ctes: tuple[Cte, ...] = ()
    outputs: tuple[tuple[str, str], ...] = field(default=())
