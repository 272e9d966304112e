"""tree + the types of its columns -> the tree, in which joins, set operations and groups say whether types let values be carried on.

Values that are equal after a cast are not the same: '01' = 1, and 1.00 as text is not '1'. In that case nothing may be carried from one
side to the other: no key, no expression over it, no bounds. An unknown type differs from every other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.incremental.algebra import (
    Aggregate,
    Distinct,
    Explode,
    Item,
    Join,
    Likeness,
    Project,
    Relation,
    Scalar,
    Scan,
    Sessions,
    SetOperation,
    Union,
    Window,
    conjuncts,
    with_children,
)
from mvbuild.incremental.restrict import partition_columns
from mvbuild.lineage.checks import ARITHMETIC
from mvbuild.lineage.expression_type import Types, type_of
from mvbuild.lineage.types import COMPLEX, FRACTIONS, INTEGERS, MOST_DIGITS, Decimal, Type

_OF_ANY_SETTING = (exp.Column, exp.Identifier, exp.Paren, exp.Min, exp.Max, exp.Coalesce, exp.Filter)
"""Their type is that of a column below them, whatever the settings of a session are."""


def marked(root: Relation, types: Types) -> Relation:
    """`types`: of each column in the tree."""
    return _Marking(types).of(root)[0]


@dataclass(frozen=True, slots=True)
class _Marking:
    types: Types

    def of(self, relation: Relation) -> tuple[Relation, Types]:
        """The relation, and the types of its columns; None for those that are not certain."""
        below = [self.of(child) for child in relation.children]
        relation = with_children(relation, tuple(child for child, _ in below))
        types = [found for _, found in below]
        if isinstance(relation, Union | SetOperation):
            return self._combined(relation, types)
        if isinstance(relation, Join):
            both = {**types[0], **types[1], relation.mark: "boolean"}
            return replace(relation, likeness=tuple(likeness(part, both) for part in conjuncts(relation.on))), both
        if isinstance(relation, Scalar):
            (value,) = relation.subquery.columns
            return relation, {**types[0], relation.name: types[1].get(value)}
        if isinstance(relation, Project):
            return relation, self._computed(relation.items, types[0])
        if isinstance(relation, Aggregate | Sessions):
            session = (relation.session,) if isinstance(relation, Sessions) else ()
            made = self._computed((*relation.keys, *session, *relation.values), types[0])
            return replace(relation, loose=_may_be_float(made[item.name] for item in relation.keys)), made
        if isinstance(relation, Distinct):
            return replace(relation, loose=_may_be_float(types[0].get(name) for name in relation.columns)), types[0]
        if isinstance(relation, Window):
            items = (Item(item.name, item.expression.this) for item in relation.values)
            loose = _may_be_float(types[0].get(name) for name in partition_columns(relation))
            return replace(relation, loose=loose), {**types[0], **self._computed(items, types[0])}
        if isinstance(relation, Scan | Explode):
            own = relation.columns if isinstance(relation, Scan) else relation.names
            return relation, {**dict(*types), **{name: self.types.get(name) for name in own}}
        return relation, dict(*types)

    def _computed(self, items: Iterable[Item], below: Types) -> dict[str, Type | None]:
        found: dict[str, Type | None] = {}
        for item in items:
            type_ = below.get(item.expression.name) if isinstance(item.expression, exp.Column) else self.types.get(item.name)
            found[item.name] = _certain(item.expression, type_, below)
        return found

    def _combined(self, relation: Union | SetOperation, types: Sequence[Types]) -> tuple[Relation, Types]:
        by_position = zip(*(child.columns for child in relation.children), strict=True)
        columns = [{found.get(name) for found, name in zip(types, names, strict=True)} for names in by_position]
        alike = all(len(found) == 1 and not any(one is None or isinstance(one, COMPLEX) for one in found) for found in columns)
        made = {name: None if None in found else self.types.get(name) for name, found in zip(relation.columns, columns, strict=True)}
        if isinstance(relation, Union):
            return replace(relation, alike=alike), made
        return replace(relation, alike=alike, loose=any(_may_be_float(found) for found in columns)), made


def likeness(part: exp.Expr, types: Types) -> Likeness:
    """What a part of a join's condition says of its two sides."""
    if not isinstance(part, exp.EQ | exp.NullSafeEQ):
        return "equal"
    one, other = (_certain(side, type_of(side, types), types) for side in (part.left, part.right))
    if one is None or other is None or isinstance(one, COMPLEX) or (one != other and not {one, other} <= INTEGERS.keys()):
        return "cast"
    return "same" if one == other and one not in FRACTIONS else "equal"


def _certain(expression: exp.Expr, type_: Type | None, below: Types) -> Type | None:
    """None for a type that depends on settings of the session: `CAST(... AS TIMESTAMP)` may give a timestamp without time zone, and of
    decimals with too many digits a session may keep other ones. `below`: the types of its columns."""
    if type_ == "void" or isinstance(expression, exp.Column):
        return None if type_ == "void" else type_
    if type_ != "timestamp" and not isinstance(type_, Decimal):
        return type_
    if any(below.get(found.name) is None for found in expression.find_all(exp.Column)):
        return None
    if isinstance(type_, Decimal):
        return None if type_.precision == MOST_DIGITS and expression.find(*ARITHMETIC) is not None else type_
    return type_ if all(isinstance(node, _OF_ANY_SETTING) for node in expression.walk()) else None


def _may_be_float(types: Iterable[Type | None]) -> bool:
    return any(type_ is None or isinstance(type_, COMPLEX) or type_ in FRACTIONS for type_ in types)
