"""Relations -> for each leaf, a condition that holds for every row of its change that the relations use; other rows need not be read.

If files were rewritten, most rows are on both sides of the change. Finding those that are not is the most expensive part of a small
refresh, and rows that the query filters out need not be found: a selection distributes over the difference of two bags.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sqlglot import exp

from mvbuild.incremental.algebra import Filter, Relation, Scan, column, conjunction, conjuncts, substituted


def change_filters(relations: Iterable[Relation]) -> dict[int, exp.Expr]:
    """Leaf -> a condition on the columns of its table. A leaf whose change is read somewhere without a condition has none."""
    found: dict[int, list[exp.Expr | None]] = {}
    for relation in relations:
        for scan, condition in _read(relation, ()):
            found.setdefault(scan.leaf, []).append(condition)
    return {leaf: _any_of([c for c in conditions if c is not None]) for leaf, conditions in found.items() if None not in conditions}


def _read(relation: Relation, parts: Sequence[exp.Expr]) -> Iterator[tuple[Scan, exp.Expr | None]]:
    """`parts`: the conditions of the filters directly above, in the order in which they are applied."""
    if isinstance(relation, Scan):
        if relation.version in ("plus", "minus"):
            condition = conjunction(parts)
            names = {name: column(source) for name, source in relation.sources}
            yield relation, None if condition is None else substituted(condition, names)
        return
    if isinstance(relation, Filter):
        yield from _read(relation.child, [*conjuncts(relation.predicate), *parts])
        return
    for child in relation.children:
        yield from _read(child, ())


def _any_of(conditions: Sequence[exp.Expr]) -> exp.Expr:
    return exp.or_(*dict.fromkeys(conditions), copy=True)
