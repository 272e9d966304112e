"""A copied or moved project does not touch the files of the original."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from mvbuild import api
from mvbuild.diagnostics import ProjectError
from mvbuild.ports.catalog import CatalogError
from unit.worlds import write_project


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A project with a base table in its embedded catalog."""
    root = write_project(tmp_path / "a shop", {"mvbuild.yml": "name: shop\n", "seeds/zones.csv": "id\n1\n"})
    assert api.run(root).ok
    return root


def refusal(root: Path) -> str:
    with pytest.raises((ProjectError, CatalogError)) as found:
        api.run(root)
    return str(found.value)


def test_a_copy(built: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(built, tmp_path / "copy")
    assert f"was created in {built}" in refusal(copy)
    shutil.rmtree(copy / ".mvbuild")
    assert api.run(copy).ok
    assert api.run(built).ok


def test_a_moved_project(built: Path, tmp_path: Path) -> None:
    moved = built.rename(tmp_path / "moved")
    assert "Move the project back, or remove .mvbuild here" in refusal(moved)
    assert api.run(moved.rename(built)).ok


def test_two_projects_that_share_a_catalog_by_a_symbolic_link(built: Path, tmp_path: Path) -> None:
    other = write_project(tmp_path / "other", {"mvbuild.yml": "name: other\n", "seeds/places.csv": "id\n1\n"})
    (other / ".mvbuild").symlink_to(built / ".mvbuild")
    assert api.run(other).ok
    assert api.run(built).ok


def test_a_table_of_somewhere_else(built: Path, tmp_path: Path) -> None:
    """It was registered: its files are not those of a project."""
    home = built / ".mvbuild"
    catalog = SqlCatalog("lake", uri=f"sqlite:///{home}/catalog.db", warehouse=f"file://{home}/warehouse")
    catalog.create_namespace("raw")
    place = f"file://{tmp_path}/elsewhere"
    catalog.create_table("raw.t", Schema(NestedField(1, "id", LongType())), location=place)
    catalog.close()
    assert api.run(built).ok
