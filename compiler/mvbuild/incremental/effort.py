"""Relation + sizes of tables -> the approximate cost of computing it: processor time in microseconds, from row counts and column types.

The constants were measured with TPC-H at scale 5 (tests/benchmarks/incremental.py). Only ratios matter, because both sides of a comparison
are estimated in the same way. Cardinalities are those of System R (Selinger et al., SIGMOD 1979): a condition passes a fixed share, and a
join with a filtered table keeps the share that the filter left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from math import exp as e_to_the
from math import prod

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.incremental.algebra import (
    Aggregate,
    Distinct,
    Explode,
    Filter,
    Join,
    Limit,
    OneRow,
    Ref,
    Relation,
    Scalar,
    Scan,
    Sessions,
    SetOperation,
    Union,
    Window,
    conjuncts,
)
from mvbuild.incremental.key_ranges import Ranges, Wanted
from mvbuild.incremental.sizes import COMPARED, COMPARED_HERE, SHUFFLE, TableSize

CONDITION, PATTERN, PROBE, SORT = 0.02, 0.3, 0.05, 0.6
"""Per row: a condition, a condition on text, a lookup in a small table, and sorting."""
GROUP, FUNCTION = 0.1, 0.07
"""Per aggregated row, and per function over it."""
SMALL = 100_000
"""Up to this many rows are broadcast, so that the other side of a join is not moved. Spark expects as many rows as the table has, whatever
conditions leave of them."""
_SHARES: Mapping[type[exp.Expr], float] = {exp.EQ: 0.1, exp.In: 0.2, exp.Between: 0.25, exp.Like: 0.1}
_OTHER_SHARE = 0.33
_PATTERNS = (exp.Like, exp.ILike, exp.RegexpLike)


@dataclass(frozen=True, slots=True)
class Flow:
    """`of`: how many rows there would be without any condition."""

    rows: float
    of: float
    cost: float
    scanned: float | None = None
    """The rows of the scan below, if conditions are evaluated there."""
    seen: float | None = None
    """How many rows Spark expects, if others than `rows`."""

    @property
    def expected(self) -> float:
        return self.rows if self.seen is None else self.seen

    @property
    def tested(self) -> float:
        """How many rows a condition is evaluated for: Spark evaluates it when it reads the table, before it looks up keys."""
        return self.rows if self.scanned is None else self.scanned

    @property
    def share(self) -> float:
        return min(1.0, self.rows / self.of) if self.of else 1.0


@dataclass
class Estimator:
    """The estimates of one refresh: what is computed once costs once."""

    ranges: Ranges
    groups: Mapping[str, float] = field(default_factory=dict)
    """Statement with changed keys -> how many distinct keys the result has."""
    filters: Mapping[int, exp.Expr] = field(default_factory=dict)
    """Leaf -> the condition on the rows of its change that are compared with each other."""
    ctes: dict[str, Flow] = field(default_factory=dict)
    _read: set[tuple[int, str]] = field(default_factory=set)

    def cte(self, name: str, relation: Relation) -> float:
        found = self.flow(relation, {})
        self.ctes[name] = Flow(found.rows, found.of, 0.0)
        self.ranges.cte(name, relation)
        return found.cost

    def flow(self, relation: Relation, wanted: Wanted) -> Flow:
        """Only the rows of the relation within `wanted` are needed."""
        if isinstance(relation, Scan):
            return self._scan(relation, wanted)
        if isinstance(relation, Ref):
            known = self.ctes[relation.name]
            return Flow(known.rows, known.of, known.rows * PROBE)
        if isinstance(relation, OneRow):
            return Flow(1, 1, 0)
        if isinstance(relation, Join):
            return self._join(relation, wanted)
        if isinstance(relation, Union):
            parts = [self.flow(part, of) for part, of in zip(relation.parts, self.ranges.below(relation, wanted), strict=True)]
            return Flow(sum(p.rows for p in parts), sum({p.of for p in parts}), sum(p.cost for p in parts))
        if isinstance(relation, SetOperation):
            left, right = self._both(relation, wanted)
            return Flow(left.rows / 2, left.of, left.cost + right.cost + (left.rows + right.rows) * SHUFFLE)
        if isinstance(relation, Scalar):
            below, value = self._both(relation, wanted)
            return Flow(below.rows, below.of, below.cost + value.cost)
        return self._unary(relation, self.flow(relation.children[0], self.ranges.below(relation, wanted)[0]))

    def _both(self, relation: Relation, wanted: Wanted) -> tuple[Flow, Flow]:
        (left, of_left), (right, of_right) = zip(relation.children, self.ranges.below(relation, wanted), strict=True)
        return self.flow(left, of_left), self.flow(right, of_right)

    def _unary(self, relation: Relation, below: Flow) -> Flow:
        if isinstance(relation, Filter):
            parts = conjuncts(relation.predicate)
            if relation.predicate == exp.false():
                return Flow(0, below.of, 0)
            cost = below.cost + below.tested * _conditions(parts)
            return Flow(below.rows * _share(parts), below.of, cost, below.scanned, below.expected)
        if isinstance(relation, Aggregate | Sessions):
            cost = below.cost + below.rows * (GROUP + FUNCTION * len(relation.values))
            rows = below.rows / 4 if relation.keys else 1.0
            moved = rows * SHUFFLE if rows > SMALL else 0.0
            return Flow(rows, max(rows, below.of / 4), cost + moved, seen=below.expected if relation.keys else None)
        if isinstance(relation, Distinct):
            return Flow(below.rows, below.of, below.cost + below.rows * GROUP, seen=below.expected)
        if isinstance(relation, Window):
            return Flow(below.rows, below.of, below.cost + below.rows * SORT)
        if isinstance(relation, Explode):
            return Flow(below.rows * 3, below.of * 3, below.cost)
        if isinstance(relation, Limit):
            return Flow(min(below.rows, 1000.0), below.of, below.cost + below.rows * CONDITION)
        return below

    def _scan(self, scan: Scan, wanted: Wanted) -> Flow:
        size = self.ranges.sizes.of(scan)
        if scan.version in ("plus", "minus"):
            again = (scan.leaf, scan.version) in self._read
            self._read.add((scan.leaf, scan.version))
            return Flow(size.rows, size.of, size.rows * PROBE if again else self._of_change(scan.leaf, size))
        share = self.ranges.sizes.share(scan, wanted)
        return Flow(size.rows * share, size.of, size.read * size.row_cost * share, size.read * share)

    def _of_change(self, leaf: int, size: TableSize) -> float:
        if size.here:
            return size.read * size.row_cost + size.compared * COMPARED_HERE
        condition = self.filters.get(leaf)
        share = 1.0 if condition is None else min(1.0, sum(_share(conjuncts(part)) for part in _disjuncts(condition)))
        return size.read * size.row_cost + size.compared * share * COMPARED

    def _join(self, join: Join, wanted: Wanted) -> Flow:
        left, right = self._both(join, wanted)
        if join.kind in ("inner", "semi") and not (left.rows and right.rows):
            # Known before the other side is read.
            return Flow(0, max(left.of, right.of), right.cost if left.rows else left.cost)
        small = min(left.expected, right.expected) <= SMALL
        others = [part for part in conjuncts(join.on) if not isinstance(part, exp.EQ | exp.NullSafeEQ)]
        cost = (
            left.cost
            + right.cost
            + right.tested * _conditions(others)
            + (max(left.rows, right.rows) * PROBE if small else (left.rows + right.rows) * SHUFFLE)
        )
        if join.kind == "mark":
            return Flow(left.rows, left.of, cost, left.scanned, left.seen)
        if join.kind in ("semi", "anti", "null-aware-anti"):
            share = self._matched(join.right, left, right)
            rows = left.rows * (share if join.kind == "semi" else 1 - share)
            return Flow(rows, left.of, cost, left.scanned, left.expected)
        large, other = (left, right) if left.of >= right.of else (right, left)
        rows = large.rows * other.share
        if join.kind in ("left", "full"):
            rows = max(rows, left.rows, right.rows if join.kind == "full" else 0.0)
        return Flow(rows, large.of, cost, seen=max(rows, left.expected, right.expected))

    def _matched(self, keys: Relation, left: Flow, right: Flow) -> float:
        """The share of the left rows that have a partner."""
        if isinstance(keys, Ref) and keys.name in self.groups:
            return 1 - e_to_the(-right.rows / max(1.0, self.groups[keys.name]))
        return min(1.0, right.rows / max(1.0, min(left.of, right.of)))


def _share(parts: Sequence[exp.Expr]) -> float:
    return max(prod(_SHARES.get(type(part.unnest()), _OTHER_SHARE) for part in parts), 0.001)


def _disjuncts(condition: exp.Expr) -> Sequence[exp.Expr]:
    return list(condition.flatten()) if isinstance(condition, exp.Or) else [condition]


def _conditions(parts: Iterable[exp.Expr]) -> float:
    return sum(PATTERN if part.find(*_PATTERNS) else CONDITION for part in parts)
