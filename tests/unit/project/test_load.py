from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from mvbuild.api.compilation import compile
from mvbuild.diagnostics import ProjectError
from mvbuild.project.load import load_project
from mvbuild.project.settings import model_config
from unit.project.project_on_disk import MINIMAL, errors, load, places, write


def test_an_empty_project_has_the_embedded_catalog(tmp_path: Path) -> None:
    project = load(tmp_path, {"mvbuild.yml": 'name: shop\nversion: "1.0"\nvars: {a: [1, 2], b: x}\n'}, vars={"b": "y"})
    assert (project.name, project.version, project.target_path) == ("shop", "1.0", tmp_path / "target")
    assert project.vars == {"a": [1, 2], "b": "y"}
    target = project.target
    assert (target.name, target.catalog_name, target.namespace, target.threads, target.embedded) == ("dev", "lake", ("main",), 4, True)
    assert target.catalog == {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/.mvbuild/catalog.db",
        "warehouse": f"file://{tmp_path}/.mvbuild/warehouse",
    }
    assert project.target_names == ("dev",)


def test_how_long_a_warm_engine_is_kept(tmp_path: Path) -> None:
    project = load(tmp_path, {"mvbuild.yml": "name: shop\ntargets: {dev: {spark: {keep_warm: 1h30m}}}\n"})
    assert project.target.spark.keep_warm == timedelta(minutes=90)
    assert load(tmp_path / "other", {"mvbuild.yml": "name: shop\n"}).target.spark.keep_warm is None


def test_no_project(tmp_path: Path) -> None:
    with pytest.raises(ProjectError) as caught:
        load_project(tmp_path / "nowhere", target=None, vars={}, env={})
    assert [(d.code, d.span) for d in caught.value.diagnostics] == [("not-a-project", None)]


def test_a_folder_of_a_project(tmp_path: Path) -> None:
    load(tmp_path, {"mvbuild.yml": "name: shop\n", "models/a.sql": "SELECT 1 AS id\n"})
    with pytest.raises(ProjectError) as caught:
        load_project(tmp_path / "models", target=None, vars={}, env={})
    (found,) = caught.value.diagnostics
    assert found.help == f"You are in a folder of the project {tmp_path}. Run the command there, or use --project-dir."


@pytest.mark.parametrize("folder", ["a#b", "a?b"])
def test_a_folder_whose_name_ends_a_path(folder: str, tmp_path: Path) -> None:
    """Spark and SQLite would write beside the project."""
    with pytest.raises(ProjectError) as caught:
        load(tmp_path / folder, {"mvbuild.yml": "name: shop\n"})
    assert [d.code for d in caught.value.diagnostics] == ["bad-config"]
    catalog = "name: shop\ntargets: {dev: {catalog: {type: sql, uri: 'sqlite:////tmp/x.db', warehouse: /tmp/x}}}\n"
    assert not load(tmp_path / folder, {"mvbuild.yml": catalog}).target.embedded


DBT = "name: shop\nconfig-version: 2\nprofile: x\nflags: {}\nquoting: {}\n"


def test_dbt_project_yml_is_an_alias(tmp_path: Path) -> None:
    assert load(tmp_path, {"dbt_project.yml": DBT}).name == "shop"


