"""The classes of a change of one query: each if it is certain, and never if it is not."""

from __future__ import annotations

import pytest

from mvbuild.equivalence.ladder import compare

T = "FROM `m.t` AS t"
TU = "FROM `m.t` AS t JOIN `m.u` AS u ON t.id = u.id"
LEFT = "FROM `m.t` AS t LEFT JOIN `m.u` AS u ON t.id = u.id"


def kind(old: str, new: str, **schema: tuple[str, ...]) -> str:
    return compare(old, new, {f"m.{name}": columns for name, columns in schema.items()}).kind


SAME = [
    (f"SELECT a {T} WHERE a > 1 AND b = 2", f"SELECT a {T} WHERE 2 = b AND 1 < a"),
    (f"SELECT a {T} WHERE a BETWEEN 1 AND 3", f"SELECT a {T} WHERE a >= 1 AND a <= 3"),
    (f"SELECT a {T} WHERE NOT (a = 1 OR b <> 2)", f"SELECT a {T} WHERE b = 2 AND a != 1"),
    (f"SELECT a {T} WHERE a IN (1, 2, 2)", f"SELECT a {T} WHERE a IN (2, 1)"),
    (f"SELECT IF(a > 1, b, c) AS x {T}", f"SELECT CASE WHEN a > 1 THEN b ELSE c END AS x {T}"),
    (f"SELECT count(1) AS n {T}", f"SELECT COUNT(*) n {T}"),
    (f"SELECT a::INT AS a {T}", f"SELECT CAST(a AS INTEGER) AS a {T}"),
    (f"SELECT a, sum(b) AS s {T} GROUP BY 1", f"SELECT a, sum(b) AS s {T} GROUP BY a"),
    (f"SELECT a {T} ORDER BY a", f"SELECT a {T}"),
    (f"WITH c AS (SELECT a, b {T} WHERE a > 1) SELECT a FROM c", f"SELECT a {T} WHERE a > 1"),
    (
        f"WITH c AS (SELECT * {T}) SELECT a, sum(b) AS s FROM c GROUP BY a",
        f"SELECT x.a, sum(x.b) AS s {T.replace('AS t', 'AS x')} GROUP BY x.a",
    ),
    (f"WITH c AS (SELECT a AS p, b AS q {T}) SELECT q AS b, p AS a FROM c", f"SELECT b, a {T}"),
    (f"WITH c AS (SELECT a, sum(b) AS s {T} GROUP BY a) SELECT * FROM c", f"SELECT a, sum(b) AS s {T} GROUP BY a"),
    (f"SELECT t.a, u.b {TU} WHERE t.x > 1", "SELECT p.a, q.b FROM `m.t` p INNER JOIN `m.u` q ON q.id = p.id AND p.x > 1"),
    ("SELECT t.a, u.b FROM `m.t` t, `m.u` u WHERE t.id = u.id", f"SELECT t.a, u.b {TU}"),
    (f"SELECT t.a, u.b {LEFT}", f"SELECT t.a, u.b {LEFT.replace('LEFT JOIN', 'LEFT OUTER JOIN')}"),
    (
        f"WITH x AS (SELECT * {T} WHERE a > 1) SELECT x.a, u.b FROM x LEFT JOIN `m.u` u ON x.id = u.id",
        f"SELECT t.a, u.b {LEFT} WHERE t.a > 1",
    ),
    (f"SELECT `a` {T}", f"SELECT a {T}"),
    (f"SELECT T.A AS a {T}", f"SELECT t.a AS a {T}"),
    (f"SELECT a {T} UNION ALL SELECT a FROM `m.u` AS u", f"WITH x AS (SELECT a {T}) SELECT a FROM x UNION ALL (SELECT a FROM `m.u` v)"),
    ("WITH c AS (SELECT 1 AS a), d AS (WITH c AS (SELECT 2 AS a) SELECT a FROM c) SELECT a FROM d", "SELECT 2 AS a"),
]


@pytest.mark.parametrize(("old", "new"), SAME)
def test_the_same_query_written_otherwise(old: str, new: str) -> None:
    assert kind(old, new) == "equal"
    assert kind(new, old) == "equal"


