"""Spark SQL that sqlglot alone does not parse -> the tables that it reads. Spark parses each of these."""

from __future__ import annotations

import pytest

from mvbuild.parse.sql import parse_query, tree_of
from mvbuild.source import MappedText, SourceFile

STATEMENTS = {
    "SELECT window(ts, '1 hour') AS w, count(*) FROM raw.a GROUP BY window(ts, '1 hour')": ["raw.a"],
    "SELECT WINDOW (ts, '1 hour', '5 minutes').start FROM raw.a GROUP BY ALL": ["raw.a"],
    "SELECT count(*) FROM raw.a GROUP BY window(ts, '1 hour'), b HAVING count(*) > 1 ORDER BY window(ts, '1 hour').end": ["raw.a"],
    "SELECT window(b, '1 day'), sum(c) OVER w FROM raw.a JOIN raw.b USING (id) WINDOW w AS (PARTITION BY d)": ["raw.a", "raw.b"],
    "SELECT a >>> 2, cast(b AS array<array<array<int>>>) >>> c FROM raw.a": ["raw.a"],
    "SELECT X 'F0', x.id FROM raw.x AS x WHERE b = x\t'0A'": ["raw.x"],
    "WITH RECURSIVE r(n) MAX RECURSION LEVEL 9 AS (SELECT id FROM raw.a UNION ALL SELECT n + 1 FROM r) SELECT * FROM r": ["raw.a"],
    "SELECT * FROM f(TABLE(raw.a) PARTITION BY (b, c) ORDER BY d DESC) JOIN raw.b": ["raw.a", "raw.b"],
    "SELECT * FROM f(1, TABLE(raw.a) WITH SINGLE PARTITION), raw.b": ["raw.a", "raw.b"],
    "SELECT CAST(g AS GEOGRAPHY(ANY)), g::GEOMETRY(ANY) FROM raw.a": ["raw.a"],
}


@pytest.mark.parametrize("sql", STATEMENTS)
def test_the_tables_are_found(sql: str) -> None:
    query, problems = parse_query(MappedText.of(SourceFile("m.sql", sql)))
    assert not problems
    assert query is not None
    assert [".".join(read.parts) for read in query.reads] == STATEMENTS[sql]
    assert [sql[read.start : read.end] for read in query.reads] == STATEMENTS[sql]
    assert tree_of(query)


def test_a_subquery_in_what_is_left_out_is_not_passed_over() -> None:
    sql = "SELECT * FROM f(TABLE(raw.a) PARTITION BY (SELECT max(b) FROM raw.b))"
    query, problems = parse_query(MappedText.of(SourceFile("m.sql", sql)))
    assert problems or (query is not None and len(query.reads) == 2)
