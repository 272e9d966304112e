from __future__ import annotations

import pytest

from mvbuild.parse.render import Renderer
from mvbuild.parse.splice import Replacement, cut, joined, splice
from mvbuild.parse.sql import parse_query
from mvbuild.source import MappedText, SourceFile

from .projects import project


def spliced(sql: str, *replacements: Replacement) -> str:
    query, diagnostics = parse_query(MappedText.of(SourceFile("m.sql", sql)))
    assert query is not None
    assert diagnostics == ()
    return splice(query, dict(enumerate(replacements))).text


NEW = Replacement("lake.raw.t VERSION AS OF 7", "t")


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select 1", "select 1"),
        ("SELECT  a -- c\nFROM raw.t", "SELECT  a -- c\nFROM lake.raw.t VERSION AS OF 7 AS t"),
        ("select t.a, raw.t.b, `t`.c from raw.t where t.d", "select t.a, t.b, t.c from lake.raw.t VERSION AS OF 7 AS t where t.d"),
        ("select x.a from raw.t as x", "select x.a from lake.raw.t VERSION AS OF 7 as x"),
        ("select * from t x", "select * from lake.raw.t VERSION AS OF 7 x"),
        ("select * from t version as of 3", "select * from lake.raw.t VERSION AS OF 7 AS t"),
        ("select * from t for version as of 3 y", "select * from lake.raw.t VERSION AS OF 7 y"),
        (
            "select * from t tablesample (1 percent) repeatable (3) where a",
            "select * from lake.raw.t VERSION AS OF 7 tablesample (1 percent) repeatable (3) AS t where a",
        ),
        ("select * from t version as of 3 tablesample (1 rows)", "select * from lake.raw.t VERSION AS OF 7 tablesample (1 rows) AS t"),
        ("select * from t with ('a' = 1)", "select * from lake.raw.t VERSION AS OF 7 with ('a' = 1) AS t"),
        ("select * from t pivot (sum(a) for b in (1))", "select * from lake.raw.t VERSION AS OF 7 AS t pivot (sum(a) for b in (1))"),
        ("from(t)", "from(lake.raw.t VERSION AS OF 7 AS t)"),
        ("select a from`t`where b", "select a from lake.raw.t VERSION AS OF 7 AS t where b"),
        (
            "select percentile_cont(0.5) within group (order by a) from t",
            "select percentile_cont(0.5) within group (order by a) from lake.raw.t VERSION AS OF 7 AS t",
        ),
        ("select /*+ BROADCAST(raw.t) */ 1 from raw.t", "select /*+ BROADCAST(t) */ 1 from lake.raw.t VERSION AS OF 7 AS t"),
        ("table t", "SELECT * FROM lake.raw.t VERSION AS OF 7 AS t"),
        ("select * from (TABLE t) x", "select * from (SELECT * FROM lake.raw.t VERSION AS OF 7 AS t) x"),
        ("select * from f(table t)", "select * from f(TABLE (SELECT * FROM lake.raw.t VERSION AS OF 7 AS t))"),
        ("select * from f(table(t))", "select * from f(table(SELECT * FROM lake.raw.t VERSION AS OF 7 AS t))"),
        ("select * from f(i => table t)", "select * from f(i => TABLE (SELECT * FROM lake.raw.t VERSION AS OF 7 AS t))"),
    ],
)
def test_only_the_reads_change(sql: str, expected: str):
    assert spliced(sql, *([] if sql == "select 1" else [NEW])) == expected


def test_several_reads_and_quoted_aliases():
    sql = "select a.x, b.y from a, b join c on c.z = a.z"
    got = spliced(sql, Replacement("p.a", "a b"), Replacement("(select 1)", None), Replacement("q.c", "values"))
    assert got == "select `a b`.x, b.y from p.a AS `a b`, (select 1) join q.c AS `values` on `values`.z = `a b`.z"


def test_reads_without_replacement_stay():
    query, _ = parse_query(MappedText.of(SourceFile("m.sql", "select * from a, b")))
    assert query is not None
    assert splice(query, {1: Replacement("x.b", "b")}).text == "select * from a, x.b AS b"


def test_the_map_leads_back_through_template_and_replacement():
    model = SourceFile("models/m.sql", "{{ config(tags='x') }}\nselect o.id, bad\nfrom {{ ref('base') }} as o\nwhere q")
    rendered = Renderer(project({"m": "", "base": ""}), {}).render(model, "m").text
    assert rendered is not None
    query, _ = parse_query(rendered)
    assert query is not None
    inner = MappedText.of(SourceFile("models/base.sql", "select 1 as id\nfrom inner_table"))
    text = splice(query, {0: Replacement(joined([MappedText.of(SourceFile("x", "(")), inner, MappedText.of(SourceFile("x", ")"))]))})
    assert text.text == "select o.id, bad\nfrom (select 1 as id\nfrom inner_table) as o\nwhere q"

    def place(word: str) -> str:
        at = text.text.index(word)
        return f"{text.span(at, at + len(word))} {text.span(at, at + len(word)).text}"

    assert place("bad") == "models/m.sql:2:14 bad"
    assert place("inner_table") == "models/base.sql:2:6 inner_table"
    assert place("o\nwhere") == "models/m.sql:3:27 o\nwhere"
    assert place("q") == "models/m.sql:4:7 q"
    plain = splice(query, {0: Replacement("lake.base")})
    at = plain.text.index("lake")
    assert str(plain.span(at + 5, at + 9)) == "models/m.sql:3:6"
    assert plain.span(at + 5, at + 9).text == "{{ ref('base') }}"


def test_cut_and_join_keep_every_place():
    file = SourceFile("f", "abcdefghij")
    text = MappedText.of(file)
    for start in range(11):
        for end in range(start, 11):
            part = joined([cut(text, start, end), cut(text, end, 10)])
            assert part.text == file.text[start:]
            assert [part.span(i, i + 1).start for i in range(len(part.text))] == list(range(start, 10))
