"""definitions + `dialects:` + the known types -> the view's SQL for other engines, or a diagnostic at the expression."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from mvbuild.api.compilation import compile
from mvbuild.diagnostics import ProjectError
from mvbuild.dialects.proven import Proof, Proofs, proofs
from mvbuild.dialects.representations import DIALECTS, Known, representations
from mvbuild.dialects.translation import Translation, translate
from mvbuild.lineage.model import Column
from mvbuild.lineage.schemas import Schemas, TableColumns
from mvbuild.lineage.statement import Input
from mvbuild.parse.sql import parse_query
from mvbuild.source import MappedText, SourceFile
from unit.worlds import compiled

COLUMNS = {
    "i": "int",
    "j": "int",
    "l": "bigint",
    "d": "decimal(10,2)",
    "wide": "decimal(38,10)",
    "x": "double",
    "f": "float",
    "s": "string",
    "u": "string",
    "day": "date",
    "z": "timestamp",
    "n": "timestamp_ntz",
    "b": "boolean",
    "st": "struct<a:int>",
    "`order`": "int",
    "tags": "array<string>",
}
LOCK = "version: 1\ntables:\n  raw.t:\n    columns:\n" + "".join(f"      {name.strip('`')}: {type_}\n" for name, type_ in COLUMNS.items())


def said(sql: str, columns: Mapping[str, str] = COLUMNS, proven: Proofs | None = None) -> Translation:
    query, wrong = parse_query(MappedText.of(SourceFile("m.sql", sql)))
    assert query is not None, wrong
    known = tuple(Column(name.strip("`"), type_) for name, type_ in columns.items())
    inputs = [Input(columns=known, complete=bool(columns), spellings=(tuple(read.parts),)) for read in query.reads]
    return translate(query, inputs, "lake", proven or proofs("trino"))


def written(expression: str) -> str:
    """Of one column `r`, without what is around each definition."""
    found = said(f"SELECT {expression} AS r FROM lake.raw.t")
    assert found.sql is not None, [*found.refusals, *found.unknown]
    start, end = found.sql.index("FROM (SELECT ") + 13, found.sql.rindex(' AS "r" FROM "raw"."t")')
    return found.sql[start:end]


WRITTEN = [
    ("i", '"i"'),
    ("`order`", '"order"'),
    ("raw.t.i", '"raw"."t"."i"'),
    ("i + l", 'CAST("i" AS BIGINT) + "l"'),
    ("d * 2", 'CAST("d" * CAST(2 AS DECIMAL(1, 0)) AS DECIMAL(12, 2))'),
    ("l / nullif(l, 0)", 'CAST("l" AS DOUBLE) / CAST(NULLIF("l", CAST(0 AS BIGINT)) AS DOUBLE)'),
    ("sum(d)", 'CAST(SUM("d") AS DECIMAL(20, 2))'),
    ("sum(i)", 'SUM("i")'),
    ("count(*)", "COUNT(*)"),
    ("length(s)", 'CAST(LENGTH("s") AS INTEGER)'),
    ("extract(YEAR FROM day)", 'CAST(EXTRACT(YEAR FROM "day") AS INTEGER)'),
    ("rank() OVER (PARTITION BY s ORDER BY i)", 'CAST(RANK() OVER (PARTITION BY "s" ORDER BY "i" NULLS FIRST) AS INTEGER)'),
    ("CASE WHEN b THEN l ELSE 0 END", 'CASE WHEN "b" THEN "l" ELSE CAST(0 AS BIGINT) END'),
    ("coalesce(l, 0)", 'COALESCE("l", CAST(0 AS BIGINT))'),
    ("day > DATE '2024-02-29'", "\"day\" > CAST('2024-02-29' AS DATE)"),
    ("n", '"n"'),
    ("CAST(i AS STRING)", 'CAST("i" AS VARCHAR)'),
    ("CAST(i AS INT)", 'CAST("i" AS INTEGER)'),
    ("CAST(NULL AS DATE)", "CAST(NULL AS DATE)"),
    ("s LIKE 'a%'", "\"s\" LIKE 'a%'"),
    ("s = 'it\\'s'", "\"s\" = 'it''s'"),
    ("i IN (1, NULL)", '"i" IN (1, NULL)'),
    ("substring(s, 1, 3)", 'SUBSTR("s", 1, 3)'),
    ("i IS NOT NULL AND NOT b", 'NOT "i" IS NULL AND NOT "b"'),
]


@pytest.mark.parametrize(("expression", "expected"), WRITTEN)
def test_a_proven_expression_is_written_with_casts_to_the_types_of_spark(expression: str, expected: str) -> None:
    assert written(expression) == expected


REFUSED = [
    # Other rows in Trino.
    ("avg(d)", "avg(d)"),
    ("avg(l)", "avg(l)"),
    ("CAST(d AS BIGINT)", "CAST(d"),
    ("CAST(x AS INT)", "CAST(x"),
    ("CAST(n AS STRING)", "CAST(n"),
    ("CAST(z AS STRING)", "CAST(z"),
    ("CAST(x AS STRING)", "CAST(x"),
    ("CAST(s AS INT)", "CAST(s"),
    ("substring(s, 0, 2)", "substring"),
    ("substring(s, -9, 2)", "substring"),
    ("substring(s, i, 2)", "substring"),
    ("s LIKE 'a\\\\%'", "'a\\\\%'"),
    ("s LIKE u", "s LIKE u"),
    ("ln(0)", "ln"),
    ("ln(x)", "ln"),
    ("trim(s)", "trim"),
    ("x > 1.5", "x > 1.5"),
    ("x = x", "x = x"),
    ("f = 0.1", "f = 0.1"),
    ("upper(s)", "upper"),
    ("lower(s)", "lower"),
    ("TRY_CAST('yes' AS BOOLEAN)", "TRY_CAST('yes'"),
    ("approx_count_distinct(i)", "approx_count_distinct"),
    ("percentile_approx(x, 0.5)", "percentile_approx"),
    ("CAST(z AS DATE)", "CAST(z"),
    ("hour(z)", "hour"),
    ("z > TIMESTAMP '2024-01-01 00:00:00'", "TIMESTAMP '2024-01-01 00:00:00'"),
    ("date_trunc('DAY', z)", "date_trunc"),
    ("current_date()", "current_date"),
    ("current_timestamp()", "current_timestamp"),
    ("i / j", "i / j"),
    ("x / f", "x / f"),
    ("d / d", "d / d"),
    ("wide * wide", "wide * wide"),
    ("sum(x)", "sum"),
    ("row_number() OVER (ORDER BY i)", "row_number"),
    ("lag(i) OVER (ORDER BY j)", "lag"),
    ("sum(i) OVER (ORDER BY j ROWS 3 PRECEDING)", "3"),
    ("greatest(i, j)", "greatest"),
    ("least(i, j)", "least"),
    ("tags[0]", "tags"),
    ("element_at(tags, 1)", "element_at"),
    ("s || i", "s || i"),
    ("day = '2024-02-29'", "day = '2024-02-29'"),
    ("s = 1", "s = 1"),
    ("day > z", "day > z"),
    ("'a''b'", "'a'"),
    ("s = '${cut}'", "'${cut}'"),
    ("st.a", "st.a"),
    ("b IS TRUE", "b"),
    ("replace(s, '', 'x')", "replace"),
    ("(SELECT max(i) FROM lake.raw.t)", "max(i) FROM lake.raw.t"),
    ("my_udf(i)", "my_udf"),
    ("first(i)", "first"),
    ("collect_list(i)", "collect_list"),
    ("CAST(i AS SMALLINT)", "CAST(i"),
    ("_file", "_file"),
]


@pytest.mark.parametrize(("expression", "at"), REFUSED)
def test_what_is_not_proven_is_refused_where_it_was_written(expression: str, at: str) -> None:
    sql = f"SELECT s, {expression} AS r FROM lake.raw.t"
    found = said(sql)
    assert found.sql is None
    assert found.refusals, found.unknown
    assert any(sql[r.start :].startswith(at) for r in found.refusals), [(r.what, sql[r.start : r.end]) for r in found.refusals]


CLAUSES = [
    ("SELECT i FROM lake.raw.t LIMIT 2", "LIMIT"),
    ("SELECT * FROM lake.raw.t", "`*` of a table"),
    ("SELECT * EXCEPT (i) FROM lake.raw.t", "EXCEPT"),
    ("SELECT i + 1 AS k, k + 1 AS m FROM lake.raw.t", "'k', a name that the SELECT list gives"),
    ("SELECT i + 1 AS k, count(*) AS c FROM lake.raw.t GROUP BY k", "'k', a name that the SELECT list gives"),
    ("SELECT i, count(*) AS c FROM lake.raw.t GROUP BY i HAVING c > 1", "'c', a name that the SELECT list gives"),
    ("SELECT i, count(*) AS c FROM lake.raw.t GROUP BY ALL", "GROUP BY ALL"),
    ("SELECT i, count(*) AS c FROM lake.raw.t GROUP BY ROLLUP (i)", "ROLLUP"),
    ("SELECT a.i FROM lake.raw.t AS a JOIN lake.raw.t AS b USING (i)", "USING"),
    ("SELECT a.i FROM lake.raw.t AS a NATURAL JOIN lake.raw.t AS b", "NATURAL"),
    ("SELECT a.i FROM lake.raw.t AS a LEFT ANTI JOIN lake.raw.t AS b ON a.i = b.i", "ANTI"),
    ("SELECT i FROM lake.raw.t UNION ALL SELECT l FROM lake.raw.t", "another type"),
    ("SELECT DISTINCT x FROM lake.raw.t", "DISTINCT double"),
    ("SELECT x, count(*) AS c FROM lake.raw.t GROUP BY x", "GROUP BY double"),
    ("SELECT i FROM lake.raw.t VERSION AS OF 12", "time travel"),
    ("SELECT i FROM lake.raw.daily.t", "nested namespaces"),
    ("SELECT i FROM other.raw.t", "another catalog"),
    ("SELECT explode(tags) AS e FROM lake.raw.t", "explode"),
    ("SELECT i, e FROM lake.raw.t LATERAL VIEW explode(tags) AS e", "LATERAL VIEW"),
    ("SELECT i FROM VALUES (1) AS v(i)", "VALUES"),
    ("SELECT i FROM lake.raw.t TABLESAMPLE (10 ROWS)", "TABLESAMPLE"),
    ("WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r) SELECT i FROM r", "RECURSIVE"),
    ("SELECT i IN (SELECT i FROM lake.raw.t) AS r FROM lake.raw.t", "int IN (query)"),
    ("SELECT rank() OVER w AS r FROM lake.raw.t WINDOW w AS (ORDER BY i)", "named windows"),
    ("SELECT i FROM lake.raw.t WHERE i = 1 OR x > 0", "double"),
    ("SELECT a.i FROM lake.raw.t AS a JOIN lake.raw.t AS b ON a.x = b.x", "double"),
    ("SELECT st FROM lake.raw.t WHERE st = st", "struct"),
    ("FROM lake.raw.t |> SELECT i", "this query"),
]


@pytest.mark.parametrize(("sql", "what"), CLAUSES)
def test_clauses_that_engines_read_differently_are_refused(sql: str, what: str) -> None:
    found = said(sql)
    assert found.sql is None
    assert any(what in r.what for r in found.refusals), found.refusals


def test_every_column_is_cast_to_the_type_that_the_view_declares() -> None:
    found = said("SELECT i, count(*) AS c, d, z, n, tags, st FROM lake.raw.t GROUP BY i, d, z, n, tags, st").refusals
    assert {r.what for r in found} == {"`GROUP BY array`", "`GROUP BY struct`"}
    sql = said("SELECT i, d, z, n, x FROM lake.raw.t").sql
    assert sql == (
        'SELECT CAST("i" AS INTEGER) AS "i", CAST("d" AS DECIMAL(10, 2)) AS "d", '
        'CAST("z" AS TIMESTAMP(6) WITH TIME ZONE) AS "z", CAST("n" AS TIMESTAMP(6)) AS "n", CAST("x" AS DOUBLE) AS "x" '
        'FROM (SELECT "i", "d", "z", "n", "x" FROM "raw"."t") AS "mv"("i", "d", "z", "n", "x")'
    )


def test_an_order_without_a_limit_is_left_out() -> None:
    assert "ORDER" not in str(said("SELECT i FROM lake.raw.t ORDER BY upper(s)").sql)


def test_ctes_joins_and_set_operations() -> None:
    found = said(
        "WITH a AS (SELECT i, count(*) AS c FROM lake.raw.t WHERE s = 'x' GROUP BY 1 HAVING count(*) > 2), k AS (SELECT * FROM a)\n"
        "SELECT k.i, t.l FROM k LEFT JOIN lake.raw.t AS t ON t.i = k.i AND t.day < DATE '2024-01-01'\n"
        "WHERE EXISTS (SELECT * FROM lake.raw.t AS e WHERE e.i = k.i) UNION ALL SELECT i, l FROM lake.raw.t"
    )
    assert found.refusals == ()
    assert found.sql is not None
    assert "GROUP BY 1 HAVING COUNT(*) > CAST(2 AS BIGINT)" in found.sql


def test_what_is_not_proven_for_its_types_alone_waits_for_the_types() -> None:
    """Without the columns of the table, it is unknown whether it is the sum of integers."""
    unknown = said("SELECT sum(i) AS r FROM lake.raw.t", {})
    assert (unknown.sql, unknown.refusals) == (None, ())
    assert unknown.unknown
    assert said("SELECT ln(i) AS r FROM lake.raw.t", {}).refusals


def test_a_signature_without_a_proof_is_refused_whatever_it_is() -> None:
    found = said("SELECT sum(i) AS r FROM lake.raw.t", proven=Proofs(version="", proven={"sum(bigint)": Proof(cast=False)}, differs={}))
    assert [r.what for r in found.refusals] == ["`sum(int)`"]


# A project


def files(sql: str, dialects: str, **more: str) -> dict[str, str]:
    yaml = f"models:\n  - name: m\n    config:\n      dialects: {dialects}\n"
    return {"mvbuild.yml": "name: shop\n", "models/m.sql": f"{sql}\n", "models/m.yml": yaml, **more}


def problems(root: Path, given: Mapping[str, str]) -> list[tuple[str, str]]:
    for name, text in given.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return [(d.code, str(d.span)) for d in compile(root).problems]


def test_without_a_lock_compile_refuses_what_no_type_makes_right(tmp_path: Path) -> None:
    sql = "SELECT\n  i,\n  ln(i) AS a,\n  sum(i) AS b\nFROM raw.t\nGROUP BY i"
    assert problems(tmp_path, files(sql, "[trino]")) == [("unsupported-dialect", "models/m.sql:3:3")]


def test_with_a_lock_compile_refuses_by_types(tmp_path: Path) -> None:
    sql = "SELECT\n  i,\n  avg(d) AS a,\n  sum(d) AS b,\n  sum(x) AS c\nFROM raw.t\nGROUP BY i"
    found = problems(tmp_path, files(sql, "[trino]", **{"schemas.lock": LOCK}))
    assert found == [("unsupported-dialect", "models/m.sql:3:3"), ("unsupported-dialect", "models/m.sql:5:3")]


def test_a_lock_that_changes_is_looked_at_again(tmp_path: Path) -> None:
    given = files("SELECT sum(i) AS b FROM raw.t", "[trino]", **{"schemas.lock": LOCK})
    assert problems(tmp_path, given) == []
    assert problems(tmp_path, {"schemas.lock": LOCK.replace("i: int", "i: double", 1)}) == [("unsupported-dialect", "models/m.sql:1:8")]


def test_what_an_ephemeral_model_says_is_refused_in_its_own_file(tmp_path: Path) -> None:
    below = {"models/below.sql": "{{ config(materialized='ephemeral') }}\nSELECT i, ln(i) AS a\nFROM raw.t\n"}
    assert problems(tmp_path, files("SELECT a FROM {{ ref('below') }}", "[trino]", **below)) == [
        ("unsupported-dialect", "models/below.sql:2:11")
    ]


def test_a_view_that_the_engine_cannot_read_is_refused_where_it_is_read(tmp_path: Path) -> None:
    below = {"models/below.sql": "SELECT i FROM raw.t\n"}
    given = files("SELECT i\nFROM {{ ref('below') }}", "[trino]", **below)
    assert problems(tmp_path, given) == [("unsupported-dialect", "models/m.sql:2:6")]
    assert problems(tmp_path, {"models/below.sql": "{{ config(dialects=['trino']) }}SELECT i FROM raw.t\n"}) == []


@pytest.mark.parametrize("dialect", sorted({*DIALECTS} - {"spark", "trino"}))
def test_a_definition_is_published_in_no_dialect_without_proofs(dialect: str, tmp_path: Path) -> None:
    given = files("SELECT i FROM raw.t", f"[{dialect}]")
    assert problems(tmp_path, given) == [("unsupported-dialect", "models/m.yml:4:17")]
    given["models/m.yml"] += "      catalog_view: storage\n"
    assert problems(tmp_path, given) == []
    graph = compiled(tmp_path)
    text = representations(graph, graph.model("model.shop.m"), ["a", "x y"], of_storage=True)[dialect]
    assert "m__storage" in text
    assert "lake" not in text


def test_a_dialect_that_does_not_exist(tmp_path: Path) -> None:
    assert problems(tmp_path, files("SELECT a FROM raw.t", "[tirno, oracle9]")) == [("bad-config", "models/m.yml:4:17")] * 2


def test_representations_by_what_the_catalog_has(tmp_path: Path) -> None:
    graph = compiled(tmp_path, files("SELECT r.i FROM raw.t r", "[trino, spark, Trino]"))
    node = graph.model("model.shop.m")
    columns = TableColumns(columns=(Column("i", "int"),))
    known = Known(schemas=Schemas(tables={("lake", "raw", "t"): columns}), is_all=True)
    assert representations(graph, node, ["i"], of_storage=False, known=known) == {
        "spark": "SELECT r.i FROM lake.raw.t r",
        "trino": 'SELECT CAST("i" AS INTEGER) AS "i" FROM (SELECT "r"."i" FROM "raw"."t" AS "r") AS "mv"("i")',
    }
    assert representations(graph, node, ["a", "x y"], of_storage=True) == {
        "spark": "SELECT a, `x y` FROM lake.main.m__storage",
        "trino": 'SELECT a, "x y" FROM main.m__storage',
    }
    odd = Known(schemas=Schemas(tables={("lake", "raw", "t"): TableColumns(columns=(Column("i", None),))}), is_all=True)
    with pytest.raises(ProjectError, match="types are not known"):
        representations(graph, node, ["i"], of_storage=False, known=odd)
