"""Difference -> Steps: what a refresh does however little it reads, and the processor time of that in seconds.

Planning a statement, opening a table and committing cost about the same for a hundred rows and for a million. For small tables they are
nearly all of the cost, and a full refresh has the fewest: it is one statement.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import fields

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.incremental.algebra import Aggregate, Distinct, Filter, Join, Ref, Relation, Scan, Sessions, SetOperation, Window, walk
from mvbuild.incremental.statements import Difference

_OPERATORS = (Aggregate, Distinct, Join, Sessions, SetOperation, Window)


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """How many of each. The constants are fitted by tests/benchmarks/fixed_costs.py."""

    appends: int = 0
    overwrites: int = 0
    """Each with the analysis of the query and the commits."""
    deletes: int = 0
    """Statements that remove rows by position."""
    fetches: int = 0
    """Queries that return the few rows to remove and to add, which mvbuild then writes; with the commits."""
    statements: int = 0
    """Others: rows that are computed once and kept, counts, plans that are compared."""
    changes: int = 0
    """Tables whose change is read."""
    scans: int = 0
    operators: int = 0
    """Joins, aggregates and others for which rows are moved to other tasks."""

    @property
    def seconds(self) -> float:
        return sum(float(getattr(self, one.name) * getattr(SECONDS, one.name)) for one in fields(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seconds:
    """Of processor time, in a warm JVM."""

    appends: float
    overwrites: float
    deletes: float
    fetches: float
    statements: float
    changes: float
    scans: float
    operators: float


SECONDS = _Seconds(appends=0.3, overwrites=0.45, deletes=0.2, fetches=0.15, statements=0.1, changes=0.05, scans=0.03, operators=0.15)


def steps_of_full(root: Relation) -> Steps:
    """One statement."""
    return Steps(overwrites=1, scans=_count(root, Scan), operators=_count(root, *_OPERATORS))


def steps_of(difference: Difference, changes: int, *, is_proven: bool, is_fetched: bool = False, is_written_here: bool = False) -> Steps:
    """`changes`: how many tables changed. A query that Spark has not yet confirmed is planned twice more. `is_fetched`: few rows come back,
    and are written without the engine if `is_written_here`."""
    overwrites = difference.partitions is not None
    is_fetched = is_fetched and not overwrites
    kept = _kept(difference, is_fetched=is_fetched)
    removes = difference.gone is not None or difference.is_whole
    relations = difference.relations
    by_engine = not (is_fetched and is_written_here)
    return Steps(
        appends=int(not overwrites and by_engine),
        overwrites=int(overwrites),
        deletes=int(removes and by_engine),
        fetches=int(is_fetched),
        statements=kept + int(removes and not is_fetched) + int(overwrites) + (0 if is_proven else 2),
        changes=changes,
        scans=sum(_count(one, Scan) for one in relations),
        operators=sum(_count(one, *_OPERATORS) for one in relations),
    )


def _kept(difference: Difference, *, is_fetched: bool) -> int:
    """The relations that are computed before others, because they are read more than once. What is fetched is read once."""
    reads = Counter(n.name for relation in difference.relations for n in walk(relation) if isinstance(n, Ref))
    sides = [side for side in (difference.gone, difference.came) if side is not None]
    of_sides = sum(any(isinstance(n, Scan) for n in walk(side)) for side in sides) if difference.gone is not None else 0
    once = difference.together if is_fetched else None
    return sum(reads[cte.name] > 1 or cte.at_once for cte in difference.ctes if cte is not once) + (0 if is_fetched else of_sides)


def _count(relation: Relation, *types: type[Relation]) -> int:
    """Without what is known to be empty."""
    if isinstance(relation, Filter) and relation.predicate == exp.false():
        return 0
    return isinstance(relation, types) + sum(_count(child, *types) for child in relation.children)
