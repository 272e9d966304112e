"""storage and query at the recorded snapshots -> what `verify` finds, by Spark."""

from __future__ import annotations

import json
import math
from typing import Any

import pyarrow as pa
import pytest

from mvbuild import api
from mvbuild.diagnostics import ProjectError
from mvbuild.verify.bags import counts_sql, differences_sql
from mvbuild.verify.model import Verification, Verified
from spark.projects import NoSpark, Project, messages, order
from spark.shop import MORE, D, MakeProject, shop

pytestmark = pytest.mark.proof

STORAGE = "lake.mart.revenue_daily__storage"


def built(make: MakeProject, more: dict[str, str] | None = None) -> Project:
    project = shop(make, {**MORE, **(more or {})})
    result = project.run()
    assert result.ok, messages(result)
    return project


def check(project: Project, *names: str, **options: Any) -> Verification:
    return api.verify(project.root, names, **{"spark": project.spark, **options})


def one(project: Project, name: str, **options: Any) -> Verified:
    (found,) = check(project, name, **options).results
    return found


def differences(found: Verified) -> list[tuple[Any, ...]]:
    return [(d.only_in, d.copies, *d.row) for d in found.rows]


def statuses(found: Verification) -> dict[str, str]:
    return {r.node.rpartition(".")[2]: r.status for r in found.results}


def model(make: MakeProject, sql: str, rows: pa.Table, config: str = "") -> Project:
    project = make({"mvbuild.yml": "name: shop\nmodels: {+namespace: mart}\n", "models/m.sql": f"{config}{sql}\n"})
    project.make("raw.t", rows)
    result = project.run()
    assert result.ok, messages(result)
    return project


# The same


def test_what_was_refreshed_is_the_same_whatever_came_after(project: MakeProject) -> None:
    made = built(project)
    assert statuses(check(made)) == dict.fromkeys(("revenue_daily", "revenue_total", "countries"), "same")
    made.append("raw.orders", order(9, 1, "2026-03-01", "7.00"))
    made.sql("DELETE FROM lake.raw.customers WHERE customer_id = 2")
    assert set(statuses(check(made)).values()) == {"same"}
    assert made.run("revenue_daily").ok  # revenue_total was built from its former snapshot
    found = check(made)
    assert found.ok
    assert statuses(found) == dict.fromkeys(("revenue_daily", "revenue_total", "countries"), "same")
    assert statuses(check(made, select=["countries"])) == {"countries": "same"}
    made.assert_tidy()


def test_a_schema_that_moved_on(project: MakeProject) -> None:
    made = built(project, {"models/marts/all_orders.sql": "SELECT * FROM raw.orders\n"})
    made.sql("ALTER TABLE lake.raw.orders ADD COLUMN note string")
    assert one(made, "all_orders").status == "same"
    made.sql("ALTER TABLE lake.raw.orders DROP COLUMN amount")
    assert statuses(check(made, "all_orders", "revenue_daily")) == dict.fromkeys(("revenue_daily", "all_orders"), "same")
    made.assert_tidy()


def test_metadata_files(project: MakeProject) -> None:
    made = built(project, {"mvbuild.yml": "name: shop\nmodels: {marts: {+namespace: mart, +storage: {format: metadata-file}}}\n"})
    made.append("raw.orders", order(9, 1, "2026-03-01", "7.00"))
    assert made.run("revenue_daily").ok
    assert set(statuses(check(made)).values()) == {"same"}
    made.assert_tidy()


def test_a_definition_that_was_edited_but_not_refreshed(project: MakeProject) -> None:
    made = built(project)
    made.write({"models/marts/countries.sql": "SELECT upper(country) AS country, 1 AS n FROM raw.customers\n"})
    assert one(made, "countries").status == "same"
    (made.root / "models/marts/revenue_total.sql").write_text("SELECT sum(orders) AS revenue FROM {{ ref('revenue_daily') }}\n")
    assert one(made, "revenue_total").status == "same"


# Different


def test_a_row_that_was_changed_in_the_storage(project: MakeProject) -> None:
    made = built(project)
    made.sql(f"UPDATE {STORAGE} SET revenue = 11.00 WHERE country = 'DE' AND order_date = DATE '2026-01-05'")
    found = one(made, "revenue_daily")
    assert (found.status, found.extra, found.missing) == ("different", 1, 1)
    assert [r[:2] + r[3:] for r in differences(found)] == [("query", 1, "DE", D("10.00"), 1), ("storage", 1, "DE", D("11.00"), 1)]
    assert [n.code for n in found.notes] == ["storage-changed"]
    assert one(made, "revenue_daily", limit=0).rows == ()
    assert made.bag(found.sql) != {}


