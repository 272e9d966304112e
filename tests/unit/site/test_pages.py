"""A project in memory -> its site: what pages say, that no text of a user becomes a program, and what a large project weighs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from mvbuild import api
from mvbuild.adapters.memory import MemoryCatalog
from mvbuild.api import documentation, sessions
from mvbuild.cli.main import group
from mvbuild.diagnostics import ProjectError
from mvbuild.incremental.table_changes import Changes
from mvbuild.ports.catalog import CatalogError
from mvbuild.ports.commits import TableLayout
from mvbuild.site.write import write_site
from unit.worlds import PROJECT, SCHEMA, Shop, append, compiled, shop, write_project

FILES = {
    "mvbuild.yml": "name: shop\n",
    "models/base/cleaned.sql": "{{ config(materialized='ephemeral') }}\nSELECT id FROM {{ source('raw', 'orders') }} WHERE id > 0\n",
    "models/base/sources.yml": "sources:\n  - name: raw\n    tables: [{name: orders, description: Of the shop., columns: [{name: id, data_type: bigint}]}]\n",
    "models/daily.sql": ("SELECT a.id, /* 🐟 */ b.id + 1 AS next\nFROM {{ ref('cleaned') }} a JOIN raw.orders b ON a.id = b.id\n"),
    "models/daily.yml": (
        "models:\n  - name: daily\n    description: Orders of a day.\n    config: {tags: [report]}\n"
        "    columns:\n      - {name: id, description: The order., data_tests: [not_null, {accepted_values: {values: [1, 2], severity: warn}}]}\n"
    ),
    "models/monthly.sql": "SELECT max(next) AS last FROM {{ ref('daily') }}\n",
    "tests/no_negative.sql": "SELECT * FROM {{ ref('daily') }} WHERE id < 0",
}


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(group, arguments, standalone_mode=False)


def arguments(path: Path) -> list[Any]:
    """What a script hands over: `site.page(3,{...});` -> [3, {...}]."""
    text = path.read_text(encoding="utf-8")
    assert text.isascii()
    return json.loads("[" + text[text.index("(") + 1 : text.rindex(");")] + "]")


class Site:
    """A site on disk, as its pages read it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (self.index,) = arguments(folder / "data/index.js")
        self.nodes = [dict(zip(self.index["fields"], row, strict=True)) for row in self.index["nodes"]]

    def at(self, name: str) -> int:
        return next(at for at, node in enumerate(self.nodes) if node["name"] == name)

    def node(self, name: str) -> Mapping[str, Any]:
        return self.nodes[self.at(name)]

    def page(self, name: str) -> dict[str, Any]:
        at, content = arguments(self.folder / f"data/{self.at(name)}.js")
        assert at == self.at(name)
        return content

    def column(self, name: str, column: str) -> dict[str, Any]:
        return next(c for c in self.page(name)["columns"] if c["name"] == column)


def built(root: Path, monkeypatch: pytest.MonkeyPatch, catalog: MemoryCatalog | None) -> Site:
    if catalog is not None:
        monkeypatch.setattr(sessions, "open_catalog", lambda *_, **__: catalog)
        monkeypatch.setattr(documentation, "_not_created", lambda _: None)
    api.build_docs(root)
    return Site(root / "target/site")


@pytest.fixture
def of(tmp_path: Path) -> Shop:
    return shop(tmp_path, FILES)


