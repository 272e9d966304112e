"""Shape -> Division: the inner results of a query that are worth keeping in auxiliary views, and the query over them.

An auxiliary view is a table with an inner result of an MV's query. For the algebra it is one more table: the query of the MV is a tree over
base tables and auxiliary views, and each auxiliary view has a tree of its own, which may read those before it. Putting the trees back into
the query gives the tree of the user's query, which Spark compares with the text (refresh/round_trip.py).

These results are kept:

* what depends on the order of rows (`row_number() = 1`, `collect_list`, sums of floats) below another operator: what it was cannot be
  computed again
* the groups of an aggregate at the top, with the counts and sums that keep them mergeable, below HAVING and computed columns
* the groups of an aggregate below an operator that depends on every row (LIMIT, a window without PARTITION BY, a scalar subquery)
* the rows of a join below LIMIT
* for an aggregate of everything with `count(DISTINCT x)`, or with the first or last date x, the groups of x

No view has a part that reads the clock: a condition like `d >= current_date - 30` remains in the query over the views.

A query is divided in two more ways. `with_inner_groups` also keeps the groups of each other aggregate below the top, and the rows of
windows below windows that partition by other columns: a change reaches a few of them, and those need not be computed from all of their rows
again. `reduced` is for rows that are joined with the groups of an aggregate,
as by a correlated subquery: it keeps the rows and the groups that they need, which are few if a condition restricts the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from functools import reduce

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.incremental.aggregate_arguments import never_null
from mvbuild.incremental.algebra import (
    Aggregate,
    Filter,
    Item,
    Join,
    Limit,
    Pivot,
    Project,
    Relation,
    Scalar,
    Scan,
    Sessions,
    Window,
    bottom_of,
    column,
    leaves,
    projected,
    walk,
    with_children,
    with_part,
)
from mvbuild.incremental.clock import clock_last, day_before, is_timeless, reads_at_top
from mvbuild.incremental.column_pruning import pruned
from mvbuild.incremental.distinct_groups import by_distinct_value, distinct_groups
from mvbuild.incremental.division import Cut, Division
from mvbuild.incremental.group_parts import with_parts
from mvbuild.incremental.hypothetical import answers
from mvbuild.incremental.kinds import kind_of_type
from mvbuild.incremental.matched_rows import matched_rows
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.restrict import partition_columns
from mvbuild.incremental.row_order import is_unsteady
from mvbuild.incremental.same_rows import rows_text
from mvbuild.incremental.semijoin import Reduction, is_plain, reduction
from mvbuild.incremental.shape import Shape
from mvbuild.incremental.strategies import COMPLETE, MAY_FALL_SHORT, OF_GROUPS, STRATEGIES
from mvbuild.lineage.types import Type

_PLACE = -1
"""In place of a part of a query."""
_NOT_OF_TABLES = ("tinyint", "smallint", "interval")
_CERTAIN = tuple(name for name in STRATEGIES if name not in COMPLETE | MAY_FALL_SHORT.keys())
"""Strategies that need less than the whole query, and for which that is known before the change is computed."""


def divisions(shape: Shape, tables: int) -> Iterator[Division]:
    """All ways to divide a query, in the order of how much is kept. `tables` as for `divided`."""
    plain = divided(shape, tables)
    if plain is not None:
        yield plain
    inner = with_inner_groups(shape, tables)
    if inner is not None and (plain is None or len(inner.cuts) > len(plain.cuts)):
        yield inner
    of_joins = reduced(shape, tables)
    if of_joins is not None:
        yield of_joins


def divided(shape: Shape, tables: int) -> Division | None:
    """None if nothing is worth keeping. `tables`: how many tables the query reads; the auxiliary views get the numbers after them.

    >>> from mvbuild.incremental.samples import formula, shape
    >>> found = divided(shape("SELECT customer_id, avg(amount) AS mean FROM {orders} GROUP BY customer_id HAVING count(*) > 1"), 2)
    >>> [formula(cut.shape.root) for cut in found.cuts]
    ['aggregate[customer_id, AVG(amount), COUNT(*), SUM(amount), COUNT(amount)](orders)']
    """
    return _divided(_Cutter(shape=shape, first=tables, is_followed=follows_changes(shape)))


def with_inner_groups(shape: Shape, tables: int) -> Division | None:
    """Divided as by `divided`, and where an aggregate is computed below another operator, or windows below others; None if there are none.

    >>> from mvbuild.incremental.samples import formula, shape
    >>> per_customer = "(SELECT customer_id, count(id) AS n FROM {orders} GROUP BY customer_id)"
    >>> found = with_inner_groups(shape(f"SELECT n, count(*) AS customers FROM {per_customer} GROUP BY n"), 2)
    >>> [formula(cut.shape.root) for cut in found.cuts]
    ['aggregate[customer_id, COUNT(id), COUNT(*)](orders)']
    """
    bottom = bottom_of(shape.root)
    if not any(_has_windows_below(node) or (isinstance(node, Aggregate) and node is not bottom) for node in walk(bottom)):
        return None
    return _divided(_Cutter(shape=shape, first=tables, is_followed=False, keeps_groups=True))


def _divided(cutter: _Cutter) -> Division | None:
    plain = cutter.at_top(cutter.shape.root)
    root = cutter.from_distinct_values(plain)
    if not cutter.cuts:
        return None
    outputs = cutter.shape.outputs
    proof = cutter.shape_of(plain, outputs) if plain is not root else None
    return Division(cuts=tuple(cutter.cuts), shape=cutter.shape_of(root, outputs), proof=proof)


def reduced(shape: Shape, tables: int) -> Division | None:
    """Divided where rows are joined with groups that they restrict; None if they are not, or if a part cannot be kept.

    >>> from mvbuild.incremental.samples import formula, shape
    >>> per_customer = "(SELECT customer_id, sum(amount) AS s FROM {orders} GROUP BY customer_id)"
    >>> on = "ON o.customer_id = customers.customer_id"
    >>> sql = f"SELECT country, s FROM {{customers}} JOIN {per_customer} AS o {on} WHERE country = 'no'"
    >>> found = reduced(shape(sql), 2)
    >>> [formula(cut.shape.root) for cut in found.cuts][0]
    "filter[country = 'no'](customers)"
    """
    cutter = _Cutter(shape=shape, first=tables, is_followed=False)
    try:
        root = cutter.with_reduced_groups(shape.root)
    except Refused:
        return None
    if not cutter.cuts:
        return None
    root = cutter.over_views(root)
    return Division(cuts=tuple(cutter.cuts), shape=cutter.shape_of(root, shape.outputs))


@dataclass
class _Cutter:
    shape: Shape
    first: int
    is_followed: bool
    """Whether a strategy follows deletes and the day from the storage alone: then only the groups of the top aggregate are kept."""
    keeps_groups: bool = False
    """Whether the groups of each aggregate below the top are kept."""
    cuts: list[Cut] = field(default_factory=list)
    views: dict[str, Cut] = field(default_factory=dict)
    """`rows_text` -> the auxiliary view with these rows."""
    kept: list[Relation] = field(default_factory=list)
    """Each part of the query that is read from an auxiliary view."""
    types: dict[str, Type | None] = field(default_factory=dict)
    """Of the columns that only auxiliary views have."""
    required: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.required = self.shape.required

    def shape_of(self, root: Relation, outputs: tuple[tuple[str, str], ...]) -> Shape:
        return replace(self.shape, root=root, outputs=outputs, types={**self.shape.types, **self.types}, required=self._required())

    def _required(self) -> frozenset[str]:
        """A column that an auxiliary view reads may be NULL in its result, after an outer join."""
        required = self.shape.required
        for relation in self.kept:
            required -= frozenset(relation.columns) - never_null(relation, required)
        return required

    # --- the tree, from the top ---------------------------------------------------------------------------------------------------

    def at_top(self, relation: Relation) -> Relation:
        """The operators from which the rows of the storage follow directly: their old value is in the storage."""
        bottom = bottom_of(relation)
        if isinstance(bottom, Sessions | Window) and is_unsteady(bottom, self.shape.types) is not None:
            # The storage has the rows, but not the keys by which they are found again: otherwise its changes would be followed.
            return self.below(relation)
        if not isinstance(bottom, Aggregate):
            return with_part(relation, bottom, self._inside(bottom))
        groups = replace(bottom, child=self.below(bottom.child))
        needs_parts = self._needs_parts(with_part(relation, bottom, groups), groups)
        return with_part(relation, bottom, self._groups(groups) if needs_parts else groups)

    def over_views(self, relation: Relation) -> Relation:
        """The rest of a query over views that are small: its result is computed from them, without another view for it."""
        bottom = bottom_of(relation)
        return with_part(relation, bottom, self._inside(bottom))

    def below(self, relation: Relation, *, of_all_rows: bool = False) -> Relation:
        """Operators below another one. `of_all_rows`: the one above depends on every row."""
        if self.is_followed:
            return relation
        if isinstance(relation, Project | Filter):
            if reads_at_top(relation):
                # A view has no record of the clock, so that the part of the query that reads it remains above.
                above = clock_last(relation) if isinstance(relation, Filter) else relation
                return with_children(above, (self.below(above.child, of_all_rows=of_all_rows),))
            unsteady = bottom_of(relation)
            if isinstance(unsteady, Aggregate | Sessions | Window) and is_unsteady(unsteady, self.shape.types) is not None:
                return projected(self._kept(_chain(relation, self._inside(unsteady))), relation.columns)
            return with_children(relation, (self.below(relation.child, of_all_rows=of_all_rows),))
        if isinstance(relation, Aggregate | Sessions | Window) and is_unsteady(relation, self.shape.types) is not None:
            return self._kept(self._inside(relation))
        if isinstance(relation, Aggregate) and (of_all_rows or self.keeps_groups or not relation.keys):
            before = len(self.cuts)
            found = self._groups(replace(relation, child=self.below(relation.child)))
            if isinstance(found, Scan) or len(self.cuts) > before:
                return found
            # For example the largest of all totals: it cannot follow deletes, and the totals can.
            return replace(relation, child=self.below(relation.child, of_all_rows=True))
        return self._inside(relation, of_all_rows=of_all_rows)

    def _inside(self, relation: Relation, *, of_all_rows: bool = False) -> Relation:
        """The operator itself stays, its inputs may be kept."""
        if isinstance(relation, Limit):
            return replace(relation, child=self._limited(relation.child))
        if isinstance(relation, Aggregate):
            of_all_rows = False
        if isinstance(relation, Window) and _has_windows_below(relation) and self.keeps_groups:
            return replace(relation, child=self._kept(self._inside(relation.child)))
        of_all = isinstance(relation, Window) and not partition_columns(relation)
        if isinstance(relation, Scalar) or of_all or (isinstance(relation, Sessions) and not relation.keys):
            of_all_rows = True
        return with_children(relation, tuple(self.below(child, of_all_rows=of_all_rows) for child in relation.children))

    def from_distinct_values(self, relation: Relation) -> Relation:
        """The aggregates of everything that count distinct values, computed from a group for each value."""
        if self.is_followed:
            return relation
        relation = with_children(relation, tuple(self.from_distinct_values(child) for child in relation.children))
        if not isinstance(relation, Aggregate):
            return relation
        before = len(self.cuts), dict(self.views), len(self.kept)
        parts = by_distinct_value(relation)
        made = [found for one in parts if (found := self._from_groups(one)) is not None]
        if len(made) == len(parts):
            together = reduce(lambda one, other: Join(one, other, "inner", None), made)
            return projected(together, relation.columns)
        del self.cuts[before[0] :], self.kept[before[2] :]
        self.views = before[1]
        return relation

    def _from_groups(self, aggregate: Aggregate) -> Relation | None:
        found = distinct_groups(aggregate, {**self.shape.types, **self.types})
        if found is None:
            return None
        known = dict(self.types)
        self.types.update(found.types)
        kept = self._groups(found.groups)
        if isinstance(kept, Scan):
            return found.over(kept)
        self.types = known
        return None

    def with_reduced_groups(self, relation: Relation) -> Relation:
        """The joins with groups over views of their left sides and of the groups. Raises Refused if one of them cannot be kept."""
        found = reduction(relation, self.shape.types)
        if found is None:
            return with_children(relation, tuple(self.with_reduced_groups(child) for child in relation.children))
        assert isinstance(relation, Join)
        source = self._part(found.source, self.shape.root)
        left = with_part(relation.left, found.source, source)
        if left is not source and is_plain(left):
            left = self._part(left, with_part(self.shape.root, relation.left, left))
        groups, types = found.restricted(source, {**self.shape.types, **self.types})
        self.types.update(types)
        kept = self._groups(groups)
        if not isinstance(kept, Scan):
            raise Refused("not-mergeable", "the groups would be computed in full")
        kept = replace(kept, sources=tuple(pair for pair in kept.sources if pair[0] in self._written(found, kept, source)))
        return replace(relation, left=left, right=with_part(relation.right, found.written, kept))

    def _written(self, found: Reduction, kept: Scan, source: Scan) -> tuple[str, ...]:
        """The columns of the groups that the query has. Notes what the view of the groups is in the query: the groups of all rows, or the
        rows. Raises Refused if the query has both."""
        at = kept.leaf - self.first
        cut, groups = self.cuts[at], self.cuts[at].shape.root
        is_aggregate = isinstance(found.written, Aggregate)
        if cut.written is None:
            assert isinstance(groups, Aggregate)
            written = replace(groups, child=found.groups.child) if is_aggregate else found.written
            self.cuts[at] = replace(cut, written=written, keys=source.leaf)
        elif isinstance(cut.written, Aggregate) != is_aggregate:
            raise Refused("not-mergeable", "the groups are also rows")
        return kept.columns if is_aggregate else found.written.columns

    def _part(self, part: Relation, root: Relation) -> Scan:
        """A view of a part of the query, with the columns that are needed in the rest of it."""
        place = Scan(_PLACE, tuple((name, name) for name in part.columns))
        found = (node for node in walk(pruned(with_part(root, part, place))) if isinstance(node, Scan) and node.leaf == _PLACE)
        needed = next(found, place).columns
        kept = self._kept(projected(part, needed))
        if not isinstance(kept, Scan):
            raise Refused("not-mergeable", "the rows would be computed in full")
        return kept

    def _limited(self, relation: Relation) -> Relation:
        """The rows below LIMIT. If no part of them is kept, all of them are, unless they are plainly the rows of one table."""
        before = len(self.cuts)
        found = self.below(relation, of_all_rows=True)
        is_plain = all(type(node) in (Project, Filter, Scan) for node in walk(found))
        return found if len(self.cuts) > before or is_plain else self._kept(found)

    # --- what is kept --------------------------------------------------------------------------------------------------------------

    def _needs_parts(self, root: Relation, groups: Aggregate) -> bool:
        """Whether deletes cannot be merged into the outputs of the query, and can be into the groups with more counts and sums."""
        if _merges(self.shape_of(root, self.shape.outputs)):
            return False
        try:
            return _merges(self._of_groups(*with_parts(groups, self.shape)))
        except Refused:
            return False

    def _groups(self, aggregate: Aggregate) -> Relation:
        """The groups, with the counts and sums that deletes need; or without them, if another strategy than merging follows deletes."""
        try:
            parts, types = with_parts(aggregate, self.shape)
        except Refused:
            return self._kept(aggregate)
        if not _merges(self._of_groups(parts, types)):
            return self._kept(aggregate)
        self.types.update(types)
        return self._kept(parts)

    def _of_groups(self, aggregate: Aggregate, more: Mapping[str, Type | None]) -> Shape:
        made = self.shape_of(aggregate, tuple((name, name) for name in aggregate.columns))
        return replace(made, types={**made.types, **more})

    def _kept(self, relation: Relation) -> Relation:
        """A scan of an auxiliary view with the relation's rows; the relation itself, if such a view would be computed in full each time."""
        made = self.shape_of(relation, tuple((name, name) for name in relation.columns))
        if not leaves(relation) or not all(_can_be_kept(made.types.get(name)) for name in relation.columns) or not is_timeless(relation):
            return relation
        if not self._is_followed(made):
            return relation
        self.kept.append(relation)
        # What cannot be compared has a name of its own.
        text = rows_text(relation) or f"view {len(self.cuts)}"
        if text not in self.views:
            self.cuts.append(Cut(leaf=self.first + len(self.cuts), shape=made))
            self.views[text] = self.cuts[-1]
        view = self.views[text]
        return Scan(view.leaf, tuple(zip(relation.columns, view.shape.root.columns, strict=True)))

    def _is_followed(self, shape: Shape) -> bool:
        """Whether a strategy follows changes of the tables outside scalar subqueries. When a table of a scalar subquery changes, the
        auxiliary view is computed in full; that is rare."""
        changed = _outside_subqueries(shape.root)
        return bool(changed) and follows_deletes(shape, changed)


