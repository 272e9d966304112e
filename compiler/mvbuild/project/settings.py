"""Configuration layers -> ModelConfig, SeedConfig: the settings of one node after the nearest layer won."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Literal

from mvbuild.source import Span

Materialization = Literal["materialized_view", "view", "ephemeral"]
RefreshPolicy = Literal["auto", "incremental", "incremental_strict", "full"]
Transform = Literal["identity", "year", "month", "day", "hour", "bucket", "truncate"]

EMPTY: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Setting:
    """One value that the user set, as plain Python (str, int, float, bool, None, list, dict), and where."""

    value: Any
    span: Span


Layer = Mapping[str, Setting]
"""Settings that stand at one place: a folder of mvbuild.yml, a model's YAML, a config() call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionField:
    """`month(order_date)`, `bucket(16, id)`, `truncate(4, code)` or a plain column (identity): a partition transform of Iceberg."""

    transform: Transform
    column: str
    width: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SortField:
    """`column`, `column desc`, `column asc nulls last`: one field of an Iceberg sort order (identity transform)."""

    column: str
    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """The configuration of a model. Names that are None are filled in by the graph from the target and the model's name."""

    materialized: Materialization = "materialized_view"
    enabled: bool = True
    catalog: str | None = None
    namespace: tuple[str, ...] | None = None
    alias: str | None = None
    storage_table: str | None = None
    storage_namespace: tuple[str, ...] | None = None
    partition_by: tuple[PartitionField, ...] = ()
    sort_by: tuple[SortField, ...] = ()
    table_properties: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    refresh_policy: RefreshPolicy = "auto"
    max_staleness: timedelta | None = None
    tags: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    spans: Mapping[str, Span] = field(default_factory=lambda: EMPTY)
    """Where each setting that is not a default was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedConfig:
    """The configuration of a seed. `column_types` maps column -> Spark SQL type; other columns are strings."""

    enabled: bool = True
    catalog: str | None = None
    namespace: tuple[str, ...] | None = None
    alias: str | None = None
    column_types: Mapping[str, Setting] = field(default_factory=lambda: EMPTY)
    delimiter: str = ","
    table_properties: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    tags: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