def test_the_command(project: MakeProject, lake: Any) -> None:
    made = built(project).over(lake.remote)
    made.sql(f"INSERT INTO {STORAGE} SELECT * FROM {STORAGE} WHERE country = 'FR'")
    done = made.command("verify", "--no-use-colors")
    assert done.returncode == 1, done.stderr
    assert "FAIL materialized view mart.revenue_daily" in done.stdout
    assert "1 row only in its storage:" in done.stdout
    assert any(line.split()[:4] == ["only", "in", "storage", "1"] and "FR" in line for line in done.stdout.splitlines())
    assert done.stdout.splitlines()[-1] == "Done. PASS=2 FAIL=1 ERROR=0 SKIP=0 TOTAL=3"
    done = made.command("verify", "revenue_daily", "countries", "--output", "json")
    assert done.returncode == 1, done.stderr
    daily, countries = sorted(json.loads(done.stdout)["results"], key=lambda r: r["status"])
    assert (daily["status"], daily["only_in_storage"], daily["only_in_query"]) == ("different", 1, 0)
    assert (daily["rows"][0]["only_in"], daily["rows"][0]["row"]["country"]) == ("storage", "FR")
    assert (countries["status"], countries["rows"]) == ("same", [])


def test_copies_count(project: MakeProject) -> None:
    made = model(project, "SELECT a FROM raw.t", pa.table({"a": [1, 1, 2]}))
    made.sql("DELETE FROM lake.mart.m__storage WHERE a = 1")
    made.sql("INSERT INTO lake.mart.m__storage VALUES (2), (2), (2)")
    found = one(made, "m")
    assert (found.extra, found.missing) == (3, 2)
    assert differences(found) == [("query", 2, 1), ("storage", 3, 2)]


def test_columns_of_others(project: MakeProject) -> None:
    made = model(project, "SELECT a FROM raw.t", pa.table({"a": [1]}))
    made.sql("ALTER TABLE lake.mart.m__storage ADD COLUMN b int")
    found = one(made, "m")
    assert (found.status, found.reason and found.reason.code) == ("different", "columns-differ")


# Values


def test_null_nan_and_nested_values_equal_themselves_and_zeros_do_not(project: MakeProject) -> None:
    rows = pa.table(
        {
            "f": [None, math.nan, -0.0, math.inf],
            "m": pa.array([[("x", 1), ("y", 2)], None, [], [("z", None)]], type=pa.map_(pa.string(), pa.int64())),
            "s": [{"l": [math.nan, None], "b": b"1"}, None, {"l": None, "b": None}, {"l": [], "b": b""}],
        }
    )
    made = model(project, "SELECT f, m, s FROM raw.t", rows)
    assert one(made, "m").status == "same"
    assert one(made, "m", float_tolerance=1e-9).status == "same"
    made.sql("UPDATE lake.mart.m__storage SET f = 0.0D WHERE f = 0.0D")
    found = one(made, "m")
    assert sorted(repr(row.row[0]) for row in found.rows) == ["-0.0", "0.0"]
    assert one(made, "m", float_tolerance=1e-9).status == "same"
    made.sql("UPDATE lake.mart.m__storage SET f = -0.0D WHERE f = 0.0D")
    made.sql("UPDATE lake.mart.m__storage SET m = map('y', 2L, 'x', 1L) WHERE f IS NULL")
    assert one(made, "m").status == "same"
    made.sql("UPDATE lake.mart.m__storage SET m = map('y', 3L, 'x', 1L) WHERE f IS NULL")
    found = one(made, "m")
    assert (found.extra, found.missing) == (1, 1)
    assert found.rows[0].row[1] == [("x", 1), ("y", 2)]


def test_maps_inside_of_other_types(project: MakeProject) -> None:
    query = "SELECT a, array(named_struct('m', map(a, map('k', CAST(a AS DOUBLE))))) AS deep FROM raw.t"
    made = model(project, query, pa.table({"a": [1, 2]}))
    assert one(made, "m").status == "same"
    made.sql("UPDATE lake.mart.m__storage SET deep = array(named_struct('m', map(a, map('k', a + 1e-7D)))) WHERE a = 2")
    assert one(made, "m").status == "different"
    assert one(made, "m", float_tolerance=1e-6).status == "same"
    assert one(made, "m", float_tolerance=1e-9).status == "different"


def test_a_tolerance_for_floating_point_numbers(project: MakeProject) -> None:
    rows = pa.table(
        {"k": [1, 1, 2, 3, 3, 4], "f": [1.0, 2.0, 1e300, math.nan, None, math.inf], "g": pa.array([1, 2, 3, 4, 5, 6], pa.float32())}
    )
    made = model(project, "SELECT k, f, g FROM raw.t", rows)
    made.sql("UPDATE lake.mart.m__storage SET f = f * (1 + 1e-12D) WHERE k < 3")
    assert (one(made, "m").extra, one(made, "m").missing) == (3, 3)
    assert one(made, "m", float_tolerance=1e-9).status == "same"
    config = "models: [{name: m, config: {float_tolerance: 1e-9}}]\n"
    made.write({"models/m.yml": config})
    assert one(made, "m").status == "same"
    assert one(made, "m", float_tolerance=0).status == "different"
    made.sql("UPDATE lake.mart.m__storage SET f = 5 WHERE f IS NULL OR f = double('Infinity') OR isnan(f)")
    found = one(made, "m")
    assert (found.extra, found.missing) == (3, 3)
    made.sql("DELETE FROM lake.mart.m__storage WHERE k = 1 AND g = 2")
    assert (one(made, "m").extra, one(made, "m").missing) == (3, 4)


