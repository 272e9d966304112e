"""What is known of a dbt project while it is imported: ImportState, with an Item and a Draft for each thing in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any

from mvbuild.dataclass import dataclass
from mvbuild.dbt.drafts import Draft
from mvbuild.dbt.read import DbtFile, DbtProject
from mvbuild.dbt.scorecard import Item, Kind
from mvbuild.dbt.template_uses import MacroUses, Use
from mvbuild.project.loaded import ModelVersion
from mvbuild.project.setting import Layer
from mvbuild.project.yaml_spans import MapNode
from mvbuild.source import MappedText, Span


@dataclass(slots=True, kw_only=True)
class Template:
    """A SQL file. In `prepared`, tags that mvbuild's templates do not know are cut; `final` is what is written."""

    path: str
    file: DbtFile
    prepared: MappedText
    final: Draft
    uses: tuple[Use, ...] = ()
    is_incremental: tuple[Span, ...] = ()
    replaced: tuple[Span, ...] = ()
    macros: Mapping[str, Span] = field(default_factory=dict)
    """The blocks of its macros."""
    model: str = ""
    """The name of the model in it."""

    @property
    def name(self) -> str:
        return self.model or self.file.stem


@dataclass(frozen=True, slots=True, kw_only=True)
class Staying:
    """A table that dbt continues to build, and that the new project reads as a source."""

    name: str
    source: str
    schema: str
    identifier: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredVersion:
    """A version of a model in YAML. `node` is the entry of the model, `item` that of the version; `as_model` is what both declare of it."""

    version: ModelVersion
    node: MapNode
    item: MapNode
    as_model: MapNode


@dataclass(slots=True, kw_only=True)
class ModelImport:
    """A SQL model, or one version of it. `layers` run from the farthest to the nearest, `config` is their result."""

    name: str
    template: Template
    item: Item
    layers: list[Layer] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)
    enabled: bool = True
    full: MappedText | None = None
    guarded: MappedText | None = None
    """The query of an incremental model while is_incremental() is true."""
    written: MappedText | None = None
    """The query of the new model, of an incremental one."""
    run_values: Mapping[str, str] = field(default_factory=dict)
    """The given values of the variables of the run that its guarded query uses."""
    of_run: str = ""
    """The name in its full query whose value differs in each run."""
    reads: dict[str, Span] = field(default_factory=dict)
    """Models, seeds and snapshots that its full query reads, in lower case."""
    override: dict[str, str] = field(default_factory=dict)
    """Settings for a config() call of its own."""
    tested_keys: tuple[str, ...] = ()
    as_sources: dict[str, Staying] = field(default_factory=dict)
    """What it reads that stays in dbt, by its name in lower case."""
    version: ModelVersion | None = None

    @property
    def call(self) -> str:
        """How a template refers to it."""
        return f"ref('{self.version.model}', v={self.version.v!r})" if self.version else f"ref('{self.name}')"

    @property
    def table(self) -> str:
        """The name of its table in dbt, unless a setting names it."""
        return f"{self.version.model}_v{str(self.version.v).replace('.', '_')}" if self.version else self.name


@dataclass(slots=True, kw_only=True)
class SeedImport:
    name: str
    file: DbtFile
    item: Item
    layers: list[Layer] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)
    enabled: bool = True
    types: dict[str, str] = field(default_factory=dict)
    nulls: tuple[Span, ...] = ()
    override: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class TestImport:
    """A generic test in YAML. `node` is the item of the list; `sql` is the file that replaces it."""

    item: Item
    node: int
    """id() of the node in its tree."""
    whole: Span
    """The node."""
    kind: str
    """The name of the test: `unique`, `dbt_utils.accepted_range`."""
    of: str
    """The model, seed or source that it tests, as `model.x`, `source.a.b`."""
    settings: frozenset[str] = frozenset()
    """The options that it sets itself."""
    sql: tuple[str, str] | None = None
    unique: str | None = None
    """The column, in lower case, that the test proves to be unique: for all rows, and as an error."""
    reads: dict[str, Span] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class DescribedImport:
    """An exposure or a unit test. `node` is the id() of its item of the list in its tree."""

    item: Item
    section: str
    node: int
    reads: dict[str, Span] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class SnapshotImport:
    """A snapshot in a SQL file: the text between its tags, and what is written for it if it is taken: a model, and a test of it."""

    name: str
    path: str
    item: Item
    body: str
    config: dict[str, Any] = field(default_factory=dict)
    reads: dict[str, Span] = field(default_factory=dict)
    written: str = ""
    test: str = ""


