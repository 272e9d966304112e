"""a part of a name -> the folder for new tables and views of that name."""

from __future__ import annotations

import hashlib
import re

from mvbuild.ports.catalog import CatalogError

_SAFE = re.compile(r"[\w. =+-]+")


def folder(part: str) -> str:
    """The folder for a name: characters with a meaning in locations are replaced, and a hash keeps the names distinct."""
    if _SAFE.fullmatch(part) and part.strip(". "):
        return part
    return re.sub(r"[^\w.-]", "_", part).strip(".") + "-" + hashlib.sha256(part.encode()).hexdigest()[:8]


def exact_folder(part: str) -> str:
    """The folder for a name where the folder must be the name."""
    if "/" in part or not part.strip(". "):
        raise CatalogError(f"'{part}' cannot be the name of a directory, which a file-system warehouse needs.")
    return part