def _has_windows_below(relation: Relation) -> bool:
    """Whether its windows are computed from the rows of others, which partition by other columns."""
    return isinstance(relation, Window) and isinstance(relation.child, Window)


def _can_be_kept(type_: Type | None) -> bool:
    """Whether a column of an Iceberg table has the type, and its values can be compared. Spark's types are known for certain only when the
    view is made; then a refresh without auxiliary views is what remains."""
    return kind_of_type(type_) not in ("uncomparable", "unknown") and not any(word in str(type_) for word in _NOT_OF_TABLES)


def follows_deletes(shape: Shape, changed: frozenset[int] | None = None) -> bool:
    """Whether a strategy other than a full computation can be used if rows are added and removed. `changed`: of these tables, or of all."""
    return any(one.refused is None for one in answers(shape, "deletes", changed=changed, strategies=_CERTAIN))


def follows_changes(shape: Shape) -> bool:
    """Whether a strategy other than a full computation can be used if rows are added and removed, and if the day is another one."""
    clock = day_before(shape.root)
    moved = answers(shape, "inserts", changed=frozenset(), clock=clock, strategies=_CERTAIN) if clock else ()
    return follows_deletes(shape) and (not clock or any(one.refused is None for one in moved))


def _merges(shape: Shape) -> bool:
    """Whether deletes can be merged into the outputs: of all tables, or of those that have the values (incremental/matched_rows.py)."""
    bottom = bottom_of(shape.root)
    found = matched_rows(bottom) if isinstance(bottom, Aggregate) else None
    changed = _outside_subqueries(shape.root) & (found.right if found else leaves(shape.root))
    return any(one.refused is None for one in answers(shape, "deletes", changed=changed, strategies=OF_GROUPS))


