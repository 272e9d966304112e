"""one declared package + an empty folder -> its files there, and what was fetched exactly. Only `mvbuild deps` does this."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path, PurePosixPath

from mvbuild.diagnostics import ProjectError, error
from mvbuild.diagnostics.secrets import masked
from mvbuild.git import OF_HOOKS
from mvbuild.project.packages import Declared

LARGEST_ARCHIVE = 200_000_000
SECONDS = 300


def fetch(package: Declared, where: str, folder: Path, *, commit: str | None) -> tuple[Path, dict[str, str]]:
    """`where` is the address with its values. With `commit`, that commit of a repository. Returns the folder of the package's project
    file, and the commit or the hash of the archive. Raises ProjectError."""
    if package.kind == "git":
        found = {"commit": _clone(package, where, folder, commit or package.revision)}
    else:
        found = {"archive": _unpack(package, where, folder)}
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
        last = done.stderr.strip().splitlines()
        raise _failed(package, f"git could not fetch the package: {masked(last[-1] if last else 'no message', os.environ)}")
    return done.stdout


def _unpack(package: Declared, address: str, folder: Path) -> str:
    archive = folder.parent / "archive"
    digest = _download(package, address, archive)
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as opened:
                _check(package, [one.filename for one in opened.infolist()], sum(one.file_size for one in opened.infolist()))
                opened.extractall(folder)
        else:
            with tarfile.open(archive) as tar:
                files = [one for one in tar.getmembers() if one.isfile()]
                _check(package, [one.name for one in files], sum(one.size for one in files))
                for one in files:
                    _write(tar, one, folder)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError) as exc:
        raise _failed(package, f"The archive cannot be unpacked: {type(exc).__name__}") from exc
    finally:
        archive.unlink(missing_ok=True)
    return digest


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    """Links and devices are left out, and no rights are kept."""
    content = tar.extractfile(member)
    if content is not None:
        target = folder / member.name
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            shutil.copyfileobj(content, file)


def _check(package: Declared, names: list[str], size: int) -> None:
    """Nothing may be written outside of the folder, or fill the disk."""
    for name in names:
        path = PurePosixPath(name.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts or ":" in name:
            raise _failed(package, f"The archive has a path that leads out of it: '{name}'")
    if size > LARGEST_ARCHIVE:
        raise _failed(package, f"The archive has more than {LARGEST_ARCHIVE // 1_000_000} MB of files")


def _download(package: Declared, address: str, target: Path) -> str:
    digest, size = sha256(), 0
    try:
        source = urllib.request.urlopen(address, timeout=60) if address.startswith(("https://", "http://")) else Path(address).open("rb")
        with source, target.open("wb") as file:
            while piece := source.read(1 << 20):
                size += len(piece)
                if size > LARGEST_ARCHIVE:
                    raise _failed(package, f"The archive is larger than {LARGEST_ARCHIVE // 1_000_000} MB")
                digest.update(piece)
                file.write(piece)
    except (OSError, ValueError) as exc:
        reason = exc.reason if isinstance(exc, urllib.error.URLError) else getattr(exc, "strerror", None) or type(exc).__name__
        raise _failed(package, f"The archive cannot be read: {masked(str(reason), os.environ)}") from exc
    return digest.hexdigest()


def _failed(package: Declared, message: str) -> ProjectError:
    return ProjectError([error("package-unavailable", message, package.span)])


def copied(files: Mapping[str, Path], target: Path) -> None:
    """Copy relative path -> file into an empty folder."""
    for path, file in files.items():
        place = target / path
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, place)
