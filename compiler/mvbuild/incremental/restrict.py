"""Relation + keys -> its rows with those keys, with the restriction as far down as possible.

A key matches if it is the same, including NULL: K <=> k.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.incremental.algebra import (
    Aggregate,
    Distinct,
    Explode,
    Filter,
    Item,
    Join,
    Project,
    Ref,
    Relation,
    Scalar,
    Sessions,
    SetOperation,
    Union,
    Window,
    column,
    conjunction,
    is_loose,
    names_in,
    substituted,
)


@dataclass(frozen=True, slots=True, eq=False)
class Key:
    """`expression` is over the columns of a relation; `name` is the column of the table of keys."""

    expression: exp.Expr
    name: str

    def over(self, values: Mapping[str, exp.Expr]) -> Key:
        return Key(substituted(self.expression, dict(values)), self.name)


def restricted(relation: Relation, keys: Sequence[Key], table: Ref) -> Relation:
    """The rows of `relation` whose keys are in `table`.

    >>> from mvbuild.incremental.samples import formula, shape
    >>> counted = shape("SELECT customer_id, count(*) AS n FROM {orders} GROUP BY customer_id").root
    >>> formula(restricted(counted, [Key(column(counted.columns[0]), "k")], Ref("keys", ("k",))))
    'aggregate[customer_id, COUNT(*)](semi join[customer_id <=> k](orders, keys))'
    """
    if isinstance(relation, Project):
        return Project(restricted(relation.child, _through(keys, relation.items), table), relation.items)
    if isinstance(relation, Filter):
        return Filter(restricted(relation.child, keys, table), relation.predicate)
    if is_loose(relation) and not all(isinstance(k.expression, exp.Column) for k in keys):
        return _here(relation, keys, table)
    if isinstance(relation, Aggregate | Sessions) and relation.keys and _within(keys, [i.name for i in relation.keys]):
        return replace(relation, child=restricted(relation.child, _through(keys, relation.keys), table))
    if isinstance(relation, Window) and _within(keys, partition_columns(relation)):
        return replace(relation, child=restricted(relation.child, keys, table))
    if isinstance(relation, Explode | Scalar) and _within(keys, relation.child.columns):
        return replace(relation, child=restricted(relation.child, keys, table))
    if isinstance(relation, Distinct):
        return replace(relation, child=restricted(relation.child, keys, table))
    if isinstance(relation, Union) and relation.alike:
        return replace(relation, parts=tuple(restricted(p, _by_position(keys, relation.columns, p), table) for p in relation.parts))
    if isinstance(relation, SetOperation) and relation.alike:
        left, right = (restricted(s, _by_position(keys, relation.columns, s), table) for s in (relation.left, relation.right))
        return replace(relation, left=left, right=right)
    if isinstance(relation, Join):
        return _join(relation, keys, table)
    return _here(relation, keys, table)


def equal_columns(join: Join, *, same: bool = False) -> tuple[tuple[str, str], ...]:
    """(left, right) columns that are equal in every pair of matching rows; with `same`, every function of them is equal too."""
    left, right = set(join.left.columns), set(join.right.columns)
    found = []
    for part in join.equalities:
        if same and not part.is_same:
            continue
        if isinstance(part.left, exp.Column) and isinstance(part.right, exp.Column):
            one, other = part.left.name, part.right.name
            if one in left and other in right:
                found.append((one, other))
            elif one in right and other in left:
                found.append((other, one))
    return tuple(dict.fromkeys(found))


def mapped(expressions: Sequence[exp.Expr], join: Join, side: Literal["left", "right"]) -> list[exp.Expr] | None:
    """The expressions over the columns of one side of a join, using equal columns of the other side; None if one cannot be expressed."""
    own = set(join.left.columns if side == "left" else join.right.columns)
    made = []
    for expression in expressions:
        pairs = equal_columns(join, same=not isinstance(expression, exp.Column))
        others = {right: left for left, right in pairs} if side == "left" else dict(pairs)
        if side == "left" and join.kind != "inner":
            others = {}
        made.append(substituted(expression, {name: column(other) for name, other in others.items() if name not in own}))
    return made if all(names_in(e) <= own for e in made) else None


def partition_columns(window: Window) -> tuple[str, ...]:
    """The plain columns by which all its windows partition."""
    return partition_columns_of(window.values)


def partition_columns_of(windows: Sequence[Item]) -> tuple[str, ...]:
    """The plain columns by which all of some windows partition."""
    common: list[str] | None = None
    for item in windows:
        parts = [p.name for p in _window(item.expression).args.get("partition_by") or () if isinstance(p, exp.Column)]
        common = parts if common is None else [name for name in common if name in parts]
    return tuple(dict.fromkeys(common or ()))


def _window(expression: exp.Expr) -> exp.Window:
    assert isinstance(expression, exp.Window)
    return expression


def _join(join: Join, keys: Sequence[Key], table: Ref) -> Relation:
    expressions = [key.expression for key in keys]
    if join.kind == "full":
        return _full(join, keys, table)
    on_left, on_right = mapped(expressions, join, "left"), mapped(expressions, join, "right")
    if on_left is None and (on_right is None or join.kind != "inner"):
        return _here(join, keys, table)
    left = restricted(join.left, _keys(on_left, keys), table) if on_left is not None else join.left
    # Rows that the keys exclude on the other side could not match any of the rows that are kept.
    may_right = on_right is not None and join.kind != "null-aware-anti"
    right = restricted(join.right, _keys(on_right, keys), table) if may_right and on_right is not None else join.right
    return replace(join, left=left, right=right)


def _full(join: Join, keys: Sequence[Key], table: Ref) -> Relation:
    """By the common value of both sides, as `full_join_keys` makes it."""
    pairs = {(key.expression.this.name, key.expression.expressions[0].name): key for key in keys if _is_common(key.expression)}
    if len(pairs) != len(keys) or not set(pairs) <= set(equal_columns(join)):
        return _here(join, keys, table)
    left = restricted(join.left, [Key(column(one), key.name) for (one, _), key in pairs.items()], table)
    right = restricted(join.right, [Key(column(other), key.name) for (_, other), key in pairs.items()], table)
    return replace(join, left=left, right=right)


def _is_common(expression: exp.Expr) -> bool:
    return (
        isinstance(expression, exp.Coalesce)
        and isinstance(expression.this, exp.Column)
        and len(expression.expressions) == 1
        and isinstance(expression.expressions[0], exp.Column)
    )


def _here(relation: Relation, keys: Sequence[Key], table: Ref) -> Relation:
    parts = [
        exp.NullSafeEQ(
            this=k.expression.copy() if isinstance(k.expression, exp.Column) else exp.paren(k.expression), expression=column(k.name)
        )
        for k in keys
    ]
    return Join(relation, table, "semi", conjunction(parts))


def _through(keys: Sequence[Key], items: Sequence) -> list[Key]:  # type: ignore[type-arg]
    values = {item.name: item.expression for item in items}
    return [key.over(values) for key in keys]


def _keys(expressions: Sequence[exp.Expr] | None, keys: Sequence[Key]) -> list[Key]:
    return [Key(expression, key.name) for expression, key in zip(expressions or (), keys, strict=True)]


def _by_position(keys: Sequence[Key], columns: Sequence[str], part: Relation) -> list[Key]:
    values = {name: column(own) for name, own in zip(columns, part.columns, strict=True)}
    return [key.over(values) for key in keys]


def _within(keys: Sequence[Key], columns: Sequence[str]) -> bool:
    return all(names_in(key.expression) <= set(columns) for key in keys)
