"""project -> the target lag of each MV, with `downstream` resolved."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from mvbuild.graph.model import Graph
from mvbuild.graph.target_lags import target_lags
from unit.worlds import compiled


def lags(root: Path, *models: str, folder: str = "") -> dict[str, str | None]:
    graph = graph_of(root, *models, folder=folder)
    assert not graph.problems
    return {id.rpartition(".")[2]: _minutes(lag) for id, lag in target_lags(graph).items()}


def graph_of(root: Path, *models: str, folder: str = "") -> Graph:
    """`child<parent,parent 15m`: a model, what it reads, its lag."""
    files = {"mvbuild.yml": f"name: shop\n{folder}"}
    for model in models:
        head, _, lag = model.partition(" ")
        name, _, parents = head.partition("<")
        config = f"{{{{ config(target_lag='{lag}') }}}}\n" if lag else ""
        reads = [f"{{{{ ref('{parent}') }}}}" for parent in parents.split(",") if parent] or ["raw.orders"]
        files[f"models/{name}.sql"] = f"{config}SELECT id FROM {' JOIN '.join(reads)}\n"
    return compiled(root, files)


def _minutes(lag: timedelta | None) -> str | None:
    return None if lag is None else f"{lag // timedelta(minutes=1)}m"


def test_downstream_has_the_shortest_lag_of_its_readers_at_any_depth(tmp_path: Path) -> None:
    found = lags(tmp_path, "a downstream", "b<a downstream", "c<b 1h", "d<b 15m", "e<a 30m")
    assert found == {"a": "15m", "b": "15m", "c": "60m", "d": "15m", "e": "30m"}


def test_a_reader_without_a_target_needs_its_downstream_mv_at_once(tmp_path: Path) -> None:
    assert lags(tmp_path, "a downstream", "b<a", "c<a 1h") == {"a": None, "b": None, "c": "60m"}


def test_a_folder_gives_a_lag_and_a_model_overrides_it(tmp_path: Path) -> None:
    found = lags(tmp_path, "a downstream", "b<a", "c<a 5m", folder="models: {shop: {+target_lag: 1h}}\n")
    assert found == {"a": "5m", "b": "60m", "c": "5m"}


@pytest.mark.parametrize("models", [("a 15m", "b<a 15m"), ("a downstream", "b<a 15m"), ("a 15m", "b<a", "c<b 1h"), ("a 1h", "b<a")])
def test_an_mv_may_be_as_far_behind_as_what_it_reads(models: tuple[str, ...], tmp_path: Path) -> None:
    assert lags(tmp_path, *models)


@pytest.mark.parametrize("models", [("a 1h", "b<a 15m"), ("a 1h", "b<a downstream", "c<b 15m"), ("a 1h", "b<a", "c<b 15m")])
def test_an_mv_cannot_be_fresher_than_what_it_reads(models: tuple[str, ...], tmp_path: Path) -> None:
    graph = graph_of(tmp_path, *models)
    assert [d.code for d in graph.problems] == ["bad-target-lag"]
    assert "may be 1h" in graph.problems[0].message
    # It blocks itself and what reads it.
    assert "model.shop.a" not in graph.blocked
    assert models[-1].partition("<")[0] in {id.rpartition(".")[2] for id in graph.blocked}


def test_a_model_that_does_not_compile_may_be_the_reader_of_a_downstream_mv(tmp_path: Path) -> None:
    alone = graph_of(tmp_path / "alone", "a downstream")
    assert "no MV reads it" in alone.problems[0].message
    files = {"mvbuild.yml": "name: shop\n", "models/a.sql": "{{ config(target_lag='downstream') }}\nSELECT 1 AS id\n"}
    graph = compiled(tmp_path / "broken", {**files, "models/b.sql": "SELEC id FROM {{ ref('a') }}\n"})
    assert {id.rpartition(".")[2] for id in graph.undefined} == {"b"}
    assert not any(d.code == "bad-target-lag" for d in graph.problems)
