"""Relation + which tables changed -> the change of its result: rows added and rows removed, as relations.

For every operator: result at new = result at old - minus + plus, as bags. The linear operators (projection, filter, UNION ALL, and one side
of a join whose other side did not change) pass changes on. An inner join of N tables gives N terms: tables before the changed one at `old`,
those after it at `new` (Griffin and Libkin, SIGMOD 1995). The others are local to keys: a row of the result depends only on the rows below
with the same key, so that the result at both versions, for the keys that changed, contains the whole change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from itertools import count, permutations

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.incremental.algebra import (
    Aggregate,
    Distinct,
    Explode,
    Filter,
    Item,
    Join,
    Limit,
    OneRow,
    Project,
    Ref,
    Relation,
    Scalar,
    Scan,
    Sessions,
    SetOperation,
    Union,
    Window,
    at,
    column,
    conjunction,
    conjuncts,
    is_loose,
    leaves,
    names_in,
    projected,
    renamed,
    substituted,
    union,
    walk,
    with_children,
)
from mvbuild.incremental.clock import at_values, boundary, differing, earlier, elsewhere, reads, reads_below, reads_here
from mvbuild.incremental.join_order import changed_first
from mvbuild.incremental.kinds import Types, is_exact, kind_of_type
from mvbuild.incremental.limiting import limiting
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.restrict import Key, equal_columns, mapped, partition_columns, restricted
from mvbuild.incremental.row_order import nondeterministic_part

KEYS = "keys_"
"""The prefix of the names of tables with changed keys."""


@dataclass(frozen=True, slots=True, eq=False)
class Cte:
    """A statement before the one that writes. Later ones read its rows by its name."""

    name: str
    relation: Relation
    at_once: bool = False
    """Computed before the statements that read it, so that the engine knows how few rows it has."""

    @property
    def ref(self) -> Ref:
        return Ref(self.name, self.relation.columns)


@dataclass(frozen=True, slots=True, eq=False)
class Delta:
    """Rows added and rows removed, each as the union of its parts. The two may have rows in common."""

    plus: tuple[Relation, ...] = ()
    minus: tuple[Relation, ...] = ()

    @property
    def all(self) -> tuple[Relation, ...]:
        return (*self.plus, *self.minus)

    def sides(self, columns: tuple[str, ...]) -> tuple[Relation | None, Relation | None]:
        """The added and the removed rows with these columns, each as one relation; None where there are no parts."""
        plus, minus = (union([projected(part, columns) for part in parts]) if parts else None for parts in (self.plus, self.minus))
        return plus, minus


@dataclass
class Deltas:
    """The change of each part of one query. `plus` and `minus`: the leaves with added rows, and those with removed rows.

    A join of two tables with new rows has two terms:

    >>> from mvbuild.incremental.samples import formula, shape
    >>> joined = shape("SELECT id, country FROM {orders} JOIN {customers} USING (customer_id)")
    >>> deltas = Deltas(plus=frozenset({0, 1}), minus=frozenset(), types=joined.types)
    >>> for part in deltas.of(joined.root).plus:
    ...     print(formula(part))
    inner join[customer_id = customer_id](orders.plus, customers)
    inner join[customer_id = customer_id](orders.old, customers.plus)

    An aggregate is computed again for the keys that changed:

    >>> counted = shape("SELECT customer_id, count(*) AS n FROM {orders} GROUP BY customer_id")
    >>> deltas = Deltas(plus=frozenset({0}), minus=frozenset(), types=counted.types)
    >>> formula(deltas.of(counted.root).plus[0])
    'aggregate[customer_id, COUNT(*)](semi join[customer_id <=> keys_0_0k](orders, keys_0))'
    >>> [(keys.name, formula(keys.relation)) for keys in deltas.ctes]
    [('keys_0', 'distinct(orders.plus)')]
    """

    plus: frozenset[int]
    minus: frozenset[int]
    types: Types
    clock: Mapping[str, str] = field(default_factory=dict)
    """The earlier values of what the query reads of the clock, where they differ. These readings are in filters and projections."""
    few_rows: bool = True
    """Whether few rows changed: then changed tables are joined first. Many rows are joined in the order of the query, where a join with a
    small table may leave only a few of them."""
    narrow_keys: bool = False
    """Whether changed keys of one side of a join are restricted to those that the conditions on the other side leave. That reads the other
    side once more, which pays if few keys remain of a large table."""
    ctes: list[Cte] = field(default_factory=list)
    _made: dict[int, tuple[Relation, Delta]] = field(default_factory=dict)
    _numbers: count[int] = field(default_factory=count)

    @property
    def changed(self) -> frozenset[int]:
        return self.plus | self.minus

    def old(self, relation: Relation) -> Relation:
        before = at(relation, "old", self.changed)
        return at_values(before, self.clock) if self.clock else before

    def changes(self, relation: Relation) -> bool:
        return bool(leaves(relation) & self.changed) or (bool(self.clock) and reads_below(relation, self.clock))

    def _reads_clock(self, relation: Relation) -> bool:
        return bool(self.clock) and reads_here(relation, self.clock)

    def of(self, relation: Relation) -> Delta:
        """The change of a relation. Raises Refused if finding it takes as much work as computing everything."""
        if not self.changes(relation):
            return Delta()
        if id(relation) not in self._made:
            # With a reference to the relation, so that its id is not reused.
            self._made[id(relation)] = (relation, self._of(relation))
        return self._made[id(relation)][1]

    def is_linear(self, relation: Relation) -> bool:
        """Whether its change depends only on the changes of its tables."""
        if not self.changes(relation):
            return True
        if self._reads_clock(relation):
            return False
        if isinstance(relation, Join):
            if relation.kind == "inner":
                return self.is_linear(relation.left) and self.is_linear(relation.right)
            return relation.kind != "full" and not self.changes(relation.right) and self.is_linear(relation.left)
        if isinstance(relation, Scalar):
            return not self.changes(relation.subquery) and self.is_linear(relation.child)
        if isinstance(relation, Scan | Project | Filter | Explode | Union):
            return all(self.is_linear(child) for child in relation.children)
        return False

    # --- the change of a relation -------------------------------------------------------------------------------------------------

    def _of(self, relation: Relation) -> Delta:
        if self._reads_clock(relation):
            return self._clocked(relation)
        if isinstance(relation, Scan):
            plus = (at(relation, "plus", self.plus),) if relation.leaf in self.plus else ()
            minus = (at(relation, "minus", self.minus),) if relation.leaf in self.minus else ()
            return Delta(plus, minus)
        if isinstance(relation, Project | Filter | Explode):
            return self._mapped(relation, self.of(relation.child))
        if isinstance(relation, Union):
            return self._union(relation)
        if isinstance(relation, Scalar):
            if self.changes(relation.subquery):
                raise Refused("scalar-subquery-changed", "the value of a scalar subquery depends on a table that changed")
            return self._mapped(relation, self.of(relation.child))
        if isinstance(relation, Join):
            return self._join(relation)
        return self._local(relation, self.local_keys(relation))

    def _clocked(self, relation: Relation) -> Delta:
        """First the rows below change, at the earlier time; then the time."""
        if not isinstance(relation, Filter | Project):
            raise elsewhere()
        self._require_steady(relation.child)
        below = self._mapped(at_values(replace(relation, child=OneRow(relation.child.columns)), self.clock), self.of(relation.child))
        if isinstance(relation, Filter):
            came, went = differing(relation, self.clock)
        else:
            came, went = self._recomputed(relation)
        return Delta((*below.plus, *came), (*below.minus, *went))

    def _recomputed(self, project: Project) -> tuple[tuple[Relation, ...], tuple[Relation, ...]]:
        """The rows with other values at the other time, now and then."""
        moved = [item for item in project.items if reads(item.expression, self.clock)]
        rows = project.child
        bounds = boundary([item.expression for item in moved], self.clock)
        if bounds is not None:
            rows = Filter(rows, bounds)
        if all(is_exact(self.types.get(item.name)) for item in moved):
            pairs = [(item.expression.copy(), earlier(item.expression, self.clock)) for item in moved]
            same = [exp.NullSafeEQ(this=exp.paren(now), expression=exp.paren(before)) for now, before in pairs]
            rows = Filter(rows, exp.Not(this=exp.paren(exp.and_(*same))))
        before_items = tuple(Item(item.name, earlier(item.expression, self.clock)) for item in project.items)
        return (Project(rows, project.items),), (Project(rows, before_items),)

    def _mapped(self, relation: Relation, below: Delta) -> Delta:
        others = relation.children[1:]
        for other in others:
            self._require_steady(other)
        plus, minus = (tuple(with_children(relation, (part, *others)) for part in side) for side in (below.plus, below.minus))
        return Delta(plus, minus)

    def _union(self, relation: Union) -> Delta:
        plus: list[Relation] = []
        minus: list[Relation] = []
        for number, part in enumerate(relation.parts):
            below = self.of(part)
            plus.extend(_in_union(relation, number, one) for one in below.plus)
            minus.extend(_in_union(relation, number, one) for one in below.minus)
        return Delta(tuple(plus), tuple(minus))

    def _join(self, join: Join) -> Delta:
        if join.kind == "inner":
            ordered = changed_first(join, self.changes) if self.few_rows else join
            if ordered is not join:
                return self.of(ordered)
            self._require_steady(join)
            left, right = self.of(join.left), self.of(join.right)
            before = self.old(join.left)
            plus = [
                *(with_children(join, (one, join.right)) for one in left.plus),
                *(with_children(join, (before, one)) for one in right.plus),
            ]
            minus = [
                *(with_children(join, (one, join.right)) for one in left.minus),
                *(with_children(join, (before, one)) for one in right.minus),
            ]
            return Delta(tuple(plus), tuple(minus))
        if join.kind != "full" and not self.changes(join.right):
            return self._mapped(join, self.of(join.left))
        if join.form == "value":
            return self._of_value(join)
        return self._local(join, self.local_keys(join))

    def _of_value(self, join: Join) -> Delta:
        """The changed rows by the new value; and if the value changed, the earlier rows for which that makes a difference."""
        self._require_steady(join)
        (value,) = join.right.columns
        before = self.old(join.right)
        moved = [SetOperation(one, other, "except", all=False, columns=one.columns) for one, other in permutations((join.right, before))]
        name = f"{KEYS}{next(self._numbers)}"
        table = self._as_cte(name, [renamed(one, ((f"{name}_0k", value),)) for one in moved])
        entered, left_out = self._moved_rows(join, before, table)
        left = self.of(join.left)
        plus = [*(replace(join, left=one) for one in left.plus), entered]
        minus = [*(replace(join, left=one) for one in left.minus), left_out]
        return Delta(tuple(plus), tuple(minus))

    def _moved_rows(self, join: Join, before: Relation, table: Ref) -> tuple[Relation, Relation]:
        """The earlier rows that match the new value, and those that match the old one, without those that match both. `table`: both values,
        if they differ."""
        rows = self.old(join.left)
        (value,) = (column(name) for name in join.right.columns)
        found = next(join.equalities, None)
        if found is not None and not found.is_null_safe and value in (found.left, found.right):
            compared = found.right if found.left == value else found.left
            rows = restricted(rows, [Key(compared.unnest(), table.columns[0])], table)
            return replace(join, left=rows), replace(join, left=rows, right=before)
        rows = Join(rows, table, "semi", exp.true(), "join")
        new, old = replace(join, left=rows), replace(join, left=rows, right=before)
        return replace(new, left=replace(old, kind="anti", form="")), replace(old, left=replace(new, kind="anti", form=""))

    def _local(self, relation: Relation, keys: tuple[exp.Expr, ...]) -> Delta:
        self._require_steady(relation)
        table = self.keys_cte(relation, keys)
        pairs = [Key(key, name) for key, name in zip(keys, table.columns, strict=True)]
        return Delta((restricted(relation, pairs, table),), (restricted(self.old(relation), pairs, table),))

    def local_keys(self, relation: Relation) -> tuple[exp.Expr, ...]:
        """Expressions over the columns of the relation such that each of its rows depends only on rows below with the same values."""
        if isinstance(relation, Aggregate | Sessions):
            if not relation.keys:
                what = "sessions without another key depend" if isinstance(relation, Sessions) else "an aggregate without GROUP BY depends"
                raise Refused("global-aggregate", f"{what} on every row")
            return tuple(column(item.name) for item in relation.keys)
        if isinstance(relation, Window):
            names = partition_columns(relation)
            if not names:
                raise Refused("window-without-partition", "a window that is not partitioned by a column", relation.values[0].expression)
            return tuple(column(name) for name in names)
        if isinstance(relation, Distinct | SetOperation):
            return self._comparable(relation.columns)
        if isinstance(relation, Join):
            return self._join_keys(relation)
        if isinstance(relation, Limit):
            raise Refused("limit", "LIMIT depends on every row", relation.limit)
        raise Refused("unsupported-operator", f"{type(relation).__name__} is not refreshed incrementally")

    def _join_keys(self, join: Join) -> tuple[exp.Expr, ...]:
        pairs = equal_columns(join)
        if join.kind == "full":
            if not pairs:
                raise Refused("unsupported-operator", "FULL JOIN without an equality of two columns", join.on)
            return tuple(exp.Coalesce(this=column(left), expressions=[column(right)]) for left, right in pairs)
        if pairs:
            return tuple(column(left) for left in dict.fromkeys(left for left, _ in pairs))
        # A mark of IN is NULL or false, which is the same for conditions, but not for keys. It follows from the other columns.
        marks = {one.mark for one in walk(join.left) if isinstance(one, Join) and one.kind == "mark" and one.form == "in"}
        return self._comparable([name for name in join.left.columns if name not in marks])

    def _comparable(self, names: Sequence[str]) -> tuple[exp.Expr, ...]:
        for name in names:
            if kind_of_type(self.types.get(name)) == "uncomparable":
                raise Refused("uncomparable-column", "a column with a map, a variant, or floats in an array or struct cannot be compared")
        return tuple(column(name) for name in names)

    def _require_steady(self, relation: Relation) -> None:
        """The earlier value of a function can only be recomputed if the order of rows does not matter: a compaction changes the order, but
        not the rows."""
        found = nondeterministic_part(relation, self.types)
        if found is not None:
            raise Refused("nondeterministic-order", "the order of the rows matters to a function below", found)

    # --- changed keys --------------------------------------------------------------------------------------------------------------

    def keys_cte(self, relation: Relation, keys: Sequence[exp.Expr]) -> Ref:
        """A table with the values of the keys in the rows of the result that changed; it may contain more."""
        name = f"{KEYS}{next(self._numbers)}"
        # No column of the query has such a name: their names end in a number.
        items = tuple(Item(f"{name}_{number}k", key) for number, key in enumerate(keys))
        return self._as_cte(name, self.changed_keys(relation, items))

    def _as_cte(self, name: str, parts: Sequence[Relation]) -> Ref:
        cte = Cte(name, Distinct(union(tuple(parts))))
        self.ctes.append(cte)
        return cte.ref

    def changed_keys(self, relation: Relation, items: tuple[Item, ...]) -> tuple[Relation, ...]:
        """A superset of the items' values in the rows of the change; empty only if nothing changed."""
        if not self.changes(relation):
            return ()
        if self._reads_clock(relation):
            return tuple(Project(part, items) for part in self.of(relation).all)
        names = frozenset().union(*(names_in(item.expression) for item in items))
        if isinstance(relation, Project):
            return self.changed_keys(relation.child, _through(items, relation.items))
        if isinstance(relation, Filter) and not self.is_linear(relation):
            return self.changed_keys(relation.child, items)
        if is_loose(relation) and not all(isinstance(i.expression, exp.Column) for i in items):
            return tuple(Project(part, items) for part in self.of(relation).all)
        if isinstance(relation, Aggregate | Sessions) and names <= {i.name for i in relation.keys}:
            return self.changed_keys(relation.child, _through(items, relation.keys))
        if isinstance(relation, Window) and names <= set(partition_columns(relation)):
            return self.changed_keys(relation.child, items)
        if isinstance(relation, Distinct):
            return self.changed_keys(relation.child, items)
        if isinstance(relation, Union) and relation.alike:
            return _flat(self.changed_keys(part, _by_position(items, relation.columns, part)) for part in relation.parts)
        if isinstance(relation, SetOperation) and not relation.alike:
            both = Union(relation.children, relation.columns, alike=False)
            changed = ((number, one) for number, side in enumerate(both.parts) for one in self.of(side).all)
            return tuple(Project(_in_union(both, number, one), items) for number, one in changed)
        if isinstance(relation, SetOperation):
            sides = (relation.left, relation.right)
            return _flat(self.changed_keys(side, _by_position(items, relation.columns, side)) for side in sides)
        if isinstance(relation, Join) and not (relation.form == "value" and self.changes(relation.right)):
            found = self._join_changed_keys(relation, items)
            if found is not None:
                return found
        delta = self.of(relation)
        return tuple(Project(part, items) for part in delta.all)

    def _join_changed_keys(self, join: Join, items: tuple[Item, ...]) -> tuple[Relation, ...] | None:
        """If one side has the keys, its changed rows have all keys that matter on that side, with or without a partner."""
        expressions = [item.expression for item in items]
        if join.kind == "full":
            return self._full_changed_keys(join, items, equal_columns(join))
        on_left, on_right = mapped(expressions, join, "left"), mapped(expressions, join, "right")
        if on_left is not None:
            own = self.changed_keys(join.left, _items(items, on_left))
            if on_right is not None and join.kind in ("inner", "semi"):
                own = self._with_partners(own, join.right, items, on_right)
            return (*own, *self._keys_of_partner(join, items, on_left, on_right))
        if on_right is not None and join.kind == "inner":
            flipped = replace(join, left=join.right, right=join.left)
            return (*self.changed_keys(join.right, _items(items, on_right)), *self._keys_of_partner(flipped, items, on_right, None))
        return None

    def _keys_of_partner(
        self, join: Join, items: tuple[Item, ...], on_left: list[exp.Expr], on_right: list[exp.Expr] | None
    ) -> tuple[Relation, ...]:
        """Keys of the left rows whose partners changed. Left rows that were removed are changes themselves."""
        if not self.changes(join.right):
            return ()
        if join.kind == "null-aware-anti":
            return (*self._keys_of_nulls(join, _items(items, on_left)), *self._keys_of_equals(join, items, on_left, on_right))
        return self._keys_of_equals(join, items, on_left, on_right)

    def _keys_of_nulls(self, join: Join, items: tuple[Item, ...]) -> tuple[Relation, ...]:
        """Keys of the left rows of NOT IN that depend on whether the right side has rows, or a NULL: those with NULL, and all of them if a
        NULL comes or goes."""
        self._require_steady(join.left)
        (on,) = conjuncts(join.on)
        value, listed = on.this, on.expression
        found = []
        for part in self.of(join.right).all:
            found.append(Project(Join(Filter(join.left, _is_null(value)), part, "semi", None), items))
            found.append(Project(Join(join.left, Filter(part, _is_null(listed)), "semi", None), items))
        return tuple(found)

    def _keys_of_equals(
        self, join: Join, items: tuple[Item, ...], on_left: list[exp.Expr], on_right: list[exp.Expr] | None
    ) -> tuple[Relation, ...]:
        if on_right is not None:
            return self._with_partners(self.changed_keys(join.right, _items(items, on_right)), join.left, items, on_left)
        self._require_steady(join.left)
        delta = self.of(join.right)
        pairs = replace(join, kind="inner", form="", mark="")
        return tuple(Project(replace(pairs, right=part), _items(items, on_left)) for part in delta.all)

    def _with_partners(
        self, keys: tuple[Relation, ...], partner: Relation, items: tuple[Item, ...], theirs: list[exp.Expr]
    ) -> tuple[Relation, ...]:
        """The keys of rows that may have a partner. `theirs`: the items over the columns of the partner."""
        names = tuple(one.name for one in theirs if isinstance(one, exp.Column))
        table = limiting(partner, names, self.changes) if self.narrow_keys and names and len(names) == len(theirs) else None
        if table is None:
            return keys
        pairs = zip((item.name for item in items), table.columns, strict=True)
        on = conjunction([exp.NullSafeEQ(this=column(key), expression=column(own)) for key, own in pairs])
        return tuple(Join(one, table, "semi", on) for one in keys)

    def _full_changed_keys(self, join: Join, items: tuple[Item, ...], pairs: Sequence[tuple[str, str]]) -> tuple[Relation, ...] | None:
        sides: list[Item] = []
        others: list[Item] = []
        for item in items:
            value = item.expression
            if not (isinstance(value, exp.Coalesce) and isinstance(value.this, exp.Column) and len(value.expressions) == 1):
                return None
            one, other = value.this, value.expressions[0]
            if (one.name, other.name) not in pairs:
                return None
            sides.append(Item(item.name, one))
            others.append(Item(item.name, other))
        return (*self.changed_keys(join.left, tuple(sides)), *self.changed_keys(join.right, tuple(others)))


