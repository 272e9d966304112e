"""Snapshots: those whose base tables have all versions become MVs, and the others say why they stay in dbt."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
import sqlglot

from unit.dbt.incremental_cases import SOURCE
from unit.dbt.projects import codes, item, taken, text

CONFIG = "target_schema='history', strategy='timestamp', unique_key='id', updated_at='ts'"
RANKED = f"select *, row_number() over (partition by id order by ts desc) as n from {SOURCE}"
NEWEST = f"select id, ts, name from ({RANKED}) where n = 1"


def snapshot(query: str = NEWEST, config: str = CONFIG) -> dict[str, str]:
    return {"snapshots/s.sql": f"{{% snapshot customers %}}\n{{{{ config({config}) }}}}\n{query}\n{{% endsnapshot %}}\n"}


def why(root: Path, files: dict[str, str]) -> str:
    found = item(taken(root, files), "customers", "snapshot")
    assert found.verdict == "refused"
    return found.reasons[0].message


def test_the_newest_version_of_each_row_becomes_all_versions(tmp_path: Path) -> None:
    found = taken(tmp_path, {**snapshot(), "models/reads.sql": "select * from {{ ref('customers') }} where dbt_valid_to is null"})
    assert codes(found, "customers", "snapshot") == ["snapshot-of-versions"]
    assert item(found, "reads").verdict == "unchanged"
    written = text(found, "models/snapshots/customers.sql")
    assert written.startswith("{{ config(materialized='materialized_view', namespace='history') }}\nselect\n")
    assert f"from (\nselect id, ts, name from ({RANKED}) where true\n) as versions" in written
    assert "group by `id`, `ts`\nhaving count(*) > 1" in text(found, "tests/customers_versions.sql")


def test_the_mv_has_the_rows_of_dbts_table(tmp_path: Path) -> None:
    """Played with dbt's rule: each run ends the current version of a key if the row is newer, and inserts the new one."""
    found = taken(tmp_path, snapshot())
    log = [(1, 10, "a"), (2, 10, "b"), (1, 20, "c"), (1, 30, "d"), (2, 35, "b")]
    played: list[tuple[int, int, str, int, int | None]] = []
    for id_, ts, name in log:
        played = [(i, t, n, f, ts if (i == id_ and to is None) else to) for i, t, n, f, to in played]
        played.append((id_, ts, name, ts, None))
    sql = text(found, "models/snapshots/customers.sql").partition("\n")[2].replace(SOURCE, "events")
    connection = duckdb.connect(":memory:")
    connection.execute("create table events (id int, ts int, name varchar)")
    connection.executemany("insert into events values (?, ?, ?)", log)
    query = sqlglot.transpile(sql, read="spark", write="duckdb")[0]
    rows = connection.execute(f"select id, ts, name, dbt_valid_from, dbt_valid_to, dbt_updated_at from ({query})").fetchall()
    assert sorted(r[:5] for r in rows) == sorted(played)
    assert all(r[5] == r[1] for r in rows)


@pytest.mark.parametrize(
    "query",
    [
        f"with ranked as ({RANKED}) select id, ts, name from ranked where n = 1",
        f"select v.id, v.ts from ({RANKED}) v where v.n = 1 and v.name <> 'x'",
        NEWEST.replace("partition by id", "partition by ID").replace("ts desc", "ts desc, name"),
    ],
)
def test_other_ways_to_write_it(tmp_path: Path, query: str) -> None:
    found = taken(tmp_path, snapshot(query))
    assert item(found, "customers", "snapshot").verdict == "changed", item(found, "customers", "snapshot").reasons
    assert " true" in text(found, "models/snapshots/customers.sql")


@pytest.mark.parametrize(
    ("query", "config", "words"),
    [
        (NEWEST, CONFIG.replace("'timestamp'", "'check', check_cols='all'"), "when a run of dbt sees them"),
        (NEWEST, f"{CONFIG}, invalidate_hard_deletes=true", "does not find the row any more"),
        (NEWEST, f"{CONFIG}, hard_deletes='new_record'", "does not find the row any more"),
        (NEWEST, CONFIG.replace("'id'", "\"id || '-' || name\""), "not plain columns"),
        (NEWEST, f"{CONFIG}, alias='other'", "target_schema"),
        (f"select id, ts, name from {SOURCE}", CONFIG, "every version"),
        (NEWEST.replace("ts desc", "ts"), CONFIG, "every version"),
        (NEWEST.replace("ts desc", "name desc"), CONFIG, "every version"),
        (NEWEST.replace("partition by id", "partition by name"), CONFIG, "every version"),
        (NEWEST.replace("row_number()", "rank()"), CONFIG, "every version"),
        (NEWEST.replace("n = 1", "n = 2"), CONFIG, "every version"),
        (NEWEST.replace("id, ts, name", "*"), CONFIG, "every version"),
        (NEWEST.replace("id, ts, name", "id, name as ts"), CONFIG, "every version"),
        (NEWEST.replace("id, ts, name", "id, ts, count(*) over () as c"), CONFIG, "every version"),
        (f"{NEWEST} limit 3", CONFIG, "every version"),
        (NEWEST.replace("name from", "current_date() as d from"), CONFIG, "current_date"),
        (NEWEST.replace("n = 1", "n = {{ 1 }}"), CONFIG, "cannot be cut out"),
        (NEWEST.replace("where", "where name <> 'n = 1' and"), CONFIG, "cannot be cut out"),
        ("{{ run_query('x') }}", CONFIG, "cannot be rendered"),
    ],
)
def test_why_a_snapshot_stays_in_dbt(tmp_path: Path, query: str, config: str, words: str) -> None:
    assert words in why(tmp_path, snapshot(query, config))


