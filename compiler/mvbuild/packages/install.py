"""project directory -> its packages in `dbt_packages`, and packages.lock. What the lock has is fetched as it was, and must be the same."""

from __future__ import annotations

import os
import posixpath
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, ProjectError, error
from mvbuild.packages.fetch import copied, fetch
from mvbuild.project.packages import (
    BUILT_IN,
    FOLDER,
    LOCK,
    Declared,
    PackageFiles,
    declared_hash,
    declared_in,
    files_of,
    hash_of,
    installable,
    read_lock,
)
from mvbuild.project.project_file import Templates, name_in
from mvbuild.project.yaml_spans import ScalarNode

_HEAD = "# Written by `mvbuild deps`: the packages of packages.yml, exactly. Keep this file in version control.\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """One package. `entry` is its part of the lock."""

    name: str
    entry: Mapping[str, str]
    is_new: bool
    """Whether the lock had another one, or none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Above:
    """A project or package on the way from the project to a package."""

    place: str
    """Its resolved path, or what is fetched."""
    name: str


@dataclass(slots=True, kw_only=True)
class _Installation:
    root: Path
    templates: Templates
    work: Path
    known: Mapping[str, Mapping[str, str]]
    """What is fetched -> its entry of the lock."""
    found: dict[str, Installed] = field(default_factory=dict)
    report: list[Diagnostic] = field(default_factory=list)


def install(root: Path, *, env: Mapping[str, str], vars: Mapping[str, Any], upgrade: bool = False) -> tuple[Installed, ...]:
    """Raises ProjectError, and then nothing of the project was changed. `upgrade` ignores what the lock has."""
    root = root.resolve()
    name_in(root)
    report: list[Diagnostic] = []
    declared = declared_in(root, report)
    with tempfile.TemporaryDirectory(prefix="mvbuild-deps-") as work:
        (Path(work) / FOLDER).mkdir()
        doing = _Installation(
            root=root, templates=Templates(env, vars, report), work=Path(work), known={} if upgrade else _locked(root), report=report
        )
        _install_all(doing, declared, root, (_Above(place=str(root), name="this project"),))
        if report:
            raise ProjectError(report)
        wanted = installable(declared)
        _replace(root, Path(work) / FOLDER, _lock_text(wanted, doing.found) if wanted else None)
    return tuple(doing.found.values())


def _locked(root: Path) -> dict[str, Mapping[str, str]]:
    if not (root / LOCK).is_file():
        return {}
    entries = read_lock(root)["packages"]
    return {
        _key({key: value for key, value in one.items() if key in ("git", "tarball", "revision", "subdirectory")}): one for one in entries
    }


def _key(said: Mapping[str, Any]) -> str:
    return repr(sorted((key, str(value)) for key, value in said.items()))


def _install_all(doing: _Installation, declared: tuple[Declared, ...], base: Path, above: tuple[_Above, ...]) -> None:
    """The packages of one packages.yml, then theirs. `above`: how they are reached, from the project to the one that declares them."""
    for package in declared:
        if package.kind == "package":
            if package.where not in BUILT_IN and base == doing.root:
                doing.report.append(_of_registry(package))
            continue
        try:
            _install(doing, package, base, above)
        except ProjectError as exc:
            doing.report.extend(exc.diagnostics)


def _of_registry(package: Declared) -> Diagnostic:
    owner, _, name = package.where.partition("/")
    message = f"'{package.where}' names a package of dbt's registry, which mvbuild does not use"
    help = (
        f"Name its repository: `git: https://github.com/{owner}/{name.replace('_', '-')}.git` with a `revision:`, if that is its address."
    )
    return error("bad-packages", message, package.span, help=help)


