"""Rewrite -> Difference: the positions of the storage's rows to remove, and the rows to add, whatever strategy found them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.incremental.algebra import (
    Filter,
    Item,
    Join,
    Project,
    Ref,
    Relation,
    SetOperation,
    column,
    conjunction,
)
from mvbuild.incremental.delta import Cte
from mvbuild.incremental.emit import null_safe
from mvbuild.incremental.first_rows import MISMATCH, FirstRows
from mvbuild.incremental.restrict import Key, restricted
from mvbuild.incremental.rewrite import SOURCE, TARGET, Append, Bag, Exchange, OverwritePartitions, Rewrite, Top, Upsert
from mvbuild.incremental.sizes import StorageSize
from mvbuild.incremental.stored_rows import Stored, not_null, paired, same_value, values_of
from mvbuild.incremental.zeros import has_zeros


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """`ctes` are computed in order. Each row of `gone` is a position in the storage; `came` has the columns of the storage, in order."""

    ctes: tuple[Cte, ...]
    gone: Relation | None
    came: Relation | None
    partitions: OverwritePartitions | None = None
    """All rows of these partitions are removed."""
    removes: Cte | None = None
    """`gone` must have as many rows as this; otherwise the refresh fails, see `mismatch`."""
    mismatch: tuple[str, str] = ("incremental-failed", "the storage does not have the rows to remove")
    """Code and message of that failure."""
    is_whole: bool = False
    """`came` has all rows that the storage will have: others are removed, and those that it has already stay."""

    @property
    def is_empty(self) -> bool:
        """Whether no row is removed or added, whatever the tables have."""
        return self.gone is None and self.came is None and self.partitions is None

    @property
    def relations(self) -> list[Relation]:
        """Everything that is computed, in order."""
        return [*(cte.relation for cte in self.ctes), *(side for side in (self.gone, self.came) if side is not None)]

    @property
    def together(self) -> Cte | None:
        """The statement that has both the removed and the added rows, which a condition distinguishes."""
        names = {_filtered_name(side) for side in (self.gone, self.came)}
        return None if self.removes is not None or len(names) > 1 else next((cte for cte in self.ctes if cte.name in names), None)

    def with_stored(self, values: Sequence[str]) -> Difference:
        """The same, where the statement of an Upsert also has the values of the storage's rows. `values`: their names."""
        cte = self.together
        if cte is None or not isinstance(cte.relation, Filter) or not isinstance(cte.relation.child, Project):
            return self
        rows = replace(cte.relation.child, items=(*cte.relation.child.items, *(Item(name, column(name)) for name in values)))
        wider = replace(cte, relation=replace(cte.relation, child=rows))
        return replace(self, ctes=tuple(wider if one is cte else one for one in self.ctes))


def _filtered_name(relation: Relation | None) -> str | None:
    below = relation.child.child if isinstance(relation, Project) and isinstance(relation.child, Filter) else None
    return below.name if isinstance(below, Ref) else None


def condition_of(side: Relation) -> exp.Expr:
    """The condition of a side of such a statement."""
    assert isinstance(side, Project)
    assert isinstance(side.child, Filter)
    return side.child.predicate


def difference(rewrite: Rewrite, stored: Stored) -> Difference:
    """The positions to remove and the rows to add.

    >>> from mvbuild.incremental.samples import case, formula
    >>> from mvbuild.incremental.strategies import append
    >>> found = difference(append.rewrite(case("SELECT id FROM {orders} WHERE amount > 0")), Stored(types={"id": "long"}))
    >>> found.gone, formula(found.came)
    (None, 'filter[amount > 0](orders.plus)')
    """
    write = rewrite.write
    if isinstance(write, Append):
        return Difference(ctes=rewrite.ctes, gone=None, came=values_of(write.rows, rewrite.outputs, "came"))
    if isinstance(write, OverwritePartitions):
        return Difference(ctes=rewrite.ctes, gone=None, came=values_of(write.rows, rewrite.outputs, "came"), partitions=write)
    if isinstance(write, Upsert):
        return _upsert(rewrite, write, stored)
    if isinstance(write, Exchange):
        return _exchange(rewrite, write, stored)
    if isinstance(write, Top):
        return _top(rewrite, write, stored)
    assert isinstance(write, Bag), write
    return _bag(rewrite, write, stored)


