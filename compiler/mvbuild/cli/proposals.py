"""the beginning of a value -> its possible completions in a shell, which shows no errors of the project."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from mvbuild.project.loaded import LoadedProject

Proposer = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]
_HEAD = re.compile(r"(?:.*,)?(?:@|\d*\+)?", re.DOTALL)
"""The part of a selector before the name: other criteria, and `+`."""


def _proposed(given: Callable[[click.Context, str], Iterable[str]]) -> Proposer:
    def propose(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
        from click.shell_completion import CompletionItem

        try:
            return [CompletionItem(word) for word in dict.fromkeys(given(ctx, incomplete)) if word.startswith(incomplete)]
        except Exception:  # noqa: BLE001 - see above
            return []

    return propose


def _targets(ctx: click.Context, incomplete: str) -> Iterable[str]:  # noqa: ARG001
    from mvbuild.project.files import read_text
    from mvbuild.project.project_file import NAMES
    from mvbuild.project.targets import names
    from mvbuild.project.yaml_spans import MapNode, read_yaml

    root = _root(ctx)
    tree, _ = read_yaml(read_text(root, next(name for name in NAMES if (root / name).is_file())))
    return names(tree) if isinstance(tree, MapNode) else ()


def _selectors(ctx: click.Context, incomplete: str) -> Iterable[str]:  # noqa: ARG001
    from mvbuild.project.files import read_text
    from mvbuild.project.yaml_spans import plain, read_yaml
    from mvbuild.selection.selectors_file import FILES

    root = _root(ctx)
    tree, _ = read_yaml(read_text(root, next(name for name in FILES if (root / name).is_file())))
    return [one["name"] for one in plain(tree)["selectors"]] if tree is not None else ()


def _names(ctx: click.Context, incomplete: str) -> Iterable[str]:  # noqa: ARG001
    return _files(ctx, ("model",))


def _selections(ctx: click.Context, incomplete: str) -> Iterator[str]:
    head = _HEAD.match(incomplete)
    before = head[0] if head else ""
    method, colon, _ = incomplete[len(before) :].partition(":")
    if colon:
        yield from (f"{before}{method}:{value}" for value in _values(ctx, method))
        return
    from mvbuild.selection.methods import METHODS

    yield from (f"{before}{name}" for name in _files(ctx, ("model", "seed")))
    if incomplete[len(before) :]:
        yield from (f"{before}{name}:" for name in METHODS)


def _values(ctx: click.Context, method: str) -> Iterable[str]:
    """The values of a selector method."""
    if method == "tag":
        return sorted(set(_tags(_loaded(ctx))))
    if method == "source":
        sources = _loaded(ctx).sources
        return sorted({name for s in sources for name in (s.source, f"{s.source}.{s.name}")})
    if method == "path":
        return sorted({path for model in _loaded(ctx).models for path in _folders(model.file.path)})
    if method == "selector":
        return _selectors(ctx, "")
    if method == "config.materialized":
        return ("materialized_view", "view", "ephemeral")
    return {"resource_type": ("model", "seed", "source", "test"), "state": ("modified", "new"), "result": ("error", "fail")}.get(method, ())


def _tags(project: LoadedProject) -> Iterator[str]:
    layers = [layer for model in project.models for layer in model.layers]
    values = [layer["tags"].value for layer in layers if "tags" in layer] + [s.config.tags for s in project.seeds]
    for value in values:
        yield from (value,) if isinstance(value, str) else value
    for source in project.sources:
        yield from source.tags


def _folders(path: str) -> Iterator[str]:
    yield path
    yield from (str(parent) for parent in Path(path).parents if str(parent) != ".")


def _loaded(ctx: click.Context) -> LoadedProject:
    from mvbuild.project.load import load_project

    return load_project(_root(ctx), target=ctx.params.get("target"), vars={}, env=os.environ)


def _files(ctx: click.Context, kinds: tuple[str, ...]) -> list[str]:
    """Names of models and seeds from their file names: completion must not wait until a project is read."""
    from mvbuild.project.files import list_files
    from mvbuild.project.project_file import read_project_file

    root = _root(ctx).resolve()
    project, _ = read_project_file(root, target=ctx.params.get("target"), vars={}, env=os.environ, threads=None, report=[])
    suffixes = {"model": ".sql", "seed": ".csv"}
    found = ((kind, list_files(root, project.paths[kind], without=root / project.target_path)) for kind in kinds)
    return [file.stem for kind, listing in found for file in listing.files if file.suffix == suffixes[kind]]


def _root(ctx: click.Context) -> Path:
    return Path(ctx.params.get("project_dir") or ".")


def directories(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The shell completes directories itself."""
    return click.Path(file_okay=False).shell_complete(ctx, param, incomplete)


targets, selectors, names, selections = (_proposed(given) for given in (_targets, _selectors, _names, _selections))
"""For --target, --selector, a model as an argument, and --select."""
