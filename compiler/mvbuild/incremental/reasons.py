"""The codes by which mvbuild says why a strategy cannot be used, each with what a user can do about it."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

CODES: Mapping[str, tuple[str, str]] = {
    # code: (what it means, what to do)
    "never-refreshed": ("The MV was never refreshed.", "Nothing: the first refresh is always full."),
    "definition-changed": ("The query is not the one of the last refresh.", "Nothing: the next refreshes can be incremental again."),
    "storage-changed-by-others": (
        "Another writer has changed the storage table, so its rows are not those of the last refresh.",
        "Let nobody else write to the storage table of an MV.",
    ),
    "layout-changed": (
        "Columns, partitioning or sort order of the storage table change.",
        "Nothing: the next refreshes can be incremental.",
    ),
    "record-incomplete": ("The record of the last refresh does not name every table that is read.", "Nothing: this refresh writes one."),
    "snapshot-expired": (
        "A snapshot that the last refresh read has expired, so what changed since cannot be told.",
        "Keep snapshots of base tables for longer than the time between two refreshes.",
    ),
    "source-recreated": ("A base table was dropped and created again.", "Replace its content (INSERT OVERWRITE) instead."),
    "column-changed": (
        "A column that the query reads has changed its type or its meaning.",
        "Nothing: the next refreshes can be incremental again.",
    ),
    "equality-deletes": (
        "Equality deletes (Flink) do not say which rows they remove.",
        "Compact the table (rewrite_data_files), or write position deletes or deletion vectors.",
    ),
    "files-missing": ("Files of a recorded snapshot are gone.", "Do not delete files that snapshots still name."),
    "non-iceberg-source": ("What changed in a table of another format cannot be told.", "Keep the table in Iceberg."),
    "nondeterministic": (
        "The query gives other rows each time (a clock, a random number, a function whose result depends on the order of rows).",
        "Take such values from a column, or order by a unique key.",
    ),
    "nondeterministic-order": (
        "A function below another operator depends on the order of rows (row_number with ties, collect_list, sums of floats), so that what "
        "it gave before cannot be computed again.",
        "Use decimals instead of floats, order by a unique key, or make the inner query an MV of its own.",
    ),
    "limit": ("LIMIT and OFFSET depend on all rows.", "Leave the limit to the query that reads the MV."),
    "window-without-partition": ("A window function without PARTITION BY depends on all rows.", "Add PARTITION BY."),
    "scalar-subquery-changed": (
        "The one value of a subquery depends on a table that changed; every row may be another.",
        "Make the subquery an MV of its own, or join it by a key.",
    ),
    "global-aggregate": (
        "An aggregate without GROUP BY below another operator depends on all rows of a table that changed.",
        "Make it an MV of its own.",
    ),
    "not-in-nullable": ("NOT IN with a subquery that changed: one NULL in it empties the result.", "Write NOT EXISTS."),
    "unsupported-operator": (
        "An operator that mvbuild does not refresh incrementally.",
        "See docs/incremental-table.md, and write it with other operators.",
    ),
    "uncomparable-column": (
        "Rows with a map, a variant, or floats in an array or struct cannot be compared.",
        "Leave the column out, or turn it into a string or an array of structs.",
    ),
    "round-trip-unproven": (
        "Spark did not prove that the rewritten query is the same as the one that was written.",
        "Simplify the expression; what differs is in the debug log.",
    ),
    "no-aggregate": ("It does not end in GROUP BY with aggregates.", "Nothing: other strategies are for other queries."),
    "not-linear": ("It is no projection, filter, inner join or UNION ALL of what changed.", "Nothing: other strategies are for it."),
    "rows-removed": ("Rows were deleted or updated.", "Nothing: other strategies can follow deletes."),
    "not-mergeable": (
        "An output is not a plain aggregate that can be brought up to date from its old value alone.",
        "Select the plain aggregates (sum, count, min, max) in the MV, and compute with them where it is read.",
    ),
    "deletes-need-count": (
        "With rows removed, count(*) must tell when a group is empty, and count(x) when sum(x) is NULL.",
        "Add count(*) (and count(x)) to the outputs.",
    ),
    "float-sum": (
        "A sum or average of floating point numbers depends on the order of rows.",
        "Use decimals, or set float_tolerance.",
    ),
    "having": ("HAVING: groups that do not fulfil it are not stored.", "Filter where the MV is read."),
    "no-key": (
        "No output column tells which rows of the result a change can affect.",
        "Select the columns of GROUP BY, PARTITION BY or the key of the join.",
    ),
    "no-partitions": (
        "The storage is not partitioned by what tells which rows are affected.",
        "Set partition_by to a column of GROUP BY or PARTITION BY.",
    ),
    "no-children": ("No other MV reads this one, so nobody needs to know which rows differ.", "Nothing."),
    "not-cheaper": ("By the sizes of the files it is not clearly cheaper than a full refresh.", "Nothing, or refresh_policy: incremental."),
    "dearer": ("Another strategy is cheaper.", "Nothing."),
    "session-changed": (
        "The session of Spark has another time zone, or other settings that change what SQL means, than that of the last refresh.",
        "Nothing, if that is meant to stay; else give all sessions that refresh the MV the same settings.",
    ),
    "incremental-failed": ("The incremental refresh failed and the full one did not.", "Report it: see the error in the debug log."),
    "forced": ("A full refresh was asked for.", "Nothing, or drop --full-refresh or refresh_policy: full."),
}


class Refused(Exception):
    """Why something cannot be done incrementally. `node`: the operator in the query, where there is one."""

    def __init__(self, code: str, message: str, node: exp.Expr | None = None) -> None:
        super().__init__(message)
        assert code in CODES, code
        self.code = code
        self.message = message
        self.node = node
