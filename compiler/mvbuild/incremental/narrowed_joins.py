"""Rewrite + which tables are large -> the same rewrite, in which large tables are joined with few rows: those that match the change.

Spark knows how many rows a table has, but not how many a join will have. To join the few rows of a change with a large table, it moves all
rows of that table to other tasks. So the change is computed first, and the table is restricted to its keys before it is joined (a semijoin
reducer: Bernstein and Chiu, JACM 1981).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from mvbuild.dataclass import dataclass
from mvbuild.incremental.algebra import Explode, Filter, Join, Project, Relation, Scalar, Scan, column, with_children
from mvbuild.incremental.delta import Cte
from mvbuild.incremental.restrict import Key, equal_columns, restricted
from mvbuild.incremental.rewrite import Rewrite, with_more_statements

CHANGED = "changed_"
"""The prefix of the names of rows that changed, before they are joined with large tables."""


def with_narrowed_joins(rewrite: Rewrite, is_large: Callable[[Relation], bool]) -> Rewrite | None:
    """None if no change is joined with a large table.

    >>> from mvbuild.incremental.samples import case, formula
    >>> from mvbuild.incremental.strategies import append
    >>> others = "(SELECT customer_id AS other_id FROM {customers}) AS others"
    >>> sql = f"SELECT id FROM {{orders}} JOIN {{customers}} USING (customer_id) JOIN {others} ON orders.customer_id = other_id"
    >>> found = with_narrowed_joins(append.rewrite(case(sql)), lambda table: True)
    >>> formula(found.ctes[0].relation), formula(found.write.rows.child.right)
    ('orders.plus', 'semi join[customer_id <=> customer_id](customers, changed_0)')
    """
    narrowing = _Narrowing(is_large)
    made = with_more_statements(rewrite, narrowing.of, narrowing.ctes)
    return made if narrowing.number else None


@dataclass
class _Narrowing:
    is_large: Callable[[Relation], bool]
    number: int = 0
    ctes: list[Cte] = field(default_factory=list)
    """The statements that the last relations read."""
    _known: dict[Relation, bool] = field(default_factory=dict)

    def of(self, relation: Relation) -> Relation:
        spine, base = self._spine(relation)
        partners = [self._partner(join, base) for join in spine]
        if not any(one is not None for one in partners):
            return with_children(relation, tuple(map(self.of, relation.children)))
        name = f"{CHANGED}{self.number}"
        self.number += 1
        # After those that it reads.
        cte = Cte(name, self.of(base), at_once=True)
        self.ctes.append(cte)
        made: Relation = cte.ref
        for operator, keys in zip(reversed(spine), reversed(partners), strict=True):
            children = [made if self._has_changed(child) else child for child in operator.children]
            if keys:
                children = [child if child is made else restricted(child, keys, cte.ref) for child in children]
            made = with_children(operator, tuple(children))
        return made

    def _partner(self, operator: Relation, base: Relation) -> list[Key] | None:
        """The keys by which a large table is restricted before it is joined: rows with other keys match nothing. No keys if it is joined
        with the base itself, because Spark knows how few rows that has once it is computed. None if nothing is to be restricted."""
        if not isinstance(operator, Join) or operator.kind not in ("inner", "left"):
            return None
        other = operator.left if self._has_changed(operator.right) else operator.right
        pairs = [pair if other is operator.right else pair[::-1] for pair in equal_columns(operator)]
        keys = [Key(column(theirs), own) for own, theirs in pairs if own in base.columns]
        if not keys or not self.is_large(other):
            return None
        return [] if base in operator.children else keys

    def _spine(self, relation: Relation) -> tuple[list[Relation], Relation]:
        """The joins with tables that did not change, from the top, and linear operators between them; and what changed below."""
        spine: list[Relation] = []
        while self._has_changed(relation):
            if isinstance(relation, Join):
                changed = [self._has_changed(side) for side in relation.children]
                if all(changed) or relation.kind == "full" or (changed[1] and relation.kind != "inner"):
                    break
                below = relation.right if changed[1] else relation.left
            elif type(relation) is Project or isinstance(relation, Filter | Scalar | Explode):
                below = relation.children[0]
            else:
                break
            spine.append(relation)
            relation = below
        while spine and not isinstance(spine[-1], Join):
            relation = spine.pop()
        return spine, relation

    def _has_changed(self, relation: Relation) -> bool:
        found = self._known.get(relation)
        if found is None:
            is_change = isinstance(relation, Scan) and relation.version in ("plus", "minus")
            found = self._known[relation] = is_change or any(map(self._has_changed, relation.children))
        return found
