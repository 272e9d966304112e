"""What `clean` deletes, and a target directory that is a symbolic link."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mvbuild.cli.main import group
from unit.worlds import write_project


def call(root: Path, command: str, *more: str) -> Result:
    return CliRunner().invoke(group, [command, "--project-dir", str(root), *more], standalone_mode=False)


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


def test_clean_deletes_a_link_to_itself(root: Path) -> None:
    (root / "target").unlink()
    (root / "target").symlink_to("target")
    assert call(root, "clean").return_value == 0
    assert not (root / "target").is_symlink()


@pytest.fixture
def compiled(tmp_path: Path) -> Path:
    write_project(tmp_path / "p", {"mvbuild.yml": "name: shop\n", "models/m.sql": "SELECT 1 AS one\n"})
    assert call(tmp_path / "p", "compile").return_value == 0
    return tmp_path / "p"


def test_clean_deletes_what_mvbuild_wrote(compiled: Path) -> None:
    (compiled / "target" / ".manifest.json.4711").write_text("half of")
    assert call(compiled, "clean").stderr == f"Deleted {compiled / 'target'}.\n"
    assert not (compiled / "target").exists()
    done = call(compiled, "clean")
    assert (done.return_value, done.stderr) == (0, "")


def test_clean_keeps_files_of_others(compiled: Path) -> None:
    target = compiled / "target"
    (target / "notes.txt").write_text("mine")
    done = call(compiled, "clean")
    assert done.stderr == f"Deleted what mvbuild wrote in {target}. Kept the rest: notes.txt.\n"
    assert [found.name for found in target.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("place", ["../reports", "sql", "lake", "."])
def test_clean_deletes_no_directory_that_is_not_mvbuilds(compiled: Path, place: str) -> None:
    """A folder outside, one with models, one with a warehouse, and the project."""
    (compiled / place).mkdir(exist_ok=True)
    (compiled / place / "x.db").write_text("rows")
    before = sorted(compiled.parent.rglob("*"))
    done = call(compiled, "clean", "--target-path", place)
    assert done.return_value == 2
    assert "nothing was deleted" in done.stderr
    assert sorted(compiled.parent.rglob("*")) == before


def test_clean_of_a_file(compiled: Path) -> None:
    (compiled / "file").write_text("mine")
    done = call(compiled, "clean", "--target-path", "file")
    assert done.return_value == 2
    assert "is not a directory; nothing was deleted" in done.stderr


def test_clean_says_what_it_cannot_delete(compiled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path, *_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "unlink", refused)
    done = call(compiled, "clean")
    assert done.return_value == 2
    assert "error[unwritable-target]: Cannot delete" in done.stderr
    assert "Permission denied" in done.stderr
