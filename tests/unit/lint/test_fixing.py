"""--fix: the user's text afterwards, and what is not changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvbuild.diagnostics import ProjectError
from mvbuild.graph.model import Graph
from mvbuild.lint.fixing import fix_all
from mvbuild.lint.model import Edit, Finding, Fix, Found
from mvbuild.source import Span
from unit.lint.linted import QUIET, fixed, fixed_model, report, shop
from unit.worlds import compiled

C = "{{ ref('customers') }}"

CTES = [
    (
        "-- people\nwith a as (\n    select 1 as x\n),\n\n-- kept\nb as (\n    select 2 as y\n)\n\nselect y from b\n",
        "-- people\nwith -- kept\nb as (\n    select 2 as y\n)\n\nselect y from b\n",
    ),
    (
        "with a as (\n    select 1 as x\n),\n\nb as (\n    select 2 as y\n)\n\nselect x from a\n",
        "with a as (\n    select 1 as x\n)\n\nselect x from a\n",
    ),
    (
        "with a as (select 1 as x), /* why */ b as (select 2 as y)\nselect x from a\n",
        "with a as (select 1 as x) /* why */ \nselect x from a\n",
    ),
    ("with a as (select 1 as x)\nselect 2 as y\n", "select 2 as y\n"),
    ("with a as (select 1 as x), b as (select x from a), c as (select x from b)\nselect 2 as y\n", "select 2 as y\n"),
    (
        "with a as (select 1 as x), b as (select x from a), c as (select 3 as z), d as (select x from b)\nselect z from c\n",
        "with c as (select 3 as z)\nselect z from c\n",
    ),
    ("with recursive t(n) as (select 1 union all select n + 1 from t), a as (select 1 as x) select x from a\n", None),
    (f"with a as (select id from {C} where name = ')') select 2 as y\n", "select 2 as y\n"),
    (
        "{{ config(tags=['orders']) }}{# orders #}{% set x = 1 %}\nwith orders as (select * from {{ ref('orders') }}) select {{ x }} as y\n",
        "{{ config(tags=['orders']) }}{# orders #}{% set x = 1 %}\nselect {{ x }} as y\n",
    ),
    (
        "select x from (with a as (select 1 as q), b as (select 2 as x) select x from b)\n",
        "select x from (with b as (select 2 as x) select x from b)\n",
    ),
    ("with a (p, q) as (select 1, 2), b as (select 3 as x) select x from b\n", "with b as (select 3 as x) select x from b\n"),
]


@pytest.mark.parametrize(("before", "after"), CTES)
def test_an_unused_expression_goes(before: str, after: str | None, tmp_path: Path) -> None:
    found = fixed_model(tmp_path, before, "unused-cte")
    if after is None:
        after = "with recursive a as (select 1 as x) select x from a\n"
    assert found == after


@pytest.mark.parametrize(
    "sql",
    [
        "with a as (select 1 as x), b as (select 2 as y) select y from b{% if target.name == 'prod' %} join A on true{% endif %}\n",
        "{% set from = 'a' %}with a as (select 1 as x), b as (select 2 as y) select y from b\n",
        "with a as (select 1 as x) (select 2 as y)\n",
        "with a as (select 1 as x){% if false %}, b as (select x from a){% endif %} select 2 as y\n",
        "with {% for n in ['a', 'q'] %}{{ n }} as (select 1 as x), {% endfor %}c as (select 2 as y) select y from c\n",
        "with {% for n in [1, 2] %}a{{ n }} as (select {{ n }} as x), {% endfor %}c as (select x from a1) select x from c\n",
        "{% set ctes %}with a as (select 1 as x){% endset %}{{ ctes }} select 2 as y\n",
        "with a as (select {% if true %}1{% else %}2{% endif %} as x), b as (select 2 as y) select y from b\n",
        "with a as ({{ config(tags=['t']) }} select 1 as x), b as (select 2 as y) select y from b\n",
    ],
)
def test_what_a_template_made_stays(sql: str, tmp_path: Path) -> None:
    assert fixed_model(tmp_path, sql, "unused-cte") == sql


STARS = [
    (f"select * from {C}\n", f"select id, name, country from {C}\n"),
    (f"select\n    *\nfrom {C}\n", f"select\n    id,\n    name,\n    country\nfrom {C}\n"),
    (f"select c.* from {C} as c\n", f"select c.id, c.name, c.country from {C} as c\n"),
    (
        f"select c.*, o.amount from {C} as c join {{{{ ref('orders') }}}} as o on o.id = c.id\n",
        f"select c.id, c.name, c.country, o.amount from {C} as c join {{{{ ref('orders') }}}} as o on o.id = c.id\n",
    ),
    (f"select 1 as one, * from {C}\n", f"select 1 as one, id, name, country from {C}\n"),
    (f"with o as (select * from {C}) select * from o\n", f"with o as (select id, name, country from {C}) select * from o\n"),
    ("select * from {{ ref('odd') }}\n", "select `a b`, `select`, `größe` from {{ ref('odd') }}\n"),
    ("select * from raw.unknown\n", None),
    (f"select * from {C} version as of 3\n", None),
    (f"select * from {C} as c (a, b, d)\n", None),
    (f"select * from {C} as c join {{{{ ref('orders') }}}} as o using (id)\n", None),
    (f"select * from {C} lateral view explode(array(1)) e as k\n", None),
    (f"select * except (name) from {C}\n", None),
    (f"select {{{{ '*' }}}} from {C}\n", None),
    (f"{{% for i in [1] %}}select * from {C}{{% endfor %}}\n", f"{{% for i in [1] %}}select id, name, country from {C}{{% endfor %}}\n"),
    (f"{{% for i in [1, 2] %}}select * from {C}{{% if loop.first %}} union all {{% endif %}}{{% endfor %}}\n", None),
]


@pytest.mark.parametrize(("before", "after"), STARS)
def test_a_star_becomes_its_columns(before: str, after: str | None, tmp_path: Path) -> None:
    compiled(tmp_path, {**QUIET, "seeds/odd.csv": "a b,select,größe\n1,2,3\n"})
    assert fixed_model(tmp_path, before, "select-star") == (after or before)


def test_line_ends_and_marks_of_the_file_stay(tmp_path: Path) -> None:
    shop(tmp_path, QUIET)
    path = tmp_path / "models/m.sql"
    path.parent.mkdir()
    path.write_bytes("\ufeff-- ö\r\nwith a as (\r\n  select 1 as x\r\n),\r\nb as (select 2 as y)\nselect y\rfrom b\r\n".encode())
    path.chmod(0o640)
    fixed(tmp_path, {}, "unused-cte")
    assert path.read_bytes() == "\ufeff-- ö\r\nwith b as (select 2 as y)\nselect y\rfrom b\r\n".encode()
    assert path.stat().st_mode & 0o777 == 0o640


def test_several_files_and_rules_at_once(tmp_path: Path) -> None:
    files = {
        **QUIET,
        "models/a.sql": f"with x as (select 1 as n) select * from {C} -- mvbuild: allow(cross-join) none\n",
        "models/b.sql": "with x as (select 1 as n) select id from {{ ref('a') }}\n",
        "models/c.yml": "models:\n  # mvbuild: allow(secret-in-file) none\n  - name: a\n    description: A. # mvbuild: allow(secret-in-file) none\n",
    }
    after = fixed(tmp_path, files)
    assert (tmp_path / "models/a.sql").read_text() == f"select id, name, country from {C}\n"
    assert (tmp_path / "models/b.sql").read_text() == "select id from {{ ref('a') }}\n"
    assert (tmp_path / "models/c.yml").read_text() == "models:\n  - name: a\n    description: A.\n"
    assert dict(after.counts) == {"models/a.sql": 3, "models/b.sql": 1, "models/c.yml": 2}
    assert report(after.graph).findings == ()


def test_a_fix_that_says_other_than_it_does_is_not_kept(tmp_path: Path) -> None:
    graph = shop(tmp_path, {**QUIET, "models/m.sql": "select 1 as x, 2 as y\n"})
    file = graph.model("model.shop.m").model.file
    wrong = Fix(edits=(Edit(Span(file, 12, 20), ""),))
    finding = Finding(code="select-star", level="warning", found=Found(message="", span=Span(file, 0, 6), fix=wrong))
    after = fix_all(graph, lambda g: [finding], lambda: compiled(tmp_path), {})
    assert dict(after.counts) == {}
    assert (tmp_path / "models/m.sql").read_text() == "select 1 as x, 2 as y\n"


def test_a_fix_after_which_the_project_is_another_one_is_undone(tmp_path: Path) -> None:
    graph = shop(tmp_path, {**QUIET, "models/m.sql": "with a as (select 1 as x) select 2 as y\n"})
    other = compiled(tmp_path, {"models/n.sql": "select 1 as z\n"})
    after = fix_all(graph, lambda g: report(g, rules=["unused-cte"]).findings, lambda: other, {})
    assert dict(after.counts) == {}
    assert (tmp_path / "models/m.sql").read_text() == "with a as (select 1 as x) select 2 as y\n"


def test_a_folder_that_cannot_be_written_is_a_diagnostic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = shop(tmp_path, {**QUIET, "models/m.sql": "with a as (select 1 as x) select 2 as y\n"})

    def refused(self: Path, content: bytes) -> int:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "write_bytes", refused)
    with pytest.raises(ProjectError, match="Permission denied"):
        fix_all(graph, lambda g: report(g, rules=["unused-cte"]).findings, lambda: compiled(tmp_path), {})
    assert (tmp_path / "models/m.sql").read_text() == "with a as (select 1 as x) select 2 as y\n"


def test_who_interrupts_finds_the_old_files(tmp_path: Path) -> None:
    graph = shop(tmp_path, {**QUIET, "models/m.sql": "with a as (select 1 as x) select 2 as y\n"})

    def interrupted() -> Graph:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fix_all(graph, lambda g: report(g, rules=["unused-cte"]).findings, interrupted, {})
    assert (tmp_path / "models/m.sql").read_text() == "with a as (select 1 as x) select 2 as y\n"
    assert sorted(path.name for path in (tmp_path / "models").iterdir()) == ["m.sql"]
