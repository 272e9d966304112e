"""an expression over columns with types -> its type, by the rules that bind whole queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from mvbuild.lineage.binding import Binding
from mvbuild.lineage.expressions import value
from mvbuild.lineage.generators import generated
from mvbuild.lineage.queries import query
from mvbuild.lineage.scopes import Scope, Tables
from mvbuild.lineage.types import Type
from mvbuild.lineage.values import Output, Value

Types = Mapping[str, "Type | None"]
"""The name of a column -> its type; None, as for a name that is not there, if it is not known."""


def type_of(node: exp.Expr, columns: Types) -> Type | None:
    """The type of an expression under Spark's default settings; None if it is not certain.

    >>> type_of(exp.condition("price * 2 + cost"), {"price": "int", "cost": "bigint"})
    'bigint'
    """
    if isinstance(node, exp.Column):
        return columns.get(node.name)
    return value(node, _scope(node, columns), _binding()).type


def generated_types(generator: exp.Expr, names: Sequence[str], columns: Types) -> tuple[Type | None, ...]:
    """The types of the columns that a generator makes, one for each of their names."""
    found = generated(generator, names, _scope(generator, columns), _binding()).columns
    return tuple(c.value.type for c in found) if len(found) == len(names) else (None,) * len(names)


def generated_names(generator: exp.Expr, columns: Types) -> tuple[str, ...]:
    """The names that Spark gives to what a generator without aliases makes; empty if only Spark knows them."""
    return tuple(c.name or "" for c in generated(generator, (), _scope(generator, columns), _binding()).columns)


def _scope(node: exp.Expr, columns: Types) -> Scope:
    names = dict.fromkeys(found.name for found in node.find_all(exp.Column))
    known = tuple(Output(name, Value(columns[name])) for name in names if columns.get(name) is not None)
    # Other names are those of columns about which nothing is known.
    return Scope(tables=Tables(star=known, rest=(None,)))


def _binding() -> Binding:
    return Binding(query=query, table=lambda _: None)
