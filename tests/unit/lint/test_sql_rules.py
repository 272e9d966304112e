"""The rules that look into the SQL, on odd queries: (query, the text under the carets of each finding)."""

from __future__ import annotations

from pathlib import Path

import pytest

from unit.lint.linted import QUIET, findings, found, of_model

C, ORDERS = "{{ ref('customers') }}", "{{ ref('orders') }}"

STARS = [
    (f"select * from {C}", ["*"]),
    (f"select c.* from {C} as c", ["c.*"]),
    (f"select `c`.* from {C} as `c`", ["`c`.*"]),
    (f"select c.*, o.amount from {C} c join {ORDERS} o on o.id = c.id", ["c.*"]),
    (f"select count(*) as n from {C}", []),
    (f"select * from (select id, name from {C})", []),
    (f"select * from (select * from {C})", ["*"]),
    (f"with c as (select * from {C}) select c.id from c", []),
    (f"with c as (select * from {C}) select * from c", ["*"]),
    (f"with c as (select id from {C}), final as (select id from c) select * from final", []),
    (f"with c as (select * from {C}), C2 as (select id from C) select * from c2", []),
    (f"with c as (select distinct * from {C}) select count(1) as n from c", ["*"]),
    (f"select id from {C} where exists (select * from {ORDERS})", []),
    (f"select id from {C} union select * from {ORDERS}", ["*"]),
    (f"with u as (select * from {C} union all select * from {C}) select id from u", []),
    (f"with u as (select * from {C} union select * from {C}) select id from u", ["*", "*"]),
    (f"select * except (name) from {C}", ["* except (name)"]),
    (f"select * from {C} lateral view explode(array(1)) e as k", ["*"]),
    (f"select * from {C} pivot (count(1) for country in ('DE', 'NL'))", ["*"]),
    (f"select c.* from {C} c left semi join {ORDERS} o on o.id = c.id", ["c.*"]),
    (f"select * from {C} c left anti join (select * from {ORDERS}) o on o.id = c.id", ["*"]),
    ("select * from values (1, 2) as t(a, b)", []),
    ("select * from range(10)", []),
    (f"from {C} |> select *", []),
    (f"with customers as (select 1 as x) select * from customers, {C} as c where c.id = customers.x", ["*"]),
    (f"with c as (with c as (select * from {C}) select id from c) select * from c", []),
    (
        f"select {{% for t in ['a', 'b'] %}}{{{{ t }}}}.*{{% if not loop.last %}}, {{% endif %}}{{% endfor %}} from {C} a join {ORDERS} b on a.id = b.id",
        ["{{ t }}", ".*"],
    ),
]


@pytest.mark.parametrize(("sql", "places"), STARS)
def test_stars(sql: str, places: list[str], tmp_path: Path) -> None:
    texts = [text for _, text in of_model(tmp_path, sql, "select-star")]
    if "{%" in sql:
        assert len(texts) >= 1
    else:
        assert [t[: len(p)] for t, p in zip(texts, places, strict=True)] == [p[: len(t)] for t, p in zip(texts, places, strict=True)]


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        ("customers", "'customers' has"),
        ("customers, orders", "'customers' and 'orders' have"),
        ("customers, orders, c", "'customers', 'orders' and 'c' have"),
    ],
)
def test_the_message_of_stars(tables: str, expected: str, tmp_path: Path) -> None:
    sql = "select * from " + ", ".join(f"{{{{ ref('{table}') }}}}" for table in tables.split(", "))
    (message,) = [one.found.message for one in findings(tmp_path, {"models/m.sql": sql, "models/c.sql": "select 1 as x\n"}, "select-star")]
    assert message.startswith(f"The columns are whatever {expected}: a new column there")


def test_stars_everywhere(tmp_path: Path) -> None:
    files = {
        "mvbuild.yml": "name: shop\nlint: {select-star: {everywhere: true}}\n",
        "models/m.sql": f"with c as (select * from {C})\nselect c.id from c\n",
    }
    assert found(tmp_path, files, "select-star") == [("select-star", 1, "*")]


