"""The types of relational algebra: Relation trees over versions of the tables that a query reads. Bags, not sets, throughout.

Every column has a unique name within a tree, so that expressions need no qualifiers and parts of trees can be combined freely.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import zip_longest
from typing import Literal, NamedTuple

from sqlglot import exp

from mvbuild.dataclass import dataclass

Version = Literal["new", "old", "plus", "minus"]
"""The versions of a base table: at the pinned snapshot, at the recorded one, and the rows added and removed between them: new = old - minus
+ plus."""
JoinKind = Literal["inner", "left", "full", "semi", "anti", "null-aware-anti", "mark"]
"""`anti` is NOT EXISTS. `null-aware-anti` is NOT IN: its condition is one equality, and with a NULL on either side no row passes. `mark`
adds a column to the left side that says whether the row has a partner."""


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """A computed output column: a name and the expression behind it."""

    name: str
    expression: exp.Expr


class _Leaf:
    """An operator without children."""

    __slots__ = ()

    @property
    def children(self) -> tuple[Relation, ...]:
        return ()


@dataclass(frozen=True, slots=True, eq=False)
class _Unary:
    """An operator over one relation. It has the columns of the relation unless a subclass says otherwise."""

    child: Relation

    @property
    def columns(self) -> tuple[str, ...]:
        return self.child.columns

    @property
    def children(self) -> tuple[Relation, ...]:
        return (self.child,)


@dataclass(frozen=True, slots=True, eq=False)
class Scan(_Leaf):
    """A table of the query. `leaf`: its number among the tables of the query."""

    leaf: int
    sources: tuple[tuple[str, str], ...]
    """(name in this tree, column of the table)."""
    version: Version = "new"
    columns: tuple[str, ...] = field(init=False, repr=False)
    """Found once, as in `Join`: planning asks for them a hundred thousand times."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(name for name, _ in self.sources))


@dataclass(frozen=True, slots=True, eq=False)
class Ref(_Leaf):
    """The result of an earlier statement, by its name."""

    name: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class OneRow(_Leaf):
    """SELECT without FROM: one row without columns."""

    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Project(_Unary):
    items: tuple[Item, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(item.name for item in self.items)


@dataclass(frozen=True, slots=True, eq=False)
class Filter(_Unary):
    predicate: exp.Expr


@dataclass(frozen=True, slots=True, eq=False)
class Expand(Project):
    """The rows that GROUPING SETS groups, over an `Explode` that repeats each row for every set. Its items have NULL in place of the keys
    that a set does not have."""

    keys: tuple[Item, ...]
    """The name of each key, and its value in the rows below."""
    sets: tuple[tuple[str, ...], ...]
    """The names of the keys that each set has."""
    number: str
    """The column by which the sets differ: `grouping_id()`."""

    @property
    def source(self) -> Relation | None:
        """The rows that are repeated; None if they are no longer those of the query."""
        return self.child.child if isinstance(self.child, Explode) else None


Likeness = Literal["cast", "equal", "same"]
"""What an equality says of its sides. `cast`: it compares after a cast; '01' = 1 holds, but '01' and '1' are two keys. `equal`: one type,
but equal values may have different texts, as 0.0 and -0.0. `same`: every function gives the same for both."""


class Equality(NamedTuple):
    """A part of a join's condition that compares with = or <=>, without a cast."""

    left: exp.Expr
    right: exp.Expr
    is_null_safe: bool
    is_same: bool


@dataclass(frozen=True, slots=True, eq=False)
class Join:
    left: Relation
    right: Relation
    kind: JoinKind
    on: exp.Expr | None
    form: Literal["", "in", "scalar", "value", "join"] = ""
    """How it was written, so that Spark makes the same plan: as IN, as a correlated scalar subquery, as a comparison with the value of
    another one, as LEFT SEMI or ANTI JOIN."""
    mark: str = ""
    """The column that a `mark` join adds. With the form `in` it may be NULL where no row matches, and false after a NULL leaves the right
    side. A refresh does not follow that, so only conditions may read the column: they treat NULL as false."""
    likeness: tuple[Likeness, ...] = ()
    """Of each part of `on`; `equal` where there is none."""
    columns: tuple[str, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        more = {"mark": (self.mark,), "semi": (), "anti": (), "null-aware-anti": ()}.get(self.kind, self.right.columns)
        object.__setattr__(self, "columns", (*self.left.columns, *more))

    @property
    def children(self) -> tuple[Relation, ...]:
        return (self.left, self.right)

    @property
    def equalities(self) -> Iterator[Equality]:
        """Those that hold without a cast."""
        for part, likeness in zip_longest(conjuncts(self.on), self.likeness, fillvalue="equal"):
            if isinstance(part, exp.EQ | exp.NullSafeEQ) and likeness != "cast":
                yield Equality(part.left, part.right, isinstance(part, exp.NullSafeEQ), likeness == "same")


@dataclass(frozen=True, slots=True, eq=False)
class Scalar:
    """Each row of `child` with the single value of an uncorrelated subquery; NULL if the subquery has no row."""

    child: Relation
    subquery: Relation
    name: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.child.columns, self.name)

    @property
    def children(self) -> tuple[Relation, ...]:
        return (self.child, self.subquery)


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate(_Unary):
    """GROUP BY; without keys there is always exactly one row."""

    keys: tuple[Item, ...]
    values: tuple[Item, ...]
    """Aggregate functions, one per item."""
    loose: bool = False
    """A key may be a float: 0.0 and -0.0 are one group, but some functions return different results for them."""

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(item.name for item in (*self.keys, *self.values))


@dataclass(frozen=True, slots=True, eq=False)
class Sessions(_Unary):
    """GROUP BY with session_window(): the sessions of all rows with the same `keys`, and a row for each. Which rows are one session depends
    on the others with these keys. Rows without a time are in none."""

    keys: tuple[Item, ...]
    """Of GROUP BY, without the session."""
    session: Item
    """The column with start and end, and session_window() over the columns below."""
    values: tuple[Item, ...]
    loose: bool = False
    """A key may be a float, as in `Aggregate`."""

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(item.name for item in (*self.keys, self.session, *self.values))


@dataclass(frozen=True, slots=True, eq=False)
class Pivot(Project):
    """PIVOT: the columns of an `Aggregate` with a value for each case and function."""

    by: str
    """The column whose values become columns."""
    cases: tuple[exp.Expr, ...]
    """Those values."""
    functions: tuple[exp.Expr, ...]
    """Aggregate functions over the columns below the aggregate."""
    results: tuple[str, ...]
    """The names of the columns: for each case one for each function."""

    @property
    def used(self) -> tuple[str, ...]:
        """The columns below the aggregate that are not keys."""
        return tuple(dict.fromkeys((*(found.name for one in self.functions for found in one.find_all(exp.Column)), self.by)))


@dataclass(frozen=True, slots=True, eq=False)
class Window(_Unary):
    """The rows of `child`, with window functions as further columns."""

    values: tuple[Item, ...]
    loose: bool = False
    """A column by which all windows partition may be a float, see `Aggregate`."""

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.child.columns, *(item.name for item in self.values))


