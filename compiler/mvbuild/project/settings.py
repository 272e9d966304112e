"""Configuration layers -> ModelConfig, SeedConfig: the settings of one node after the nearest layer won."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import timedelta
from typing import Any, Literal

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, Note, did_you_mean, error
from mvbuild.formats.record import STORAGE_FORMATS, StorageFormat
from mvbuild.project import setting_values as read
from mvbuild.project.setting import EMPTY, Layer, Setting
from mvbuild.project.setting_values import Unfit
from mvbuild.project.table_properties import table_properties
from mvbuild.source import Span

Materialization = Literal["materialized_view", "view", "ephemeral"]
WhenStale = Literal["query", "serve", "fail"]
WhenTestsFail = Literal["serve", "query", "fail"]
CatalogView = Literal["definition", "storage"]
TargetLag = timedelta | Literal["downstream"]
RefreshPolicy = Literal["auto", "incremental", "incremental_strict", "full"]
AuxiliaryViews = Literal["auto", "never", "always"]
Access = Literal["private", "protected", "public"]
ACCESSES: tuple[Access, ...] = ("private", "protected", "public")
Transform = Literal["identity", "year", "month", "day", "hour", "bucket", "truncate"]


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
class MaintainPolicy:
    """What `mvbuild maintain` does with an MV's storage."""

    compact: bool = True
    """Rewrite small files, and data files with delete files."""
    expire_after: timedelta = timedelta(days=5)
    """A snapshot that stopped being current longer ago than this may be removed, unless a refresh of the history or a downstream MV needs
    it."""
    orphans_after: timedelta = timedelta(days=3)
    """A file that no metadata refers to and that is older than this is removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """The configuration of a model. Names that are None are set by the graph from the target and the model's name."""

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
    target_lag: TargetLag | None = None
    """How far `mvbuild watch` may let it fall behind; None: it is refreshed as soon as something that it reads changes."""
    auxiliary_views: AuxiliaryViews = "auto"
    """Whether inner results of the query are kept in tables of their own, from which the MV is refreshed."""
    when_stale: WhenStale = "query"
    when_tests_fail: WhenTestsFail = "serve"
    serve_unknown: bool = False
    storage_format: StorageFormat | None = None
    """None: the project's setting, otherwise table-properties."""
    refresh_history: int | Literal["all"] = 1
    """How many refreshes are kept for time travel."""
    catalog_view: CatalogView = "definition"
    float_tolerance: float | None = None
    """None: floating-point results must be exactly those of a full recomputation."""
    dialects: tuple[str, ...] = ()
    group: str | None = None
    access: Access = "protected"
    """Which models may read it: those of its group, or all of the project."""
    contract: bool = False
    """Whether the columns declared in YAML must be those of the query."""
    previous_name: str | None = None
    maintain: MaintainPolicy = MaintainPolicy()
    lint: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    """Rule -> level, or a mapping of level and options; only `lint` knows the rules."""
    tags: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    spans: Mapping[str, Span] = field(default_factory=lambda: EMPTY)
    """Where each setting that is not a default was written; for table properties under `table_properties.<name>`."""


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
    group: str | None = None
    tags: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    spans: Mapping[str, Span] = field(default_factory=lambda: EMPTY, compare=False)
    """Where each setting that is not a default was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingKey:
    """A configuration key: how its value is read, how nearer layers change farther ones, and what it is for."""

    read: Callable[[str, Setting], Any]
    field: str
    """The field of ModelConfig or SeedConfig."""
    doc: str
    kind: str
    """The shape of the value, as keys.py calls it."""
    merge: Literal["nearest", "append", "update"] = "nearest"


_DELIVERED = "materialized_view is what you want: mvbuild finds the increments by itself."
_MATERIALIZED = read.OneOf(
    ("materialized_view", "view", "ephemeral"), dict.fromkeys(("table", "incremental", "dynamic_table", "streaming_table"), _DELIVERED)
)
_ACCESS = read.OneOf(ACCESSES)
_AUXILIARY = read.OneOf(("auto", "never", "always"))
_POLICY = read.OneOf(("auto", "incremental", "incremental_strict", "full"))
FORMAT = read.OneOf(STORAGE_FORMATS)
_WHEN_STALE = read.OneOf(("query", "serve", "fail"))
_WHEN_TESTS_FAIL = read.OneOf(("serve", "query", "fail"))
_CATALOG_VIEW = read.OneOf(("definition", "storage"))


def storage_format(key: str, setting: Setting) -> str | None:
    found: str | None = read.only_key(key, setting, "format", FORMAT)
    return found


def maintain_policy(key: str, setting: Setting) -> MaintainPolicy:
    return MaintainPolicy(**read.maintain(key, setting))


_SHARED = {
    "enabled": SettingKey(read=read.flag, field="enabled", kind="flag", doc="false removes it from the project."),
    "catalog": SettingKey(read=read.text, field="catalog", kind="text", doc="Its catalog. Default: the target's."),
    "namespace": SettingKey(
        read=read.namespace, field="namespace", kind="namespace", doc="Its namespace in the catalog. Default: the target's."
    ),
    "alias": SettingKey(read=read.text, field="alias", kind="text", doc="Its name in the catalog, if it differs from the file's name."),
    "table_properties": SettingKey(
        read=table_properties,
        field="table_properties",
        kind="mapping",
        doc="Properties of the Iceberg table. A property that you remove here is removed from the MV's table by the next run;"
        " `format-version` only counts for a new table.",
        merge="update",
    ),
    "tags": SettingKey(read=read.texts, field="tags", kind="texts", doc="Tags to select by: `--select tag:daily`.", merge="append"),
    "group": SettingKey(read=read.text, field="group", kind="text", doc="The [group](model-access.md) that it belongs to."),
    "meta": SettingKey(read=read.mapping, field="meta", kind="mapping", doc="Your own keys; mvbuild keeps them.", merge="update"),
}

MODEL_SETTINGS: Mapping[str, SettingKey] = {
    "materialized": SettingKey(
        read=_MATERIALIZED, field="materialized", kind="text", doc="materialized_view (the default), view or ephemeral."
    ),
    **_SHARED,
    "storage_table": SettingKey(read=read.text, field="storage_table", kind="text", doc="Name of the MV's storage table."),
    "storage_namespace": SettingKey(
        read=read.namespace, field="storage_namespace", kind="namespace", doc="Namespace of the MV's storage table."
    ),
    "partition_by": SettingKey(
        read=read.partition_fields, field="partition_by", kind="texts", doc="Partition fields: `month(order_date)`, `bucket(16, id)`, `c`."
    ),
    "sort_by": SettingKey(read=read.sort_fields, field="sort_by", kind="texts", doc="Sort fields: `a`, `a desc`, `a asc nulls last`."),
    "refresh_policy": SettingKey(
        read=_POLICY,
        field="refresh_policy",
        kind="text",
        doc="How an MV is [refreshed](incremental.md). auto (the default): the cheapest correct way; incremental: a warning if "
        "only a full refresh is correct; incremental_strict: an error; full: always in full.",
    ),
    "auxiliary_views": SettingKey(
        read=_AUXILIARY,
        field="auxiliary_views",
        kind="text",
        doc="Whether inner results of an MV's query are kept in [auxiliary views](incremental.md), from which it is refreshed: auto (the "
        "default: where they pay off), never, or always (wherever the query has a part that is worth it).",
    ),
    "freshness": SettingKey(
        read=read.max_staleness,
        field="max_staleness",
        kind="mapping",
        doc="{max_staleness: 30m}: how old served rows may be. A duration.",
    ),
    "target_lag": SettingKey(
        read=read.target_lag,
        field="target_lag",
        kind="text",
        doc="How far [`mvbuild watch`](watch.md) may let it fall behind: a duration, or downstream: it is refreshed when an MV that reads "
        "it needs that. Default: as soon as something that it reads changes.",
    ),
    "when_stale": SettingKey(
        read=_WHEN_STALE,
        field="when_stale",
        kind="text",
        doc="What a reader gets when the MV is stale: query (the default) runs its query, serve returns the storage, fail refuses.",
    ),
    "when_tests_fail": SettingKey(
        read=_WHEN_TESTS_FAIL,
        field="when_tests_fail",
        kind="text",
        doc="What a reader gets while the newest data of the MV fails its data tests: serve (the default) returns the last good refresh, "
        "query runs the query anyway, fail refuses. See [serving](serving.md).",
    ),
    "serve_unknown": SettingKey(
        read=read.flag,
        field="serve_unknown",
        kind="flag",
        doc="true serves a storage whose freshness is unknown; otherwise it counts as stale.",
    ),
    "storage": SettingKey(
        read=storage_format,
        field="storage_format",
        kind="mapping",
        doc="{format: table-properties | metadata-file}: how its record is stored.",
    ),
    "refresh_history": SettingKey(
        read=read.history,
        field="refresh_history",
        kind="scalar",
        doc="How many refreshes to keep for time travel: a number, or all. Default: 1.",
    ),
    "catalog_view": SettingKey(
        read=_CATALOG_VIEW,
        field="catalog_view",
        kind="text",
        doc="What the view in the catalog selects: the definition (the default), or the storage, for engines that do not know MVs.",
    ),
    "float_tolerance": SettingKey(
        read=read.tolerance,
        field="float_tolerance",
        kind="scalar",
        doc="Allowed difference of floating-point results from a full refresh, relative to the larger value: a number. Default: none.",
    ),
    "dialects": SettingKey(
        read=read.texts,
        field="dialects",
        kind="texts",
        doc="Other SQL dialects to write the view in: [trino]. The nearest list replaces the others; [] is none.",
    ),
    "previous_name": SettingKey(
        read=read.text, field="previous_name", kind="text", doc="Former name of the model: what it has in the catalog is renamed."
    ),
    "contract": SettingKey(
        read=read.contract,
        field="contract",
        kind="any",
        doc="enforced, or {enforced: true}: names, order and types of the [columns](columns.md) must be as declared.",
    ),
    "access": SettingKey(
        read=_ACCESS,
        field="access",
        kind="text",
        doc="[Which models](model-access.md) may read it: private (those of its group), protected (all of the project; the default) or "
        "public.",
    ),
    "maintain": SettingKey(
        read=maintain_policy,
        field="maintain",
        kind="mapping",
        doc="{compact: true, expire_after: 5d, orphans_after: 3d}: what `mvbuild maintain` does. The last two are durations.",
    ),
    "lint": SettingKey(
        read=read.mapping,
        field="lint",
        kind="mapping",
        doc="Levels of [lint rules](lint.md) here: `{select-star: error, missing-tests: off}`.",
        merge="update",
    ),
}

SEED_SETTINGS: Mapping[str, SettingKey] = {
    **_SHARED,
    "column_types": SettingKey(
        read=read.column_types,
        field="column_types",
        kind="mapping",
        doc="Column -> Spark SQL type; other columns are strings.",
        merge="update",
    ),
    "delimiter": SettingKey(read=read.delimiter, field="delimiter", kind="text", doc="The delimiter between fields. Default: ','."),
}

ALIASES: Mapping[str, str] = {"database": "catalog", "schema": "namespace", "tblproperties": "table_properties"}
"""Words of dbt and Spark -> mvbuild's."""