def by_value(rewrite: Rewrite, held: StorageSize) -> Difference | None:
    """The same difference where no relation reads the storage, because this process finds its rows by their values. For a bag, the rows to
    remove may be among those to add as well. None for other ways to write, and if the storage is too large.

    >>> from types import SimpleNamespace
    >>> from mvbuild.incremental.samples import case, formula
    >>> from mvbuild.incremental.strategies import bag
    >>> small = SimpleNamespace(is_searched_here=True)
    >>> found = by_value(bag.rewrite(case("SELECT id FROM {orders} WHERE amount > 0", removed=True)), small)
    >>> formula(found.gone), formula(found.came)
    ('filter[amount > 0](orders.minus)', 'filter[amount > 0](orders.plus)')
    """
    write = rewrite.write
    if isinstance(write, Exchange) and write.keys is None and held.is_read_here:
        return Difference(ctes=rewrite.ctes, gone=None, came=values_of(write.rows, rewrite.outputs, "value"), is_whole=True)
    if not isinstance(write, Bag) or not held.is_searched_here:
        return None
    gone, came = (values_of(side, rewrite.outputs, "value") if side is not None else None for side in (write.minus, write.plus))
    return Difference(ctes=rewrite.ctes, gone=gone, came=came)


def _upsert(rewrite: Rewrite, write: Upsert, stored: Stored) -> Difference:
    delta = Cte("delta", write.delta)
    names = dict(zip(stored.columns, stored.values, strict=True))
    key_columns = dict(write.keys)
    on = null_safe([(names[own], theirs) for own, theirs in write.keys])
    held: Relation = stored.scan
    if stored.is_large and write.keys:
        held = restricted(held, [Key(column(names[own]), theirs) for own, theirs in write.keys], delta.ref)
    both = Join(delta.ref, held, "left", on)
    matched = not_null(stored.at[0])

    def resolved(expression: exp.Expr) -> exp.Expr:
        def change(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Column) and node.table:
                return column(names[node.name] if node.table == TARGET else node.name)
            return node

        assert SOURCE != TARGET
        return expression.transform(change)

    values = []
    same: list[exp.Expr] = []
    for at, name in enumerate(stored.columns):
        inserted = resolved(write.inserts[name])
        if name in key_columns:
            # The stored value, because equal values can differ in their text.
            updated: exp.Expr = column(names[name])
        else:
            updated = resolved(write.updates[name])
            same.extend(same_value(column(names[name]), updated, stored.types[name]))
        values.append(Item(f"came_{at}v", exp.Case(ifs=[exp.If(this=matched.copy(), true=updated)], default=inserted)))
    # A row that may not be updated is removed without a new one, and then the refresh fails: `expected` has too few rows.
    only_if = exp.Not(this=exp.paren(write.only_if)) if write.only_if is not None else exp.false()
    delete = resolved(write.delete_when if write.delete_when is not None else only_if)
    insert = resolved(write.insert_when) if write.insert_when is not None else exp.true()
    lives = exp.Case(ifs=[exp.If(this=matched.copy(), true=exp.Not(this=exp.paren(delete.copy(), copy=False)))], default=insert)
    unchanged = conjunction(same)
    changes = exp.Not(this=exp.paren(unchanged, copy=False)) if unchanged is not None else exp.false()
    counts = exp.Case(
        ifs=[exp.If(this=matched.copy(), true=exp.or_(exp.paren(delete, copy=False), changes, copy=False))], default=insert.copy()
    )
    rows = Project(
        both,
        (*(Item(name, column(name)) for name in stored.at), Item("lives", lives), Item("counts", counts), *values),
    )
    merged = Cte("merged", Filter(rows, column("counts")))
    gone = Project(Filter(merged.ref, matched), tuple(Item(name, column(name)) for name in stored.at))
    came = Project(Filter(merged.ref, column("lives")), tuple(Item(i.name, column(i.name)) for i in values))
    found = Difference(ctes=(*rewrite.ctes, delta, merged), gone=gone, came=came)
    if write.only_if is None:
        return found
    expected = Cte("expected", came)
    return replace(found, ctes=(*found.ctes, expected), removes=expected, mismatch=EXTREME_REMOVED)


EXTREME_REMOVED = ("extreme-removed", "the row with the min or max may have been removed")
_ROWS = "rows"
"""What an `Exchange` computes."""


