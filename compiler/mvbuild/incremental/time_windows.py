"""window() in a SELECT -> TimeWindow: each row once for each time window that it is in, and the SELECT with a column in place of the call.

As in Spark, the rest of the SELECT can name the column `window`, rows without a time are in no window, and there is only one window().
So it is with session_window(), which is a key of GROUP BY: the rows themselves stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from mvbuild.incremental.algebra import Item, Relation, TimeWindow
from mvbuild.incremental.building import Building, require_scalar
from mvbuild.incremental.functions import called
from mvbuild.incremental.scopes import Scope, known, resolved, source
from mvbuild.incremental.syntax import unsupported
from mvbuild.lineage.expression_type import type_of
from mvbuild.lineage.types import Struct

WINDOW, SESSION = "window", "session_window"
_TIMES = ("timestamp", "timestamp_ntz")


def with_time_window(
    building: Building, relation: Relation, scope: Scope, tree: exp.Select
) -> tuple[Relation, Scope, exp.Select, Item | None]:
    """`relation`: the rows behind WHERE. The item is the column of a session, which a key of GROUP BY is in place of the call. Raises
    Refused for several windows, and for a time of another type."""
    made = tree.copy()
    calls = list(_calls(made))
    if not calls:
        return relation, scope, tree, None
    generators = [resolved(call, scope) for call in calls]
    generator = generators[0]
    if any(one != generator for one in generators):
        raise unsupported(calls[1])
    time, *lengths = generator.expressions
    require_scalar(time)
    type_ = type_of(time, building.types)
    if type_ not in _TIMES or not lengths or not all(isinstance(one, exp.Literal) and one.is_string for one in lengths):
        raise unsupported(calls[0])
    name = called(generator)
    column = building.fresh(name, Struct((("start", type_), ("end", type_))))
    for call in calls:
        call.replace(known(column))
    if not any(one.find(exp.Star) and not one.find(exp.Func) for one in made.expressions):
        scope = replace(scope, tables=scope.tables.together(source("", [(name, column)])))
    if name == SESSION:
        return relation, scope, made, Item(column, generator)
    return TimeWindow(relation, generator, (column,), outer=False), scope, made, None


def _calls(select: exp.Select) -> Iterator[exp.Expr]:
    """The calls in SELECT and GROUP BY, outside subqueries."""
    pending = [*select.expressions, *([select.args["group"]] if select.args.get("group") else [])]
    while pending:
        node = pending.pop(0)
        if called(node) in (WINDOW, SESSION):
            yield node
        elif not isinstance(node, exp.Query):
            pending.extend(node.iter_expressions())