def test_keys_of_dbt_are_unknown_in_mvbuild_yml(tmp_path: Path) -> None:
    found = errors(tmp_path, {"mvbuild.yml": "name: shop\nprofile: x\nmodel-path: [m]\n"})
    assert places(found) == [("unknown-key", "mvbuild.yml:2:1"), ("unknown-key", "mvbuild.yml:3:1")]
    assert "dbt" in found[0].help
    assert found[1].help == "Did you mean 'model-paths'?"


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("version: 1\n", "missing-key", "1:1"),
        ("", "missing-key", "1:1"),
        ("- a\n", "wrong-type", "1:1"),
        ("name: my shop\n", "wrong-type", "1:7"),
        ("name: [a]\n", "wrong-type", "1:7"),
        ("name: s\nmodel-paths: [1]\n", "wrong-type", "2:15"),
        ("name: s\nvars: 3\n", "wrong-type", "2:7"),
        ("name: s\nname: t\n", "duplicate-key", "2:1"),
        ("name: s\ntarget: prod\ntargets: {production: {threads: 1}}\n", "unknown-target", "2:9"),
        ("name: s\ntargets: {dev: {threads: 0}}\n", "wrong-type", "2:26"),
        ("name: s\ntargets: {dev: {thread: 1}}\n", "unknown-key", "2:17"),
        ("name: s\ntargets: {dev: {catalog: {name: a, uri: [b]}}}\n", "wrong-type", "2:41"),
        ("name: s\ntargets: {dev: {spark: {cores: 3}}}\n", "unknown-key", "2:25"),
        ("name: s\ntargets: {dev: {spark: {keep_warm: soon}}}\n", "wrong-type", "2:36"),
        ("name: s\ntargets: {dev: {spark: {keep_warm: 0m}}}\n", "wrong-type", "2:36"),
        ("name: s\ntargets: {dev: {spark: {keep_warm: 15}}}\n", "wrong-type", "2:36"),
        ("name: s\ntargets: {dev: {spark: {keep_warm: 5m, remote: 'sc://h'}}}\n", "bad-config", "2:25"),
        ("name: s\ntargets: {dev: {spark: {keep_warm: 5m, master: yarn}}}\n", "bad-config", "2:25"),
        ("name: s\ntarget: \"{{ env_var('NOPE') }}\"\n", "missing-env-var", "2:9"),
        ("name: s\nversion: \"{{ var('nope') }}\"\n", "missing-var", "2:10"),
        ("name: s\nversion: \"{{ nope }}\"\n", "undefined-name", "2:10"),
        ("name: s\nversion: \"{{ nope( }}\"\n", "template-syntax", "2:10"),
        ("name: s\nversion: \"{{ ''.__class__ }}\"\n", "unsafe-template", "2:10"),
        ("name: s\nversion: \"{{ 'a' * 10**9 }}\"\n", "unsafe-template", "2:10"),
        ("name: s\nversion: \"{{ 1 / 0 }}\"\n", "template-error", "2:10"),
        ("name: s\nmodels: {+materialized: table}\n", "wrong-type", "2:25"),
        ("name: s\nmodels: {+material: view}\n", "unknown-key", "2:10"),
        ("name: s\nmodels: {mart: {+alias: x}}\n", "unknown-key", "2:10"),
        ("name: s\nmodels: {+alias: a, alias: b}\n", "duplicate-key", "2:10"),
        ("name: s\nmodels: {marts: 3}\n", "wrong-type", "2:17"),
        ("name: s\nseeds: {+materialized: view}\n", "unknown-key", "2:9"),
    ],
)  # fmt: skip
def test_a_bad_project_file(tmp_path: Path, text: str, code: str, place: str) -> None:
    found = errors(tmp_path, {"mvbuild.yml": text, "models/marts/a.sql": "select 1"})
    assert places(found)[:1] == [(code, f"mvbuild.yml:{place}")]
    assert len([d for d in found if d.code == code]) == 1


def test_all_errors_of_all_files_come_at_once(tmp_path: Path) -> None:
    found = errors(
        tmp_path,
        {
            "mvbuild.yml": "name: shop\nbogus: 1\n",
            "models/a.sql": b"select '\xff'",
            "models/a.yml": "models:\n  - name: b\n",
            "models/z.yml": "models: [\n",
            "tests/t.sql": b"\xff",
        },
    )
    assert sorted(places(found)) == [
        ("unknown-key", "mvbuild.yml:2:1"),
        ("unknown-name", "models/a.yml:2:11"),
        ("unreadable-file", "models/a.sql:1:9"),
        ("unreadable-file", "tests/t.sql:1:1"),
        ("yaml-syntax", "models/z.yml:1:10"),
    ]


