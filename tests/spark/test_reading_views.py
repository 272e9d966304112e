"""What mvbuild makes of views, names and versions that real queries use, and what Spark reads of the views that mvbuild wrote."""

from __future__ import annotations

import pytest

from spark.projects import Project, messages, named, of, order, orders
from spark.shop import MakeProject

pytestmark = pytest.mark.proof

YML = {"mvbuild.yml": "name: shop\nmodels: {mart: {+namespace: mart}}\n"}
TWO = orders((1, 1, "2026-01-05", "10.00"), (2, 2, "2026-01-06", "5.50"))


@pytest.fixture
def made(project: MakeProject) -> Project:
    built = project(YML)
    built.make("raw.orders", TWO)
    return built


def built(of_project: Project, files: dict[str, str]) -> Project:
    result = of_project.write(files).run()
    assert result.ok, messages(result)
    return of_project


def test_nested_views_views_over_mvs_and_ephemeral_models(made: Project) -> None:
    built(
        made,
        {
            "models/v1.sql": "{{ config(materialized='view') }}\nSELECT order_id AS id, amount FROM raw.orders\n",
            "models/v2.sql": "{{ config(materialized='view') }}\nSELECT id, amount * 2 AS twice FROM {{ ref('v1') }}\n",
            "models/e.sql": "{{ config(materialized='ephemeral') }}\nSELECT id, twice FROM v2 WHERE id > 0\n",
            "models/mart/m.sql": "SELECT id, twice FROM {{ ref('e') }}\n",
            "models/over.sql": "{{ config(materialized='view') }}\nSELECT sum(twice) AS total FROM {{ ref('m') }}\n",
            "models/mart/n.sql": "SELECT total + 1 AS t FROM {{ ref('over') }} CROSS JOIN e LIMIT 1\n",
        },
    )
    direct = made.bag("SELECT order_id, amount * 2 FROM lake.raw.orders")
    for name in ("main.v2", "mart.m", "mart.m__storage"):
        assert made.bag(f"SELECT * FROM lake.{name}") == direct
    assert made.bag("SELECT * FROM lake.main.over") == made.bag("SELECT sum(amount * 2) FROM lake.raw.orders")
    assert made.bag("SELECT * FROM lake.mart.n") == made.bag("SELECT * FROM lake.mart.n__storage")
    children = {made.view(v)["view-uuid"] for v in ("main.v1", "main.v2", "mart.m")}
    prefix = "iceberg.child.view.version."
    assert {k for k in made.table("mart.m__storage").properties if k.startswith(prefix)} == {prefix + c for c in children}
    assert made.only_reused()


def test_odd_names(made: Project) -> None:
    made.sql("CREATE TABLE lake.raw.`odd table` AS SELECT 1 AS `a b`, 2 AS `order`, 3 AS `größe`, 4 AS `x``y`, 5 AS `d.e`")
    built(
        made,
        {
            "models/mart/odd.sql": 'SELECT `a b`, `order`, `größe` AS `Maß, "quoted"`, `x``y`, `d.e`, `größe` FROM raw.`odd table`\n',
            "models/mart/odd2.sql": "SELECT o.`order` + 1 AS `select`, `Maß, \"quoted\"` AS m, `d.e` FROM {{ ref('odd') }} o\n",
        },
    )
    assert made.bag("SELECT * FROM lake.mart.odd") == made.bag("SELECT * FROM lake.mart.odd__storage")
    assert made.spark.table("lake.mart.odd").columns == ["a b", "order", 'Maß, "quoted"', "x`y", "d.e", "größe"]
    assert made.bag("SELECT * FROM lake.mart.odd2__storage") == made.bag("SELECT 3, 3, 5")
    assert made.only_reused()


def test_tables_without_alias_and_ctes_that_are_named_like_tables(made: Project) -> None:
    built(
        made,
        {
            "models/mart/a.sql": "SELECT orders.order_id, raw.orders.amount FROM raw.orders WHERE orders.amount > 1\n",
            "models/mart/b.sql": "WITH a AS (SELECT a.order_id FROM {{ ref('a') }} WHERE a.order_id = 1) SELECT a.order_id FROM a\n",
            "models/mart/c.sql": "WITH orders AS (SELECT * FROM raw.orders) SELECT orders.order_id, count(*) AS c FROM orders GROUP BY ALL\n",
            "models/mart/d.sql": "SELECT mart.a.order_id, a.amount FROM mart.a JOIN c ON a.order_id = c.order_id\n",
        },
    )
    for name in "abcd":
        assert made.bag(f"SELECT * FROM lake.mart.{name}") == made.bag(f"SELECT * FROM lake.mart.{name}__storage")
    assert made.only_reused()


