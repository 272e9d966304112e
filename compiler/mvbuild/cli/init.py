"""`mvbuild init DIRECTORY`: a project that runs at once."""

from __future__ import annotations

import re
import shlex
import unicodedata
from pathlib import Path

import click

from mvbuild.cli.options import output_options

_DOTFILES = {"gitignore": ".gitignore", "sqlfluff": ".sqlfluff"}


@click.command("init")
@click.argument("directory", default=".")
@click.option("--name", help="The project's name; by default the directory's.")
@output_options
def command(directory: str, name: str | None) -> int:
    """Make a small project in DIRECTORY, ready for `mvbuild run`. Files that exist are never overwritten."""
    from importlib.resources import as_file, files

    from mvbuild.cli.output import report, say
    from mvbuild.diagnostics import error
    from mvbuild.schemas.files import write_all

    root = Path(directory)
    found = [f for f in ("mvbuild.yml", "mvbuild.yaml", "dbt_project.yml") if (root / f).exists()]
    if found:
        return report([error("bad-config", f"{root / found[0]} exists: there is a project already", help="Choose another directory.")])
    project = name or _identifier(root.resolve().name)
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", project):
        return report(
            [error("bad-config", f"'{project}' cannot be a project's name", help="Use letters, digits and underscores: --name shop.")]
        )
    try:
        with as_file(files("mvbuild_templates") / "init") as source:
            written, kept = _copy(source, root, project)
        written += write_all(root / ".schemas")
    except OSError as exc:
        return report([error("unwritable-target", f"Cannot write to {root}: {exc.strerror or exc}")])
    for path in kept:
        say(f"kept {path}, which was there")
    say(f"Made project '{project}' in {root} ({len(written)} files). Next:\n\n  cd {shlex.quote(str(root))}\n  mvbuild run")
    return 0


def _identifier(directory: str) -> str:
    """A project name that resembles the directory's: `my shop 2` -> `my_shop_2`."""
    plain = unicodedata.normalize("NFKD", directory).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "_", plain).lstrip("_0123456789").rstrip("_") or "project"


def _copy(source: Path, root: Path, name: str) -> tuple[list[Path], list[Path]]:
    written, kept = [], []
    for file in sorted(p for p in source.rglob("*") if p.is_file() and "__pycache__" not in p.parts):
        relative = file.relative_to(source)
        path = root / relative.with_name(_DOTFILES.get(relative.name, relative.name))
        if path.exists():
            kept.append(path)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.read_text(encoding="utf-8").replace("__PROJECT_NAME__", name), encoding="utf-8")
        written.append(path)
    return written, kept
