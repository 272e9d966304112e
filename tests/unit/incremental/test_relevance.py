"""The conditions of a query that every relevant row of a table satisfies, and what metadata shows about them."""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import Any

import duckdb
import pytest
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestEntry
from pyiceberg.typedef import Record

from mvbuild.adapters.iceberg.file_matching import may_match
from mvbuild.adapters.iceberg.manifests import FileEntry, Header
from mvbuild.incremental import scan_conditions
from mvbuild.incremental.algebra import Join, conjuncts
from mvbuild.incremental.building import LeafColumns
from mvbuild.incremental.from_clause import MARKER
from mvbuild.incremental.literals import predicate_text
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.scan_conditions import relevant
from mvbuild.incremental.shape import shape_of
from seeds import seeds
from unit.incremental.on_duckdb import Table, connected
from unit.incremental.queries import Generated
from unit.incremental.relevance_pushing import Pushed, pushed, pushed_case
from unit.incremental.relevance_trials import IDS, SCHEMA, Counts, File, change, conjunctions, round_of_trials

A = {"k": "int", "v": "int", "s": "string"}
TABLES = {"a": A, "b": A, "c": A}
RULES: dict[str, tuple[str, int, list[str]]] = {
    # name: query, number of its columns, what is known of the rows of each table in order
    "filter": ("SELECT v FROM {a} WHERE v > 1", 1, ["v > 1"]),
    "several filters": ("SELECT v FROM (SELECT * FROM {a} WHERE v > 1) q WHERE k = 2", 1, ["k = 2 AND v > 1"]),
    "no filter": ("SELECT v FROM {a}", 1, [""]),
    "a renamed column": ("SELECT w FROM (SELECT v AS w FROM {a}) q WHERE w > 1", 1, ["v > 1"]),
    "a computed column": ("SELECT w FROM (SELECT v + 1 AS w FROM {a}) q WHERE w > 1", 1, [""]),
    "a common table expression": ("WITH q AS (SELECT v AS w FROM {a}) SELECT w FROM q WHERE w > 1", 1, ["v > 1"]),
    "inner join": ("SELECT a.v FROM {a} a JOIN {b} b ON a.k = b.k AND a.v > 1 WHERE b.v = 2", 1, ["v > 1", "v = 2"]),
    "through an equality": ("SELECT a.v FROM {a} a JOIN {b} b ON a.k = b.k WHERE a.k > 1", 1, ["k > 1", "k > 1"]),
    "through two equalities": (
        "SELECT a.v FROM {a} a JOIN {b} b ON a.k = b.k JOIN {c} c ON b.k = c.k WHERE a.k = 2",
        1,
        ["k = 2", "k = 2", "k = 2"],
    ),
    "a null-safe equality": ("SELECT a.v FROM {a} a JOIN {b} b ON a.k <=> b.k WHERE a.k IS NULL", 1, ["k IS NULL", "k IS NULL"]),
    "not through an inequality": ("SELECT a.v FROM {a} a JOIN {b} b ON a.k < b.k WHERE a.k > 1", 1, ["k > 1", ""]),
    "left join, left side": ("SELECT a.v FROM {a} a LEFT JOIN {b} b ON a.v = b.v WHERE a.k > 1", 1, ["k > 1", ""]),
    "left join, ON about the left side": ("SELECT a.v, b.v FROM {a} a LEFT JOIN {b} b ON a.k = b.k AND a.v > 1", 2, ["", ""]),
    "left join, ON about the right side": ("SELECT a.v, b.v FROM {a} a LEFT JOIN {b} b ON a.k = b.k AND b.v > 1", 2, ["", "v > 1"]),
    "left join, IS NULL above": ("SELECT a.v FROM {a} a LEFT JOIN {b} b ON a.k = b.k WHERE b.k IS NULL", 1, ["", ""]),
    "left join, coalesce above": ("SELECT a.v FROM {a} a LEFT JOIN {b} b ON a.k = b.k WHERE coalesce(b.v, 1) = 1", 1, ["", ""]),
    "left join, OR above": ("SELECT a.v FROM {a} a LEFT JOIN {b} b ON a.k = b.k WHERE b.v = 1 OR b.v IS NULL", 1, ["", ""]),
    "left join that is an inner join": (
        "SELECT a.v FROM {a} a LEFT JOIN {b} b ON a.k = b.k AND a.v > 1 WHERE b.v = 2",
        1,
        ["v > 1", "v = 2"],
    ),
    "left join, a constant IN a list with a column": (
        "SELECT a.k, a.v FROM {a} a LEFT JOIN {b} b ON a.k = b.k AND a.v > 1 WHERE 1 IN (1, b.v)",
        2,
        ["", ""],
    ),
    "left join, IN a list of constants": (
        "SELECT a.k, a.v FROM {a} a LEFT JOIN {b} b ON a.k = b.k AND a.v > 1 WHERE b.v IN (1, 2)",
        2,
        ["v > 1", "v IN (1, 2)"],
    ),
    "left join, a constant BETWEEN columns": (
        "SELECT a.k, a.v FROM {a} a LEFT JOIN {b} b ON a.k = b.k AND a.v > 1 WHERE 1 BETWEEN b.v AND 2",
        2,
        ["v > 1", ""],
    ),
    "left join, through an equality": ("SELECT a.v, b.v FROM {a} a LEFT JOIN {b} b ON a.k = b.k WHERE a.k > 1", 2, ["k > 1", "k > 1"]),
    "right join": ("SELECT a.v, b.v FROM {a} a RIGHT JOIN {b} b ON a.k = b.k AND a.v > 1 AND b.v > 1", 2, ["v > 1", ""]),
    "full join": ("SELECT a.v, b.v FROM {a} a FULL JOIN {b} b ON a.k = b.k AND a.v > 1 AND b.v > 1", 2, ["", ""]),
    "full join, filter above": ("SELECT a.v, b.v FROM {a} a FULL JOIN {b} b ON a.k = b.k WHERE a.v > 1", 2, ["", ""]),
    "full join, filters below": (
        "SELECT a.v FROM (SELECT * FROM {a} WHERE v > 1) a FULL JOIN (SELECT * FROM {b} WHERE v > 2) b ON a.k = b.k",
        1,
        ["v > 1", "v > 2"],
    ),
    "semi join": ("SELECT v FROM {a} a WHERE EXISTS (SELECT 1 FROM {b} b WHERE b.k = a.k AND b.v > 1)", 1, ["", "v > 1"]),
    "semi join, through an equality": ("SELECT v FROM {a} a WHERE k IN (SELECT k FROM {b} WHERE k > 1)", 1, ["k > 1", "k > 1"]),
    "semi join, ON about the left side": ("SELECT a.v FROM {a} a LEFT SEMI JOIN {b} b ON a.k = b.k AND a.v > 1", 1, ["v > 1", ""]),
    "anti join": (
        "SELECT v FROM {a} a WHERE v = 2 AND NOT EXISTS (SELECT 1 FROM {b} b WHERE b.k = a.k AND b.v > 1)",
        1,
        ["v = 2", "v > 1"],
    ),
    "anti join, ON about the left side": ("SELECT a.v FROM {a} a LEFT ANTI JOIN {b} b ON a.k = b.k AND a.v > 1", 1, ["", ""]),
    "anti join, right to left": (
        "SELECT v FROM {a} a WHERE NOT EXISTS (SELECT 1 FROM {b} b WHERE b.k = a.k AND b.k > 1)",
        1,
        ["", "k > 1"],
    ),
    "anti join, left to right": ("SELECT v FROM {a} a LEFT ANTI JOIN {b} b ON a.k = b.k WHERE a.k > 1", 1, ["k > 1", "k > 1"]),
    "NOT IN": ("SELECT v FROM {a} WHERE k > 1 AND k NOT IN (SELECT k FROM {b})", 1, ["k > 1", ""]),
    "group by, filter below": ("SELECT k, sum(v) FROM {a} WHERE v > 1 GROUP BY k", 2, ["v > 1"]),
    "group by, HAVING on a key": ("SELECT k, sum(v) FROM {a} GROUP BY k HAVING k > 1", 2, ["k > 1"]),
    "group by, HAVING on a value": ("SELECT k, max(v) FROM {a} GROUP BY k HAVING max(v) > 1", 2, [""]),
    "global aggregate": ("SELECT count(*) FROM {a} HAVING count(*) > 1", 1, [""]),
    "through an aggregate and an equality": (
        "SELECT a.v, q.n FROM {a} a JOIN (SELECT k, count(*) AS n FROM {b} GROUP BY k) q ON a.k = q.k WHERE a.k = 1",
        2,
        ["k = 1", "k = 1"],
    ),
    "window, its partition": ("SELECT * FROM (SELECT k, v, sum(v) OVER (PARTITION BY k) AS t FROM {a}) q WHERE k > 1", 3, ["k > 1"]),
    "window, another column": ("SELECT * FROM (SELECT k, v, sum(v) OVER (PARTITION BY k) AS t FROM {a}) q WHERE v > 1", 3, [""]),
    "windows without a common partition": (
        "SELECT * FROM (SELECT k, sum(v) OVER (PARTITION BY k) AS t, sum(v) OVER (PARTITION BY s) AS u FROM {a}) q WHERE k > 1",
        3,
        [""],
    ),
    "union all": ("SELECT w FROM (SELECT k, v AS w FROM {a} UNION ALL SELECT v, k FROM {b}) q WHERE w > 1", 1, ["v > 1", "k > 1"]),
    "union with another type": ("SELECT w FROM (SELECT v AS w FROM {a} UNION ALL SELECT 0.5 FROM {b}) q WHERE w > 1", 1, ["", ""]),
    "distinct": ("SELECT * FROM (SELECT DISTINCT k, v FROM {a}) q WHERE v > 1", 2, ["v > 1"]),
    "except": ("SELECT * FROM (SELECT k, v FROM {a} EXCEPT SELECT v, k FROM {b}) q WHERE v > 1", 2, ["v > 1", "k > 1"]),
    "intersect all": ("SELECT * FROM (SELECT k FROM {a} INTERSECT ALL SELECT v FROM {b}) q WHERE k > 1", 1, ["k > 1", "v > 1"]),
    "limit": ("SELECT * FROM (SELECT k, v, s FROM {a} ORDER BY k, v, s LIMIT 3) q WHERE v > 1", 3, [""]),
    "limit above": ("SELECT k, v, s FROM {a} WHERE v > 1 ORDER BY k, v, s LIMIT 3", 3, ["v > 1"]),
    "scalar subquery": ("SELECT v FROM {a} WHERE v > (SELECT max(k) FROM {b} WHERE v > 1) AND k = 1", 1, ["k = 1", "v > 1"]),
    "correlated scalar subquery": (
        "SELECT v FROM {a} a WHERE v > (SELECT max(v) FROM {b} b WHERE b.k = a.k AND b.v > 1) AND k = 1",
        1,
        ["k = 1", "v > 1 AND k = 1"],
    ),
    "a table twice": ("SELECT x.v FROM {a} x JOIN {a} y ON x.k = y.v WHERE x.s = 'x'", 1, ["s = 'x' | "]),
    "a table twice, each with its own": ("SELECT v FROM {a} WHERE v > 2 UNION ALL SELECT v FROM {a} WHERE v < 1", 1, ["v > 2 | v < 1"]),
}


