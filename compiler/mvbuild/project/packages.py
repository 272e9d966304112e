"""packages.yml, packages.lock and `dbt_packages` -> the packages of a project, checked against the lock. Nothing is fetched here."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import field
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, ProjectError, error
from mvbuild.git import PACKAGES
from mvbuild.project.files import LARGEST_TEXT, Contents, list_files, read_text
from mvbuild.project.yaml_spans import ListNode, MapNode, Node, is_empty, plain, read_yaml
from mvbuild.source import SourceFile, Span

FOLDER, LOCK = PACKAGES, "packages.lock"
FILES = ("packages.yml", "dependencies.yml")
PROJECT_FILES = ("mvbuild.yml", "mvbuild.yaml", "dbt_project.yml")
BUILT_IN = frozenset(("dbt-labs/dbt_utils", "fishtown-analytics/dbt_utils"))
"""Packages of dbt's registry whose macros mvbuild has itself."""
KINDS: tuple[Kind, ...] = ("local", "git", "tarball", "package")
_KEYS = frozenset((*KINDS, "revision", "subdirectory", "name", "version", "warn-unpinned", "install-prerelease"))
Kind = Literal["local", "git", "tarball", "package"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """An entry of packages.yml as it is written, with its templates: they may name secrets."""

    kind: Kind
    where: str
    revision: str | None
    subdirectory: str
    span: Span

    @property
    def entry(self) -> dict[str, str]:
        """Its keys and values."""
        further = {"revision": self.revision, "subdirectory": self.subdirectory or None}
        return {self.kind: self.where, **{key: value for key, value in further.items() if value is not None}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """The macros and tests of a package, which are called by its name: `dbt_expectations.expression_is_true()`."""

    name: str
    macros: tuple[SourceFile, ...]
    vars: Mapping[str, Any] = field(default_factory=dict)
    """The package's own values of var()."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageFiles:
    """What mvbuild reads of a package. `paths` are relative to the package's folder, `macros` are some of them."""

    name: str
    vars: Mapping[str, Any]
    paths: tuple[str, ...]
    macros: tuple[str, ...]


_HOW = "Write `- local: ../shared`, `- git: https://...` with `revision:`, or `- tarball: https://...`."


def declared_in(root: Path, report: list[Diagnostic]) -> tuple[Declared, ...]:
    """The entries of packages.yml, or of `packages:` in dependencies.yml, in their order."""
    found: list[Declared] = []
    for name in FILES:
        if (root / name).is_file():
            file = read_text(root, name)
            tree, wrong = read_yaml(file)
            report.extend(wrong)
            entry = tree.get("packages") if isinstance(tree, MapNode) else None
            if entry is not None and not isinstance(entry.node, ListNode) and not is_empty(entry.node):
                report.append(error("bad-packages", "`packages:` must be a list", entry.node.span, help=_HOW))
            for item in entry.node.items if entry and isinstance(entry.node, ListNode) else ():
                found += _declared(item, report)
    return tuple(found)


def _declared(node: Node, report: list[Diagnostic]) -> Iterator[Declared]:
    keys = plain(node) if isinstance(node, MapNode) else {}
    kinds = [kind for kind in KINDS if kind in keys]
    unknown = next((entry for entry in node.entries if entry.key not in _KEYS), None) if isinstance(node, MapNode) else None
    if len(kinds) != 1 or unknown is not None or not isinstance(keys.get(kinds[0]), str):
        message = f"Unknown key '{unknown.key}' of a package" if unknown else "A package is one of `local:`, `git:` and `tarball:`"
        report.append(error("bad-packages", message, unknown.span if unknown else node.span, help=_HOW))
        return
    revision = keys.get("revision", keys.get("version"))
    revision = revision[0] if isinstance(revision, list) and len(revision) == 1 else revision
    yield Declared(
        kind=kinds[0],
        where=keys[kinds[0]],
        revision=None if revision is None else str(revision),
        subdirectory=str(keys.get("subdirectory") or ""),
        span=node.span,
    )


def declared_hash(declared: tuple[Declared, ...]) -> str:
    """Of what packages.yml says, for the lock."""
    return sha256(repr([sorted(one.entry.items()) for one in declared]).encode()).hexdigest()


def installable(declared: tuple[Declared, ...]) -> tuple[Declared, ...]:
    """Those that `mvbuild deps` installs: all but those of dbt's registry."""
    return tuple(one for one in declared if one.kind != "package")


def read_packages(root: Path, contents: Contents, report: list[Diagnostic]) -> tuple[Package, ...]:
    """The installed packages. Errors, also that something is not installed as the lock says, go to `report`."""
    declared = installable(declared_in(root, report))
    if not declared:
        return ()
    try:
        return tuple(_installed(root, contents, declared))
    except ProjectError as exc:
        report.extend(exc.diagnostics)
        return ()


def _installed(root: Path, contents: Contents, declared: tuple[Declared, ...]) -> Iterator[Package]:
    place = declared[0].span
    if not (root / LOCK).is_file():
        raise _not_installed("The packages of this project are not installed", place)
    lock = read_lock(root)
    if lock.get("declared") != declared_hash(declared):
        raise _not_installed(f"packages.yml has changed since {LOCK} was written", place)
    for entry in lock["packages"]:
        name, local = entry["name"], entry.get("local")
        folder = local or f"{FOLDER}/{name}"
        files = files_of(root, folder)
        if files is None or files.name != name:
            raise _not_installed(f"The package '{name}' is not in {folder}", place)
        if local is None and hash_of(files, lambda path, at=folder: contents.of(f"{at}/{path}", LARGEST_TEXT)) != entry.get("sha256"):
            raise _not_installed(f"The files of the package '{name}' in {folder} are not those of {LOCK}", place)
        macros = tuple(contents.text(posixpath.normpath(f"{folder}/{path}")) for path in files.macros)
        yield Package(name=files.name, macros=macros, vars=files.vars)


def _not_installed(message: str, span: Span) -> ProjectError:
    return ProjectError([error("packages-not-installed", message, span)])


def read_lock(root: Path) -> Mapping[str, Any]:
    """Raises ProjectError if it is not what `mvbuild deps` writes."""
    file = read_text(root, LOCK)
    tree, _ = read_yaml(file)
    lock = plain(tree) if isinstance(tree, MapNode) else {}
    packages = lock.get("packages")
    if not isinstance(packages, list) or not all(isinstance(one, dict) and isinstance(one.get("name"), str) for one in packages):
        raise _not_installed(f"{LOCK} is not a list of packages", file.line_span(1))
    return lock


def files_of(root: Path, folder: str) -> PackageFiles | None:
    """None if there is no project in the folder. Raises ProjectError if its project file cannot be used."""
    base = root / folder
    name = next((name for name in PROJECT_FILES if (base / name).is_file()), None)
    if name is None:
        return None
    file = read_text(base, name)
    tree, wrong = read_yaml(file)
    keys = plain(tree) if isinstance(tree, MapNode) else {}
    if wrong or not isinstance(keys.get("name"), str) or not keys["name"].isidentifier():
        message = f"{name} of the package in {folder} has no usable `name`"
        raise ProjectError([error("bad-packages", message, Span(SourceFile(f"{folder}/{name}", file.text), 0, 0))])
    macro_paths, test_paths = (
        _texts(keys.get(key)) or default for key, default in (("macro-paths", ["macros"]), ("test-paths", ["tests"]))
    )
    nowhere = base / FOLDER
    macros = [f.path for f in list_files(base, macro_paths, without=nowhere).files if f.suffix == ".sql"]
    tests = list_files(base, test_paths, without=nowhere).files
    macros += [f.path for f in tests if f.suffix == ".sql" and f.folders[:1] == ("generic",)]
    inside = tuple(dict.fromkeys(path for path in macros if not path.startswith("../")))
    vars = keys.get("vars")
    own = vars if isinstance(vars, dict) else {}
    below = own.get(keys["name"])
    own = {**own, **below} if isinstance(below, dict) else own
    licences = sorted(path.name for path in base.glob("LICENSE*") if path.is_file())
    return PackageFiles(name=keys["name"], vars=own, paths=(name, *licences, *inside), macros=inside)


def hash_of(files: PackageFiles, content: Any) -> str:
    """SHA-256 over the paths and bytes of a package's files. `content`: path -> its bytes."""
    digest = sha256()
    for path in sorted(files.paths):
        read: bytes = content(path)
        digest.update(f"{path}\0{len(read)}\0".encode())
        digest.update(read)
    return digest.hexdigest()


def _texts(value: Any) -> list[str]:
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)]