TARGETS = """\
name: shop
target: "{{ env_var('TARGET', 'dev') }}"
targets:
  dev: {namespace: a.b, threads: "{{ env_var('THREADS', '2') }}"}
  named: {catalog: {name: wood}}
  prod:
    catalog: {name: lake, type: rest, uri: "https://{{ env_var('HOST') }}/x", token: "{{ env_var('TOKEN') }}", ssl: true, size: 5}
    schema: [c]
    spark: {remote: sc://h:1, config: {spark.x: 1, spark.y: true}}
"""


def test_targets(tmp_path: Path) -> None:
    dev = load(tmp_path, {"mvbuild.yml": TARGETS})
    assert dev.target_names == ("dev", "named", "prod")
    assert (dev.target.name, dev.target.namespace, dev.target.threads, dev.target.embedded) == ("dev", ("a", "b"), 2, True)
    assert load_project(tmp_path, target=None, vars={}, env={}, threads=9).target.threads == 9
    named = load_project(tmp_path, target="named", vars={}, env={}).target
    assert (named.catalog_name, named.embedded) == ("wood", True)
    prod = load_project(tmp_path, target=None, vars={}, env={"TARGET": "prod", "HOST": "h", "TOKEN": "0123"}).target
    assert prod.catalog == {"type": "rest", "uri": "https://h/x", "token": "0123", "ssl": "true", "size": "5"}
    assert (prod.catalog_name, prod.namespace, prod.embedded) == ("lake", ("c",), False)
    assert (prod.spark.remote, prod.spark.master, prod.spark.config) == ("sc://h:1", "local[*]", {"spark.x": "1", "spark.y": "true"})


def test_missing_variables_are_those_of_the_chosen_target(tmp_path: Path) -> None:
    found = errors(tmp_path, {"mvbuild.yml": TARGETS}, target="prod")
    assert places(found) == [("missing-env-var", "mvbuild.yml:7:44"), ("missing-env-var", "mvbuild.yml:7:86")]


def test_a_folder_in_mvbuild_yml_that_does_not_exist(tmp_path: Path) -> None:
    text = "name: s\nmodel-paths: [models, nosuch, {0}]\nseed-paths: {0}\nmacro-paths: [macros]\ntest-paths: [tests/]\ndocs-paths: [docs]\n"
    files = {"mvbuild.yml": text.format("\"{{ env_var('S') }}\""), "models/m.sql": "SELECT 1 AS id\n"}
    write(tmp_path, files)
    for _ in ("without a cache", "with one"):
        found = compile(tmp_path, env={"S": "hunter2"}).warnings
        assert [(d.code, d.severity, str(d.span)) for d in found] == [
            ("unknown-name", "warning", f"mvbuild.yml:{place}") for place in ("2:23", "2:31", "3:13")
        ]
        assert found[0].message == "This folder of `model-paths` does not exist"
        assert "hunter2" not in repr([(d.message, d.help) for d in found])
    for folder in ("nosuch", "hunter2"):
        (tmp_path / folder).mkdir()
    assert not compile(tmp_path, env={"S": "hunter2"}).warnings
    (tmp_path / "nosuch").rmdir()
    assert len(compile(tmp_path, env={"S": "hunter2"}).warnings) == 1


def test_a_folder_that_does_not_exist_is_told_with_the_errors_that_follow(tmp_path: Path) -> None:
    reads = {"tests/t.sql": "SELECT * FROM {{ ref('m') }}\n"}
    described = {"seeds/m.yml": "models: [{name: m}]\n"}
    for more, code in ((reads, "unresolved-ref"), (described, "unknown-name")):
        root = tmp_path / code
        write(root, {"mvbuild.yml": "name: shop\nmodel-paths: [mdels]\n", **more})
        with pytest.raises(ProjectError) as caught:
            compile(root, env={})
        assert places(list(caught.value.diagnostics))[0] == ("unknown-name", "mvbuild.yml:2:15")
        assert [d.code for d in caught.value.diagnostics] == ["unknown-name", code]


