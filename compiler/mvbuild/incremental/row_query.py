"""Shape over one table -> RowQuery: the same query for a single row, as a condition and an expression for each output.

Where the rows of a table change, the change of such a query can be computed with them, in the same statement.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.incremental.algebra import Filter, Project, Relation, Scan, column, conjunction, substituted
from mvbuild.incremental.shape import Shape


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowQuery:
    """A query that only filters and projects the rows of one table. All expressions are over the columns of the table."""

    conditions: tuple[exp.Expr, ...]
    """All of them hold for a row that the query returns; each is computed only where those before it hold."""
    outputs: tuple[exp.Expr, ...]

    def of(self, values: Mapping[str, exp.Expr], is_row: exp.Expr) -> tuple[exp.Expr, ...]:
        """Whether the query returns a row for these values of the table's columns, and its outputs; computed only where `is_row` holds."""
        is_returned = conjunction([is_row, *(substituted(one, values) for one in self.conditions)])
        assert is_returned is not None
        flag = exp.Coalesce(this=is_returned, expressions=[exp.false()])
        cases = (exp.Case(ifs=[exp.If(this=is_returned.copy(), true=substituted(one, values))]) for one in self.outputs)
        return flag, *cases


def row_query(shape: Shape, leaf: int) -> RowQuery | None:
    """None if the query reads anything but the rows of this table, or does more with them.

    >>> from mvbuild.incremental.samples import shape
    >>> found = row_query(shape("SELECT amount + 2 AS more FROM {orders} WHERE amount > 0"), 0)
    >>> [one.sql() for one in (*found.conditions, *found.outputs)]
    ['"amount" > 0', '("amount" + 2)']
    >>> row_query(shape("SELECT count(*) AS n FROM {orders}"), 0) is None
    True
    """
    relation: Relation = shape.root
    conditions: list[exp.Expr] = []
    outputs = [column(name) for name, _ in shape.outputs]

    def over(values: Mapping[str, exp.Expr]) -> None:
        conditions[:] = [substituted(one, values) for one in conditions]
        outputs[:] = [substituted(one, values) for one in outputs]

    while type(relation) in (Project, Filter):
        if isinstance(relation, Filter):
            conditions.insert(0, relation.predicate)
        elif isinstance(relation, Project):
            over({item.name: item.expression for item in relation.items})
        (relation,) = relation.children
    if not isinstance(relation, Scan) or (relation.leaf, relation.version) != (leaf, "new"):
        return None
    over({name: column(source) for name, source in relation.sources})
    return RowQuery(conditions=tuple(conditions), outputs=tuple(outputs))
