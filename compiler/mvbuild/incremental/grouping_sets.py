"""GROUP BY, with ROLLUP, CUBE and GROUPING SETS -> Grouping: the rows to group, and the keys of their groups.

Grouping sets are one GROUP BY over more rows: each row comes once for each set, with NULL in place of the keys that the set does not have,
and with the number of the set. Spark numbers sets by `grouping_id()`, one bit for each key, 1 if the set does not have it: two equal sets
would need another number, and are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.incremental.algebra import Aggregate, Expand, Explode, Item, Relation, Sessions, column, with_items
from mvbuild.incremental.building import Building, require_scalar
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.syntax import require, unsupported

Sets = list[list[exp.Expr]]
_ANALYTICS = (exp.Rollup, exp.Cube, exp.GroupingSets)
_MOST_KEYS = 63
"""grouping_id() is a bigint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """`relation`: the rows to group by `keys`. `written`: for each key, the expression that stands for it in SELECT."""

    relation: Relation
    keys: tuple[Item, ...] = ()
    written: tuple[exp.Expr, ...] = ()
    identifier: str = ""
    """The column with the number of the grouping set; empty without grouping sets."""
    session: Item | None = None
    """The key that is a session."""

    def aggregate(self, values: Sequence[Item]) -> Aggregate | Sessions:
        if self.session is None:
            return Aggregate(self.relation, self.keys, tuple(values))
        others = tuple(key for key in self.keys if key.name != self.session.name)
        return Sessions(self.relation, others, self.session, tuple(values))

    def value(self, node: exp.Expr) -> exp.Expr | None:
        """What an expression in SELECT or HAVING is in the result of the aggregate; None if it is neither a key nor grouping()."""
        for key, written in zip(self.keys, self.written, strict=False):
            if written == node:
                return column(key.name)
        if not self.identifier or not isinstance(node, exp.Grouping | exp.GroupingId):
            return None
        arguments = [*((node.this,) if node.this is not None else ()), *node.expressions]
        if isinstance(node, exp.GroupingId):
            if arguments and tuple(arguments) != self.written:
                raise unsupported(node)
            return column(self.identifier)
        if len(arguments) != 1 or arguments[0] not in self.written:
            raise unsupported(node)
        shifted = exp.BitwiseRightShift(this=column(self.identifier), expression=_number(self._place(arguments[0])))
        bit = exp.BitwiseAnd(this=shifted, expression=_number(1))
        return exp.Cast(this=exp.paren(bit), to=exp.DataType.build("tinyint"))

    def _place(self, key: exp.Expr) -> int:
        return len(self.written) - 1 - self.written.index(key)


def written_sets(group: exp.Group, meant: Callable[[exp.Expr], exp.Expr]) -> tuple[list[exp.Expr], Sets | None]:
    """The keys in the order of their bits, and the sets; None without grouping sets. `meant`: the expression behind a position or an
    alias."""
    require(group, {"expressions", "rollup", "cube", "grouping_sets"}, "unsupported-operator")
    behind = [*(group.args.get("rollup") or ()), *(group.args.get("cube") or ()), *(group.args.get("grouping_sets") or ())]
    if behind:
        return _sets_behind(group, behind, meant)
    parts = [(one, _sets_of(one, meant)) for one in group.expressions]
    keys = [key for one, sets in parts for key in _keys_of(one, sets, meant)]
    if not any(isinstance(one, _ANALYTICS) for one in group.expressions):
        return keys, None
    return keys, [[key for chosen in choice for key in chosen] for choice in product(*(sets for _, sets in parts))]


def _sets_behind(group: exp.Group, behind: Sequence[exp.Expr], meant: Callable[[exp.Expr], exp.Expr]) -> tuple[list[exp.Expr], Sets]:
    """GROUP BY a, b WITH ROLLUP, and GROUP BY a, b GROUPING SETS (...): the sets are of these keys."""
    (one, *others) = behind
    if others or any(isinstance(key, (*_ANALYTICS, exp.Tuple)) for key in group.expressions):
        raise unsupported(group)
    keys = [meant(key) for key in group.expressions]
    if isinstance(one, exp.GroupingSets):
        sets = _sets_of(one, meant)
        if any(key not in keys for chosen in sets for key in chosen):
            raise unsupported(group)
        return keys, sets
    if one.expressions:
        raise unsupported(group)
    units = [[key] for key in keys]
    return keys, _prefixes(units) if isinstance(one, exp.Rollup) else _subsets(units)