def test_an_unknown_target(tmp_path: Path) -> None:
    (wrong,) = errors(tmp_path, {"mvbuild.yml": TARGETS}, target="prdo")
    assert (wrong.code, str(wrong.span), wrong.help) == ("unknown-target", "mvbuild.yml:3:1", "Did you mean 'prod'?")


@pytest.mark.parametrize(("text", "place"), [("targets: {}\n", "4:1"), ("", "3:1")])
def test_the_place_of_an_unknown_target_is_no_comment(tmp_path: Path, text: str, place: str) -> None:
    (wrong,) = errors(tmp_path, {"mvbuild.yml": f"# Our shop.\n\nname: shop\n{text}"}, target="prod")
    assert (wrong.code, str(wrong.span), wrong.help) == ("unknown-target", f"mvbuild.yml:{place}", "Known names: dev.")


@pytest.mark.parametrize("key", ["name", "target", "version", "models"])
def test_a_secret_is_in_no_message(tmp_path: Path, key: str) -> None:
    value = "\"{{ env_var('S') }}\""
    text = f"name: shop\nmodels: {{+materialized: {value}, +alias: [{value}]}}\n" if key == "models" else f"name: shop\n{key}: {value}\n"
    if key == "name":
        text = f"name: {value}\n"
    if key == "version":
        text += f"seeds: {{+enabled: {value}}}\ntargets: {{dev: {{threads: {value}}}}}\nmodel-paths: {value}\nvars: {value}\n"
    for found in errors(tmp_path, {"mvbuild.yml": text}, env={"S": "hunter 2"}):
        assert "hunter" not in repr((found.message, found.help, [n.message for n in found.notes]))


def test_values_of_templates_keep_their_type(tmp_path: Path) -> None:
    text = (
        "name: shop\nvars: {tags: [x, y], n: \"{{ env_var('N') | as_number }}\"}\n"
        "models: {+tags: \"{{ var('tags') }}\", +enabled: \"{{ env_var('E') | as_bool }}\"}\n"
    )
    project = load(tmp_path, {"mvbuild.yml": text, "models/a.sql": ""}, env={"N": "3", "E": "False"})
    assert project.vars["n"] == 3
    config, _ = model_config(project.models[0].layers)
    assert (config.tags, config.enabled) == (("x", "y"), False)


FOLDERS = """\
name: shop
models:
  +tags: all
  shop:
    marts:
      +namespace: mart
      tags: m
      deep: {+materialized: view, daily: {+alias: d}}
"""


def test_folder_layers_and_yaml_layers(tmp_path: Path) -> None:
    files = {
        "mvbuild.yml": FOLDERS,
        "models/marts/deep/daily.sql": "select 1",
        "models/b.sql": "\ufeffselect 2\r\n",
        "models/marts/x.yml": "models:\n  - name: daily\n    tags: own\n    config: {+namespace: c}\n",
    }
    project = load(tmp_path, files)
    b, daily = project.models
    assert (b.name, b.file.path, b.file.text, b.folders) == ("b", "models/b.sql", "select 2\n", ())
    assert (daily.name, daily.file.path, daily.folders) == ("daily", "models/marts/deep/daily.sql", ("marts", "deep"))
    config, wrong = model_config(daily.layers)
    assert not wrong
    assert (config.tags, config.namespace, config.materialized, config.alias) == (("all", "m", "own"), ("c",), "view", "d")
    assert str(config.spans["namespace"]) == "models/marts/x.yml:4:26"
    assert model_config(b.layers)[0].tags == ("all",)


