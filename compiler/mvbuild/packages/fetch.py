"""one declared package + an empty folder -> its files there, and what was fetched exactly. Only `mvbuild deps` does this."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from mvbuild.diagnostics import ProjectError, error
from mvbuild.diagnostics.secrets import masked
from mvbuild.git import OF_HOOKS
from mvbuild.packages.archive import BadArchive, unpack
from mvbuild.project.packages import Declared

SECONDS = 300


def fetch(package: Declared, where: str, folder: Path, *, commit: str | None) -> tuple[Path, dict[str, str]]:
    """`where` is the address with its values. With `commit`, that commit of a repository. Returns the folder of the package's project
    file, and the commit or the hash of the archive. Raises ProjectError."""
    if package.kind == "git":
        found = {"commit": _clone(package, where, folder, commit or package.revision)}
    else:
        try:
            found = {"archive": unpack(where, folder)}
        except BadArchive as exc:
            raise _failed(package, str(exc)) from exc
    inner = [one for one in folder.iterdir() if one.name != ".git"]
    top = inner[0] if package.kind == "tarball" and len(inner) == 1 and inner[0].is_dir() else folder
    path = top / package.subdirectory
    if not path.resolve().is_relative_to(folder.resolve()) or not path.is_dir():
        raise _failed(package, f"The package has no folder '{package.subdirectory}'")
    return path, found


def _clone(package: Declared, address: str, folder: Path, revision: str | None) -> str:
    if address.startswith("-") or (revision or "").startswith("-"):
        raise _failed(package, "An address or a revision cannot start with '-'")
    _git(package, folder, "init", "--quiet")
    _git(package, folder, "fetch", "--quiet", "--depth", "1", "--", address, revision or "HEAD")
    _git(package, folder, "checkout", "--quiet", "--detach", "FETCH_HEAD")
    return _git(package, folder, "rev-parse", "HEAD").strip()


def _git(package: Declared, folder: Path, *arguments: str) -> str:
    # Without a terminal git must not ask for a password; no hook of a template directory may run.
    env = {name: value for name, value in os.environ.items() if name not in OF_HOOKS}
    env |= {"GIT_TERMINAL_PROMPT": "0", "GIT_TEMPLATE_DIR": "", "LC_ALL": "C"}
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, env=env, timeout=SECONDS, check=False)
    except FileNotFoundError:
        raise _failed(package, "There is no `git` on this machine") from None
    except subprocess.TimeoutExpired:
        raise _failed(package, f"git did not answer within {SECONDS} seconds") from None
    if done.returncode != 0:
        raise _failed(package, f"git could not fetch the package: {masked(_reason(done.stderr), os.environ)}")
    return done.stdout


def _reason(said: str) -> str:
    """The first line that git calls fatal or an error. Further lines are general advice, often the end of a longer sentence."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    wrong = [line.split(": ", 1)[1] for line in lines if line.startswith(("fatal: ", "error: "))]
    return wrong[0] if wrong else lines[-1] if lines else "no message"


def _failed(package: Declared, message: str) -> ProjectError:
    return ProjectError([error("package-unavailable", message, package.span)])


def copied(files: Mapping[str, Path], target: Path) -> None:
    """Copy relative path -> file into an empty folder."""
    for path, file in files.items():
        place = target / path
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, place)