def shape(query: str, columns: int, tables: dict[str, dict[str, str]]) -> Any:
    named = {name: f"`{MARKER}{at}`" for at, name in enumerate(tables)}
    leaves = [LeafColumns.of_iceberg(types) for types in tables.values()]
    return shape_of(query.format(**named), leaves, [f"c{n}" for n in range(columns)])


def known(query: str, columns: int) -> list[str]:
    tables = {name: types for name, types in TABLES.items() if "{" + name + "}" in query}
    found = relevant(shape(query, columns, tables).root, list(tables.values()))
    return [" | ".join(predicate_text(predicates) for predicates in found[leaf]) for leaf in sorted(found)]


def assert_same(given: str, query: str) -> None:
    assert Counter(given.split(" AND ")) == Counter(query.split(" AND "))


@pytest.mark.parametrize("rule", RULES)
def test_what_is_known_of_the_rows_that_matter(rule: str) -> None:
    query, columns, want = RULES[rule]
    found = known(query, columns)
    assert len(found) == len(want)
    for one, other in zip(found, want, strict=True):
        assert_same(one, other)


def tables_of(query: str, seed: int) -> tuple[Table, ...]:
    random = Random(seed)

    def row() -> tuple[Any, ...]:
        return (random.choice((None, 0, 1, 2, 3)), random.choice((None, 0, 1, 2, 3)), random.choice((None, "x", "y")))

    names = [name for name in TABLES if "{" + name + "}" in query]
    return tuple(Table(name, A, (), [row() for _ in range(random.choice((0, 3, 8)))]) for name in names)


