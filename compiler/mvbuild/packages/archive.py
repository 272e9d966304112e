"""the address of an archive + an empty folder -> its files there, and the hash of the archive."""

from __future__ import annotations

import os
import shutil
import tarfile
import urllib.error
import urllib.request
import zipfile
from hashlib import sha256
from pathlib import Path, PurePosixPath

from mvbuild.diagnostics.secrets import masked

LARGEST_ARCHIVE = 200_000_000


class BadArchive(Exception):
    """An archive that cannot be read, or that must not be unpacked."""


def unpack(address: str, folder: Path) -> str:
    """`address`: a URL or a path. Raises BadArchive, and then some files may be in the folder."""
    archive = folder.parent / "archive"
    digest = _download(address, archive)
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as opened:
                _check([one.filename for one in opened.infolist()], sum(one.file_size for one in opened.infolist()))
                opened.extractall(folder)
        else:
            with tarfile.open(archive) as tar:
                files = [one for one in tar.getmembers() if one.isfile()]
                _check([one.name for one in files], sum(one.size for one in files))
                for one in files:
                    _write(tar, one, folder)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError) as exc:
        raise BadArchive(f"The archive cannot be unpacked: {type(exc).__name__}") from exc
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


def _check(names: list[str], size: int) -> None:
    """Nothing may be written outside of the folder, or fill the disk."""
    for name in names:
        path = PurePosixPath(name.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts or ":" in name:
            raise BadArchive(f"The archive has a path that leads out of it: '{name}'")
    if size > LARGEST_ARCHIVE:
        raise BadArchive(f"The archive has more than {LARGEST_ARCHIVE // 1_000_000} MB of files")


def _download(address: str, target: Path) -> str:
    digest, size = sha256(), 0
    try:
        # `with` is below: both kinds are files.
        source = urllib.request.urlopen(address, timeout=60) if address.startswith(("https://", "http://")) else Path(address).open("rb")  # noqa: SIM115
        with source, target.open("wb") as file:
            while piece := source.read(1 << 20):
                size += len(piece)
                if size > LARGEST_ARCHIVE:
                    raise BadArchive(f"The archive is larger than {LARGEST_ARCHIVE // 1_000_000} MB")
                digest.update(piece)
                file.write(piece)
    except (OSError, ValueError) as exc:
        reason = exc.reason if isinstance(exc, urllib.error.URLError) else getattr(exc, "strerror", None) or type(exc).__name__
        raise BadArchive(f"The archive cannot be read: {masked(str(reason), os.environ)}") from exc
    return digest.hexdigest()
