"""`mvbuild lsp` in a project whose models have versions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from unit.lsp.client import Client, serving
from unit.worlds import write_project

READS = "SELECT a.id, b.price FROM {{ ref('dim', v=1) }} a JOIN {{ ref('dim') }} b ON a.id = b.id\n"
FILES = {
    "mvbuild.yml": "name: shop\nmodels: {shop: {+materialized: view}}\n",
    "models/dim.yml": "models:\n  - name: dim\n    versions:\n      - v: 1\n      - v: 2\nunit_tests:\n  - name: one\n    model: dim\n    given: []\n"
    "    expect: {rows: []}\n",
    "models/dim_v1.sql": "SELECT 1 AS id, 'x' AS name\n",
    "models/dim_v2.sql": "SELECT 1 AS id, 2 AS price\n",
    "models/reads.sql": READS,
}
ONE, TWO = READS.index("dim', v"), READS.index("dim') ")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_project(tmp_path_factory.mktemp("work") / "shop", FILES)


@pytest.fixture(scope="module")
def server(root: Path) -> Iterator[Client]:
    with serving(folders=(root,), freshness=False) as client:
        client.codes(client.open(root / "models/reads.sql"))
        yield client


@pytest.fixture
def reads(server: Client, root: Path) -> str:
    return (root / "models/reads.sql").as_uri()


@pytest.mark.parametrize(("at", "version"), [(ONE, 1), (TWO, 2), (READS.index("v=1") + 2, 1)])
def test_definition_and_hover(server: Client, root: Path, reads: str, at: int, version: int) -> None:
    assert server.at("definition", reads, 0, at)["uri"] == (root / f"models/dim_v{version}.sql").as_uri()
    shown = server.at("hover", reads, 0, at)["contents"]["value"]
    assert f"**dim.v{version}** view" in shown
    assert f"| `{('name', 'price')[version - 1]}` |" in shown


def test_the_name_in_yaml_means_the_latest_version(server: Client, root: Path, reads: str) -> None:
    uri = server.open(root / "models/dim.yml")
    assert server.at("definition", uri, 1, 11)["uri"] == (root / "models/dim_v2.sql").as_uri()
    assert "**dim.v2** view" in server.at("hover", uri, 1, 11)["contents"]["value"]
    server.close(uri)


@pytest.mark.parametrize(("at", "column"), [(ONE, ONE), (TWO, TWO)])
def test_references(server: Client, reads: str, at: int, column: int) -> None:
    place = {"textDocument": {"uri": reads}, "position": {"line": 0, "character": at}}
    found = server.ask("textDocument/references", {**place, "context": {"includeDeclaration": True}})
    starts = [(one["uri"].rpartition("/")[2], one["range"]["start"]["line"], one["range"]["start"]["character"]) for one in found]
    assert ("reads.sql", 0, column) in starts
    assert ("dim.yml", 1, 10) in starts
    assert len([one for one in starts if one[0] == "reads.sql"]) == 1


def test_rename_is_refused(server: Client, reads: str) -> None:
    place = {"textDocument": {"uri": reads}, "position": {"line": 0, "character": TWO}}
    assert "'dim' has versions. Rename it by hand" in server.refused("textDocument/rename", {**place, "newName": "dimension"})


@pytest.mark.parametrize(
    ("text", "wanted", "unwanted"),
    [
        ("SELECT 1 AS x FROM {{ ref('|') }}", {"dim": "dim"}, {"dim.v1", "dim.v2"}),
        ("SELECT 1 AS x FROM {{ ref('dim', v=|) }}", {"1": "1", "2": "2"}, {"ref"}),
        ("SELECT 1 AS x FROM |", {"dim": "{{ ref('dim') }}", "dim.v1": "{{ ref('dim', v=1) }}"}, set()),
        ("SELECT a.| FROM {{ ref('dim') }} a", {"price": "price"}, {"name"}),
        ("SELECT a.| FROM {{ ref('dim', v=1) }} a", {"name": "name"}, {"price"}),
    ],
)
def test_completion(server: Client, reads: str, text: str, wanted: dict[str, str], unwanted: set[str]) -> None:
    server.change(reads, {"text": text.replace("|", "")})
    items: list[dict[str, Any]] = server.at("completion", reads, 0, text.index("|"))["items"]
    server.change(reads, {"text": READS})
    found = {item["label"]: item["textEdit"]["newText"] for item in items}
    assert wanted.items() <= found.items()
    assert not unwanted & found.keys()


def test_completion_of_a_name_in_yaml(server: Client, root: Path, reads: str) -> None:
    uri = server.open(root / "models/dim.yml", "models:\n  - name: ")
    found = {item["label"] for item in server.at("completion", uri, 1, 10)["items"]}
    server.close(uri)
    assert "dim" in found
    assert "dim.v1" not in found