def pushed_rules(connection: duckdb.DuckDBPyConnection, rules: dict[str, Any], seeds: range) -> Pushed:
    cases = (Generated(seed, query, tables_of(query, seed), frozenset(), "mixed") for query, _, _ in rules.values() for seed in seeds)
    return sum((pushed_case(case, connection) for case in cases), Pushed())


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    return connected()


@pytest.mark.proof
def test_rows_that_do_not_matter_change_no_result(connection: duckdb.DuckDBPyConnection) -> None:
    found = pushed_rules(connection, {name: rule for name, rule in RULES.items() if "another type" not in name}, range(4))
    assert found.wrong == ()
    assert found.narrowed > 70


@pytest.mark.proof
def test_random_queries(connection: duckdb.DuckDBPyConnection) -> None:
    found = Pushed()
    for seed in range(140):
        try:
            found = found + pushed(seed, connection)
        except Refused:
            continue
    assert found.wrong == ()
    assert found.narrowed > 5


def _left_to_left(made: Any) -> Any:
    def join(self: Any, join: Join, conditions: Any) -> Any:
        left, right = made(self, join, conditions)
        return (*left, *scan_conditions._within(conjuncts(join.on), join.left.columns)), right

    return join


def _through_windows(made: Any) -> Any:
    return lambda relation, conditions: conditions if isinstance(relation, scan_conditions.Window) else made(relation, conditions)