NOT_SAME = [
    # parentheses and NULL
    (f"SELECT a * (b + c) AS x {T}", f"SELECT a * b + c AS x {T}"),
    (f"SELECT a - (b - c) AS x {T}", f"SELECT (a - b) - c AS x {T}"),
    (f"SELECT a {T} WHERE NOT a IN (1)", f"SELECT a {T} WHERE NOT a = 1"),
    (f"SELECT a {T} WHERE a IN (1, 2)", f"SELECT a {T} WHERE a = 1 OR a = 2"),
    (f"SELECT a {T} WHERE a = b", f"SELECT a {T} WHERE a <=> b"),
    # joins
    (f"SELECT t.a {LEFT} WHERE u.x > 1", f"SELECT t.a {LEFT} AND u.x > 1"),
    (f"SELECT t.a {LEFT}", f"SELECT t.a {TU}"),
    (f"SELECT t.a {LEFT} WHERE u.x > 1", "SELECT t.a FROM `m.t` t LEFT JOIN (SELECT * FROM `m.u` u WHERE x > 1) u ON t.id = u.id"),
    (f"SELECT t.a, u.b {TU}", "SELECT t.a, u.b FROM `m.t` t FULL JOIN `m.u` u ON t.id = u.id"),
    # what a name means
    (f"SELECT t.s.f AS x, u.s.f AS y {TU}", f"SELECT u.s.f AS x, t.s.f AS y {TU}"),
    ("SELECT s.f AS x FROM (SELECT p AS s, q AS r FROM `m.t` t) d", "SELECT s.f AS x FROM (SELECT p AS r, q AS s FROM `m.t` t) d"),
    (
        "SELECT d.x AS x FROM (SELECT a AS x, b AS y FROM `m.t` t) d WHERE EXISTS (SELECT 1 FROM `m.u` u WHERE u.k = x)",
        "SELECT d.y AS x FROM (SELECT a AS y, b AS x FROM `m.t` t) d WHERE EXISTS (SELECT 1 FROM `m.u` u WHERE u.k = x)",
    ),
    ("WITH c AS (SELECT 1 AS a), d AS (WITH c AS (SELECT 2 AS a) SELECT a FROM c) SELECT a FROM d", "SELECT 1 AS a"),
    (
        "SELECT x FROM (SELECT a AS x, b AS y FROM `m.t` t) JOIN `m.u` USING (x)",
        "SELECT x FROM (SELECT b AS x, a AS y FROM `m.t` t) JOIN `m.u` USING (x)",
    ),
    (
        f"WITH r AS (SELECT * FROM `m.u` u WHERE x > 1) SELECT t.a {T} LEFT ANTI JOIN r ON t.id = r.id",
        f"WITH r AS (SELECT * FROM `m.u` u WHERE x < 1) SELECT t.a {T} LEFT ANTI JOIN r ON t.id = r.id",
    ),
    (
        f"WITH R AS (SELECT 1 AS x) SELECT t.a {T} WHERE t.a IN (SELECT x FROM r)",
        f"WITH R AS (SELECT 2 AS x) SELECT t.a {T} WHERE t.a IN (SELECT x FROM r)",
    ),
    # rows
    (f"SELECT DISTINCT a {T}", f"SELECT a {T}"),
    (f"SELECT a FROM (SELECT DISTINCT a, b {T}) x", f"SELECT DISTINCT a {T}"),
    (f"SELECT 1 AS one FROM (SELECT sum(a) AS x {T}) q", f"SELECT 1 AS one {T}"),
    (f"SELECT a {T} UNION SELECT a FROM `m.u` AS u", f"SELECT a {T} UNION ALL SELECT a FROM `m.u` AS u"),
    (f"SELECT sum(a) AS s FROM (SELECT a {T} LIMIT 5) x", f"SELECT sum(a) AS s {T}"),
    (f"SELECT a, sum(b) AS s {T} GROUP BY a WITH ROLLUP", f"SELECT a, sum(b) AS s {T} GROUP BY a"),
    (f"SELECT a {T} WHERE rand() < 0.5", f"WITH c AS (SELECT * {T}) SELECT a FROM c WHERE rand() < 0.5"),
    (f"SELECT t.a {T}, LATERAL explode(t.b) AS e (x)", f"SELECT t.a {T}"),
    (f"SELECT a {T} TABLESAMPLE (10 PERCENT)", f"SELECT a {T}"),
    # functions
    (f"SELECT first(a) AS x {T}", f"SELECT last(a) AS x {T}"),
    (f"SELECT try_cast(a AS INT) AS x {T}", f"SELECT cast(a AS INT) AS x {T}"),
    (f"SELECT '1' AS x {T}", f"SELECT 1 AS x {T}"),
    (f"SELECT 1.0 AS x {T}", f"SELECT 1 AS x {T}"),
    (f"SELECT m['Key'] AS x {T}", f"SELECT m['key'] AS x {T}"),
]