def test_a_misspelled_folder(tmp_path: Path) -> None:
    found = errors(tmp_path, {"mvbuild.yml": FOLDERS, "models/marts/deeep/daily.sql": ""})
    assert [(d.code, str(d.span), d.help) for d in found] == [("unknown-key", "mvbuild.yml:8:7", "Did you mean 'deeep'?")]


PROPERTIES = """\
models:
  - name: orders
    description: "Of {{ x }}"
    data_tests:
      - unique: {column_name: id}
    columns:
      - name: id
        description: key
        data_type: bigint
        tags: [pk]
        meta: {a: 1}
        config: {tags: [c], meta: {b: 2}}
        tests: [not_null, {unique: {config: {severity: WARN, where: id > 0}, name: own}}]
      - name: status
        data_tests:
          - accepted_values: {values: [placed, 'sent off', 2026-01-31]}
          - relationships: {arguments: {to: "ref('states')", field: code}, severity: warn}
sources:
  - name: raw
    database: lake
    schema: a.b
    tags: s
    tables:
      - name: events
        identifier: ev
        meta: {o: 1}
        columns: [{name: id, data_tests: [not_null]}]
      - name: clicks
  - name: other
    tables: [{name: t}, {name: gone, config: {enabled: false}}]
"""


def test_properties(tmp_path: Path) -> None:
    project = load(tmp_path, {"models/p.yml": PROPERTIES, "models/orders.sql": ""})
    properties = project.models[0].properties
    assert (properties.description, properties.patch_path) == ("Of {{ x }}", "models/p.yml")
    id_, status = properties.columns
    assert (id_.name, id_.description, id_.data_type, id_.tags, id_.meta) == ("id", "key", "bigint", ("pk", "c"), {"a": 1, "b": 2})
    assert (status.name, str(status.span)) == ("status", "models/p.yml:14:15")
    assert [(t.name, t.kind, t.column, t.severity, t.where, str(t.span)) for t in properties.tests] == [
        ("unique_orders_id", "unique", "id", "error", None, "models/p.yml:5:9"),
        ("not_null_orders_id", "not_null", "id", "error", None, "models/p.yml:13:17"),
        ("own", "unique", "id", "warn", "id > 0", "models/p.yml:13:28"),
        ("accepted_values_orders_status__placed__sent_off__2026_01_31", "accepted_values", "status", "error", None, "models/p.yml:16:13"),
        ("relationships_orders_status__code__ref_states_", "relationships", "status", "warn", None, "models/p.yml:17:13"),
    ]
    assert properties.tests[3].arguments == {"values": ["placed", "sent off", "2026-01-31"]}
    assert properties.tests[4].arguments == {"to": "ref('states')", "field": "code"}
    other, clicks, events = project.sources
    assert (other.source, other.name, other.namespace, other.catalog, other.identifier) == ("other", "t", ("other",), None, "t")
    assert (clicks.name, clicks.namespace, clicks.catalog, clicks.tags) == ("clicks", ("a", "b"), "lake", ("s",))
    assert (events.identifier, events.meta, events.properties.tests[0].name) == ("ev", {"o": 1}, "source_not_null_raw_events_id")


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("models: [{name: orders}, {name: ORDERS}]", "duplicate-name", "1:33"),
        ("models: [{name: ordrs}]", "unknown-name", "1:17"),
        ("models: [{description: x}]", "missing-key", "1:10"),
        ("models: [{name: orders, colums: []}]", "unknown-key", "1:25"),
        ("models: [{name: orders, materialized: view}]", "unknown-key", "1:25"),
        ("models: [{name: orders, config: {materalized: view}}]", "unknown-key", "1:34"),
        ("models: [{name: orders, config: {enabled: 1}}]", "wrong-type", "1:43"),
        ("models: [{name: orders, config: {tags: a, +tags: b}}]", "duplicate-key", "1:43"),
        ("models: {name: orders}", "wrong-type", "1:9"),
        ("models: [orders]", "wrong-type", "1:10"),
        ("metrics: []", "unknown-key", "1:1"),
        ("models: [{name: orders, columns: [{name: a}, {name: A}]}]", "duplicate-name", "1:53"),
        ("models: [{name: orders, columns: [{name: a, tests: [nott_null]}]}]", "unknown-key", "1:53"),
        ("models: [{name: orders, columns: [{name: a, tests: [unique, unique]}]}]", "duplicate-name", "1:61"),
        ("models: [{name: orders, columns: [{name: a, tests: [{unique: 1}]}]}]", "wrong-type", "1:62"),
        ("models: [{name: orders, columns: [{name: a, tests: [{unique: , name: x}]}]}]", "wrong-type", "1:53"),
        ("models: [{name: orders, columns: [{name: a, tests: [accepted_values]}]}]", "missing-key", "1:53"),
        ("models: [{name: orders, columns: [{name: a, tests: [{relationships: {to: ref('a', field: b}}]}]}]", "bad-config", "1:74"),
        ('models: [{name: orders, columns: [{name: a, tests: [{relationships: {to: "ref(5)", field: b}}]}]}]', "bad-config", "1:74"),
        ('models: [{name: orders, columns: [{name: a, tests: [{relationships: {to: n; drop, field: b}}]}]}]', "bad-config", "1:74"),
        ("models: [{name: orders, columns: [{name: a, tests: [{accepted_values: {values: a}}]}]}]", "wrong-type", "1:80"),
        ("models: [{name: orders, columns: [{name: a, tests: [{accepted_values: {vals: [a]}}]}]}]", "unknown-key", "1:72"),
        ("models: [{name: orders, columns: [{name: a, tests: [{unique: {severity: bad}}]}]}]", "wrong-type", "1:73"),
        ("models: [{name: orders, tests: [unique]}]", "missing-key", "1:33"),
        ("models: [{name: orders, tests: unique}]", "wrong-type", "1:32"),
        ("seeds: [{name: nope}]", "unknown-name", "1:16"),
        ("sources: [{name: a, tables: [{name: t}, {name: t}]}]", "duplicate-name", "1:48"),
        ("sources: [{name: a, tables: [{nam: t, name: x}]}]", "unknown-key", "1:31"),
        ("sources: [{name: a, schema: 5, tables: []}]", "wrong-type", "1:29"),
        ("sources: [{name: a, schema: \"{{ env_var('NO') }}\", tables: []}]", "missing-env-var", "1:29"),
    ],
)  # fmt: skip
def test_bad_properties(tmp_path: Path, text: str, code: str, place: str) -> None:
    found = errors(tmp_path, {"models/p.yml": text, "models/orders.sql": ""})
    assert places(found) == [(code, f"models/p.yml:{place}")]


