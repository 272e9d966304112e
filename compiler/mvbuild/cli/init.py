"""`mvbuild init DIRECTORY`: a small project that is ready to run."""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from mvbuild.cli.options import output_options

_DOTFILES = {"gitignore": ".gitignore", "sqlfluff": ".sqlfluff", "github": ".github"}
_TEMPLATES = {"small": ("init",), "team": ("team", "init")}
"""Template -> its folders; a file of an earlier one counts."""
_FIRST = {"small": "  mvbuild run", "team": "  mvbuild deps\n  mvbuild build"}
"""Template -> the first commands."""


@click.command("init")
@click.argument("directory", default=".")
@click.option("--name", help="Name of the project. Default: the name of the directory.")
@click.option(
    "--catalog-view",
    type=click.Choice(["definition", "storage"]),
    default="definition",
    show_default=True,
    help="What Spark, Trino and BI tools get from an MV. definition: its query on the tables as they are now, slower and untested. "
    "storage: the rows of its last good refresh, which are fast and tested, and as old as that refresh; recommended for Trino and BI.",
)
@click.option(
    "--template",
    type=click.Choice([*_TEMPLATES]),
    default="small",
    show_default=True,
    help="small: seeds, views and materialized views. team: besides these, targets for development, CI and production with namespaces for "
    "each developer, a package, unit tests, a kind of test of your own, groups, an exposure and a workflow for CI.",
)
@output_options
def command(directory: str, name: str | None, catalog_view: str, template: str) -> int:
    """Make a small project in DIRECTORY, ready for `mvbuild run`. Existing files are never overwritten."""
    from importlib.resources import as_file, files

    from mvbuild.cli.output import report, say
    from mvbuild.diagnostics import error
    from mvbuild.schemas.files import write_all

    if not directory:
        raise click.UsageError("DIRECTORY is empty: leave it out for the current directory")
    root = Path(directory)
    found = [f for f in ("mvbuild.yml", "mvbuild.yaml", "dbt_project.yml") if (root / f).exists()]
    if found:
        return report([error("bad-config", f"{root / found[0]} already exists: there is a project here", help="Choose another directory.")])
    project = name or _identifier(root.resolve().name)
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", project):
        return report(
            [error("bad-config", f"'{project}' is not a valid project name", help="Use letters, digits and underscores: --name shop.")]
        )
    try:
        with as_file(files("mvbuild_templates")) as templates:
            sources = [templates / folder for folder in _TEMPLATES[template]]
            replaced = {"__PROJECT_NAME__": project, "+catalog_view: definition": f"+catalog_view: {catalog_view}"}
            written, kept = _copy(sources, root, replaced)
        written += write_all(root / ".schemas")
    except OSError as exc:
        return report([error("unwritable-file", f"Cannot write to {root}: {exc.strerror or exc}")])
    for path in kept:
        say(f"kept the existing {path}")
    if catalog_view == "definition":
        say("If Trino or BI tools will read it, set `+catalog_view: storage` in mvbuild.yml: they then get stored, tested rows.")
    # A shell takes a name that begins with - for an option.
    folder = shlex.quote(f"./{root}" if str(root).startswith("-") else str(root))
    say(f"Created project '{project}' in {root} ({len(written)} files). Next:\n\n  cd {folder}\n{_FIRST[template]}")
    return 0


def _identifier(directory: str) -> str:
    """A project name like the directory's: `my shop 2` -> `my_shop_2`."""
    plain = unicodedata.normalize("NFKD", directory).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "_", plain).lstrip("_0123456789").rstrip("_") or "project"


def _copy(sources: Sequence[Path], root: Path, replaced: Mapping[str, str]) -> tuple[list[Path], list[Path]]:
    found: dict[Path, Path] = {}
    for source in sources:
        for file in source.rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                found.setdefault(Path(*(_DOTFILES.get(part, part) for part in file.relative_to(source).parts)), file)
    written, kept = [], []
    for relative, file in sorted(found.items()):
        path = root / relative
        if path.exists():
            kept.append(path)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        text = file.read_text(encoding="utf-8")
        for old, new in replaced.items():
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written, kept
