"""a project directory -> the same with its catalog and files as they were when they were saved: without Spark, and fast.

Iceberg's files never change: a copy of the catalog's database is a copy of all tables, as long as the files that it needs are not deleted.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

KEPT = "kept.db"
FILES = "kept.txt"


def keep(root: Path) -> None:
    """Remember everything in the directory; connections to the catalog may be open."""
    _copy(root / ".mvbuild" / "catalog.db", root / KEPT)
    (root / FILES).write_text("\n".join(sorted(_files(root))), encoding="utf-8")


def restore(root: Path) -> bool:
    """Whether the directory is again as it was kept: files that came later are deleted. False if one is lost."""
    if not (root / FILES).exists():
        return False
    kept = set((root / FILES).read_text(encoding="utf-8").splitlines())
    found = _files(root)
    if not kept <= found:
        return False
    for name in found - kept:
        (root / name).unlink()
    _copy(root / KEPT, root / ".mvbuild" / "catalog.db")
    return True


def start_over(root: Path) -> None:
    shutil.rmtree(root, ignore_errors=True)


def _files(root: Path) -> set[str]:
    """But the catalog's own and this module's."""
    return {
        str(path.relative_to(root))
        for path in root.rglob("*")
        if not path.is_dir() and path.name not in (KEPT, FILES) and not path.name.startswith("catalog.db")
    }


def _copy(database: Path, copy: Path) -> None:
    with closing(sqlite3.connect(database, timeout=60)) as source, closing(sqlite3.connect(copy, timeout=60)) as target:
        source.backup(target)