def test_names_that_are_there_twice(tmp_path: Path) -> None:
    found = errors(tmp_path, {"models/a/x.sql": "", "models/b/X.sql": "", "models/s.sql": "", "seeds/S.csv": "a\n"})
    assert [(d.code, str(d.span), str(d.notes[0].span)) for d in found] == [
        ("duplicate-name", "models/b/X.sql:1:1", "models/a/x.sql:1:1"),
        ("duplicate-name", "seeds/S.csv:1:1", "models/s.sql:1:1"),
    ]


def test_an_error_in_an_anchor_is_said_once(tmp_path: Path) -> None:
    text = "models:\n  - {name: a, config: &c {zzz: 1}}\n  - {name: b, config: *c}\n"
    found = errors(tmp_path, {"models/p.yml": text, "models/a.sql": "", "models/b.sql": ""})
    assert places(found) == [("unknown-key", "models/p.yml:2:27")]


def test_hidden_files_links_in_circles_and_the_target_path(tmp_path: Path) -> None:
    files = {
        "models/a.sql": "",
        "models/.b.sql": "",
        "models/.c/d.sql": "",
        "models/target/e.sql": "",
        "macros/m.sql": "x",
        "tests/t.sql": "y",
    }
    write(tmp_path, files)
    (tmp_path / "models/loop").symlink_to(tmp_path / "models", target_is_directory=True)
    (tmp_path / "models/x").mkdir()
    (tmp_path / "models/x/y").symlink_to(tmp_path / "models/x", target_is_directory=True)
    project = load_project(tmp_path, target=None, vars={}, env={}, target_path=Path("models/target"))
    assert [m.file.path for m in project.models] == ["models/a.sql"]
    assert project.target_path == tmp_path / "models/target"
    assert [f.path for f in (*project.macros, *project.tests)] == ["macros/m.sql", "tests/t.sql"]