@pytest.mark.parametrize(("old", "new"), NOT_SAME)
def test_what_only_looks_the_same(old: str, new: str) -> None:
    assert kind(old, new) not in ("equal", "formatting")
    assert kind(new, old) not in ("equal", "formatting")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (f"SELECT a {T}", f"SELECT a, b {T}"),
        (f"SELECT a, c {T}", f"SELECT a, b, c {T}"),
        (f"SELECT a, sum(b) AS s {T} GROUP BY a", f"SELECT a, sum(b) AS s, count(*) AS n {T} GROUP BY a"),
        (f"SELECT a {T}", f"SELECT a, row_number() OVER (ORDER BY a) AS n {T}"),
        (
            f"WITH s AS (SELECT * {T}), r AS (SELECT a FROM s) SELECT * FROM r",
            f"WITH s AS (SELECT * {T}), r AS (SELECT a, b FROM s) SELECT * FROM r",
        ),
        (
            f"WITH s AS (SELECT id, sum(a) AS x {T} GROUP BY id) SELECT id, x FROM s",
            f"WITH s AS (SELECT id, sum(a) AS x, sum(b) AS y {T} GROUP BY id) SELECT id, x, y FROM s",
        ),
        (f"SELECT t.a {LEFT}", f"SELECT t.a, u.b {LEFT}"),
    ],
)
def test_columns_added(old: str, new: str) -> None:
    assert kind(old, new) == "columns-added"
    assert kind(new, old) == "breaking"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (f"SELECT a {T}", f"SELECT a, count(*) AS n {T}"),
        (f"SELECT DISTINCT a {T}", f"SELECT DISTINCT a, b {T}"),
        (f"SELECT a {T}", f"SELECT a, explode(b) AS x {T}"),
        (f"SELECT a {T}", f"SELECT t.a, u.b {LEFT}"),
        (f"SELECT a, sum(b) AS s {T} GROUP BY a", f"SELECT a, c, sum(b) AS s {T} GROUP BY a, c"),
        (f"SELECT a {T} UNION SELECT a FROM `m.u` AS u", f"SELECT a, b {T} UNION SELECT a, b FROM `m.u` AS u"),
        (f"SELECT count(*) AS n FROM (SELECT DISTINCT a {T}) x", f"SELECT count(*) AS n, max(b) AS b FROM (SELECT DISTINCT a, b {T}) x"),
    ],
)
def test_added_columns_that_decide_on_rows(old: str, new: str) -> None:
    assert kind(old, new) == "rows"


