"""files that try to use all time or all memory -> a diagnostic with a code, using little of both; the largest files that work."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from unit.cli.bad_input import Content, lay_out
from unit.hostile.bounded import Parent, Told

pytestmark = pytest.mark.proof

MB = 1_000_000


@pytest.fixture(scope="module")
def parent() -> Iterator[Parent]:
    with Parent() as running:
        yield running


def sql(text: str) -> dict[str, Content]:
    return {"models/m.sql": text}


def yml(text: str) -> dict[str, Content]:
    return {"models/m.yml": text}


def loop(body: str, times: int = 99_999, before: str = "") -> dict[str, Content]:
    return sql(f"{before}{{% for i in range({times}) %}}{body}{{% endfor %}}select 1 as a")


DOUBLED = (
    "{% set ns = namespace(l=[1], k=[1]) %}{% for i in range(100) %}{% set ns.l = [ns.l, ns.l] %}{% set ns.k = [ns.k, ns.k] %}{% endfor %}"
)
"""A list of 2^100 values, in a few bytes."""
LONG = "{% set x = 'a' * 9000000 %}{% set ns = namespace(l=[]) %}"

REFUSED: dict[str, tuple[str, dict[str, Content]]] = {
    # YAML
    "billion laughs": (
        "yaml-syntax",
        yml(
            "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 10))
        ),
    ),
    "billion merges": (
        "yaml-syntax",
        yml("a0: &a0 {k: 1}\n" + "".join(f"a{i}: &a{i}\n  <<: [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 3000))),
    ),
    "a wide merge many times": (
        "yaml-syntax",
        yml("a: &a {" + ", ".join(f"k{i}: 1" for i in range(20_000)) + "}\n" + "".join(f"b{i}: {{<<: *a}}\n" for i in range(5000))),
    ),
    "100,000 levels of flow": ("yaml-syntax", yml("models: " + "[" * 100_000)),
    "100,000 levels of dashes": ("yaml-syntax", yml("- " * 100_000 + "x")),
    "100,000 levels of keys": ("yaml-syntax", yml("? " * 100_000 + "x")),
    "100,000 levels of mappings": ("yaml-syntax", yml("{a: " * 100_000 + "x")),
    "3,000 levels of indents": ("yaml-syntax", yml("models:\n" + "".join(" " * i + "- \n" for i in range(3000)))),
    "a number of a million digits": ("yaml-syntax", yml("version: " + "9" * MB)),
    "a sexagesimal number": ("yaml-syntax", yml("version: 1" + ":59" * 300_000)),
    "a million values": ("file-too-large", yml("a: [" + "x," * MB + "]\n")),
    "an object of Python": ("yaml-syntax", yml("a: !!python/object/apply:os.system [ls]\n")),
    # SQL
    "10,000 parentheses": ("sql-syntax", sql("select " + "(" * 10_000 + "1" + ")" * 10_000 + " as a")),
    "60,000 ORs": ("sql-syntax", sql("select 1 as a from t where " + " or ".join(f"x = {i}" for i in range(60_000)))),
    "100,000 ANDs": ("file-too-large", sql("select 1 as a from t where " + " and ".join(f"x = {i}" for i in range(100_000)))),
    "100,000 UNIONs": ("file-too-large", sql(" union all ".join(f"select {i} as a" for i in range(100_000)))),
    "20,000 UNIONs": ("sql-syntax", sql(" union all ".join(f"select {i} as a" for i in range(20_000)))),
    "100,000 terms": ("sql-syntax", sql("select " + " + ".join("x" * 100_000) + " as a from t")),
    "100,000 dots": ("sql-syntax", sql("select a" + ".b" * 100_000 + " as a from t")),
    "80,000 indexes": ("sql-syntax", sql("select a" + "[1]" * 80_000 + " as a from t")),
    "100,000 NOTs": ("sql-syntax", sql("select " + "not " * 100_000 + "a as a from t")),
    "60,000 casts": ("sql-syntax", sql("select a" + "::int" * 60_000 + " as a from t")),
    "20,000 CASEs": ("sql-syntax", sql("select " + "case when a then " * 20_000 + "1" + " end" * 20_000 + " as a from t")),
    "10,000 levels of types": ("sql-syntax", sql("select cast(a as " + "array<" * 10_000 + "int" + ">" * 10_000 + ") as a from t")),
    "5,000 lambdas": ("sql-syntax", sql("select " + "transform(a, x -> " * 5000 + "x" + ")" * 5000 + " as a from t")),
    "10,000 joins": ("file-too-large", sql("select 1 as a from t0 " + " ".join(f"join t{i} on t{i}.a = t0.a" for i in range(1, 10_000)))),
    "10,000 CTEs": (
        "file-too-large",
        sql(
            "with c0 as (select 1 as a), "
            + ", ".join(f"c{i} as (select * from c{i - 1})" for i in range(1, 10_000))
            + " select * from c9999"
        ),
    ),
    "500,000 values": ("file-too-large", sql("select 1 as a from t where x in (" + ",".join(map(str, range(500_000))) + ")")),
    "an open string": ("sql-syntax", sql("select 1 as a from t where x = " + "'" * 99_999)),
    # Templates
    "a range of a billion": (
        "template-limit",
        sql("{% for a in range(10**9) %}{% for b in range(10**9) %}{% endfor %}{% endfor %}select 1 as a"),
    ),
    "loops in loops": ("template-limit", loop("{% for b in range(99999) %}{% endfor %}")),
    "long lists in a loop": ("template-limit", loop("{% set x = range(99999) | list %}")),
    "sums in a loop": ("template-limit", loop("{% for j in range(99999) %}{% set x = [i, j] | sum %}{% endfor %}")),
    "a macro that calls itself": (
        "template-limit",
        {**sql("select {{ f() }} as a"), "macros/f.sql": "{% macro f() %}{{ f() }}{% endmacro %}"},
    ),
    "a macro that calls itself twice": (
        "template-limit",
        {
            **sql("select {{ f(60) }} as a"),
            "macros/f.sql": "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}",
        },
    ),
    "a macro of a long text": (
        "template-limit",
        {
            **loop("{% do ns.l.append(f()) %}", before="{% set ns = namespace(l=[]) %}"),
            "macros/f.sql": "{% macro f() %}" + "x" * 900_000 + "{% endmacro %}",
        },
    ),
    "a list that grows while it is read": (
        "template-limit",
        sql("{% set x = [1] %}{% for i in x %}{% do x.append(1) %}{% endfor %}select 1 as a"),
    ),
    "a text that doubles": ("template-limit", loop("{% set ns.s = ns.s ~ ns.s %}", before="{% set ns = namespace(s='a') %}")),
    "many long texts": ("template-limit", loop("{% set ns.l = ns.l + [x ~ i] %}", before=LONG)),
    "many long slices": ("template-limit", loop("{% set ns.l = ns.l + [x[1:]] %}", before=LONG)),
    "many long blocks": ("template-limit", loop("{% set y %}" + "x" * 900_000 + "{% endset %}{% set ns.l = ns.l + [y] %}", before=LONG)),
    "many long lists": ("template-limit", loop("{% do ns.l.append([" + "0," * 1000 + "]) %}", before=LONG)),
    "a list of 2^100 values, written": ("template-limit", sql(DOUBLED + "select '{{ ns.l }}' as a")),
    "a list of 2^100 values, as JSON": ("template-limit", sql(DOUBLED + "select '{{ ns.l | tojson }}' as a")),
    "a list of 2^100 values, compared": ("template-limit", sql(DOUBLED + "select {{ ns.l == ns.k }} as a")),
    "a list of 2^100 values, configured": ("template-limit", sql(DOUBLED + "{{ config(meta={'a': ns.l}) }}select 1 as a")),
    "a list of 2^100 values, joined": ("template-limit", sql(DOUBLED + "select '{{ 'a' ~ ns.l }}' as a")),
    "a namespace of 2^100 values": ("template-limit", sql(DOUBLED + "select '{{ ns }}' as a")),
    "a list of itself": ("template-limit", sql("{% set l = [] %}{% do l.append(l) %}select '{{ l }}' as a")),
    "a deep list": (
        "template-limit",
        loop("{% set ns.l = [ns.l] %}", before="{% set ns = namespace(l=[]) %}{% if 1 %}")
        | {
            "models/m.sql": "{% set ns = namespace(l=[]) %}{% for i in range(9999) %}{% set ns.l = [ns.l] %}{% endfor %}select '{{ ns.l }}' as a"
        },
    ),
    "ten billion letters": ("template-limit", sql("select '{{ 'a' * 10 ** 10 }}' as a")),
    "a power of a power": ("template-limit", sql("select {{ 10 ** (10 ** 10) }} as a")),
    "a number of 20,000 digits": ("template-limit", sql("select {{ 10 ** 20000 }} as a")),
    "a wide format": ("template-limit", sql("select '{{ '%999999999s' | format('b') }}' as a")),
    "a wide indent": ("template-limit", sql("select '{{ ('\\n' * 1000000) | indent(900000) }}' as a")),
    "a long replacement": ("template-limit", sql("select '{{ ('a' * 1000000) | replace('a', 'b' * 1000000) }}' as a")),
    "a long join": ("template-limit", sql("select '{{ range(99999) | join('b' * 1000000) }}' as a")),
    "a billion slices": ("template-limit", sql("{% set x = range(99) | slice(10**9) | list %}select 1 as a")),
    "a wide zip": ("template-limit", sql("{% set x = zip(*[range(99999)] * 1000) %}select 1 as a")),
    "a long JSON": ("template-limit", sql("{% set x = fromjson('[' * 10 ** 7) %}select 1 as a")),
    "a million mistakes": ("template-limit", loop("{{ env_var('x' ~ i) }}")),
    "20,000 tags": ("template-limit", sql("select " + "{% if 1 %}1,{% endif %}" * 10_000 + "1 as a")),
    "an expression of a megabyte": ("template-limit", sql("select {{ [" + "1," * 500_000 + "] }}")),
    "10,000 ifs in each other": ("template-limit", sql("{% if 1 %}" * 10_000 + "select 1 as a" + "{% endif %}" * 10_000)),
    "1,000 fors in each other": ("template-syntax", sql("{% for a in [1] %}" * 1000 + "select 1 as a" + "{% endfor %}" * 1000)),
    "100,000 parentheses in a tag": ("template-syntax", sql("{{ " + "(" * 90_000 + "1" + ")" * 90_000 + " }}")),
    "10,000 filters": ("template-syntax", sql("{{ 'a' " + "| upper" * 10_000 + " }}")),
    "10,000 terms in a tag": ("template-syntax", sql("select {{ " + "1 + " * 10_000 + "1 }} as a")),
    "out of the sandbox": ("unsafe-template", sql("select '{{ ''.__class__.__mro__ }}' as a")),
    "a file includes itself": ("unsafe-template", sql("{% include 'models/m.sql' %}")),
    "a template in YAML": ("unsafe-template", {"mvbuild.yml": "name: shop\nvars: {a: \"{{ 'a' * 10 ** 10 }}\"}\n"}),
    "a loop in YAML": ("unsafe-template", {"mvbuild.yml": 'name: shop\nvars: {a: "{{ 1 }}{% for a in range(10 ** 9) %}x{% endfor %}"}\n'}),
    # Seeds
    "five million values": ("file-too-large", {"seeds/s.csv": "i\n" + "1\n" * 5_000_001}),
    "a seed of 20,000 columns": ("file-too-large", {"seeds/s.csv": ",".join(f"c{i}" for i in range(20_000)) + "\n"}),
    "a seed whose rows are all wrong": ("bad-seed", {"seeds/s.csv": "i\n" + "1,2\n" * 300_000}),
    "a seed of open quotes": ("bad-seed", {"seeds/s.csv": "i,j\n" + '"a\n' * 100_001}),
    # Files that do not end
    "/dev/zero as a model": ("unreadable-file", {"models/z.sql": Path("/dev/zero")}),
    "/dev/zero as YAML": ("unreadable-file", {"models/z.yml": Path("/dev/zero")}),
    "/dev/zero as a seed": ("unreadable-file", {"seeds/z.csv": Path("/dev/zero")}),
    "/dev/zero as the project": ("not-a-project", {"mvbuild.yml": Path("/dev/zero")}),
}

SERVED: dict[str, dict[str, Content]] = {
    "10,000 columns": sql("select " + ",\n  ".join(f"sum(c{i}) as x{i}" for i in range(10_000)) + "\nfrom t\n"),
    "3,000 ORs": sql("select 1 as a from t where " + " or ".join(f"x = {i}" for i in range(3000))),
    "900 UNIONs": sql(" union all ".join(f"select a from t{i}" for i in range(900))),
    "300 joins": sql("select 1 as a from t0 " + " ".join(f"join t{i} on t{i}.a = t0.a" for i in range(1, 300))),
    "50,000 values": sql("select 1 as a from t where x in (" + ",".join(map(str, range(50_000))) + ")"),
    "CTEs that double their columns": sql(
        "with c0 as (select 1 as a), "
        + ", ".join(f"c{i} as (select * from c{i - 1} x, c{i - 1} y)" for i in range(1, 40))
        + " select * from c39"
    ),
    "a string of 5 MB": sql("select '" + "x" * 5 * MB + "' as a"),
    "a long comment": sql("-- hello\n" * 50_000 + "select 1 as a"),
    "1,000 tags": sql("select " + "{% if 1 %}1 + {% endif %}" * 500 + "1 as a"),
    "a project of 1,000 models in a chain": {
        f"models/m{i}.sql": f"select * from {{{{ ref('m{i - 1}') }}}}" if i else "select 1 as a" for i in range(1000)
    },
    "a seed of a million values": {"seeds/s.csv": "id,name\n" + "1,abc\n" * 500_000},
    "links to folders above": {
        **sql("select 1 as a"),
        "models/a/b/x": Path(".."),
        "models/a/b/y": Path("../.."),
        "models/a/c": Path("../../models"),
    },
}


def run(parent: Parent, root: Path, files: dict[str, Content], *commands: str) -> Told:
    lay_out(root, files)
    told = parent.run(root, *commands, seconds=30)
    assert told.is_bounded, told
    assert "Traceback" not in told.stderr
    assert "error[internal]" not in told.stderr
    return told


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_beyond_a_bound_is_a_diagnostic(name: str, parent: Parent, tmp_path: Path) -> None:
    code, files = REFUSED[name]
    told = run(parent, tmp_path, files, "compile")
    assert told.exit == 2
    assert code in re.findall(r"^error\[([a-z-]+)\]", told.stderr, re.MULTILINE), told.stderr[:500]


@pytest.mark.parametrize("name", SERVED)
def test_what_is_large_is_served(name: str, parent: Parent, tmp_path: Path) -> None:
    told = run(parent, tmp_path, SERVED[name], "compile", "lint")
    assert told.exit == 0, told.stderr[:500]


@pytest.mark.parametrize("output", ["text", "json", "sarif", "github"])
def test_very_many_findings_in_one_line(output: str, parent: Parent, tmp_path: Path) -> None:
    told = run(parent, tmp_path, sql("select 1 as a -- mvbuild: allow(" + "a: " * 100_000 + ")"), f"lint --output {output}")
    assert told.exit == 1
    assert "unknown-allowance" in told.stdout


@pytest.mark.parametrize("path", ["models/m.sql", "models/m.yml", "macros/m.sql", "tests/m.sql", "seeds/m.csv", "mvbuild.yml"])
def test_a_file_of_50_megabytes(path: str, parent: Parent, tmp_path: Path) -> None:
    lay_out(tmp_path, {path: ""} if path != "mvbuild.yml" else {})
    os.truncate(tmp_path / path, 50 * MB)
    told = parent.run(tmp_path, "compile", "lint")
    assert told.is_bounded
    assert told.exit == 2
    assert told.stderr.startswith(f"error[file-too-large]: {path} is 50.0 MB; the limit is")


@pytest.mark.parametrize("path", ["models/m.sql", "models/m.yml", "macros/m.sql", "seeds/m.csv", "schemas.lock"])
def test_a_pipe_in_the_place_of_a_file(path: str, parent: Parent, tmp_path: Path) -> None:
    """Reading it would wait forever. A pipe among the files is ignored; a link to one is reported."""
    lay_out(tmp_path, {"models/x.sql": "select 1 as a"})
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / path).unlink(missing_ok=True)
    (tmp_path / path).parent.mkdir(exist_ok=True)
    (tmp_path / path).symlink_to(tmp_path / "pipe")
    told = parent.run(tmp_path, "compile", "lint", seconds=10)
    assert told.is_bounded
    assert told.exit == 2
    assert f"{path} cannot be read: it is a pipe" in told.stderr
