"""The types of a project as it stands on disk: LoadedProject and its parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from mvbuild.cache.entries import Cache
from mvbuild.formats.record import TableType
from mvbuild.project.settings import EMPTY, Layer, SeedConfig
from mvbuild.source import SourceFile, Span

Publish = Literal["each", "atomic"]
"""Every MV in a commit of its own, or all that a run made in one."""
TestKind = Literal["not_null", "unique", "accepted_values", "relationships"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTest:
    """A generic data test of a model, seed or source.

    `arguments`: accepted_values {values: list, quote: bool}, relationships {to: str (a ref() or source() expression or a table name),
    field: str}. `column` is None for a `unique`-like test of a whole table, which none of the built-in kinds is today.
    """

    kind: TestKind
    column: str
    arguments: Mapping[str, Any]
    severity: Literal["error", "warn"]
    where: str | None
    name: str
    span: Span
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
class Properties:
    """What YAML says of a model, seed or source table, but for its configuration."""

    description: str = ""
    columns: tuple[Column, ...] = ()
    tests: tuple[DataTest, ...] = ()
    patch_path: str | None = None
    """The YAML file, relative to the project."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """A model before its template is rendered. `layers` run from the farthest (project file) to the nearest (its own YAML)."""

    name: str
    file: SourceFile
    folders: tuple[str, ...]
    """Folders between the model path and the file."""
    layers: tuple[Layer, ...]
    properties: Properties


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    """A CSV file. Its rows are read only where they are needed: see `seeds.read`."""

    name: str
    path: str
    """Relative to the project."""
    file: Path
    checksum: str
    """SHA-256 of the bytes of the file together with the declared types: when it changes the seed is loaded again."""
    config: SeedConfig
    properties: Properties


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTable:
    """A declared table of a source that mvbuild reads and never writes."""

    source: str
    name: str
    catalog: str | None
    namespace: tuple[str, ...]
    identifier: str
    """The table's name in the catalog."""
    type: TableType = "iceberg-metastore"
    path: str | None = None
    """Where the table lies, as it was written; only for the two file-system types."""
    options: Mapping[str, str] = field(default_factory=lambda: EMPTY, repr=False)
    """`properties:` of the YAML: PyIceberg's catalog properties of another metastore, or options of the storage for a path."""
    properties: Properties
    tags: tuple[str, ...]
    meta: Mapping[str, Any]
    span: Span
    places: Mapping[str, Span] = field(default_factory=dict, compare=False)
    """Where `catalog`, `path` and `properties` were written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings:
    """Spark of a target: `master` for a session of its own, or `remote` for Spark Connect; `config` is passed on as it is."""

    master: str = "local[*]"
    remote: str | None = field(default=None, repr=False)
    config: Mapping[str, str] = field(default_factory=lambda: EMPTY, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a project is built. `catalog` holds PyIceberg's catalog properties, `type` among them."""

    name: str
    catalog_name: str
    catalog: Mapping[str, str] = field(repr=False)
    """With its secrets, which a notebook must not show with a Graph."""
    namespace: tuple[str, ...]
    spark: SparkSettings
    threads: int
    embedded: bool
    """True for the catalog that mvbuild creates in the project directory."""
    span: Span | None = None
    """Where the project file configures the catalog."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedProject:
    """Everything that was read from the project directory, checked for form, nothing rendered or parsed."""

    root: Path
    name: str
    version: str | None
    file: SourceFile
    """mvbuild.yml."""
    target: Target
    target_names: tuple[str, ...]
    target_path: Path
    publish: Publish = "each"
    """What a run does with what it built, unless it is told on the command line."""
    branch: str | None = None
    """The Iceberg branch that stands for the project's tables; None for `main`."""
    vars: Mapping[str, Any]
    models: tuple[ModelFile, ...]
    seeds: tuple[Seed, ...]
    sources: tuple[SourceTable, ...]
    macros: tuple[SourceFile, ...]
    tests: tuple[SourceFile, ...]
    """SQL tests: a query each that returns the rows that are wrong."""
    lint: Layer = field(default_factory=lambda: EMPTY)
    """Levels of lint rules, as mvbuild.yml has them."""
    documents: tuple[SourceFile, ...] = ()
    """The YAML files below the model and seed paths."""
    cache: Cache = field(default_factory=Cache, repr=False, compare=False)
    """What earlier runs have made of the same files."""