def _exchange(rewrite: Rewrite, write: Exchange, stored: Stored) -> Difference:
    rows = Cte(_ROWS, values_of(write.rows, rewrite.outputs, "came"))
    held: Relation = stored.scan
    if write.keys is not None:
        names = dict(zip(stored.columns, stored.values, strict=True))
        held = restricted(held, [Key(column(names[own]), theirs) for own, theirs in write.columns], write.keys.ref)
    came = rows.ref.columns
    both = paired(stored, (held, stored.values, "stored_copy"), (rows.ref, came, "came_copy"), "full")
    kept = (*stored.at, "came_copy", *came)
    is_other = exp.or_(exp.Not(this=not_null("came_copy")), exp.Not(this=not_null(stored.at[0])))
    cte = Cte("difference", Project(Filter(both, is_other), tuple(Item(name, column(name)) for name in kept)))
    gone = Project(Filter(cte.ref, not_null(stored.at[0])), tuple(Item(name, column(name)) for name in stored.at))
    new = Project(Filter(cte.ref, not_null("came_copy")), tuple(Item(name, column(name)) for name in came))
    return Difference(ctes=(*rewrite.ctes, rows, cte), gone=gone, came=new)


def _bag(rewrite: Rewrite, write: Bag, stored: Stored) -> Difference:
    ctes, plus, minus = _changes(rewrite, write, stored)
    gone = None
    if minus is not None:
        went = minus.ref.columns
        held = restricted(stored.scan, [Key(column(own), name) for own, name in zip(stored.values, went, strict=True)], minus.ref)
        both = paired(stored, (held, stored.values, "stored_copy"), (minus.ref, went, "went_copy"), "inner")
        found = Project(both, tuple(Item(name, column(name)) for name in stored.at))
        positions = Cte("gone", found)
        ctes = (*ctes, positions)
        gone = positions.ref
    return Difference(ctes=ctes, gone=gone, came=plus.ref if plus else None, removes=minus)


def _top(rewrite: Rewrite, write: Top, stored: Stored) -> Difference:
    ctes, plus, minus = _changes(rewrite, write, stored)
    names = tuple(name for name, _ in rewrite.outputs)
    first = FirstRows(stored, plus, minus, write.order, names, write.count)
    ranked = first.ranked()
    outputs = tuple(zip(first.columns, stored.columns, strict=True))
    found = _exchange(replace(rewrite, ctes=(*ctes, ranked), outputs=outputs), Exchange(first.rows(ranked), None), stored)
    if minus is None:
        return found
    assert found.gone is not None
    expected = first.expected(found.gone, ranked, next(cte for cte in found.ctes if cte.name == _ROWS))
    return replace(found, ctes=(*found.ctes, expected), removes=expected, mismatch=MISMATCH)


def _changes(rewrite: Rewrite, write: Bag | Top, stored: Stored) -> tuple[tuple[Cte, ...], Cte | None, Cte | None]:
    """The rows that are added and those that are removed, without those on both sides; and the statements that have them."""
    ctes = list(rewrite.ctes)
    plus, minus = (
        Cte(name, values_of(side, rewrite.outputs, prefix)) if side is not None else None
        for name, prefix, side in (("plus", "came", write.plus), ("minus", "went", write.minus))
    )
    ctes.extend(cte for cte in (plus, minus) if cte is not None)
    if plus is not None and minus is not None:
        made = _net_with_zeros(stored, plus, minus) if any(map(has_zeros, stored.types.values())) else _net(plus, minus)
        ctes.extend(made)
        plus, minus = made[-2:]
    return tuple(ctes), plus, minus


def _net(plus: Cte, minus: Cte) -> tuple[Cte, ...]:
    def less(name: str, one: Cte, other: Cte) -> Cte:
        return Cte(name, SetOperation(one.ref, other.ref, "except", True, one.ref.columns))

    return less("net_plus", plus, minus), less("net_minus", minus, plus)


def _net_with_zeros(stored: Stored, plus: Cte, minus: Cte) -> tuple[Cte, ...]:
    """EXCEPT ALL would turn both zeros into one."""
    came, went = plus.ref.columns, minus.ref.columns
    both = paired(stored, (plus.ref, came, "came_copy"), (minus.ref, went, "went_copy"), "full")
    single = exp.or_(*(exp.Is(this=column(number), expression=exp.Null()) for number in ("came_copy", "went_copy")))
    kept = ("came_copy", *came, "went_copy", *went)
    cte = Cte("net", Project(Filter(both, single), tuple(Item(name, column(name)) for name in kept)))

    def side(name: str, number: str, columns: Sequence[str]) -> Cte:
        return Cte(name, Project(Filter(cte.ref, not_null(number)), tuple(Item(one, column(one)) for one in columns)))

    return cte, side("net_plus", "came_copy", came), side("net_minus", "went_copy", went)