@dataclass(slots=True)
class ImportState:
    project: DbtProject
    now: datetime
    """When the import began."""
    full_query: tuple[str, ...] = ()
    """The models, by name or with wildcards, whose query without is_incremental() is wanted, whatever dbt's runs make of it."""
    items: list[Item] = field(default_factory=list)
    models: dict[str, ModelImport] = field(default_factory=dict)
    """By name in lower case, which is `model.v1` for a version."""
    versions: dict[str, DeclaredVersion] = field(default_factory=dict)
    """The versions that YAML declares, by name in lower case."""
    version_files: dict[str, DeclaredVersion] = field(default_factory=dict)
    """By the name of the file in lower case, without `.sql`."""
    latest: dict[str, str] = field(default_factory=dict)
    """Model with versions -> the name of the latest one, both in lower case."""
    seeds: dict[str, SeedImport] = field(default_factory=dict)
    snapshots: dict[str, Item] = field(default_factory=dict)
    snapshot_blocks: dict[str, SnapshotImport] = field(default_factory=dict)
    """Those of SQL files."""
    snapshot_settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The settings of those that YAML declares."""
    python: dict[str, Item] = field(default_factory=dict)
    templates: dict[str, Template] = field(default_factory=dict)
    """Every SQL template by its path."""
    macros: dict[str, MacroUses] = field(default_factory=dict)
    macro_items: dict[str, Item] = field(default_factory=dict)
    macro_files: list[Template] = field(default_factory=list)
    macro_bodies: dict[str, str] = field(default_factory=dict)
    """Macro -> the text between its tags."""
    sql_tests: dict[str, tuple[Template, Item, dict[str, Span]]] = field(default_factory=dict)
    """By path: the template, its item, and what it reads."""
    generic_tests: list[TestImport] = field(default_factory=list)
    own_tests: set[str] = field(default_factory=set)
    """The kinds of tests that the project defines with `{% test %}`, without those that replace built-in ones."""
    described: list[DescribedImport] = field(default_factory=list)
    """Exposures and unit tests."""
    sources: dict[str, Item] = field(default_factory=dict)
    changes: dict[str, list[tuple[str, Any, Any]]] = field(default_factory=dict)
    """Per YAML file: ("remove", entry or node, None), ("replace", node, value)."""

    def wants_full_query(self, model: ModelImport) -> bool:
        return any(fnmatchcase(name, pattern.lower()) for pattern in self.full_query for name in names_of(model))

    def named(self, name: str, version: object = None) -> str:
        """The key of what ref() means."""
        return self.latest.get(name.lower(), name.lower()) if version is None else f"{name}.v{version}".lower()

    def item(self, kind: Kind, name: str, span: Span) -> Item:
        found = Item(kind, name, span)
        self.items.append(found)
        return found

    def remove(self, path: str, part: Any) -> None:
        self.changes.setdefault(path, []).append(("remove", part, None))

    def replace(self, path: str, node: Any, value: Any) -> None:
        self.changes.setdefault(path, []).append(("replace", node, value))

    def origin(self, span: Span) -> Span:
        """A place in a prepared template -> the place in the user's file."""
        template = self.templates.get(span.file.path)
        if template is None or template.file.file is span.file:
            return span
        start = template.prepared.span(span.start, span.start + 1).start
        end = template.prepared.span(max(span.end - 1, span.start), span.end).end
        return Span(template.file.file, start, max(start, end))

    def refused(self, name: str) -> str | None:
        """The kind of the refused thing with this name."""
        name = self.named(name)
        model, seed = self.models.get(name), self.seeds.get(name)
        if model is not None and model.item.verdict == "refused":
            return "model"
        if seed is not None and seed.item.verdict == "refused":
            return "seed"
        if name.startswith("source."):
            source = self.sources.get(name.removeprefix("source."))
            return "source" if source is not None and source.verdict == "refused" else None
        snapshot = self.snapshots.get(name)
        if snapshot is not None:
            return "snapshot" if snapshot.verdict == "refused" else None
        return "Python model" if name in self.python else None


def names_of(model: ModelImport) -> tuple[str, ...]:
    """The names that a pattern can match, in lower case: a version has that of its model too."""
    return (model.name.lower(), model.version.model.lower()) if model.version else (model.name.lower(),)
