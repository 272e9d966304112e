"""Files of the new project -> nothing, or the diagnostics of mvbuild's own compiler, at the places of the dbt project."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mvbuild import api
from mvbuild.dbt.assemble import Files, assemble, key_test_path
from mvbuild.dbt.confined import write_text
from mvbuild.dbt.import_state import DeclaredVersion, ImportState, ModelImport
from mvbuild.dbt.scorecard import Item
from mvbuild.dbt.staying import read_instead
from mvbuild.dbt.versions import declared_in
from mvbuild.diagnostics import Diagnostic, ProjectError
from mvbuild.graph.exposures import exposures_of
from mvbuild.graph.model import SeedNode
from mvbuild.project.loaded import ModelVersion
from mvbuild.project.seeds import seed_problems
from mvbuild.source import Span

_MOST_ROUNDS = 100


def prove(work: ImportState, project: Item, env: Mapping[str, str]) -> Files:
    """Compile, refuse what does not compile, and repeat until everything does. Returns the remaining files."""
    written: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="mvbuild-import-") as directory:
        for _ in range(_MOST_ROUNDS):
            cascade(work)
            files = assemble(work)
            problems = tuple(_compile(Path(directory), files, written, work.project.given_vars, env))
            if not problems:
                return files
            before = _refused(work)
            for diagnostic in problems:
                _blame(work, files, diagnostic, project, before)
            if _refused(work) == before:
                break
    project.add("does-not-compile", f"The project does not compile: {problems[0].message}")
    return {}


def cascade(work: ImportState) -> None:
    """Refuse everything that reads a refused thing."""
    readers: list[tuple[Item, Mapping[str, Span], ModelImport | None]] = [(m.item, m.reads, m) for m in work.models.values() if m.enabled]
    readers += [(item, reads, None) for _, item, reads in work.sql_tests.values()]
    readers += [(one.item, one.reads, None) for one in work.snapshot_blocks.values()]
    readers += [(described.item, described.reads, None) for described in work.described]
    readers += [(t.item, {**t.reads, **_tested(t.of, t.item.span)}, None) for t in work.generic_tests]
    is_new = True
    while is_new:
        is_new = False
        for item, reads, model in readers:
            if item.verdict == "refused":
                continue
            if model is not None and model.version is not None and _is_without_latest(work, model.version):
                message = f"The latest version of '{model.version.model}' is not imported, and ref() without a version means that one"
                item.add("versions", message, model.version.span)
                is_new = True
                continue
            for written, span in reads.items():
                name = work.named(written)
                kind = work.refused(name)
                if kind and model is not None and (found := next(read_instead(work, model, name), None)):
                    if name not in model.as_sources:
                        model.as_sources[name] = found
                        item.add("reads-table-of-dbt", f"It reads the {kind} '{found.name}', which stays in dbt, as a source", span)
                elif kind:
                    item.add("reads-refused", f"It reads the {kind} '{name.removeprefix('source.')}', which is refused", span)
                    is_new = True


def _is_without_latest(work: ImportState, version: ModelVersion) -> bool:
    latest = work.models.get(work.latest[version.model.lower()])
    return latest is None or latest.item.verdict == "refused"


def _tested(of: str, span: Span) -> dict[str, Span]:
    kind, _, name = of.partition(".")
    if kind == "source":
        return {f"source.{name.partition('.')[0].lower()}": span}
    return {name.lower(): span} if kind in ("model", "seed", "snapshot") else {}


def _refused(work: ImportState) -> frozenset[int]:
    """The id() of each item."""
    return frozenset(id(item) for item in work.items if item.verdict == "refused")


def _compile(root: Path, files: Files, written: dict[str, str], vars: Mapping[str, Any], env: Mapping[str, str]) -> Iterator[Diagnostic]:
    """In one directory for all rounds, so that each only parses what the one before changed. `written`: path -> text of that one."""
    for path in written.keys() - files.keys():
        (root / path).unlink()
        del written[path]
    for path, text in files.items():
        if written.get(path) != text.text:
            write_text(root, path, text.text)
            written[path] = text.text
    try:
        graph = api.compile(root, vars=vars, env=env)
        yield from graph.problems
        # Read now, because a wrong one is an error of the commands that read them.
        _ = exposures_of(graph), graph.unit_tests
        yield from seed_problems(node.seed for node in graph.nodes.values() if isinstance(node, SeedNode))
    except ProjectError as exc:
        yield from (d for d in exc.diagnostics if d.severity == "error")


def _blame(work: ImportState, files: Files, diagnostic: Diagnostic, project: Item, refused: frozenset[int]) -> None:
    """Refuse the thing that a diagnostic is about. `refused`: what was before, so it cannot be that."""
    span = diagnostic.span
    text = files.get(span.file.path) if span else None
    origin = text.span(span.start, max(span.end, span.start + 1)) if text and span else None
    item = _item_at(work, span.file.path if span else "", origin, refused) or _seed_of(work, diagnostic) or project
    item.add("does-not-compile", f"{diagnostic.message} ({diagnostic.code})", origin, help=diagnostic.help)


def _seed_of(work: ImportState, diagnostic: Diagnostic) -> Item | None:
    """A type in the project file may not fit the header of a seed."""
    named = (s.item for s in work.seeds.values() if diagnostic.code == "bad-seed" and diagnostic.message.startswith(f"{s.file.path} "))
    return next(named, None)


def _item_at(work: ImportState, path: str, origin: Span | None, refused: frozenset[int]) -> Item | None:
    place = origin.file.path if origin else path
    items = (*((t.item, t.whole) for t in work.generic_tests), *((one.item, one.item.span) for one in work.described))
    for item, whole in items:
        is_here = origin is not None and whole.file.path == place and whole.start <= origin.start < max(whole.end, whole.start + 1)
        if is_here and id(item) not in refused:
            return item
    for model in work.models.values():
        if model.template.path == place or (path == key_test_path(work, model) and origin == model.item.span):
            return model.item
    for one in work.snapshot_blocks.values():
        if origin == one.item.span:
            return one.item
    for seed in work.seeds.values():
        if seed.file.path in (place, path):
            return seed.item
    if place in work.sql_tests:
        return work.sql_tests[place][1]
    for template in work.macro_files:
        if template.path == place:
            return _macro_at(work, template.macros, origin)
    return _described_at(work, place, origin)


def _macro_at(work: ImportState, blocks: Mapping[str, Span], origin: Span | None) -> Item | None:
    names = [n for n, block in blocks.items() if origin and block.start <= origin.start < block.end] or list(blocks)
    return next((work.macro_items[n] for n in names if work.macro_items[n].verdict != "refused"), None)


def _version_at(work: ImportState, versions: list[DeclaredVersion], origin: Span) -> Item | None:
    """The version whose YAML contains a place, or the first one that is not refused: what a model declares is about all versions."""
    models = [(one, work.models[key]) for one in versions if (key := one.version.name.lower()) in work.models]
    own = [model.item for one, model in models if one.item.span.start <= origin.start <= one.item.span.end]
    return next((item for item in (*own, *(model.item for _, model in models)) if item.verdict != "refused"), None)


def _described_at(work: ImportState, path: str, origin: Span | None) -> Item | None:
    """The model, seed or source whose YAML contains a place."""
    from mvbuild.dbt.read import items_of, text_of

    for file in work.project.yamls:
        if file.file.path != path or origin is None:
            continue
        things: tuple[tuple[str, Mapping[str, Item]], ...] = (
            ("models", {k: m.item for k, m in work.models.items()}),
            ("seeds", {k: s.item for k, s in work.seeds.items()}),
            ("sources", work.sources),
        )
        for section, items in things:
            for node in items_of(file.tree, section):
                if node.span.start <= origin.start <= node.span.end:
                    versions = declared_in(work, node) if section == "models" else []
                    return _version_at(work, versions, origin) if versions else items.get((text_of(node, "name") or "").lower())
    return None
