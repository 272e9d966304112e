"""Inner joins may be put in brackets in any way. Whatever else differs between two joins makes them other queries."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from mvbuild.equivalence.spark_proof import plan_difference

DIFFER = "Spark's plans differ"
A, B, C = "RelationV2[k#1, v#2] lake.a", "RelationV2[k#3, w#4] lake.b", "RelationV2[w#5, x#6] lake.c"


def difference(one: str, other: str) -> str:
    sections = (f"== Optimized Logical Plan ==\n{text}\n\n== Physical Plan ==\n{text}\n" for text in (one, other))
    return plan_difference(*sections, physical=False)


def left(outer: str, inner: str) -> str:
    """a with b, and both with c."""
    return f"{outer}\n:- {inner}\n:  :- {A}\n:  +- {B}\n+- {C}"


def right(outer: str, inner: str) -> str:
    """a with the join of b and c."""
    return f"{outer}\n:- {A}\n+- {inner}\n   :- {B}\n   +- {C}"


KEYS, VALUES, LESS = "(k#1 = k#3)", "(w#4 = w#5)", "(v#2 < x#6)"
LEFT = left(f"Join Inner, ({VALUES} AND {LESS})", f"Join Inner, {KEYS}")


@pytest.mark.parametrize(
    "other",
    [
        right(f"Join Inner, ({KEYS} AND {LESS})", f"Join Inner, {VALUES}"),
        right(f"Join Inner, (({KEYS} AND {LESS}) AND {VALUES})", "Join Inner"),
        left(f"Join Inner, (({KEYS} AND {LESS}) AND {VALUES})", "Join Cross"),
    ],
)
def test_brackets_around_inner_joins_do_not_count(other: str) -> None:
    assert difference(LEFT, other) == ""


def test_a_list_of_columns_between_two_joins_does_not_count() -> None:
    plans = (
        f"Join Inner, {VALUES}\n   :- {{}}\n   +- {C}".format(inner)
        for inner in (
            f"Join Inner, {KEYS}\n   :  :- {A}\n   :  +- {B}",
            f"Project [k#1, w#4]\n   :  +- Join Inner, {KEYS}\n   :     :- {A}\n   :     +- {B}",
        )
    )
    one, other = (f"Project [k#1, x#6]\n+- {plan}" for plan in plans)
    assert difference(one, other) == ""


@pytest.mark.parametrize(
    "other",
    [
        right(f"Join Inner, {KEYS}", f"Join Inner, {VALUES}"),  # without a condition
        right(f"Join Inner, ({KEYS} AND (v#2 > x#6))", f"Join Inner, {VALUES}"),
        right(f"Join Inner, ({KEYS} AND {LESS})", f"Join LeftOuter, {VALUES}"),
        right(f"Join LeftOuter, ({KEYS} AND {LESS})", f"Join Inner, {VALUES}"),
        left(f"Join LeftOuter, ({VALUES} AND {LESS})", f"Join Inner, {KEYS}"),
        left(f"Join Inner, ({VALUES} AND {LESS})", f"Join LeftOuter, {KEYS}"),
        left(f"Join Inner, ({VALUES} OR {LESS})", f"Join Inner, {KEYS}"),
        LEFT.replace("lake.b", "lake.d"),
    ],
)
def test_another_join_is_another_query(other: str) -> None:
    assert difference(LEFT, other) == DIFFER


@pytest.mark.parametrize("kind", ["LeftOuter", "FullOuter", "LeftSemi", "LeftAnti"])
def test_brackets_around_other_joins_count(kind: str) -> None:
    assert (
        difference(left(f"Join {kind}, {VALUES}", f"Join Inner, {KEYS}"), right(f"Join Inner, {KEYS}", f"Join {kind}, {VALUES}")) == DIFFER
    )
    assert (
        difference(left(f"Join Inner, {VALUES}", f"Join {kind}, {KEYS}"), right(f"Join {kind}, {KEYS}", f"Join Inner, {VALUES}")) == DIFFER
    )


def test_what_is_computed_between_two_joins_stays_between_them() -> None:
    computed = f"Join Inner, (w#4 = w#5)\n:- Project [k#1, (v#2 + 1) AS w#4]\n:  +- Join Inner, {KEYS}\n:     :- {A}\n:     +- {B}\n+- {C}"
    other = computed.replace("(v#2 + 1)", "(v#2 + 2)")
    assert difference(computed, computed) == ""
    assert difference(computed, other) == DIFFER


def test_an_id_in_two_relations_says_nothing_about_a_condition() -> None:
    """In the first plan the column of the last table is compared, in the second one that of the first table."""
    again = A.replace("lake.a", "lake.a VERSION AS OF '1'")
    nested = f"Join Inner\n:- {A}\n+- Join Inner, (w#4 = v#2)\n   :- {B}\n   +- {again}"
    flat = f"Join Inner\n:- Join Inner, (w#4 = v#2)\n:  :- {A}\n:  +- {B}\n+- {again}"
    assert difference(nested, flat) == DIFFER


# Whenever two plans are called equal, they return the same rows.


@dataclass(frozen=True)
class Join:
    kind: str
    conditions: tuple[tuple[int, str, int], ...]
    left: Join | int
    right: Join | int


Row = dict[int, int | None]
RELATIONS = 4


def _columns(relation: int) -> tuple[int, int]:
    return 10 + 2 * relation, 11 + 2 * relation


def _leaves(tree: Join | int) -> Iterator[int]:
    if isinstance(tree, int):
        yield tree
    else:
        yield from (*_leaves(tree.left), *_leaves(tree.right))


def _random_join(rng: random.Random, relations: list[int], conditions: set[tuple[int, str, int]], kinds: tuple[str, ...]) -> Join | int:
    """A join of the relations in any brackets. Each condition is at some join that has its columns."""
    if len(relations) == 1:
        return relations[0]
    known = {column for relation in relations for column in _columns(relation)}
    at = rng.randrange(1, len(relations))
    halves = relations[:at], relations[at:]
    mine = {c for c in conditions if {c[0], c[2]} <= known}
    below = {c for c in mine if any({c[0], c[2]} <= {x for r in half for x in _columns(r)} for half in halves) and rng.random() < 0.6}
    here = sorted(mine - below)
    rng.shuffle(here)
    return Join(rng.choice(kinds), tuple(here), *(_random_join(rng, half, below, kinds) for half in halves))


def _text(tree: Join | int, depth: int = 0) -> str:
    if isinstance(tree, int):
        first, second = _columns(tree)
        return f"RelationV2[a#{first}, b#{second}] lake.t{tree}"
    found = [f"(x#{one} {operator} y#{other})" for one, operator, other in tree.conditions]
    listed = f", {found[0] if len(found) == 1 else '(' + ' AND '.join(found) + ')'}" if found else ""
    below = [f"{'   ' * depth}{mark} {_text(child, depth + 1)}" for mark, child in ((":-", tree.left), ("+-", tree.right))]
    return "\n".join([f"Join {tree.kind}{listed}", *below])


def _rows(tree: Join | int, data: dict[int, list[Row]]) -> list[Row]:
    if isinstance(tree, int):
        return data[tree]
    left_rows, right_rows = _rows(tree.left, data), _rows(tree.right, data)
    empty: Row = {column: None for relation in _leaves(tree.right) for column in _columns(relation)}
    found: list[Row] = []
    for row in left_rows:
        matches = [row | other for other in right_rows if all(_is_true(row | other, condition) for condition in tree.conditions)]
        found += matches if matches or tree.kind == "Inner" else [row | empty]
    return found


def _is_true(row: Row, condition: tuple[int, str, int]) -> bool:
    one, other = row[condition[0]], row[condition[2]]
    if one is None or other is None:
        return False
    return one == other if condition[1] == "=" else one < other


def _bag(rows: list[Row]) -> Counter[tuple[tuple[int, int | None], ...]]:
    return Counter(tuple(sorted(row.items())) for row in rows)


def test_plans_that_are_called_equal_return_the_same_rows() -> None:
    rng = random.Random(22)
    columns = [column for relation in range(RELATIONS) for column in _columns(relation)]
    data: dict[int, list[Row]] = {
        relation: [
            dict.fromkeys(_columns(relation), None),
            *({c: rng.choice((None, 0, 1, 2)) for c in _columns(relation)} for _ in range(5)),
        ]
        for relation in range(RELATIONS)
    }
    equal: Counter[bool] = Counter()
    for _ in range(600):
        conditions = {(*rng.sample(columns, 1), rng.choice("=<"), *rng.sample(columns, 1)) for _ in range(rng.randrange(1, 5))}
        kinds = rng.choice((("Inner",), ("Inner", "LeftOuter")))
        others = conditions if rng.random() < 0.8 else set(sorted(conditions)[1:])
        one, other = (_random_join(rng, list(range(RELATIONS)), wanted, kinds) for wanted in (conditions, others))
        is_equal = difference(_text(one), _text(other)) == ""
        equal[is_equal] += 1
        if is_equal:
            assert _bag(_rows(one, data)) == _bag(_rows(other, data)), (_text(one), _text(other))
    assert min(equal.values()) > 100, equal
