"""runs -> what a real receiver gets: the events of the specification, with columns, lineage, rows, tests, strategy and reasons."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attr
import pytest
from openlineage.client import facet_v2

from mvbuild.openlineage import send
from mvbuild.openlineage.configured import is_configured
from mvbuild.openlineage.datasets import place_of
from unit.openlineage.receiver import Receiver, receiver
from unit.worlds import PROJECT, Shop, append, shop

TESTS = (
    "models:\n  - name: daily\n    description: One row per order.\n    columns:\n"
    "      - {name: id, description: The order., data_tests: [not_null, {unique: {severity: warn}}]}\n"
    "  - name: orders_clean\n    columns: [{name: id, data_tests: [unique]}]\n"
)
FILES = {**PROJECT, "models/m.yml": TESTS, "seeds/countries.csv": "code\nDE\n"}
SPEC = os.environ.get("MVBUILD_OPENLINEAGE_SPEC")
Events = list[dict[str, Any]]


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with receiver() as found:
        monkeypatch.setenv("OPENLINEAGE_URL", found.url)
        monkeypatch.delenv("OPENLINEAGE_DISABLED", raising=False)
        yield found


def is_over(events: Events) -> bool:
    return any(e["job"]["name"] == "shop.run" and e["eventType"] != "START" for e in events)


def received(place: Receiver, made: Shop, **options: Any) -> Events:
    place.events.clear()
    made.run(lineage=True, **options)
    return place.wait(is_over)


def test_each_node_has_a_start_and_an_end(tmp_path: Path, place: Receiver) -> None:
    made = shop(tmp_path, FILES)
    events = received(place, made, all_tests=True)
    found = [(e["job"]["name"], e["eventType"]) for e in events]
    assert found[0] == ("shop.run", "START")
    assert found[-1] == ("shop.run", "COMPLETE")
    nodes = ["main.countries", "main.daily", "main.daily.test", "main.monthly", "main.orders_clean", "main.orders_clean.test"]
    assert sorted(found[1:-1]) == sorted((f"shop.{name}", kind) for name in nodes for kind in ("START", "COMPLETE"))
    by_run = {e["run"]["runId"]: e["job"]["name"] for e in events}
    assert len(by_run) == len(nodes) + 1
    parent = events[0]["run"]["runId"]
    assert {e["run"]["facets"]["parent"]["run"]["runId"] for e in events[1:-1]} == {parent}


def test_what_an_event_says(tmp_path: Path, place: Receiver) -> None:
    made = shop(tmp_path, FILES)
    events = received(place, made)
    end = next(e for e in events if e["job"]["name"] == "shop.main.daily" and e["eventType"] == "COMPLETE")
    (output,) = end["outputs"]
    storage = made.table("main.daily__storage")
    assert (output["namespace"], output["name"]) == place_of(storage.location)
    facets = output["facets"]
    assert facets["schema"]["fields"] == [{"name": "id", "type": "bigint", "description": "The order."}]
    assert facets["version"]["datasetVersion"] == str(storage.current_snapshot_id)
    assert facets["documentation"]["description"] == "One row per order."
    assert facets["datasetType"]["datasetType"] == "MATERIALIZED_VIEW"
    assert [i["name"] for i in facets["symlinks"]["identifiers"]] == ["main.daily", "main.daily__storage"]
    lineage = facets["columnLineage"]["fields"]["id"]["inputFields"]
    (read,) = end["inputs"]
    assert [(f["namespace"], f["name"], f["field"]) for f in lineage] == [(read["namespace"], read["name"], "id")]
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 1
    mine = end["run"]["facets"]["mvbuild"]
    assert (mine["status"], mine["strategy"], mine["strategyReason"]) == ("success", "full", "forced")
    assert next(reason["code"] for reason in mine["reasons"]) == "never-refreshed"
    assert "SELECT id" in end["job"]["facets"]["sql"]["query"]


def test_tests_are_assertions_about_their_table(tmp_path: Path, place: Receiver) -> None:
    made = shop(tmp_path, FILES)
    made.engine.failures = {"IS NULL": 2, "count(*) > 1": 1}
    events = received(place, made)
    ends = {e["job"]["name"]: e for e in events if e["eventType"] != "START"}
    assert ends["shop.run"]["eventType"] == ends["shop.main.daily"]["eventType"] == "FAIL"
    assert "2 rows violate its rule" in ends["shop.main.daily"]["run"]["facets"]["errorMessage"]["message"]
    tested = ends["shop.main.daily.test"]
    assert tested["eventType"] == "FAIL"
    assertions = tested["inputs"][0]["inputFacets"]["dataQualityAssertions"]["assertions"]
    assert [(a["assertion"], a["column"], a["success"], a["severity"], a["actual"]) for a in assertions] == [
        ("not_null", "id", False, "error", "2"),
        ("unique", "id", False, "warn", "1"),
    ]


def test_what_is_fresh_has_no_event(tmp_path: Path, place: Receiver) -> None:
    made = shop(tmp_path, FILES)
    received(place, made)
    assert {e["job"]["name"] for e in received(place, made)} == {"shop.run"}
    append(made.catalog, "raw.orders")
    again = received(place, made)
    reasons = {
        e["job"]["name"]: [r["code"] for r in e["run"]["facets"]["mvbuild"]["reasons"]] for e in again if "mvbuild" in e["run"]["facets"]
    }
    assert reasons["shop.main.daily"] == ["base-table-changed"]


def test_a_receiver_that_hangs_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with receiver(answers=False) as place:
        monkeypatch.setenv("OPENLINEAGE_URL", place.url)
        # Without an answer until the runs are over, and neither of them waits for one.
        made = shop(tmp_path, FILES)
        assert made.run(lineage=True).ok
        append(made.catalog, "raw.orders")
        assert made.run(lineage=True).ok
        place.wait(lambda events: len(events) >= 1)
        assert not is_over(place.events)
        place.answers.set()
        place.wait(is_over)


@pytest.mark.parametrize("config", ["transport: {type: http, url: 'http://127.0.0.1:9'}", "transport: {type: nonsense}", "transport: ["])
def test_a_receiver_that_is_not_there_fails_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: str) -> None:
    (tmp_path / "openlineage.yml").write_text(config)
    monkeypatch.chdir(tmp_path)
    assert shop(tmp_path / "shop", FILES).run(lineage=True).ok


def test_a_run_that_cannot_go_on_has_failed(tmp_path: Path, place: Receiver) -> None:
    made = shop(tmp_path, FILES)

    def fails(event: object) -> None:
        raise RuntimeError("the caller's own error")

    with pytest.raises(RuntimeError):
        made.run(lineage=True, on_event=fails)
    events = place.wait(is_over)
    assert events[-1]["run"]["facets"]["errorMessage"]["message"] == "the caller's own error"


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, False),
        ({"OPENLINEAGE_URL": "http://x"}, True),
        ({"OPENLINEAGE__TRANSPORT__TYPE": "file"}, True),
        ({"OPENLINEAGE_URL": "http://x", "OPENLINEAGE_DISABLED": "true"}, False),
        ({"OPENLINEAGE_CLIENT_LOGGING": "INFO"}, False),
    ],
)
def test_whether_events_are_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, env: dict[str, str], expected: bool) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert is_configured(env) is expected
    (tmp_path / "openlineage.yml").write_text("transport: {type: console}\n")
    assert is_configured(env) is ("OPENLINEAGE_DISABLED" not in env)


@pytest.mark.parametrize(
    ("location", "place"),
    [
        ("file:///srv/lake/mart/daily", ("file", "/srv/lake/mart/daily")),
        ("/srv/lake/mart/daily", ("file", "/srv/lake/mart/daily")),
        ("s3://bucket/lake/mart/daily/", ("s3://bucket", "lake/mart/daily")),
        ("abfss://lake@shop.dfs.core.windows.net/mart/daily", ("abfss://lake@shop.dfs.core.windows.net", "mart/daily")),
        ("s3a://bucket/daily", ("s3://bucket", "daily")),
        ("hdfs://ann:secret@host:8020/daily", ("hdfs://host:8020", "daily")),
    ],
)
def test_a_dataset_is_the_place_of_its_files(location: str, place: tuple[str, str]) -> None:
    assert place_of(location) == place


def test_events_have_the_form_of_the_client(tmp_path: Path, place: Receiver) -> None:
    """Every facet has the fields of the class that the client generates from the specification, its URL and a producer."""
    made = shop(tmp_path, FILES)
    classes = {name: of for names in (send._RUN, send._JOB, send._DATASET, send._INPUT, send._OUTPUT) for name, of in names.items()}
    seen = set()
    for event in received(place, made, all_tests=True):
        datasets = [*event["inputs"], *event["outputs"]]
        groups = [event["run"], event["job"], *datasets]
        facets = [pair for group in groups for pair in group.get("facets", {}).items()]
        facets += [pair for d in datasets for key in ("inputFacets", "outputFacets") for pair in d.get(key, {}).items()]
        for name, content in facets:
            if name == "tags":  # the client adds its version
                continue
            assert content["_producer"] == send.PRODUCER
            if name == "mvbuild":
                continue
            module, _, of_class = classes[name].partition(".")
            known = getattr(getattr(facet_v2, module), of_class)
            assert content["_schemaURL"] == known._get_schema()
            assert {*content} - {"_producer", "_schemaURL"} <= {field.name for field in attr.fields(known)}
            seen.add(name)
    assert seen == classes.keys() - {"errorMessage"}


@pytest.mark.skipif(not SPEC, reason="set MVBUILD_OPENLINEAGE_SPEC to the folder `spec` of OpenLineage's repository")
def test_events_are_valid_by_the_json_schema(tmp_path: Path, place: Receiver) -> None:
    from jsonschema import Draft202012Validator
    from referencing import Registry, Resource

    files = {
        json.loads(path.read_text())["$id"]: json.loads(path.read_text())
        for path in Path(str(SPEC)).rglob("*.json")
        if "$id" in path.read_text()
    }
    registry = Registry().with_resources((id, Resource.from_contents(content)) for id, content in files.items())
    root = next(content for id, content in files.items() if id.endswith("/OpenLineage.json"))
    of_file = {Path(id).name: content for id, content in files.items()}
    made = shop(tmp_path, FILES)
    made.engine.failures = {"IS NULL": 2}
    for event in received(place, made, all_tests=True):
        Draft202012Validator(root, registry=registry).validate(event)
        groups = [event["run"], event["job"], *event["inputs"], *event["outputs"]]
        for group in groups:
            for key in ("facets", "inputFacets", "outputFacets"):
                for name, content in group.get(key, {}).items():
                    url, _, fragment = content["_schemaURL"].partition("#")
                    if name != "mvbuild":
                        schema = {"$ref": f"{of_file[Path(url).name]['$id']}#{fragment}"}
                        Draft202012Validator(schema, registry=registry).validate(content)
