"""names and types of the columns of a tree while it is made: Building, which the modules that make parts of one tree share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from itertools import count
from typing import Any

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.incremental.algebra import Relation
from mvbuild.incremental.compared_columns import has_uuid
from mvbuild.incremental.functions import is_scalar
from mvbuild.incremental.scopes import Block, Scope
from mvbuild.incremental.syntax import unsupported
from mvbuild.lineage.expression_type import Types, type_of
from mvbuild.lineage.types import Type, of_iceberg


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafColumns:
    """The columns of a table: its names as they are, each with its type in Spark."""

    types: Types
    required: frozenset[str] = frozenset()
    """The columns that cannot be NULL."""

    @staticmethod
    def of_iceberg(types: Mapping[str, Any], required: frozenset[str] = frozenset()) -> LeafColumns:
        """`types`: in the JSON of an Iceberg schema. A UUID, for which no condition may be written, is a type without comparisons here."""
        return LeafColumns(
            types={name: "variant" if has_uuid(type_) else of_iceberg(type_) for name, type_ in types.items()}, required=required
        )


@dataclass(kw_only=True)
class Building:
    """What is known about the columns of one tree."""

    leaves: Sequence[LeafColumns]
    query: Callable[[Building, exp.Expr, Scope], Block]
    """Makes the tree of a subquery."""
    scalar: Callable[[Building, Relation, exp.Expr, Scope], tuple[Relation, exp.Expr]]
    """Adds the value of a scalar subquery to a relation."""
    correlated: Callable[[Building, exp.Select, Scope], tuple[Block, list[exp.Expr]]]
    """Makes the tree of a subquery without its conditions on the query around it; and these conditions."""
    parameters: frozenset[str] = frozenset()
    """The parameters of lambda functions, whose names no column of the tree gets."""
    types: dict[str, Type | None] = field(default_factory=dict)
    origins: dict[str, tuple[int, str]] = field(default_factory=dict)
    required: set[str] = field(default_factory=set)
    numbers: count[int] = field(default_factory=count)

    def fresh(self, name: str, type_: Type | None) -> str:
        """A new column of the tree."""
        plain = "".join(c if c.isalnum() else "_" for c in name.lower()) or "column"
        unique = next(one for number in self.numbers if (one := f"{plain}_{number}") not in self.parameters)
        self.types[unique] = type_
        return unique

    def computed(self, name: str, value: exp.Expr) -> str:
        """A new column of the tree, of the type of an expression over other columns of it."""
        return self.fresh(name, type_of(value, self.types))


def require_scalar(expression: exp.Expr | None) -> None:
    """Raise Refused if a part of it is not a function of its own row."""
    for node in expression.walk() if expression is not None else ():
        if not is_scalar(node) and not isinstance(node, exp.Lambda | exp.Star):
            raise unsupported(node)