LIMITS = [
    (f"select id from {C} limit 5", ["limit"]),
    (f"select id from {C} LIMIT 5 OFFSET 2", ["LIMIT"]),
    (f"select id from {C} offset 2", ["offset"]),
    (f"select id from {C} order by id limit 5", []),
    (f"select id from {C} sort by id limit 5", ["limit"]),
    (f"select id from {C} limit 0", []),
    (f"select id from {C} limit all", []),
    (f"select count(*) as n from {C} limit 1", []),
    (f"select country, count(*) as n from {C} group by country limit 1", ["limit"]),
    (f"select id, sum(id) over () as s from {C} limit 1", ["limit"]),
    (f"select id from {C} c where exists (select 1 from {ORDERS} o where o.id = c.id limit 1)", []),
    (f"select (select max(id) from {ORDERS} limit 1) as m, id from {C} limit 3", ["limit"]),
    (f"select id from {C} union all select id from {ORDERS} limit 3", ["limit"]),
    (f"select id from {C} union all select id from {ORDERS} order by 1 limit 3", []),
    (f"select id from (select id from {C} order by id) limit 3", []),
    (f"with c as (select id from {C} order by id) select id from c limit 3", []),
    (f"with c as (select id from {C} limit 3) select id from c order by id", ["limit"]),
    ("select 1 as one limit 1", []),
    (f"select a.n, b.n as m from (select count(*) as n from {C}) a, (select count(*) as n from {ORDERS}) b limit 1", []),
    (f"select a.n, b.id from (select count(*) as n from {C}) a, {ORDERS} b limit 1", ["limit"]),
    (f"(select id from {C}) limit 2", ["limit"]),
    (f"select id as `limit` from {C} limit 2", ["limit"]),
]


@pytest.mark.parametrize(("sql", "places"), LIMITS)
def test_limits(sql: str, places: list[str], tmp_path: Path) -> None:
    assert [text for _, text in of_model(tmp_path, sql, "limit-without-order")] == places


JOINS = [
    (f"select 1 as x from {C} c cross join {ORDERS} o", [f"cross join {ORDERS}"]),
    (f"select 1 as x from {C} c, {ORDERS} o", [ORDERS]),
    (f"select 1 as x from {C} c join {ORDERS} o", [f"join {ORDERS}"]),
    (f"select 1 as x from {C} c left join {ORDERS} o on true", [f"left join {ORDERS}"]),
    (f"select 1 as x from {C} c join {ORDERS} o on 1 = 1", [f"join {ORDERS}"]),
    (f"select 1 as x from {C} c join {ORDERS} o using (id)", []),
    (f"select 1 as x from {C} c natural join {ORDERS} o", []),
    (f"select 1 as x from {C} c, {ORDERS} o where c.id = o.id", []),
    (f"select 1 as x from {C} c, {ORDERS} o where country = note", []),
    (f"select 1 as x from {C} c, {ORDERS} o where c.id = 1 and o.id = 2", [ORDERS]),
    (f"select 1 as x from {C} c, {ORDERS} o where c.id = 1 or o.id = c.id", []),
    (f"select 1 as x from {C} a cross join {C} b join {ORDERS} o on o.id = a.id and o.customer_id = b.id", []),
    (f"select 1 as x from {C} c, {ORDERS} o where exists (select 1 from {ORDERS} z where z.id = c.id and z.id = o.id)", []),
    (f"select 1 as x from {C} c cross join (select max(id) as m from {ORDERS}) o", []),
    (f"with o as (select max(id) as m from {ORDERS}) select 1 as x from {C} c cross join o", []),
    (f"with o as (select id from {ORDERS}) select 1 as x from {C} c cross join o", ["cross join o"]),
    (f"select 1 as x from (select max(id) as m from {ORDERS}) o cross join {C} c", []),
    (f"select 1 as x from {C} c cross join (values (1), (2)) as v(n)", []),
    (f"select 1 as x from {C} c cross join range(3)", []),
    (f"select 1 as x from {C} c, lateral (select 1 as y from {ORDERS} o where o.id = c.id)", []),
    (f"select 1 as x from {C} c lateral view explode(array(1)) e as k", []),
    (f"select 1 as x from {C} c, lateral explode(array(1, 2)) e", []),
    (f"select 1 as x from {C} c left semi join {ORDERS} o", []),
    (f"select 1 as x from {C} c cross join (select id from {ORDERS} order by id limit 1) o", []),
    (f"select 1 as x from {C} c cross join (select id from {ORDERS}) o", ["o"]),
    (f"select (select count(*) from {C} a, {ORDERS} b) as n", [ORDERS]),
    ("select 1 as x from raw.events e, raw.`odd name` o", ["raw.`odd name`"]),
    (f"select 1 as x from ({C} c join {ORDERS} o)", [f"join {ORDERS}"]),
]