KNOWN_MODEL_SETTINGS: frozenset[str] = frozenset((*MODEL_SETTINGS, *ALIASES))
KNOWN_SEED_SETTINGS: frozenset[str] = frozenset((*SEED_SETTINGS, *ALIASES))

_BY_ITSELF = "Remove it: mvbuild finds the increments by itself."
_NOT_NEEDED: Mapping[str, str] = {
    **dict.fromkeys(
        ("unique_key", "incremental_strategy", "on_schema_change", "full_refresh", "event_time", "batch_size", "lookback", "begin"),
        _BY_ITSELF,
    ),
    **dict.fromkeys(("pre_hook", "post_hook", "pre-hook", "post-hook"), "Remove it: mvbuild runs no hooks."),
    "file_format": "Remove it: every table of mvbuild is an Iceberg table.",
}


def model_config(layers: Sequence[Layer]) -> tuple[ModelConfig, tuple[Diagnostic, ...]]:
    """The configuration of a model from its layers, the farthest first."""
    values, spans, diagnostics = _merged(layers, MODEL_SETTINGS)
    values["partition_by"] = tuple(PartitionField(transform=t, column=c, width=w) for t, c, w in values.get("partition_by") or ())
    values["sort_by"] = tuple(SortField(column=c, descending=d, nulls_first=n) for c, d, n in values.get("sort_by") or ())
    config = ModelConfig(**values, spans=spans)
    return config, (*diagnostics, *_contradictions(config))


