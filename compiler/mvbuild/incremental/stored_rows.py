"""Rows of the storage table, as a relation -> pairs of them with equal rows of another relation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.incremental.algebra import Item, Join, JoinKind, Project, Relation, Scan, Window, column
from mvbuild.incremental.emit import null_safe
from mvbuild.incremental.zeros import has_zeros, zero_of

STORAGE = -1
"""The leaf number of the storage table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The storage table as a relation: its columns with their Iceberg types, and the columns with the position of a row."""

    types: Mapping[str, Any]
    position: tuple[str, ...] = ("_file", "_pos")
    is_large: bool = False
    """Too large to be broadcast: only its rows with the keys of a change are joined with the change."""

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.types)

    @property
    def values(self) -> tuple[str, ...]:
        return tuple(f"stored_{at}v" for at in range(len(self.columns)))

    @property
    def at(self) -> tuple[str, ...]:
        return tuple(f"stored_at_{at}v" for at in range(len(self.position)))

    @property
    def scan(self) -> Scan:
        return Scan(STORAGE, tuple(zip((*self.values, *self.at), (*self.columns, *self.position), strict=True)))


def values_of(rows: Relation, outputs: Sequence[tuple[str, str]], prefix: str) -> Relation:
    """The columns of the storage, in order, under new names."""
    return Project(rows, tuple(Item(f"{prefix}_{at}v", column(name)) for at, (name, _) in enumerate(outputs)))


Side = tuple[Relation, Sequence[str], str]
"""Rows, their values in the order of the storage's columns, and a name for the number that distinguishes equal rows."""


def paired(stored: Stored, one: Side, other: Side, kind: JoinKind) -> Join:
    """Each row of one relation with the same row of the other, as often as both have it."""
    sides, names = [], []
    for relation, values, number in (one, other):
        zeros = {
            f"{name}_zero": zero_of(column(name), type_)
            for name, type_ in zip(values, stored.types.values(), strict=True)
            if has_zeros(type_)
        }
        outputs = (*values, *zeros)
        whole = Project(relation, (*(Item(n, column(n)) for n in relation.columns), *(Item(n, e) for n, e in zeros.items())))
        sides.append(numbered(whole if zeros else relation, outputs, number))
        names.append((*outputs, number))
    left, right = sides
    return Join(left, right, kind, null_safe(list(zip(*names, strict=True))))


def same_value(one: exp.Expr, other: exp.Expr, type_: Any) -> list[exp.Expr]:
    pairs = [(one, other), *([(zero_of(one, type_), zero_of(other, type_))] if has_zeros(type_) else [])]
    return [exp.NullSafeEQ(this=exp.paren(left), expression=exp.paren(right)) for left, right in pairs]


def numbered(relation: Relation, names: Sequence[str], number: str) -> Relation:
    """Number equal rows to distinguish them."""
    by = [column(name) for name in names]
    window = exp.Window(
        this=exp.RowNumber(), partition_by=by, order=exp.Order(expressions=[exp.Ordered(this=column(names[0]), nulls_first=True)])
    )
    return Window(relation, (Item(number, window),))


def not_null(name: str) -> exp.Expr:
    return exp.Not(this=exp.Is(this=column(name), expression=exp.Null()))
