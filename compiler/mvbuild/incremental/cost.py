"""Rewrite + sizes -> Cost: the seconds that it takes, and the bytes and rows that it reads and writes, from metadata."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.incremental.algebra import Aggregate, Distinct, Filter, Join, Project, Ref, Relation, Scan, walk
from mvbuild.incremental.change_filters import change_filters
from mvbuild.incremental.column_pruning import pruned
from mvbuild.incremental.delta import KEYS
from mvbuild.incremental.effort import Estimator
from mvbuild.incremental.fixed_costs import steps_of, steps_of_full
from mvbuild.incremental.key_ranges import Ranges
from mvbuild.incremental.rewrite import Bag, Exchange, Rewrite
from mvbuild.incremental.sizes import Sizes, StorageSize
from mvbuild.incremental.statements import Difference, by_value

CHEAPER = 0.8
"""An incremental refresh is chosen up to this share of a full one's seconds: they are an estimate."""
NARROWED = 0.3
"""For a table that is joined with a small change, or read for some keys: its rows are scanned, but hardly any go further."""
MICROSECOND = 1e-6
"""The unit of `effort`, in seconds."""
LARGE = 50_000
"""A storage with this many rows would not be broadcast: Spark would sort all of them to join a few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a refresh reads and writes."""

    bytes: int
    rows: int
    fixed: float = 0.0
    """Seconds of processor time of its statements, however little they read."""
    work: float = 0.0
    """Seconds of processor time for its rows."""
    correction: float = 1.0
    """The factor in both that follows from earlier refreshes of the MV."""

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            bytes=self.bytes + other.bytes, rows=self.rows + other.rows, fixed=self.fixed + other.fixed, work=self.work + other.work
        )

    @property
    def seconds(self) -> float:
        return self.fixed + self.work

    @property
    def uncorrected(self) -> float:
        """The seconds that earlier refreshes are compared with."""
        return self.seconds / self.correction

    def corrected(self, factor: float) -> Cost:
        return replace(self, fixed=self.fixed * factor, work=self.work * factor, correction=factor)

    def share_of(self, full: Cost) -> float:
        """The cost as a share of a full refresh."""
        return self.seconds / full.seconds if full.seconds else 1.0


def full_cost(root: Relation, sizes: Sizes) -> Cost:
    """Each table once for every read in the query, and the storage written completely."""
    scans = [sizes.of(n) for n in walk(root) if isinstance(n, Scan)]
    held = sizes.storage
    effort = Estimator(Ranges(sizes)).flow(pruned(root), {}).cost + held.rows * held.row_cost
    return Cost(
        bytes=sum(s.bytes for s in scans) + held.bytes,
        rows=sum(s.rows for s in scans) + held.rows,
        fixed=steps_of_full(root).seconds,
        work=effort * MICROSECOND,
    )


def cost_of(rewrite: Rewrite, difference: Difference, root: Relation, sizes: Sizes, *, is_proven: bool) -> Cost:
    """Each statement once: the tables that it reads, less where keys restrict them. `is_proven`: Spark has confirmed the query before."""
    held = sizes.storage
    is_fetched = held.is_fetched and sizes.changes_in_few
    valued = by_value(rewrite, held) if is_fetched else None
    computed = valued or difference
    total = sum((_cost(relation, sizes, narrowed=False) for relation in computed.relations), Cost(bytes=0, rows=0))
    estimator = Estimator(Ranges(sizes), groups=_groups(rewrite, root, sizes), filters=change_filters(computed.relations))
    effort = sum(estimator.cte(cte.name, pruned(cte.relation)) for cte in computed.ctes)
    effort += sum(estimator.flow(pruned(r), {}).cost for r in (computed.gone, computed.came) if r is not None)
    steps = steps_of(computed, len(sizes.changes), is_proven=is_proven, is_fetched=is_fetched, is_written_here=held.is_written_here)
    total += Cost(bytes=0, rows=0, fixed=steps.seconds, work=effort * MICROSECOND)
    if valued is not None:
        # It is read here, and not by a statement.
        total += _of_storage(held, 1.0)
    if difference.partitions is not None or (difference.gone is not None and held.rewrites_files):
        total += _of_storage(held, NARROWED)
    return total


def _of_storage(held: StorageSize, share: float) -> Cost:
    return Cost(bytes=int(held.bytes * share), rows=int(held.rows * share), work=share * held.rows * held.row_cost * MICROSECOND)


def _groups(rewrite: Rewrite, root: Relation, sizes: Sizes) -> dict[str, float]:
    """If every group is a row of the storage, the number of groups is the number of rows."""
    keys = [cte.name for cte in rewrite.ctes if cte.name.startswith(KEYS)]
    if not keys or not isinstance(rewrite.write, Exchange | Bag) or any(_keeps_few(n) for n in walk(root)):
        return {}
    while isinstance(root, Project):
        root = root.child
    return {keys[-1]: float(sizes.storage.rows)} if isinstance(root, Aggregate | Distinct) else {}


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
