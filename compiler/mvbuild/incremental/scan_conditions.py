"""Shape -> for each scan the conditions that a row must satisfy to affect the query, as Predicates of its table.

All scans at once may be replaced by their rows that satisfy them, without any effect on the result: each rule here is an equivalence of
algebra. An operator without a rule passes no condition down, and a condition that is not a Predicate is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.incremental.algebra import (
    Aggregate,
    Distinct,
    Explode,
    Filter,
    Item,
    Join,
    Limit,
    Project,
    Relation,
    Scalar,
    Scan,
    Sessions,
    SetOperation,
    Union,
    Window,
    column,
    conjuncts,
    names_in,
    substituted,
)
from mvbuild.incremental.literals import translated
from mvbuild.incremental.restrict import partition_columns
from mvbuild.ports.changes import Predicate

Conditions = tuple[exp.Expr, ...]
Types = Sequence[Mapping[str, Any]]
"""Leaf -> column -> Iceberg type, as in the schema's JSON."""


def relevant(root: Relation, types: Types, *, strings: bool = True) -> dict[int, tuple[tuple[Predicate, ...], ...]]:
    """Leaf -> the conjunction of each scan of it. `strings`: string literals mean what sqlglot reads.

    >>> from mvbuild.incremental.samples import TYPES, shape
    >>> tree = shape("SELECT id FROM {orders} JOIN {customers} USING (customer_id) WHERE country = 'NL' AND amount > 10").root
    >>> for leaf, scans in relevant(tree, TYPES).items():
    ...     print(leaf, [(p.column, p.operator, p.value) for p in scans[0]])
    0 [('amount', '>', Decimal('10.00'))]
    1 [('country', '=', 'NL')]
    """
    found: dict[int, list[tuple[Predicate, ...]]] = {}
    for scan, conditions in _Pushing(types).down(root, ()):
        columns = {name: (source, types[scan.leaf].get(source)) for name, source in scan.sources}
        predicates = (p for condition in conditions for p in translated(condition, columns, strings=strings))
        found.setdefault(scan.leaf, []).append(tuple(dict.fromkeys(predicates)))
    return {leaf: tuple(several) for leaf, several in found.items()}


@dataclass(frozen=True, slots=True)
class _Pushing:
    types: Types

    def down(self, relation: Relation, conditions: Conditions) -> Iterator[tuple[Scan, Conditions]]:
        """The scans below, each with the conditions on its rows that leave the rows of `relation` that satisfy the given conditions
        unchanged."""
        if isinstance(relation, Scan):
            yield relation, conditions
        elif isinstance(relation, Join):
            left, right = self._join(relation, conditions)
            yield from self.down(relation.left, left)
            yield from self.down(relation.right, right)
        elif isinstance(relation, Union | SetOperation):
            known = [c for c in conditions if all(self._type(relation, name) for name in names_in(c))]
            for child in relation.children:
                values = {name: column(own) for name, own in zip(relation.columns, child.columns, strict=True)}
                yield from self.down(child, tuple(substituted(c, values) for c in known))
        elif isinstance(relation, Scalar):
            yield from self.down(relation.child, _within(conditions, relation.child.columns))
            yield from self.down(relation.subquery, ())
        else:
            for child in relation.children:
                yield from self.down(child, _through(relation, conditions))

    def _join(self, join: Join, conditions: Conditions) -> tuple[Conditions, Conditions]:
        on = conjuncts(join.on)
        left, right = join.left.columns, join.right.columns
        kind = join.kind
        if kind == "left" and any(_rejects_null(c, right) for c in conditions):
            kind = "inner"
        if kind == "full":
            return (), ()
        if kind == "inner":
            known = (*conditions, *on, *_facts(join.left), *_facts(join.right))
            known = (*known, *self._moved(join, known, known))
            return _within(known, left), _within(known, right)
        to_left = _within(conditions, left)
        if kind == "null-aware-anti":
            # A NULL row on the right side, or an empty right side, affects every row of the left.
            return to_left, ()
        right_only = _within(on, right)
        if kind == "semi":
            known = (*to_left, *on, *_facts(join.left), *_facts(join.right))
            moved = self._moved(join, known, known)
            return (*to_left, *_within((*on, *moved), left)), (*right_only, *_within(moved, right))
        # On the right side, only rows matter that match a remaining row of the left.
        moved = self._moved(join, (*to_left, *_facts(join.left)), on)
        return to_left, (*right_only, *_within(moved, right))

    def _moved(self, join: Join, known: Conditions, equalities: Conditions) -> Conditions:
        """Conditions on one column, moved to the columns that are equal to it and have its type."""
        same: dict[str, set[str]] = {}
        for one, other in _pairs(equalities):
            if self._type(join, one) is None or self._type(join, one) != self._type(join, other):
                continue
            together = same.get(one, {one}) | same.get(other, {other})
            for name in together:
                same[name] = together
        found = []
        for condition in known:
            names = names_in(condition)
            if len(names) == 1:
                (name,) = names
                found += [substituted(condition, {name: column(other)}) for other in sorted(same.get(name, set()) - {name})]
        return tuple(found)

    def _type(self, relation: Relation, name: str) -> str | None:
        """The Iceberg type of an unchanged column of a table, with int and long as one; None for anything else."""
        if isinstance(relation, Scan):
            source = dict(relation.sources).get(name)
            found = self.types[relation.leaf].get(source) if source is not None else None
            return None if not isinstance(found, str) else "long" if found == "int" else found.replace(" ", "")
        if isinstance(relation, Project | Aggregate):
            items = relation.items if isinstance(relation, Project) else relation.keys
            value = next((item.expression for item in items if item.name == name), None)
            return self._type(relation.child, value.name) if isinstance(value, exp.Column) else None
        if isinstance(relation, Union | SetOperation):
            if name not in relation.columns:
                return None
            at = relation.columns.index(name)
            found_types = {self._type(child, child.columns[at]) for child in relation.children}
            return found_types.pop() if len(found_types) == 1 else None
        children = relation.children[:1] if isinstance(relation, Scalar) else relation.children
        return next((self._type(child, name) for child in children if name in child.columns), None)


