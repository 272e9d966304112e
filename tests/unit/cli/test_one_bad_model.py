"""A model whose SQL cannot be read blocks what reads it, and nothing else, in every command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click import unstyle
from click.testing import CliRunner, Result

from mvbuild.api import sessions
from mvbuild.cli.main import group
from mvbuild.diagnostics import ProjectError
from mvbuild.ports.commits import TableLayout
from mvbuild.serve.answers import of_node
from unit.serve.readers import session
from unit.worlds import SCHEMA, Shop, append, name, shop

PROJECT = {
    "mvbuild.yml": "name: shop\n",
    "models/good.sql": "SELECT id FROM raw.orders\n",
    "models/beside.sql": "SELECT id FROM {{ ref('good') }}\n",
    "models/bad.sql": "SELECT id FROM raw.orders\n",
    "models/reader.sql": "SELECT id FROM {{ ref('good') }}\nJOIN {{ ref('bad') }} USING (id)\n",
    "models/off.sql": "{{ config(enabled=false) }} SELECT 1 AS id\n",
    "models/top.sql": "SELECT id FROM {{ ref('reader') }}\n",
}
GOOD = {"good", "beside"}
WRONG = {
    "not parsed": "SELECT v:a[0].b AS id FROM raw.orders\n",
    "a table name that is hidden": "SELECT id FROM IDENTIFIER('raw.orders')\n",
    "no query": "DROP TABLE raw.orders\n",
    "nothing": "-- nothing\n",
    "an open quote": "SELECT 'a AS id FROM raw.orders\n",
    "two statements": "SELECT 1 AS id; SELECT 2 AS id\n",
    "an unknown model": "SELECT id FROM {{ ref('godo') }}\n",
    "an unknown source": "SELECT id FROM {{ source('raw', 'orders') }}\n",
    "a disabled model": "SELECT id FROM {{ ref('off') }}\n",
    "an unknown name": "SELECT {{ nothing }} AS id FROM raw.orders\n",
    "an open tag": "{% if true %} SELECT id FROM raw.orders\n",
    "a variable that is not set": "SELECT id FROM {{ var('none') }}\n",
    "an unknown setting": "{{ config(materialised='view') }} SELECT id FROM raw.orders\n",
    "a wrong setting": "{{ config(alias=5) }} SELECT id FROM raw.orders\n",
    "an unknown group": "{{ config(group='nobody') }} SELECT id FROM raw.orders\n",
    "several of these": "SELECT v:a[0].b AS id FROM {{ ref('godo') }} JOIN {{ ref('off') }} USING (id)\n",
}
KINDS = ("materialized_view", "view", "ephemeral")


def call(of: Shop, *arguments: str) -> Result:
    return CliRunner().invoke(group, [*arguments, "--project-dir", str(of.root)], standalone_mode=False)


@pytest.fixture
def of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    made = shop(tmp_path, PROJECT)
    monkeypatch.setattr(sessions, "open_catalog", lambda *_, **__: made.catalog)
    return made


def break_it(of: Shop, sql: str = WRONG["not parsed"], kind: str = "materialized_view") -> Shop:
    return of.write({"models/bad.sql": f"{{{{ config(materialized='{kind}') }}}}\n{sql}"})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wrong", WRONG)
def test_a_run_builds_all_others(of: Shop, wrong: str, kind: str) -> None:
    break_it(of, WRONG[wrong], kind)
    found = of.statuses()
    assert {model for model, status in found.items() if status == "success"} == GOOD
    is_known_to_be_ephemeral = kind == "ephemeral" and wrong != "an open tag"
    assert set(found) - GOOD == {"bad", "reader", "top"} - ({"bad"} if is_known_to_be_ephemeral else set())
    assert of.statuses("good") == {"good": "reused"}


WRONG_BESIDE = {
    "private-model": "{{ config(access='public') }} SELECT id FROM {{ ref('other') }}\n",
    "bad-target-lag": "{{ config(target_lag='15m') }} SELECT id FROM {{ ref('other') }}\n",
    "bad-config": "{{ config(dialects=['tirno']) }} SELECT id FROM raw.orders\n",
    "unsupported-dialect": "{{ config(dialects=['trino']) }} SELECT ln(id) AS id FROM raw.orders\n",
}


@pytest.mark.parametrize("code", WRONG_BESIDE)
def test_what_a_model_may_not_read_or_be_blocks_only_that_model(of: Shop, code: str) -> None:
    settings = "access='private'" if code == "private-model" else "target_lag='1h'"
    of.write(
        {"models/bad.sql": WRONG_BESIDE[code], "models/other.sql": f"{{{{ config({settings}) }}}} SELECT id FROM {{{{ ref('good') }}}}\n"}
    )
    done = call(of, "compile")
    assert (done.return_value, done.stderr.count("error[")) == (2, 1), done.output
    assert f"error[{code}]" in done.stderr
    found = of.statuses()
    assert {model for model, status in found.items() if status == "success"} == {*GOOD, "other"}
    assert {model for model, status in found.items() if status != "success"} == {"bad", "reader", "top"}


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_built_stays_and_is_not_called_fresh(of: Shop, kind: str) -> None:
    break_it(of, PROJECT["models/bad.sql"], kind)
    of.run()
    before = {model: of.table(f"main.{model}__storage") for model in ("reader", "top")}
    break_it(of, kind=kind)
    assert {m for m, action in of.actions().items() if action == "blocked"} == {"bad", "reader", "top"} - (
        {"bad"} if kind == "ephemeral" else set()
    )
    of.run()
    assert {model: of.table(f"main.{model}__storage") for model in before} == before
    states = {o["unique_id"].rpartition(".")[2]: o["state"] for o in json.loads(call(of, "status", "--output", "json").stdout)}
    assert {model for model, state in states.items() if state == "fresh"} == GOOD
    assert name("main.bad") not in [item.view for item in of_removed(of)]


ABOUT_BAD = (
    "show bad",
    "explain bad",
    "lineage bad",
    "history bad",
    "verify bad",
    "rollback bad --to 1",
    "drop bad --yes",
    "diff --branch dev",
)


@pytest.mark.parametrize("wrong", ["not parsed", "an unknown model", "an open tag", "an unknown setting"])
@pytest.mark.parametrize(
    "command", [*ABOUT_BAD, "publish --branch dev", "branch drop dev", "maintain", "migrate --select bad --to metadata-file"]
)
def test_an_error_is_printed_once(of: Shop, command: str, wrong: str) -> None:
    of.write({"models/bad.sql": WRONG[wrong]})
    done = call(of, *command.split())
    blocks = [block for block in done.stderr.split("error[") if "models/bad.sql" in block]
    assert blocks
    assert len(blocks) == len(set(blocks)), done.stderr


def of_removed(of: Shop) -> list:
    from mvbuild.lifecycle.removed_models import find_removed

    return list(find_removed(of.world(), of.catalog))


def test_every_command_goes_on(of: Shop) -> None:
    break_it(of)
    of.run("good")
    codes = {"compile": 2, "lint": 2, "ls": 0, "status": 0, "plan": 1, "run --dry-run": 1, "plan --select good": 0}
    codes |= {"history good": 0, "explain bad": 1}
    for command, code in codes.items():
        done = call(of, *command.split())
        assert (command, done.return_value) == (command, code), done.output
        assert done.stderr.count("models/bad.sql:2:11") == 1, (command, done.stderr)
    assert "model.shop.bad" not in call(of, "compile", "--select", "*").stdout
    assert "shop.bad" in call(of, "ls").stdout
    assert (of.root / "target/compiled/shop/models/good.sql").is_file()
    assert json.loads((of.root / "target/manifest.json").read_text())["nodes"]["model.shop.bad"]["compiled"] is False
    assert "models/good.sql" in call(of, "lint", "--rule", "missing-description").stdout


def test_the_run_tells_the_place_in_each_model(of: Shop) -> None:
    break_it(of)
    diagnostics = {s.node.rpartition(".")[2]: s.diagnostic for s in of.plan().steps if s.diagnostic}
    places = {model: (d.code, str(d.span)) for model, d in diagnostics.items()}
    assert places == {
        "bad": ("sql-syntax", "models/bad.sql:2:11"),
        "reader": ("not-compiled", "models/reader.sql:2:6"),
        "top": ("not-compiled", "models/top.sql:1:16"),
    }
    assert [str(note.span) for note in diagnostics["top"].notes] == ["models/bad.sql:2:11"]


@pytest.mark.parametrize("kind", KINDS)
def test_only_what_needs_it_cannot_be_served(of: Shop, kind: str) -> None:
    break_it(of, kind=kind)
    of.run()
    graph = of.world().graph
    assert of_node(session(of, of.world()), graph.nodes["model.shop.beside"]).sql.text
    for model in ("bad", "reader", "top"):
        with pytest.raises(ProjectError) as caught:
            of_node(session(of, of.world()), graph.nodes[f"model.shop.{model}"])
        assert {d.code for d in caught.value.diagnostics} <= {"sql-syntax", "not-compiled"}
    assert "sql-syntax" in unstyle(call(of, "show", "bad").stderr)


def test_other_errors_of_the_project_are_reported_with_it(of: Shop) -> None:
    break_it(of).write({"tests/other.sql": "SELECT id FROM {{ var('none') }}\n"})
    done = call(of, "run")
    assert done.return_value == 2
    assert "models/bad.sql:2:11" in done.stderr
    assert "tests/other.sql:1:23" in done.stderr


def test_a_compile_after_the_fix_is_like_one_without_the_mistake(of: Shop) -> None:
    def nodes() -> dict:
        return json.loads((of.root / "target/manifest.json").read_text())["nodes"]

    assert call(of, "compile").return_value == 0
    before = nodes()
    assert call(break_it(of), "compile").return_value == 2
    assert {id for id, node in nodes().items() if not node["compiled"]} == {"model.shop.bad"}
    assert call(of.write({"models/bad.sql": PROJECT["models/bad.sql"]}), "compile").return_value == 0
    assert nodes() == before


def test_what_a_model_with_a_wrong_ref_reads_is_known(of: Shop) -> None:
    """So a test of it still stops the MV below, and a selection reaches it."""
    view = "{{ config(materialized='view') }} SELECT id FROM {{ ref('good') }} JOIN {{ ref('%s') }} USING (id)\n"
    lag = "{{ config(target_lag='downstream') }} SELECT id FROM raw.orders\n"
    of.write({"models/good.sql": lag, "tests/t.sql": "SELECT id FROM {{ ref('bad') }} WHERE id < 0\n"})
    for wrong in ("godo", "off"):
        graph = of.write({"models/bad.sql": view % wrong}).world().graph
        assert [d.code for d in graph.problems] == ["unresolved-ref"]
        assert graph.nodes["model.shop.bad"].reads == ("model.shop.good",)
        (test,) = graph.tests
        assert test.gates == ("model.shop.good",)
    assert "shop.good" in call(of, "ls", "--select", "+bad").stdout


def test_a_model_whose_name_is_unknown_keeps_what_was_built(of: Shop) -> None:
    """Its alias is in a template that cannot be rendered: under its other name nothing is removed, and no name is taken twice."""
    alias = "{{ config(alias='x', storage_table='x_rows') }}\n"
    of.write({"models/bad.sql": alias + "SELECT id FROM raw.orders\n", "models/other.sql": "{{ config(alias='bad') }} SELECT 1 AS id\n"})
    assert set(of.statuses().values()) == {"success"}
    of.write({"models/bad.sql": alias + "{% if true %}\nSELECT id FROM raw.orders\n"})
    assert of.actions() == {"good": "reuse", "beside": "reuse", "other": "reuse", "bad": "blocked", "reader": "blocked", "top": "blocked"}
    assert of_removed(of) == []


SEED = "seeds: [{name: s, config: {column_types: {v: int}}}]\n"


def test_a_seed_with_wrong_rows_blocks_what_reads_it(of: Shop) -> None:
    of.write(
        {"seeds/s.csv": "v\nx\ny\n", "seeds/s.yml": SEED, "seeds/t.csv": "v\n1\n", "models/bad.sql": "SELECT v AS id FROM {{ ref('s') }}\n"}
    )
    found = {s.node.rpartition(".")[2]: s for s in of.plan().steps}
    assert [str(d.span) for d in found["s"].diagnostics] == ["seeds/s.csv:2:1", "seeds/s.csv:3:1"]
    assert {id: step.action for id, step in found.items()} == {
        **dict.fromkeys(("s", "bad", "reader", "top"), "blocked"),
        **dict.fromkeys(("good", "beside"), "refresh"),
        "t": "load",
    }
    assert {id for id, status in of.statuses().items() if status == "success"} == {*GOOD, "t"}
    of.write({"seeds/s.csv": "v\n1\n"})
    assert of.statuses() == {**dict.fromkeys(("s", "bad", "reader", "top"), "success"), **dict.fromkeys((*GOOD, "t"), "reused")}
    # A mistake in the next version of its file: its readers keep the rows of the last one, and are not called reused.
    before = of.table("main.bad__storage").current_snapshot_id
    of.write({"seeds/s.csv": "v\n1\n2,3\n"})
    assert {step.node.rpartition(".")[2] for step in of.plan().steps if step.action == "blocked"} == {"s", "bad", "reader", "top"}
    assert of.statuses() == {**dict.fromkeys(("s", "bad", "reader", "top"), "error"), **dict.fromkeys((*GOOD, "t"), "reused")}
    assert of.table("main.bad__storage").current_snapshot_id == before


def test_other_blocked_nodes_stop_nothing_else(of: Shop) -> None:
    """A name that a table of others has, and a broken contract."""
    of.catalog.ensure_namespace(("main",))
    of.catalog.create_table(name("main.bad"), TableLayout(schema=SCHEMA), {})
    contract = "models: [{name: beside, config: {contract: enforced}, columns: [{name: key, data_type: bigint}]}]\n"
    of.write({"models/beside.yml": contract})
    diagnostics = {s.node.rpartition(".")[2]: [d.code for d in s.diagnostics] for s in of.plan().steps}
    assert diagnostics["bad"] == ["name-collision"]
    assert set(diagnostics["beside"]) == {"broken-contract"}
    assert {id for id, status in of.statuses().items() if status == "success"} == {"good"}


def test_columns_that_are_wrong_do_not_hide_other_errors(of: Shop) -> None:
    of.write({"seeds/s.csv": "v,v\n", "models/bad.sql": "SELECT id, id FROM raw.orders\n", "models/other.sql": "SELECT {{ no }} AS id\n"})
    done = call(of, "compile")
    assert done.return_value == 2
    assert [code for code in ("bad-seed", "duplicate-column", "undefined-name") if code not in done.stderr] == []
    done = call(of, "plan")
    assert done.return_value == 2
    assert [code for code in ("duplicate-column", "undefined-name") if code not in done.stderr] == []
    assert "refresh (full)  lake.main.good" in done.stdout


WITH_A_TEST = {
    "models/good.sql": "SELECT id FROM raw.orders\n",
    "models/v.sql": "{{ config(materialized='view') }} SELECT id FROM {{ ref('good') }}\n",
    "tests/t.sql": "SELECT id FROM {{ ref('v') }} WHERE id < 0\n",
}
WRONG_VIEWS = {
    "an unknown name": "{{ config(materialized='view') }} SELECT {{ nothing }} FROM {{ ref('good') }}\n",
    "an open tag": "{{ config(materialized='view') }} {% if true %} SELECT id FROM {{ ref('good') }}\n",
    "a macro before it": "{{ from_good() }} SELECT {{ nothing }} AS id\n",
    "a wrong setting": "{{ config(materialised='view') }} SELECT id FROM {{ ref('good') }}\n",
    "not parsed": "{{ config(materialized='view') }} SELECT v:a[0].b AS id FROM {{ ref('good') }}\n",
    "not parsed, by its name": "{{ config(materialized='view') }} SELECT v:a[0].b AS id FROM lake.main.`good`\n",
}


@pytest.mark.parametrize("wrong", WRONG_VIEWS)
def test_nothing_is_published_past_a_test_that_cannot_run(of: Shop, wrong: str) -> None:
    of.write(WITH_A_TEST | {"macros/m.sql": "{% macro from_good() %}{% set r = ref('good') %}{% endmacro %}"})
    assert set(of.statuses("good", "v").values()) == {"success"}
    of.write({"models/v.sql": WRONG_VIEWS[wrong]})
    append(of.catalog, "raw.orders")
    steps = {s.node.rpartition(".")[2]: s for s in of.plan("good", "v").steps}
    assert {id: step.action for id, step in steps.items()} == {"good": "blocked", "v": "blocked"}
    (why,) = steps["good"].diagnostics
    assert (why.code, why.message) == ("not-compiled", "data test t reads lake.main.v, which does not compile")
    assert [str(note.span).split(":")[0] for note in why.notes] == ["models/v.sql"]
    assert of.statuses("good", "v") == {"good": "error", "v": "error"}


def test_a_name_of_a_model_whose_settings_are_wrong_is_not_read_as_a_table(of: Shop) -> None:
    """Only its settings say that the name is its own: until they can be read, the catalog does."""
    alias = "{{ config(alias='fancy', materialized='%s') }}\n"
    for kind in ("view", "materialized_view"):
        of.write({"models/bad.sql": alias % kind + "SELECT id FROM raw.orders\n", "models/plain.sql": "SELECT id FROM main.fancy\n"})
        assert of.statuses("bad", "plain")["plain"] == "success"
        of.write({"models/bad.sql": alias % kind + "{% if true %}\nSELECT id FROM raw.orders\n"})
        append(of.catalog, "raw.orders")
        assert of.actions("good", "plain") == {"good": "refresh", "plain": "blocked"}
        states = {o["unique_id"].rpartition(".")[2]: o["state"] for o in json.loads(call(of, "status", "--output", "json").stdout)}
        assert states["plain"] == "stale"


def test_a_model_whose_name_is_unknown_is_not_taken_for_another(of: Shop) -> None:
    """`drop bad` drops what `bad` was, and not the model that has this name in the catalog."""
    alias = "{{ config(alias='nice') }}\n"
    of.write({"models/bad.sql": alias + "SELECT id FROM raw.orders\n", "models/other.sql": "{{ config(alias='bad') }} SELECT 1 AS id\n"})
    of.run()
    of.write({"models/bad.sql": alias + "{% if true %}\nSELECT id FROM raw.orders\n"})
    for command in ("maintain --select bad", "drop bad --yes"):
        call(of, *command.split())
    names = {n.name for n in of.catalog.list_names(("main",))}
    assert {"bad", "bad__storage"} <= names
    assert of.actions("other") == {"other": "reuse"}


def test_a_selection_that_may_have_lost_a_model_is_no_success(of: Shop) -> None:
    """By its tags, which are in a template that cannot be rendered, or by its parents, which cannot be read."""
    of.write({"models/bad.sql": "{{ config(tags=['daily']) }}\nSELECT id FROM {{ ref('good') }}\n"})
    of.run()
    for wrong in ("{% if true %} {{ config(tags=['daily']) }}\nSELECT id FROM {{ ref('good') }}\n", WRONG["not parsed"]):
        of.write({"models/bad.sql": wrong})
        codes = {
            select: call(of, "run", "--select", select).return_value for select in ("good", "good+", "tag:daily", "path:models/good.sql")
        }
        assert codes == {"good": 0, "good+": 1, "tag:daily": 1 if "if" in wrong else 0, "path:models/good.sql": 0}
        assert "may belong to the selection do not compile: 'bad'" in call(of, "run", "--select", "good+").stderr


def test_a_retry_takes_the_selection_again_that_may_have_lost_a_model(of: Shop) -> None:
    model = "{{ config(tags=['daily']) }}\nSELECT id FROM {{ ref('good') }}\n"
    of.write({"models/bad.sql": model}).run()
    of.write({"models/bad.sql": "{% if true %}" + model})
    assert call(of, *"run --select tag:daily --exclude beside".split()).return_value == 1
    of.write({"models/bad.sql": model})
    again = call(of, "retry")
    assert again.return_value == 0
    assert "REUSED=1 TOTAL=1" in unstyle(again.output)
    assert "Nothing failed in the last `mvbuild" in unstyle(call(of, "retry").output)


def test_a_wrong_exposure_hides_no_other_error(of: Shop) -> None:
    exposure = "exposures: [{name: board, type: dashboard, owner: {name: Ada}, depends_on: [ref('godo')]}]\n"
    break_it(of).write({"models/board.yml": exposure})
    said = unstyle(call(of, "compile").stderr)
    assert "models/bad.sql:2:11" in said
    assert "models/board.yml:1:" in said


def test_a_broken_contract_of_an_ephemeral_model_blocks_what_has_its_query(of: Shop) -> None:
    contract = "models: [{name: eph, config: {contract: enforced}, columns: [{name: key, data_type: bigint}]}]\n"
    of.write({"models/eph.sql": "{{ config(materialized='ephemeral') }} SELECT id FROM raw.orders\n", "models/eph.yml": contract})
    of.write({"models/beside.sql": "SELECT id FROM {{ ref('eph') }}\n", "models/top.sql": "SELECT id FROM {{ ref('good') }}\n"})
    steps = {s.node.rpartition(".")[2]: s for s in of.plan("beside", "good", "top").steps}
    assert {id: step.action for id, step in steps.items()} == {"beside": "blocked", "good": "refresh", "top": "refresh"}
    assert {d.code for d in steps["beside"].diagnostics} == {"broken-contract"}


def test_two_models_cannot_have_one_previous_name(of: Shop) -> None:
    of.run("good")
    (of.root / "models/good.sql").rename(of.root / "models/new_1.sql")
    of.write({"models/beside.sql": "SELECT 1 AS id\n", "models/reader.sql": "SELECT 1 AS id\n", "models/new_2.sql": "SELECT 2 AS id\n"})
    of.write({"models/new.yml": "models: [{name: new_1, config: {previous_name: good}}, {name: new_2, config: {previous_name: good}}]\n"})
    assert of.actions("new_1", "new_2") == {"new_1": "blocked", "new_2": "blocked"}
    of.write({"models/new_2.sql": "{% if true %} SELECT 2 AS id\n"})
    assert of.actions("new_1", "new_2") == {"new_1": "blocked", "new_2": "blocked"}
