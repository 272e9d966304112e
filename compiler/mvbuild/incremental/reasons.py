"""The codes of the reasons why a strategy cannot be used, each with what the user can do about it."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

CODES: Mapping[str, tuple[str, str]] = {
    # code: (what it means, what to do)
    "never-refreshed": ("The MV was never refreshed.", "Nothing to do: the first refresh is always full."),
    "definition-changed": ("The query has changed since the last refresh.", "Nothing to do: the next refreshes can be incremental again."),
    "storage-changed-by-others": (
        "Another writer changed the storage table, so its rows are not those of the last refresh.",
        "Do not let others write to the storage table of an MV.",
    ),
    "layout-changed": (
        "Columns, partitioning or sort order of the storage table change.",
        "Nothing to do: the next refreshes can be incremental.",
    ),
    "record-incomplete": (
        "The record of the last refresh does not name every table that is read.",
        "Nothing to do: this refresh writes a complete record.",
    ),
    "snapshot-expired": (
        "A snapshot that the last refresh read has expired, so the changes since then are unknown.",
        "Keep snapshots of base tables for longer than the time between two refreshes.",
    ),
    "source-recreated": ("A base table was dropped and recreated.", "Replace its content (INSERT OVERWRITE) instead."),
    "column-changed": (
        "A column that the query reads has changed its type or its meaning.",
        "Nothing to do: the next refreshes can be incremental again.",
    ),
    "text-not-kept": (
        "The storage is partitioned by a column with text that is not valid UTF-8, which Iceberg replaces in partitions: rows cannot be "
        "found again by it.",
        "Partition by another column, or repair the text where it comes from.",
    ),
    "partition-column-dropped": (
        "A former partition column of a base table was dropped, and the change includes files written before the drop.",
        "Nothing to do: changes to newer files can be followed. To follow changes to the old files too, rewrite them.",
    ),
    "equality-deletes": (
        "A base table has equality deletes by a field of a struct. Spark applies them or not, depending on the columns of the query.",
        "Compact the table (rewrite_data_files), and use columns that are not in a struct as the keys of its writer.",
    ),
    "files-missing": ("Files of a recorded snapshot are gone.", "Do not delete files that snapshots still refer to."),
    "non-iceberg-source": ("Changes in a table of another format cannot be read.", "Keep the table in Iceberg."),
    "nondeterministic": (
        "The query returns different rows each time (a clock, a random number, a function whose result depends on the order of rows).",
        "Take such values from a column, or order by a unique key.",
    ),
    "internal": (
        "mvbuild failed while it compared the strategies. A full refresh does not need what failed.",
        "Please report it, with the query and the message.",
    ),
    "clock-moved": (
        "The query reads a different day, hour ... than at the last refresh, and its new rows cannot be found by comparing both.",
        "Compare a column with the time in WHERE, or in a CASE of the SELECT list.",
    ),
    "metadata-columns": (
        "The query reads a column that depends on files (`_file`, `_pos`, `_partition`); these change even if no row does.",
        "Remove it from the MV, or read it where the MV is read.",
    ),
    "nondeterministic-order": (
        "A function below another operator depends on the order of rows (row_number with ties, collect_list, sums of floats), so its "
        "earlier result cannot be recomputed.",
        "Use decimals instead of floats, order by a unique key, or make the inner query an MV of its own.",
    ),
    "nan-or-negative-zero": (
        "A row with NaN or -0.0 changed, in a column that the query compares. Iceberg skips files by their bounds, so whether Spark "
        "returns such a row depends on the files.",
        "Replace NaN and -0.0 where you write the base table, or use decimals. With incremental_strict, run it once with --full-refresh.",
    ),
    "limit": (
        "A LIMIT below another operator, with OFFSET, or in an order that the columns of the result do not show depends on all rows.",
        "Select the columns you sort by, and sort by their names, or put the LIMIT into the query that reads the MV.",
    ),
    "first-rows-removed": (
        "Some of the first rows were removed, and too few new rows take their places. The next rows are only in the base tables.",
        "Nothing to do: the next refreshes can be incremental again. With incremental_strict, run it once with --full-refresh.",
    ),
    "extreme-removed": (
        "The row with the min or max may have been removed. The next one is only in the base tables.",
        "Nothing to do: the next refreshes can be incremental again. With incremental_strict, run it once with --full-refresh.",
    ),
    "window-without-partition": ("A window function without PARTITION BY depends on all rows.", "Add PARTITION BY."),
    "scalar-subquery-changed": (
        "The single value of a subquery depends on a table that changed, so every row may change.",
        "Make the subquery an MV of its own, or join it by a key.",
    ),
    "global-aggregate": (
        "An aggregate without GROUP BY below another operator depends on all rows of a table that changed.",
        "Make it an MV of its own.",
    ),
    "unsupported-operator": (
        "An operator that mvbuild does not refresh incrementally.",
        "See docs/incremental-table.md, and write it with other operators.",
    ),
    "uuid-compared": (
        "The query compares, joins or groups by a uuid. Iceberg and Parquet order UUIDs differently, so a condition may miss rows.",
        "Write `concat(id, '')` in place of `id`: no files are skipped for it then.",
    ),
    "uncomparable-column": (
        "Rows with a map, a variant, a UUID, or floats in an array or struct cannot be compared.",
        "Remove the column, or convert it to a string or an array of structs.",
    ),
    "round-trip-unproven": (
        "Spark did not prove that the rewritten query is equivalent to yours.",
        "Write the expression in another way, and please report the query.",
    ),
    "no-aggregate": ("The query does not end in GROUP BY with aggregates.", "Nothing to do: other strategies cover such queries."),
    "no-limit": ("The query does not end in ORDER BY with LIMIT.", "Nothing to do: other strategies cover such queries."),
    "no-min-max": ("The query is not a min or max of all rows, or no row was removed.", "Nothing to do: other strategies cover it."),
    "not-linear": (
        "The query is not a projection, filter, inner join or UNION ALL of what changed.",
        "Nothing to do: other strategies cover it.",
    ),
    "rows-removed": ("Rows were deleted or updated.", "Nothing to do: other strategies can follow deletes."),
    "not-mergeable": (
        "An output is not a plain aggregate that can be updated from its old value alone.",
        "Select the plain aggregates (sum, count, min, max) in the MV, and compute with them where it is read.",
    ),
    "deletes-need-count": (
        "If rows are removed, count(*) must show when a group is empty, and count(x) when sum(x) is NULL.",
        "Add count(*) (and count(x)) to the outputs.",
    ),
    "float-sum": (
        "A sum or average of floating point numbers depends on the order of rows.",
        "Use decimals, or set float_tolerance.",
    ),
    "having": ("HAVING: groups that do not satisfy it are not stored.", "Filter where the MV is read."),
    "no-key": (
        "No output column identifies the rows of the result that a change can affect.",
        "Select the columns of GROUP BY, PARTITION BY or the join key.",
    ),
    "no-partitions": (
        "The storage is not partitioned by a column that identifies the affected rows.",
        "Set partition_by to a column of GROUP BY or PARTITION BY.",
    ),
    "no-children": ("No other MV reads this one, so it does not matter which rows differ.", "Nothing."),
    "not-cheaper": (
        "By the estimated processor time, it is not clearly cheaper than a full refresh.",
        "Nothing to do, or set refresh_policy: incremental.",
    ),
    "dearer": ("Another strategy is cheaper.", "Nothing."),
    "session-changed": (
        "The time zone of the Spark session, or another setting that affects results, differs from the last refresh.",
        "Nothing to do if the change is permanent; otherwise use the same settings in all sessions that refresh the MV.",
    ),
    "incremental-failed": ("The incremental refresh failed, and the full one succeeded.", "Report it: see the error in the debug log."),
    "auxiliary-views-built": (
        "The rows were not computed from the current auxiliary views, so all rows are computed from them once.",
        "Nothing to do: the next refreshes can use them.",
    ),
    "auxiliary-name-taken": (
        "A table has the name of an auxiliary view, and mvbuild did not make it or cannot read it.",
        "Rename or drop the table, or set auxiliary_views: never.",
    ),
    "auxiliary-view-refused": (
        "The catalog refused to create the table of an auxiliary view.",
        "Allow mvbuild to create tables in the namespace of the storage table, or set auxiliary_views: never.",
    ),
    "auxiliary-type": (
        "An inner result has a type that an Iceberg table does not have, so it cannot be kept in an auxiliary view.",
        "Cast it to a type that a table can have (int instead of smallint), or set auxiliary_views: never.",
    ),
    "forced": ("A full refresh was requested.", "Nothing to do, or remove --full-refresh or refresh_policy: full."),
}

UNINFORMATIVE = ("no-aggregate", "no-limit", "no-min-max", "not-linear", "no-children", "rows-removed", "dearer", "no-partitions")
"""They say that one strategy is for other queries, and not why none was used."""
GENERAL = ("no-key", "not-mergeable")
"""Another reason may explain them."""


class Refused(Exception):
    """The reason why something cannot be done incrementally. `node`: the operator in the query, if there is one."""

    def __init__(self, code: str, message: str, node: exp.Expr | None = None) -> None:
        super().__init__(message)
        assert code in CODES, code
        self.code = code
        self.message = message
        self.node = node