def test_the_sql_alone(project: MakeProject) -> None:
    made = built(project)
    schema = {"type": "struct", "fields": [{"name": "a", "type": "double"}, {"name": "b", "type": "int"}]}
    one, other = "SELECT 1.0D AS a, 1 AS b UNION ALL SELECT 1.0D, 1", "SELECT 1 AS b, 1.0D + 1e-12D AS a"
    sql = differences_sql(one, other, schema, tolerance=1e-9)
    assert [tuple(r) for r in made.sql(sql)] == [(1, 1.0, 1)]
    assert [tuple(r) for r in made.sql(counts_sql(sql, schema))] == [(1, 0)]


# A sample


def test_a_sample(project: MakeProject) -> None:
    made = model(project, "SELECT a, a % 7 AS b, a / 3.0D AS f FROM raw.t", pa.table({"a": list(range(1000))}))
    assert one(made, "m", sample=0.1, seed=1).status == "same"
    made.sql("UPDATE lake.mart.m__storage SET f = f + 1")
    found = check(made, "m", sample=0.1, seed=1)
    assert (found.results[0].status, found.sample, found.seed) == ("different", 0.1, 1)
    assert 50 < found.results[0].extra == found.results[0].missing < 150
    again = one(made, "m", sample=0.1, seed=1, limit=1000)
    assert {d.row[0] for d in again.rows if d.only_in == "storage"} == {d.row[0] for d in again.rows if d.only_in == "query"}
    others = one(made, "m", sample=0.1, seed=2, limit=1000)
    assert {d.row[0] for d in again.rows} != {d.row[0] for d in others.rows}
    with pytest.raises(ProjectError, match="above 0 and at most 1"):
        check(made, "m", sample=2)


# What cannot be verified


def reason(found: Verification) -> str:
    assert [r.status for r in found.results] == ["unverifiable"]
    assert found.results[0].reason is not None
    return found.results[0].reason.code


def test_without_a_refresh(project: MakeProject) -> None:
    made = shop(project)
    found = check(made, "revenue_daily", spark=NoSpark())
    assert (reason(found), found.ok) == ("never-refreshed", False)
    assert [d.severity for d in found.diagnostics] == ["error"]
    found = check(made, spark=NoSpark())
    assert (reason(found), found.ok) == ("never-refreshed", True)
    assert [(d.code, d.severity) for d in found.diagnostics] == [("unverifiable", "warning")]
    done = made.command("verify", "revenue_daily", "--no-use-colors")
    assert done.returncode == 1
    assert "error[unverifiable]" in done.stderr
    assert made.command("verify").returncode == 0


def test_a_snapshot_that_has_expired(project: MakeProject) -> None:
    made = built(project)
    made.append("raw.orders", order(9, 1, "2026-03-01", "7.00"))
    made.sql("CALL lake.system.expire_snapshots(table => 'raw.orders', older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1)")
    assert reason(check(made, "revenue_daily", spark=NoSpark())) == "snapshot-expired"


def test_child_views(project: MakeProject) -> None:
    made = built(project)
    view = "{{ config(materialized='view') }}\nSELECT customer_id, country FROM raw.customers\n"
    made.write({"models/active_customers.sql": view})
    assert reason(check(made, "revenue_daily", spark=NoSpark())) == "child-view-edited"
    assert made.run("active_customers").ok
    assert reason(check(made, "revenue_daily", spark=NoSpark())) == "child-view-changed"


def test_a_table_that_is_gone(project: MakeProject) -> None:
    made = built(project)
    made.sql("DROP TABLE lake.raw.customers")
    assert reason(check(made, "countries", spark=NoSpark())) == "base-table-missing"
    made.make("raw.customers", pa.table({"customer_id": [1], "country": ["DE"], "active": [True]}))
    assert reason(check(made, "countries", spark=NoSpark())) == "base-table-not-recorded"


def test_what_asks_the_clock_is_compared_with_a_note(project: MakeProject) -> None:
    made = model(project, "SELECT a, current_timestamp() AS at FROM raw.t", pa.table({"a": [1]}))
    found = one(made, "m")
    assert (found.status, [n.code for n in found.notes]) == ("different", ["nondeterministic"])


def test_after_a_rollback(project: MakeProject) -> None:
    made = built(project, {"models/marts/countries.yml": "models: [{name: countries, config: {refresh_history: all}}]\n"})
    made.sql("DELETE FROM lake.raw.customers WHERE customer_id = 2")
    made.write({"models/marts/countries.sql": "SELECT country, count(*) AS n FROM raw.customers GROUP BY country\n"})
    assert made.run("countries").ok
    api.rollback(made.root, "countries", 1)
    found = one(made, "countries")
    assert (found.status, found.reason) == ("same", None)
