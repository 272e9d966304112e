"""`mvbuild lsp` -> references, renames, symbols and code actions; the edits are applied as an editor would, and the project still compiles."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mvbuild import api
from unit.lsp.client import Client, serving
from unit.worlds import write_project

FILES = {
    "mvbuild.yml": "name: shop\nmodels: {shop: {+lint: {missing-description: off, missing-tests: off}}}\n",
    "seeds/orders.csv": "id,amount\n1,3\n",
    "models/clean.sql": "SELECT id, amount FROM {{ ref('orders') }}\n",
    "models/daily.sql": "WITH big AS (SELECT clean.id FROM {{ ref('clean') }} WHERE clean.amount > 3)\nSELECT big.id, 'clean' AS clean FROM big\n",
    "models/plain.sql": "SELECT c.id FROM main.clean c -- clean\n",
    "models/renamed.sql": "{{ config(alias='tidy') }}\nSELECT tidied.id FROM main.clean AS tidied\n",
    "models/unused.sql": "WITH a AS (SELECT 1 AS x), b AS (SELECT 2 AS y), c AS (SELECT 3 AS z) SELECT x FROM a\n",
    "models/models.yml": "models:\n  - name: clean\n    columns:\n      - name: id\n        data_tests:\n          - relationships: {to: ref('clean'), field: id}\n"
    "  - name: daily\nunit_tests:\n  - name: one\n    model: clean\n    given: []\n    expect: {rows: []}\n",
    "tests/no_nulls.sql": "SELECT id FROM {{ ref('clean') }} WHERE id IS NULL\n",
    "macros/m.sql": "{% macro half(x) %}{{ x }} / 2{% endmacro %}\n",
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_project(tmp_path_factory.mktemp("work") / "my shop", FILES)


@pytest.fixture(scope="module")
def server(root: Path) -> Iterator[Client]:
    with serving(folders=(root,), freshness=False) as client:
        client.codes(client.open(root / "models/daily.sql"))
        client.codes(client.open(root / "models/unused.sql"))
        yield client


def places(root: Path, found: list[dict[str, Any]]) -> dict[str, list[str]]:
    """File -> line:character of each start."""
    out: dict[str, list[str]] = {}
    for one in found:
        name = next(name for name in FILES if (root / name).as_uri() == one["uri"])
        start = one["range"]["start"]
        out.setdefault(name, []).append(f"{start['line']}:{start['character']}")
    return out


ALL = {
    "models/clean.sql": [],
    "models/daily.sql": ["0:20", "0:42", "0:59"],
    "models/plain.sql": ["0:22"],
    "models/renamed.sql": ["1:27"],
    "models/models.yml": ["1:10", "5:37", "9:11"],
    "tests/no_nulls.sql": ["0:23"],
}


def referring(server: Client, root: Path, line: int, character: int) -> list[dict[str, Any]]:
    place = {"textDocument": {"uri": (root / "models/daily.sql").as_uri()}, "position": {"line": line, "character": character}}
    return server.ask("textDocument/references", {**place, "context": {"includeDeclaration": True}})


def test_references_of_a_model(server: Client, root: Path) -> None:
    found = referring(server, root, 0, 45)
    assert places(root, found) == {name: spots for name, spots in ALL.items() if spots}


def test_references_of_a_cte(server: Client, root: Path) -> None:
    found = referring(server, root, 1, 8)
    assert places(root, found) == {"models/daily.sql": ["0:5", "1:7", "1:37"]}


def applied(root: Path, edit: dict[str, Any]) -> dict[str, str]:
    """The files of the project after an edit of the workspace."""
    texts = dict(FILES)
    names = {(root / name).as_uri(): name for name in FILES}
    for change in edit.get("documentChanges") or [{"textDocument": {"uri": uri}, "edits": e} for uri, e in edit["changes"].items()]:
        if change.get("kind") == "rename":
            new = Path(change["newUri"].removeprefix(root.as_uri() + "/")).as_posix()
            texts[new] = texts.pop(names[change["oldUri"]])
            continue
        name = names[change["textDocument"]["uri"]]
        lines = texts[name].split("\n")
        for one in sorted(change["edits"], key=lambda e: (e["range"]["start"]["line"], e["range"]["start"]["character"]), reverse=True):
            start, end = one["range"]["start"], one["range"]["end"]
            assert start["line"] == end["line"]
            line = lines[start["line"]]
            lines[start["line"]] = line[: start["character"]] + one["newText"] + line[end["character"] :]
        texts[name] = "\n".join(lines)
    return texts


def test_a_renamed_model_is_renamed_everywhere_and_the_project_compiles(server: Client, root: Path, tmp_path: Path) -> None:
    uri = (root / "models/daily.sql").as_uri()
    assert server.at("prepareRename", uri, 0, 45) == {"start": {"line": 0, "character": 42}, "end": {"line": 0, "character": 47}}
    edit = server.ask(
        "textDocument/rename", {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 45}, "newName": "tidy_orders"}
    )
    texts = applied(root, edit)
    assert "models/clean.sql" not in texts
    assert texts["models/daily.sql"] == (
        "WITH big AS (SELECT tidy_orders.id FROM {{ ref('tidy_orders') }} WHERE tidy_orders.amount > 3)\n"
        "SELECT big.id, 'clean' AS clean FROM big\n"
    )
    assert texts["models/plain.sql"] == "SELECT c.id FROM main.tidy_orders c -- clean\n"
    graph = api.compile(write_project(tmp_path, texts))
    assert not graph.problems
    assert {"model.shop.tidy_orders"} == set(graph.nodes["model.shop.plain"].reads)  # type: ignore[union-attr]
    assert graph.nodes["model.shop.daily"].reads == ("model.shop.tidy_orders",)  # type: ignore[union-attr]


def test_a_name_that_is_taken_or_not_valid_is_refused_and_says_why(server: Client, root: Path) -> None:
    at = {"textDocument": {"uri": (root / "models/daily.sql").as_uri()}, "position": {"line": 0, "character": 45}}
    assert server.refused("textDocument/rename", {**at, "newName": "daily"}) == "The project has a model or seed 'daily' already."
    assert "'2x' is not a valid name" in server.refused("textDocument/rename", {**at, "newName": "2x"})
    column = {**at, "position": {"line": 0, "character": 27}}
    assert server.refused("textDocument/prepareRename", column) == "Only models and CTEs can be renamed."


def test_a_renamed_cte(server: Client, root: Path) -> None:
    uri = (root / "models/daily.sql").as_uri()
    at = {"textDocument": {"uri": uri}, "position": {"line": 1, "character": 8}}
    texts = applied(root, server.ask("textDocument/rename", {**at, "newName": "large"}))
    assert texts["models/daily.sql"].replace("large", "big") == FILES["models/daily.sql"]
    assert texts["models/daily.sql"].count("large") == 3


def test_symbols(server: Client, root: Path) -> None:
    found = server.ask("textDocument/documentSymbol", {"textDocument": {"uri": (root / "models/unused.sql").as_uri()}})
    assert [one["name"] for one in found] == ["a", "b", "c"]
    uri = server.open(root / "models/models.yml")
    of_yaml = server.ask("textDocument/documentSymbol", {"textDocument": {"uri": uri}})
    assert [(one["name"], [child["name"] for child in one["children"]]) for one in of_yaml] == [
        ("clean", ["id"]),
        ("daily", []),
        ("one", []),
    ]
    server.close(uri)
    assert [one["name"] for one in server.ask("workspace/symbol", {"query": "cle"})] == ["clean"]
    assert {one["name"] for one in server.ask("workspace/symbol", {"query": ""})} == {
        "orders",
        "clean",
        "daily",
        "plain",
        "renamed",
        "unused",
        "half",
    }


def actions(server: Client, uri: str, line: int, character: int) -> list[dict[str, Any]]:
    here = {"line": line, "character": character}
    return server.ask(
        "textDocument/codeAction", {"textDocument": {"uri": uri}, "range": {"start": here, "end": here}, "context": {"diagnostics": []}}
    )


def test_code_actions_fix_what_lint_fixes(server: Client, root: Path) -> None:
    uri = (root / "models/unused.sql").as_uri()
    one, everything = actions(server, uri, 0, 28)
    assert (one["title"], one["kind"]) == ("Fix unused-cte", "quickfix")
    assert applied(root, one["edit"])["models/unused.sql"] == "WITH a AS (SELECT 1 AS x) SELECT x FROM a\n"  # the fix of the rule
    assert everything["kind"] == "source.fixAll.mvbuild"
    assert applied(root, everything["edit"])["models/unused.sql"] == "WITH a AS (SELECT 1 AS x) SELECT x FROM a\n"
    assert [a["title"] for a in actions(server, uri, 0, 0)] == ["Fix everything that mvbuild can fix in this file"]


def test_no_action_for_a_text_that_has_changed_since_it_was_checked(server: Client, root: Path) -> None:
    uri = (root / "models/unused.sql").as_uri()
    server.change(uri, {"text": "-- new\n" + FILES["models/unused.sql"]})
    assert actions(server, uri, 0, 28) == []
    server.codes(uri)
    assert len(actions(server, uri, 1, 28)) == 2
    server.change(uri, {"text": FILES["models/unused.sql"]})
    server.codes(uri)


def test_hover_over_a_column_of_a_cte(server: Client, root: Path) -> None:
    found = server.at("hover", (root / "models/daily.sql").as_uri(), 1, 12)
    assert found["contents"]["value"] == "`id` of the CTE **big**"