@pytest.mark.parametrize(("sql", "places"), JOINS)
def test_joins(sql: str, places: list[str], tmp_path: Path) -> None:
    texts = [text for _, text in of_model(tmp_path, sql, "cross-join")]
    assert len(texts) == len(places), texts
    assert all(t in p or p in t or t.startswith(p[:4]) for t, p in zip(texts, places, strict=True)), texts


CTES = [
    ("with a as (select 1 as x), b as (select 2 as y) select y from b", ["a"]),
    ("with a as (select 1 as x), b as (select x from a) select 3 as z", ["a", "b"]),
    ("with a as (select 1 as x), b as (select x from a) select x from b", []),
    ("with A as (select 1 as x) select x from a", []),
    ("with `a b` as (select 1 as x) select x from `a b`", []),
    ("with recursive t(n) as (select 1 union all select n + 1 from t where n < 5) select 1 as x", ["t"]),
    ("with recursive t(n) as (select 1 union all select n + 1 from t where n < 5) select n from t", []),
    ("with a as (select 1 as x), b as (with a as (select 2 as x) select x from a) select x from b", ["a"]),
    ("with a as (select 1 as x) select x from (with a as (select 2 as x) select x from a)", ["a"]),
    (f"with a as (select id from {C}) select id from {ORDERS} where id in (select id from a)", []),
    (f"with a as (select id from {C}) select id from {ORDERS} union all select id from a", []),
    (f"with customers as (select 1 as id) select id from {C}", ["customers"]),
    ("with a as (select 1 as x) select x from a union all (with b as (select 2 as y) select 3 as z)", ["b"]),
    (f"from {C} |> where id > 1 |> select id", []),
    ("with a as (select 1 as x) select x from raw.a", ["a"]),
    ("with größe as (select 1 as x) select 2 as y", ["größe"]),
]


@pytest.mark.parametrize(("sql", "places"), CTES)
def test_ctes(sql: str, places: list[str], tmp_path: Path) -> None:
    assert [text for _, text in of_model(tmp_path, sql, "unused-cte")] == places


CLOCKS = [
    (f"select current_date() as d from {C}", []),
    (f"select current_date(), id from {C}", ["current_date"]),
    (f"select CURRENT_TIMESTAMP as d, rand() as r from {C}", ["CURRENT_TIMESTAMP", "rand"]),
    (f"select id from {C} tablesample (10 percent)", ["tablesample"]),
    (f"select id from {C} where day >= 'today' and label = 'tomorrow'", ["'today'"]),
    (f"select id from {C} where opens > '10:30' and at > timestamp '10:30'", ["'10:30'"]),
    (f"select id from {C} tablesample (10 percent) repeatable (3)", ["tablesample"]),
    (f"select name as current_date from {C}", []),
    ("select c.current_date from raw.c c", []),
    ("select `rand` from raw.c", []),
    ("select 'rand()' as s -- rand()\n", []),
    (f"{{{{ config(materialized='view') }}}} select now() as d from {C}", []),
]


@pytest.mark.parametrize(("sql", "places"), CLOCKS)
def test_clocks(sql: str, places: list[str], tmp_path: Path) -> None:
    assert [text for _, text in of_model(tmp_path, sql, "nondeterministic-function")] == places