NARROWED = [
    (f"SELECT a {T}", f"SELECT a {T} WHERE b = 1"),
    (f"SELECT a {T} WHERE a > 1", f"SELECT a {T} WHERE a > 1 AND b IS NOT NULL"),
    (f"SELECT a {T} WHERE a > 1", f"SELECT a {T} WHERE b LIKE 'x%' AND 1 < a"),
    (f"SELECT a {T} WHERE a > 1 OR b = 2", f"SELECT a {T} WHERE b = 2"),
    (f"SELECT a {T} WHERE a > 1", f"SELECT a {T} WHERE a > 2"),
    (f"SELECT a {T} WHERE a >= 2", f"SELECT a {T} WHERE a > 2"),
    (f"SELECT a {T} WHERE a < -1", f"SELECT a {T} WHERE a < -2"),
    (f"SELECT a {T} WHERE d >= '2024-01-01'", f"SELECT a {T} WHERE d >= '2025-01-01'"),
    (f"SELECT a {T} WHERE d >= DATE '2024-01-01'", f"SELECT a {T} WHERE d >= DATE '2025-01-01'"),
    (f"SELECT a {T} WHERE s IN ('a', 'b')", f"SELECT a {T} WHERE s IN ('a')"),
    (f"SELECT a {T} WHERE a BETWEEN 1 AND 9", f"SELECT a {T} WHERE a BETWEEN 2 AND 8"),
    (f"SELECT a, sum(b) AS s {T} GROUP BY a", f"SELECT a, sum(b) AS s {T} WHERE ok GROUP BY a"),
    (f"SELECT a, sum(b) AS s {T} GROUP BY a", f"SELECT a, sum(b) AS s {T} GROUP BY a HAVING sum(b) > 1"),
    (f"SELECT t.a {LEFT}", f"SELECT t.a {LEFT} WHERE u.x = 1"),
    (f"SELECT t.a {TU}", f"SELECT t.a {TU} AND u.x = 1"),
    (f"SELECT a {T} UNION ALL SELECT a FROM `m.u` AS u", f"SELECT a {T} UNION ALL SELECT a FROM `m.u` AS u WHERE u.x"),
    (f"SELECT a {T} EXCEPT SELECT a FROM `m.u` AS u", f"SELECT a {T} WHERE b EXCEPT SELECT a FROM `m.u` AS u"),
    (
        f"WITH c AS (SELECT a, b {T}) SELECT a, sum(b) AS s FROM c GROUP BY a",
        f"WITH c AS (SELECT a, b {T} WHERE b > 0) SELECT a, sum(b) AS s FROM c GROUP BY a",
    ),
    (f"SELECT * {T}", f"SELECT * {T} WHERE a = 1"),
    (f"SELECT t.a {T} LEFT ANTI JOIN `m.u` AS u ON t.id = u.id", f"SELECT t.a {T} LEFT ANTI JOIN `m.u` AS u ON t.id = u.id WHERE t.b = 1"),
]


@pytest.mark.parametrize(("old", "new"), NARROWED)
def test_filters(old: str, new: str) -> None:
    assert kind(old, new) == "filter-narrowed"
    assert kind(new, old) == "filter-widened"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (f"SELECT a {T} WHERE a > 1", f"SELECT a {T} WHERE a < 2"),
        (f"SELECT a {T} WHERE a > 1 AND b = 1", f"SELECT a {T} WHERE a > 1 AND c = 1"),
        (f"SELECT a {T} WHERE s > '9'", f"SELECT a {T} WHERE s > '10'"),
        (f"SELECT a {T} WHERE s IN (1, 2)", f"SELECT a {T} WHERE s IN ('1')"),
        (f"SELECT t.a {LEFT}", f"SELECT t.a {LEFT} AND u.x = 1"),
        (f"SELECT t.a {LEFT}", "SELECT t.a FROM `m.t` t LEFT JOIN (SELECT * FROM `m.u` u WHERE x = 1) u ON t.id = u.id"),
        (f"SELECT t.a {T} WHERE id NOT IN (SELECT id FROM `m.u` u)", f"SELECT t.a {T} WHERE id NOT IN (SELECT id FROM `m.u` u WHERE u.y)"),
        (f"SELECT a {T} EXCEPT SELECT a FROM `m.u` AS u", f"SELECT a {T} EXCEPT SELECT a FROM `m.u` AS u WHERE u.x"),
        (f"SELECT a, (SELECT max(x) FROM `m.u` u) AS x {T}", f"SELECT a, (SELECT max(x) FROM `m.u` u WHERE u.y) AS x {T}"),
        (f"SELECT t.a {T} LEFT ANTI JOIN `m.u` u ON t.id = u.id", f"SELECT t.a {T} LEFT ANTI JOIN `m.u` u ON t.id = u.id AND u.x"),
        (
            "SELECT u.a FROM `m.t` t RIGHT JOIN `m.u` u ON t.id = u.id",
            "SELECT u.a FROM (SELECT * FROM `m.t` t WHERE x) t RIGHT JOIN `m.u` u ON t.id = u.id",
        ),
        (f"SELECT a, b {T} WHERE a > 1", f"SELECT a, b + 1 AS b {T} WHERE a > 1 AND b > 2"),
        (f"SELECT a {T}", "SELECT a FROM `m.u` AS t WHERE a = 1"),
    ],
)
def test_filters_of_which_nothing_is_certain(old: str, new: str) -> None:
    assert kind(old, new) == "rows"
    assert kind(new, old) == "rows"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (f"SELECT a, b {T}", f"SELECT a {T}", "column 'b' removed"),
        (f"SELECT a, b {T}", f"SELECT a, b AS c {T}", "column 'b' renamed to 'c'"),
        (f"SELECT a, CAST(b AS INT) AS b {T}", f"SELECT a, CAST(b AS BIGINT) AS b {T}", "column 'b' is now bigint, and was int"),
        (f"SELECT a, b, b AS c {T}", f"SELECT a, b AS d {T}", "column 'b' removed"),
        (f"SELECT a, sum(b) AS s, count(*) AS n {T} GROUP BY a", f"SELECT a, sum(b) AS s {T} GROUP BY a", "column 'n' removed"),
        (f"SELECT a, b {T} WHERE a > 1", f"SELECT a {T} WHERE x IS NULL GROUP BY a", "column 'b' removed"),
    ],
)
def test_what_breaks(old: str, new: str, said: str) -> None:
    found = compare(old, new)
    assert found.kind == "breaking"
    assert said in [f.message for f in found.findings]