def seed_config(layers: Sequence[Layer]) -> tuple[SeedConfig, tuple[Diagnostic, ...]]:
    """The configuration of a seed, like `model_config`."""
    values, spans, diagnostics = _merged(layers, SEED_SETTINGS)
    return SeedConfig(**values, spans=spans), diagnostics


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """The value of `this` in a template: a model, and the names in the catalog that its settings give it."""

    model: str
    namespace: tuple[str, ...] | None = None
    """None: the target's."""
    alias: str | None = None

    @property
    def name(self) -> str:
        return self.alias or self.model

    def configured(self, layers: Iterable[Layer]) -> Own:
        """The same with the names that further layers set."""
        named = [{key: setting for key, setting in layer.items() if ALIASES.get(key, key) in ("namespace", "alias")} for layer in layers]
        keys = {ALIASES.get(key, key) for layer in named for key in layer}
        values = _merged(named, MODEL_SETTINGS)[0] if keys else {}
        namespace = values.get("namespace") if "namespace" in keys else self.namespace
        return Own(model=self.model, namespace=namespace, alias=values.get("alias") if "alias" in keys else self.alias)


def check_layer(layer: Layer) -> tuple[Diagnostic, ...]:
    """The unknown keys and invalid values of one layer of a model."""
    return _merged((layer,), MODEL_SETTINGS)[2]