def test_settings_outside_of_the_block_are_not_guessed(tmp_path: Path) -> None:
    project = "name: shop\nprofile: shop\nsnapshots:\n  shop:\n    +hard_deletes: invalidate\n"
    assert "outside of its block" in why(tmp_path, {**snapshot(), "dbt_project.yml": project})


def test_a_snapshot_of_something_refused_stays(tmp_path: Path) -> None:
    files = {**snapshot(NEWEST.replace(SOURCE, "{{ ref('p') }}")), "models/p.sql": "{{ config(pre_hook='delete from x') }}select 1 as id"}
    found = taken(tmp_path, files)
    assert "reads-refused" in codes(found, "customers", "snapshot")
    assert "models/snapshots/customers.sql" not in found.files


def test_the_advice_names_the_columns(tmp_path: Path) -> None:
    found = item(taken(tmp_path, snapshot(f"select * from {SOURCE}")), "customers", "snapshot")
    assert "lead(ts) over (partition by id order by ts) as dbt_valid_to" in found.reasons[0].advice


DECLARED = """\
snapshots:
  - name: orders
    relation: source('raw', 'events')
    config: {schema: history, unique_key: id, strategy: timestamp, updated_at: ts}
  - name: users
    relation: source('raw', 'users')
    config: {target_schema: old, alias: people, unique_key: id, strategy: check, check_cols: all}
"""


@pytest.mark.parametrize("path", ["snapshots/s.yml", "models/s.yml"])
def test_a_snapshot_in_yaml_stays_in_dbt(tmp_path: Path, path: str) -> None:
    files = {path: DECLARED, "models/reads.sql": "select * from {{ ref('orders') }} join {{ ref('users') }} using (id)"}
    found = taken(tmp_path, {**files, **snapshot()})
    orders = item(found, "orders", "snapshot")
    assert codes(found, "orders", "snapshot") == codes(found, "users", "snapshot") == ["snapshot"]
    assert str(orders.reasons[0].span) == f"{path}:2:5"
    assert "every version" in orders.reasons[0].message
    assert "lead(ts) over (partition by id" in orders.reasons[0].advice
    assert "when a run of dbt sees them" in item(found, "users", "snapshot").reasons[0].message
    assert codes(found, "reads") == ["reads-table-of-dbt", "reads-table-of-dbt"]
    assert (
        text(found, "models/reads.sql")
        == "select * from {{ source('dbt_main_history', 'orders') }} join {{ source('dbt_old', 'users') }} using (id)"
    )
    assert "identifier: people" in text(found, "models/tables_of_dbt.yml")
    assert item(found, "customers", "snapshot").verdict == "changed"


@pytest.mark.parametrize(
    "files",
    [
        {"macros/n.sql": "{% macro generate_schema_name(custom, node) %}x{% endmacro %}"},
        {"dbt_project.yml": "name: shop\nprofile: shop\nsnapshots: {+schema: x}\n"},
        {"snapshots/s.yml": DECLARED.replace("schema: history", "schema: \"{{ var('x') }}\"")},
    ],
)
def test_readers_of_a_snapshot_in_yaml_whose_table_is_not_known_are_refused(tmp_path: Path, files: dict[str, str]) -> None:
    given = {"snapshots/s.yml": DECLARED, "models/reads.sql": "select * from {{ ref('orders') }}"}
    assert codes(taken(tmp_path, {**given, **files}), "reads") == ["reads-refused"]


def test_yaml_that_describes_a_snapshot_is_about_that_one(tmp_path: Path) -> None:
    declared = "snapshots: [{name: customers, description: x}, {name: other, config: {strategy: check}}, {name: Nobody}]"
    found = taken(tmp_path, {**snapshot(), "snapshots/s.yml": declared})
    assert item(found, "customers", "snapshot").verdict == "changed"
    assert codes(found, "snapshot Nobody", "resource") == ["unknown-name"]
    described = {**snapshot(), "models/s.yml": "snapshots: [{name: Customers, config: {hard_deletes: invalidate}}]"}
    assert "outside of its block" in why(tmp_path / "own", described)


@pytest.mark.parametrize("query", [NEWEST, f"select id, ts, name from {SOURCE}"])
def test_the_schema_of_all_snapshots(tmp_path: Path, query: str) -> None:
    """Taken or not: the name of the table is dbt's."""
    files = {
        **snapshot(query, CONFIG.replace("target_schema='history', ", "")),
        "dbt_project.yml": "name: shop\nprofile: shop\nmodels: {+materialized: table}\nsnapshots: {shop: {+target_schema: kept}}\n",
        "models/reads.sql": "select id from {{ ref('customers') }}",
    }
    found = taken(tmp_path, files)
    if query == NEWEST:
        assert "namespace='kept'" in text(found, "models/snapshots/customers.sql")
    else:
        assert text(found, "models/reads.sql") == "select id from {{ source('dbt_kept', 'customers') }}"


@pytest.mark.parametrize("path", ["snapshots/s.yml", "models/s.yml"])
def test_tests_of_snapshots_are_in_the_scorecard(tmp_path: Path, path: str) -> None:
    declared = f"{DECLARED}    columns: [{{name: id, tests: [unique]}}]\n  - {{name: customers, tests: [not_null: {{column_name: id}}]}}\n"
    found = taken(tmp_path, {**snapshot(), path: declared})
    assert codes(found, "unique_users_id", "test") == ["reads-refused"]
    assert codes(found, "not_null_customers_id", "test") == ["test-of-snapshot"]
    assert item(found, "customers", "snapshot").verdict == "changed"
    assert path not in found.files
