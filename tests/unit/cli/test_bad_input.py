"""bad input -> a code, the place that the user wrote, what is wrong and what to do; exit 2, and the catalog is not touched."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from unit.cli.bad_input import Case, Content, call, findings, lay_out

GOOD = "select 1 as id\n"


def model_yaml(text: str) -> dict[str, Content]:
    return {"models/m.sql": GOOD, "models/m.yml": text}


def model(text: str) -> dict[str, Content]:
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
        says="Unknown key 'descripton' in a model",
        help="Did you mean 'description'?",
    ),
    Case(
        name="unknown key in mvbuild.yml",
        files={"mvbuild.yml": "name: shop\n«modle-paths»: [m]\n"},
        code="unknown-key",
        says="Unknown key 'modle-paths' in mvbuild.yml",
        help="Did you mean 'model-paths'?",
    ),
    Case(
        name="setting outside of config",
        files=model_yaml("models:\n  - name: m\n    «materialized»: view\n"),
        code="unknown-key",
        says="Unknown key 'materialized'",
        help="Settings go under `config:`.",
    ),
    Case(
        name="mistyped value",
        files=model_yaml("models:\n  - name: m\n    config: {enabled: «maybe»}\n"),
        code="wrong-type",
        says="'enabled' must be true or false",
    ),
    Case(
        name="number for text",
        files=model_yaml("models:\n  - name: m\n    description: «12»\n"),
        code="wrong-type",
        says="'description' must be a string",
        help="Put it in quotes.",
    ),
    Case(
        name="mapping for a list",
        files=model_yaml("models:\n  «name: m»\n"),
        code="wrong-type",
        says="'models' must be a list of mappings",
    ),
    Case(
        name="missing name",
        files={"mvbuild.yml": "«version: 1»\n"},
        code="missing-key",
        says="Missing key 'name' in mvbuild.yml",
    ),
    Case(
        name="duplicate yaml key",
        files={"mvbuild.yml": "name: shop\nvars: {a: 1}\n«vars»: {a: 2}\n"},
        code="duplicate-key",
        says="Duplicate key 'vars'",
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
        says="Unknown tag 'python/object/apply:os.system'",
    ),
    Case(
        name="described model is not there",
        files=model_yaml("models:\n  - name: «mm»\n"),
        code="unknown-name",
        says="Unknown model 'mm'",
        help="Did you mean 'm'?",
    ),
    Case(
        name="a group's config is no mapping",
        files=model_yaml("groups:\n  - {name: g, owner: {name: Ada}, config: «[2]»}\n"),
        code="wrong-type",
        says="'config' must be a mapping",
    ),
    Case(
        name="a group's meta is no mapping",
        files=model_yaml("groups:\n  - {name: g, owner: {name: Ada}, config: {meta: «[2]»}}\n"),
        code="wrong-type",
        says="'meta' must be a mapping",
    ),
    *(
        Case(
            name=f"a template for {key} of a unit test",
            files=model_yaml(f"unit_tests:\n  - {{name: u, model: m, {text}, expect: {{rows: [{{id: 1}}]}}}}\n"),
            code="wrong-type",
            says=f"'{key}' must be ",
            help="Write the value itself: templates are not rendered here.",
        )
        for key, text in (
            ("config", "config: «'{{ 1 }}'»"),
            ("overrides", "overrides: «'{{ 1 }}'»"),
            ("env_vars", "overrides: {env_vars: «'{{ 1 }}'»}"),
            ("given", "given: «'{{ 1 }}'»"),
            ("random", "given: [{input: \"ref('n')\", random: «'{{ 1 }}'»}]"),
        )
    ),
    Case(
        name="a template for the config of an exposure",
        files=model_yaml("exposures:\n  - {name: e, type: ml, owner: {name: Ada}, config: «'{{ 1 }}'»}\n"),
        code="wrong-type",
        says="'config' must be a mapping",
    ),
    Case(
        name="a template for the config of a test",
        files=model_yaml("models:\n  - {name: m, columns: [{name: id, data_tests: [{unique: {config: «'{{ 1 }}'»}}]}]}\n"),
        code="wrong-type",
        says="'config' must be a mapping",
    ),
    Case(
        name="a version of a unit test",
        files={
            "models/m_v1.sql": GOOD,
            "models/m.yml": "models: [{name: m, versions: [{v: 1}]}]\n"
            "unit_tests:\n  - {name: u, model: m, versions: «{include: 12}», expect: {rows: [{id: 1}]}}\n",
        },
        code="bad-unit-test",
        says="'m' has no version 12",
    ),
)

FILES = (
    Case(
        name="two models of one name",
        files={"models/a/m.sql": GOOD, "models/b/m.sql": "«select 1 as id»\n"},
        code="duplicate-name",
        says="Duplicate model name 'm'",
    ),
    Case(
        name="model and seed of one name",
        files={"models/m.sql": GOOD, "seeds/m.csv": "id\n1\n"},
        code="duplicate-name",
        says="'m' is the name of a seed and of a model",
    ),
    Case(
        name="no utf-8",
        files={"models/m.sql": b"select '\xff'\n"},
        code="unreadable-file",
        says="not valid UTF-8",
        help="Save it as UTF-8.",
    ),
    Case(
        name="seed is no utf-8",
        files={"seeds/m.csv": b"a\n\xff\n"},
        code="unreadable-file",
        says="not valid UTF-8",
        help="Save it as UTF-8.",
    ),
    Case(name="a directory called m.sql", files={"models/m.sql": None, "models/n.sql": "selec 1"}, code="sql-syntax", says="SELECT"),
    Case(name="dangling link", files={"models/m.sql": Path("nowhere.sql")}, code="unreadable-file", says="models/m.sql cannot be read"),
    Case(name="link to itself", files={"seeds/m.csv": Path("m.csv")}, code="unreadable-file", says="seeds/m.csv cannot be read"),
    Case(
        name="yaml is no utf-8",
        files={"mvbuild.yml": b"name: \xff\n"},
        code="unreadable-file",
        says="mvbuild.yml is not valid UTF-8",
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
        says="{% for %} is never closed",
        help="Close it with {% endfor %}.",
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
        says="Unknown filter 'uper'",
        help="Did you mean 'upper'?",
    ),
    Case(
        name="undefined ref",
        files={**model("select * from {{ ref(«'orderz'») }}\n"), "models/orders.sql": GOOD},
        code="unresolved-ref",
        says="Unknown model or seed 'orderz'",
        help="Did you mean 'orders'?",
    ),
    Case(
        name="undefined source",
        files={
            **model("select * from {{ source(«'row'», 'orders') }}\n"),
            "models/s.yml": "sources:\n  - name: raw\n    tables: [{name: orders}]\n",
        },
        code="unresolved-source",
        says="Unknown source 'row'",
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
        says="Templates cannot run queries",
    ),
    Case(
        name="endless loop",
        files=model(
            "{% set n = namespace(i=0) %}\n{% for a in range(10000) %}{% for b in range(10000) %}{% endfor %}{% endfor %}\nselect 1\n"
        ),
        code="template-limit",
        says="The template takes more than",
    ),
    Case(
        name="endless macro",
        files={**model("select {{ f() }}\n"), "macros/f.sql": "{% macro f() %}{{ f() }}{% endmacro %}\n"},
        code="template-limit",
        says="calls itself endlessly",
    ),
    Case(
        name="endless list",
        files=model("{% set x = [1] %}\n{% for i in range(100) %}\n  «{% do x.extend(x) %}»\n{% endfor %}\nselect 1\n"),
        code="template-limit",
        says="holds more than 250,000 values",
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
        says="Unknown setting 'materialised'",
        help="Did you mean 'materialized'?",
    ),
    Case(
        name="bad value in config()",
        files=model("{{ config(\n  tags=['x'],\n  materialized=«'table'»\n) }}\nselect 1 as a\n"),
        code="wrong-type",
        says="'materialized' must be one of",
    ),
    Case(
        name="bad partition transform",
        files=model("{{ config(partition_by=«'week(d)'») }}\nselect 1 as d\n"),
        code="wrong-type",
        says="not a partition transform of Iceberg",
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
        says="'max_staleness' must be a duration like 30m",
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
        files=model("select a,\nfrom t\nwhere «group by» a\n"),
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
        help="Move the test to the column",
    ),
    Case(
        name="unknown test",
        files=model_yaml("models:\n  - name: m\n    columns: [{name: id, data_tests: [«not_nul»]}]\n"),
        code="unknown-key",
        says="Unknown test 'not_nul'",
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
        says="The row has 3 fields, and the header has 2",
    ),
    Case(name="too few fields", files={"seeds/s.csv": "id,name\n«1»\n"}, code="bad-seed", says="The row has 1 field, and the header has 2"),
    Case(name="empty seed", files={"seeds/s.csv": ""}, code="bad-seed", says="has no header"),
    Case(
        name="unknown type of a seed's column",
        files={"seeds/s.csv": "id\n1\n", "seeds/s.yml": "seeds:\n  - name: s\n    config: {column_types: {id: «bigit»}}\n"},
        code="wrong-type",
        says="The type of column 'id'",
        help="Did you mean 'bigint'?",
    ),
)

GOOD_MODEL = model(GOOD)
TARGETS = "name: shop\n«targets»:\n  dev: {}\n  production: {}\n"


def catalog(properties: str) -> dict[str, Content]:
    return {**GOOD_MODEL, "mvbuild.yml": f"name: shop\ntargets:\n  dev:\n    catalog: {{{properties}}}\n"}


CLOSED = "127.0.0.1:9"
HAS_DRIVER = find_spec("psycopg2") is not None
CATALOG = (
    Case(
        name="Postgres is not there",
        files=catalog(f"type: sql, uri: 'postgresql+psycopg2://me:S3cret@{CLOSED}/db', warehouse: 'file:///tmp/w'"),
        command="plan",
        code="catalog-unreachable" if HAS_DRIVER else "catalog-error",
        says="Catalog 'lake'",
    ),
    Case(
        name="REST catalog is not there",
        files=catalog(f"type: rest, uri: 'http://{CLOSED}', token: S3cret"),
        command="plan",
        code="catalog-unreachable",
        says="Catalog 'lake' cannot be reached",
    ),
    Case(
        name="REST catalog with credentials",
        files=catalog(
            f"type: rest, uri: 'http://me:S3cret@{CLOSED}', credential: 'me:S3cret', oauth2-server-uri: 'http://{CLOSED}/tokens'"
        ),
        command="status",
        code="catalog-unreachable",
        says="Catalog 'lake' cannot be reached",
    ),
    Case(
        name="SQLite file is not there",
        files=catalog("type: sql, uri: 'sqlite:////proc/nowhere/catalog.db', warehouse: 'file:///tmp/w'"),
        command="plan",
        code="catalog-unreachable",
        says="/proc/nowhere",
    ),
    Case(
        name="embedded catalog cannot be made",
        files={**GOOD_MODEL, ".mvbuild": "a file"},
        command="plan",
        code="catalog-error",
        says=".mvbuild",
        reads_catalog=True,
    ),
    Case(
        name="unknown catalog type",
        files=catalog("type: sqll, uri: 'x'"),
        command="plan",
        code="catalog-error",
        says="has the unknown type 'sqll'. Known types: bigquery, ",
    ),
)

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
        help="Known names: dev.",
    ),
    Case(
        name="no project",
        files=GOOD_MODEL,
        command="compile --project-dir models",
        code="not-a-project",
        says="There is no mvbuild.yml in",
        help="You are in a folder of the project",
    ),
    Case(name="project directory is not there", command="ls --project-dir nowhere", code="not-a-project", says="does not exist"),
    Case(name="project directory is a file", command="run --project-dir mvbuild.yml", code="not-a-project", says="is not a directory"),
    Case(
        name="unwritable target",
        files=GOOD_MODEL,
        command="compile --target-path /proc/nowhere",
        code="unwritable-target",
        says="Cannot write to /proc/nowhere",
        help="choose another with --target-path",
    ),
    Case(
        name="target path is a file",
        files=GOOD_MODEL,
        command="compile --target-path mvbuild.yml",
        code="unwritable-target",
        says="mvbuild.yml: ",
    ),
)

COMMAND_LINE = (
    Case(name="unknown command", command="rnu", code="command-line", says="Unknown command 'rnu'", help="Did you mean 'run'?"),
    *(
        Case(name=f"{command} without a command", command=command, code="command-line", says=f"Missing command: {says}\n")
        for command, says in (
            ("branch", "choose one of drop, list"),
            ("engine", "choose one of status, stop"),
            ("docs", "choose one of build, serve"),
            ("import", "write `mvbuild import dbt`"),
            ("import --quiet", "write `mvbuild import dbt`"),
            ("source", "write `mvbuild source freshness`"),
        )
    ),
    *(
        Case(name=f"unknown command of {command}", command=command, code="command-line", says="Unknown command '", help=help)
        for command, help in (
            ("import foo", "Known names: dbt."),
            ("import clone", "Known names: dbt."),
            ("branch lst", "Did you mean 'list'?"),
            ("docs generat", "Did you mean 'generate'?"),
        )
    ),
    Case(name="unknown option", command="run --selct x", code="command-line", says="'--selct'", help="Did you mean '--select'?"),
    Case(
        name="option of dbt", command="run --defer", code="command-line", says="'--defer'", help="mvbuild compares with the catalog itself"
    ),
    Case(name="bad number of threads", command="run --threads 0", code="command-line", says="Invalid value for '--threads'"),
    Case(name="bad output", command="ls --output yaml", code="command-line", says="'yaml' is not one of"),
    *(
        Case(
            name=f"unknown key {key}",
            command=f"ls --output json --output-keys 'name {key}'",
            code="command-line",
            says=f"Unknown key '{key}' in --output-keys",
            help=help,
        )
        for key, help in (("foo", "Known keys: access, alias, "), ("resource_typ", "Did you mean 'resource_type'?"))
    ),
    Case(name="bad resource type", command="ls --resource-type view", code="command-line", says="'view' is not one of"),
    Case(
        name="extra argument",
        command="run m",
        code="command-line",
        says="unexpected extra argument",
        help="Choose nodes by name with --select: `mvbuild run --select NAME`.",
    ),
    Case(name="vars is no mapping", command="compile --vars '[1]'", code="command-line", says="--vars must be a YAML mapping"),
    Case(
        name="vars has a key that is no name",
        command="compile --vars '{1: 2}'",
        code="command-line",
        says="The keys of --vars must be names like 'key' in '{key: value}', not 1",
    ),
    Case(name="vars is no yaml", command="compile --vars '{a: '", code="command-line", says="--vars must be a YAML mapping"),
    Case(
        name="unknown selector method",
        files=GOOD_MODEL,
        command="ls -s tagg:x",
        code="unknown-selector",
        says="Unknown selector method 'tagg'",
    ),
    Case(name="empty selector", files=GOOD_MODEL, command="ls --selector ''", code="unknown-selector", says="Unknown selector ''"),
    Case(name="selector of nonsense", files=GOOD_MODEL, command="ls -s +++", code="unknown-selector", says="The selector '+++'"),
    Case(
        name="show of nothing",
        files=GOOD_MODEL,
        command="show n",
        code="unknown-name",
        says="Unknown model 'n'",
        help="Known names: m.",
        reads_catalog=True,
    ),
)

ALL = (*YAML, *FILES, *TEMPLATES, *SQL, *GRAPH, *SEEDS, *CATALOG, *WORLD, *COMMAND_LINE)


@pytest.mark.parametrize("case", ALL, ids=str)
def test_bad_input(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    mark = lay_out(tmp_path, case.files)
    outcome = call(case.command, tmp_path, {}, monkeypatch, capsys)
    assert (outcome.exit, outcome.stdout) == (2, ""), outcome
    (found,) = findings(outcome.stderr)
    assert found.split(" at ")[0] == case.code, outcome.stderr
    if mark:
        assert found == f"{case.code} at {mark.place}", outcome.stderr
        assert f" {'^' * mark.width}\n" in outcome.stderr
    assert case.says in outcome.stderr
    assert case.help in outcome.stderr.rpartition("\n  help: ")[2]
    assert "\n  help: " in outcome.stderr
    assert not any(word in outcome.stderr for word in ("Traceback", "S3cret", "\x1b"))
    assert case.reads_catalog or not (tmp_path / ".mvbuild").exists()


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ ''['__class__'] }}",
        "{{ '' | attr('__class__') }}",
        "{{ '{0.__class__}'.format('') }}",
        "{{ [].append.__self__ }}",
        "{{ ref.__globals__ }}",
        "{{ config.__func__.__code__ }}",
        "{{ this._names._env }}",
        "{{ exceptions._names }}",
        "{{ self._TemplateReference__context }}",
        "{{ var('x', ref).__self__._env }}",
        "{% include '/etc/passwd' %}",
        "{% import 'macros/m.sql' as m %}",
        "{% extends 'models/m.sql' %}",
        "{{ open('/etc/passwd').read() }}",
        "{{ environ }}",
        "{{ modules.os.environ }}",
        "{{ import('os') }}",
    ],
)
def test_a_template_stays_in_its_sandbox(
    template: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lay_out(tmp_path, model(f"select '{template}' as a\n"))
    outcome = call("compile", tmp_path, {}, monkeypatch, capsys)
    assert outcome.exit == 2, outcome
    assert findings(outcome.stderr)[0].split(" ")[0] in ("unsafe-template", "undefined-name", "template-syntax"), outcome.stderr
    assert "models/m.sql:1:" in outcome.stderr


def test_all_errors_of_a_stage_are_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "models/a.sql": "select {{ nope }}\n",
        "models/b.sql": "select * from {{ ref('gone') }} join {{ source('no', 'table') }}\n",
        "models/c.sql": "drop table x\n",
        "models/d.sql": "select {{ var('unset') }}, {{ env_var('UNSET') }}\n",
    }
    lay_out(tmp_path, files)
    outcome = call("compile", tmp_path, {}, monkeypatch, capsys)
    assert outcome.exit == 2
    assert findings(outcome.stderr) == [
        "undefined-name at models/a.sql:1:11",
        "unresolved-ref at models/b.sql:1:22",
        "unresolved-source at models/b.sql:1:48",
        "not-a-query at models/c.sql:1:1",
        "missing-var at models/d.sql:1:15",
        "missing-env-var at models/d.sql:1:39",
    ]
    assert outcome.stderr.endswith("6 errors\n")


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"models/m.sql": "select 1 as a where {{ var('unset') }} and 1 = 1\n"}, ["missing-var at models/m.sql:1:28"]),
        ({"models/m.sql": "{{ env_var('UNSET') }}\n"}, ["missing-env-var at models/m.sql:1:12"]),
        ({"models/m.sql": "{{ config(enabled=var('unset')) }} select 1 as a\n"}, ["missing-var at models/m.sql:1:23"]),
        ({"tests/t.sql": "{{ config(enabled=var('unset')) }} select 1 as a\n"}, ["missing-var at tests/t.sql:1:23"]),
        (
            {"models/m.sql": "select 1 as a", "models/m.yml": "models: [{name: m, config: {enabled: \"{{ var('unset') }}\"}}]\n"},
            ["missing-var at models/m.yml:1:38"],
        ),
        (
            {"models/m.sql": "select 1 as a", "models/m.yml": "models: [{name: m, deprecation_date: 2020-13-01}]\n"},
            ["yaml-syntax at models/m.yml:1:38"],
        ),
        (
            {"models/m.sql": "{{ config(enabled=var('unset'), tags=5) }} select 1 as a\n"},
            ["missing-var at models/m.sql:1:23", "wrong-type at models/m.sql:1:38"],
        ),
    ],
)
def test_one_mistake_is_one_error(
    files: dict[str, str], expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lay_out(tmp_path, files)
    assert findings(call("compile", tmp_path, {}, monkeypatch, capsys).stderr) == expected


def test_a_megabyte_of_sql_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    lay_out(tmp_path, model(f"select '{'x' * 1_000_000}' as a\n-- {'y' * 100_000}\nfrom t where «»\n"))
    outcome = call("compile", tmp_path, {}, monkeypatch, capsys)
    assert outcome.exit == 2
    assert findings(outcome.stderr) == ["sql-syntax at models/m.sql:3:8"]
    assert len(outcome.stderr) < 1000


JAVAS = {
    "none": ("no-java", "there is no `java` on PATH"),
    "no home": ("no-java", "it has no bin/java"),
    "eleven": ("wrong-java", "Java 11 was found"),
}


@pytest.mark.parametrize("java", JAVAS)
def test_java(java: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    lay_out(tmp_path, {**GOOD_MODEL, "bin/java": "#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n"})
    (tmp_path / "bin/java").chmod(0o755)
    env = {
        "PATH": str(tmp_path / "bin") if java == "eleven" else str(tmp_path),
        "JAVA_HOME": str(tmp_path / "x") if java == "no home" else "",
    }
    outcome = call("run", tmp_path, env, monkeypatch, capsys)
    code, says = JAVAS[java]
    assert (outcome.exit, findings(outcome.stderr)) == (2, [code]), outcome
    assert says in outcome.stderr
    assert "Install Java 17 or 21" in outcome.stderr
    assert embedded(tmp_path).list_namespaces() == []


def embedded(root: Path) -> SqlCatalog:
    """The catalog that mvbuild makes in a project without targets."""
    home = root / ".mvbuild"
    home.mkdir(exist_ok=True)
    return SqlCatalog("lake", uri=f"sqlite:///{home}/catalog.db", warehouse=f"file://{home}/warehouse")


@pytest.mark.parametrize(
    ("table", "files", "place", "says"),
    [
        ("main.m", {}, "models/m.sql:1:1", "lake.main.m, which is a table"),
        ("main.m__storage", {}, "models/m.sql:1:1", "lake.main.m__storage, a table that mvbuild did not write"),
        ("main.x", model("{{ config(alias='x') }}select 1 as id\n"), "models/m.sql:1:17", "lake.main.x, which is a table"),
        ("main.s", {"seeds/s.csv": "a\n1\n"}, "seeds/s.csv:1:1", "lake.main.s, a table that mvbuild did not write"),
    ],
)
def test_a_name_that_somebody_else_has_in_the_catalog(
    table: str,
    files: dict[str, Content],
    place: str,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lay_out(tmp_path, {**GOOD_MODEL, **files})
    catalog = embedded(tmp_path)
    catalog.create_namespace("main")
    before = catalog.create_table(table, Schema(NestedField(1, "id", LongType()))).metadata_location
    outcome = call("run --select s" if table == "main.s" else "run", tmp_path, {}, monkeypatch, capsys)
    assert outcome.exit == 1
    assert all(text in outcome.stderr for text in ("error[name-collision]", f"--> {place}", says)), outcome.stderr
    assert [".".join(t) for t in catalog.list_tables("main")] == [table]
    assert catalog.load_table(table).metadata_location == before


def test_the_storage_of_another_model_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lay_out(tmp_path, model("{{ config(storage_table='kept') }}select 1 as id\n"))
    catalog = embedded(tmp_path)
    catalog.create_namespace("main")
    catalog.create_table("main.kept", Schema(NestedField(1, "id", LongType())), properties={"mvbuild.model": "model.shop.other"})
    outcome = call("run", tmp_path, {}, monkeypatch, capsys)
    assert outcome.exit == 1
    for text in ("error[name-collision]", "--> models/m.sql:1:25", "lake.main.kept, the storage of model.shop.other", "`previous_name:`"):
        assert text in outcome.stderr
    assert catalog.list_tables("main") == [("main", "kept")]


@pytest.mark.parametrize(("owner", "is_said"), [("seed.other.s", True), ("seed.other.s.v2", True), ("seed.shop.s", False)])
def test_what_another_project_built_is_replaced_with_a_warning(
    owner: str, is_said: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lay_out(tmp_path, {"mvbuild.yml": "name: shop\n", "seeds/s.csv": "id\n1\n"})
    catalog = embedded(tmp_path)
    catalog.create_namespace("main")
    properties = {"mvbuild.model": owner, "mvbuild.seed.sha256": "0"}
    catalog.create_table("main.s", Schema(NestedField(1, "id", LongType())), properties=properties)
    planned = call("plan", tmp_path, {}, monkeypatch, capsys)
    text = "warning[other-project]: The project 'other' built lake.main.s, and this project replaces it"
    assert (text in planned.stderr) is is_said
    assert f"Otherwise remove {owner} there." in planned.stderr or not is_said
    assert call("run", tmp_path, {}, monkeypatch, capsys).exit == 0
    assert "other-project" not in call("plan", tmp_path, {}, monkeypatch, capsys).stderr


SHOWN = (
    "yaml syntax",
    "unknown key",
    "duplicate yaml key",
    "model and seed of one name",
    "endless tag",
    "undefined ref",
    "missing env_var",
    "bad value in config()",
    "sql syntax in a jinja loop",
    "sql syntax in a macro",
    "two statements",
    "deep parentheses",
    "escape character",
    "cycle",
    "storage table named like a model",
    "relationships to an unknown model",
    "bad value in a seed",
    "unknown target",
    "unknown option",
)


@pytest.mark.parametrize("case", [c for c in ALL if c.name in SHOWN], ids=str)
def test_the_whole_message(
    case: Case, golden: Callable[[str, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lay_out(tmp_path, case.files)
    outcome = call(case.command, tmp_path, {}, monkeypatch, capsys)
    golden(re.sub(r"\W+", "-", case.name).strip("-"), f"$ mvbuild {case.command}\n{outcome.stderr}exit {outcome.exit}\n")
