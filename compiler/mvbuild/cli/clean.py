"""`mvbuild clean`: remove generated files, and nothing else."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

import click

from mvbuild.cli.options import Options, project_options

_MARKS = ("manifest.json", "cache.sqlite")
"""Every command that writes into the target directory leaves one of these there."""
_WRITTEN = frozenset(
    (*_MARKS, "cache.sqlite-journal", "run_results.json", "catalog.json", "sources.json", "compiled", "run", "site", "logs")
)


@click.command("clean")
@project_options
def command(options: Options) -> int:
    """Delete what mvbuild wrote into the target directory. Other files there, the catalog and its warehouse stay."""
    import os

    from mvbuild.cli.output import report, say
    from mvbuild.diagnostics import error
    from mvbuild.project.load import load_project

    project = load_project(options.project_dir, target=options.target, vars=options.vars, env=os.environ, target_path=options.target_path)
    path = project.target_path
    if path.is_symlink() and not path.exists():
        say(f"Deleted {path}: it was a link to {path.readlink()}, which does not exist.")
        path.unlink()
        return 0
    if not path.exists():
        return 0
    if not any((path / mark).is_file() for mark in _MARKS):
        why = "is not a directory" if not path.is_dir() else f"has neither {' nor '.join(_MARKS)}, so mvbuild did not write it"
        return report([error("bad-config", f"{path} {why}; nothing was deleted", help="Delete it by hand if you do not need it.")])
    try:
        kept = _cleaned(path)
    except OSError as exc:
        return report([error("unwritable-target", f"Cannot delete {exc.filename or path}: {exc.strerror or exc}")])
    if kept:
        names = ", ".join(kept[:5]) + ", ..." * (len(kept) > 5)
        say(f"Deleted what mvbuild wrote in {path}. Kept the rest: {names}.")
    else:
        say(f"{'Emptied' if path.is_symlink() else 'Deleted'} {path.resolve()}.")
    return 0


def _cleaned(path: Path) -> list[str]:
    """Delete what mvbuild wrote. Returns the names of the rest."""
    kept = []
    for entry in sorted(path.iterdir()):
        # A run that was killed leaves `.manifest.json.4711`.
        if entry.name not in _WRITTEN and Path(entry.name.removeprefix(".")).stem not in _WRITTEN:
            kept.append(entry.name)
        elif entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    if not kept and not path.is_symlink():
        with suppress(FileNotFoundError):
            path.rmdir()
    return kept