def test_a_clock_in_a_view_counts_where_an_mv_reads_it(tmp_path: Path) -> None:
    files = {
        **QUIET,
        "models/v.sql": "{{ config(materialized='view') }}\nselect uuid() as u\n",
        "models/m.sql": "select u from {{ ref('v') }}\n",
    }
    assert found(tmp_path, files, "nondeterministic-function") == [("nondeterministic-function", 2, "uuid")]


def test_what_a_loop_repeats_is_said_once(tmp_path: Path) -> None:
    sql = "select\n{% for i in [1, 2, 3] %}\n  rand() as r{{ i }},\n{% endfor %}\n  1 as x\n"
    assert of_model(tmp_path, sql, "nondeterministic-function") == [(3, "rand")]


def test_what_a_macro_writes_is_said_where_it_is_called(tmp_path: Path) -> None:
    files = {**QUIET, "macros/m.sql": "{% macro some() %}rand(){% endmacro %}\n", "models/m.sql": "select\n  {{ some() }} as r\n"}
    assert found(tmp_path, files, "nondeterministic-function") == [("nondeterministic-function", 2, "{{ some() }}")]


TYPES = [
    (f"select 1 as x from {C} c join {ORDERS} o on o.customer_id = c.name", ["o.customer_id = c.name"]),
    (f"select 1 as x from {C} c join {ORDERS} o on o.customer_id = c.id", []),
    (f"select 1 as x from {ORDERS} where day = '2026-01-01'", []),
    (f"select 1 as x from {ORDERS} where day between '2026-01-01' and '2026-02-01'", []),
    (f"select 1 as x from {ORDERS} where day = 20260101", ["day = 20260101"]),
    (f"select 1 as x from {ORDERS} where note = 5", ["note = 5"]),
    (f"select 1 as x from {ORDERS} where amount in (1, 2)", []),
    (f"select 1 as x from {ORDERS} where id in (1, '2')", ["id in (1, '2"]),
    (f"select 1 as x from {ORDERS} where ID <=> '2'", ["ID <=> '2'"]),
    (f"select 1 as x from {ORDERS} o where o.note = o.day", ["o.note = o.day"]),
    (f"select 1 as x from {ORDERS} o where cast(o.note as date) = o.day", []),
    (f"select 1 as x from {ORDERS} o where lower(o.note) = o.id", ["lower(o.note) = o.id"]),
    (f"select 1 as x from {C} join {ORDERS} using (id)", []),
    (f"with o as (select note as k from {ORDERS}) select 1 as x from {C} c join o on o.k = c.id", ["o.k = c.id"]),
    (f"with o as (select note as k from {ORDERS}) select 1 as x from {C} as id join o on o.k = id.id", ["o.k = id.id"]),
    (f"select 1 as x from {C} c where exists (select 1 from {ORDERS} o where o.note = c.id)", ["o.note = c.id"]),
    (f"select 1 as x from raw.t t join {ORDERS} o on t.id = o.note", []),
    (f"select 1 as x from {ORDERS} o join raw.t t on note = id", []),
    (f"select note as id from {ORDERS} having id = 'a'", []),
    (f"select 1 as x from {ORDERS} o (a, b, c, d, e) where a = 'x'", []),
    (f"select 1 as x from {ORDERS} version as of 3 where id = 'x'", []),
    (f"select 1 as x from {ORDERS} lateral view explode(array('a')) e as id where id = 'x'", []),
]


@pytest.mark.parametrize(("sql", "places"), TYPES)
def test_types(sql: str, places: list[str], tmp_path: Path) -> None:
    texts = [text for _, text in of_model(tmp_path, sql, "unlike-types")]
    assert len(texts) == len(places), texts
    assert [t.split()[0] for t in texts] == [p.split()[0] for p in places]


def test_a_literal_is_not_repeated_in_a_message(tmp_path: Path) -> None:
    files = {**QUIET, "models/m.sql": f"select 1 as x from {ORDERS} where id = 'hunter2hunter2'\n"}
    (finding,) = findings(tmp_path, files, "unlike-types")
    assert "hunter2" not in finding.found.message + finding.found.help
