"""LoadedProject -> notes on what its directory has for dbt, and mvbuild does not read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from mvbuild.project.loaded import LoadedProject
from mvbuild.project.packages import BUILT_IN, declared_in

_FILES = {
    "profiles.yml": "targets are configured under `targets:` in mvbuild.yml",
    ".env": "set the variables in your shell: `set -a; . ./.env`",
}
_FOLDERS = {
    "snapshots": (".sql", "keep snapshots in dbt, and read their tables as sources"),
    "analyses": (".sql", "run them outside of mvbuild"),
}
_NAMING = re.compile(r"\{%-?\s*macro\s+(generate_(?:schema|alias|database)_name)\b")


def ignored(project: LoadedProject) -> Iterator[str]:
    """One sentence for each kind."""
    root = project.root
    yield from (f"{name} is not read: {help}" for name, help in _FILES.items() if (root / name).is_file())
    for package in declared_in(root, []):
        if package.kind == "package":
            known = (
                "mvbuild has its macros itself" if package.where in BUILT_IN else "mvbuild does not use dbt's registry: name its repository"
            )
            yield f"the package {package.where} is not installed: {known}"
    for folder, (suffix, help) in _FOLDERS.items():
        if found := _first(sorted((root / folder).rglob(f"*{suffix}")), root):
            yield f"{found} is not read: {help}"
    if project.python_models:
        yield f"{_named([*project.python_models])} is not read: models are SQL; build these outside, and read their tables as sources"
    for file in project.macros:
        for macro in dict.fromkeys(_NAMING.findall(file.text)):
            rule = "`alias:` is the rule for names" if "alias" in macro else "`namespaces:` in mvbuild.yml is the rule for namespaces"
            yield f"{macro} in {file.path} is not applied: {rule}"


def _first(paths: Iterable[Path], root: Path) -> str:
    return _named([path.relative_to(root).as_posix() for path in paths])


def _named(paths: list[str]) -> str:
    return f"{paths[0]} and {len(paths) - 1} more" if len(paths) > 1 else "".join(paths)
