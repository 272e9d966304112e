"""The settings of an incremental model + its queries -> nothing, if the full query is dbt's table; else NotProven with the reason."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mvbuild.dbt.bounds import NotProven
from mvbuild.dbt.guards import Guard, guards
from mvbuild.parse.steadiness import unsteady

_IDENTIFIER = re.compile(r"`[^`]+`|[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What was shown of an incremental model. `keys`: the table is dbt's only if these columns together are unique."""

    guards: tuple[Guard, ...]
    keys: tuple[str, ...] = ()


def shown_equal(config: Mapping[str, Any], full: str, incremental: str, model: str, adapter: str) -> Shown:
    """Raises NotProven."""
    strategy = str(config.get("incremental_strategy") or ("merge" if adapter == "databricks" else "append")).lower()
    if strategy == "append":
        raise NotProven("append-keeps-rows", _append(config))
    keys = _columns(config.get("unique_key"))
    if strategy == "merge" and not keys:
        raise NotProven("merge-without-key")
    if strategy not in ("merge", "insert_overwrite"):
        raise NotProven("strategy", f"The incremental strategy '{strategy}' is not one that can be taken over")
    try:
        found = guards(full, incremental, model)
    except RecursionError as exc:
        raise NotProven("guard-changes-query", "The query is nested too deeply to be compared") from exc
    partitions = _columns(config.get("partition_by"))
    if strategy == "insert_overwrite" and not partitions:
        if found:
            raise NotProven("overwrites-table")
        return Shown(guards=())
    word = unsteady(full)
    if word:
        raise NotProven("load-time", f"The incremental query has '{word}' in it: each row keeps the value of the run that wrote it")
    for guard in found:
        if strategy == "insert_overwrite" and not (guard.whole and guard.exposed & set(partitions)):
            raise NotProven("guard-not-partition", _not_partition(guard, partitions))
        if guard.newest_first and (strategy != "merge" or guard.newest_first != set(keys)):
            raise NotProven("guard-below-aggregate", "The guard leaves out rows before a window function")
    return Shown(guards=found, keys=keys if strategy == "merge" else ())


def _append(config: Mapping[str, Any]) -> str:
    start = (
        "incremental_strategy is append"
        if config.get("incremental_strategy")
        else "dbt-spark appends unless incremental_strategy says more"
    )
    ignored = ", and takes no notice of unique_key" if config.get("unique_key") else ""
    return f"{start}{ignored}: the table keeps every version of a row, and a query over the source does not"


def _not_partition(guard: Guard, partitions: tuple[str, ...]) -> str:
    return f"insert_overwrite replaces whole partitions by {', '.join(partitions)}, and the guard is on '{guard.column}'"


def _columns(value: Any) -> tuple[str, ...]:
    """Plain column names in small letters; nothing if one of them is more than a name."""
    names = value if isinstance(value, (list, tuple)) else [value] if value else []
    if not all(isinstance(name, str) and _IDENTIFIER.fullmatch(name.strip()) for name in names):
        return ()
    return tuple(name.strip().strip("`").lower() for name in names)
