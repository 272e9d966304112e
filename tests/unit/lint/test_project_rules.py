"""The rules that look at models in their graph: duplicates, windows, policies, names, sizes, undeclared tables."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from mvbuild.lineage.lock import NAME, to_text
from mvbuild.lineage.model import Column
from mvbuild.lineage.schemas import TableColumns
from unit.lint.linted import QUIET, findings, fixed, found, of_model, report, shop

C, ORDERS = "{{ ref('customers') }}", "{{ ref('orders') }}"


def test_duplicates_are_told_by_their_tokens(tmp_path: Path) -> None:
    files = {
        **QUIET,
        "models/a.sql": f"select id, name from {C}\n",
        "models/b.sql": "-- the same\nSELECT id,\n  name\nFROM {{ ref('CUSTOMERS') }}\n",
        "models/c.sql": f"select id, Name from {C}\n",
        "models/d.sql": "select id, name from customers\n",
    }
    assert found(tmp_path, files, "duplicate-definition") == [
        ("duplicate-definition", 1, "-- the same"),
        ("duplicate-definition", 1, "select id, name from customers"),
    ]


def test_the_one_that_is_linted_is_told_of_the_other(tmp_path: Path) -> None:
    graph = shop(tmp_path, {**QUIET, "models/a.sql": f"select id from {C}\n", "models/b.sql": f"select id from {C}\n"})
    for name in ("a", "b"):
        (finding,) = report(graph, rules=["duplicate-definition"], include=[name]).findings
        assert finding.node == f"model.shop.{name}"
    (finding,) = report(graph, rules=["duplicate-definition"]).findings
    assert (finding.node, finding.found.notes[0].span.file.path) == ("model.shop.b", "models/a.sql")  # type: ignore[union-attr]


WINDOWS = [
    ("1h", "10m", True),
    ("1h", "1h", False),
    ("10m", "1h", False),
    (None, "10m", False),
    ("10m", None, True),
    (None, None, False),
]


@pytest.mark.parametrize(("parent", "child", "is_found"), WINDOWS)
@pytest.mark.parametrize("through", ["", "view", "ephemeral"])
def test_windows(parent: str | None, child: str | None, is_found: bool, through: str, tmp_path: Path) -> None:
    def config(window: str | None) -> str:
        return f"{{{{ config(freshness={{'max_staleness': '{window}'}}) }}}}\n" if window else ""

    files = {**QUIET, "models/p.sql": f"{config(parent)}select id from {C}\n"}
    if through:
        files["models/v.sql"] = f"{{{{ config(materialized='{through}') }}}}\nselect id from {{{{ ref('p') }}}}\n"
    files["models/c.sql"] = f"{config(child)}select id from {{{{ ref('{'v' if through else 'p'}') }}}}\n"
    assert bool(found(tmp_path, files, "window-shorter-than-parent")) is is_found


def test_a_window_is_shown_where_it_was_written(tmp_path: Path) -> None:
    files = {
        **QUIET,
        "models/p.sql": "{{ config(freshness={'max_staleness': '1h'}) }}\nselect id from raw.t\n",
        "models/c.sql": "select id from {{ ref('p') }}\n",
        "models/c.yml": "models: [{name: c, config: {freshness: {max_staleness: 5m}}}]\n",
    }
    (finding,) = findings(tmp_path, files, "window-shorter-than-parent")
    assert (finding.span.file.path, finding.span.text) == ("models/c.yml", "{max_staleness: 5m}")
    assert "may be 5m old, and 'p', which it reads, may be 1h old" in finding.found.message


DELTA = "sources: [{name: f, tables: [{name: d, type: deltalake-filesystem, path: d}, {name: i, type: iceberg-filesystem, path: i}]}]\n"


@pytest.mark.parametrize(
    ("sql", "is_found"),
    [
        ("select p from {{ source('f', 'd') }}", True),
        ("select p from {{ source('f', 'i') }}", False),
        ("select p from {{ ref('v') }}", True),
        ("{{ config(materialized='view') }} select p from {{ source('f', 'd') }}", False),
        ("{{ config(freshness={'max_staleness': '1h'}) }} select p from {{ source('f', 'd') }}", False),
    ],
)
def test_tables_of_other_formats(sql: str, is_found: bool, tmp_path: Path) -> None:
    files = {
        **QUIET,
        "models/s.yml": DELTA,
        "models/v.sql": "{{ config(materialized='view') }} select p from {{ source('f', 'd') }}\n",
        "models/m.sql": sql + "\n",
    }
    assert bool(found(tmp_path, files, "source-without-window")) is is_found


POLICIES = [
    (f"select id from {ORDERS} order by id limit 3", ""),
    (f"select id from {ORDERS} order by id limit 3 offset 1", "limit"),
    (f"select id from {ORDERS} order by amount limit 3", "limit"),
    (f"select c.name from {C} c join {ORDERS} o on o.customer_id = c.id order by c.name limit 3", ""),
    (f"select id, row_number() over (order by amount, id) as r from {ORDERS}", "window-without-partition"),
    (f"select id, rand() as r from {ORDERS}", "nondeterministic"),
    (f"select my_udf(id) as x from {ORDERS}", "nondeterministic"),
    (f"with recursive t(n) as (select id from {ORDERS} union all select n + 1 from t where n < 5) select n from t", "unsupported-operator"),
    ("select my_udf(id) as x from raw.unknown", "nondeterministic"),
    ("select id from raw.unknown order by id limit 3", ""),
    ("select id from raw.unknown order by id limit 3 offset 1", "limit"),
    ("select id from raw.unknown limit 3", "limit"),
    ("select x, y from raw.a join raw.b on p = q order by x limit 3", ""),
    (f"select sum(x) as s from (select cast(amount as double) as x from {ORDERS})", "float-sum"),
    (f"select id from {ORDERS}", ""),
    (f"select customer_id, sum(amount) as s, count(*) as n from {ORDERS} group by customer_id", ""),
    (f"select c.name, o.amount from {C} c join {ORDERS} o on o.customer_id = c.id", ""),
    ("select * from raw.unknown", ""),
    ("select a.x, b.y from raw.a a join raw.b b on a.id = b.id", ""),
    ("select x, y from raw.a join raw.b on p = q", ""),
    ("select k, sum(v) as s from raw.unknown group by k", ""),
    ("select 1 as one", ""),
]


@pytest.mark.parametrize("policy", ["incremental", "incremental_strict"])
@pytest.mark.parametrize(("sql", "code"), POLICIES)
def test_policies_that_cannot_be_kept(sql: str, code: str, policy: str, tmp_path: Path) -> None:
    files = {**QUIET, "models/m.sql": f"{{{{ config(refresh_policy='{policy}') }}}}\n{sql}\n"}
    said = [f.found.message for f in findings(tmp_path, files, "never-incremental")]
    assert [f"({code})" in message for message in said] == ([True] if code else [])


@pytest.mark.parametrize(
    "sql",
    [
        "select x, y from raw.a join raw.b on p = q order by x limit 3 offset 1",
        "select c.name, o.amount from {C} c join {O} o on o.customer_id = c.id limit 3",
    ],
)
def test_a_limit_without_auxiliary_views(sql: str, tmp_path: Path) -> None:
    config = "{{ config(refresh_policy='incremental', auxiliary_views='never') }}\n"
    files = {**QUIET, "models/m.sql": config + sql.replace("{C}", C).replace("{O}", ORDERS) + "\n"}
    (finding,) = findings(tmp_path, files, "never-incremental")
    assert "(limit)" in finding.found.message


@pytest.mark.parametrize("policy", ["auto", "full"])
def test_policies_that_ask_for_nothing(policy: str, tmp_path: Path) -> None:
    assert of_model(tmp_path, f"{{{{ config(refresh_policy='{policy}') }}}} select rand() as r", "never-incremental") == []


def test_names(tmp_path: Path) -> None:
    files = {**QUIET, "models/Größe.sql": f"select id as ID, name as n2 from {C}\n", "models/ok_1.sql": f"select id from {C}\n"}
    assert [f.node for f in findings(tmp_path, files, "model-name")] == ["model.shop.Größe"]
    assert [f.found.message.split("'")[1] for f in findings(tmp_path, files, "column-name")] == ["ID"]


def test_undeclared_tables(tmp_path: Path) -> None:
    files = {
        **QUIET,
        "models/s.yml": "sources: [{name: crm, tables: [{name: people}]}]\n",
        "models/a.sql": "select p.id from crm.people p join crm.orders o on o.id = p.id join main.customers c on c.id = p.id\n",
        "models/b.sql": "select id from a\n",
        "models/c.sql": "with crm as (select 1 as id) select id from crm\n",
    }
    assert found(tmp_path, files, "undeclared-source") == [("undeclared-source", 1, "crm.orders")]


def test_dead_models(tmp_path: Path) -> None:
    files = {
        "mvbuild.yml": "name: shop\nlint: {dead-model: {level: info, marks: [final, report]}}\n",
        "models/read.sql": f"select id from {C}\n",
        "models/last.sql": "select id from {{ ref('read') }}\n",
        "models/tagged.sql": "{{ config(tags=['report']) }}\nselect id from {{ ref('read') }}\n",
        "models/marked.sql": "{{ config(meta={'final': true}) }}\nselect id from {{ ref('read') }}\n",
    }
    assert [(f.node, f.level) for f in findings(tmp_path, files, "dead-model")] == [("model.shop.last", "info")]


def test_a_description_of_blanks_is_none(tmp_path: Path) -> None:
    files = {
        "mvbuild.yml": "name: shop\nlint: {missing-description: {columns: true}}\n",
        "models/m.sql": f"select id, name, country from {C}\n",
        "models/m.yml": "models: [{name: M, description: ' ', columns: [{name: ID, description: Number.}, {name: name}]}]\n",
    }
    messages = [f.found.message for f in findings(tmp_path, files, "missing-description")]
    assert messages[0] == "'m' has no description"
    assert "2 of the columns of 'm' have no description: 'name', 'country'" in messages[1]


def test_tests_in_sql_count(tmp_path: Path) -> None:
    files = {
        "models/a.sql": f"select id from {C}\n",
        "models/b.sql": f"select id from {C} where id > 1\n",
        "models/c.sql": f"{{{{ config(materialized='ephemeral') }}}} select id from {C}\n",
        "tests/t.sql": "select id from {{ ref('a') }} where id < 0\n",
    }
    assert [f.node for f in findings(tmp_path, files, "missing-tests")] == ["model.shop.b"]


@pytest.mark.parametrize(
    ("size", "partition_by", "options", "is_found"),
    [
        ("20000000000", (), "", True),
        ("5", (), "", False),
        ("5", (), "{above: 4B}", True),
        ("20000000000", ("x",), "", False),
        ("20000000000", (), "{above: 1TB}", False),
        ("", (), "", False),
    ],
)
def test_large_storages(size: str, partition_by: tuple[str, ...], options: str, is_found: bool, tmp_path: Path) -> None:
    graph = shop(
        tmp_path,
        {"mvbuild.yml": f"name: shop\nlint: {{unpartitioned-storage: {options or 'info'}}}\n", "models/m.sql": f"select id from {C}\n"},
    )
    storage = SimpleNamespace(
        partition_by=partition_by, current_snapshot_id=1, snapshots={1: SimpleNamespace(summary={"total-files-size": size})}
    )
    world = SimpleNamespace(observed=SimpleNamespace(table=lambda identifier: storage, states={}))
    assert bool(report(graph, rules=["unpartitioned-storage"], world=world).findings) is is_found
    assert report(graph, rules=["unpartitioned-storage"]).findings == ()


def test_files_that_belong_to_no_model_are_left_out_of_a_selection(tmp_path: Path) -> None:
    graph = shop(tmp_path, {**QUIET, "models/m.sql": f"select id from {C}\n", "macros/x.sql": "{# ghp_" + "a1" * 20 + " #}\n"})
    assert [f.code for f in report(graph).findings] == ["secret-in-file"]
    assert report(graph, include=["m"]).findings == ()


def test_types_and_columns_of_tables_come_from_the_lock(tmp_path: Path) -> None:
    columns = (Column("id", "bigint"), Column("at", "date"))
    (tmp_path / NAME).write_text(to_text({"raw.t": TableColumns(columns=columns)}), encoding="utf-8")
    sql = "select * from raw.t where id = 'a' and at = '2026-01-01' -- mvbuild: allow(undeclared-source) soon\n"
    files = {**QUIET, "models/m.sql": sql}
    assert found(tmp_path, files) == [("select-star", 1, "*"), ("unlike-types", 1, "id = 'a'")]
    fixed(tmp_path, {}, "select-star")
    assert (tmp_path / "models/m.sql").read_text() == sql.replace("*", "id, at")


@pytest.mark.parametrize(
    ("condition", "is_found"),
    [
        ("p.id = o.note", True),
        ("p.ID = o.id", False),
        ("p.other = o.id", False),
        ("p.born = o.note", True),
        ("p.born >= '2000-01-01'", False),
        ("born = 5", True),
        ("other = 5", False),
    ],
)
def test_types_that_yaml_declares(condition: str, is_found: bool, tmp_path: Path) -> None:
    declared = "{name: id, data_type: BIGINT}, {name: Born, data_type: date}, {name: other}"
    files = {
        **QUIET,
        "models/s.yml": f"sources: [{{name: crm, tables: [{{name: people, columns: [{declared}]}}]}}]\n",
        "models/m.sql": f"select 1 as x from {{{{ source('crm', 'people') }}}} p join {ORDERS} o on {condition}\n",
    }
    assert bool(found(tmp_path, files, "unlike-types")) is is_found
