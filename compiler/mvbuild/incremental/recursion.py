"""WITH RECURSIVE -> the rows of the recursion, which are the same in every refresh: it starts with constants, and reads no table."""

from __future__ import annotations

from sqlglot import exp

from mvbuild.incremental.algebra import OneRow, Recursion
from mvbuild.incremental.building import Building, require_scalar
from mvbuild.incremental.clock import has_reading
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.scopes import Block
from mvbuild.incremental.syntax import has_query, require, unsupported
from mvbuild.lineage.expression_type import type_of
from mvbuild.lineage.types import Type


def recursion(building: Building, clause: exp.With) -> Block:
    """`clause`: with one query, such as days (d): SELECT <date> UNION ALL SELECT d + 1 FROM days WHERE d < <date>. Raises Refused for a
    query that reads a table or the clock, or that has several columns or another form."""
    (cte,) = clause.expressions
    union = cte.this.unnest()
    if not isinstance(union, exp.Union) or union.args.get("distinct"):
        raise unsupported(clause)
    require(union, {"this", "expression", "distinct"}, "unsupported-operator")
    anchor, step = union.this.unnest(), union.expression.unnest()
    if any(table.name.lower() != cte.alias.lower() for table in union.find_all(exp.Table)):
        raise Refused("unsupported-operator", "WITH RECURSIVE over a table is not refreshed incrementally", clause)
    _require_plain(anchor, {"expressions"})
    _require_plain(step, {"expressions", "from_", "where"})
    source = step.args.get("from_")
    if source is None or not isinstance(source.this, exp.Table):
        raise unsupported(step)
    require(source.this, {"this", "alias"}, "unsupported-operator")
    alias = cte.args["alias"]
    names = [one.name for one in alias.columns] or [one.alias_or_name for one in anchor.expressions]
    if not len(names) == len(anchor.expressions) == len(step.expressions) == 1 or not names[0]:
        # Spark's plan does not show which column of a recursion is which.
        raise Refused("unsupported-operator", "WITH RECURSIVE with several columns is not refreshed incrementally", clause)
    (name,) = names
    clause = clause.copy()
    clause.expressions[0].args["alias"].set("columns", [exp.to_identifier(name, quoted=True)])
    unique = building.fresh(name, _type(anchor.expressions[0], step.expressions[0], name))
    return Block(Recursion(OneRow(), clause, (unique,), outer=False), ((name, unique),))


def _require_plain(select: exp.Expr, parts: set[str]) -> None:
    """Raise Refused for a query with other parts, or with a value that is not a function of its own row."""
    if not isinstance(select, exp.Select):
        raise unsupported(select)
    require(select, parts, "unsupported-operator")
    condition = select.args.get("where")
    for value in (*select.expressions, *([condition.this] if condition else [])):
        if has_query(value):
            raise unsupported(value)
        if has_reading(value):
            raise Refused("unsupported-operator", "WITH RECURSIVE that reads the clock is not refreshed incrementally", value)
        require_scalar(value.unalias())


def _type(anchor: exp.Expr, step: exp.Expr, name: str) -> Type | None:
    """Unknown if the two queries differ: Spark then casts them."""
    type_ = type_of(anchor.unalias(), {})
    return type_ if type_of(step.unalias(), {name: type_}) == type_ else None