def _sets_of(node: exp.Expr, meant: Callable[[exp.Expr], exp.Expr]) -> Sets:
    if isinstance(node, exp.GroupingSets):
        return [chosen for one in node.expressions for chosen in _sets_of(one, meant)]
    if isinstance(node, exp.Rollup | exp.Cube):
        units = [_unit(one, meant) for one in node.expressions]
        return _prefixes(units) if isinstance(node, exp.Rollup) else _subsets(units)
    return [_unit(node, meant)]


def _keys_of(node: exp.Expr, sets: Sets, meant: Callable[[exp.Expr], exp.Expr]) -> list[exp.Expr]:
    if isinstance(node, exp.Rollup | exp.Cube):
        return [key for one in node.expressions for key in _unit(one, meant)]
    return [key for chosen in sets for key in chosen]


def _unit(node: exp.Expr, meant: Callable[[exp.Expr], exp.Expr]) -> list[exp.Expr]:
    """(a, b) is one key of two columns."""
    return [meant(one) for one in (node.expressions if isinstance(node, exp.Tuple) else [node.unnest()])]


def _prefixes(units: Sets) -> Sets:
    return [[key for unit in units[:length] for key in unit] for length in range(len(units), -1, -1)]


def _subsets(units: Sets) -> Sets:
    """In Spark's order."""
    if not units:
        return [[]]
    others = _subsets(units[1:])
    return [*(units[0] + other for other in others), *others]


def grouping(
    building: Building, relation: Relation, keys: Sequence[tuple[str, exp.Expr]], sets: Sets | None, node: exp.Expr | None
) -> Grouping:
    """`keys` (with their names) and `sets` over the columns of the tree."""
    written: list[exp.Expr] = []
    names = []
    for name, key in keys:
        require_scalar(key)
        if key not in written:
            written.append(key)
            names.append(name or "key")
    items = tuple(Item(building.computed(name, key), key) for name, key in zip(names, written, strict=True))
    if sets is None:
        return Grouping(relation=relation, keys=items, written=tuple(written))
    # Spark computes a key that is an expression before the rows are repeated.
    computed = [Item(building.computed(item.name, item.expression), item.expression) for item in items if not _is_column(item)]
    below = {item.expression: column(item.name) for item in computed}
    items = tuple(Item(item.name, below.get(item.expression, item.expression)) for item in items)
    if len(written) > _MOST_KEYS:
        raise unsupported(node or written[0])
    places = [frozenset(written.index(key) for key in chosen) for chosen in sets]
    if len(set(places)) < len(places):
        raise Refused("unsupported-operator", "GROUP BY has the same grouping set twice", node)
    return replace(_expanded(building, with_items(relation, computed), items, places), written=tuple(written))


def _is_column(item: Item) -> bool:
    return isinstance(item.expression, exp.Column)


def with_session(rows: Grouping, session: Item, node: exp.Expr | None) -> Grouping:
    """The key that is the column of a session is that session."""
    own = next((key for key in rows.keys if key.expression == column(session.name)), None)
    if own is None or rows.identifier:
        raise unsupported(node or session.expression)
    return replace(rows, session=Item(own.name, session.expression))


def _expanded(building: Building, relation: Relation, keys: tuple[Item, ...], sets: Sequence[frozenset[int]]) -> Grouping:
    """Each row once for each set, with the keys of the set."""
    number = building.fresh("grouping_id", "bigint")
    bits = [1 << (len(keys) - 1 - at) for at in range(len(keys))]
    numbers = [sum(bit for at, bit in enumerate(bits) if at not in chosen) for chosen in sets]
    of_sets = [exp.Cast(this=_number(one), to=exp.DataType.build("bigint")) for one in numbers]
    rows = Explode(relation, exp.Explode(this=exp.Array(expressions=of_sets)), (number,), outer=False)
    passed = tuple(Item(name, column(name)) for name in (*relation.columns, number))
    nulled = tuple(
        Item(key.name, key.expression if all(at in chosen for chosen in sets) else _if_in_set(key.expression, number, bits[at]))
        for at, key in enumerate(keys)
    )
    names = tuple(tuple(key.name for at, key in enumerate(keys) if at in chosen) for chosen in sets)
    expand = Expand(rows, (*passed, *nulled), keys=keys, sets=names, number=number)
    grouped = tuple(Item(name, column(name)) for name in (*(key.name for key in keys), number))
    return Grouping(relation=expand, keys=grouped, written=tuple(key.expression for key in keys), identifier=number)


def _if_in_set(key: exp.Expr, number: str, bit: int) -> exp.Expr:
    has = exp.EQ(this=exp.paren(exp.BitwiseAnd(this=column(number), expression=_number(bit))), expression=_number(0))
    return exp.Case(ifs=[exp.If(this=has, true=key.copy())])


def _number(value: int) -> exp.Expr:
    return exp.Literal.number(value)