def check_seed_layer(layer: Layer) -> tuple[Diagnostic, ...]:
    """The unknown keys and invalid values of one layer of a seed."""
    return _merged((layer,), SEED_SETTINGS)[2]


def _merged(layers: Sequence[Layer], known: Mapping[str, SettingKey]) -> tuple[dict[str, Any], dict[str, Span], tuple[Diagnostic, ...]]:
    values: dict[str, Any] = {}
    spans: dict[str, Span] = {}
    diagnostics: list[Diagnostic] = []
    for layer in layers:
        for name, setting in layer.items():
            canonical = ALIASES.get(name, name)
            key = known.get(canonical)
            if key is None:
                diagnostics.append(_unknown(name, setting, known))
            elif canonical != name and canonical in layer:
                message = f"'{name}' is an alias of '{canonical}', which is also set"
                diagnostics.append(error("duplicate-key", message, setting.key or setting.span))
            else:
                try:
                    _apply(values, spans, key, key.read(name, setting), setting)
                except Unfit as exc:
                    diagnostics.append(exc.diagnostic)
    return values, spans, tuple(diagnostics)


def _apply(values: dict[str, Any], spans: dict[str, Span], key: SettingKey, value: Any, setting: Setting) -> None:
    if value is None:
        values.pop(key.field, None)
        spans.pop(key.field, None)
        return
    if key.merge == "append":
        value = tuple(dict.fromkeys((*values.get(key.field, ()), *value)))
    elif key.merge == "update":
        value = {**values.get(key.field, {}), **value}
        spans.update({f"{key.field}.{name}": setting.at(name).key or setting.at(name).span for name in setting.value or ()})
    values[key.field] = value
    spans[key.field] = setting.span


def _unknown(name: str, setting: Setting, known: Mapping[str, SettingKey]) -> Diagnostic:
    help = _NOT_NEEDED.get(name) or did_you_mean(name, (*known, *ALIASES))
    return error("unknown-key", f"Unknown setting '{name}'", setting.key or setting.span, help=help)


def _contradictions(config: ModelConfig) -> Iterator[Diagnostic]:
    if config.materialized == "materialized_view":
        if config.storage_format == "metadata-file" and config.catalog_view == "storage":
            notes = (Note(message="the MV's format", span=config.spans.get("storage_format")),)
            message = "'catalog_view: storage' needs a storage table in the catalog, and the metadata-file format has none"
            span = config.spans.get("catalog_view") or config.spans.get("storage_format")
            yield error("bad-config", message, span, help="Remove one of the two.", notes=notes)
        if config.storage_format == "metadata-file":
            yield from _not_in_a_metadata_file(config)
        elif (version := config.table_properties.get("format-version", "2")) not in ("1", "2", "3"):
            span = config.spans.get("table_properties.format-version")
            yield error(
                "bad-config", f"'format-version' must be 1, 2 or 3, not '{version}'", span, help="Remove it, or correct the number."
            )
        return
    # A format and similar settings may come from a folder, for everything in it.
    for name in ("partition_by", "sort_by"):
        if name in config.spans and getattr(config, name):
            notes = (Note(message=f"materialized as {config.materialized}", span=config.spans.get("materialized")),)
            yield error(
                "bad-config", f"'{name}' only applies to models that store rows", config.spans[name], help="Remove it.", notes=notes
            )


def _not_in_a_metadata_file(config: ModelConfig) -> Iterator[Diagnostic]:
    notes = (Note(message="the MV's format", span=config.spans.get("storage_format")),)
    for name in ("storage_table", "storage_namespace"):
        if getattr(config, name):
            message = f"'{name}' names a separate table, and in the metadata-file format the storage is part of the MV"
            help = f"Remove it; if a folder sets it, write `{name}: null`."
            yield error("bad-config", message, config.spans.get(name), help=help, notes=notes)
    if config.table_properties.get("format-version", "2") != "2":
        message = "The metadata-file format only supports tables of Iceberg's format version 2"
        yield error(
            "bad-config", message, config.spans.get("table_properties.format-version"), help="Remove 'format-version'.", notes=notes
        )
