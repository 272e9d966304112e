"""Queries that are split and combined at random -> lint and --fix raise nothing, and every place is in its file."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from mvbuild.diagnostics import ProjectError
from mvbuild.graph.definition import definition
from mvbuild.lint.fixing import fix_all
from seeds import seeds
from unit.lint.linted import QUIET, SHOP, report
from unit.worlds import compiled, write_project

PIECES = """
{{ config(tags=['a']) }}|with a as (select * from {{ ref('customers') }})|, b as (select a.* from a)|select *|select a.*, 1 as x|select count(*) as n, rand()|from a|from b
from {{ ref('orders') }} o|, {{ ref('customers') }}|cross join a|join b on a.id = b.name|where o.id = '5'|where id in (select id from a limit 1)|limit 3|offset 2|order by 1
union all|union|lateral view explode(array(1)) e as k|qualify row_number() over (order by id) = 1|{% for i in [1, 2] %}|{% endfor %}|{% if true %}|{% else %}|{% endif %}
-- mvbuild: allow(select-star) why|/* mvbuild: allow(unused-cte) */|{# mvbuild: allow(nope) x #}|(|)|,|pivot (count(1) for country in ('DE'))|`a b`|'it''s'|{{ 'x' }}|{% set q %}select 1{% endset %}|{{ q }}
tablesample (10 percent)|version as of 3|values (1, 2) as t(a, b)|exists (select * from a)|group by all|having id = 'a'|a.id <=> 'x'|as größe|😀
""".replace("\n", "|").split("|")


BASES = [
    "with a as (select * from {{ ref('customers') }}), b as (select a.* from a) select * from a",
    "with a as (select id from {{ ref('orders') }}) select o.*, c.name from {{ ref('orders') }} o, {{ ref('customers') }} c where o.id = c.name",
    "select * from {{ ref('customers') }} {% if true %} limit 3 {% endif %} -- mvbuild: allow(select-star) why",
    "select {% for c in ['id', 'name'] %} {{ c }}, {% endfor %} rand() as r from {{ ref('customers') }} /* mvbuild: allow(nope) */",
    "with a as ( select 1 as x ) , b as ( with a as ( select 2 as y ) select y from a ) select y from b union all select * from a",
]


def mutated(draw: random.Random) -> str:
    words = draw.choice(BASES).split(" ")
    for _ in range(draw.randint(0, 3)):
        at = draw.randrange(len(words))
        if draw.random() < 0.3:
            del words[at]
        else:
            words.insert(at, draw.choice(PIECES))
    return draw.choice((" ", "\n")).join(words) + "\n"


@pytest.mark.proof
@pytest.mark.parametrize("seed", seeds(10))
def test_nothing_is_raised(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    done = 0
    write_project(tmp_path, {**SHOP, **QUIET})
    for _ in range(60):
        write_project(tmp_path, {"models/m.sql": mutated(draw)})
        try:
            graph = compiled(tmp_path)
        except ProjectError:
            continue
        if graph.problems:
            assert report(graph).models < 4
            continue
        done += 1
        for finding in report(graph).findings:
            assert 0 <= finding.span.start < finding.span.end <= len(finding.span.file.text)
        before = graph.model("model.shop.m").query.columns
        after = fix_all(graph, lambda g: report(g).findings, lambda: compiled(tmp_path), {}).graph
        now = after.model("model.shop.m")
        assert before in (None, now.query.columns)
        assert definition(after, now).text
    assert done > 10


def test_queries_with_many_parts(tmp_path: Path) -> None:
    union = " union all ".join(f"select {i} as x" for i in range(1500))
    deep = "select x from (" * 120 + "select 1 as x" + ")" * 120
    ctes = ", ".join(f"c{i} as (select x from c{i - 1})" if i else "c0 as (select 1 as x)" for i in range(300))
    files = {
        **QUIET,
        "models/wide.sql": f"select c.id from {{{{ ref('customers') }}}} c cross join ({union}) u\n",
        "models/deep.sql": deep + "\n",
        "models/ctes.sql": f"with {ctes} select 1 as y\n",
    }
    graph = compiled(tmp_path, {**SHOP, **files})
    assert len([f for f in report(graph, rules=["unused-cte"]).findings if f.node == "model.shop.ctes"]) == 300
    report(graph)
    fix_all(graph, lambda g: report(g, rules=["unused-cte"]).findings, lambda: compiled(tmp_path), {})
    assert (tmp_path / "models/ctes.sql").read_text() == "select 1 as y\n"
