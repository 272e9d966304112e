"""`table_properties:` -> the properties as text, or Unfit: users cannot set properties that mvbuild writes, and numbers must be numbers."""

from __future__ import annotations

from collections.abc import Mapping

from mvbuild.project.setting import Setting
from mvbuild.project.setting_values import Unfit, text_mapping

RESERVED = (
    "mvbuild.",
    "iceberg.materialized.view",
    "iceberg.base.snapshot.",
    "iceberg.view.version",
    "iceberg.child.view.version.",
    "materialized-view.",
)
"""Prefixes of the properties that identify MVs, their records and their storages."""
_WHOLE: Mapping[str, int] = {
    # Iceberg reads these as Java's int.
    **dict.fromkeys(
        (
            *(f"commit.retry.{name}" for name in ("num-retries", "min-wait-ms", "max-wait-ms", "total-timeout-ms")),
            "version.history.num-entries",
            "write.metadata.previous-versions-max",
            "write.parquet.row-group-size-bytes",
            "history.expire.min-snapshots-to-keep",
        ),
        2**31,
    ),
    **dict.fromkeys(("write.target-file-size-bytes", "history.expire.max-snapshot-age-ms"), 2**63),
}


def table_properties(key: str, setting: Setting) -> Mapping[str, str]:
    """A property that Iceberg cannot read would make every later write to the table fail."""
    found = text_mapping(key, setting)
    for name, value in found.items():
        if name.startswith(RESERVED):
            span = setting.at(name).key or setting.at(name).span
            raise Unfit(f"mvbuild writes the property '{name}' itself", span, "Remove it, or rename it.", "bad-config")
        if name in _WHOLE and not _is_whole(value, _WHOLE[name]):
            raise Unfit(
                f"'{name}' must be a non-negative integer", setting.at(name).span, f"Write it as digits: `{name}: 10`.", "bad-config"
            )
    return found


def _is_whole(text: str, limit: int) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20 and int(text) < limit
