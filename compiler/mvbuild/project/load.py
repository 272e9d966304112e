"""project directory -> LoadedProject: every file read, every YAML key checked, nothing rendered or parsed of the SQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from mvbuild.diagnostics import Diagnostic, Note, ProjectError, did_you_mean, error
from mvbuild.project.files import LARGEST_SEED, Found, Listing, list_files, read_all, read_bytes
from mvbuild.project.folders import FolderLayers, read_folders
from mvbuild.project.kept import NAME as KEPT_NAME
from mvbuild.project.kept import Kept, Unkept, digest
from mvbuild.project.loaded import LoadedProject, ModelFile, Properties, Seed
from mvbuild.project.project_file import ProjectFile, Templates, read_project_file
from mvbuild.project.properties import CODEC, KEPT, Described, Entry, Said, read_properties
from mvbuild.project.seeds import checksum, type_problems
from mvbuild.project.settings import KNOWN_MODEL_SETTINGS, KNOWN_SEED_SETTINGS, Layer, check_layer, check_seed_layer, seed_config
from mvbuild.project.yaml_spans import read_yaml
from mvbuild.source import SourceFile, Span

_YAML = (".yml", ".yaml")


def load_project(
    root: Path,
    *,
    target: str | None,
    vars: Mapping[str, Any],
    env: Mapping[str, str],
    target_path: Path | None = None,
    threads: int | None = None,
) -> LoadedProject:
    """Raises one ProjectError with the errors of all files."""
    root = root.resolve()
    report: list[Diagnostic] = []
    project, templates = read_project_file(root, target=target, vars=vars, env=env, threads=threads, report=report)
    output = root / (target_path or project.target_path)
    lists = {kind: list_files(root, paths, without=output) for kind, paths in project.paths.items()}
    kept = Kept(output / KEPT_NAME)
    described = _described(root, (lists["model"], lists["seed"]), project.file, templates, kept, report)
    models = _models(root, project, lists["model"], described, report)
    seeds = _seeds(root, project, lists["seed"], described, report)
    report += _collisions(models, seeds)
    report += _undescribed(models, seeds, described)
    loaded = LoadedProject(
        root=root,
        name=project.name,
        version=project.version,
        file=project.file,
        target=project.target,
        target_names=project.target_names,
        target_path=output,
        publish=project.publish,
        vars=project.vars,
        models=tuple(models),
        seeds=tuple(seeds),
        sources=tuple(described.sources[key] for key in sorted(described.sources)),
        macros=_sql(root, lists["macro"], report),
        tests=_sql(root, lists["test"], report),
        lint=project.lint,
        documents=tuple(described.files),
        kept=kept,
    )
    if report:
        raise ProjectError(_each_once(report))
    return loaded


def _described(
    root: Path, lists: Iterable[Listing], project_file: SourceFile, templates: Templates, kept: Kept, report: list[Diagnostic]
) -> Described:
    described = Described()
    found = {f.path: f for listing in lists for f in listing.files if f.suffix in _YAML and f.path != project_file.path}
    for _, file in read_all(root, found.values(), report):
        described.files.append(file)
        _describe(file, described, templates, kept, report)
    return described


def _describe(file: SourceFile, described: Described, templates: Templates, kept: Kept, report: list[Diagnostic]) -> None:
    """What a file says without a template and without a mistake is kept."""
    key = digest("yaml", file.path, file.text)
    known = kept.get(key)
    if known is not None and (said_before := _loaded(known, file)) is not None:
        for kind, said in said_before:
            described.add(kind, said, report)
        return
    tree, wrong = read_yaml(file)
    report += wrong
    if tree is None:
        return
    before = len(report)
    rendered = templates.render(tree, file.text, KEPT)
    found = []
    for kind, said in read_properties(file, rendered, report):
        found.append((kind, said))
        described.add(kind, said, report)
    if rendered is tree and len(report) == before and not wrong:
        with suppress(Unkept):
            kept.put(key, CODEC.dumps(tuple(found), file))


def _loaded(known: str, file: SourceFile) -> tuple[Said, ...] | None:
    try:
        found: tuple[Said, ...] = CODEC.loads(known, file)
    except Unkept:
        return None
    return found


def _models(root: Path, project: ProjectFile, listing: Listing, described: Described, report: list[Diagnostic]) -> list[ModelFile]:
    found = [f for f in listing.files if f.suffix == ".sql"]
    known = {*listing.folders, *((*f.folders, f.stem) for f in found)}
    layers = read_folders(project.models, project=project.name, known=known, settings=KNOWN_MODEL_SETTINGS, report=report)
    for layer in _distinct(layers, described.models.values()):
        report += check_layer(layer)
    models = []
    for item, file in read_all(root, found, report):
        entry = described.models.get(item.stem.lower())
        models.append(
            ModelFile(
                name=item.stem,
                file=file,
                folders=item.folders,
                layers=(*layers.of(item.folders, item.stem), *(entry.layers if entry else ())),
                properties=entry.properties if entry else Properties(),
            )
        )
    return models


def _seeds(root: Path, project: ProjectFile, listing: Listing, described: Described, report: list[Diagnostic]) -> list[Seed]:
    found = [f for f in listing.files if f.suffix == ".csv"]
    known = {*listing.folders, *((*f.folders, f.stem) for f in found)}
    layers = read_folders(project.seeds, project=project.name, known=known, settings=KNOWN_SEED_SETTINGS, report=report)
    for layer in _distinct(layers, described.seeds.values()):
        report += check_seed_layer(layer)
    return [seed for item in found if (seed := _seed(root, item, layers, described.seeds.get(item.stem.lower()), report))]


def _seed(root: Path, item: Found, layers: FolderLayers, entry: Entry | None, report: list[Diagnostic]) -> Seed | None:
    config, _ = seed_config((*layers.of(item.folders, item.stem), *(entry.layers if entry else ())))
    typed = {name.lower() for name in config.column_types}
    described = {n: s for n, s in entry.types.items() if n.lower() not in typed} if entry else {}
    config = replace(config, column_types={**described, **config.column_types})
    report += type_problems(config.column_types)
    file = root / item.path
    try:
        content = read_bytes(file, item.path, LARGEST_SEED)
    except ProjectError as exc:
        report += exc.diagnostics
        return None
    properties = entry.properties if entry else Properties()
    return Seed(name=item.stem, path=item.path, file=file, checksum=checksum(content, config), config=config, properties=properties)


def _distinct(layers: FolderLayers, entries: Iterable[Entry]) -> Iterator[Layer]:
    for folder in layers.layers.values():
        yield from folder
    for entry in entries:
        yield from entry.layers


def _collisions(models: Sequence[ModelFile], seeds: Sequence[Seed]) -> Iterator[Diagnostic]:
    """ref() knows one table of a name, and Spark ignores case."""
    first: dict[str, tuple[str, Span]] = {}
    named = [("model", m.name, m.file.line_span(1)) for m in models]
    named += [("seed", s.name, Span(SourceFile(s.path, ""), 0, 0)) for s in seeds]
    for what, name, span in named:
        other = first.setdefault(name.lower(), (what, span))
        if other[1] is not span:
            notes = (Note(message=f"the other {other[0]}", span=other[1]),)
            yield error("duplicate-name", f"There is already a {other[0]} called '{name}'", span, notes=notes)


def _undescribed(models: Sequence[ModelFile], seeds: Sequence[Seed], described: Described) -> Iterator[Diagnostic]:
    groups: tuple[tuple[str, dict[str, Entry], list[str]], ...] = (
        ("model", described.models, [m.name for m in models]),
        ("seed", described.seeds, [s.name for s in seeds]),
    )
    for what, entries, names in groups:
        known = {name.lower() for name in names}
        for key, entry in entries.items():
            if key not in known:
                yield error("unknown-name", f"There is no {what} '{entry.name}'", entry.span, help=did_you_mean(entry.name, names))


def _sql(root: Path, listing: Listing, report: list[Diagnostic]) -> tuple[SourceFile, ...]:
    return tuple(file for _, file in read_all(root, (f for f in listing.files if f.suffix == ".sql"), report))


def _each_once(report: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """What an anchor holds is found at each of its aliases."""
    seen: set[tuple[str, str, Span | None]] = set()
    for diagnostic in report:
        key = (diagnostic.code, diagnostic.message, diagnostic.span)
        if key not in seen:
            seen.add(key)
            yield diagnostic