def _is_null(value: exp.Expr) -> exp.Expr:
    return exp.Is(this=value.copy() if isinstance(value, exp.Column) else exp.paren(value), expression=exp.Null())


def _in_union(union_: Union, number: int, rows: Relation) -> Relation:
    """Rows in place of a part. If the types differ, the other parts remain, without rows, so that Spark casts as in the query."""
    own = _as(rows, union_.columns)
    if union_.alike:
        return own
    return replace(union_, parts=tuple(own if at_ == number else Filter(part, exp.false()) for at_, part in enumerate(union_.parts)))


def _as(relation: Relation, names: Sequence[str]) -> Relation:
    if relation.columns == tuple(names):
        return relation
    return Project(relation, tuple(Item(new, column(old)) for new, old in zip(names, relation.columns, strict=True)))


def _through(items: tuple[Item, ...], inner: Sequence[Item]) -> tuple[Item, ...]:
    values = {item.name: item.expression for item in inner}
    return tuple(Item(item.name, substituted(item.expression, values)) for item in items)


def _items(items: tuple[Item, ...], expressions: Sequence[exp.Expr]) -> tuple[Item, ...]:
    return tuple(Item(item.name, expression) for item, expression in zip(items, expressions, strict=True))


def _by_position(items: tuple[Item, ...], columns: Sequence[str], part: Relation) -> tuple[Item, ...]:
    values = {name: column(own) for name, own in zip(columns, part.columns, strict=True)}
    return tuple(Item(item.name, substituted(item.expression, values)) for item in items)


def _flat(parts) -> tuple[Relation, ...]:  # type: ignore[no-untyped-def]
    return tuple(one for part in parts for one in part)