def _through(relation: Relation, conditions: Conditions) -> Conditions:
    """The conditions on an operator with one child that also hold as conditions on the child."""
    if isinstance(relation, Filter):
        return (*conditions, *conjuncts(relation.predicate))
    if isinstance(relation, Distinct):
        return conditions
    if isinstance(relation, Project):
        return _over(conditions, relation.items)
    if isinstance(relation, Aggregate | Sessions):
        keys = tuple(key for key in relation.keys if isinstance(key.expression, exp.Column))
        return _over(_within(conditions, [key.name for key in keys]), keys)
    if isinstance(relation, Window):
        # The other rows of the same partitions count too.
        return _within(conditions, partition_columns(relation))
    if isinstance(relation, Explode):
        return _within(conditions, relation.child.columns)
    return ()


def _facts(relation: Relation) -> Conditions:
    """Conditions that every row of its result satisfies."""
    if isinstance(relation, Filter):
        return (*conjuncts(relation.predicate), *_facts(relation.child))
    if isinstance(relation, Join):
        if relation.kind == "inner":
            return (*conjuncts(relation.on), *_facts(relation.left), *_facts(relation.right))
        return () if relation.kind == "full" else _facts(relation.left)
    if isinstance(relation, Project | Aggregate):
        items = relation.items if isinstance(relation, Project) else relation.keys
        renamed = {i.expression.name: column(i.name) for i in items if isinstance(i.expression, exp.Column)}
        return tuple(substituted(f, renamed) for f in _within(_facts(relation.child), list(renamed)))
    if isinstance(relation, Window | Explode | Scalar | Distinct | Limit):
        return _facts(relation.child)
    return ()


def _over(conditions: Conditions, items: Sequence[Item]) -> Conditions:
    values = {item.name: item.expression for item in items}
    return tuple(substituted(condition, values) for condition in conditions)


def _within(conditions: Iterable[exp.Expr], columns: Sequence[str]) -> Conditions:
    """The conditions on some columns only; a constant is about none."""
    own = set(columns)
    return tuple(c for c in conditions if (names := names_in(c)) and names <= own)


def _pairs(conditions: Iterable[exp.Expr]) -> Iterator[tuple[str, str]]:
    for found in conditions:
        if isinstance(found, exp.EQ | exp.NullSafeEQ):
            one, other = found.left.unnest(), found.right.unnest()
            if isinstance(one, exp.Column) and isinstance(other, exp.Column):
                yield one.name, other.name


_STRICT = (exp.EQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.Like, exp.In)
_CONSTANT = (exp.Literal, exp.Cast, exp.Neg, exp.DataType, exp.DataTypeParam, exp.Boolean, exp.Null, exp.Paren, exp.Identifier)


def _rejects_null(condition: exp.Expr, columns: Sequence[str]) -> bool:
    """Whether it is never true if one of these columns is NULL: a plain comparison of the column itself with constants."""
    found = condition.unnest()
    if not isinstance(found, _STRICT) or found.args.get("query") is not None:
        return False
    parts = [part.unnest() for part in found.iter_expressions()]
    own = [part for part in parts if isinstance(part, exp.Column)]
    others = [part for part in parts if not isinstance(part, exp.Column)]
    if isinstance(found, exp.In) and found.this.unnest() not in own:
        return False  # 1 IN (1, NULL) is true
    return len(own) == 1 and own[0].name in columns and all(isinstance(node, _CONSTANT) for part in others for node in part.walk())