def _outside_subqueries(root: Relation) -> frozenset[int]:
    """The tables that no scalar subquery reads."""
    return leaves(root) - frozenset[int]().union(*(leaves(node.subquery) for node in walk(root) if isinstance(node, Scalar)))


def _chain(relation: Relation, bottom: Relation) -> Relation:
    """The projections and filters of `relation` over another relation, with the keys by which its rows are found again."""
    if not isinstance(relation, Project | Filter):
        return bottom
    inner = _chain(relation.child, bottom)
    if isinstance(relation, Filter | Pivot):
        # A PIVOT already has all of its keys, and as a plain projection its plan would not be the one that Spark makes of PIVOT.
        return with_children(relation, (inner,))
    shown = {item.expression.name for item in relation.items if isinstance(item.expression, exp.Column)}
    unsteady = bottom_of(relation)
    keys: tuple[str, ...] = ()
    if isinstance(unsteady, Window):
        keys = partition_columns(unsteady)
    elif isinstance(unsteady, Aggregate | Sessions):
        keys = tuple(item.name for item in unsteady.keys)
    taken = {item.name for item in relation.items}
    more = tuple(Item(name, column(name)) for name in keys if name not in shown and name not in taken and name in inner.columns)
    return Project(inner, (*relation.items, *more))
