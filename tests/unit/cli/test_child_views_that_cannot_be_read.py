"""A view of the catalog that cannot be expanded blocks what reads it, at the place that names it, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from click import unstyle
from click.testing import CliRunner, Result

from mvbuild.api import sessions
from mvbuild.cli.main import group
from mvbuild.plan.model import Step
from mvbuild.ports.commits import ViewCommit
from unit.worlds import SCHEMA, Shop, name, shop

PROJECT = {
    "mvbuild.yml": "name: shop\n",
    "models/other.sql": "SELECT id FROM raw.orders\n",
    "models/reader.sql": "SELECT c.id FROM raw.customers c\nJOIN raw.v USING (id)\n",
    "models/top.sql": "SELECT id FROM {{ ref('reader') }}\n",
    "models/beside.sql": "SELECT id FROM {{ ref('other') }}\n",
    "models/late.sql": "{{ config(materialized='ephemeral') }}\nSELECT id FROM raw.v\n",
    "models/over_late.sql": "SELECT id FROM {{ ref('late') }}\n",
}
GOOD = {"other", "beside"}
BAD = {
    "only Trino": {"raw.v": {"trino": "SELECT id FROM orders"}},
    "IDENTIFIER": {"raw.v": {"spark": "SELECT id FROM IDENTIFIER('raw.orders')"}},
    "no SQL": {"raw.v": {"spark": "SELEC id"}},
    "below another view": {"raw.v": {"spark": "SELECT id FROM raw.w"}, "raw.w": {"trino": "SELECT 1 AS id"}},
    "itself": {"raw.v": {"spark": "SELECT id FROM raw.v"}},
    "a circle": {"raw.v": {"spark": "SELECT id FROM raw.w"}, "raw.w": {"spark": "SELECT id FROM raw.v"}},
    "a circle through a model": {"raw.v": {"spark": "SELECT id FROM main.reader"}},
    "a version of a view": {"raw.v": {"spark": "SELECT id FROM raw.w VERSION AS OF 1"}, "raw.w": {"spark": "SELECT 1 AS id"}},
}


def view(of: Shop, text: str, representations: dict[str, str]) -> None:
    of.catalog.commit(
        [
            ViewCommit(
                identifier=name(text),
                expect_metadata_location=None,
                version_id=1,
                schema=SCHEMA,
                representations=representations,
                default_namespace=("raw",),
                properties={},
            )
        ]
    )


def call(of: Shop, *arguments: str) -> Result:
    return CliRunner().invoke(group, [*arguments, "--project-dir", str(of.root)], standalone_mode=False)


@pytest.fixture(params=BAD)
def of(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    made = shop(tmp_path, PROJECT)
    for text, representations in BAD[request.param].items():
        view(made, text, representations)
    monkeypatch.setattr(sessions, "open_catalog", lambda *_, **__: made.catalog)
    return made


def steps(of: Shop, *select: str) -> dict[str, Step]:
    return {s.node.rpartition(".")[2]: s for s in of.plan(*select).steps}


def test_a_run_builds_everything_that_does_not_read_it(of: Shop) -> None:
    assert of.statuses("other") == {"other": "success"}
    found = of.statuses()
    assert {model for model, status in found.items() if status in ("success", "reused")} == GOOD
    assert of.statuses("other") == {"other": "reused"}


def test_the_plan_names_the_place_in_the_model(of: Shop) -> None:
    found = steps(of)
    blocked = {model: step.diagnostic for model, step in found.items() if step.action == "blocked"}
    assert set(blocked) == {"reader", "top", "over_late"}
    assert {str(d.span) for d in blocked.values() if d} == {"models/reader.sql:2:6", "models/top.sql:1:16", "models/late.sql:2:16"}
    assert "raw.v" in blocked["reader"].message  # type: ignore[union-attr]


def test_the_commands_that_read_go_on(of: Shop) -> None:
    of.run("other")
    done = call(of, "status")
    lines = {line.split()[0]: line.split()[1] for line in map(unstyle, done.stdout.splitlines()) if line.startswith("lake.")}
    assert lines["lake.main.other"] == "fresh"
    assert lines["lake.main.beside"] == "stale"
    # 1 is the exit code of a plan in which something is blocked.
    commands = {"plan": 1, "history other": 0, "explain other": 0, "lineage other": 0, "lint --catalog": 0, "explain reader": 1}
    assert "raw.v cannot be read" in call(of, "explain", "reader").stdout.replace("raw.w", "raw.v")
    assert {command: call(of, *command.split()).return_value for command in commands} == commands


def test_a_version_of_a_catalog_view_blocks_the_model_that_asks_for_it(tmp_path: Path) -> None:
    made = shop(tmp_path, {**PROJECT, "models/reader.sql": "SELECT id FROM raw.v VERSION AS OF 1\n"})
    view(made, "raw.v", {"spark": "SELECT id FROM raw.orders"})
    diagnostic = steps(made)["reader"].diagnostic
    assert diagnostic is not None
    assert (diagnostic.code, str(diagnostic.span)) == ("bad-time-travel", "models/reader.sql:1:16")
    assert {m for m, status in made.statuses().items() if status == "success"} == {*GOOD, "over_late"}
