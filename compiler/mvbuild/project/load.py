"""project directory -> LoadedProject: every file read, every YAML key checked, no SQL rendered or parsed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from mvbuild.cache.store import FILE, Cache
from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, Note, ProjectError, did_you_mean, error
from mvbuild.diagnostics.causes import first_causes
from mvbuild.project.custom_tests import custom_tests, problems
from mvbuild.project.docs_blocks import DocsBlocks, docs_blocks
from mvbuild.project.documents import read_documents
from mvbuild.project.files import LARGEST_SEED, Contents, Found, Listing, list_files
from mvbuild.project.folders import FolderLayers, read_folders
from mvbuild.project.loaded import LoadedProject, ModelFile, Properties, Seed
from mvbuild.project.packages import Package, read_packages
from mvbuild.project.project_file import ProjectFile, Templates, read_project_file
from mvbuild.project.properties import Described, Entry
from mvbuild.project.seeds import checksum, type_problems
from mvbuild.project.setting import Layer
from mvbuild.project.settings import KNOWN_MODEL_SETTINGS, KNOWN_SEED_SETTINGS, check_layer, check_seed_layer, seed_config
from mvbuild.project.yaml_spans import Node
from mvbuild.source import SourceFile, Span
from mvbuild.workers import Workers

_YAML = (".yml", ".yaml")


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A project whose mvbuild.yml was read, and no other file yet."""

    root: Path
    project: ProjectFile
    templates: Templates
    """The templates of YAML."""
    output: Path
    lists: Mapping[str, Listing]
    """The files of each kind: model, seed, macro, test."""
    contents: Contents
    cache: Cache
    packages: tuple[Package, ...]
    report: list[Diagnostic]
    """The diagnostics so far; reading continues with them."""
    may_recall: bool = True
    """Whether files that have not changed since an earlier command may remain unread."""

    @cached_property
    def documents(self) -> tuple[str, ...]:
        """The YAML files below the model and seed paths."""
        found = (f for kind in ("model", "seed") for f in self.lists[kind].files)
        return tuple(dict.fromkeys(f.path for f in found if f.suffix in _YAML and f.path != self.project.file.path))

    @cached_property
    def markdown(self) -> tuple[str, ...]:
        """The files that can have docs blocks."""
        found = (f for kind in ("docs", "model", "seed", "macro") for f in self.lists[kind].files if f.suffix == ".md")
        return tuple(dict.fromkeys(f.path for f in found))

    @cached_property
    def docs(self) -> DocsBlocks:
        return docs_blocks(self.project.name, self.contents.texts(self.markdown, self.report), self.report)

    @cached_property
    def files(self) -> Mapping[str, tuple[Found, ...]]:
        """The files of each kind that have its suffix: SQL, and CSV for seeds."""
        return {kind: tuple(f for f in of.files if f.suffix == (".csv" if kind == "seed" else ".sql")) for kind, of in self.lists.items()}

    @cached_property
    def model_layers(self) -> FolderLayers:
        return self._layers("model", self.project.models, KNOWN_MODEL_SETTINGS)

    @cached_property
    def seed_layers(self) -> FolderLayers:
        return self._layers("seed", self.project.seeds, KNOWN_SEED_SETTINGS)

    def _layers(self, kind: str, node: Node | None, settings: Collection[str]) -> FolderLayers:
        if node is None:
            return FolderLayers()
        known = {*self.lists[kind].folders, *((*f.folders, f.stem) for f in self.files[kind])}
        return read_folders(node, project=self.project.name, known=known, settings=settings, report=self.report)


def open_project(
    root: Path,
    *,
    target: str | None,
    vars: Mapping[str, Any],
    env: Mapping[str, str],
    target_path: Path | None = None,
    threads: int | None = None,
) -> Opened:
    """Raises ProjectError if an error prevents reading anything else of the project."""
    root = root.resolve()
    report: list[Diagnostic] = []
    project, templates = read_project_file(root, target=target, vars=vars, env=env, threads=threads, report=report)
    output = root / (target_path or project.target_path)
    lists = {kind: list_files(root, paths, without=output) for kind, paths in project.paths.items()}
    contents = Contents(root)
    return Opened(
        root=root,
        project=project,
        templates=templates,
        output=output,
        lists=lists,
        contents=contents,
        cache=Cache(output / FILE),
        packages=read_packages(root, contents, report),
        report=report,
    )


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
    return load(open_project(root, target=target, vars=vars, env=env, target_path=target_path, threads=threads), Workers(1))


def load(opened: Opened, workers: Workers) -> LoadedProject:
    """Raises one ProjectError with the errors of all files."""
    report = opened.report
    described = describe(opened, opened.documents, workers)
    models = _models(opened, described)
    seeds = read_seeds(opened, described)
    report += _collisions(models, seeds)
    report += _undescribed(models, seeds, described)
    return loaded_project(opened, models=tuple(models), seeds=seeds, described=described)


def loaded_project(opened: Opened, *, models: tuple[ModelFile, ...], seeds: Sequence[Seed], described: Described) -> LoadedProject:
    """Add the files that only have to be read. Raises one ProjectError with all errors."""
    project, report = opened.project, opened.report
    generic = (f for f in opened.files["test"] if _is_generic(f))
    macros = tuple(opened.contents.texts((f.path for f in (*opened.files["macro"], *generic)), report))
    report += problems(described.tests, custom_tests(macros, report))
    loaded = LoadedProject(
        root=opened.root,
        name=project.name,
        version=project.version,
        file=project.file,
        target=project.target,
        target_names=project.target_names,
        target_path=opened.output,
        publish=project.publish,
        vars=project.vars,
        models=models,
        seeds=tuple(seeds),
        sources=tuple(described.sources[key] for key in sorted(described.sources)),
        groups=described.groups,
        macros=macros,
        packages=opened.packages,
        tests=tuple(opened.contents.texts((f.path for f in opened.files["test"] if not _is_generic(f)), report)),
        warnings=project.warnings,
        lint=project.lint,
        documents=tuple(described.files),
        yaml_paths=opened.documents,
        docs=opened.docs.blocks,
        python_models=tuple(f.path for f in opened.lists["model"].files if f.suffix == ".py"),
        cache=opened.cache,
        contents=opened.contents,
    )
    if report:
        raise ProjectError(first_causes([*project.warnings, *_each_once(report)]))
    return loaded