def test_a_view_that_spark_made_is_a_child_view(made: Project) -> None:
    made.sql("USE lake.raw")
    made.sql("CREATE VIEW inner_view (id, amount) AS SELECT order_id, amount FROM orders")
    made.sql("USE spark_catalog.default")
    made.sql("CREATE NAMESPACE lake.other")
    made.sql("USE lake.raw")
    made.sql("CREATE VIEW lake.other.outer_view (a, b) AS SELECT id, amount + 1 FROM inner_view")
    built(made, {"models/mart/m.sql": "SELECT outer_view.a, b FROM other.outer_view\n"})
    assert made.bag("SELECT * FROM lake.mart.m__storage") == made.bag("SELECT order_id, amount + 1 FROM lake.raw.orders")
    inner, outer = made.view("raw.inner_view"), made.view("other.outer_view")
    recorded = {k: v for k, v in made.table("mart.m__storage").properties.items() if k.startswith("iceberg.child")}
    assert recorded == {
        f"iceberg.child.view.version.{inner['view-uuid']}": "1",
        f"iceberg.child.view.version.{outer['view-uuid']}": "1",
        f"iceberg.child.view.version.{made.view('mart.m')['view-uuid']}": "1",
    }
    assert made.only_reused()
    made.append("raw.orders", order(3, 1, "2026-01-07", "1.00"))
    assert made.refreshed() == {"m"}
    made.sql("CREATE OR REPLACE VIEW inner_view (id, amount) AS SELECT order_id, CAST(amount * 10 AS DECIMAL(10, 2)) FROM orders")
    assert "child-view" in made.codes("m")[0]
    assert made.refreshed() == {"m"}
    assert made.bag("SELECT * FROM lake.mart.m__storage") == made.bag("SELECT order_id, amount * 10 + 1 FROM lake.raw.orders")
    assert made.only_reused()
    made.sql("DROP VIEW lake.other.outer_view")
    made.sql("CREATE VIEW lake.other.outer_view (a, b) AS SELECT id, amount + 2 FROM inner_view")
    assert "child-view-recreated" in made.codes("m")
    assert made.refreshed() == {"m"}
    assert made.only_reused()


def test_a_spark_view_of_all_columns_keeps_those_that_it_was_made_with(made: Project) -> None:
    made.sql("CREATE VIEW lake.raw.everything AS SELECT * FROM lake.raw.orders")
    made.sql("CREATE TABLE lake.raw.other AS SELECT 1L AS order_id")
    made.sql("CREATE VIEW lake.raw.joined AS SELECT * FROM lake.raw.orders JOIN lake.raw.other USING (order_id)")
    made.sql("ALTER TABLE lake.raw.orders ADD COLUMN extra STRING")
    built(made, {"models/mart/m.sql": "SELECT * FROM raw.everything\n", "models/mart/j.sql": "SELECT j.* FROM raw.joined j\n"})
    assert made.bag("SELECT * FROM lake.mart.m__storage") == made.bag("SELECT * FROM lake.raw.everything")
    assert made.bag("SELECT * FROM lake.mart.j__storage") == made.bag("SELECT * FROM lake.raw.joined")
    assert made.spark.table("lake.mart.m__storage").columns == ["order_id", "customer_id", "order_date", "amount"]
    made.assert_tidy()
    assert made.only_reused()


