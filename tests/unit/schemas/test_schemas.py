"""The schemas accept what mvbuild accepts, and refuse what it refuses because of its structure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft7Validator

from mvbuild.lint.rules import RULES
from mvbuild.project.setting import Setting
from mvbuild.project.setting_values import OneOf
from mvbuild.project.settings import MODEL_SETTINGS, SEED_SETTINGS, check_layer, check_seed_layer
from mvbuild.schemas.files import SCHEMAS, file_name, page, schema
from mvbuild.source import SourceFile, Span
from unit.cli.bad_input import call
from unit.schemas.yaml_texts import complaints, refusals, written

ROOT = Path(__file__).parents[3]
OF_USERS = [*sorted((ROOT / "sample_project").rglob("*.yml")), *sorted((ROOT / "templates/mvbuild_templates/init").rglob("*.yml"))]


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_copies_in_docs_are_current(name: str) -> None:
    """`mvbuild schema --output docs/schemas` writes them."""
    assert (ROOT / "docs/schemas" / file_name(name)).read_text(encoding="utf-8") == page(name)


def test_they_are_json_schemas() -> None:
    Draft7Validator.check_schema(schema("properties"))


def test_every_part_is_described() -> None:
    for name in ("mvbuild", "properties"):
        for definition in (schema(name), *schema(name)["definitions"].values()):
            for key, inner in definition.get("properties", {}).items():
                assert inner.get("description") or "$ref" in inner, (name, key)
    assert "](" not in page("mvbuild") + page("properties")


@pytest.mark.parametrize("file", OF_USERS, ids=lambda file: str(file.relative_to(ROOT)))
def test_the_sample_and_what_init_writes_fit(file: Path) -> None:
    name = "mvbuild" if file.stem == "mvbuild" else "properties"
    assert complaints(name, file.read_text(encoding="utf-8").replace("__PROJECT_NAME__", "shop")) == []


def test_the_examples_of_lint_rules_fit() -> None:
    files = [(path, text) for rule in RULES for group in (rule.wrong, rule.right) for path, text in group.items() if path.endswith(".yml")]
    assert len(files) >= 10
    for path, text in files:
        name = "mvbuild" if path == "mvbuild.yml" else "properties"
        text = f"name: shop\n{text}" if name == "mvbuild" and "name:" not in text else text
        assert complaints(name, text) == [], (path, text)


BEYOND = {
    "'keep_warm' must be": "the grammar of a text",
    "'keep_warm' is for a local Spark": "two keys against each other",
    "already the default": "two selectors against each other",
    "Unknown selector method 'tagg'": "the grammar of a text",
    "Only one 'exclude'": "how many parts of a list are of a form",
    "'to' must name a table": "the grammar of a text",
    "Unknown test": "what macro files define",
    "Unknown argument": "what macro files define",
    "The test 'above' needs": "what macro files define",
    "has no argument 'column_name'": "what macro files define",
    "comparison with a number": "the grammar of a text",
    "There is no folder": "what there is on the disk",
}
"""Parts of messages about what a schema cannot see."""


def test_yaml_of_all_tests_is_refused_by_the_schema_where_mvbuild_refuses_its_shape(tmp_path: Path) -> None:
    texts = sorted(written())
    refused = 0
    for i, (name, text) in enumerate(texts):
        said, found = refusals(name, text, tmp_path / str(i)), complaints(name, text)
        if said and all(any(part in s for part in BEYOND) for s in said):
            continue
        if name == "mvbuild" and not said and found and "marts" in text:
            continue  # a folder that is not there
        assert bool(said) == bool(found), (name, text, said, found)
        refused += bool(said)
    assert (len(texts) > 90, refused > 40) == (True, True), (len(texts), refused)


# fmt: off
VALUES = [
    None, True, False, 0, 1, 7, -1, 1.5, -0.5, "", " ", "a", "a.b", "a..b", ".a", "true", "all", "0", "3", "-3", "1e-9", "1e-", "x y", ",", ";;", "\n",
    "enforced", "view", "materialized_view", "table", "auto", "full", "query", "serve", "definition", "storage", "30m", "1h30m", "2 days", "downstream",
    "1.5h", "1 fortnight", "m30", "30", "month(d)", "MONTHS(d)", "bucket(16, id)", "bucket(id)", "bucket(0, id)", "month(3, d)", "weeks(d)",
    "a, b", "a,, b", "`a b`", "a.`b c`", "1a", "größe", "a desc", "a desc nulls last", "a down", "a desc nulls",
    [], [1], [""], ["a"], ["a", "b.c"], ["month(d)", "a"], ["a desc"], [["a"]], [None], {}, {"a": 1}, {"a": "b"}, {"a": None}, {"a": [1]}, {"a": {"b": 1}},
    {"max_staleness": "30m"}, {"max_staleness": None}, {"max_staleness": 30}, {"max_stale": "30m"}, {"format": "metadata-file"}, {"format": "x"},
    {"format": None}, {"formats": "metadata-file"}, {"enforced": True}, {"enforced": "yes"}, {"enforce": True}, {"compact": False}, {"compact": None},
    {"compact": "no"}, {"expire_after": "5d"}, {"expire_after": None}, {"orphans_after": "3 days"}, {"orphan_after": "3d"},
]
# fmt: on


@pytest.mark.parametrize("kind", ["model", "seed"])
def test_settings_have_the_values_that_mvbuild_takes(kind: str) -> None:
    settings, check = (MODEL_SETTINGS, check_layer) if kind == "model" else (SEED_SETTINGS, check_seed_layer)
    place = Span(SourceFile("models.yml", ""), 0, 0)
    definitions = schema("properties")["definitions"]
    for name in settings.keys() - {"lint"}:  # its rules are known to lint only
        known = Draft7Validator({"definitions": definitions, "$ref": f"#/definitions/setting-{name}"})
        for value in VALUES:
            inner = {key: Setting(v, place) for key, v in value.items()} if isinstance(value, dict) else {}
            refused = bool(check({name: Setting(value, place, inner=inner)}))
            assert known.is_valid(value) != refused, (name, value)
    block = Draft7Validator({"definitions": definitions, "$ref": f"#/definitions/{kind}-config"})
    assert block.is_valid({"+schema": "a", "tags": "b"})
    assert not block.is_valid({"materialised": "view"})
    assert not block.is_valid({"schema": "a", "namespace": "b"})
    assert not block.is_valid({"+tags": 3})


def test_words_are_those_of_the_code() -> None:
    words = schema("properties")["definitions"]["setting-materialized"]["anyOf"][0]["enum"]
    assert isinstance(reader := MODEL_SETTINGS["materialized"].read, OneOf)
    assert tuple(words) == reader.words


def test_folders_may_stand_between_settings() -> None:
    assert (
        complaints("mvbuild", "name: s\nmodels: {s: {+tags: [a], marts: {+materialized: view, tags: {+enabled: true}, deep: {}}}}\n") == []
    )
    assert complaints("mvbuild", "name: s\nmodels: {s: {marts: {+materialised: view}}}\n") != []
    assert complaints("mvbuild", "name: s\nmodels: {s: {marts: {+materialized: views}}}\n") != []
    assert complaints("mvbuild", "name: s\nmodels: {s: {marts: 3}}\n") != []
    assert complaints("mvbuild", "name: s\nlint: {select-star: off, missing-tests: {level: loud}}\n") != []
    assert complaints("mvbuild", "name: s\nlint: {select-stars: error}\n") != []


def test_the_command_prints_and_writes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "taken").write_text("")
    assert call("schema mvbuild", tmp_path, {}, monkeypatch, capsys).stdout == page("mvbuild")
    assert json.loads(call("schema", tmp_path, {}, monkeypatch, capsys).stdout).keys() == SCHEMAS.keys()
    assert call("schema --output made/here", tmp_path, {}, monkeypatch, capsys).exit == 0
    assert {p.name for p in (tmp_path / "made/here").iterdir()} == {file_name(name) for name in SCHEMAS}
    failed = call("schema --output taken", tmp_path, {}, monkeypatch, capsys)
    assert (failed.exit, "unwritable-target" in failed.stderr) == (2, True)
    assert call("schema mvbuild --output x", tmp_path, {}, monkeypatch, capsys).exit == 2
