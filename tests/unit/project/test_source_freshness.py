"""`freshness:` of sources in YAML, and their age by the snapshots of a catalog."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from mvbuild.adapters.memory import MemoryCatalog
from mvbuild.api import source_freshness as module
from mvbuild.api.compilation import compile
from mvbuild.project.loaded import LoadedProject
from mvbuild.project.source_freshness import SourceFreshness
from unit.cli.bad_input import call
from unit.project.project_on_disk import errors, load, places
from unit.worlds import base_table, write_project

SOURCES = """sources:
  - name: raw
    freshness: {warn_after: {count: 12, period: hour}, error_after: {count: 2, period: day}}
    tables:
      - name: orders
      - {name: slow, freshness: {warn_after: {count: 3, period: day}, error_after: null}}
      - {name: fixed, freshness: null}
      - {name: configured, config: {freshness: {warn_after: {count: 30, period: minute}}}}
"""
HOUR = timedelta(hours=1)


def limits(project: LoadedProject) -> dict[str, SourceFreshness | None]:
    return {source.name: source.freshness for source in project.sources}


def test_nearer_limits_replace_farther_ones(tmp_path: Path) -> None:
    expected = {
        "orders": SourceFreshness(12 * HOUR, 48 * HOUR),
        "slow": SourceFreshness(72 * HOUR, None),
        "fixed": None,
        "configured": SourceFreshness(HOUR / 2, 48 * HOUR),
    }
    assert limits(load(tmp_path, {"models/s.yml": SOURCES})) == expected
    assert limits(load(tmp_path, {"models/s.yml": SOURCES})) == expected  # from the cache


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{warn_after: {count: 1, period: week}}", "wrong-type"),
        ("{warn_after: {count: 0, period: day}}", "wrong-type"),
        ("{warn_after: {period: day}}", "missing-key"),
        ("{filter: a > 1}", "unknown-key"),
        ("{warn_afer: {count: 1, period: day}}", "unknown-key"),
    ],
)
def test_wrong_limits(tmp_path: Path, text: str, code: str) -> None:
    found = errors(tmp_path, {"models/s.yml": f"sources: [{{name: raw, freshness: {text}, tables: [{{name: a}}]}}]\n"})
    assert [found_code for found_code, _ in places(found)] == [code]


@pytest.mark.parametrize(("hours", "status", "code"), [(1, "pass", 0), (13, "warn", 0), (49, "error", 1)])
def test_ages_by_snapshots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], hours: int, status: str, code: int
) -> None:
    write_project(tmp_path, {"mvbuild.yml": "name: shop\n", "models/s.yml": SOURCES.split("      - {name: slow")[0]})
    catalog = MemoryCatalog("lake")
    state = base_table(catalog, "raw.orders")
    loaded = state.snapshots[state.current_snapshot_id or 0].timestamp_ms
    monkeypatch.setattr(module, "catalog_of", lambda _: catalog)
    monkeypatch.setattr(module.SystemClock, "now_ms", lambda _: loaded + hours * 3_600_000)
    outcome = call("source freshness", tmp_path, {}, monkeypatch, capsys)
    assert (outcome.exit, outcome.stdout.split()[:2]) == (code, [status, "raw.orders"])
    (result,) = json.loads((tmp_path / "target/sources.json").read_text())["results"]
    assert result["unique_id"] == "source.shop.raw.orders"
    assert (result["status"], result["max_loaded_at_time_ago_in_s"]) == (status, hours * 3600)
    assert result["criteria"]["error_after"] == {"count": 2, "period": "day"}


def test_a_source_without_a_snapshot_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_project(tmp_path, {"mvbuild.yml": "name: shop\n", "models/s.yml": SOURCES})
    outcome = call("source freshness", tmp_path, {}, monkeypatch, capsys)
    assert outcome.exit == 1
    assert [line.split("  ")[0] for line in outcome.stdout.splitlines()] == ["runtime error"] * 3
    assert call("source freshness --select source:raw.fixed", tmp_path, {}, monkeypatch, capsys).exit == 0
    entry = next(node for node in compile(tmp_path, env={}).project.sources if node.name == "orders")
    assert entry.freshness is not None