def test_a_page_has_columns_with_types_descriptions_and_tests(of: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    site = built(of.root, monkeypatch, of.catalog)
    found = site.column("daily", "id")
    assert (found["type"], found["description"]) == ("bigint", "The order.")
    assert [(t["kind"], t["severity"], t["arguments"]) for t in found["tests"]] == [
        ("not_null", "error", {}),
        ("accepted_values", "warn", {"values": "[1, 2]"}),
    ]
    page = site.page("daily")
    assert page["description"] == "Orders of a day."
    assert [test["name"] for test in page["tests"]] == ["no_negative"]
    assert site.node("daily")["tags"] == ["report"]
    assert site.page("raw.orders")["description"] == "Of the shop."


def test_columns_are_followed_in_both_directions(of: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    site = built(of.root, monkeypatch, of.catalog)
    assert site.column("daily", "id")["from"] == [[site.at("cleaned"), "id"]]
    assert site.column("daily", "next")["from"] == [[site.at("raw.orders"), "id"]]
    assert site.column("daily", "next")["to"] == [[site.at("monthly"), "last"]]
    assert [site.at("cleaned"), "id"] in site.page("daily")["rows"]


def test_tables_in_sql_are_links_as_written_and_as_compiled(of: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    site = built(of.root, monkeypatch, of.catalog)
    page = site.page("daily")
    written = [piece for piece in page["written"] if not isinstance(piece, str)]
    assert written == [["{{ ref('cleaned') }}", site.at("cleaned")], ["raw.orders", site.at("raw.orders")]]
    compiled_links = [piece for piece in page["compiled"] if not isinstance(piece, str)]
    assert compiled_links == [["lake.raw.orders", site.at("raw.orders")]] * 2  # that of the ephemeral model is in the text too
    text = "".join(piece if isinstance(piece, str) else piece[0] for piece in page["written"])
    assert text == FILES["models/daily.sql"]
    assert "".join(piece if isinstance(piece, str) else piece[0] for piece in page["compiled"]).startswith("SELECT a.id, /* 🐟 */ b.id")


def test_one_expression_may_name_many_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = "{% for t in ['a', 'b'] %}SELECT id FROM {{ ref(t) }}{% if not loop.last %} UNION ALL {% endif %}{% endfor %}\n"
    one = "SELECT id FROM raw.orders"
    made = shop(tmp_path, {"mvbuild.yml": "name: shop\n", "models/a.sql": one, "models/b.sql": one, "models/both.sql": loop})
    site = built(made.root, monkeypatch, made.catalog)
    links = [piece for piece in site.page("both")["compiled"] if not isinstance(piece, str)]
    assert [site.nodes[at]["name"] for _, at in links] == ["a", "b"]


def test_freshness_history_and_record_of_a_run(of: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    of.write({"models/plain.sql": "SELECT id FROM raw.orders\n"}).changes = Changes(of.catalog.changes)
    of.run()
    site = built(of.root, monkeypatch, of.catalog)
    page = site.page("daily")
    assert page["freshness"]["state"] == "fresh"
    assert [(one["id"], one["strategy"], one["reason"], one["current"]) for one in page["history"]] == [
        (1, "full", "never-refreshed", True)
    ]
    assert [table["name"] for table in page["record"]["tables"]] == ["raw.orders"]
    # JavaScript has no 64-bit integers.
    assert page["record"]["tables"][0]["snapshot"] == str(of.table("raw.orders").current_snapshot_id)
    assert page["next"]["action"] == "reuse"
    content = json.loads((of.root / "target/catalog.json").read_text())
    assert {"model.shop.daily", "model.shop.monthly", "model.shop.plain"} == content["nodes"].keys()
    supposed = site.page("plain")["next"]["supposed"]
    assert next(one["strategy"] for one in supposed["inserts"] if one["possible"]) == "append"
    assert "append" not in [one["strategy"] for one in supposed["deletes"] if one["possible"]]

    append(of.catalog, "raw.orders")
    site = built(of.root, monkeypatch, of.catalog)
    assert (site.node("daily")["state"], site.node("daily")["action"]) == ("stale", "refresh")
    reasons = site.page("daily")["freshness"]["reasons"]
    assert [reason["code"] for reason in reasons] == ["base-table-changed"]
    assert "lake.raw.orders" in reasons[0]["text"]
    assert site.page("monthly")["freshness"]["state"] == "stale"


def test_a_large_site_leaves_out_what_takes_long(of: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    of.changes = Changes(of.catalog.changes)
    of.run()
    append(of.catalog, "raw.orders", 5)
    monkeypatch.setattr("mvbuild.site.refreshes.EXPLAINED", 1)
    found = built(of.root, monkeypatch, of.catalog).page("daily")["next"]
    assert found["brief"]
    assert "supposed" not in found
    assert (found["strategy"], [one["strategy"] for one in found["verdicts"] if one["chosen"]]) == ("full", ["full"])


def test_a_catalog_that_cannot_be_reached_leaves_the_rest_of_the_site(of: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise CatalogError("nobody answers", unreachable=True)

    monkeypatch.setattr(of.catalog, "load", refuse)
    site = built(of.root, monkeypatch, of.catalog)
    assert site.index["unseen"] == "nobody answers"
    page = site.page("daily")
    assert page["written"]
    assert page["columns"]
    assert not {"freshness", "next", "history", "record"} & page.keys()
    assert not (of.root / "target/catalog.json").exists()


def test_a_catalog_that_was_never_created_is_not_created(tmp_path: Path) -> None:
    write_project(tmp_path, PROJECT)
    done = invoke("docs", "build", "--project-dir", str(tmp_path))
    assert done.return_value == 0
    assert "warning[catalog-unreachable]: The project's own catalog has not been created yet" in done.stderr
    assert "Wrote 5 pages into" in done.stderr
    assert not (tmp_path / ".mvbuild").exists()
    assert Site(tmp_path / "target/site").index["unseen"] == "The project's own catalog has not been created yet"


def test_a_model_that_cannot_be_built_has_its_reason_and_the_others_their_freshness(of: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    of.run()
    of.write({"models/extra.sql": "SELECT id FROM raw.orders\n"})
    taken = of.world().graph.model("model.shop.extra").identifier
    of.catalog.create_table(taken, TableLayout(schema=SCHEMA), {})
    site = built(of.root, monkeypatch, of.catalog)
    assert "extra" in site.page("extra")["next"]["error"]
    assert site.page("daily")["freshness"]["state"] == "fresh"


def test_a_model_that_is_wrong_has_a_page_that_says_so(tmp_path: Path) -> None:
    write_project(tmp_path, {**PROJECT, "models/wrong.sql": "SELECT FROM FROM\n"})
    done = invoke("docs", "build", "--project-dir", str(tmp_path))
    assert done.return_value == 2
    site = Site(tmp_path / "target/site")
    assert site.node("wrong")["problem"]
    assert site.page("wrong")["problem"]["at"].startswith("models/wrong.sql:1")
    assert site.page("wrong")["compiled"] == []
    assert site.page("daily")["compiled"]


HOSTILE = "</script><script>alert(1)</script><!-- --> & \" ' \\ \u2028 \u2029 \U0001f41f <img src=x onerror=alert(1)>"


def test_no_text_of_a_user_can_end_a_script(tmp_path: Path) -> None:
    columns = [{"name": "id", "description": HOSTILE}]
    described = {"models": [{"name": "daily", "description": HOSTILE, "config": {"tags": [HOSTILE]}, "columns": columns}]}
    # YAML knows no surrogates.
    text = json.dumps(described).replace("\\ud83d\\udc1f", "\U0001f41f")
    sql = "SELECT id, '</script><b>' AS text FROM raw.orders -- <!-- </SCRIPT>\n"
    write_project(tmp_path, {"mvbuild.yml": "name: shop\n", "models/daily.sql": sql, "models/daily.yml": text})
    done = invoke("docs", "build", "--project-dir", str(tmp_path))
    assert done.return_value == 0, done.output
    site = Site(tmp_path / "target/site")
    for path in (tmp_path / "target/site/data").iterdir():
        text = path.read_text(encoding="utf-8")
        assert "<" not in text
        assert text.isascii()
    assert site.page("daily")["description"] == HOSTILE
    assert site.column("daily", "id")["description"] == HOSTILE
    assert "".join(p if isinstance(p, str) else p[0] for p in site.page("daily")["written"]) == sql


def test_the_front_page_escapes_the_name_of_the_project(tmp_path: Path) -> None:
    from dataclasses import replace

    from mvbuild.lineage.bind import bind
    from mvbuild.site.model import Content

    graph = compiled(tmp_path, PROJECT)
    graph = replace(graph, project=replace(graph.project, name="</title><script>alert(1)</script>"))
    write_site(Content(graph=graph, bound=bind(graph), seen=None, unseen="x", version="1.0", at_ms=0), tmp_path / "out")
    front = (tmp_path / "out/index.html").read_text(encoding="utf-8")
    assert "<title>&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;</title>" in front
    assert "http" not in front.replace("http-equiv", "")


def test_pages_of_models_that_are_gone_are_removed_and_the_rest_is_left_alone(tmp_path: Path) -> None:
    write_project(tmp_path, PROJECT)
    api.build_docs(tmp_path)
    data = tmp_path / "target/site/data"
    assert {path.name for path in data.iterdir()} == {*(f"{at}.js" for at in range(5)), "index.js", "search.js", "live.js"}
    kept = (tmp_path / "target/site/assets/app.js").stat()
    (tmp_path / "models/monthly.sql").unlink()
    api.build_docs(tmp_path)
    assert {path.name for path in data.iterdir()} == {*(f"{at}.js" for at in range(3)), "index.js", "search.js", "live.js"}
    assert (tmp_path / "target/site/assets/app.js").stat().st_mtime_ns == kept.st_mtime_ns


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    write_project(tmp_path, PROJECT)
    other = tmp_path / "public"
    other.mkdir()
    (other / "index.html").write_text("<p>mine</p>")
    with pytest.raises(ProjectError, match=r"unwritable-target.*holds other files"):
        api.build_docs(tmp_path, other)
    assert [path.name for path in other.iterdir()] == ["index.html"]


def test_generate_is_what_dbt_calls_build(tmp_path: Path) -> None:
    write_project(tmp_path, PROJECT)
    assert invoke("docs", "generate", "--project-dir", str(tmp_path), "--output", str(tmp_path / "out")).return_value == 0
    assert (tmp_path / "out/index.html").exists()


def test_what_every_page_loads_stays_small_in_a_large_project(tmp_path: Path) -> None:
    """At 10,000 models as at 300: a page loads the index, and one page of a node."""
    models = {
        f"models/layer_{at % 10}/model_{at}.sql": f"SELECT id FROM {f'model_{at - 10}' if at >= 10 else 'raw.orders'}\n"
        for at in range(300)
    }
    described = [
        {"name": f"model_{at}", "description": "What it is. " * 40, "columns": [{"name": f"column_{c}"} for c in range(30)]}
        for at in range(300)
    ]
    write_project(tmp_path, {"mvbuild.yml": "name: shop\n", "models/all.yml": json.dumps({"models": described}), **models})
    api.build_docs(tmp_path)
    data = tmp_path / "target/site/data"
    assert (data / "index.js").stat().st_size / 301 < 330
    assert max(path.stat().st_size for path in data.glob("[0-9]*.js")) < 10_000
    assets = sum(path.stat().st_size for path in (tmp_path / "target/site/assets").rglob("*") if path.is_file())
    assert assets < 400_000
