"""`mvbuild lsp` in a separate process, with the requests of an editor."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from unit.cli.bad_input import call
from unit.lsp.client import Client, serving
from unit.worlds import write_project

FILES = {
    "mvbuild.yml": "name: shop\nmodels: {shop: {+lint: {missing-description: off, missing-tests: off}}}\n",
    "seeds/orders.csv": "id,day,amount\n1,2026-01-01,3\n",
    "seeds/orders.yml": "seeds:\n  - name: orders\n    description: What was ordered.\n    columns:\n"
    "      - {name: id, data_type: bigint, description: Its number.}\n      - {name: amount, data_type: 'decimal(10,2)'}\n",
    "models/sources.yml": "sources:\n  - name: crm\n    tables:\n      - name: people\n        columns: [{name: email, data_type: string}]\n",
    "macros/money.sql": "{# cents #}\n{% macro in_cents(column, digits=2) %}round({{ column }} * 100){% endmacro %}\n",
    "models/clean.sql": "{{ config(materialized='view') }}\nSELECT id, amount AS 'größe' FROM {{ ref('orders') }}\n".replace(
        "'größe'", "total"
    ),
    "models/daily.sql": "WITH big AS (SELECT id FROM {{ ref('clean') }} c WHERE c.total > 3)\nSELECT b.id, {{ in_cents('o.amount') }} AS cents\n"
    "FROM big b JOIN {{ ref('orders') }} o ON o.id = b.id\n",
    "models/models.yml": "models:\n  - name: daily\n    config:\n      materialized: view\n    columns:\n      - name: id\n        data_tests: [not_null]\n",
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_project(tmp_path_factory.mktemp("work") / "my shop", FILES)


@pytest.fixture(scope="module")
def server(root: Path) -> Iterator[Client]:
    with serving("--stdio", folders=(root.parent,)) as client:
        yield client


@pytest.fixture(scope="module")
def daily(server: Client, root: Path) -> str:
    """Open, and checked once."""
    uri = server.open(root / "models/daily.sql")
    server.until_codes(uri, [])
    return uri


@pytest.fixture
def spot(server: Client, daily: str) -> Iterator[object]:
    """A question at a mark in the text of daily.sql, which is as it was afterwards."""

    def ask(method: str, text: str) -> object:
        before = text.partition("|")[0]
        server.change(daily, {"text": text.replace("|", "", 1)})
        return server.at(method, daily, before.count("\n"), len(before.rpartition("\n")[2].encode("utf-16-le")) // 2)

    yield ask
    server.change(daily, {"text": FILES["models/daily.sql"]})


def labels(found: dict) -> list[str]:
    return [item["label"] for item in found["items"]]


# --- diagnostics


def test_what_is_typed_is_checked_before_it_is_saved(server: Client, root: Path, daily: str) -> None:
    server.change(daily, {"text": "SELECT id FROM {{ ref('cleen') }}\n"})
    assert server.codes(daily) == ["unresolved-ref"]
    (found,) = server.diagnostics[daily]
    assert found["range"] == {"start": {"line": 0, "character": 22}, "end": {"line": 0, "character": 29}}
    assert (found["severity"], found["source"], "Did you mean 'clean'?" in found["message"]) == (1, "mvbuild", True)
    server.change(daily, {"text": "SELECT i FROM {{ ref('clean') }} LIMIT 3\n"})
    assert server.codes(daily) == ["unknown-column", "limit-without-order"]
    assert (root / "models/daily.sql").read_text() == FILES["models/daily.sql"]
    server.change(daily, {"text": FILES["models/daily.sql"]})
    assert server.codes(daily) == []


def test_changes_come_in_pieces_and_are_counted_in_utf_16(server: Client, root: Path) -> None:
    uri = server.open(root / "models/clean.sql", "SELECT id, '😀é' AS x, amount FROM {{ ref('orders') }}\r\nLIMIT 1")
    server.until_codes(uri, ["limit-without-order"])
    # The emoji is two units: what is replaced is `amount`.
    at = {"start": {"line": 0, "character": 23}, "end": {"line": 0, "character": 29}}
    server.change(
        uri,
        {"range": at, "text": "amuont"},
        {"range": {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 7}}, "text": ""},
    )
    assert server.codes(uri) == ["unknown-column"]
    assert server.diagnostics[uri][0]["range"] == at
    server.close(uri)


def test_yaml_is_checked_too_and_an_error_in_one_file_is_told_there(server: Client, root: Path, daily: str) -> None:
    yaml = server.open(root / "models/models.yml", FILES["models/models.yml"].replace("materialized", "materialised"))
    assert server.codes(yaml) == ["unknown-key"]
    assert server.diagnostics[yaml][0]["range"]["start"] == {"line": 3, "character": 6}
    server.change(yaml, {"text": "models: [\n  - name: daily"})
    assert server.codes(yaml) == ["yaml-syntax"]
    server.change(yaml, {"text": FILES["models/models.yml"]})
    assert server.codes(yaml) == []
    server.close(yaml)


def test_errors_of_the_project_stand_at_its_file_and_go_when_it_is_mended(server: Client, root: Path, daily: str) -> None:
    project = server.open(root / "mvbuild.yml", FILES["mvbuild.yml"] + "target: nowhere\n")
    assert server.codes(project) == ["unknown-target"]
    server.change(project, {"text": FILES["mvbuild.yml"]})
    assert server.codes(project) == []
    server.close(project)


def test_a_new_file_is_part_of_the_project_before_it_is_saved(server: Client, root: Path, daily: str) -> None:
    uri = server.open(root / "models/new/fresh.sql", "SELECT id FROM {{ ref('daily') }} WHERE nope = 1")
    assert server.codes(uri) == ["unknown-column"]
    assert not (root / "models/new").exists()
    server.close(uri)


def test_files_of_no_project_and_of_no_file_are_left_alone(server: Client, root: Path, daily: str) -> None:
    other = server.open(root.parent / "elsewhere.sql", "SELECT {{ nonsense")
    untitled = "untitled:Untitled-1"
    server.notify("textDocument/didOpen", {"textDocument": {"uri": untitled, "languageId": "sql", "version": 1, "text": "SELEC"}})
    for uri in (other, untitled):
        assert server.at("hover", uri, 0, 8) is None
        assert server.at("definition", uri, 0, 8) is None
        assert server.at("completion", uri, 0, 8)["items"] == []
        assert uri not in server.diagnostics
        server.close(uri)


def test_several_projects_do_not_know_of_each_other(server: Client, root: Path, daily: str) -> None:
    inner = write_project(
        root.parent / "other",
        {"mvbuild.yml": "name: other\n", "models/a.sql": "SELECT 1 AS x, 2 AS x\n", "models/b.sql": "SELECT x FROM a\n"},
    )
    uri = server.open(inner / "models/b.sql")
    broken = (inner / "models/a.sql").as_uri()
    server.until(lambda: [d["code"] for d in server.diagnostics.get(broken, [])] == ["duplicate-column"])
    server.change(uri, {"text": "SELECT * FROM {{ ref('daily') }}"})
    assert server.codes(uri) == ["unresolved-ref"]
    server.close(uri)


# --- definitions


@pytest.mark.parametrize(
    ("text", "file", "line", "character"),
    [
        ("SELECT id FROM {{ ref('cl|ean') }}", "models/clean.sql", 0, 0),
        ("SELECT id FROM {{ r|ef('orders') }}", "seeds/orders.csv", 0, 0),
        ("SELECT id FROM cle|an", "models/clean.sql", 0, 0),
        ("SELECT email FROM {{ source('crm', 'peo|ple') }}", "models/sources.yml", 3, 14),
        ("SELECT email FROM crm.peo|ple", "models/sources.yml", 3, 14),
        ("SELECT {{ in_c|ents('a') }} FROM clean", "macros/money.sql", 1, 9),
        ("WITH a AS (SELECT 1 AS x), big AS (SELECT x FROM a) SELECT x FROM b|ig", "models/daily.sql", 0, 27),
        ("WITH a AS (SELECT 1 AS '😀'), big AS (SELECT x FROM a)\nSELECT x FROM b|ig", "models/daily.sql", 0, 30),
        ("SELECT id FROM {{ ref('cl|ean') }} WHERE ((", "models/clean.sql", 0, 0),
        ("{% if %} SELECT id FROM {{ ref('cl|ean", "models/clean.sql", 0, 0),
        ("-- {{ ref('cl|ean') }}\nSELECT 1 AS x", None, 0, 0),
        ("SELECT 1 AS cle|a FROM nowhere.at_all", None, 0, 0),
    ],
)
def test_definition(server: Client, root: Path, spot, text: str, file: str | None, line: int, character: int) -> None:
    found = spot("definition", text)
    if file is None:
        assert found is None
        return
    assert found["uri"] == (root / file).as_uri()
    assert found["range"]["start"] == {"line": line, "character": character}


def test_definition_from_yaml(server: Client, root: Path, daily: str) -> None:
    uri = server.open(root / "models/models.yml")
    assert server.at("definition", uri, 1, 12)["uri"] == daily
    assert server.at("definition", uri, 5, 15) is None  # a column
    server.close(uri)


# --- hovers


def test_hover_shows_columns_with_types_and_why_the_freshness_is_not_known(server: Client, spot) -> None:
    said = spot("hover", "SELECT * FROM {{ ref('cl|ean') }}")["contents"]
    assert said["kind"] == "markdown"
    assert said["value"].startswith("**clean** view `lake.main.clean`")
    assert "| `total` | decimal(10,2) |" in said["value"]
    assert "freshness" not in said["value"]  # it stores nothing
    seed = spot("hover", "SELECT * FROM {{ ref('ord|ers') }}")["contents"]["value"]
    assert "What was ordered." in seed
    assert "| `id` | bigint | Its number. |" in seed


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("SELECT c.tot|al FROM {{ ref('clean') }} c", "`total` decimal(10,2) of **clean**"),
        ("SELECT c.tot|al FROM {{ ref('clean') }} c", "comes from `orders.amount`"),
        ("SELECT tot|al FROM {{ ref('clean') }} WHERE (", "`total` decimal(10,2)"),
        ("SELECT {{ in_cen|ts('total') }} FROM clean", "macro `in_cents(column, digits=2)` of macros/money.sql"),
        ("SELECT email FROM {{ source('crm', 'peo|ple') }}", "There may be more columns"),
        ("WITH big AS (SELECT id, 1 AS one FROM clean) SELECT * FROM bi|g", "CTE **big** of this file: `id`, `one`"),
    ],
)
def test_hover_over_columns_and_macros(spot, text: str, part: str) -> None:
    assert part in spot("hover", text)["contents"]["value"]


def test_hover_over_nothing(spot) -> None:
    assert spot("hover", "SELECT  | 1 AS x") is None


def test_hover_over_a_key_of_yaml(server: Client, root: Path, daily: str) -> None:
    uri = server.open(root / "models/models.yml")
    assert "materialized_view (the default), view or ephemeral" in server.at("hover", uri, 3, 8)["contents"]["value"]
    assert "Its columns." in server.at("hover", uri, 4, 5)["contents"]["value"]
    server.close(uri)


# --- completion


@pytest.mark.parametrize(
    ("text", "wanted", "unwanted"),
    [
        ("SELECT id FROM {{ ref('|", {"clean", "daily", "orders"}, {"crm", "id"}),
        ('SELECT id FROM {{ ref("cl|") }} WHERE', {"clean"}, {"crm"}),
        ("SELECT id FROM {{ source('|", {"crm"}, {"clean"}),
        ("SELECT id FROM {{ source('crm', '|", {"people"}, {"clean", "crm"}),
        ("SELECT id FROM |", {"clean", "orders", "crm.people"}, {"id"}),
        ("WITH big AS (SELECT 1 AS x) SELECT * FROM b|", {"big", "clean"}, set()),
        ("SELECT c.| FROM {{ ref('clean') }} c JOIN {{ ref('orders') }} o", {"id", "total"}, {"amount", "day"}),
        ("SELECT o.a| FROM clean c, orders AS o", {"amount", "day"}, {"total"}),
        ("SELECT tot| FROM {{ ref('clean') }}", {"id", "total"}, {"amount"}),
        (
            "WITH j AS (SELECT c.id, sum(o.amount) AS n, c.total + 1 FROM clean c, orders o GROUP BY 1) SELECT j.| FROM j",
            {"id", "n"},
            {"total", "amount"},
        ),
        (
            "WITH a AS (SELECT *, 1 AS one FROM {{ ref('clean') }}), b AS (SELECT x.*, 'FROM (' AS `t w` FROM a x) SELECT q.| FROM b AS q",
            {"id", "total", "one", "t w"},
            {"amount"},
        ),
        ("WITH r (n, m) AS (SELECT 1, 2) SELECT | FROM r JOIN clean", {"n", "m", "total"}, {"amount"}),
        ("WITH a AS (SELECT * FROM b), b AS (SELECT *, 1 AS one FROM a) SELECT a.| FROM a", {"one"}, {"total"}),
        ("WITH a AS (SELECT id, (SELECT max(amount) FROM orders) AS most FROM clean) SELECT a.| FROM a", {"id", "most"}, {"amount"}),
        ("SELECT {{ in| }} FROM clean", {"in_cents", "ref", "var"}, {"total"}),
        ("{{ config(mat|", {"materialized", "partition_by", "refresh_policy"}, {"ref"}),
        ("{{ config(tags=['a'], materialized='|", {"view", "ephemeral"}, {"tags"}),
        ("SELECT 1 -- from |", set(), {"clean"}),
        ("SELECT 1 -- a */ from|\nFROM clean", set(), {"id"}),
        ("SELECT /* from |", set(), {"clean"}),
        ("SELECT /* from | */ FROM clean", set(), {"clean"}),
        ("{# ref('| #} SELECT 1 AS x", set(), {"clean"}),
        ("-- it's\nSELECT id FROM {{ ref('cl|ean') }}", {"clean"}, {"crm"}),
        ("/* it */ SELECT c.| FROM {{ ref('clean') }} c", {"id", "total"}, {"amount"}),
        ("{# it #}\nSELECT id FROM {{ ref('|') }}", {"clean"}, {"crm"}),
        ("SELECT 1 AS x -- c\nFROM |", {"clean", "crm.people"}, {"id"}),
        ("/* it */|SELECT id FROM clean", {"id"}, set()),
    ],
)
def test_completion_in_sql(spot, text: str, wanted: set[str], unwanted: set[str]) -> None:
    found = set(labels(spot("completion", text)))
    assert wanted <= found
    assert not unwanted & found


def test_a_completion_replaces_what_was_typed_of_it(spot) -> None:
    found = spot("completion", "SELECT '😀', id FROM cl|")
    (one,) = [item for item in found["items"] if item["label"] == "clean"]
    assert one["textEdit"] == {
        "range": {"start": {"line": 0, "character": 21}, "end": {"line": 0, "character": 23}},
        "newText": "{{ ref('clean') }}",
    }


@pytest.mark.parametrize(
    ("file", "text", "wanted", "unwanted"),
    [
        ("models/models.yml", "mod|", {"models", "seeds", "sources"}, {"name"}),
        ("models/models.yml", "models:\n  - name: daily\n    |", {"columns", "config", "description"}, {"models"}),
        ("models/models.yml", "models:\n- name: daily\n  co|", {"columns", "config"}, {"models"}),
        ("models/models.yml", "models:\n  - name: daily\n    config:\n      ma|", {"materialized", "maintain"}, {"columns"}),
        ("models/models.yml", "models:\n  - name: daily\n    config:\n      materialized: |", {"view", "ephemeral"}, {"materialized"}),
        ("models/models.yml", "models:\n  - name: |", {"daily", "clean"}, {"orders"}),
        ("models/models.yml", "models:\n  - name: daily\n    columns:\n      - name: |", {"id", "cents"}, {"daily"}),
        ("models/models.yml", "models:\n  - name: daily\n    columns:\n      - name: id\n        data_tests:\n          - |", {"unique", "not_null"}, {"name"}),
        ("models/models.yml", "models:\n  - name: daily\n    columns:\n      - name: id\n        data_tests:\n          - relationships:\n              to: ref('|", {"orders"}, {"to"}),
        ("models/models.yml", "seeds:\n  - name: orders\n    config:\n      |", {"column_types", "delimiter"}, {"materialized"}),
        ("mvbuild.yml", "name: shop\n|", {"models", "targets", "lint"}, {"columns"}),
        ("mvbuild.yml", "name: shop\nmodels:\n  shop:\n    marts:\n      +|", {"+materialized", "+tags"}, {"targets"}),
        ("mvbuild.yml", "name: shop\ntargets:\n  prod:\n    |", {"catalog", "spark", "threads"}, {"targets"}),
        ("mvbuild.yml", "name: shop\nmodels:\n  shop:\n    +when_stale: |", {"query", "serve", "fail"}, {"+tags"}),
    ],
)  # fmt: skip
def test_completion_in_yaml(server: Client, root: Path, daily: str, file: str, text: str, wanted: set[str], unwanted: set[str]) -> None:
    server.codes(daily)
    before = text.partition("|")[0]
    uri = server.open(root / file, text.replace("|", ""))
    found = set(labels(server.at("completion", uri, before.count("\n"), len(before.rpartition("\n")[2]))))
    server.close(uri)
    assert wanted <= found
    assert not unwanted & found


# --- the rest of a life


def test_a_project_that_never_compiled_has_definitions_and_files_that_change_elsewhere_are_seen(tmp_path: Path) -> None:
    root = write_project(tmp_path, {**FILES, "models/models.yml": "models: [\n"})
    watching = {"workspace": {"didChangeWatchedFiles": {"dynamicRegistration": True}}, "general": {"positionEncodings": ["utf-8"]}}
    with serving(folders=(root,), capabilities=watching, freshness=False) as client:
        assert client.capabilities["positionEncoding"] == "utf-8"
        yaml = (root / "models/models.yml").as_uri()
        client.until(lambda: [d["code"] for d in client.diagnostics.get(yaml, [])] == ["yaml-syntax"])
        daily = client.open(root / "models/daily.sql", "SELECT '😀é', {{ in_cents('x') }} FROM {{ ref('clean') }}")
        assert client.at("definition", daily, 0, 22)["uri"] == (root / "macros/money.sql").as_uri()
        assert client.at("definition", daily, 0, 50)["uri"] == (root / "models/clean.sql").as_uri()
        assert [r["method"] for r in client.heard] == ["client/registerCapability"]
        (root / "models/models.yml").write_text(FILES["models/models.yml"])
        client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": yaml, "type": 2}]})
        client.until(lambda: client.diagnostics[yaml] == [])
        client.until_codes(daily, ["unknown-column"])
        assert client.diagnostics[daily][0]["range"]["start"] == {"line": 0, "character": 17}


@pytest.mark.proof
def test_a_client_that_goes_away_takes_the_server_with_it() -> None:
    with serving() as client:
        assert client.gone()


@pytest.mark.proof
def test_freshness_is_asked_in_the_background(tmp_path: Path) -> None:
    """A catalog that has the MV, as `mvbuild status` sees it: the table of a seed is there, the MV is not."""
    root = write_project(
        tmp_path,
        {**FILES, "models/models.yml": "", "models/clean.sql": "SELECT id FROM {{ ref('orders') }}\n", "models/daily.sql": "SELECT 1 AS x"},
    )
    with serving(folders=(root,)) as client:
        uri = client.open(root / "models/daily.sql", "SELECT id FROM {{ ref('clean') }}")
        client.codes(uri)
        assert "unknown: nothing has been built yet" in client.at("hover", uri, 0, 25)["contents"]["value"]
        (root / ".mvbuild").mkdir()
        (root / ".mvbuild/catalog.db").touch()
        client.at("hover", uri, 0, 25)
        assert client.until_logged("freshness of").endswith(": 2 MVs")
        assert "**stale**" in client.at("hover", uri, 0, 25)["contents"]["value"]


def test_without_pygls_the_command_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in ("pygls", "lsprotocol") or name == "mvbuild.lsp.server"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pygls", None)
    monkeypatch.setitem(sys.modules, "lsprotocol", None)
    done = call("lsp", tmp_path, {}, monkeypatch, capsys)
    assert (done.exit, done.stdout) == (2, "")
    assert "error[missing-package]" in done.stderr
    assert "pip install 'mvbuild[lsp]'" in done.stderr
