"""Values that are equal after a cast are not the same: columns of different types in joins, set operations and keys."""

from __future__ import annotations

import decimal
from typing import Any

import pytest
from sqlglot import exp

from mvbuild.incremental.algebra import Aggregate, Distinct, Join, walk
from mvbuild.incremental.alike import likeness
from mvbuild.incremental.parsing import parsed
from mvbuild.incremental.reasons import Refused
from mvbuild.lineage.expression_type import type_of
from mvbuild.lineage.types import Array, Decimal, text
from mvbuild.lineage.types import parsed as parsed_type
from unit.incremental.on_duckdb import OnDuckDB, Table, connected

INTS = {"k": "int", "v": "int"}
LONGS = {"k": "long", "v": "int"}
DECIMALS = {"d": "decimal(10, 2)", "w": "int"}
A = [(1, 1), (2, 2), (2, 7)]
ONE, TWO = decimal.Decimal("1.00"), decimal.Decimal("2.00")
B = [(ONE, 10), (TWO, 20)]
NEW_B = [(ONE, 11), (TWO, 20), (TWO, 21)]
LABELLED = "SELECT concat('c', a.k) AS label, count(*) AS n, max(b.w) AS w FROM {a} a %s JOIN {b} b ON a.k = b.d GROUP BY concat('c', a.k)"
BOTH = "(SELECT k, v AS x FROM {a} UNION ALL SELECT d, w FROM {b}) q"
STRATEGIES = ("append", "merge", "affected-keys", "bag", "full-diff")


@pytest.fixture(scope="module")
def connection() -> Any:
    return connected()


def refreshed(query: str, tables: list[Table], connection: Any) -> set[str]:
    """The strategies that accept the case; each must be right."""
    case, accepted = OnDuckDB(query, tables, connection), set()
    for strategy in STRATEGIES:
        try:
            after = case.refreshed(strategy)
        except Refused:
            continue
        assert after == case.full(), strategy
        accepted.add(strategy)
    return accepted


@pytest.mark.proof
@pytest.mark.parametrize(
    "query",
    [
        LABELLED % "",
        LABELLED % "LEFT",
        "SELECT DISTINCT concat('c', a.k) AS label, b.w FROM {a} a JOIN {b} b ON a.k = b.d",
        "SELECT concat('c', k) AS label, v FROM {a} a WHERE EXISTS (SELECT 1 FROM {b} b WHERE b.d = a.k AND b.w > 10)",
        f"SELECT concat('c', k) AS label FROM {BOTH}",
        f"SELECT concat('c', k) AS label, count(*) AS n, sum(x) AS t, count(x) AS c FROM {BOTH} GROUP BY concat('c', k)",
        f"SELECT concat('c', k) AS label, max(x) AS x FROM {BOTH} GROUP BY concat('c', k)",
        f"SELECT DISTINCT concat('c', k) AS label FROM {BOTH}",
        "SELECT concat('c', k) AS label FROM (SELECT k FROM {a} INTERSECT SELECT d FROM {b}) q",
        "SELECT concat('c', k) AS label FROM (SELECT k FROM {a} EXCEPT ALL SELECT d FROM {b}) q",
        "SELECT concat('c', k) AS label, v FROM {a} WHERE k IN (SELECT d FROM {b} WHERE w > 10)",
    ],
)
@pytest.mark.parametrize("changed", ["a", "b", "both"])
def test_an_expression_does_not_go_to_the_other_side(query: str, changed: str, connection: Any) -> None:
    new_a = [*A, (1, 9), (3, 3)] if changed != "b" else A
    tables = [Table("a", INTS, A, new_a), Table("b", DECIMALS, B, NEW_B if changed != "a" else B)]
    assert refreshed(query, tables, connection)


def test_int_and_long_are_alike(connection: Any) -> None:
    query = "SELECT a.k, sum(b.v) AS t FROM {a} a JOIN {b} b ON a.k = b.k GROUP BY a.k"
    tables = [Table("a", INTS, A, A), Table("b", LONGS, A, [*A, (1, 5)])]
    assert "affected-keys" in refreshed(query, tables, connection)


