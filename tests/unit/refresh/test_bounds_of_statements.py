"""A large table is read within the bounds of the rows that it is joined with, also when these are computed by a statement before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from sqlglot import exp

from mvbuild.incremental.algebra import Filter, Join, Ref, Relation, Scan, column, renamed, union, with_children
from mvbuild.incremental.bounds import Bounds, bounds_of_range
from mvbuild.incremental.delta import Cte
from mvbuild.ports.changes import ValueRange
from mvbuild.refresh.inputs import RefreshInputs
from mvbuild.refresh.near_rows import NearRows

NOTHING: Any = None


class Inputs(RefreshInputs):
    """Tables have their numbers as names, and no rows are read in this process."""

    @property
    def near(self) -> Any:
        return NearRows(NOTHING, [SimpleNamespace(leaf=SimpleNamespace(travel="a version"))] * 2, NOTHING)  # type: ignore[list-item]

    def source(self, read: Any) -> str:
        return self.relations[read.name] if hasattr(read, "name") else f"table_{read.leaf}_{read.version}"


def between(low: int, high: int) -> Bounds:
    found = bounds_of_range(ValueRange(type="long", low=low, high=high, has_null=False))
    assert found is not None
    return found


def joined(base: Relation) -> str:
    """The SQL of a join of a large table with a statement that computes the base."""
    inputs = Inputs(session=NOTHING, node="model.shop.m", choice=NOTHING, place=NOTHING)
    inputs.known.update({("0 minus", "k"): between(3, 5), ("0 plus", "k"): between(7, 9)})
    cte = Cte("changed_0", base, at_once=True)
    inputs.inline(cte)
    large = Scan(1, (("k_1", "k"),))
    return inputs.sql(Join(cte.ref, large, "inner", exp.EQ(this=column(base.columns[0]), expression=column("k_1"))))


def change(version: Any) -> Relation:
    return Filter(Scan(0, (("k_0", "k"),), version), exp.condition("`k_0` > 0", dialect="spark"))


def test_of_one_table() -> None:
    assert "table_1_new AS s1" in joined(change("minus"))
    assert "`k_1` BETWEEN CAST('3' AS BIGINT) AND CAST('5' AS BIGINT)" in joined(change("minus"))


def test_of_several_terms() -> None:
    sql = joined(union([change("minus"), change("plus")]))
    assert "`k_1` BETWEEN LEAST(CAST('3' AS BIGINT), CAST('7' AS BIGINT)) AND GREATEST(" in sql


def test_there_are_none_of_rows_whose_bounds_are_unknown() -> None:
    assert "BETWEEN" not in joined(change("old"))


class NoRowsNear(Inputs):
    """Table 1 has no rows within bounds."""

    @property
    def near(self) -> Any:
        return SimpleNamespace(of=self._near)

    def _near(self, relation: Relation) -> Relation:
        if isinstance(relation, Filter) and isinstance(relation.child, Scan) and relation.child.leaf == 1:
            self.relations["near"] = "near"
            self.empty.names.add("near")
            return Filter(renamed(Ref("near", ("k",)), relation.child.sources), relation.predicate)
        return with_children(relation, tuple(map(self._near, relation.children)))


def test_a_statement_without_rows_is_not_run_and_its_terms_are_left_out() -> None:
    inputs = NoRowsNear(session=NOTHING, node="model.shop.m", choice=NOTHING, place=NOTHING)
    inputs.known.update({("keys", "k"): between(3, 5)})
    inputs.relations["keys"] = "the keys"
    keys, table = Ref("keys", ("k",)), Scan(1, (("k_1", "k"),))
    now = Cte("read_0", Join(table, keys, "semi", exp.EQ(this=column("k_1"), expression=column("k"))), at_once=True)
    inputs.keep(now)  # no session, so a statement would fail
    before = union([now.ref, Scan(0, (("k_1", "k"),), "minus")])
    assert "near" not in inputs.sql(before)
    assert "table_0_minus" in inputs.sql(before)
    assert "near" in inputs.sql(now.ref)
