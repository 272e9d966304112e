"""all SQL files of a project -> ParsedFiles: known ones from the cache, the others parsed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mvbuild.cache.store import Cache, Table
from mvbuild.parse.file import ParsedFile, dumped, key_of, loaded, parse_file
from mvbuild.parse.templates import Templates
from mvbuild.project.loaded import LoadedProject, ModelFile, Properties
from mvbuild.project.settings import Own
from mvbuild.source import SourceFile
from mvbuild.workers import Workers

FEWEST = 300
"""With this many files another process pays off: it starts in the time that about half of them take."""
Task = tuple[SourceFile, "Own | None"]
"""A file, and the value of `this` in it if it is a model."""


def parse_files(tasks: Sequence[Task], templates: Templates, cache: Table, workers: Workers) -> list[ParsedFile]:
    """In the order of the tasks."""
    keys = [key_of(*task) for task in tasks]
    found = [_known(task, key, templates, cache) for task, key in zip(tasks, keys, strict=True)]
    missing = [i for i, known in enumerate(found) if known is None]
    if len(missing) >= FEWEST:
        given = (_slim(templates.project), dict(templates.env))
        for at, text in workers.shared(kept_of, given, [tasks[i] for i in missing]):
            i = missing[at]
            if isinstance(text, str):
                cache.put(keys[i], text)
                found[i] = loaded(text, tasks[i][0], templates)
            else:
                found[i] = _parsed(tasks[i], keys[i], templates, cache)
    return [one or _parsed(task, key, templates, cache) for one, task, key in zip(found, tasks, keys, strict=True)]


def kept_of(given: tuple[LoadedProject, Mapping[str, str]], tasks: Sequence[Task]) -> list[str | None]:
    """The cache entries for some files, made by another process."""
    templates = Templates(*given)
    return [dumped(parse_file(file, own, templates), file, templates) for file, own in tasks]


def _known(task: Task, key: str, templates: Templates, cache: Table) -> ParsedFile | None:
    text = cache.get(key)
    return loaded(text, task[0], templates) if text is not None else None


def _parsed(task: Task, key: str, templates: Templates, cache: Table) -> ParsedFile:
    file, own = task
    parsed = parse_file(file, own, templates)
    text = dumped(parsed, file, templates)
    if text is not None:
        cache.put(key, text)
    return parsed


def _slim(project: LoadedProject) -> LoadedProject:
    """What templates can see: the names of models and seeds, and the target without secrets."""
    nothing = SourceFile("", "")
    named = (*((model.name, model.version) for model in project.models), *((seed.name, None) for seed in project.seeds))
    models = tuple(
        ModelFile(name=name, file=nothing, folders=(), layers=(), properties=Properties(), version=version) for name, version in named
    )
    sources = tuple(replace(source, properties=Properties(), options={}, meta={}, places={}) for source in project.sources)
    target = replace(project.target, catalog={}, spark=replace(project.target.spark, remote=None, config={}), span=None)
    return replace(
        project,
        file=nothing,
        target=target,
        vars=dict(project.vars),
        models=models,
        seeds=(),
        sources=sources,
        tests=(),
        lint={},
        docs={},
        groups={},
        documents=(),
        cache=Cache(),
    )
