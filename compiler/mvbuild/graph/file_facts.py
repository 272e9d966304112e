"""files of a project -> FileFacts: what its graph depends on of their contents; from the cache, if no file has changed since.

A file has not changed if its times, its size and its inode number are as they were, as in Git's index.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Sequence
from itertools import chain

from mvbuild.cache.keys import digest
from mvbuild.dataclass import dataclass
from mvbuild.project.files import LARGEST_SEED, LARGEST_TEXT
from mvbuild.project.load import Opened

_ENV_VAR = re.compile(rb"""\benv_var\s*\(\s*(?:'([^'\\]*)'|"([^"\\]*)")\s*[,)]""")
_HIDDEN = re.compile(rb"\\[xuU\r\n]")
"""With these characters, a word of YAML may be spelled in a way that does not appear in the file."""
_ROW = "project"
AT_REST = 2_000_000_000
"""Nanoseconds, more than the time resolution of file systems. A file that changed less than that before it was read may change again and
keep the same time, so nothing is kept."""
_HAS_CHANGE_TIMES = os.name != "nt"
"""Windows has no time of the last change that programs cannot set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """What the graph depends on, of the files of a project except mvbuild.yml."""

    hashes: Sequence[tuple[str, str]]
    """Path and hash of each file that is not a model."""
    of_models: Sequence[tuple[str, str]]
    variables: frozenset[str] | None
    """The names of the environment variables that templates read; None if one is computed, so that it may be any variable."""
    has_deprecation: bool
    """Whether a deprecation date may be declared, which makes a warning when it passes."""


def facts_of(opened: Opened) -> FileFacts:
    """Raises ProjectError if a file cannot be read."""
    texts = [*opened.documents, *opened.markdown, *(f.path for kind in ("macro", "test") for f in opened.files[kind])]
    seeds = [f.path for f in opened.files["seed"]]
    models = [f.path for f in opened.files["model"]]
    began, (seen, changed_ns) = time.time_ns(), _seen(str(opened.root), [*texts, *seeds, *models])
    known = _recalled(opened, seen, [*texts, *seeds], models) if seen is not None and opened.may_recall else None
    if known is not None:
        opened.contents.expect(dict(chain(known.hashes, known.of_models)), lambda: _forget(opened))
        return known
    found = _read(opened, texts, seeds, models)
    if seen is not None and changed_ns < began - AT_REST:
        _remember(opened, seen, found)
    return found


def variables_in(contents: Iterable[bytes]) -> frozenset[str] | None:
    """See `FileFacts.variables`."""
    names: set[str] = set()
    for content in contents:
        count = content.count(b"env_var")
        if (b"{{" in content or b"{%" in content) and _HIDDEN.search(content):
            return None
        if count:
            found = _ENV_VAR.findall(content)
            if len(found) != count:
                return None
            names |= {(single or double).decode("utf-8", "replace") for single, double in found}
    return frozenset(names)


def _seen(root: str, paths: Sequence[str]) -> tuple[str | None, int]:
    """A hash of paths, times, sizes and inodes, and the last of these times in nanoseconds; None if that says nothing about a file."""
    if not _HAS_CHANGE_TIMES:
        return None, 0
    below = f"{root}{os.sep}"
    try:
        found = [os.stat(below + path) for path in paths]  # noqa: PTH116  many are looked at
    except OSError:
        return None, 0
    stamps = [(one.st_ctime_ns, one.st_mtime_ns, one.st_size, one.st_ino, one.st_dev) for one in found]
    return digest(paths, stamps), max((max(changed, written) for changed, written, *_ in stamps), default=0)


def _read(opened: Opened, texts: Sequence[str], seeds: Sequence[str], models: Sequence[str]) -> FileFacts:
    contents = opened.contents
    hashes = [(path, contents.hash(path, LARGEST_TEXT)) for path in texts] + [(path, contents.hash(path, LARGEST_SEED)) for path in seeds]
    return FileFacts(
        hashes=hashes,
        of_models=[(path, contents.hash(path, LARGEST_TEXT)) for path in models],
        variables=variables_in(contents.of(path, LARGEST_TEXT) for path in (*texts, *models)),
        has_deprecation=any(b"deprecation_date" in contents.of(path, LARGEST_TEXT) for path in opened.documents),
    )


def _recalled(opened: Opened, seen: str, others: Sequence[str], models: Sequence[str]) -> FileFacts | None:
    text = opened.cache.contents.get(_ROW)
    if text is None:
        return None
    try:
        known = json.loads(text)
        if known["seen"] != seen:
            return None
        variables = frozenset(known["variables"]) if known["variables"] is not None else None
        hashes, of_models = (list(zip(paths, known[key], strict=True)) for paths, key in ((others, "hashes"), (models, "of_models")))
        return FileFacts(hashes=hashes, of_models=of_models, variables=variables, has_deprecation=known["has_deprecation"])
    except (ValueError, LookupError, TypeError):
        return None


def _remember(opened: Opened, seen: str, found: FileFacts) -> None:
    content = {
        "seen": seen,
        "hashes": [value for _, value in found.hashes],
        "of_models": [value for _, value in found.of_models],
        "variables": sorted(found.variables) if found.variables is not None else None,
        "has_deprecation": found.has_deprecation,
    }
    opened.cache.contents.put(_ROW, json.dumps(content, separators=(",", ":")))


def _forget(opened: Opened) -> None:
    opened.cache.contents.put(_ROW, "")
    opened.cache.save()