@pytest.mark.parametrize("version", [1, 2, 3])
def test_base_tables_of_every_format_version_with_deletes_and_another_schema(made: Project, version: int) -> None:
    mode = "merge-on-read" if version > 1 else "copy-on-write"
    made.sql(
        "CREATE TABLE lake.raw.t (id BIGINT, k STRING, v BIGINT) PARTITIONED BY (k, bucket(2, id)) "
        f"TBLPROPERTIES ('format-version' = '{version}', 'write.delete.mode' = '{mode}')"
    )
    made.sql("INSERT INTO lake.raw.t SELECT id, IF(id % 2 = 0, 'a', 'b'), id * 10 FROM range(20)")
    made.sql("DELETE FROM lake.raw.t WHERE id IN (3, 4)")
    made.sql("ALTER TABLE lake.raw.t RENAME COLUMN k TO kind")
    made.sql("ALTER TABLE lake.raw.t ADD COLUMN note STRING")
    made.sql("ALTER TABLE lake.raw.t ALTER COLUMN v FIRST")
    built(made, {"models/mart/m.sql": "SELECT id, kind, v, note FROM raw.t WHERE kind = 'a' AND note IS NULL\n"})
    assert made.bag("SELECT * FROM lake.mart.m__storage") == made.bag("SELECT id, kind, v, note FROM lake.raw.t WHERE kind = 'a'")
    assert made.arrow("mart.m__storage").num_rows == 9
    made.assert_tidy()
    assert made.only_reused()
    made.sql("DELETE FROM lake.raw.t WHERE id = 6")
    assert made.refreshed() == {"m"}
    assert made.arrow("mart.m__storage").num_rows == 8


def test_a_replaced_mv_view_refreshes_and_gets_its_definition_back(made: Project) -> None:
    built(made, {"models/mart/m.sql": "SELECT order_id FROM raw.orders\n"})
    made.sql("CREATE OR REPLACE VIEW lake.mart.m AS SELECT 1 AS order_id")
    assert made.codes("m")[0] == "definition-changed"
    assert made.refreshed() == {"m"}
    assert made.view_version("mart.m") == 3
    assert made.bag("SELECT * FROM lake.mart.m") == made.bag("SELECT order_id FROM lake.raw.orders")
    assert made.only_reused()


def test_versions_of_a_table(made: Project) -> None:
    table = made.table("raw.orders")
    first = table.metadata.current_snapshot_id
    made.sql("ALTER TABLE lake.raw.orders CREATE TAG monday")
    made.sql("ALTER TABLE lake.raw.orders CREATE BRANCH dev")
    made.append("raw.orders", order(3, 1, "2026-01-07", "1.00"))
    at = made.sql("SELECT CAST(committed_at AS STRING) AS at FROM lake.raw.orders.snapshots ORDER BY committed_at LIMIT 1")[0].at
    later = made.sql("SELECT CAST(committed_at AS STRING) AS at FROM lake.raw.orders.snapshots ORDER BY committed_at")[-1].at
    built(
        made,
        {
            "models/mart/by_id.sql": f"SELECT count(*) AS c FROM raw.orders VERSION AS OF {first}\n",
            "models/mart/by_tag.sql": "SELECT count(*) AS c FROM raw.orders FOR VERSION AS OF 'monday'\n",
            "models/mart/by_branch.sql": "SELECT count(*) AS c FROM raw.orders VERSION AS OF 'dev'\n",
            "models/mart/by_time.sql": f"SELECT count(*) AS c FROM raw.orders TIMESTAMP AS OF '{at}'\n",
            "models/mart/by_later.sql": f"SELECT count(*) AS c FROM raw.orders TIMESTAMP AS OF '{later}'\n",
            "models/mart/twice.sql": (
                f"SELECT n.order_id, o.order_id AS was FROM raw.orders n LEFT JOIN raw.orders VERSION AS OF {first} o USING (order_id)\n"
            ),
        },
    )
    counts = {n: made.sql(f"SELECT c FROM lake.mart.{n}__storage")[0].c for n in ("by_id", "by_tag", "by_branch", "by_time", "by_later")}
    assert counts == {"by_id": 2, "by_tag": 2, "by_branch": 2, "by_time": 2, "by_later": 3}
    assert made.bag("SELECT * FROM lake.mart.twice__storage") == made.bag("SELECT * FROM VALUES (1L, 1L), (2L, 2L), (3L, NULL)")
    for name in (*counts, "twice"):
        assert made.bag(f"SELECT * FROM lake.mart.{name}") == made.bag(f"SELECT * FROM lake.mart.{name}__storage")
    assert made.only_reused()
    made.append("raw.orders", order(4, 1, "2026-01-08", "1.00"))
    assert made.refreshed() == {"twice"}
    made.sql("INSERT INTO lake.raw.orders.branch_dev VALUES (9, 9, DATE'2026-01-01', 1.0)")
    assert made.refreshed() == {"by_branch"}
    assert made.sql("SELECT c FROM lake.mart.by_branch__storage")[0].c == 3
    assert made.only_reused()


