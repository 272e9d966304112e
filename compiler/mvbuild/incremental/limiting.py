"""Relation + some of its columns -> a part that has all of their values, did not change, and is limited by a condition.

A changed key matters only if such a part of the other side of a join has it.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from mvbuild.incremental.algebra import Explode, Filter, Join, Project, Relation, Scalar, Scan, Window, projected, walk


def limiting(relation: Relation, names: tuple[str, ...], changes: Callable[[Relation], bool]) -> Relation | None:
    """With the columns in this order; None if no part limits them. `changes`: whether a relation has changed.

    >>> from mvbuild.incremental.samples import formula, shape
    >>> sql = "SELECT id, country FROM {orders} JOIN {customers} USING (customer_id) WHERE country = 'DE'"
    >>> root = shape(sql).root
    >>> keys = tuple(name for node in walk(root) if isinstance(node, Scan) for name, source in node.sources if source == "customer_id")
    >>> formula(limiting(root.child, keys[-1:], lambda relation: "orders" in formula(relation)))
    "filter[country = 'DE'](customers)"
    """
    if not set(names) <= set(relation.columns):
        return None
    if not changes(relation):
        is_limited = any(isinstance(node, Filter) for node in walk(relation))
        return projected(relation, names) if is_limited and all(map(_is_cheap, walk(relation))) else None
    if type(relation) is Project:
        inner = {item.name: item.expression for item in relation.items}
        plain = tuple(one.name for name in names if isinstance(one := inner[name], exp.Column))
        return limiting(relation.child, plain, changes) if len(plain) == len(names) else None
    if isinstance(relation, Join):
        # Of an outer join, only the left side has all values: the right one has NULL as well.
        sides = {"full": (), "inner": relation.children}.get(relation.kind, (relation.left,))
        return next((found for side in sides if (found := limiting(side, names, changes)) is not None), None)
    if isinstance(relation, Filter | Scalar | Window | Explode):
        return limiting(relation.children[0], names, changes)
    return None


def _is_cheap(relation: Relation) -> bool:
    """Whether it only reads rows and looks up keys."""
    is_lookup = isinstance(relation, Join) and relation.kind in ("inner", "semi")
    return is_lookup or isinstance(relation, Scan | Filter) or type(relation) is Project
