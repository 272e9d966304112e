"""A setting of a dbt model or seed -> whether it is kept, removed, or a reason to refuse the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from mvbuild.project.settings import MODEL_SETTINGS, SEED_SETTINGS

Fate = Literal["keep", "remove", "refuse"]

_LAYOUT = (
    "file_format", "location_root", "clustered_by", "buckets", "options", "compression", "liquid_clustered_by", "auto_liquid_cluster",
    "zorder", "persist_docs", "docs", "quoting", "on_configuration_change", "databricks_compute", "databricks_tags",
    "use_uniform", "table_format", "catalog_name", "concurrent_batches", "contract", "quote_columns", "static_analysis",
    "use_safer_relation_operations", "include_full_name_in_path", "incremental_apply_config_changes", "view_update_via_alter",
)  # fmt: skip
_OF_OTHERS = (
    "copy_grants", "transient", "cluster_by", "automatic_clustering", "snowflake_warehouse", "query_tag", "secure",
    "labels", "kms_key_name", "require_partition_filter", "grant_access_to", "maximum_bytes_billed", "priority",
    "dist", "sort", "sort_type", "bind", "backup", "indexes", "unlogged",
    "properties", "on_table_exists", "view_security", "views_enabled", "format", "table_type", "external_location", "partitioned_by",
    "bucketed_by", "bucket_count", "s3_data_dir", "s3_data_naming", "s3_tmp_table_dir", "write_compression", "lf_tags_config", "lf_grants",
    "description",
)  # fmt: skip
"""How dbt-snowflake, -bigquery, -redshift, -postgres, -trino and -athena store a table. dbt-spark ignores it. What removes rows, as an
expiration does, is not here."""
INCREMENTAL = ("unique_key", "incremental_strategy", "on_schema_change", "full_refresh", "event_time")
"""Settings that only an incremental model needs; incremental.py reads them."""
MERGE_PARTS = (
    "merge_update_columns", "merge_exclude_columns", "incremental_predicates", "predicates", "merge_condition", "matched_condition",
    "not_matched_condition", "not_matched_by_source_condition", "not_matched_by_source_action", "skip_matched_step",
    "skip_not_matched_step", "merge_with_schema_evolution", "source_alias", "target_alias", "begin", "batch_size", "lookback",
)  # fmt: skip
HOOKS = ("pre-hook", "post-hook", "pre_hook", "post_hook")
_REFUSED: Mapping[str, str] = {
    **dict.fromkeys(MERGE_PARTS, "merge-partial"),
    "sql_header": "sql-header",
}
_NAMES = ("schema", "namespace", "alias", "database", "catalog", "enabled", "tags", "meta", "tblproperties", "table_properties")
KEPT = frozenset((*MODEL_SETTINGS, *_NAMES))
KEPT_OF_SEEDS = frozenset((*SEED_SETTINGS, *_NAMES))
KNOWN = frozenset((*KEPT, *KEPT_OF_SEEDS, *_LAYOUT, *INCREMENTAL, *HOOKS, *_REFUSED, "grants"))
"""Every key that is not a folder's name."""
MATERIALIZED: Mapping[str, str] = {"table": "materialized_view", "incremental": "materialized_view"}
MATERIALIZATIONS = frozenset(("table", "incremental", "view", "ephemeral", "materialized_view"))


def fate(key: str, value: Any, *, seed: bool = False) -> tuple[Fate, str]:
    """Whether a setting is kept, and the code of the reason. A hook is removed if `hooks.py` finds that it changes no row."""
    if key in (KEPT_OF_SEEDS if seed else KEPT):
        return "keep", ""
    if key in HOOKS:
        return "remove", "hook-removed"
    if key == "grants":
        return "remove", "grants"
    if key in _REFUSED and value not in (None, [], {}, ""):
        return "refuse", _REFUSED[key]
    if key == "full_refresh" and value is False and not seed:
        return "refuse", "never-full-refresh"
    if key in _LAYOUT or key in _OF_OTHERS or key in INCREMENTAL or key in _REFUSED:
        return "remove", "setting-removed"
    return "refuse", "unknown-config"
