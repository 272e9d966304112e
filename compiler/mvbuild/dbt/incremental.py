"""The settings of an incremental model + its queries -> nothing, if the full query returns dbt's table; otherwise NotProven."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.dbt.bounds import NotProven
from mvbuild.dbt.climb import conjuncts
from mvbuild.dbt.guards import Guard, Runs, guards, tree_of
from mvbuild.parse.determinism import nondeterministic_word

OF_RUNS = frozenset(
    (
        "append-keeps-rows",
        "guard-below-aggregate",
        "guard-below-join",
        "guard-changes-query",
        "guard-not-lower-bound",
        "guard-not-partition",
        "guard-other-column",
        "guard-several",
        "merge-without-key",
        "overwrites-table",
    )
)
"""Why dbt's table is not its full query, if only the runs that wrote it matter: `dbt run --full-refresh` builds the full query."""
_IDENTIFIER = re.compile(r"`[^`]+`|[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What was proven about an incremental model.

    `keys`: the table is dbt's only if these columns together are unique. `keeps`: new rows of a table can
    end others of the result, which dbt's table keeps.
    `joins`: a run leaves out rows of a guarded table, and not those that it joins with them.
    """

    guards: tuple[Guard, ...]
    keys: tuple[str, ...] = ()
    keeps: bool = True
    joins: bool = False


def shown_equal(config: Mapping[str, Any], full: str, incremental: str, model: str, adapter: str, runs: Runs) -> Shown:
    """Prove that the full query returns dbt's table. Raises NotProven."""
    strategy = _strategy(config, adapter)
    if strategy == "append":
        raise NotProven("append-keeps-rows", _append(config))
    keys = _columns(config.get("unique_key"))
    if strategy == "merge" and not keys:
        raise NotProven("merge-without-key")
    if strategy not in ("merge", "insert_overwrite"):
        raise NotProven("strategy", f"The incremental strategy '{strategy}' cannot be imported")
    try:
        found, joins = guards(full, incremental, model, runs)
    except RecursionError as exc:
        raise NotProven("guard-changes-query", "The query is nested too deeply to be compared") from exc
    partitions = _columns(config.get("partition_by"))
    if strategy == "insert_overwrite" and not partitions:
        if found:
            raise NotProven("overwrites-table")
        return Shown(guards=(), keeps=False)
    _require_no_clock(full)
    if strategy == "insert_overwrite":
        _require_moving_partitions(full, partitions)
    for guard in found:
        if strategy == "insert_overwrite" and not (guard.whole and guard.exposed & set(partitions)):
            raise NotProven("guard-not-partition", _not_partition(guard, partitions))
        if guard.newest_first and (strategy != "merge" or guard.newest_first != set(keys)):
            raise NotProven("guard-below-aggregate", "The guard leaves out rows before a window function")
    is_rewritten = bool(found) and not any(guard.newest_first for guard in found)
    return Shown(guards=found, keys=keys if strategy == "merge" else (), keeps=not is_rewritten, joins=joins)


def full_query(config: Mapping[str, Any], full: str, adapter: str) -> Shown:
    """What holds of the table that `dbt run --full-refresh` builds. Raises NotProven if it depends on when it is built."""
    _require_no_clock(full)
    strategy = _strategy(config, adapter)
    if strategy == "insert_overwrite":
        _require_moving_partitions(full, _columns(config.get("partition_by")))
    return Shown(guards=(), keys=_columns(config.get("unique_key")) if strategy == "merge" else (), keeps=False)


def _strategy(config: Mapping[str, Any], adapter: str) -> str:
    return str(config.get("incremental_strategy") or ("merge" if adapter == "databricks" else "append")).lower()


def _require_no_clock(full: str) -> None:
    word = nondeterministic_word(full)
    if word:
        raise NotProven("load-time", f"The incremental query uses '{word}': each row keeps the value of the run that wrote it")


def _append(config: Mapping[str, Any]) -> str:
    start = (
        "incremental_strategy is append" if config.get("incremental_strategy") else "dbt-spark appends unless incremental_strategy is set"
    )
    ignored = ", and ignores unique_key" if config.get("unique_key") else ""
    return f"{start}{ignored}: the table keeps every version of a row, and a query over the source does not"


def _require_moving_partitions(full: str, partitions: tuple[str, ...]) -> None:
    """Raise NotProven if a query only returns rows with one value of a partition column: dbt keeps the partitions of earlier runs."""
    for select in tree_of(full).find_all(exp.Select):
        for projection in select.expressions:
            name = projection.alias_or_name.lower()
            if name in partitions and not projection.find(exp.Column, exp.Star):
                raise NotProven("constant-partition", f"The partition column '{name}' has one value: '{projection.unalias().sql('spark')}'")
        for clause in ("where", "having", "qualify"):
            for condition in conjuncts(select.args.get(clause)):
                if column := _pinned(condition, partitions):
                    raise NotProven("constant-partition", f"'{condition.sql('spark')}' gives the rows of one partition by '{column}'")


def _pinned(condition: exp.Expr, partitions: tuple[str, ...]) -> str | None:
    """The partition column that a condition compares with a constant."""
    sides = (condition.args.get("this"), condition.args.get("expression"))
    if not isinstance(condition, (exp.EQ, exp.NullSafeEQ, exp.In)) or (isinstance(condition, exp.In) and condition.args.get("query")):
        return None
    columns = [c for side in sides if isinstance(side, exp.Expr) for c in side.find_all(exp.Column)]
    names = {c.name.lower() for c in columns}
    return next(iter(names)) if len(columns) == 1 and names <= set(partitions) else None


def _not_partition(guard: Guard, partitions: tuple[str, ...]) -> str:
    return f"insert_overwrite replaces whole partitions by {', '.join(partitions)}, and the guard is on '{guard.column}'"


def _columns(value: Any) -> tuple[str, ...]:
    """Plain column names in lower case; none if one of them is more than a name."""
    names = value if isinstance(value, (list, tuple)) else [value] if value else []
    if not all(isinstance(name, str) and _IDENTIFIER.fullmatch(name.strip()) for name in names):
        return ()
    return tuple(name.strip().strip("`").lower() for name in names)
