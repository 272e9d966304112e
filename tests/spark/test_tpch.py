"""The 22 queries of TPC-H as MVs -> the rows that Spark gives for each, and the tables that its analyzer finds in each."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))

from refreshed import differs

from mvbuild import api
from mvbuild.graph.model import Graph
from mvbuild.refresh.result import RunResult
from spark.projects import Project, bag, messages, of, session_on
from spark.shop import MakeProject

pytestmark = pytest.mark.proof

QUERIES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(Path(__file__, "..", "tpch").resolve().glob("*.sql"))}
TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
SOURCES = f"sources: [{{name: tpch, namespace: main, tables: [{', '.join(f'{{name: {t}}}' for t in TABLES)}]}}]\n"
NO_ROWS_AT_THIS_SCALE = {"q02", "q18", "q19", "q20"}
"""So few rows that a filter as narrow as theirs may leave none."""


@pytest.fixture(scope="module")
def tpch(project: MakeProject, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The eight tables, and a project that reads them by their plain names."""
    data = tmp_path_factory.mktemp("tpch")
    generator = Path(sysconfig.get_path("scripts"), "tpchgen-cli")
    subprocess.run([generator, "parquet", "-s", "0.01", "--quiet", "--output-dir", data], check=True)
    made = project({"mvbuild.yml": "name: tpch\n", **{f"models/{name}.sql": sql for name, sql in QUERIES.items()}})
    for table in TABLES:
        made.make(f"main.{table}", read(data / f"{table}.parquet"))
    return made


@pytest.fixture(scope="module")
def graph(tpch: Project) -> Graph:
    return api.compile(tpch.root)


@pytest.fixture(scope="module")
def first(tpch: Project) -> RunResult:
    result = tpch.run(threads=4)
    assert result.ok, messages(result)
    return result


@pytest.fixture(scope="module")
def spark(tpch: Project) -> Any:
    """A session in which the queries can be run as they are written."""
    session = session_on(tpch.spark, tpch.root)
    session.sql("USE lake.main")
    return session


def read(path: Path) -> pa.Table:
    """Iceberg's Python writer knows no string views, and gives its own ids to the columns."""
    found = pq.read_table(path)
    types = [pa.string() if f.type == pa.string_view() else f.type for f in found.schema]
    return found.cast(pa.schema([pa.field(f.name, t, f.nullable) for f, t in zip(found.schema, types, strict=True)]))


def test_all_22_queries_are_there() -> None:
    assert list(QUERIES) == [f"q{n:02}" for n in range(1, 23)]


def test_the_base_tables_have_the_types_of_tpch(tpch: Project) -> None:
    columns = {f.name: str(f.field_type) for t in TABLES for f in tpch.table(f"main.{t}").schema().fields}
    assert len(columns) == 61
    assert {t for name, t in columns.items() if name.endswith("date")} == {"date"}
    assert {t for name, t in columns.items() if re.search("price|cost|bal$|tax|discount|quantity", name)} == {"decimal(15, 2)"}
    assert tpch.arrow("main.lineitem").num_rows == 60_175


@pytest.mark.parametrize("name", QUERIES)
def test_the_storage_has_the_rows_of_the_query(name: str, tpch: Project, first: RunResult, spark: Any) -> None:
    wanted = spark.sql(QUERIES[name])
    stored = spark.table(f"{name}__storage")
    assert [(f.name, f.dataType) for f in stored.schema] == [(f.name, f.dataType) for f in wanted.schema]
    assert {f.dataType.typeName() for f in wanted.schema} <= {"string", "long", "integer", "decimal", "date"}, "no floats: exact rows"
    rows = bag(wanted.collect())
    assert bag(stored.collect()) == rows
    assert rows or name in NO_ROWS_AT_THIS_SCALE
    assert of(first, name).details["rows"] == rows.total()


@pytest.mark.parametrize("name", QUERIES)
def test_the_tables_found_are_those_that_spark_finds(name: str, graph: Graph, spark: Any) -> None:
    found = analyzed_tables(spark.sql(QUERIES[name]))
    assert found <= {f"lake.main.{t}" for t in TABLES}
    assert {str(graph.nodes[read].identifier) for read in graph.model(f"model.tpch.{name}").reads} == found


def analyzed_tables(frame: Any) -> set[str]:
    """The names of the relations in Spark's analyzed plan, subqueries included."""
    plan = frame._jdf.queryExecution().analyzed()
    plans = [plan, *in_sequence(plan.subqueriesAll())]
    leaves = [leaf for p in plans for leaf in in_sequence(p.collectLeaves())]
    return {leaf.table().name() for leaf in leaves if leaf.nodeName() == "DataSourceV2Relation"}


def in_sequence(scala: Any) -> list[Any]:
    return [scala.apply(i) for i in range(scala.size())]


def test_a_second_run_has_nothing_to_do(tpch: Project, first: RunResult) -> None:
    statuses = tpch.statuses()
    assert statuses == dict.fromkeys(QUERIES, "reused")
    assert tpch.only_reused()
    tpch.assert_tidy()


def with_sources(clause: re.Match[str]) -> str:
    return re.sub(rf"\b({'|'.join(TABLES)})\b", r"{{ source('tpch', '\1') }}", clause[0])


def test_sources_in_place_of_names_mean_the_same_definitions(tpch: Project, graph: Graph, first: RunResult) -> None:
    """With `source()` everywhere the tables are the same, and so are the views' definitions: nothing is refreshed."""
    rewritten = {f"models/{name}.sql": re.sub(r"\bFROM .*", with_sources, sql) for name, sql in QUERIES.items()}
    assert sum(text.count("source(") for text in rewritten.values()) == sum(len(m.reads) for m in graph.models) == 86
    tpch.write({**rewritten, "models/sources.yml": SOURCES})
    assert {r for m in api.compile(tpch.root).models for r in m.reads} == {f"source.tpch.tpch.{t}" for t in TABLES}
    assert tpch.only_reused()


def test_the_benchmarks_see_a_storage_that_is_wrong(project: MakeProject) -> None:
    """They compare the storage: the MV's own name is a view, which is always right."""
    made = project({"mvbuild.yml": "name: one\n", "models/one.sql": "SELECT id, id / 2 AS half, array(id) AS ids FROM main.t\n"})
    made.sql("CREATE TABLE lake.main.t AS SELECT id FROM range(5)")
    assert made.run().ok
    sql = "SELECT id, id / 2, array(id) FROM lake.main.t"
    assert not differs(made, "one", sql)
    made.sql("DELETE FROM lake.main.one__storage WHERE id = 3")
    assert differs(made, "one", sql)