def _through_limits(made: Any) -> Any:
    return lambda relation, conditions: conditions if isinstance(relation, scan_conditions.Limit) else made(relation, conditions)


WRONG = {
    "ON restricts the left side": (
        "_Pushing._join",
        _left_to_left,
        ["left join, ON about the left side", "anti join, ON about the left side"],
    ),
    "a window lets everything through": ("_through", _through_windows, ["window, another column"]),
    "a limit lets everything through": ("_through", _through_limits, ["limit"]),
    "IS NULL is null-rejecting": ("_rejects_null", lambda made: lambda condition, columns: True, ["left join, IS NULL above"]),
}


@pytest.mark.proof
@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_rule_is_caught(fault: str, connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    name, change, rules = WRONG[fault]
    owner: Any = scan_conditions._Pushing if "." in name else scan_conditions
    attribute = name.rpartition(".")[2]
    monkeypatch.setattr(owner, attribute, change(getattr(owner, attribute)))
    for rule in rules:
        assert pushed_rules(connection, {rule: RULES[rule]}, range(20)).wrong, rule


# --- conditions as predicates --------------------------------------------------------------------------------------------------------

COLUMNS = {
    "i": "int",
    "l": "long",
    "m": "decimal(10, 2)",
    "big": "decimal(38, 10)",
    "s": "string",
    "b": "boolean",
    "d": "date",
    "t": "timestamp",
    "z": "timestamptz",
    "f": "double",
}
CONDITIONS = {
    "5 < i": "i > 5",
    "i = -5": "i = -5",
    "i = 5L": "i = 5",
    "i <= 5.0": "i <= 5",
    "i < 5.5": "",
    "i < 3000000000": "",
    "l < 3000000000": "l < 3000000000",
    "i = '5'": "",
    "i < 1e3": "",
    "i <> 5": "",
    "i NOT IN (1, 2)": "",
    "NOT i < 5": "i >= 5",
    "NOT (i = 5)": "",
    "NOT (NOT i = 5)": "i = 5",
    "i <=> 5": "i = 5",
    "i <=> NULL": "i IS NULL",
    "i IS NOT NULL": "i IS NOT NULL",
    "f IS NULL": "",
    "i BETWEEN 1 AND 2": "i >= 1 AND i <= 2",
    "i BETWEEN 1 AND l": "i >= 1",
    "i NOT BETWEEN 1 AND 2": "",
    "i IN (1, NULL, 2, 1)": "i IN (1, 2)",
    "i IN (1, 2.5)": "",
    "i = l": "",
    "i + 1 < 5": "",
    "CAST(i AS STRING) < '5'": "",
    "i < 5 OR i > 7": "(i < 5 OR i > 7)",
    "i < 5 OR f > 7": "",
    "(i < 5 AND f > 7) OR b": "(i < 5 OR b = true)",
    "NOT b": "b = false",
    "m = 1.5": "m = 1.50",
    "m < 1.505": "",
    "m < 7": "m < 7.00",
    "m = 123456789012.00": "",
    "big > 7": "big > 7.0000000000",
    "big > 1234567890123456789012345678.00": "big > 1234567890123456789012345678.0000000000",
    "big > 1.00000000000": "",
    "s = 'x'": "s = 'x'",
    "s = 5": "",
    r"s = 'a\\b'": "",
    r"s = 'a\nb'": "",
    "s LIKE 'ab%'": "s LIKE 'ab%'",
    "s LIKE 'ab'": "s = 'ab'",
    "s LIKE '%ab'": "",
    "s LIKE 'a_b%'": "",
    "s LIKE 'ab%' ESCAPE 'a'": "",
    "s NOT LIKE 'ab%'": "",
    "NOT s LIKE 'ab%'": "",
    "NOT s NOT LIKE 'ab%'": "s LIKE 'ab%'",
    "s NOT LIKE 'ab'": "",
    "s NOT LIKE 'ab%' ESCAPE 'a'": "",
    "s NOT ILIKE 'ab%'": "",
    "s NOT LIKE ANY ('ab%')": "",
    "s NOT LIKE 'ab%' AND i = 1": "i = 1",
    "startswith(s, 'a_b')": "s LIKE 'a_b%'",
    "upper(s) = 'X'": "",
    "s COLLATE UTF8_LCASE = 'x'": "",
    "d >= DATE '2026-02-01'": "d >= DATE '2026-02-01'",
    "d >= CAST('2026-02-01' AS DATE)": "d >= DATE '2026-02-01'",
    "d >= '2026-02-01'": "d >= DATE '2026-02-01'",
    "d >= '2026-2-1'": "",
    "d >= '2026-02-30'": "",
    "d >= current_date()": "",
    "t < DATE '2026-02-01'": "t < TIMESTAMP_NTZ '2026-02-01 00:00:00'",
    "t < TIMESTAMP_NTZ '2026-02-01 10:00:00'": "t < TIMESTAMP_NTZ '2026-02-01 10:00:00'",
    "t < TIMESTAMP '2026-02-01 10:00:00'": "",
    "t < '2026-02-01'": "",
    "z < DATE '2026-02-01'": "",
    "f < 5": "",
    "1 = 2": "",
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_as_predicates(condition: str) -> None:
    try:
        root = shape(f"SELECT i FROM {{t}} WHERE {condition}", 1, {"t": COLUMNS}).root
    except Refused:
        assert CONDITIONS[condition] == ""
        return
    assert predicate_text(relevant(root, [COLUMNS])[0][0]) == CONDITIONS[condition]


def test_strings_are_left_out_where_escapes_may_mean_something_else() -> None:
    root = shape("SELECT i FROM {t} WHERE s = 'x' AND i = 1", 1, {"t": COLUMNS}).root
    assert predicate_text(relevant(root, [COLUMNS], strings=False)[0][0]) == "i = 1"


# --- metadata ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.proof
def test_what_metadata_calls_irrelevant_has_no_row_that_matters() -> None:
    connection = duckdb.connect()
    found = sum((round_of_trials(seed, connection) for seed in seeds(40)), Counts())
    assert found.wrong == []
    assert found.trials > 5000
    assert found.irrelevant > 0.4 * found.none_meets


def file_of_month(month: int) -> Any:
    return file_of_partition("d", "month", month)


def file_of_partition(column: str, transform: str, value: int) -> Any:
    """No statistics, and a partition."""
    spec = [{"source-id": IDS[column], "field-id": 1000, "name": "old_name", "transform": transform}]
    data = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path="f",
        file_format=FileFormat.PARQUET,
        partition=Record(value),
        record_count=1,
        file_size_in_bytes=1,
    )
    entry = FileEntry(ManifestEntry.from_args(data_file=data), b"", Header({"partition-spec": json.dumps(spec)}, SCHEMA, 0))
    return change(Random(1), File([], entry))


def test_a_partition_tells_without_statistics() -> None:
    march_2024 = file_of_month(650)
    assert may_match(march_2024, conjunctions("d >= DATE '2024-03-31'"))
    assert not may_match(march_2024, conjunctions("d >= DATE '2024-04-01'"))
    assert not may_match(march_2024, conjunctions("d < '2024-03-01'"))
    assert may_match(march_2024, conjunctions("d < '2024-03-01' OR i = 1"))


def test_partitions_of_times_before_1970_may_be_one_too_high() -> None:
    december_1969 = file_of_month(0)
    assert may_match(december_1969, conjunctions("d < DATE '1970-01-01'"))
    assert may_match(december_1969, conjunctions("d = DATE '1969-12-05'"))
    assert not may_match(december_1969, conjunctions("d >= DATE '1970-02-01'"))


def test_a_truncated_value_below_its_type_tells_nothing() -> None:
    for partition in (-(2**31) - 2, 2**31 - 2):
        lowest = file_of_partition("i", "truncate[10]", partition)
        assert may_match(lowest, conjunctions("i = -2147483648"))
        assert may_match(lowest, conjunctions("i < 0"))
    assert not may_match(file_of_partition("i", "truncate[10]", 20), conjunctions("i = -2147483648"))
    assert not may_match(file_of_partition("i", "truncate[10]", 20), conjunctions("i < 20"))
