"""Aggregate -> the aggregate with the counts and sums that keep its groups mergeable when rows are deleted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from mvbuild.incremental.aggregate_arguments import never_null, simple
from mvbuild.incremental.algebra import Aggregate, Item
from mvbuild.incremental.functions import unwrapped
from mvbuild.incremental.matched_rows import matched_rows
from mvbuild.incremental.shape import Shape
from mvbuild.lineage.expression_type import type_of
from mvbuild.lineage.types import Type


def with_parts(aggregate: Aggregate, shape: Shape) -> tuple[Aggregate, dict[str, Type | None]]:
    """The aggregate with count(*), and the sum and count of everything that it adds up or averages; and the types of the new columns.
    Without count(*) where that would change with rows that change nothing else."""
    values = list(aggregate.values)
    types: dict[str, Type | None] = {}
    known = never_null(aggregate.child, shape.required)
    for part in _parts(aggregate, known):
        function, argument = simple(part)
        present = [simple(one.expression) for one in values if _is_plain(one.expression)]
        if any((type(f), a) == (type(function), argument) for f, a in present):
            continue
        name = f"{aggregate.values[0].name if aggregate.values else aggregate.keys[0].name}_part_{len(values)}p"
        types[name] = type_of(part, shape.types)
        values.append(Item(name, part))
    return replace(aggregate, values=tuple(values)), types


def _is_plain(expression: exp.Expr) -> bool:
    return isinstance(unwrapped(expression), exp.Count | exp.CountIf | exp.Sum) and expression.find(exp.Distinct) is None


def _parts(aggregate: Aggregate, never_null_columns: frozenset[str]) -> Iterator[exp.Expr]:
    if matched_rows(aggregate) is None:
        yield exp.Count(this=exp.Star())
    for item in aggregate.values:
        function, argument = simple(item.expression)
        if not isinstance(function, exp.Sum | exp.Avg) or argument is None:
            continue
        if isinstance(function, exp.Avg):
            yield exp.Sum(this=argument.copy())
        if not (isinstance(argument, exp.Column) and argument.name in never_null_columns):
            yield exp.Count(this=argument.copy())