QUERIES = {
    "pivot": "SELECT * FROM (SELECT order_date, customer_id, amount FROM raw.orders) PIVOT (sum(amount) FOR customer_id IN (1 AS one, 2 AS two))",
    "exploded": "SELECT o.order_id, part FROM raw.orders o LATERAL VIEW explode(array(1, 2)) p AS part",
    "joined_values": "SELECT o.order_id, v.name FROM raw.orders o JOIN VALUES (1, 'one'), (2, 'two') AS v(id, name) ON v.id = o.order_id",
    "numbers": "SELECT id FROM range(10)",
    "no_table": "SELECT 1 AS one",
    "nested": (
        "SELECT named_struct('a', order_id, 'b', named_struct('c', amount)) AS s, array(order_id, NULL) AS l,"
        " map('k', named_struct('x', amount)) AS m, array(named_struct('y', order_date)) AS ls FROM raw.orders"
    ),
    "types": (
        "SELECT CAST(amount AS DECIMAL(38, 10)) AS d, TIMESTAMP '2026-01-01 12:00:00' AS ts, TIMESTAMP_NTZ '2026-01-01 12:00:00' AS ntz,"
        " true AS b, CAST(1 AS FLOAT) AS f, 1.5D AS dbl, X'0102' AS bin, CAST(1 AS TINYINT) AS tiny, CAST(2 AS SMALLINT) AS small,"
        " CAST(NULL AS STRING) AS nothing FROM raw.orders"
    ),
    "umlauts": "SELECT order_id AS `Bestellnummer №`, amount AS `金額`, 1 AS `order` FROM raw.orders",
    "sampled": "SELECT order_id FROM raw.orders TABLESAMPLE (50 PERCENT) REPEATABLE (1) AS o",
    "no_rows": "SELECT order_id FROM raw.orders WHERE amount > 1000",
    "of_empty": "SELECT e.id, count(*) OVER () AS c FROM raw.empty e",
    "in_subqueries": (
        "SELECT order_id, (SELECT max(amount) FROM raw.orders) AS most FROM raw.orders o"
        " WHERE EXISTS (SELECT 1 FROM raw.orders WHERE orders.order_id = o.order_id) AND order_id NOT IN (SELECT id FROM raw.empty)"
    ),
    "union_all": "SELECT order_id FROM raw.orders UNION ALL (SELECT order_id FROM raw.orders EXCEPT SELECT 1) ORDER BY 1 LIMIT 5",
    "windowed": "SELECT order_id, row_number() OVER w AS n FROM raw.orders WINDOW w AS (ORDER BY order_id)",
    "piped": "FROM raw.orders |> WHERE order_id = 1 |> SELECT order_id",
    "from_first": "FROM raw.orders SELECT order_id",
    "column_aliases": "SELECT a, b FROM raw.orders AS o (a, b, c, d)",
    "lateral": "SELECT o.order_id, x.twice FROM raw.orders o, LATERAL (SELECT o.amount * 2 AS twice) x",
    "full_names": "SELECT lake.raw.orders.order_id, raw.orders.amount AS a2, orders.customer_id FROM lake.raw.orders",
    "quoted": "SELECT `orders`.`order_id` FROM `raw`.`orders` WHERE `raw`.`orders`.`amount` > 0",
    "stars": "SELECT orders.*, c.n FROM raw.orders CROSS JOIN (SELECT count(*) AS n FROM raw.orders) c",
    "stars_of_full_name": "SELECT raw.orders.* FROM raw.orders",
    "except_": "SELECT * EXCEPT (amount) FROM raw.orders",
    "hinted": "SELECT /*+ BROADCAST(c) */ o.order_id FROM raw.orders o JOIN raw.orders c USING (order_id)",
    "hinted_table": "SELECT /*+ BROADCAST(orders) */ orders.order_id FROM raw.orders JOIN raw.empty ON id = order_id",
    "natural": "SELECT order_id FROM raw.orders NATURAL JOIN (SELECT order_id, 1 AS one FROM raw.orders)",
    "commas": "SELECT count(*) AS c FROM raw.orders a, raw.orders b, raw.empty",
    "misleading": "SELECT 'FROM raw.orders' AS s, order_id -- FROM raw.nowhere\nFROM raw.orders /* JOIN raw.nowhere */",
    "rollup": "SELECT customer_id, order_date, sum(amount) AS s FROM raw.orders GROUP BY ROLLUP (customer_id, order_date)",
    "shadowed": (
        "WITH x AS (SELECT order_id FROM raw.orders) SELECT order_id FROM (WITH x AS (SELECT 7L AS order_id) SELECT * FROM x)"
        " UNION ALL SELECT order_id FROM x"
    ),
    "semi_anti": "SELECT order_id FROM raw.orders o LEFT SEMI JOIN raw.orders p USING (order_id) LEFT ANTI JOIN raw.empty e ON e.id = o.order_id",
    "struct_field": "SELECT s.a AS a, s.b.c AS c FROM (SELECT struct(order_id AS a, struct(amount AS c) AS b) AS s FROM raw.orders)",
    "lambda_": "SELECT transform(array(order_id), orders -> orders + 1) AS t FROM raw.orders",
    "other_case": "SELECT ORDER_ID FROM RAW.Orders WHERE Orders.AMOUNT > 0",
    "table_statement": "TABLE raw.orders",
    "parenthesized": "(SELECT order_id FROM (raw.orders))",
    "joined_parentheses": "SELECT o.order_id FROM (raw.orders o JOIN (raw.orders p JOIN raw.orders q USING (order_id)) USING (order_id))",
    "json_path": "SELECT get_json_object('{\"a\": 1}', '$.a') AS j, order_id FROM raw.orders",
    "intervals": "SELECT order_date + INTERVAL 1 DAY AS d, date_trunc('month', order_date) AS m FROM raw.orders",
    "unpivoted": "SELECT * FROM raw.orders UNPIVOT (v FOR k IN (order_id, customer_id))",
    "inline_outer": "SELECT o.order_id, x FROM raw.orders o LATERAL VIEW OUTER explode(CAST(array() AS ARRAY<INT>)) t AS x",
    "tvf": "SELECT o.order_id, e.col FROM raw.orders o, LATERAL explode(array(1, 2)) e",
    "ctes": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT i, order_id FROM n, raw.orders",
}

