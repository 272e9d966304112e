"""The types of a project as it is on disk: LoadedProject and its parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

from mvbuild.cache.store import Cache
from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic
from mvbuild.formats.record import TableType
from mvbuild.project.counting import DEFAULT, Counting
from mvbuild.project.files import Contents
from mvbuild.project.packages import Package
from mvbuild.project.setting import EMPTY, Layer
from mvbuild.project.settings import SeedConfig
from mvbuild.project.source_freshness import SourceFreshness
from mvbuild.source import SourceFile, Span

Publish = Literal["each", "atomic"]
"""Each MV in its own commit, or everything that a run made in one commit."""
NamespaceRule = Literal["as_written", "prefixed", "target"]
NAMESPACE_RULES: tuple[NamespaceRule, ...] = ("as_written", "prefixed", "target")
"""How the `namespace` of a model or seed becomes the one in the catalog: see `Target.namespace_of`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTest:
    """A generic data test of a model, seed or source.

    `arguments`: those of its kind, see `keys.TEST_ARGUMENTS`.
    """

    kind: str
    """A key of `keys.TEST_ARGUMENTS`."""
    column: str
    arguments: Mapping[str, Any]
    severity: Literal["error", "warn"]
    where: str | None
    name: str
    span: Span
    counting: Counting = DEFAULT
    tags: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    places: Mapping[str, Span] = field(default_factory=dict, compare=False)
    """Where the values of its arguments are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column as YAML describes it."""

    name: str
    description: str
    data_type: str | None
    tags: tuple[str, ...]
    meta: Mapping[str, Any]
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelVersion:
    """One of the `versions:` of a model, which is a model of its own."""

    model: str
    """The name that its versions share."""
    v: int | float | str
    latest: int | float | str
    """The version that a reference without one means."""
    file: str
    """The name of its file, without `.sql`."""
    span: Span

    @property
    def name(self) -> str:
        """Its own name, as in the ids of dbt: `orders.v2`."""
        return f"{self.model}.v{self.v}"

    @property
    def is_latest(self) -> bool:
        return str(self.v) == str(self.latest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deprecation:
    """`deprecation_date` of a model. `date`: ISO 8601, a day or an instant."""

    date: str
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Properties:
    """What YAML declares about a model, seed or source table, except its configuration."""

    description: str = ""
    columns: tuple[Column, ...] = ()
    tests: tuple[DataTest, ...] = ()
    deprecation: Deprecation | None = None
    patch_path: str | None = None
    """The YAML file, relative to the project."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A group of models that `groups:` declares."""

    name: str
    owner: Mapping[str, Any]
    description: str
    meta: Mapping[str, Any]
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class DocsBlock:
    """A `{% docs name %}` block of a Markdown file."""

    name: str
    text: str
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """A model before its template is rendered. `layers` run from the farthest (project file) to the nearest (its own YAML)."""

    name: str
    file: SourceFile
    folders: tuple[str, ...]
    """Folders between the model path and the file."""
    layers: tuple[Layer, ...]
    properties: Properties
    version: ModelVersion | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    """A CSV file. Its rows are only read when they are needed: see `seeds.read`."""

    name: str
    path: str
    """Relative to the project."""
    file: Path
    checksum: str
    """SHA-256 of the bytes of the file together with the declared types: if it changes, the seed is loaded again."""
    config: SeedConfig
    properties: Properties


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTable:
    """A declared table of a source, which mvbuild only reads."""

    source: str
    name: str
    catalog: str | None
    namespace: tuple[str, ...]
    identifier: str
    """The table's name in the catalog."""
    type: TableType = "iceberg-metastore"
    path: str | None = None
    """The location of the table, as written; only for the two file-system types."""
    options: Mapping[str, str] = field(default_factory=lambda: EMPTY, repr=False)
    """`properties:` of the YAML: PyIceberg's catalog properties of another metastore, or the storage options for a path."""
    properties: Properties
    tags: tuple[str, ...]
    meta: Mapping[str, Any]
    span: Span
    places: Mapping[str, Span] = field(default_factory=dict, compare=False)
    """Where `catalog`, `path` and `properties` were written."""
    freshness: SourceFreshness | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings:
    """Spark of a target: `master` for its own session, or `remote` for Spark Connect; `config` is passed on unchanged."""

    master: str = "local[*]"
    remote: str | None = field(default=None, repr=False)
    config: Mapping[str, str] = field(default_factory=lambda: EMPTY, repr=False)
    keep_warm: timedelta | None = None
    """How long its own session stays ready for the next command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a project is built. `catalog` contains PyIceberg's catalog properties, including `type`."""

    name: str
    catalog_name: str
    catalog: Mapping[str, str] = field(repr=False)
    """With its secrets, which a notebook must not show when it shows a Graph."""
    namespace: tuple[str, ...]
    spark: SparkSettings
    threads: int
    embedded: bool
    """True for the catalog that mvbuild creates in the project directory."""
    span: Span | None = None
    """Where the project file configures the catalog."""
    namespaces: NamespaceRule = "as_written"

    def namespace_of(self, configured: tuple[str, ...] | None) -> tuple[str, ...]:
        """The namespace of a model or seed in the catalog. `prefixed` is what dbt does: dev and `mart` become dev_mart."""
        if configured is None or self.namespaces == "target":
            return self.namespace
        if self.namespaces == "prefixed":
            return (*self.namespace[:-1], f"{self.namespace[-1]}_{configured[0]}", *configured[1:])
        return configured

    def prefixed(self, namespace: tuple[str, ...]) -> tuple[str, ...]:
        """The namespace in the catalog. `namespace`: as in `+namespace`, or as in the catalog already."""
        is_prefixed = namespace == self.namespace or self.as_configured(namespace) != namespace
        return namespace if self.namespaces != "prefixed" or is_prefixed else self.namespace_of(namespace)

    def as_configured(self, namespace: tuple[str, ...]) -> tuple[str, ...]:
        """The namespace as in `+namespace`. `namespace`: as in the catalog."""
        own = f"{self.namespace[-1]}_"
        if self.namespaces != "prefixed" or namespace[: len(self.namespace) - 1] != self.namespace[:-1]:
            return namespace
        first, *rest = namespace[len(self.namespace) - 1 :] or ("",)
        return (first.removeprefix(own), *rest) if first.startswith(own) else namespace


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """One call of mvbuild, as its templates and artifacts name it."""

    id: str = field(default_factory=lambda: str(uuid4()))
    started: datetime = field(default_factory=lambda: datetime.now(timezone.utc))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedProject:
    """Everything that was read from the project directory, checked for form, with nothing rendered or parsed."""

    root: Path
    name: str
    version: str | None
    file: SourceFile
    """mvbuild.yml."""
    target: Target
    target_names: tuple[str, ...]
    target_path: Path
    publish: Publish = "each"
    """How a run publishes what it built, unless the command line says otherwise."""
    branch: str | None = None
    """The Iceberg branch of the project's tables; None for `main`."""
    vars: Mapping[str, Any]
    models: tuple[ModelFile, ...]
    seeds: tuple[Seed, ...]
    sources: tuple[SourceTable, ...]
    groups: Mapping[str, Group] = field(default_factory=lambda: EMPTY)
    """By name."""
    macros: tuple[SourceFile, ...]
    """The macro files, and those of the project's own kinds of tests: `tests/generic`."""
    packages: tuple[Package, ...] = ()
    tests: tuple[SourceFile, ...]
    """SQL tests: queries that return the wrong rows."""
    warnings: tuple[Diagnostic, ...] = ()
    """About mvbuild.yml."""
    lint: Layer = field(default_factory=lambda: EMPTY)
    """Levels of lint rules in mvbuild.yml."""
    documents: tuple[SourceFile, ...] = ()
    """The YAML files below the model and seed paths."""
    yaml_paths: tuple[str, ...] = ()
    """The paths of all of them, also where only some of them were read."""
    docs: Mapping[str, DocsBlock] = field(default_factory=lambda: EMPTY, repr=False)
    """The docs blocks by name."""
    python_models: tuple[str, ...] = ()
    """The paths of dbt's Python models, which are not read."""
    invocation: Invocation = field(default_factory=Invocation, repr=False, compare=False)
    cache: Cache = field(default_factory=Cache, repr=False, compare=False)
    """What earlier commands made of the same input."""
    contents: Contents = field(default_factory=lambda: Contents(Path()), repr=False, compare=False)
    """The files, of which some may not be read yet."""