def test_a_key_that_is_no_double_has_a_neighbour_that_is(connection: Any) -> None:
    query = "SELECT b.d, count(*) AS n, max(a.k) AS k FROM {a} a JOIN {b} b ON a.k = b.d GROUP BY b.d"
    near = 2**53
    tables = [
        Table("a", {"k": "long"}, [(near,)], [(near,), (near + 1,)]),
        Table("b", {"d": "double"}, [(float(near),)], [(float(near),)]),
    ]
    assert refreshed(query, tables, connection)


@pytest.mark.parametrize("name", ["part", "keys_0", "keys", "came", "stored_at", "net_minus"])
def test_columns_that_are_called_like_what_is_generated(name: str, connection: Any) -> None:
    columns = {name: "int", "v": "int"}
    query = f"SELECT {name}, count(*) AS n, max(v) AS v FROM {{a}} WHERE {name} IN (SELECT {name} FROM {{b}}) GROUP BY {name}"
    tables = [Table("a", columns, A, [*A, (1, 9)]), Table("b", columns, A, [(2, 2)])]
    assert "affected-keys" in refreshed(query, tables, connection)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.k, sum(b.w) AS t, count(b.w) AS c, count(*) AS n FROM {a} a JOIN (SELECT d, first(w) AS w FROM {b} GROUP BY d) b"
        " ON a.k = b.d GROUP BY a.k",
        "SELECT a.k, b.w FROM {a} a JOIN (SELECT d, w FROM {b} LIMIT 1) b ON a.k = b.d",
        "SELECT a.k, (SELECT first(w) FROM {b}) AS w FROM {a} a",
        "SELECT q.k, q.n FROM (SELECT k, v, count(*) OVER (PARTITION BY k ORDER BY k ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS n"
        " FROM {a}) q JOIN {b} b ON q.k = b.d",
    ],
)
def test_what_depends_on_the_order_of_rows_is_not_computed_again(query: str) -> None:
    tables = [Table("a", INTS, A, [*A, (1, 9)]), Table("b", INTS | DECIMALS, [(1, 1, *b) for b in B], [(1, 1, *b) for b in B])]
    case = OnDuckDB(query, tables)
    for strategy in ("append", "merge", "bag"):
        with pytest.raises(Refused):
            case.refreshed(strategy)


def test_nothing_is_taken_away_from_a_float_sum() -> None:
    query = "SELECT k, count(*) AS n, count(v) AS c, sum(v) AS t FROM {a} GROUP BY k"
    table = Table("a", {"k": "int", "v": "double"}, [(1, float("nan")), (1, 1.0)], [(1, 1.0)])
    case = OnDuckDB(query, [table])
    with pytest.raises(Refused, match="floating point"):
        case.refreshed("merge", case.case(float_tolerance=0.1))


@pytest.mark.parametrize(
    ("type_", "expected"), [("decimal(10, 2)", ""), ("decimal(26, 4)", "not-mergeable"), ("decimal(27, 12)", "not-mergeable")]
)
def test_an_average_has_the_digits_that_spark_gives_it(type_: str, expected: str) -> None:
    from mvbuild.incremental.averages import has_fewer_digits

    precision, scale = (int(part) for part in type_.removeprefix("decimal(").removesuffix(")").split(","))
    total, average = f"decimal({min(precision + 10, 38)}, {scale})", f"decimal({min(precision + 4, 38)}, {min(scale + 4, 38)})"
    assert has_fewer_digits(total, average) == bool(expected)