UNREADABLE = {"windowed"}
"""Spark 4.1 cannot read an Iceberg view with a WINDOW clause, its own neither: MISSING_WINDOW_SPECIFICATION. The storage is right."""


def test_all_kinds_of_queries(made: Project) -> None:
    made.sql("CREATE TABLE lake.raw.empty (id BIGINT)")
    made.write({f"models/mart/{name}.sql": sql + "\n" for name, sql in QUERIES.items()})
    # Whatever it costs: over tables as small as these, a full refresh is often the cheapest.
    made.write({"models/mart/semi_anti.yml": "models: [{name: semi_anti, config: {refresh_policy: incremental}}]\n"})
    result = made.run()
    assert messages(result) == []
    made.sql("USE lake.mart")
    for name, sql in QUERIES.items():
        rows = made.bag(sql.replace("RAW.Orders", "raw.orders"))  # Spark's catalog knows names in their own case only
        assert made.bag(f"SELECT * FROM lake.mart.{name}__storage") == rows, name
        if name not in UNREADABLE:
            assert made.bag(f"SELECT * FROM lake.mart.{name}") == rows, name
    uuid = made.table("raw.empty").metadata.table_uuid
    assert made.table("mart.of_empty__storage").properties[f"iceberg.base.snapshot.{uuid}"] == "-1"
    assert made.table("mart.no_rows__storage").metadata.current_snapshot_id is not None
    # A sample depends on more than rows.
    assert made.refreshed() == {"sampled"}
    made.sql("INSERT INTO lake.raw.empty VALUES (7)")
    # The rows of `semi_anti` are the same: its record has moved on.
    assert made.refreshed() == {"of_empty", "in_subqueries", "hinted_table", "commas", "sampled"}
    assert made.refreshed() == {"sampled"}
    assert made.bag("SELECT * FROM lake.mart.of_empty__storage") == made.bag("SELECT 7L, 1L")


def test_a_name_that_is_taken_blocks_its_model_and_nothing_else(made: Project) -> None:
    made.make("mart.m", TWO)
    made.write({"models/mart/m.sql": "SELECT order_id FROM raw.orders\n", "models/mart/free.sql": "SELECT order_id FROM raw.orders\n"})
    before = made.table("mart.m").metadata_location
    done = made.command("run")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "name-collision" in done.stderr
    assert "--> mvbuild.yml:2:29" in done.stderr  # the namespace that puts it there
    assert made.table("mart.m").metadata_location == before
    assert ("mart", "m__storage") not in made.catalog.list_tables("mart")
    assert made.bag("SELECT * FROM lake.mart.free") == made.bag("SELECT order_id FROM lake.raw.orders")