def test_a_breaking_change_tells_the_rest_as_well() -> None:
    found = compare(f"SELECT a, b {T}", f"SELECT a {T} WHERE c = 1")
    assert [f.kind for f in found.findings] == ["breaking", "filter-narrowed"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (f"SELECT a {T}", f"select  a -- x\n{T}", "formatting"),
        (f"SELECT a, b {T}", f"SELECT b, a {T}", "reordered"),
        (f"SELECT a {T}", f"SELECT a AS A {T}", "rows"),
        (f"SELECT a, b {T}", f"SELECT a, b + 1 AS b {T}", "rows"),
        (f"SELECT a {T}", "SELECT a FROM", "rows"),
    ],
)
def test_other_changes(old: str, new: str, expected: str) -> None:
    assert kind(old, new) == expected


def test_known_columns_tell_what_a_star_is_and_whose_a_name_is() -> None:
    old, new = f"SELECT * {TU.replace('t.id = u.id', 't.id = u.tid')}", "SELECT t.id, t.a, u.tid, u.b FROM `m.t` t JOIN `m.u` u ON id = tid"
    assert kind(old, new, t=("id", "a"), u=("tid", "b")) == "equal"
    assert kind(old, new) != "equal"


def test_a_filter_below_an_aggregate_says_that_its_values_change() -> None:
    (finding,) = compare(f"SELECT a, sum(b) AS s {T} GROUP BY a", f"SELECT a, sum(b) AS s {T} WHERE c > 1 GROUP BY a").findings
    assert finding.message == "WHERE also requires `c > 1`; what is computed from these rows changes"


@pytest.mark.parametrize("depth", [50, 2000])
def test_deep_conditions_do_not_fail(depth: int) -> None:
    condition = " AND ".join(f"a <> {i}" for i in range(depth))
    assert kind(f"SELECT a {T} WHERE {condition}", f"SELECT a {T} WHERE {condition} AND b = 1") in ("filter-narrowed", "rows")


def test_conditions_that_both_have_are_not_compared_with_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    from mvbuild.equivalence import filters

    compared: list[object] = []
    true_implies = filters.implies
    monkeypatch.setattr(filters, "implies", lambda one, other: compared.append(one) or true_implies(one, other))
    condition = " AND ".join(f"a <> {i}" for i in range(200))
    assert kind(f"SELECT a {T} WHERE {condition}", f"SELECT a {T} WHERE {condition} AND b = 1") == "filter-narrowed"
    assert len(compared) <= 2 * 201
