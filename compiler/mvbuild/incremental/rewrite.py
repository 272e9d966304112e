"""The types of a rewrite: the statements that bring a storage table up to date, as relations; and the input of a strategy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.incremental.algebra import Relation
from mvbuild.incremental.delta import Cte, Deltas
from mvbuild.incremental.kinds import kind_of_type
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.shape import Shape
from mvbuild.lineage.types import of_iceberg
from mvbuild.ports.states import Partition

TARGET, SOURCE = "t", "d"
"""The names of storage and delta in the expressions of an Upsert."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyInput:
    """The input of a strategy: a query, the tables with added rows and those with removed rows, and the storage table."""

    shape: Shape
    plus: frozenset[int]
    minus: frozenset[int]
    types: Mapping[str, Any]
    """Column of the storage -> Iceberg type in its JSON form, in order."""
    partition_by: tuple[Partition, ...] = ()
    float_tolerance: float | None = None
    has_children: bool = False
    """Whether other MVs read this one."""
    clock: Mapping[str, str] = field(default_factory=dict)
    """The earlier values of what the query reads of the clock, where they differ. `shape` has these readings in filters and projections."""

    few_rows: bool = True
    narrow_keys: bool = False
    """Of these two, see `Deltas`."""

    def deltas(self) -> Deltas:
        return Deltas(
            plus=self.plus,
            minus=self.minus,
            types=self.shape.types,
            clock=self.clock,
            few_rows=self.few_rows,
            narrow_keys=self.narrow_keys,
        )

    @property
    def changed(self) -> frozenset[int]:
        return self.plus | self.minus

    def require_comparable(self) -> None:
        """Raise Refused if rows of the result cannot be distinguished by their values."""
        for name, output in self.shape.outputs:
            held = self.types.get(output)
            kinds = kind_of_type(self.shape.types.get(name)), kind_of_type(of_iceberg(held) if held is not None else None)
            if "uncomparable" in kinds:
                raise Refused(
                    "uncomparable-column", f"column {output} has a map, a variant, or floats in an array, which cannot be compared"
                )


@dataclass(frozen=True, slots=True, eq=False)
class Append:
    """Insert the rows; nothing else changes."""

    rows: Relation


@dataclass(frozen=True, slots=True, eq=False)
class Upsert:
    """MERGE: each row of `delta` updates the one row of the storage with the same keys, or is a new row.

    Expressions are over `t` (storage) and `d` (delta). A row that stays the same is not written.
    """

    delta: Relation
    keys: tuple[tuple[str, str], ...]
    """(column of the storage, column of the delta); NULL equals NULL. Without keys the storage has one row."""
    updates: Mapping[str, exp.Expr]
    """Column of the storage -> its new value, for all columns that are not keys."""
    inserts: Mapping[str, exp.Expr]
    delete_when: exp.Expr | None = None
    insert_when: exp.Expr | None = None
    only_if: exp.Expr | None = None
    """Only without keys: otherwise the new values do not follow from the old ones, and the refresh fails."""


@dataclass(frozen=True, slots=True, eq=False)
class Exchange:
    """Replace the rows of the storage whose keys are in `keys` by `rows`. `keys` may contain more keys than needed, and `rows` must have
    all rows with these keys. Only differences are written. Without keys: all rows of the storage."""

    rows: Relation
    keys: Cte | None
    columns: tuple[tuple[str, str], ...] = ()
    """(column of the storage, column of `keys`)."""


@dataclass(frozen=True, slots=True, eq=False)
class Bag:
    """Remove as many copies of each row as `minus` has, and add `plus`; rows in both cancel out."""

    plus: Relation | None
    minus: Relation | None


NOTHING = Bag(None, None)
"""The change does not affect the query (it is in a common table expression that is never used)."""


@dataclass(frozen=True, slots=True, eq=False)
class OverwritePartitions:
    """Replace the partitions of the storage that contain the keys by `rows`, which has all rows of those partitions."""

    rows: Relation
    keys: Cte
    partitions: tuple[tuple[str, str, str], ...]
    """(column of the storage, transform, column of `keys`)."""


@dataclass(frozen=True, slots=True, eq=False)
class Top:
    """Keep the first `count` rows of those in the storage, without those in `minus`, and those in `plus`. The refresh fails if there are
    too few of them: then the next ones are in neither."""

    plus: Relation | None
    minus: Relation | None
    order: tuple[exp.Expr, ...]
    """Over the columns of `plus` and `minus`."""
    count: int


Write = Append | Upsert | Exchange | Bag | OverwritePartitions | Top


def map_relations(write: Write, change: Callable[[Relation], Relation]) -> Write:
    """The same way to write other rows."""
    if isinstance(write, Upsert):
        return replace(write, delta=change(write.delta))
    if isinstance(write, Bag | Top):
        plus, minus = (change(side) if side is not None else None for side in (write.plus, write.minus))
        return replace(write, plus=plus, minus=minus)
    return replace(write, rows=change(write.rows))


def relations_of(rewrite: Rewrite) -> tuple[Relation, ...]:
    """Everything that it computes: its statements, and the rows that it writes."""
    found = [cte.relation for cte in rewrite.ctes]

    def noted(relation: Relation) -> Relation:
        found.append(relation)
        return relation

    map_relations(rewrite.write, noted)
    return tuple(found)


@dataclass(frozen=True, slots=True, eq=False)
class Rewrite:
    """`lets` come first, in order; `outputs` are the columns of the written rows: (name in the tree, column of the storage)."""

    strategy: str
    write: Write
    ctes: tuple[Cte, ...] = ()
    outputs: tuple[tuple[str, str], ...] = field(default=())


def with_more_statements(rewrite: Rewrite, change: Callable[[Relation], Relation], new: list[Cte]) -> Rewrite:
    """The rewrite over changed relations. `change` adds the statements that a relation reads to `new`; each comes before the one that reads
    it first."""
    ctes: list[Cte] = []
    for cte in rewrite.ctes:
        relation = change(cte.relation)
        ctes.extend((*new, replace(cte, relation=relation)))
        new.clear()
    write = map_relations(rewrite.write, change)
    return replace(rewrite, write=write, ctes=(*ctes, *new))