@dataclass(frozen=True, slots=True, eq=False)
class Explode(_Unary):
    """LATERAL VIEW of a generator: each row of `child` with every row that the generator makes from it."""

    generator: exp.Expr
    names: tuple[str, ...]
    outer: bool

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.child.columns, *self.names)


@dataclass(frozen=True, slots=True, eq=False)
class Unpivot(Explode):
    """UNPIVOT: for each row a row for each of some columns, with its label and its value. The generator has these columns as arguments;
    `names` are those of label and value, and `outer` is INCLUDE NULLS."""

    labels: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.kept, *self.names)

    @property
    def kept(self) -> tuple[str, ...]:
        """The columns that remain."""
        gone = names_in(self.generator)
        return tuple(name for name in self.child.columns if name not in gone)


@dataclass(frozen=True, slots=True, eq=False)
class TimeWindow(Explode):
    """window(): each row with every window of time that it is in. The generator is the call."""


@dataclass(frozen=True, slots=True, eq=False)
class Recursion(Explode):
    """WITH RECURSIVE over constants: the one row of `child` with every row of the recursion. The generator is the clause, with a single
    query and its columns."""


@dataclass(frozen=True, slots=True, eq=False)
class Union:
    """UNION ALL, by position."""

    parts: tuple[Relation, ...]
    columns: tuple[str, ...]
    alike: bool = True
    """The parts have the same types. If not, Spark casts them, and a part alone has other values than in the union."""

    @property
    def children(self) -> tuple[Relation, ...]:
        return self.parts


@dataclass(frozen=True, slots=True, eq=False)
class Distinct(_Unary):
    """SELECT DISTINCT."""

    loose: bool = False
    """As in `Aggregate`."""


@dataclass(frozen=True, slots=True, eq=False)
class SetOperation:
    """INTERSECT and EXCEPT, by position. NULL equals NULL."""

    left: Relation
    right: Relation
    kind: Literal["intersect", "except"]
    all: bool
    columns: tuple[str, ...]
    alike: bool = True
    """As in `Union`."""
    loose: bool = False
    """As in `Aggregate`: 0.0 of one side is -0.0 of the other."""

    @property
    def children(self) -> tuple[Relation, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True, eq=False)
class Limit(_Unary):
    """ORDER BY with LIMIT or OFFSET."""

    order: tuple[exp.Expr, ...]
    limit: exp.Expr | None
    offset: exp.Expr | None


Relation = (
    Scan
    | Ref
    | OneRow
    | Project
    | Filter
    | Join
    | Scalar
    | Aggregate
    | Sessions
    | Window
    | Explode
    | Union
    | Distinct
    | SetOperation
    | Limit
)


