"""Rewrite + sizes -> Cost: the bytes and rows that it reads and writes, and the effort, from metadata."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from mvbuild.incremental.algebra import Aggregate, Distinct, Filter, Join, Project, Ref, Relation, Scan, walk
from mvbuild.incremental.change_filters import change_filters
from mvbuild.incremental.column_pruning import pruned
from mvbuild.incremental.effort import Estimator
from mvbuild.incremental.key_ranges import Ranges
from mvbuild.incremental.rewrite import Bag, Exchange, Rewrite
from mvbuild.incremental.sizes import LITTLE, Sizes
from mvbuild.incremental.statements import Difference

CHEAPER = 0.8
"""An incremental refresh is chosen up to this share of a full one's cost: the effort is an estimate."""
NARROWED = 0.3
"""For a table that is joined with a small change, or read for some keys: its rows are scanned, but hardly any go further."""
LARGE = 50_000
"""A storage with this many rows would not be broadcast: Spark would sort all of them to join a few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a refresh reads and writes."""

    bytes: int
    rows: int
    effort: float = 0.0
    """Microseconds of processor time, to compare one refresh with another."""

    def __add__(self, other: Cost) -> Cost:
        return Cost(bytes=self.bytes + other.bytes, rows=self.rows + other.rows, effort=self.effort + other.effort)

    def share_of(self, full: Cost) -> float:
        """The cost as a share of a full refresh. If both read little, bytes are more reliable than an estimate of rows."""
        own, whole = (self.bytes, full.bytes) if full.bytes < LITTLE else (self.effort, full.effort)
        return own / whole if whole else 1.0


def full_cost(root: Relation, sizes: Sizes) -> Cost:
    """Each table once for every read in the query, and the storage written completely."""
    scans = [sizes.of(n) for n in walk(root) if isinstance(n, Scan)]
    held = sizes.storage
    effort = Estimator(Ranges(sizes)).flow(pruned(root), {}).cost + held.rows * held.row_cost
    return Cost(bytes=sum(s.bytes for s in scans) + held.bytes, rows=sum(s.rows for s in scans) + held.rows, effort=effort)


def cost_of(rewrite: Rewrite, difference: Difference, root: Relation, sizes: Sizes) -> Cost:
    """Each statement once: the tables that it reads, less where keys restrict them."""
    total = sum((_cost(relation, sizes, narrowed=False) for relation in difference.relations), Cost(bytes=0, rows=0))
    estimator = Estimator(Ranges(sizes), groups=_groups(rewrite, root, sizes), filters=change_filters(difference.relations))
    effort = sum(estimator.cte(cte.name, pruned(cte.relation)) for cte in difference.ctes)
    effort += sum(estimator.flow(pruned(r), {}).cost for r in (difference.gone, difference.came) if r is not None)
    total += Cost(bytes=0, rows=0, effort=effort)
    held = sizes.storage
    if difference.partitions is not None or (difference.gone is not None and held.rewrites_files):
        share = NARROWED * held.rows * held.row_cost
        total += Cost(bytes=int(held.bytes * NARROWED), rows=int(held.rows * NARROWED), effort=share)
    return total


def _groups(rewrite: Rewrite, root: Relation, sizes: Sizes) -> dict[str, float]:
    """If every group is a row of the storage, the number of groups is the number of rows."""
    if not rewrite.ctes or not isinstance(rewrite.write, Exchange | Bag) or any(_keeps_few(n) for n in walk(root)):
        return {}
    while isinstance(root, Project):
        root = root.child
    return {rewrite.ctes[-1].name: float(sizes.storage.rows)} if isinstance(root, Aggregate | Distinct) else {}


def _keeps_few(relation: Relation) -> bool:
    """HAVING: the number of groups is unknown."""
    return isinstance(relation, Filter) and isinstance(relation.child, Aggregate)


def _cost(relation: Relation, sizes: Sizes, *, narrowed: bool) -> Cost:
    if isinstance(relation, Scan):
        found = sizes.of(relation)
        whole = relation.version in ("plus", "minus") or not narrowed
        share = 1.0 if whole else NARROWED
        return Cost(bytes=int(found.bytes * share), rows=int(found.rows * share))
    if isinstance(relation, Join):
        small = [_is_small(side) for side in (relation.left, relation.right)]
        left = _cost(relation.left, sizes, narrowed=narrowed or small[1])
        return left + _cost(relation.right, sizes, narrowed=narrowed or small[0])
    if isinstance(relation, Filter) and relation.predicate == exp.false():
        return Cost(bytes=0, rows=0)
    return sum((_cost(child, sizes, narrowed=narrowed) for child in relation.children), Cost(bytes=0, rows=0))


def _is_small(relation: Relation) -> bool:
    """Whether it only has rows of a change, or rows computed before: what is joined with it is restricted."""
    scans = [n for n in walk(relation) if isinstance(n, Scan | Ref)]
    return any(isinstance(n, Ref) or n.version in ("plus", "minus") for n in scans)
