"""bad input -> a code, the place that the user wrote, what is wrong and what to do; exit 2, and the catalog is not touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from unit.cli.bad_input import Case, call, findings, lay_out

GOOD = "select 1 as id\n"


def model_yaml(text: str) -> dict[str, str | bytes]:
    return {"models/m.sql": GOOD, "models/m.yml": text}


def model(text: str) -> dict[str, str | bytes]:
    return {"models/m.sql": text}


YAML = (
    Case(
        name="yaml syntax",
        files={"mvbuild.yml": "name: shop\nvars:\n  a: [1, 2\ntarget«:» x\n"},
        code="yaml-syntax",
        says="cannot be parsed",
    ),
    Case(
        name="yaml syntax in a model's file",
        files=model_yaml("models:\n  - name: m\n   «c»onfig: {}\n"),
        code="yaml-syntax",
        says="cannot be parsed",
    ),
    Case(
        name="yaml tab",
        files=model_yaml("models:\n«\t»- name: m\n"),
        code="yaml-syntax",
        says="a tab cannot indent a line",
    ),
    Case(
        name="unknown key",
        files=model_yaml("models:\n  - name: m\n    «descripton»: x\n"),
        code="unknown-key",
        says="There is no key 'descripton' in a model",
        help="Did you mean 'description'?",
    ),
    Case(
        name="unknown key in mvbuild.yml",
        files={"mvbuild.yml": "name: shop\n«modle-paths»: [m]\n"},
        code="unknown-key",
        says="There is no key 'modle-paths' in mvbuild.yml",
        help="Did you mean 'model-paths'?",
    ),
    Case(
        name="setting outside of config",
        files=model_yaml("models:\n  - name: m\n    «materialized»: view\n"),
        code="unknown-key",
        says="There is no key 'materialized'",
        help="Settings stand under `config:`.",
    ),
    Case(
        name="mistyped value",
        files=model_yaml("models:\n  - name: m\n    config: {enabled: «maybe»}\n"),
        code="wrong-type",
        says="'enabled' is true or false",
    ),
    Case(
        name="number for text",
        files=model_yaml("models:\n  - name: m\n    description: «12»\n"),
        code="wrong-type",
        says="'description' is text",
        help="Write it in quotes.",
    ),
    Case(
        name="mapping for a list",
        files=model_yaml("models:\n  «name: m»\n"),
        code="wrong-type",
        says="'models' is a list of mappings",
    ),
    Case(
        name="missing name",
        files={"mvbuild.yml": "«version: 1»\n"},
        code="missing-key",
        says="'name' is missing in mvbuild.yml",
    ),
    Case(
        name="duplicate yaml key",
        files={"mvbuild.yml": "name: shop\nvars: {a: 1}\n«vars»: {a: 2}\n"},
        code="duplicate-key",
        says="The key 'vars' is there twice",
    ),
    Case(
        name="deep yaml",
        files={"mvbuild.yml": "name: shop\nvars: {a: " + "[" * 101 + "]" * 101 + "}\n"},
        code="yaml-syntax",
        says="nested more than 100 levels deep",
    ),
    Case(
        name="very deep yaml",
        files={"mvbuild.yml": "name: shop\nvars: {a: " + "[" * 100_000 + "]" * 100_000 + "}\n"},
        code="yaml-syntax",
        says="nested more than 100 levels deep",
    ),
    Case(
        name="billion laughs",
        files={
            "mvbuild.yml": "name: shop\nvars:\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
            + "".join(f"  a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 10))
        },
        code="yaml-syntax",
        says="Aliases repeat more than 100,000 values",
    ),
    Case(
        name="yaml with an object",
        files={"mvbuild.yml": "name: shop\nvars: {a: «!!python/object/apply:os.system [ls]»}\n"},
        code="yaml-syntax",
        says="The tag 'python/object/apply:os.system' is not known",
    ),
    Case(
        name="described model is not there",
        files=model_yaml("models:\n  - name: «mm»\n"),
        code="unknown-name",
        says="There is no model 'mm'",
        help="Did you mean 'm'?",
    ),
)

FILES = (
    Case(
        name="two models of one name",
        files={"models/a/m.sql": GOOD, "models/b/m.sql": "«select 1 as id»\n"},
        code="duplicate-name",
        says="There is already a model called 'm'",
    ),
    Case(
        name="model and seed of one name",
        files={"models/m.sql": GOOD, "seeds/m.csv": "id\n1\n"},
        code="duplicate-name",
        says="There is already a model called 'm'",
    ),
    Case(
        name="no utf-8", files={"models/m.sql": b"select '\xff'\n"}, code="unreadable-file", says="no UTF-8 text", help="Save it as UTF-8."
    ),
    Case(
        name="seed is no utf-8",
        files={"seeds/m.csv": b"a\n\xff\n"},
        code="unreadable-file",
        says="no UTF-8 text",
        help="Save it as UTF-8.",
    ),
    Case(
        name="yaml is no utf-8",
        files={"mvbuild.yml": b"name: \xff\n"},
        code="unreadable-file",
        says="mvbuild.yml is no UTF-8 text",
        help="Save it as UTF-8.",
    ),
)

TEMPLATES = (
    Case(
        name="jinja syntax",
        files=model("select 1\nfrom {{ ref('a' «}}»\n"),
        code="template-syntax",
        says="'}'",
    ),
    Case(
        name="endless tag",
        files=model("select 1\n«{% for x in [1] %}»\nfrom t\n"),
        code="template-syntax",
        says="{% for %} is opened here and never closed",
        help="Write {% endfor %} where it ends.",
    ),
    Case(name="undefined jinja name", files=model("select 1,\n  {{ «nam» }}\n"), code="undefined-name", says="'nam' is not defined"),
    Case(
        name="undefined macro",
        files={**model("select {{ «doubl»('a') }} as a\n"), "macros/m.sql": "{% macro double(x) %}{{ x }} * 2{% endmacro %}\n"},
        code="undefined-name",
        says="'doubl' is not defined",
        help="Did you mean 'double'?",
    ),
    Case(
        name="unknown filter",
        files=model("select {{ 'a' | «uper» }}\n"),
        code="undefined-name",
        says="There is no filter 'uper'",
        help="Did you mean 'upper'?",
    ),
    Case(
        name="undefined ref",
        files={**model("select * from {{ ref(«'orderz'») }}\n"), "models/orders.sql": GOOD},
        code="unresolved-ref",
        says="There is no model or seed 'orderz'",
        help="Did you mean 'orders'?",
    ),
    Case(
        name="undefined source",
        files={
            **model("select * from {{ source(«'row'», 'orders') }}\n"),
            "models/s.yml": "sources:\n  - name: raw\n    tables: [{name: orders}]\n",
        },
        code="unresolved-source",
        says="There is no source 'row'",
        help="Did you mean 'raw'?",
    ),
    Case(
        name="undefined source table",
        files={
            **model("select * from {{ source('raw', «'order'») }}\n"),
            "models/s.yml": "sources:\n  - name: raw\n    tables: [{name: orders}]\n",
        },
        code="unresolved-source",
        says="The source 'raw' has no table 'order'",
        help="Did you mean 'orders'?",
    ),
    Case(
        name="missing env_var",
        files=model("select {{ env_var(«'NOWHERE'») }}\n"),
        code="missing-env-var",
        says="The environment variable 'NOWHERE' is not set",
    ),
    Case(
        name="missing env_var in mvbuild.yml",
        files={"mvbuild.yml": "name: shop\ntargets:\n  dev:\n    catalog:\n      uri: «\"{{ env_var('NOWHERE') }}\"»\n"},
        code="missing-env-var",
        says="The environment variable 'NOWHERE' is not set",
    ),
    Case(name="missing var", files=model("select {{ var(«'day'») }}\n"), code="missing-var", says="The variable 'day' is not set"),
    Case(
        name="is_incremental",
        files=model("select 1\n«{% if is_incremental() %}»where x{% endif %}\n"),
        code="not-needed",
        says="is_incremental() is not needed",
    ),
    Case(
        name="run_query",
        files=model("select «{{ run_query('select 1') }}»\n"),
        code="not-needed",
        says="Templates run no queries",
    ),
    Case(
        name="endless loop",
        files=model(
            "{% set n = namespace(i=0) %}\n{% for a in range(10000) %}{% for b in range(10000) %}{% endfor %}{% endfor %}\nselect 1\n"
        ),
        code="template-error",
        says="The template takes more than",
    ),
    Case(
        name="endless macro",
        files={**model("select {{ f() }}\n"), "macros/f.sql": "{% macro f() %}{{ f() }}{% endmacro %}\n"},
        code="template-error",
        says="calls itself without end",
    ),
    Case(
        name="endless list",
        files=model("{% set x = [1] %}\n{% for i in range(100) %}«{% do x.extend(x) %}»{% endfor %}\nselect 1\n"),
        code="template-error",
        says="too large",
    ),
    Case(
        name="division by zero",
        files=model("select\n  «{{ 1 / 0 }}»\n"),
        code="template-error",
        says="Division by zero",
    ),
    Case(
        name="the template's own error",
        files=model("«{{ exceptions.raise_compiler_error('no such day') }}»\n"),
        code="template-error",
        says="no such day",
    ),
    Case(
        name="unknown setting in config()",
        files=model("{{ config(«materialised»='view') }}\nselect 1\n"),
        code="unknown-key",
        says="There is no setting 'materialised'",
        help="Did you mean 'materialized'?",
    ),
    Case(
        name="bad value in config()",
        files=model("{{ config(\n  tags=['x'],\n  materialized=«'table'»\n) }}\nselect 1 as a\n"),
        code="wrong-type",
        says="'materialized' is one of",
    ),
    Case(
        name="bad partition transform",
        files=model("{{ config(partition_by=«'week(d)'») }}\nselect 1 as d\n"),
        code="wrong-type",
        says="no partition transform of Iceberg",
    ),
    Case(
        name="bad partition transform in yaml",
        files=model_yaml("models:\n  - name: m\n    config:\n      partition_by: [a, «'bucket(id)'»]\n"),
        code="wrong-type",
        says="bucket(16, c)",
    ),
    Case(
        name="bad duration",
        files=model_yaml("models:\n  - name: m\n    config: {freshness: {max_staleness: «soon»}}\n"),
        code="wrong-type",
        says="'max_staleness' is a duration like 30m",
    ),
)

UNSAFE = (
    "{{ ''.__class__.__mro__ }}",
    "{{ ref.__globals__ }}",
    "{{ config.__func__.__code__ }}",
    "{{ this._names }}",
    "{{ self._TemplateReference__context }}",
    "{{ ''['__class__'] }}",
    "{{ ('' | attr('__class__')) }}",
    "{{ '{0.__class__}'.format('') }}",
    "{{ [].append.__self__.__class__ }}",
)

SQL = (
    Case(
        name="sql syntax",
        files=model("select a,\nfrom t\nwhere «group» by a\n"),
        code="sql-syntax",
        says="",
    ),
    Case(
        name="sql syntax in a jinja loop",
        files=model("select\n{% for c in ['a', 'b'] %}\n  sum({{ c }}) sum«(»1) as {{ c }},\n{% endfor %}\n  1 as one\nfrom t\n"),
        code="sql-syntax",
        says="",
    ),
    Case(
        name="sql syntax in a macro",
        files={
            **model("select\n  «{{ half('a') }}» as a\nfrom t\n"),
            "macros/half.sql": "{% macro half(x) %}({{ x }} / 2)){% endmacro %}\n",
        },
        code="sql-syntax",
        says="",
    ),
    Case(
        name="unclosed parenthesis",
        files=model("select sum(a «from» t\n"),
        code="sql-syntax",
        says="",
    ),
    Case(name="unclosed string", files=model("select «'»a from t\n"), code="sql-syntax", says="A string"),
    Case(
        name="two statements",
        files=model("select 1 as a;\n«select» 2 as a;\n"),
        code="many-statements",
        says="A second statement begins here",
    ),
    Case(name="no query", files=model("«insert» into t select 1\n"), code="not-a-query", says=""),
    Case(name="drop", files=model("-- tidy up\n«drop» table t\n"), code="not-a-query", says=""),
    Case(name="empty file", files=model(""), code="empty-sql", says="There is no SQL here"),
    Case(name="only a comment", files=model("-- later\n"), code="empty-sql", says="There is no SQL here"),
    Case(name="only a tag", files=model("{{ config(materialized='view') }}\n"), code="empty-sql", says="There is no SQL here"),
    Case(name="deep parentheses", files=model("select " + "(" * 1000 + "1" + ")" * 1000 + " as a\n"), code="sql-syntax", says="nested"),
    Case(name="control character", files=model("select 1 as a\n«\x00»\n"), code="sql-syntax", says=""),
    Case(name="escape character", files=model("select 1 «\x1b»[31m as a\n"), code="sql-syntax", says=""),
    Case(
        name="sql test with two statements",
        files={"tests/t.sql": "select 1; «select» 2\n"},
        code="many-statements",
        says="A second statement",
    ),
)

GRAPH = (
    Case(
        name="cycle",
        files={
            "models/a.sql": "select * from «{{ ref('c') }}»\n",
            "models/b.sql": "select * from {{ ref('a') }}\n",
            "models/c.sql": "select * from {{ ref('b') }}\n",
        },
        code="cycle",
        says="a -> c -> b -> a",
    ),
    Case(name="self reference", files=model("select * from «{{ ref('m') }}»\n"), code="cycle", says="odel 'm' reads itself"),
    Case(name="reads this", files=model("select * from «{{ this }}»\n"), code="cycle", says="odel 'm' reads itself"),
    Case(
        name="two models with one catalog name",
        files={"models/a.sql": "{{ config(alias='x') }}\nselect 1 as id\n", "models/b.sql": "{{ config(alias=«'x'») }}\nselect 1 as id\n"},
        code="duplicate-name",
        says="main.x",
    ),
    Case(
        name="storage table named like a model",
        files={"models/a.sql": "{{ config(storage_table='b') }}\nselect 1 as id\n", "models/b.sql": "«select 1 as id»\n"},
        code="duplicate-name",
        says="main.b",
    ),
    Case(
        name="accepted_values without values",
        files=model_yaml("models:\n  - name: m\n    columns:\n      - name: id\n        data_tests: [«accepted_values»]\n"),
        code="missing-key",
        says="The test 'accepted_values' needs 'values'",
    ),
    Case(
        name="relationships to an unknown model",
        files=model_yaml(
            "models:\n  - name: m\n    columns:\n      - name: id\n        data_tests:\n"
            "          - relationships: {to: «ref('n')», field: id}\n"
        ),
        code="unresolved-ref",
        says="'n'",
    ),
    Case(
        name="column test on a model",
        files=model_yaml("models:\n  - name: m\n    data_tests: [«not_null»]\n"),
        code="missing-key",
        says="The test 'not_null' needs a column",
        help="Put the test below the column",
    ),
    Case(
        name="unknown test",
        files=model_yaml("models:\n  - name: m\n    columns: [{name: id, data_tests: [«not_nul»]}]\n"),
        code="unknown-key",
        says="There is no test 'not_nul'",
        help="Did you mean 'not_null'?",
    ),
)

SEEDS = (
    Case(
        name="bad value in a seed",
        files={
            "seeds/s.csv": "id,name\n1,a\n«x»,b\n",
            "seeds/s.yml": "seeds:\n  - name: s\n    config: {column_types: {id: bigint}}\n",
        },
        code="bad-seed",
        says="Row 2, column 'id' (long): 'x'",
    ),
    Case(
        name="too many fields",
        files={"seeds/s.csv": "id,name\n1,a\n2,b,«c»\n"},
        code="bad-seed",
        says="The row has 3 fields, and the header 2",
    ),
    Case(name="too few fields", files={"seeds/s.csv": "id,name\n«1»\n"}, code="bad-seed", says="The row has 1 fields, and the header 2"),
    Case(name="empty seed", files={"seeds/s.csv": ""}, code="bad-seed", says="has no header"),
    Case(
        name="unknown type of a seed's column",
        files={"seeds/s.csv": "id\n1\n", "seeds/s.yml": "seeds:\n  - name: s\n    config: {column_types: {id: «bigit»}}\n"},
        code="wrong-type",
        says="The type of column 'id'",
        help="Did you mean 'bigint'?",
    ),
)

POSTGRES = "name: shop\ntargets:\n  dev:\n    catalog: {type: sql, uri: 'postgresql+psycopg2://me:S3cret@127.0.0.1:9/db', warehouse: file:///tmp/w}\n"
REST = "name: shop\ntargets:\n  dev:\n    catalog: {type: rest, uri: 'http://127.0.0.1:9', token: S3cret}\n"
SQLITE = "name: shop\ntargets:\n  dev:\n    catalog: {type: sql, uri: 'sqlite:////proc/nowhere/catalog.db', warehouse: file:///tmp/w}\n"
TARGETS = "name: shop\n«targets»:\n  dev: {}\n  production: {}\n"

WORLD = (
    Case(
        name="unknown target",
        files={"mvbuild.yml": TARGETS},
        command="compile --target prodution",
        code="unknown-target",
        says="The target 'prodution' is not declared",
        help="Did you mean 'production'?",
    ),
    Case(
        name="unknown default target",
        files={"mvbuild.yml": "name: shop\ntarget: «prod»\ntargets:\n  dev: {}\n"},
        code="unknown-target",
        says="The target 'prod' is not declared",
    ),
    Case(
        name="REST catalog",
        files={"mvbuild.yml": REST, **model(GOOD)},
        command="plan",
        code="catalog-unreachable",
        says="Catalog 'lake' cannot be reached",
    ),
    Case(
        name="SQLite catalog",
        files={"mvbuild.yml": SQLITE, **model(GOOD)},
        command="plan",
        code="catalog-unreachable",
        says="Catalog 'lake' cannot be reached",
    ),
    Case(
        name="unknown catalog type",
        files={"mvbuild.yml": SQLITE.replace("type: sql", "type: sqll"), **model(GOOD)},
        command="plan",
        code="catalog-error",
        says="",
    ),
    Case(
        name="no project",
        files={"mvbuild.yml": "name: shop\n"},
        command="compile --project-dir models",
        code="not-a-project",
        says="There is no",
    ),
    Case(name="project directory is not there", command="compile --project-dir nowhere", code="not-a-project", says="There is no directory"),
    Case(name="project directory is a file", command="compile --project-dir mvbuild.yml", code="not-a-project", says="is no directory"),
    Case(
        name="unwritable target",
        files=model(GOOD),
        command="compile --target-path /proc/nowhere",
        code="unwritable-target",
        says="cannot write to /proc/nowhere",
    ),
    Case(
        name="target path is a file",
        files=model(GOOD),
        command="compile --target-path mvbuild.yml",
        code="unwritable-target",
        says="mvbuild.yml",
    ),
    Case(name="unknown selector method", files=model(GOOD), command="ls -s tagg:x", code="unknown-selector", says="tagg"),
    Case(name="selector of nonsense", files=model(GOOD), command="ls -s +++", code="unknown-selector", says="+++"),
    Case(name="show of nothing", files=model(GOOD), command="show n", code="unknown-name", says="There is no model 'n'"),
)

ALL = (*YAML, *FILES, *TEMPLATES, *SQL, *GRAPH, *SEEDS, *WORLD)


@pytest.mark.parametrize("case", ALL, ids=str)
def test_bad_input(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    mark = lay_out(tmp_path, case.files)
    outcome = call(case.command, tmp_path, case.env, monkeypatch, capsys)
    assert outcome.exit == case.exit, outcome
    assert outcome.stdout == ""
    first, *others = findings(outcome.stderr)
    assert first.split(" at ")[0] == case.code, outcome.stderr
    assert case.says in outcome.stderr
    assert "\n  help: " in outcome.stderr
    assert case.help in outcome.stderr.rpartition("\n  help: ")[2]
    assert "Traceback" not in outcome.stderr
    assert "S3cret" not in outcome.stderr
    if mark:
        assert first == f"{case.code} at {mark.place}", outcome.stderr
        assert f"| {'^' * mark.width}\n" in outcome.stderr.replace(" " * 0, "").replace("\t", " ") or "^" * mark.width in outcome.stderr
    assert tuple(others) == case.also
    assert not (tmp_path / ".mvbuild").exists()
