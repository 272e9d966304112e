"""Files of the new project -> a directory, all of them or none."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from mvbuild.dbt.assemble import Files
from mvbuild.dbt.confined import writable
from mvbuild.diagnostics import ProjectError, error
from mvbuild.project.files import decode


def write(files: Files, into: Path, *, root: Path, force: bool) -> None:
    """Write the files. Raises ProjectError before anything is written if a file exists or would be outside `into`.

    If writing fails, restores what was there.
    """
    taken = sorted(path for path in files if (into / path).exists() or (into / path).is_symlink())
    if taken and not force:
        shown = ", ".join(taken[:5]) + (f" and {len(taken) - 5} more" if len(taken) > 5 else "")
        help = "Choose another directory with --into, or overwrite them with --force."
        raise ProjectError([error("file-exists", f"{into} already has files with these names: {shown}", help=help)])
    for path in files:
        writable(into, path)
    try:
        into.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{into.name}-", dir=into.parent) as directory:
            staged = Path(directory) / "new"
            staged.mkdir()
            for path, text in files.items():
                file = staged / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content(root / path, text.text))
            if into.exists():
                _move(staged, into, list(files), Path(directory) / "old")
            else:
                staged.rename(into)
    except OSError as exc:
        raise ProjectError([error("unwritable-target", f"Cannot write to {into}: {exc.strerror or exc}")]) from exc


def content(original: Path, text: str) -> bytes:
    """The bytes of a file: those of the original if nothing changed, otherwise with the original's line ends."""
    try:
        old = original.read_bytes()
        if decode(original.name, old).text == text:
            return old
    except (OSError, ProjectError):
        old = b""
    return (text.replace("\n", "\r\n") if old.count(b"\r\n") > old.count(b"\n") // 2 else text).encode()


def _move(staged: Path, into: Path, paths: list[str], kept: Path) -> None:
    """Move files into an existing directory. If one of them fails, what they replaced is restored."""
    done: list[str] = []
    made: list[Path] = []
    try:
        for path in paths:
            file = into / path
            made += _make_folders(file.parent)
            if file.exists() or file.is_symlink():
                (kept / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.move(file, kept / path)
            done.append(path)
            (staged / path).replace(file)
    except OSError:
        for path in done:
            (into / path).unlink(missing_ok=True)
            if (kept / path).exists() or (kept / path).is_symlink():
                shutil.move(kept / path, into / path)
        for folder in reversed(made):
            folder.rmdir()
        raise


def _make_folders(folder: Path) -> list[Path]:
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for path in reversed(missing):
        path.mkdir()
    return missing[::-1]
