"""Random edits of a project: what is compiled with the help of earlier runs is what is compiled without, byte for byte.

MVBUILD_CACHE_EDITS=2000 MVBUILD_CACHE_SEED=7 pytest tests/unit/project/test_compile_cache.py   takes as long as one likes.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mvbuild import workers
from mvbuild.api import compilation
from mvbuild.artifacts import compiled
from mvbuild.artifacts.manifest import entries, manifest, manifest_text
from mvbuild.cache.store import FILE
from mvbuild.diagnostics import ProjectError
from mvbuild.diagnostics.render import to_text
from mvbuild.graph import file_facts, graph_cache
from mvbuild.graph.definition import definition
from mvbuild.lineage import bind as bind_module
from mvbuild.lineage.check import check_columns
from mvbuild.parse import files
from mvbuild.project import documents

pytestmark = pytest.mark.proof

EDITS = int(os.environ.get("MVBUILD_CACHE_EDITS", "60"))
SEED = int(os.environ.get("MVBUILD_CACHE_SEED", "1"))
SQL = (
    "SELECT id, name FROM {{ ref('people') }}\n",
    "SELECT id, upper(name) AS name FROM {{ ref('People') }} -- a comment\n",
    "{{ config(materialized='view', tags=['x']) }}\nSELECT * FROM {{ source('raw', 'orders') }} o JOIN {{ ref('first') }} USING (id)\n",
    "{{ config(tags=['y', 'x']) }}SELECT {{ cents('price') }} AS price FROM raw.orders\n",
    "{% for c in ['id', 'name'] %}{{ 'SELECT ' if loop.first }}{{ c }}{{ ', ' if not loop.last }}{% endfor %} FROM {{ ref('people') }}\n",
    "SELECT {{ var('column', 'id') }} AS c, '{{ env_var('PLACE', 'here') }}' AS place FROM {{ ref('second') }}\n",
    "SELECT '{{ target.name }}' AS t, {{ var('number') }} AS n FROM {{ this.schema }}.other\n",
    "SELECT 1 AS one\n",
    "{{ config(materialized='ephemeral') }}SELECT id, name FROM {{ ref('people') }} WHERE id > 1\n",
    "{{ config(dialects=['trino'], catalog_view='definition') }}SELECT id, name FROM {{ ref('people') }}\n",
    "{{ config(alias='another') }}SELECT id, '{{ env_var(var('column', 'PLACE'), 'here') }}' AS place FROM {{ ref('people') }}\n",
    "SELECT FROM WHERE\n",
    "SELECT * FROM {{ ref('nowhere') }}\n",
    "{{ config(materialised='view') }}SELECT 1 AS one\n",
    "{{ config(enabled=false) }}SELECT 1 AS one\n",
    "{% if %}\n",
    "{{ exceptions.warn('careful') }}SELECT 2 AS two\n",
)
YAML = (
    "models: [{name: first, description: One., columns: [{name: id, data_tests: [not_null, unique]}]}]\n",
    "models:\n  - name: first\n    config: {tags: [z], meta: {on: 2026-01-01, deep: {a: [1, 2.5, null]}}}\n    columns: [{name: id, data_type: int}]\n",
    "models: [{name: second, config: {alias: other_name}, data_tests: [{accepted_values: {column_name: id, values: [1, 2]}}]}]\n",
    "models: [{name: second, description: \"{{ var('column', 'x') }}\", config: {enabled: \"{{ var('on', true) }}\"}}]\n",
    "sources: [{name: raw, tables: [{name: orders, description: All., columns: [{name: id, data_tests: [not_null]}]}]}]\n",
    "sources: [{name: raw, namespace: elsewhere, tables: [{name: orders}]}]\n",
    "models: [{name: second, description: \"{{ env_var('PLACE', 'x') }}\", columns: [{name: id, data_tests: [{relationships: {to: ref('first'), field: id}}]}]}]\n",
    "models: [{name: second, description: \"{{ env\\x5fvar('PLACE', 'x') }}\"}]\n",
    "models: [{name: first, colums: []}]\n",
    "models: [{name: gone}]\n",
    "models: [\n",
    "",
)
_GROUPS = "groups: [{name: g, owner: {name: A}}, {name: h, owner: {email: b@c.d}}]\n"
_ITEM = "models: [{name: item, description: \"{{ doc('w') }}\", columns: [{name: id, data_tests: [unique]}], "
VERSIONS = (
    _GROUPS + _ITEM + "config: {group: g}, versions: [{v: 1}, {v: 2, columns: [{include: all, exclude: [id]}]}]}]\n",
    _GROUPS
    + _ITEM
    + "latest_version: 1, config: {group: g, access: private}, versions: [{v: 1}, {v: 2, config: {alias: two, access: public}}]}]\n",
    _GROUPS + _ITEM + "latest_version: 1, versions: [{v: 1}, {v: 2, defined_in: item_v2, deprecation_date: 2999-01-01}]}]\n",
    _GROUPS + _ITEM + "versions: [{v: 1, deprecation_date: 2001-01-01}, {v: 2}]}, {name: reader, config: {group: h}}]\n",
    _GROUPS + "models: [{name: item_v1, config: {group: i}}]\n",
    _GROUPS + _ITEM + "latest_version: 3, versions: [{v: 1}, {v: 2}, {v: 2}]}]\n",
)
ITEMS = (
    "SELECT id, name FROM {{ ref('people') }}\n",
    "{{ config(materialized='view') }}SELECT id, name AS n FROM {{ ref('people') }}\n",
    "{{ config(tags=['x'], group='h') }}SELECT id FROM {{ ref('people') }}\n",
    "{{ config(materialized='ephemeral') }}SELECT id FROM {{ ref('people') }}\n",
)
READERS = (
    "SELECT a.id FROM {{ ref('item', v=1) }} a JOIN {{ ref('item') }} b ON a.id = b.id\n",
    "{{ config(group='g') }}SELECT id FROM {{ ref('item', version='2') }}\n",
    "{{ config(group='g') }}SELECT id FROM {{ ref('shop', 'item') }}, item\n",
    "SELECT id FROM {{ ref('item', v=3) }}\n",
)
WORDS = (
    "{% docs w %}One word{% enddocs %}\n",
    "{% docs w %}\nSome words\n{% enddocs %}{% docs x %}{% enddocs %}\n",
    "{% docs v %}Not that{% enddocs %}\n",
    "{% docs w %}never closed",
)
MACROS = (
    "{% macro cents(c) %}{{ c }} / 100{% endmacro %}\n",
    "{% macro cents(c) %}{{ c }} * {{ var('number', 1) }}{% endmacro %}\n",
    "{% macro x %}",
)
PROJECT = (
    "name: shop\n",
    "name: shop\nvars: {column: name, number: 3}\n",
    "name: shop\nvars: {number: 4, on: false}\nmodels: {+tags: [all], deep: {+materialized: view}}\n",
    "name: shop\ntargets: {dev: {namespace: mart}, prod: {namespace: [a, b]}}\nvars: {number: 5}\n",
    "name: other\nseeds: {+alias: folk}\nvars: {number: 3}\n",
    "name: shop\nmodles: {}\n",
)
LOCKS = (
    "version: 1\ntables:\n  raw.orders:\n    columns:\n      id: bigint\n      price: decimal(9,2)\n",
    "version: 1\ntables: {}\n",
    "version: 1\ntables:\n  raw.orders:\n    columns:\n      id: bigint\n",
    "version: 1\ntables: [\n",
)
SEEDS = ("id,name\n1,a\n", "id,name\n1,a\n2,b\n", "id,name,id\n")
CONTENTS = {
    **dict.fromkeys(("models/first.sql", "models/second.sql", "models/deep/third.sql", "models/deep/fourth.sql"), SQL),
    "models/one.yml": (*YAML[:2], YAML[8], YAML[10]),
    "models/deep/two.yml": (YAML[4], YAML[5], YAML[7], YAML[2], YAML[3], *YAML[6:]),
    "models/deep/versions.yml": VERSIONS,
    **dict.fromkeys(("models/deep/item_v1.sql", "models/deep/item_v2.sql"), ITEMS),
    "models/reader.sql": READERS,
    "models/words.md": WORDS,
    "macros/money.sql": MACROS,
    "tests/rule.sql": SQL,
    "mvbuild.yml": PROJECT,
    "seeds/people.csv": SEEDS,
    "schemas.lock": LOCKS,
}
KEPT = ("mvbuild.yml", "seeds/people.csv")


def edit(root: Path, rng: random.Random) -> None:
    path = rng.choice(list(CONTENTS))
    file = root / path
    if file.exists() and path not in KEPT and rng.random() < 0.15:
        file.unlink()
    elif file.exists() and rng.random() < 0.3:
        file.write_text(file.read_text() + rng.choice((" ", "\n", "-- more\n" if path.endswith(".sql") else "\n")))
    else:
        file.parent.mkdir(parents=True, exist_ok=True)
        # What is wrong stops the rest: most of the time the project should be right.
        choices = CONTENTS[path]
        file.write_text(rng.choice(choices if rng.random() < 0.3 else choices[: max(2, len(choices) // 2)]))


def said(root: Path, target_path: Path, env: dict[str, str], **options: object) -> str:
    """All output of compiling, or its errors."""
    target_path.mkdir(parents=True, exist_ok=True)
    try:
        graph = compilation.compile(root, env=env, target_path=target_path, **options)  # type: ignore[arg-type]
        checked = check_columns(graph)
        compilation.write_artifacts(graph)
    except ProjectError as exc:
        return to_text(exc.diagnostics)
    text = re.sub(r'"(generated_at|invocation_id)": "[^"]+"', "", (target_path / "manifest.json").read_text())
    # A model whose SQL is wrong has no definition.
    defined = [n for n in graph.models if n.id not in graph.undefined]
    compiled = [(n.id, (target_path / "compiled" / graph.project.name / n.model.file.path).read_text()) for n in defined]
    mapped = [(n.id, definition(graph, n).map) for n in defined]
    shown = [(id, [(s.offset, str(s.origin), s.verbatim) for s in found.segments]) for id, found in mapped]
    spans = [(n.id, sorted((k, str(s)) for k, s in n.model.config.spans.items())) for n in graph.models]
    tests = [(t.id, str(t.span), t.gates) for t in graph.tests]
    return "\n".join(
        [
            # A graph with errors is not kept.
            f"{to_text(graph.problems)}{text}",
            repr(compiled),
            to_text(graph.warnings),
            to_text(graph.problems),
            to_text(checked),
            repr(shown),
            repr(spans),
            repr(tests),
            repr(list(graph.nodes)),
        ]
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    for path, contents in CONTENTS.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(contents[0])
    return root


def rows(path: Path, table: str) -> set[tuple[str, bytes, bytes]]:
    with closing(sqlite3.connect(path)) as connection:
        return set(connection.execute(f"SELECT * FROM {table}"))


def texts(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def undo(root: Path, before: dict[Path, bytes]) -> None:
    for path in texts(root).keys() - before:
        path.unlink()
    for path, content in before.items():
        path.write_bytes(content)


def look_at_one(root: Path, target_path: Path, env: dict[str, str], rng: random.Random, **options: object) -> None:
    """A command that asks for little, and then writes what it learned."""
    try:
        graph = compilation.compile(root, env=env, target_path=target_path, **options)  # type: ignore[arg-type]
    except ProjectError:
        return
    models = [node for node in graph.models if node.id not in graph.undefined]
    if models:
        definition(graph, rng.choice(models))
    graph.project.cache.save()


@pytest.mark.parametrize("at_rest", [file_facts.AT_REST, 0], ids=["read", "unread"])
def test_a_cache_never_changes_an_answer(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_rest: int):
    monkeypatch.setattr(file_facts, "AT_REST", at_rest)
    rng = random.Random(SEED)
    warm, right, outlines, manifests = tmp_path / "warm" / "target", 0, [], []
    for made, where in ((outlines, "restored"), (manifests, "earlier_artifacts")):
        real = getattr(compilation, where)
        monkeypatch.setattr(compilation, where, lambda *given, real=real, made=made: made.append(real(*given)) or made[-1])
    before = texts(root)
    for number in range(EDITS):
        for _ in range(rng.choice((0, 1, 1, 1, 2))):
            edit(root, rng)
        env = {"PLACE": rng.choice(("here", "there"))} if rng.random() < 0.5 else {}
        options = {"vars": {"column": rng.choice(("a", "b"))} if rng.random() < 0.2 else {}, "is_kept": rng.random() < 0.3}
        if rng.random() < 0.3:
            look_at_one(root, warm, env, rng, **options)
        cold = tmp_path / "cold" / "target"
        expected = said(root, cold, env, **options)
        assert said(root, warm, env, **options) == expected, f"MVBUILD_CACHE_SEED={SEED}, edit {number}"
        if expected.startswith("{"):
            right, before = right + 1, texts(root)
        elif rng.random() < 0.5:
            undo(root, before)
        shutil.rmtree(cold.parent, ignore_errors=True)
    assert right > EDITS // 10
    for made in (outlines, manifests):
        assert EDITS // 20 < sum(one is not None for one in made) < len(made)
    assert any(earlier.stale for earlier in manifests if earlier)


@pytest.mark.parametrize("name", [FILE, "manifest.json"])
@pytest.mark.parametrize("damage", ["empty", "half", "garbage", "foreign", "one byte"])
def test_a_broken_cache_is_no_cache(root: Path, tmp_path: Path, name: str, damage: str):
    target = tmp_path / "target"
    expected = said(root, target, {})
    cache = target / name
    content = cache.read_bytes()
    assert len(content) > 100
    broken = {
        "empty": b"",
        "half": content[: len(content) // 2],
        "garbage": b"\xff\xfe" * 500,
        "foreign": b"0" * 32 + content[32:],
        "one byte": content[:-40] + b"#" + content[-39:],
    }
    cache.write_bytes(broken[damage])
    assert said(root, target, {}) == expected


def test_a_folder_in_the_place_of_a_cache_does_no_harm(root: Path, tmp_path: Path):
    (tmp_path / "target" / FILE).mkdir(parents=True)
    assert said(root, tmp_path / "target", {}) == said(root, tmp_path / "cold" / "target", {})


def test_what_a_catalog_told_is_not_taken_for_what_was_compiled(root: Path, tmp_path: Path):
    (root / "models" / "second.sql").write_text("SELECT id FROM raw.Clients\n")
    (root / "schemas.lock").unlink()
    target = tmp_path / "target"
    graph = compilation.compile(root, env={}, target_path=target)
    (table,) = [node for node in graph.nodes.values() if node.identifier.name == "Clients"]
    other = replace(table, identifier=table.identifier._replace(name="CLIENTS"))
    compilation.write_artifacts(replace(graph, nodes={**graph.nodes, table.id: other}))
    assert "raw.CLIENTS" in (target / "manifest.json").read_text()
    assert said(root, target, {}) == said(root, tmp_path / "cold" / "target", {})


def test_runs_at_the_same_time_do_not_take_the_files_of_one_another_for_theirs(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """One writes its manifest, another all of its own, and then the first goes on."""
    target = tmp_path / "target"
    before = (root / "models" / "second.sql").read_text()
    slow = compilation.compile(root, env={}, target_path=target)
    _ = [definition(slow, node) for node in slow.models]
    real = compilation.write_text

    def overtaken(path: Path, pieces: Any) -> object:
        written = real(path, pieces)
        monkeypatch.undo()
        (root / "models" / "second.sql").write_text(f"{before} -- changed\n")
        said(root, target, {})
        return written

    monkeypatch.setattr(compilation, "write_text", overtaken)
    compilation.write_artifacts(slow)
    (root / "models" / "second.sql").write_text(before)
    assert said(root, target, {}) == said(root, tmp_path / "cold" / "target", {})


def test_what_is_edited_while_it_is_compiled_counts_the_next_time(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    target = tmp_path / "target"
    real = compilation.outline_of

    def edited_before(*given: Any) -> object:
        (root / "models" / "second.sql").write_text("SELECT 'a much longer text' AS other, 2 AS two\n")
        return real(*given)

    monkeypatch.setattr(compilation, "outline_of", edited_before)
    said(root, target, {})
    monkeypatch.undo()
    assert said(root, target, {}) == said(root, tmp_path / "cold" / "target", {})
    assert "a much longer text" in (target / "manifest.json").read_text()


def test_a_compiled_file_that_somebody_edited_is_written_again(root: Path, tmp_path: Path):
    expected = said(root, tmp_path / "target", {})
    file = tmp_path / "target" / "compiled" / "shop" / "models" / "second.sql"
    file.write_text("SELECT 0\n")
    assert said(root, tmp_path / "target", {}) == expected


def test_only_what_can_have_changed_is_checked_again(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    target, asked = tmp_path / "target", []
    real = bind_module.bind
    monkeypatch.setattr(bind_module, "bind", lambda graph, schemas, only, **rest: asked.append(only) or real(graph, schemas, only, **rest))
    said(root, target, {})
    said(root, target, {})
    second = (root / "models" / "second.sql").read_text()
    (root / "models" / "second.sql").write_text(f"{second}-- again\n")
    said(root, target, {})
    said(root, target, {})
    (root / "models" / "second.sql").write_text(second)
    said(root, target, {})
    with (root / "schemas.lock").open("a") as lock:
        lock.write("# by hand\n")
    said(root, target, {})
    assert asked == [None, {"model.shop.second"}, {"model.shop.second"}, None]


def test_a_change_is_checked_with_all_that_reads_it(root: Path, tmp_path: Path):
    for path in (*(root / "models").rglob("*.yml"), root / "models/reader.sql"):
        path.unlink()
    (root / "models" / "first.sql").write_text("SELECT id, price FROM raw.orders\n")
    (root / "models" / "second.sql").write_text("SELECT id, price FROM {{ ref('first') }}\n")
    target = tmp_path / "target"

    def check() -> list[str]:
        graph = compilation.compile(root, env={}, target_path=target)
        target.mkdir(exist_ok=True)
        try:
            check_columns(graph)
        except ProjectError as exc:
            return [str(d.span) for d in exc.diagnostics]
        finally:
            graph.project.cache.save()
        return []

    assert check() == []
    assert check() == []
    (root / "models" / "first.sql").write_text("SELECT id FROM raw.orders\n")
    assert check() == check() == ["models/second.sql:1:12"]
    (root / "models" / "first.sql").write_text("SELECT id, price FROM raw.orders\n")
    assert check() == []


def test_what_is_known_is_not_parsed_again(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    said(root, tmp_path / "target", {})
    parsed = []
    real = files.parse_file
    monkeypatch.setattr(files, "parse_file", lambda file, *rest: parsed.append(file.path) or real(file, *rest))
    said(root, tmp_path / "target", {})
    assert parsed == []
    (root / "models" / "second.sql").write_text("SELECT 2 AS two\n")
    said(root, tmp_path / "target", {})
    assert parsed == ["models/second.sql"]


def test_workers_give_what_one_process_gives(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (root / "models" / "second.sql").write_text("SELECT 2 AS two\n")
    alone = said(root, tmp_path / "alone" / "target", {})
    for module in (files, documents, compiled):
        monkeypatch.setattr(module, "FEWEST", 1)
    monkeypatch.setattr(workers, "_processors", lambda: 2)
    done: dict[str, list[object]] = {}
    real = workers.Workers.shared

    def shared(self: workers.Workers, work: Any, given: Any, items: Any) -> Iterator[tuple[int, Any]]:
        for at, found in real(self, work, given, items):
            done.setdefault(work.__name__, []).append(found)
            yield at, found

    monkeypatch.setattr(workers.Workers, "shared", shared)
    assert said(root, tmp_path / "beside" / "target", {}) == alone
    assert list(done) == ["said_in", "kept_of", "write_models"]
    assert all(any(found is not None for found in of_work) for of_work in done.values())
    for table in ("files", "fingerprints"):
        alike = [rows(tmp_path / which / "target" / FILE, table) for which in ("alone", "beside")]
        assert alike[0] == alike[1] != set()


@pytest.mark.parametrize("fault", ["start", "crash"])
def test_what_a_worker_leaves_this_process_does(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str):
    alone = said(root, tmp_path / "alone" / "target", {})
    for module in (files, documents, compiled):
        monkeypatch.setattr(module, "FEWEST", 1)
    monkeypatch.setattr(workers, "_processors", lambda: 2)
    if fault == "crash":
        monkeypatch.setattr(workers, "_START", "raise SystemExit(3)")
    else:
        monkeypatch.setattr(workers.sys, "executable", str(tmp_path / "nothing"))
    assert said(root, tmp_path / "beside" / "target", {}) == alone


def test_the_streamed_manifest_is_the_manifest(root: Path, tmp_path: Path):
    graph = compilation.compile(root, env={}, target_path=tmp_path / "target")
    options = {"version": "1", "generated_at": "", "invocation_id": ""}
    streamed = json.loads("".join(manifest_text(graph, **options)))
    assert json.dumps(streamed) == json.dumps(manifest(graph, **options), default=str)
    assert [id for id, _ in entries(graph, {"model.shop.first"})] == ["model.shop.first"]


def test_an_edit_of_sql_does_not_read_the_yaml_of_other_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The manifest says of each test what it reads, and tests are declared in YAML."""
    described: list[str] = []
    real = graph_cache.describe
    (tmp_path / "models").mkdir()
    (tmp_path / "mvbuild.yml").write_text("name: shop\n")
    for name in ("first", "second", "third"):
        (tmp_path / f"models/{name}.sql").write_text("SELECT 1 AS one\n")
        tests = f"models: [{{name: {name}, columns: [{{name: one, data_tests: [unique, not_null]}}]}}]\n"
        (tmp_path / f"models/{name}.yml").write_text(tests)
    compilation.write_artifacts(compilation.compile(tmp_path, env={}))
    monkeypatch.setattr(graph_cache, "describe", lambda opened, paths, *rest: described.extend(paths) or real(opened, paths, *rest))
    (tmp_path / "models/second.sql").write_text("SELECT 2 AS one\n")
    compilation.write_artifacts(compilation.compile(tmp_path, env={}))
    assert described == ["models/second.yml"]
