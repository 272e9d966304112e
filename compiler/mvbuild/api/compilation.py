"""project directory -> Graph, and its files below target/: what `compile`, `ls` and `lint` need, without what only a run needs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mvbuild import __version__
from mvbuild.artifacts.compiled import write_compiled
from mvbuild.artifacts.earlier import (
    Earlier,
    earlier_artifacts,
    earlier_results,
    has_unit_tests,
    remember_artifacts,
    remember_results,
)
from mvbuild.artifacts.files import Stamp, write_executed, write_json, write_text
from mvbuild.artifacts.timestamps import timestamp
from mvbuild.cache.keys import digest
from mvbuild.diagnostics import Diagnostic, ProjectError, error
from mvbuild.diagnostics.secrets import masked
from mvbuild.graph.broken import with_broken, with_problems
from mvbuild.graph.exposures import exposures_of
from mvbuild.graph.graph_cache import frame_of, outline_of, outlined, restored
from mvbuild.graph.model import CompileOptions, Graph, IndirectSelection, ModelNode, NodeId
from mvbuild.graph.resolve import build
from mvbuild.parse.project import parse_project
from mvbuild.project.files import FilesChanged
from mvbuild.project.load import Opened, load, open_project
from mvbuild.project.loaded import ModelFile, Properties
from mvbuild.project.setting import Setting
from mvbuild.source import SourceFile
from mvbuild.workers import Workers

LOCK = "schemas.lock"
INLINE = "inline_query"
"""The name of the query that --inline gives, as in dbt."""

if TYPE_CHECKING:
    from mvbuild.freshness.observed import World
    from mvbuild.refresh.result import RunResult


def compile(
    project_dir: str | Path = ".",
    *,
    target: str | None = None,
    vars: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    target_path: Path | None = None,
    threads: int | None = None,
    branch: str | None = None,
    state: str | None = None,
    indirect: IndirectSelection = "eager",
    resource_types: tuple[str, ...] = (),
    inline: str | None = None,
    is_kept: bool = True,
) -> Graph:
    """Load, render, parse and resolve a project. No catalog, no Spark. Raises ProjectError with every error of the stage that failed.
    Raises FilesChanged if a file is changed again and again meanwhile.

    `branch`: everything done with the graph is done on that Iceberg branch of the project's tables, see docs/branches.md. `state`: what
    `state:` selectors compare with, a directory with the artifacts of another version, or a git ref. `indirect` and
    `resource_types`: what selections of nodes include. `inline`: the SQL of one more view, which is called `INLINE`.
    `is_kept`: the graph is used for longer than one command takes, and must not change when files are edited, so all of them are read now.
    """
    environment = os.environ if env is None else env

    def compiled(*, may_recall: bool) -> Graph:
        opened = open_project(Path(project_dir), target=target, vars=vars or {}, env=environment, target_path=target_path, threads=threads)
        opened = replace(opened, may_recall=may_recall)
        found = _graph(opened, environment) if inline is None else _built(opened, environment, inline)
        if is_kept:
            opened.contents.complete()
        return found

    try:
        graph = compiled(may_recall=True)
    except FilesChanged:
        graph = compiled(may_recall=False)
    if branch is not None:
        from mvbuild.lifecycle.branches import checked_name

        graph = replace(graph, project=replace(graph.project, branch=checked_name(branch)), outlined=None)
    reading = CompileOptions(target=target, vars=vars or {}, env=environment, state=state, indirect=indirect, resource_types=resource_types)
    return replace(graph, reading=reading)


def _graph(opened: Opened, env: Mapping[str, str]) -> Graph:
    """The graph, from the outline of an earlier run or from all files."""
    cache, frame = opened.cache, _with_lock(frame_of(opened, env), opened)
    outline = cache.graphs.get(frame) if frame is not None else None
    graph = restored(frame, outline, opened, env) if frame is not None and outline is not None else None
    if graph is not None:
        cache.save()
        return graph
    graph = _built(opened, env)
    if frame is not None and (outline := outline_of(graph, opened)) is not None:
        cache.graphs.put(frame, outline)
        graph = replace(graph, outlined=outlined(frame, outline, graph.nodes, graph.contracts))
    cache.save(cache.files, cache.graphs)
    return graph


def _with_lock(frame: str | None, opened: Opened) -> str | None:
    """Where a definition is published for another engine, the graph is also checked with the types in schemas.lock."""
    path = opened.root / LOCK
    try:
        return digest(frame, path.read_bytes()) if frame is not None and path.is_file() else frame
    except OSError:
        return None


def _built(opened: Opened, env: Mapping[str, str], inline: str | None = None) -> Graph:
    with Workers() as workers:
        project = load(opened, workers)
        if inline is not None:
            project = replace(project, models=(*project.models, _inline_model(inline)))
        try:
            with _beside(project.warnings):
                parsed = parse_project(project, env=env, workers=workers)
        finally:
            project.cache.save()
    with _beside(project.warnings):
        graph = _with_representations(build(project, parsed))
        with _beside(graph.problems):
            exposures_of(graph)  # what is wrong in them is an error of the project
    return graph


@contextmanager
def _beside(others: tuple[Diagnostic, ...]) -> Iterator[None]:
    """Errors are reported with what may have caused them, as a folder that does not exist."""
    try:
        yield
    except ProjectError as exc:
        raise ProjectError((*others, *exc.diagnostics)) from None


def _inline_model(sql: str) -> ModelFile:
    file = SourceFile(INLINE, sql)
    layer = {"materialized": Setting("view", file.line_span(1))}
    return ModelFile(name=INLINE, file=file, folders=(), layers=(layer,), properties=Properties())


def _with_representations(graph: Graph) -> Graph:
    """With what is wrong in dialects. Checked with the types in schemas.lock; without a lock, only what is wrong whatever the types are."""
    if not any(node.model.config.dialects for node in graph.models):
        return graph
    from mvbuild.dialects.representations import Known, dialect_problems
    from mvbuild.lineage.lock import of_lock, read_lock

    try:
        lock = read_lock(graph)
    except ProjectError:
        # Reported by the code that needs it.
        lock = None
    known = Known(schemas=of_lock(lock, graph), is_all=True) if lock is not None else Known()
    found = [(node.id, problem) for node in graph.models for problem in dialect_problems(graph, [node], known)]
    return with_broken(replace(graph, nodes=with_problems(graph.nodes, found))) if found else graph


def _known(
    graph: Graph, earlier: Earlier | None, compiled: Iterator[tuple[NodeId, Stamp]], stamps: dict[NodeId, Stamp]
) -> Callable[[NodeId], str | None]:
    """What an earlier manifest says about a node. Without one, each model is compiled just before its entry is made: other processes work
    on the next models in the meantime, and not all definitions have to be in memory."""
    if earlier is not None:
        return earlier.entry
    done: list[NodeId] = []

    def known(id: NodeId) -> str | None:
        node = graph.nodes.get(id)
        if isinstance(node, ModelNode) and id not in graph.undefined:
            while done:
                graph.definitions.pop(done.pop(), None)
            while id not in stamps:
                stamps.update((next(compiled),))
            if node.materialized != "ephemeral":
                done.append(id)
        return None

    return known


def write_artifact(graph: Graph, name: str, content: Mapping[str, Any]) -> None:
    """One more file in target/. Raises ProjectError."""
    path = graph.project.target_path
    try:
        write_json(path / name, content)
    except OSError as exc:
        raise _unwritable(path, exc) from exc


def _unwritable(path: Path, exc: OSError) -> ProjectError:
    if not path.is_symlink() or path.exists():
        return ProjectError([error("unwritable-target", f"Cannot write to {path}: {exc.strerror or exc}")])
    message = f"Cannot write to {path}: it is a link to {path.readlink()}, which does not exist"
    return ProjectError([error("unwritable-target", message, help="Create that directory, or remove the link with `mvbuild clean`.")])


def _read_with(graph: Graph) -> dict[str, Any]:
    """The options that `retry` repeats. Variables are YAML, which keeps their types."""
    import yaml

    project, given = graph.project, _without_secrets(dict(graph.reading.vars), graph.reading.env)
    try:
        text = yaml.safe_dump(given, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10_000).strip() if given else None
    except yaml.YAMLError:  # a caller from Python gave objects
        text = None
    target = project.target.name if project.target.name in project.target_names else None
    return {"target": target, "branch": project.branch, "vars": text}


def _without_secrets(value: Any, env: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _without_secrets(inner, env) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_secrets(inner, env) for inner in value]
    return masked(value, env) if isinstance(value, str) else value


def write_artifacts(
    graph: Graph, result: RunResult | None = None, *, arguments: Mapping[str, Any] | None = None, world: World | None = None
) -> bool:
    """Write target/manifest.json and target/compiled; with a result, also target/run_results.json and target/run; with the state of the
    catalog, also target/catalog.json. Returns whether the project has unit tests."""
    invocation, now = graph.project.invocation.id, timestamp(time.time_ns() // 1_000_000)
    path = graph.project.target_path
    manifest = path / "manifest.json"
    try:
        earlier = earlier_artifacts(graph, manifest)
        with Workers() as workers:
            compiled, stamps = write_compiled(graph, earlier.stamps if earlier else {}, workers), dict[NodeId, Stamp]()
            text = earlier.again(generated_at=now, invocation_id=invocation) if earlier is not None else None
            has_units = earlier.has_units if text is not None and earlier is not None else has_unit_tests(graph)
            if text is None:
                from mvbuild.artifacts.manifest import manifest_text

                known = _known(graph, earlier, compiled, stamps)
                text = manifest_text(graph, version=__version__, generated_at=now, invocation_id=invocation, known=known)
            stamp = write_text(manifest, text)
            stamps.update(compiled)
        remember_artifacts(graph, stamp, stamps, has_units=has_units)
        if result is not None:
            write_results(graph, result, arguments=arguments)
            write_executed(graph, result)
        cache = graph.project.cache
        cache.save(*([cache.fingerprints] if earlier is None else []))
        if world is not None:
            from mvbuild.artifacts.catalog import catalog

            write_json(path / "catalog.json", catalog(world, version=__version__, generated_at=now, invocation_id=invocation))
    except OSError as exc:
        raise _unwritable(path, exc) from exc
    return has_units


def write_results(graph: Graph, result: RunResult, *, arguments: Mapping[str, Any] | None = None) -> None:
    """Write target/run_results.json."""
    from mvbuild.artifacts.run_results import run_results_text

    results = graph.project.target_path / "run_results.json"
    try:
        lines = run_results_text(
            graph,
            result,
            arguments={**(arguments or {}), **_read_with(graph)},
            version=__version__,
            invocation_id=graph.project.invocation.id,
            known=earlier_results(graph, results),
        )
        remember_results(graph, write_text(results, lines))
    except OSError as exc:
        raise _unwritable(results.parent, exc) from exc
