"""a session, and no project: which catalog is read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import mvbuild
from mvbuild.api.frames import _graph
from mvbuild.diagnostics import ProjectError
from mvbuild.graph.model import Graph
from unit.spark_adapter.settings import conf_with

LAKE = {"spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog", "spark.sql.catalog.lake.type": "hadoop"}
POND = {key.replace("lake", "pond"): value for key, value in LAKE.items()}


def session(conf: Mapping[str, str], current: str = "spark_catalog.default") -> Any:
    catalog, _, namespace = current.partition(".")
    of_catalog = SimpleNamespace(currentCatalog=lambda: catalog, currentDatabase=lambda: namespace)
    return SimpleNamespace(conf=conf_with(conf), catalog=of_catalog)


@pytest.fixture(autouse=True)
def _nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MVBUILD_PROJECT_DIR", raising=False)


def chosen(
    conf: Mapping[str, str], *names: str, current: str = "spark_catalog.default", catalog: Any = None
) -> tuple[str, tuple[str, ...]]:
    graph: Graph = _graph(session(conf, current), None, catalog, names)
    return graph.project.target.catalog_name, graph.project.target.namespace


def test_the_catalog_is_that_of_the_name_else_the_current_one_else_the_only_one() -> None:
    both = {**LAKE, **POND}
    assert chosen(both, "pond.mart.daily", current="lake.mart") == ("pond", ("default",))
    assert chosen(both, "`Pond`.mart.daily") == ("pond", ("default",))
    assert chosen(both, "mart.daily", current="lake.a.b") == ("lake", ("a", "b"))
    assert chosen(LAKE, "mart.daily") == ("lake", ("default",))
    assert chosen(both, "mart.daily", catalog="pond") == ("pond", ("default",))
    assert chosen({}, "mart.daily", catalog={"name": "sea", "type": "rest", "uri": "http://sea"}) == ("sea", ("default",))


@pytest.mark.parametrize(
    ("conf", "names", "catalog", "told"),
    [
        ({}, ("mart.daily",), None, "no Iceberg catalog that mvbuild can read"),
        ({**LAKE, **POND}, ("mart.daily",), None, "several catalogs: lake, pond"),
        ({**LAKE, **POND}, ("lake.a.b", "pond.a.b"), None, "reads several catalogs: lake, pond"),
        (LAKE, ("mart.daily",), {"type": "rest"}, "has no name"),
    ],
)
def test_what_is_not_certain_is_refused(conf: Mapping[str, str], names: tuple[str, ...], catalog: Any, told: str) -> None:
    with pytest.raises(ProjectError, match=told) as caught:
        chosen(conf, *names, catalog=catalog)
    assert [d.code for d in caught.value.diagnostics] == ["no-catalog"]


def test_a_project_that_is_there_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mvbuild.yml").write_text("name: shop\n", encoding="utf-8")
    assert _graph(session(LAKE), None, None, ("a",)).project.name == "shop"
    assert _graph(session(LAKE), None, "lake", ("a",)).project.target.catalog_name == "lake"
    monkeypatch.setenv("MVBUILD_PROJECT_DIR", str(tmp_path / "nowhere"))
    with pytest.raises(ProjectError, match="not-a-project"):
        mvbuild.read(session(LAKE), "a")
    with pytest.raises(ValueError, match="not both"):
        mvbuild.read(session(LAKE), "a", project=tmp_path, catalog="lake")