def _install(doing: _Installation, package: Declared, base: Path, above: tuple[_Above, ...]) -> None:
    where = str((base / package.where).resolve()) if package.kind == "local" else _key(package.entry)
    _check_cycle(package, where, above)
    if package.kind == "local":
        path = base / package.where
        files = files_of(doing.root, os.path.relpath(path, doing.root)) if path.is_dir() else None
        if files is None:
            raise ProjectError([error("package-unavailable", f"There is no project in {package.where}", package.span)])
        place = posixpath.normpath(os.path.relpath(path, doing.root).replace(os.sep, "/"))
        _add(doing, package, files, {"name": files.name, "local": place}, is_new=False)
        _install_all(doing, declared_in(path, doing.report), path, (*above, _Above(place=where, name=files.name)))
        return
    folder = Path(tempfile.mkdtemp(dir=doing.work)) / "files"
    folder.mkdir()
    known = doing.known.get(_key(package.entry), {})
    path, exact = fetch(package, _value(doing, package), folder, commit=known.get("commit"))
    files = files_of(path, ".")
    if files is None:
        raise ProjectError([error("package-unavailable", "There is no dbt_project.yml in the package", package.span)])
    digest = hash_of(files, lambda one: (path / one).read_bytes())
    if known.get("sha256", digest) != digest:
        message = f"The package '{files.name}' does not match {LOCK}: the hash of its files differs"
        raise ProjectError([error("package-unavailable", message, package.span, help="If that is right, run `mvbuild deps --upgrade`.")])
    _add(doing, package, files, {"name": files.name, **package.entry, **exact, "sha256": digest}, is_new=not known)
    copied({one: path / one for one in files.paths}, doing.work / FOLDER / files.name)
    _install_all(doing, declared_in(path, doing.report), path, (*above, _Above(place=where, name=files.name)))


def _check_cycle(package: Declared, where: str, above: tuple[_Above, ...]) -> None:
    at = next((i for i, one in enumerate(above) if one.place == where), None)
    if at is None:
        return
    names = [one.name for one in above[at:]]
    message = f"Packages depend on each other in a cycle: {' -> '.join((*names, names[0]))}"
    help = "Remove one of these entries."
    if len(names) == 1:
        help = "Remove this entry."
        message = "This project names itself as a package" if at == 0 else f"The package '{names[0]}' names itself"
    raise ProjectError([error("bad-packages", message, package.span, help=help)])


def _value(doing: _Installation, package: Declared) -> str:
    """The address with the values of its templates; a path is relative to the project."""
    node = doing.templates.render(ScalarNode(package.where, package.span), package.where)
    value = str(node.value) if isinstance(node, ScalarNode) else package.where
    is_path = "://" not in value and "@" not in value
    return str(doing.root / value) if is_path else value.removeprefix("file://")


def _add(doing: _Installation, package: Declared, files: PackageFiles, entry: Mapping[str, str], *, is_new: bool) -> None:
    other = doing.found.get(files.name)
    if other is not None and dict(other.entry) != dict(entry):
        message = f"Two different packages are called '{files.name}'"
        raise ProjectError([error("bad-packages", message, package.span, help="Declare it once in packages.yml, in the version you want.")])
    doing.found.setdefault(files.name, Installed(name=files.name, entry=entry, is_new=is_new))


def _lock_text(declared: tuple[Declared, ...], found: Mapping[str, Installed]) -> str:
    import yaml

    content = {"declared": declared_hash(declared), "packages": [dict(one.entry) for one in found.values()]}
    return _HEAD + yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=200)


def _replace(root: Path, new: Path, lock: str | None) -> None:
    """Take the place of what was installed. A run that reads in between sees that the lock does not fit."""
    try:
        shutil.rmtree(root / FOLDER, ignore_errors=True)
        if lock is None:
            (root / LOCK).unlink(missing_ok=True)
            return
        shutil.copytree(new, root / FOLDER)
        (root / LOCK).write_text(lock, encoding="utf-8")
    except OSError as exc:
        raise ProjectError([error("unwritable-file", f"Cannot write to {root}: {exc.strerror or exc}")]) from exc
