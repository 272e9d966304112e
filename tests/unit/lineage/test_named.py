"""A data test, partition_by or sort_by on a missing column: reported where it was written, before anything is computed."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mvbuild.adapters.iceberg.layout import _source
from mvbuild.cli.main import group
from mvbuild.lineage.layout_types import mistyped_in_layout
from mvbuild.lineage.model import Column
from mvbuild.ports.catalog import CatalogError
from unit.worlds import Shop, compiled, shop

LOCK = "version: 1\ntables:\n  raw.orders:\n    columns:\n      id: bigint\n"
STAR = "SELECT * FROM raw.orders\n"
WRITTEN = "SELECT id FROM raw.orders\n"
TEST = "models: [{name: m, columns: [{name: idd, data_tests: [unique]}]}]\n"
CASES = {
    "a test": ({"models/m.yml": TEST}, "unknown-column", "models/m.yml:1:55"),
    "a test of the whole": (
        {"models/m.yml": "models: [{name: m, data_tests: [{not_null: {column_name: idd}}]}]\n"},
        "unknown-column",
        "models/m.yml:1:34",
    ),
    "the other side of relationships": (
        {
            "models/o.sql": WRITTEN,
            "models/m.yml": "models: [{name: m, columns: [{name: id, data_tests: [{relationships: {to: ref('o'), field: oid}}]}]}]\n",
        },
        "unknown-column",
        "models/m.yml:1:92",
    ),
    "partition_by": ({"models/m.yml": "models: [{name: m, config: {partition_by: [day(idd)]}}]\n"}, "bad-config", "models/m.yml:1:43"),
    "sort_by": ({"models/m.yml": "models: [{name: m, config: {sort_by: idd}}]\n"}, "bad-config", "models/m.yml:1:38"),
    "partition_by of another type": (
        {"models/m.yml": "models: [{name: m, config: {partition_by: [month(id)]}}]\n"},
        "bad-config",
        "models/m.yml:1:43",
    ),
    "partition_by of a folder": ({"mvbuild.yml": "name: shop\nmodels: {+partition_by: idd}\n"}, "bad-config", "mvbuild.yml:2:25"),
}


def call(of: Shop, *arguments: str) -> Result:
    return CliRunner().invoke(group, [*arguments, "--project-dir", str(of.root)], standalone_mode=False)


def project(root: Path, case: str, sql: str) -> Shop:
    return shop(root, {"mvbuild.yml": "name: shop\n", "models/m.sql": sql, **CASES[case][0]})


@pytest.mark.parametrize("command", ["compile", "lint"])
@pytest.mark.parametrize("known", ["by the lock", "by the query"])
@pytest.mark.parametrize("case", CASES)
def test_without_a_catalog(case: str, known: str, command: str, tmp_path: Path) -> None:
    _, code, place = CASES[case]
    of = project(tmp_path, case, STAR if known == "by the lock" else WRITTEN)
    if known == "by the lock" or "type" in case:  # A query does not say the types of its tables.
        of.write({"schemas.lock": LOCK})
    for _ in range(2):
        done = call(of, command)
        assert done.return_value == 2, done.output
        assert f"error[{code}]" in done.stderr
        assert f"--> {place}\n" in done.stderr


READERS = {
    "a model": ("SELECT id, amont FROM {{ ref('m') }}", "5:12", "Did you mean 'amount'?"),
    "a CTE": ("WITH o AS (SELECT * FROM {{ ref('m') }}), f AS (SELECT id, amont FROM o) SELECT * FROM f", "5:60", "Did you mean 'amount'?"),
    "a model and a seed": ("SELECT m.id, z.nam FROM {{ ref('m') }} m JOIN {{ ref('z') }} z ON z.id = m.id", "5:16", "Did you mean 'name'?"),
    "a model by its alias": ("SELECT x.Id FROM {{ ref('m') }} AS x WHERE x.ammount > 1", "5:46", "Did you mean 'amount'?"),
}


@pytest.mark.parametrize("command", [["compile"], ["lint"], ["run", "--dry-run"]])
@pytest.mark.parametrize("case", READERS)
def test_a_column_that_models_do_not_have_is_found_without_schemas(case: str, command: list[str], tmp_path: Path) -> None:
    sql, place, help = READERS[case]
    files = {"models/m.sql": "SELECT id, amount FROM raw.orders\n", "seeds/z.csv": "id,name\n1,a\n", "models/n.sql": "\n" * 4 + sql + "\n"}
    of = shop(tmp_path, {"mvbuild.yml": "name: shop\n", **files})
    done = call(of, *command)
    assert "error[unknown-column]" in done.stderr
    assert f"--> models/n.sql:{place}\n" in done.stderr
    assert help in done.stderr
    of.write({"models/m.sql": "SELECT id, amount, amount AS amont, amount AS ammount FROM raw.orders\n", "seeds/z.csv": "id,nam\n1,a\n"})
    assert call(of, "compile").return_value == 0
    of.write({"models/m.sql": "SELECT id, amount FROM raw.orders\n", "seeds/z.csv": "id,name\n1,a\n"})
    assert call(of, "compile").return_value == 2


RIGHT = [
    "SELECT window.start AS st, count(*) AS n FROM {{ ref('m') }} GROUP BY window(ts, '1 day')",
    "SELECT id, window FROM {{ ref('m') }} GROUP BY id, window(ts, '1 day')",
    "SELECT session_window.start AS st FROM {{ ref('m') }} GROUP BY session_window(ts, '5 minutes')",
    "SELECT a, f FROM (SELECT CAST(id AS BIGINT) AS a, s.f FROM {{ ref('m') }})",
    "SELECT id, f FROM (SELECT CAST(id AS BIGINT), s.f FROM {{ ref('m') }})",
    "WITH c AS (SELECT id, upper(name), s.f FROM {{ ref('m') }}) SELECT id, f, `upper(name)` AS n FROM c",
    "SELECT q.`(id + 1)` AS i FROM (SELECT id + 1 FROM {{ ref('m') }}) AS q",
    "SELECT f FROM (SELECT (s).f FROM {{ ref('m') }})",
    "SELECT id, value, col FROM {{ ref('m') }} LATERAL VIEW explode(array(id)) x AS value LATERAL VIEW explode(array(id))",
    "WITH c AS (SELECT id, name FROM {{ ref('m') }}) SELECT * FROM c AS e(p, q) WHERE p > 1",
    "SELECT o.id FROM {{ ref('m') }} o WHERE EXISTS (SELECT 1 FROM {{ ref('m') }} i WHERE i.id = o.id AND name = o.name)",
]


@pytest.mark.parametrize("sql", RIGHT)
def test_names_that_only_spark_gives_are_not_called_unknown(sql: str, tmp_path: Path) -> None:
    given = "SELECT id, upper(n) AS name, named_struct('f', id) AS s, TIMESTAMP '2024-01-01' AS ts FROM raw.orders\n"
    of = shop(tmp_path, {"mvbuild.yml": "name: shop\n", "models/m.sql": given, "models/n.sql": f"{sql}\n"})
    done = call(of, "compile")
    assert done.return_value == 0, done.stderr


def test_columns_that_the_alias_of_a_table_renames(tmp_path: Path) -> None:
    """They are those that settings and tests may name."""
    files = {
        "models/m.sql": "WITH c AS (SELECT id, id AS b FROM raw.orders) SELECT * FROM c AS e(p, q)\n",
        "models/m.yml": "models: [{name: m, config: {partition_by: p}, columns: [{name: q, data_tests: [unique]}]}]\n",
    }
    assert call(shop(tmp_path, {"mvbuild.yml": "name: shop\n", **files}), "compile").return_value == 0


def test_a_column_of_a_table_that_is_not_known_is_not_judged(tmp_path: Path) -> None:
    files = {
        "models/m.sql": "SELECT id, amount FROM raw.orders\n",
        "models/star.sql": "SELECT * FROM raw.orders\n",
        "models/n.sql": "SELECT m.id, price FROM {{ ref('m') }} m JOIN raw.lines ON m.id = line\n",
        "models/o.sql": "SELECT m.id, price FROM {{ ref('m') }} m JOIN {{ ref('star') }} s ON m.id = s.line\n",
        "models/p.sql": "SELECT pos, col, _file FROM {{ ref('m') }} LATERAL VIEW posexplode(sequence(1, amount))\n",
    }
    of = shop(tmp_path, {"mvbuild.yml": "name: shop\n", **files})
    assert call(of, "compile").return_value == 0


@pytest.mark.parametrize("case", CASES)
def test_a_plan_blocks_the_model_by_what_the_catalog_has(case: str, tmp_path: Path) -> None:
    _, code, place = CASES[case]
    of = project(tmp_path, case, STAR).write({"models/other.sql": "{{ config(partition_by=[]) }}\n" + WRITTEN})
    (step,) = (s for s in of.plan().steps if s.node == "model.shop.m")
    assert step.diagnostic is not None
    assert (step.action, step.diagnostic.code, str(step.diagnostic.span)) == ("blocked", code, place)
    of.run("m")
    assert of.engine.executed == []
    if "folder" not in case:
        assert of.statuses("other") == {"other": "success"}


@pytest.mark.parametrize("case", [case for case in CASES if "other side" not in case])
def test_where_only_the_engine_knows_the_columns_nothing_is_computed(case: str, tmp_path: Path) -> None:
    of = project(tmp_path, case, "SELECT inline(s) FROM raw.orders\n")
    assert {s.node.rpartition(".")[2]: s.action for s in of.plan("m").steps} == {"m": "refresh"}
    (result,) = of.run("m").results
    assert [d.code for d in result.diagnostics] == [CASES[case][1]]
    assert of.engine.executed == []


def test_what_is_right_is_not_called_wrong(tmp_path: Path) -> None:
    files = {
        "mvbuild.yml": "name: shop\n",
        "schemas.lock": LOCK,
        "models/m.sql": "SELECT ID, id AS Other FROM raw.orders\n",
        "models/o.sql": "SELECT * FROM {{ ref('m') }}\n",
        "models/m.yml": (
            "models:\n- {name: m, config: {partition_by: ID, sort_by: OTHER}, columns: [{name: Id, data_tests: [unique]}]}\n"
            "- {name: o, columns: [{name: OTHER, data_tests: [{relationships: {to: ref('m'), field: iD}}]}]}\n"
        ),
    }
    of = shop(tmp_path, files)
    assert call(of, "compile").return_value == 0
    assert call(of, "lint").return_value == 0


def test_a_test_of_a_plain_view_gates_nothing_and_is_wrong_all_the_same(tmp_path: Path) -> None:
    files = {
        "mvbuild.yml": "name: shop\n",
        "models/m.sql": WRITTEN,
        "models/v.sql": "{{ config(materialized='view') }}\nSELECT id FROM {{ ref('m') }}\n",
        "models/v.yml": TEST.replace("name: m", "name: v"),
    }
    of = shop(tmp_path, files)
    assert of.actions() == {"m": "refresh", "v": "create"}
    assert call(of, "compile").return_value == 2


def test_a_test_that_compares_two_mvs_blocks_both(tmp_path: Path) -> None:
    of = project(tmp_path, "the other side of relationships", WRITTEN)
    assert of.actions() == {"m": "blocked", "o": "blocked"}


@pytest.mark.parametrize("kind", ["materialized_view", "view"])
def test_a_column_twice(kind: str, tmp_path: Path) -> None:
    of = shop(
        tmp_path,
        {"mvbuild.yml": f"name: shop\nmodels: {{+materialized: {kind}}}\n", "models/m.sql": "SELECT id,\n  1 AS Id FROM raw.orders\n"},
    )
    done = call(of, "compile")
    assert "error[duplicate-column]: 'm' has two columns named 'Id'\n  --> models/m.sql:2:8\n" in done.stderr
    of.write({"mvbuild.yml": "name: shop\ntargets: {dev: {spark: {config: {spark.sql.caseSensitive: true}}}}\n"})
    assert "duplicate-column" in call(of, "compile").stderr, "neither Spark nor Iceberg writes such a table"
    assert call(of, "lint").stderr.count("error[duplicate-column]") == 1
    of.write({"mvbuild.yml": "name: shop\nmodels: {+materialized: ephemeral}\n"})
    assert call(of, "compile").return_value == 0


def test_lint_reports_a_column_that_two_tables_behind_a_star_have(tmp_path: Path) -> None:
    files = {
        "mvbuild.yml": "name: shop\nmodels: {+materialized: view}\n",
        "models/a.sql": "SELECT 1 AS id, 2 AS name\n",
        "models/b.sql": "SELECT 1 AS id, 3 AS name\n",
        "models/m.sql": "SELECT * FROM {{ ref('a') }} JOIN {{ ref('b') }} USING (id)\n",
    }
    of = shop(tmp_path, files)
    done = call(of, "lint")
    assert done.return_value == 2
    assert "error[duplicate-column]: 'm' has two columns named 'name'\n  --> models/m.sql:1:" in done.stderr
    assert call(of, "lint", "--select", "a").return_value != 2
    of.write({"mvbuild.yml": "name: shop\nmodels: {+materialized: ephemeral}\n"})
    assert call(of, "lint").return_value != 2


TYPES = ("boolean", "int", "bigint", "float", "double", "decimal(9,2)", "date", "timestamp", "timestamp_ntz", "string", "binary")
NESTED = ("array<int>", "map<string,int>", "struct<a:int>")
FORMS = ("c", "year(c)", "month(c)", "day(c)", "hour(c)", "truncate(4, c)", "bucket(4, c)")


@pytest.mark.parametrize("form", FORMS)
def test_the_types_of_partitions_are_those_that_the_catalog_takes(form: str, tmp_path: Path) -> None:
    columns = [Column("c", type_) for type_ in (*TYPES, *NESTED)]
    graph = compiled(tmp_path, {"mvbuild.yml": "name: shop\n", "models/m.sql": f"{{{{ config(partition_by=['{form}']) }}}}\n{WRITTEN}"})
    node = graph.model("model.shop.m")
    refused = [column.type for column in columns if [*mistyped_in_layout(node, [column])]]
    iceberg = {"bigint": "long", "timestamp": "timestamptz", "timestamp_ntz": "timestamp"}
    by_the_catalog = []
    for type_ in TYPES:
        fields = [{"id": 1, "name": "c", "type": iceberg.get(type_, type_)}]
        (field,) = node.model.config.partition_by
        transform = field.transform if field.width is None else f"{field.transform}[{field.width}]"
        try:
            _source({"schemas": [{"schema-id": 0, "fields": fields}], "current-schema-id": 0}, "c", transform)
        except CatalogError:
            by_the_catalog.append(type_)
    assert refused == [*by_the_catalog, *NESTED]


def test_a_type_that_is_not_known_is_not_called_wrong(tmp_path: Path) -> None:
    graph = compiled(
        tmp_path, {"mvbuild.yml": "name: shop\n", "models/m.sql": f"{{{{ config(partition_by=['month(c)'], sort_by=['c']) }}}}\n{WRITTEN}"}
    )
    node = graph.model("model.shop.m")
    assert not [*mistyped_in_layout(node, [Column("c"), Column("d", "string")])]
    assert not [*mistyped_in_layout(node, [Column("c", "variant")])]
    (found,) = mistyped_in_layout(node, [Column("c", "string")])
    assert found.message == "partition_by of 'm' has 'month(c)', which needs a date or a timestamp, but column 'c' is string"
    assert [d.message for d in mistyped_in_layout(node, [Column("c", "map<string,int>")])][1:] == [
        "sort_by of 'm' names column 'c', which is map<string,int>"
    ]
