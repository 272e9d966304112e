"""Relation + the required columns -> the same rows with only the columns that are needed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from mvbuild.incremental.algebra import (
    Aggregate,
    Distinct,
    Explode,
    Filter,
    Item,
    Join,
    Limit,
    OneRow,
    Pivot,
    Project,
    Ref,
    Relation,
    Scalar,
    Scan,
    Sessions,
    SetOperation,
    Union,
    Window,
    names_in,
    projected,
)


def pruned(relation: Relation, wanted: Iterable[str] | None = None) -> Relation:
    """All required columns (None: every one) keep their names; other columns may remain.

    >>> from mvbuild.incremental.samples import formula, shape
    >>> tree = shape("SELECT customer_id, count(*) AS n, max(amount) AS m FROM {orders} GROUP BY customer_id").root
    >>> formula(pruned(tree, [tree.columns[0]]))
    'aggregate[customer_id](orders)'
    """
    needed = frozenset(relation.columns if wanted is None else wanted)
    if isinstance(relation, Scan):
        kept = tuple(pair for pair in relation.sources if pair[0] in needed)
        return _with(relation, sources=kept or relation.sources[:1])
    if isinstance(relation, Pivot):
        # Its columns are written with all of its functions.
        return _with(relation, child=pruned(relation.child))
    if isinstance(relation, Project):
        items = tuple(i for i in relation.items if i.name in needed) or relation.items[:1]
        if isinstance(relation.child, Window):
            items = _beside_windows(relation, items, relation.child)
        return _with(relation, child=pruned(relation.child, _names(i.expression for i in items)), items=items)
    if isinstance(relation, Filter):
        return _with(relation, child=pruned(relation.child, needed | names_in(relation.predicate)))
    if isinstance(relation, Join):
        both = needed | names_in(relation.on)
        left, right = (pruned(side, both & set(side.columns)) for side in (relation.left, relation.right))
        return _with(relation, left=left, right=right)
    if isinstance(relation, Scalar):
        return _with(relation, child=pruned(relation.child, needed - {relation.name}), subquery=pruned(relation.subquery))
    if isinstance(relation, Aggregate | Sessions):
        values = tuple(i for i in relation.values if i.name in needed)
        session = (relation.session,) if isinstance(relation, Sessions) else ()
        child = pruned(relation.child, _names(i.expression for i in (*relation.keys, *session, *values)))
        return _with(relation, child=child, values=values)
    if isinstance(relation, Window):
        values = tuple(i for i in relation.values if i.name in needed)
        inner = (needed & set(relation.child.columns)) | _names(i.expression for i in values)
        return _with(relation, child=pruned(relation.child, inner), values=values) if values else pruned(relation.child, inner)
    if isinstance(relation, Explode):
        inner = (needed & set(relation.child.columns)) | names_in(relation.generator)
        return _with(relation, child=pruned(relation.child, inner))
    if isinstance(relation, Union):
        return _union(relation, needed)
    if isinstance(relation, Distinct | SetOperation):
        return _whole(relation)
    if isinstance(relation, Limit):
        return _with(relation, child=pruned(relation.child, needed.union(*(names_in(o) for o in relation.order))))
    assert isinstance(relation, Ref | OneRow)
    return relation


def _with(relation: Relation, **parts: Any) -> Relation:
    """The operator over these children and with what is left of its tuples; the operator itself if nothing is left out: most trees are
    pruned already, and each is asked for often."""
    own = {name: getattr(relation, name) for name in parts}
    is_same = all(part is own[name] or (isinstance(part, tuple) and len(part) == len(own[name])) for name, part in parts.items())
    return relation if is_same else replace(relation, **parts)


def _names(expressions: Iterable) -> frozenset[str]:  # type: ignore[type-arg]
    return frozenset().union(*(names_in(e) for e in expressions))


def _beside_windows(project: Project, chosen: Sequence[Item], window: Window) -> tuple[Item, ...]:
    """With the columns that the window functions read anyway: Spark keeps them below a window in the order in which SELECT has them."""
    asked = _names(item.expression for item in chosen)
    read = _names(item.expression for item in window.values if item.name in asked)
    return tuple(i for i in project.items if i in chosen or (isinstance(i.expression, exp.Column) and i.expression.name in read))


def _union(relation: Union, needed: frozenset[str]) -> Relation:
    chosen = [at for at, name in enumerate(relation.columns) if name in needed] or [0]
    parts = []
    for part in relation.parts:
        names = [part.columns[at] for at in chosen]
        parts.append(projected(pruned(part, names), names))
    return replace(relation, parts=tuple(parts), columns=tuple(relation.columns[at] for at in chosen))


def _whole(relation: Distinct | SetOperation) -> Relation:
    """Whether rows are equal depends on every column."""
    if isinstance(relation, Distinct):
        return _with(relation, child=projected(pruned(relation.child), relation.child.columns))
    sides = (projected(pruned(side), side.columns) for side in (relation.left, relation.right))
    left, right = sides
    return _with(relation, left=left, right=right)
