"""YAML files of a project -> Described: what they declare about models, seeds and sources."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from mvbuild.cache.codec import Uncacheable
from mvbuild.cache.keys import digest
from mvbuild.cache.store import Table
from mvbuild.diagnostics import Diagnostic
from mvbuild.project.data_tests import with_settings
from mvbuild.project.project_file import Templates
from mvbuild.project.properties import CODEC, NOT_RENDERED, Described, NamedEntry, read_properties
from mvbuild.project.yaml_spans import Node, is_template, read_yaml
from mvbuild.source import SourceFile
from mvbuild.workers import Workers

FEWEST = 300_000
"""With this many characters, another process pays off."""
_Read = tuple[tuple[NamedEntry, ...], list[Diagnostic]]


def read_documents(
    files: Sequence[SourceFile], templates: Templates, cache: Table, report: list[Diagnostic], workers: Workers
) -> Described:
    """What the files declare together. The result of a file without templates and errors is cached."""
    described = Described(files=list(files))
    read = _in_parallel(files, cache, workers)
    for number, file in enumerate(files):
        mine = read.pop(number, None)
        entries = _known(file, cache) if mine is None else None
        if entries is None:
            entries, wrong = mine or _read(file, templates, cache)
            report += wrong
        for kind, one in entries:
            described.add(kind, one, report)
    return described


def _in_parallel(files: Sequence[SourceFile], cache: Table, workers: Workers) -> dict[int, _Read]:
    """Read unknown files in parallel, if there are many. Returns what this process read itself; what others read is cached."""
    new = [i for i, file in enumerate(files) if "{{" not in file.text and cache.get(_key(file)) is None]
    if sum(len(files[i].text) for i in new) < FEWEST:
        return {}
    read: dict[int, _Read] = {}
    for at, text in workers.shared(said_in, None, [files[i] for i in new]):
        if isinstance(text, str):
            cache.put(_key(files[new[at]]), text)
        else:
            read[new[at]] = _read(files[new[at]], None, cache)
    return read


def said_in(_: None, files: Sequence[SourceFile]) -> list[str | None]:
    """The cache entries for files without templates, made by another process."""
    found = []
    for file in files:
        entries, wrong = _read(file, None, None)
        found.append(None if wrong else _dumped(entries, file))
    return found


def _read(file: SourceFile, templates: Templates | None, cache: Table | None) -> _Read:
    tree, wrong = read_yaml(file)
    report = list(wrong)
    if tree is None:
        return (), report
    rendered = _rendered(tree, templates, file.text) if templates and is_template(file.text) else tree
    found = tuple(read_properties(file, rendered, report))
    if cache is not None and rendered is tree and not report and (text := _dumped(found, file)) is not None:
        cache.put(_key(file), text)
    return found, report


def _rendered(tree: Node, templates: Templates, text: str) -> Node:
    return with_settings(templates.render(tree, text, NOT_RENDERED), lambda node: templates.render(node, text))


def _dumped(entries: tuple[NamedEntry, ...], file: SourceFile) -> str | None:
    with suppress(Uncacheable):
        return CODEC.dumps(entries, file)
    return None


def _known(file: SourceFile, cache: Table) -> tuple[NamedEntry, ...] | None:
    text = cache.get(_key(file))
    with suppress(Uncacheable):
        found: tuple[NamedEntry, ...] | None = CODEC.loads(text, file) if text is not None else None
        return found
    return None


def _key(file: SourceFile) -> str:
    return digest("yaml", file.path, file.text)
