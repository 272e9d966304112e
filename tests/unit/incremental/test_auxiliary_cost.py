"""`auxiliary_views: auto`: views are kept for small changes of large tables, and not where a full refresh is as fast."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mvbuild.freshness.observed import Leaf, Pin
from mvbuild.incremental import auxiliary_cost, auxiliary_views
from mvbuild.incremental.auxiliary_cost import MOST, cost_of_views
from mvbuild.incremental.choose import Question
from mvbuild.incremental.cost import full_cost
from mvbuild.incremental.cuts import divided, divisions, reduced
from mvbuild.incremental.division import Division
from mvbuild.incremental.hypothetical import guessed_types
from mvbuild.incremental.inputs import Input, Inputs
from mvbuild.incremental.samples import TABLES, TYPES, shape
from mvbuild.incremental.shape import Shape
from mvbuild.incremental.sizes import Sizes, StorageSize
from mvbuild.ports.changes import TableChange
from mvbuild.ports.states import TableState
from mvbuild.source import MappedText, SourceFile
from unit.incremental.sized_tables import READ, deleted, rewritten, sized
from unit.worlds import Shop, base_table

RATIO = "SELECT customer_id, sum(amount) / count(*) AS r FROM {orders} GROUP BY customer_id"
NEWEST = "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY customer_id ORDER BY country) AS r FROM {customers}) WHERE r = 1"
ABOVE_MEAN = (
    "SELECT sum(amount) AS total FROM {orders} JOIN {customers} USING (customer_id) WHERE country = 'no' "
    "AND amount > (SELECT avg(i.amount) FROM (SELECT * FROM {orders}) AS i WHERE i.customer_id = customers.customer_id)"
)
BY_COUNTRY = f"SELECT country, sum(amount) AS s FROM {{orders}} JOIN ({NEWEST}) AS c USING (customer_id) GROUP BY country"
TOP = (
    "WITH s AS (SELECT customer_id, sum(amount) AS total FROM {orders} WHERE amount > 100 GROUP BY customer_id) "
    "SELECT customer_id, total FROM s WHERE total = (SELECT max(total) FROM s)"
)


def shares(
    root: Path,
    query: str,
    changed: str,
    rows: int,
    deletes: int,
    divide: Callable[[Shape, int], Division | None] = divided,
    change: Callable[[TableState, int], TableChange] = deleted,
) -> float | None:
    """The cost with auxiliary views as a share of a full refresh; None if it cannot be followed with them."""
    catalog = Shop(root).catalog
    tables = [sized(base_table(catalog, f"raw.{n}"), of, types) for n, of, types in zip(TABLES, (rows, rows // 50), TYPES, strict=True)]
    whole = shape(query)
    storage = sized(base_table(catalog, "main.mv"), rows // 100, guessed_types(whole))
    inputs = [
        Input(leaf=Leaf(node=t.identifier.name), pin=Pin(table=t, snapshot_id=t.current_snapshot_id or 0, ref=None, moves=True), old=1)
        for t in tables
    ]
    given = Inputs(text=MappedText.of(SourceFile(Path("mv.sql"), query)), inputs=tuple(inputs))
    leaf = TABLES.index(changed)
    changes = {leaf: change(tables[leaf], deletes)}
    node: Any = SimpleNamespace(model=SimpleNamespace(config=SimpleNamespace(float_tolerance=None)))
    nothing: Any = None
    asked = Question(world=nothing, node=node, reasons=(), pins={}, has_children=False, same_layout=True, policy="auto", read=READ)
    division = divide(whole, len(TABLES))
    assert division is not None
    cost = cost_of_views(asked, storage, given, division, [None] * len(division.cuts), changes)
    full = full_cost(whole.root, Sizes(inputs=given.inputs, changes=changes, storage=StorageSize(table=storage), read=READ))
    return cost.share_of(full) if cost is not None else None


@pytest.mark.parametrize(("query", "changed"), [(RATIO, "orders"), (BY_COUNTRY, "orders")])
def test_small_changes_of_large_tables_are_followed(tmp_path: Path, query: str, changed: str) -> None:
    share = shares(tmp_path, query, changed, rows=50_000_000, deletes=1_000)
    assert share is not None
    assert share < 0.8


def test_a_query_over_small_views_is_computed_where_that_is_cheapest(tmp_path: Path) -> None:
    """Its views show what changed; everything above them may be computed again."""
    share = shares(
        tmp_path, TOP, "orders", rows=50_000_000, deletes=1_000, divide=lambda shape, leaves: next(iter(divisions(shape, leaves)))
    )
    assert share is not None
    assert share < 0.7


def test_rows_that_a_rewritten_file_still_has_change_no_view(tmp_path: Path) -> None:
    """The view is not expected to change in as many rows as were written again."""
    moved = shares(tmp_path, RATIO, "orders", rows=50_000_000, deletes=20_000)
    again = shares(tmp_path, RATIO, "orders", rows=50_000_000, deletes=20_000, change=rewritten)
    assert moved is not None
    assert again is not None
    assert again < 1.5 * moved


@pytest.mark.parametrize(("query", "changed"), [(RATIO, "orders"), (BY_COUNTRY, "customers")])
def test_small_tables_are_refreshed_in_full(tmp_path: Path, query: str, changed: str) -> None:
    share = shares(tmp_path, query, changed, rows=2_000, deletes=10)
    assert share is None or share > 1


def test_groups_that_a_condition_restricts_are_cheaper_with_the_rows_that_need_them(tmp_path: Path) -> None:
    """Nearly all groups and orders are of other customers. Without such views, all of them are searched for the customers that changed."""
    share = shares(tmp_path, ABOVE_MEAN, "orders", rows=50_000_000, deletes=1_000, divide=reduced)
    assert share is not None
    assert share < shares(tmp_path, ABOVE_MEAN, "orders", rows=50_000_000, deletes=1_000) / 2


@pytest.mark.parametrize(("most", "is_kept"), [(MOST, False), (1, True)])
def test_views_that_would_copy_much_of_the_tables_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: float, is_kept: bool
) -> None:
    monkeypatch.setattr(auxiliary_cost, "MOST", most)
    query = ABOVE_MEAN.replace("country = 'no'", "country <> 'no'")
    assert (shares(tmp_path, query, "orders", rows=50_000_000, deletes=1_000, divide=reduced) is not None) == is_kept


def asked(policy: str = "auto", views: str = "auto") -> Any:
    config = SimpleNamespace(auxiliary_views=views)
    node = SimpleNamespace(storage="mv", model=SimpleNamespace(config=config))
    return SimpleNamespace(policy=policy, world=SimpleNamespace(observed=SimpleNamespace(table=lambda _: "a table")), node=node)


def a_plan(share: float | None, *, is_followed: bool) -> Any:
    return SimpleNamespace(views=(), division=share, is_followed=is_followed)


def chosen(
    monkeypatch: pytest.MonkeyPatch, question: Any, plans: list[Any], strategy: str = "full", of_strategy: float = 0.15, query: str = RATIO
) -> Any:
    """The share of the plan that was chosen. `of_strategy`: the share of the refresh without views."""
    monkeypatch.setattr(
        auxiliary_views, "cost_of_views", lambda _q, _s, _g, division, *_: division and SimpleNamespace(share_of=lambda _: division)
    )
    without = SimpleNamespace(share_of=lambda _: of_strategy)
    found: Any = SimpleNamespace(is_incremental=strategy != "full", expected=without, full="its cost", changes={0: "a change"})
    nothing: Any = None
    plan = auxiliary_views._chosen(question, found, shape(query), nothing, plans)
    return plan.division if plan is not None else None


@pytest.mark.parametrize(
    ("strategy", "kept", "share", "wanted"),
    [
        ("full", False, 0.1, True),
        ("full", False, 2.0, False),
        ("full", True, 0.1, True),
        ("full", True, 2.0, False),
        # Followed without views: none are made. Those that are there stay as long as they are cheaper than a full refresh.
        ("merge", False, 0.1, False),
        ("merge", True, 0.1, True),
        ("merge", True, 2.0, False),
        ("full", True, None, False),
    ],
)
def test_when_auto_keeps_views(monkeypatch: pytest.MonkeyPatch, strategy: str, kept: bool, share: float | None, wanted: bool) -> None:
    found = chosen(monkeypatch, asked(), [a_plan(share, is_followed=kept)], strategy)
    assert found == (share if wanted else None)


@pytest.mark.parametrize(
    ("kept", "shares_of_both", "wanted"),
    [
        # The cheapest; others are computed only if they cost much less, and if much is saved.
        (None, (0.3, 0.2), 0.2),
        (None, (0.2, 0.3), 0.2),
        (0, (0.3, 0.2), 0.3),
        (1, (0.2, 0.3), 0.3),
        (0, (0.5, 0.2), 0.2),
        (0, (0.15, 0.01), 0.15),
        (0, (2.0, 0.2), 0.2),
        (None, (2.0, None), None),
    ],
)
def test_which_views_auto_keeps(
    monkeypatch: pytest.MonkeyPatch, kept: int | None, shares_of_both: tuple[float | None, ...], wanted: float | None
) -> None:
    plans = [a_plan(share, is_followed=at == kept) for at, share in enumerate(shares_of_both)]
    assert chosen(monkeypatch, asked(), plans) == wanted


@pytest.mark.parametrize(
    ("of_strategy", "share", "wanted"), [(0.5, 0.29, True), (0.5, 0.31, False), (0.24, 0.01, False), (1.5, 0.5, True), (1.5, 0.9, False)]
)
def test_views_that_make_a_refresh_much_cheaper_are_made(
    monkeypatch: pytest.MonkeyPatch, of_strategy: float, share: float, wanted: bool
) -> None:
    found = chosen(monkeypatch, asked(), [a_plan(share, is_followed=False)], "merge", of_strategy)
    assert found == (share if wanted else None)


@pytest.mark.parametrize(("kept", "wanted"), [(None, 0.2), (0, 0.1), (1, 0.2)])
def test_always_keeps_most_views(monkeypatch: pytest.MonkeyPatch, kept: int | None, wanted: float) -> None:
    plans = [a_plan(share, is_followed=at == kept) for at, share in enumerate((0.1, 0.2))]
    assert chosen(monkeypatch, asked(views="always"), plans) == wanted


@pytest.mark.parametrize(("query", "wanted"), [("SELECT sum(id) AS s FROM {orders}", True), (BY_COUNTRY, True), (RATIO, False)])
def test_under_incremental_auto_keeps_views_where_deletes_need_them(monkeypatch: pytest.MonkeyPatch, query: str, wanted: bool) -> None:
    found = chosen(monkeypatch, asked("incremental"), [a_plan(2.0, is_followed=False), a_plan(0.1, is_followed=False)], query=query)
    assert found == (2.0 if wanted else None)


@pytest.mark.parametrize("is_followed", [True, False])
def test_a_view_is_compared_with_its_old_rows_only_for_an_mv_that_follows_its_change(
    monkeypatch: pytest.MonkeyPatch, is_followed: bool
) -> None:
    """Everything computed, and then only the difference written, costs more than a full refresh if the difference is not used."""
    questions: list[Question] = []

    def cheapest(question: Question, *_: object, **__: object) -> Any:
        questions.append(question)
        return SimpleNamespace(is_incremental=False)

    nothing: Any = None
    doubted, computed, since, changes = False, "from", "inputs", {0: "a change"}
    for name, value in {"_is_doubted": doubted, "computed_from": computed, "definition_of": "", "_inputs_since": since}.items():
        monkeypatch.setattr(auxiliary_views, name, lambda *_, value=value: value)
    monkeypatch.setattr(auxiliary_views, "changes_of", lambda *_: changes)
    monkeypatch.setattr(auxiliary_views, "cheapest_of", cheapest)
    question = Question(world=nothing, node=nothing, reasons=(), pins={}, has_children=True, same_layout=True, policy="auto", read=READ)
    cut, table = SimpleNamespace(shape=None), SimpleNamespace(current_snapshot_id=1)
    auxiliary_views.choice_of_view(question, nothing, cut, table, {}, is_followed=is_followed)  # type: ignore[arg-type]
    assert [one.has_children for one in questions] == [is_followed]