def _is_generic(found: Found) -> bool:
    """Whether a file of the test paths defines kinds of tests, and is not a test itself."""
    return found.folders[:1] == ("generic",)


def describe(opened: Opened, paths: Iterable[str], workers: Workers) -> Described:
    """What some YAML files declare together."""
    files = list(opened.contents.texts(paths, opened.report))
    described = read_documents(files, opened.templates, opened.cache.files, opened.report, workers)
    opened.docs.applied(described, opened.report)
    return described


def _models(opened: Opened, described: Described) -> list[ModelFile]:
    for layer in _distinct(opened.model_layers, described.models.values()):
        opened.report.extend(check_layer(layer))
    found = {f.path: f for f in opened.files["model"]}
    entries = described.of_files({f.stem.lower() for f in found.values()})
    texts = opened.contents.texts(found, opened.report)
    return [model_file(opened, found[file.path], file, entries.get(found[file.path].stem.lower())) for file in texts]


def model_file(opened: Opened, item: Found, file: SourceFile, entry: Entry | None) -> ModelFile:
    """`entry`: what YAML declares about the model."""
    return ModelFile(
        name=entry.name if entry and entry.version else item.stem,
        file=file,
        folders=item.folders,
        layers=(*opened.model_layers.of(item.folders, item.stem), *(entry.layers if entry else ())),
        properties=entry.properties if entry else Properties(),
        version=entry.version if entry else None,
    )


def read_seeds(opened: Opened, described: Described) -> list[Seed]:
    for layer in _distinct(opened.seed_layers, described.seeds.values()):
        opened.report.extend(check_seed_layer(layer))
    found = (_seed(opened, item, described.seeds.get(item.stem.lower())) for item in opened.files["seed"])
    return [seed for seed in found if seed]


def _seed(opened: Opened, item: Found, entry: Entry | None) -> Seed | None:
    config, _ = seed_config((*opened.seed_layers.of(item.folders, item.stem), *(entry.layers if entry else ())))
    typed = {name.lower() for name in config.column_types}
    described = {n: s for n, s in entry.types.items() if n.lower() not in typed} if entry else {}
    config = replace(config, column_types={**described, **config.column_types})
    opened.report.extend(type_problems(config.column_types))
    try:
        content = opened.contents.of(item.path, LARGEST_SEED)
    except ProjectError as exc:
        opened.report.extend(exc.diagnostics)
        return None
    properties = entry.properties if entry else Properties()
    file = opened.root / item.path
    return Seed(name=item.stem, path=item.path, file=file, checksum=checksum(content, config), config=config, properties=properties)


def _distinct(layers: FolderLayers, entries: Iterable[Entry]) -> Iterator[Layer]:
    for folder in layers.layers.values():
        yield from folder
    for entry in entries:
        yield from entry.layers


def _collisions(models: Sequence[ModelFile], seeds: Sequence[Seed]) -> Iterator[Diagnostic]:
    """ref() knows one table per name, and Spark ignores case."""
    first: dict[str, ModelFile | Seed] = {}
    named: tuple[ModelFile | Seed, ...] = (*models, *seeds)
    for one in named:
        version = one.version if isinstance(one, ModelFile) else None
        other = first.setdefault((version.model if version else one.name).lower(), one)
        if other is not one and not (version and isinstance(other, ModelFile) and other.version):
            kind, kind_of_other = ("model" if isinstance(found, ModelFile) else "seed" for found in (one, other))
            is_same = kind == kind_of_other
            notes = (Note(message=f"the other {kind}" if is_same else f"the {kind_of_other}", span=_place(other)),)
            message = f"Duplicate {kind} name '{one.name}'" if is_same else f"'{one.name}' is the name of a {kind} and of a {kind_of_other}"
            yield error("duplicate-name", message, _place(one), notes=notes)


def _place(named: ModelFile | Seed) -> Span:
    return named.file.line_span(1) if isinstance(named, ModelFile) else Span(SourceFile(named.path, ""), 0, 0)


def _undescribed(models: Sequence[ModelFile], seeds: Sequence[Seed], described: Described) -> Iterator[Diagnostic]:
    groups: tuple[tuple[str, dict[str, Entry], list[str]], ...] = (
        ("model", described.models, [m.name for m in models]),
        ("seed", described.seeds, [s.name for s in seeds]),
    )
    for what, entries, names in groups:
        known = {name.lower() for name in names}
        for key, entry in entries.items():
            if key not in known and (version := entry.version):
                message = f"The version {version.v} of '{version.model}' has no file {version.file}.sql"
                yield error("unknown-name", message, entry.span, help="Add the file, or name another one: `defined_in: ...`.")
            elif key not in known:
                yield error("unknown-name", f"Unknown {what} '{entry.name}'", entry.span, help=did_you_mean(entry.name, names))


def _each_once(report: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """The content of an anchor is found again at each of its aliases."""
    seen: set[tuple[str, str, Span | None]] = set()
    for diagnostic in report:
        key = (diagnostic.code, diagnostic.message, diagnostic.span)
        if key not in seen:
            seen.add(key)
            yield diagnostic