def with_children(relation: Relation, children: tuple[Relation, ...]) -> Relation:
    """The same operator over other children; the operator itself if they are the same."""
    if all(one is other for one, other in zip(relation.children, children, strict=True)):
        return relation
    if isinstance(relation, Union):
        return replace(relation, parts=children)
    if isinstance(relation, Join | SetOperation):
        return replace(relation, left=children[0], right=children[1])
    if isinstance(relation, Scalar):
        return replace(relation, child=children[0], subquery=children[1])
    return replace(relation, child=children[0])  # type: ignore[arg-type]


def with_part(relation: Relation, old: Relation, new: Relation) -> Relation:
    """The relation with another one in place of a part of it."""
    if relation is old:
        return new
    return with_children(relation, tuple(with_part(child, old, new) for child in relation.children))


def is_loose(relation: Relation) -> bool:
    """Whether it takes rows for equal that some functions of a float distinguish."""
    return isinstance(relation, Aggregate | Sessions | Distinct | Window | SetOperation) and relation.loose


def bottom_of(relation: Relation) -> Relation:
    """What is below the projections and filters at the top."""
    while isinstance(relation, Project | Filter):
        relation = relation.child
    return relation


def has_one_row(relation: Relation) -> bool:
    """Whether it has at most one row, whatever is in its tables."""
    if isinstance(relation, Aggregate):
        return not relation.keys
    if isinstance(relation, Join):
        return relation.kind in ("inner", "left") and all(has_one_row(side) for side in relation.children)
    if isinstance(relation, Scalar | Filter) or type(relation) is Project:
        return has_one_row(relation.child)
    return isinstance(relation, OneRow)


def walk(relation: Relation) -> Iterator[Relation]:
    """All nodes, parents first."""
    yield relation
    for child in relation.children:
        yield from walk(child)


def map_scans(relation: Relation, change: Callable[[Scan], Relation]) -> Relation:
    """The same tree with other scans."""
    if isinstance(relation, Scan):
        return change(relation)
    return with_children(relation, tuple(map_scans(child, change) for child in relation.children))


def at(relation: Relation, version: Version, changed: frozenset[int]) -> Relation:
    """The relation over another version of the tables that changed; other tables have only one version.

    >>> from mvbuild.incremental.samples import formula, shape
    >>> joined = shape("SELECT id, country FROM {orders} JOIN {customers} USING (customer_id)").root
    >>> formula(at(joined, "old", frozenset({0})))
    'inner join[customer_id = customer_id](orders.old, customers)'
    """
    return map_scans(relation, lambda scan: replace(scan, version=version) if scan.leaf in changed else scan)


def leaves(relation: Relation) -> frozenset[int]:
    """The numbers of the tables that it reads."""
    return frozenset(node.leaf for node in walk(relation) if isinstance(node, Scan))


def column(name: str) -> exp.Expr:
    return exp.column(name, quoted=True)


def names_in(expression: exp.Expr | None) -> frozenset[str]:
    """The columns that an expression reads."""
    if isinstance(expression, exp.Column):
        return frozenset((expression.name,))
    return frozenset(found.name for found in expression.find_all(exp.Column)) if expression is not None else frozenset()


def conjuncts(expression: exp.Expr | None) -> tuple[exp.Expr, ...]:
    """The parts of a conjunction.

    >>> [part.sql() for part in conjuncts(exp.condition("a > 1 AND b = 2 AND c"))]
    ['a > 1', 'b = 2', 'c']
    """
    if expression is None:
        return ()
    found = expression.unnest()
    return (*conjuncts(found.left), *conjuncts(found.right)) if isinstance(found, exp.And) else (found,)


def conjunction(parts: Sequence[exp.Expr]) -> exp.Expr | None:
    return exp.and_(*parts, copy=True) if parts else None


def substituted(expression: exp.Expr, values: Mapping[str, exp.Expr]) -> exp.Expr:
    """The expression with columns replaced by other expressions.

    >>> substituted(exp.condition("total / n"), {"total": exp.condition("SUM(x)"), "n": exp.condition("COUNT(x)")}).sql()
    '(SUM(x)) / (COUNT(x))'
    """

    def change(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.name in values:
            value = values[node.name].copy()
            return value if isinstance(value, exp.Column) else exp.paren(value, copy=False)
        return node

    return expression.transform(change)


def projected(child: Relation, names: tuple[str, ...] | list[str]) -> Relation:
    """Some of its columns."""
    return child if tuple(names) == child.columns else Project(child, tuple(Item(name, column(name)) for name in names))


def with_items(child: Relation, items: Sequence[Item]) -> Relation:
    """All of its columns, and more that are computed from them."""
    return Project(child, (*(Item(name, column(name)) for name in child.columns), *items)) if items else child


def renamed(child: Relation, pairs: tuple[tuple[str, str], ...]) -> Project:
    """(new name, old name) of the columns to keep."""
    return Project(child, tuple(Item(new, column(old)) for new, old in pairs))


def union(parts: tuple[Relation, ...] | list[Relation]) -> Relation:
    """UNION ALL of one relation or more; the columns are named as in the first."""
    return parts[0] if len(parts) == 1 else Union(tuple(parts), parts[0].columns)
