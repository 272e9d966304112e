"""all SQL files of a project -> ParsedFiles: those that are known as they were kept, the others anew."""

from __future__ import annotations

from collections.abc import Sequence

from mvbuild.parse.file import ParsedFile, dumped, key_of, loaded, parse_file
from mvbuild.parse.templates import Templates
from mvbuild.project.kept import Kept
from mvbuild.source import SourceFile

FEWEST = 300
"""Files for which another process pays: it starts in the time that about half of them take."""
Task = tuple[SourceFile, "str | None"]
"""A file, and the name of the model if it is one."""


def parse_files(tasks: Sequence[Task], templates: Templates, kept: Kept) -> list[ParsedFile]:
    """In the order of the tasks."""
    keys = [key_of(*task) for task in tasks]
    found = [_known(task, key, templates, kept) for task, key in zip(tasks, keys, strict=True)]
    missing = [i for i, known in enumerate(found) if known is None]
    if len(missing) >= FEWEST:
        missing = _in_parallel(missing, tasks, keys, templates, kept, found)
    for i in missing:
        found[i] = _parsed(tasks[i], keys[i], templates, kept)
    return [one for one in found if one is not None]


def _in_parallel(
    missing: Sequence[int], tasks: Sequence[Task], keys: Sequence[str], templates: Templates, kept: Kept, found: list[ParsedFile | None]
) -> list[int]:
    """Fill in what other processes, and this one beside them, can parse; what is left is returned."""
    from mvbuild.parse.workers import Workers

    with Workers([tasks[i] for i in missing], templates.project, templates.env) as workers:
        for at in workers.own:
            i = missing[at]
            found[i] = _parsed(tasks[i], keys[i], templates, kept)
        for at, text in workers.results().items():
            i = missing[at]
            kept.put(keys[i], text)
            found[i] = loaded(text, tasks[i][0], templates)
    return [i for i in missing if found[i] is None]


def _known(task: Task, key: str, templates: Templates, kept: Kept) -> ParsedFile | None:
    text = kept.get(key)
    found = loaded(text, task[0], templates) if text is not None else None
    if text is not None and found is None:
        kept.forget(key)
    return found


def _parsed(task: Task, key: str, templates: Templates, kept: Kept) -> ParsedFile:
    file, model = task
    parsed = parse_file(file, model, templates)
    text = dumped(parsed, file, templates)
    if text is not None:
        kept.put(key, text)
    return parsed