@pytest.mark.parametrize(
    ("sql", "type_"),
    [
        ("k", "int"),
        ("max(d)", "decimal(10,2)"),
        ("count(*)", "bigint"),
        ("sum(k)", "bigint"),
        ("sum(d)", "decimal(20,2)"),
        ("sum(d) FILTER (WHERE k > 1)", "decimal(20,2)"),
        ("CAST(k AS BIGINT)", "bigint"),
        ("CAST(k AS DECIMAL(12, 3))", "decimal(12,3)"),
        ("coalesce(k, 1)", "int"),
        ("k + CAST(1 AS BIGINT)", "bigint"),
        ("upper(s)", "string"),
        ("concat('c', k)", "string"),
        ("d + 1", "decimal(11,2)"),
        ("d * -1", "decimal(12,2)"),
        ("d * (1)", "decimal(12,2)"),
        ("floor(d)", "decimal(9,0)"),
        ("date_sub(day, 6)", "date"),
        ("datediff(day, day)", "int"),
        ("timestampdiff(MINUTE, at, at)", "bigint"),
        ("max_by(s, k)", "string"),
        ("last_value(s, true)", "string"),
        ("percentile_approx(k, 0.5)", "int"),
        ("split(s, ',')[1]", "string"),
        ("abs(s)", None),
        ("-s", None),
        ("CAST(s AS STRING COLLATE UTF8_LCASE)", None),
        ("array_intersect(ks, array(1.5D))", "array<double>"),
        ("st.n", None),
        ("x", None),
    ],
)
def test_a_type_is_told_only_where_it_is_certain(sql: str, type_: str | None) -> None:
    tree = parsed(f"SELECT {sql}")
    assert tree is not None
    types = {"k": "int", "d": Decimal(10, 2), "s": "string", "day": "date", "at": "timestamp", "ks": Array("int")}
    assert text(type_of(tree.expressions[0], types)) == type_


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("k = k", "same"),
        ("k <=> k", "same"),
        ("k = CAST(k AS BIGINT)", "equal"),
        ("r = r", "equal"),
        ("k = d", "cast"),
        ("d = CAST(d AS DECIMAL(12, 3))", "cast"),
        ("at = max(at)", "same"),
        ("at = CAST(s AS TIMESTAMP)", "cast"),  # a session may read it as TIMESTAMP_NTZ
        ("wide = wide", "same"),
        ("wide = d * wide", "cast"),  # a session may keep other digits
        ("ks = ks", "cast"),
        ("x = x", "cast"),
    ],
)
def test_what_an_equality_says_of_its_sides(sql: str, expected: str) -> None:
    wide = Decimal(38, 4)
    types = {"k": "int", "d": Decimal(10, 2), "s": "string", "at": "timestamp", "ks": Array("int"), "r": "double", "wide": wide}
    tree = parsed(f"SELECT {sql}")
    assert tree is not None
    assert likeness(tree.expressions[0], types) == expected


def test_a_type_that_depends_on_the_session_is_so_in_every_relation_above() -> None:
    query = (
        "SELECT a.v FROM (SELECT v, CAST(s AS TIMESTAMP) AS at FROM {a} UNION ALL SELECT v, at FROM {b}) AS a JOIN {b} AS b ON a.at = b.at"
    )
    tables = [Table("a", {"v": "int", "s": "string"}, [], []), Table("b", {"v": "int", "at": "timestamp"}, [], [])]
    (join,) = (node for node in walk(OnDuckDB(query, tables).shape().root) if isinstance(node, Join))
    assert join.likeness == ("cast",)


@pytest.mark.parametrize("inner", ["SELECT x, count(*) AS n FROM {a} GROUP BY x", "SELECT DISTINCT x, 1 AS n FROM {a}"])
@pytest.mark.parametrize(("type_", "loose"), [("double", True), ("int", False)])
def test_zero_and_minus_zero_are_one_group_and_two_texts(inner: str, type_: str, loose: bool) -> None:
    case = OnDuckDB(f"SELECT DISTINCT CAST(q.x AS STRING) AS t, q.n FROM ({inner}) q", [Table("a", {"x": type_}, [(0,)], [(0,), (1,)])])
    outer, found = [node.loose for node in walk(case.shape().root) if isinstance(node, Aggregate | Distinct)]
    assert (outer, found) == (False, loose)
    assert case.refreshed("affected-keys") == case.full()


@pytest.mark.parametrize(
    ("type_", "reversed_"), [("int", "string"), ("date", "string"), ("string", "string"), ("array<int>", "array<int>")]
)
def test_the_reverse_of_a_value_is_text(type_: str, reversed_: str) -> None:
    """As a key, '01' and the 1 that it is compared with are not the same."""
    assert text(type_of(exp.Reverse(this=exp.column("k")), {"k": parsed_type(type_)})) == reversed_
