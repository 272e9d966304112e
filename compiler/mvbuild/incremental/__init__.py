"""A query, and what changed below it -> the least work that brings its MV up to date, and why.

In: a query with its views expanded, and the snapshot of each table then and now. Out: a `StrategyChoice`: the strategy of a refresh,
the relations that it computes, and a code for each strategy that was refused. Everything here is relational algebra, and pure.
docs/incremental.md describes what users see; docs/decisions/007 gives the reasons.

Read first: `algebra.py` (the trees), `delta.py` (one rule per operator: the change of a part from the changes of its tables), `choose.py`
(asks all strategies and takes the cheapest).

The order of work:

* `inputs.py` prepares the query with a marker for every table. `Catalog.change` finds, by files, the rows that were added and removed
  between two snapshots.
* `shape.py` makes a tree of the query: `queries.py`, with `from_clause.py`, `subqueries.py`, `aggregates.py` and `select_parts.py`.
  `scopes.py` finds what names mean, by the rules of `lineage`, which also knows the types of expressions (`kinds.py`, `alike.py`).
  Every column gets a unique name, so that parts of trees can be combined freely.
* A strategy (`strategies/`, one module each) is a function from a `StrategyInput` to a `Rewrite`, or to `Refused` with a code.
* The terms of a change are joined in the cheapest way: changed tables first (`join_order.py`), tables that several terms join once
  (`shared_joins.py`), large ones by the keys of the change (`narrowed_joins.py`) and once for both versions (`shared_reads.py`). Keys that
  no row on the other side of a join can have are left out (`limiting.py`).
* `chosen_strategy.py` answers plan and refresh: the choice, with its auxiliary views, or a full refresh where mvbuild itself fails.
* `cost.py` estimates seconds: `fixed_costs.py` those of statements, `effort.py` those of rows; `experience.py` corrects both.
  `key_ranges.py` leaves out tables that cannot have the keys that changed.
* `statements.py` turns every rewrite into two relations: the positions of rows to remove, and the rows to add. `stored_rows.py` pairs
  rows of the storage with equal ones, and `first_rows.py` finds the first rows for ORDER BY with LIMIT.
* `compared_columns.py` finds the columns by which Iceberg may skip files.
* `matched_rows.py` finds groups over a LEFT JOIN whose values follow the joined pairs alone.
* `cuts.py` finds the inner results of a query that are worth an auxiliary view, `division.py` divides the query there, and
  `group_parts.py` gives a group what keeps it mergeable; `semijoin.py` finds groups of which few are needed.
* `row_query.py` writes a query that only picks from one table as expressions over a row of it, so that its change comes with that of the
  table.
* `emit.py` writes relations as SQL, for Spark and, in tests, for DuckDB.
"""