def test_a_storage_name_that_is_taken(made: Project) -> None:
    made.make("mart.m__storage", TWO)
    made.write({"models/mart/m.sql": "SELECT order_id FROM raw.orders\n"})
    done = made.command("run")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "mart.m__storage" in done.stderr
    assert made.arrow("mart.m__storage").num_rows == 2


def test_nondeterministic_queries_are_refreshed_by_every_run(made: Project) -> None:
    built(made, {"models/mart/m.sql": "SELECT order_id, current_timestamp() AS at, rand() AS r, uuid() AS u FROM raw.orders\n"})
    assert made.codes("m") == ["nondeterministic"]
    result = made.run()
    assert named(result) == {"m": "success"}
    assert [r.code for r in of(result, "m").reasons] == ["nondeterministic"]
    made.assert_tidy()


def test_marks_that_spark_took_away_come_back_without_computing(made: Project) -> None:
    built(made, {"models/mart/m.sql": "SELECT order_id FROM raw.orders\n", "models/mart/n.sql": "SELECT order_id FROM {{ ref('m') }}\n"})
    snapshot = made.table("mart.m__storage").metadata.current_snapshot_id
    made.sql(
        "ALTER VIEW lake.mart.m SET TBLPROPERTIES"
        " ('iceberg.materialized.view' = 'false', 'iceberg.materialized.view.storage.table' = 'raw.orders')"
    )
    assert made.codes("m") == ["view-not-marked", "storage-pointer-differs"]
    assert made.codes("n") == []
    assert made.only_reused()
    assert made.codes("m") == []
    text = made.view("mart.m")["versions"][-1]["representations"][0]["sql"]
    made.sql("DROP VIEW lake.mart.m")
    made.sql(f"CREATE VIEW lake.mart.m AS {text}")
    assert made.codes("m") == ["view-not-marked", "storage-pointer-differs", "view-recreated"]
    assert made.only_reused()
    assert made.codes("m") == made.codes("n") == []
    assert made.view("mart.m")["properties"]["iceberg.materialized.view.storage.table"] == "mart.m__storage"
    assert made.table("mart.m__storage").metadata.current_snapshot_id == snapshot
    assert made.bag("SELECT * FROM lake.mart.m") == made.bag("SELECT order_id FROM lake.raw.orders")


def test_views_of_the_catalog_take_columns_by_position(made: Project) -> None:
    """As Spark does: every row of an MV over such a view is one that Spark reads of the view, whatever happened to the table below."""
    made.sql("CREATE TABLE lake.raw.b (g INT, v INT) USING iceberg")
    made.sql("INSERT INTO lake.raw.b VALUES (1, 2)")
    made.sql("CREATE VIEW lake.raw.star AS SELECT * FROM lake.raw.b")
    made.sql("CREATE VIEW lake.raw.twice (a, c) AS SELECT g, g FROM lake.raw.b")
    made.sql("CREATE VIEW lake.raw.over (p, q) AS SELECT s.*  FROM lake.raw.star AS s")
    views = ("star", "twice", "over")
    built(made, {f"models/mart/m_{view}.sql": f"SELECT * FROM lake.raw.{view}\n" for view in views})

    def assert_right() -> None:
        result = made.run()
        assert result.ok, messages(result)
        for view in views:
            assert made.bag(f"SELECT * FROM lake.mart.m_{view}__storage") == made.bag(f"SELECT * FROM lake.raw.{view}"), view
        assert made.only_reused()

    assert_right()
    for change in ("ADD COLUMN z INT", "ALTER COLUMN z FIRST", "ALTER COLUMN v FIRST", "RENAME COLUMN v TO w"):
        made.sql(f"ALTER TABLE lake.raw.b {change}")
        assert_right()
        made.sql("INSERT INTO lake.raw.b VALUES (5, 6, 7)")
        assert_right()
    made.sql("ALTER TABLE lake.raw.b ALTER COLUMN g TYPE BIGINT")
    with pytest.raises(Exception, match="CANNOT_UP_CAST_DATATYPE"):
        made.sql("SELECT * FROM lake.raw.twice")
    assert named(made.run())["m_twice"] == "error"