def test_a_dangling_link_cannot_be_read(tmp_path: Path) -> None:
    write(tmp_path, {"models/a.sql": ""})
    (tmp_path / "models/b.sql").symlink_to(tmp_path / "gone.sql")
    assert places(errors(tmp_path, {})) == [("unreadable-file", "models/b.sql:1:1")]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_folder_without_permission(tmp_path: Path) -> None:
    write(tmp_path, {"models/x/a.sql": ""})
    (tmp_path / "models/x").chmod(0)
    try:
        assert places(errors(tmp_path, {})) == [("unreadable-file", "models/x:1:1")]
    finally:
        (tmp_path / "models/x").chmod(0o755)


def test_jinja_is_imported_for_templates_only(tmp_path: Path) -> None:
    write(tmp_path, {"mvbuild.yml": MINIMAL + "# {{ }}\n", "models/a.sql": "{{ x }}", "models/p.yml": PROPERTIES.replace("orders", "a")})
    code = (
        "import sys, pathlib; from mvbuild.project.load import load_project; "
        f"load_project(pathlib.Path({str(tmp_path)!r}), target=None, vars={{}}, env={{}}); "
        "sys.exit(bool({'jinja2', 'pyarrow', 'pandas', 'sqlglot', 'pyiceberg'} & sys.modules.keys()))"
    )
    compiler = Path(__file__).parents[3] / "compiler"
    assert subprocess.run([sys.executable, "-c", code], check=False, env={"PYTHONPATH": str(compiler)}).returncode == 0


def test_target_in_yaml_is_the_chosen_one(tmp_path: Path) -> None:
    files = {
        "mvbuild.yml": (
            "name: shop\ntarget: \"{{ var('to') }}\"\nvars: {to: dev}\n"
            "targets: {dev: {namespace: me, threads: 2}, prod: {catalog: {name: warehouse, type: memory}, namespace: [a, b]}}\n"
            'models: {+namespace: "{{ target.schema }}_mart", +tags: ["{{ target.name }}", "{{ target.type }}", "{{ target.catalog }}"]}\n'
        ),
        "models/m.sql": "select 1 as a",
        "models/m.yml": 'models: [{name: m, config: {meta: {threads: "{{ target.threads }}", prod: "{{ target.name == \'prod\' }}"}}}]\n',
    }
    (dev,), (prod,) = load(tmp_path, files).models, load_project(tmp_path, target="prod", vars={}, env={}).models
    assert [model_config(m.layers)[0].namespace for m in (dev, prod)] == [("me_mart",), ("a", "b_mart")]
    assert [model_config(m.layers)[0].tags for m in (dev, prod)] == [("dev", "spark", "lake"), ("prod", "spark", "warehouse")]
    assert [dict(model_config(m.layers)[0].meta) for m in (dev, prod)] == [{"threads": 2, "prod": False}, {"threads": 4, "prod": True}]


def test_target_is_not_known_where_it_is_chosen(tmp_path: Path) -> None:
    found = errors(tmp_path, {"mvbuild.yml": 'name: shop\ntargets: {dev: {namespace: "{{ target.name }}"}}\n'})
    assert places(found) == [("undefined-name", "mvbuild.yml:2:28")]
