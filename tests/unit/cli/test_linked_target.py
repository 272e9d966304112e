"""A target directory that is a symbolic link."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mvbuild.cli.main import group
from unit.worlds import write_project


def call(root: Path, command: str) -> Result:
    return CliRunner().invoke(group, [command, "--project-dir", str(root)], standalone_mode=False)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project whose target is a link to a directory that does not exist."""
    write_project(tmp_path / "p", {"mvbuild.yml": "name: shop\n", "models/m.sql": "SELECT 1 AS one\n"})
    (tmp_path / "p" / "target").symlink_to(tmp_path / "elsewhere")
    return tmp_path / "p"


def test_compile_says_that_the_link_leads_nowhere(root: Path) -> None:
    done = call(root, "compile")
    assert done.return_value == 2
    assert f"Cannot write to {root / 'target'}: it is a link to {root.parent / 'elsewhere'}, which does not exist\n" in done.stderr
    assert "help: Create that directory, or remove the link with `mvbuild clean`." in done.stderr


def test_clean_deletes_a_link_that_leads_nowhere(root: Path) -> None:
    done = call(root, "clean")
    assert done.return_value == 0
    assert done.stderr == f"Deleted {root / 'target'}: it was a link to {root.parent / 'elsewhere'}, which does not exist.\n"
    assert not (root / "target").is_symlink()
    assert call(root, "compile").return_value == 0


def test_clean_keeps_a_link_to_a_directory(root: Path) -> None:
    (root.parent / "elsewhere").mkdir()
    assert call(root, "compile").return_value == 0
    assert call(root, "clean").stderr == f"Emptied {root.parent / 'elsewhere'}.\n"
    assert list((root / "target").iterdir()) == []
    assert call(root, "compile").return_value == 0
