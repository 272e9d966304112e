"""Plan + engine + catalog -> RunResult.

In: a `Plan`, and the catalog and engine of a `RunSession`. Out: the outcome for each node, as a `RunResult`.

Read first: `run.py` (the order of the steps), `materialize.py` (one refresh through its stages), `pinned.py` (what a refresh reads).

**Stages.** A refresh is write-audit-publish: `prepare.py` has Spark analyze the pinned query, `stage.py` writes, `audit.py` runs the data
tests, `publish.py` commits. Each returns a frozen value for the next one: `Prepared`, `Staged`, `Audited`, `Published`. The strategy is the
one of the plan; `choosing.py` chooses again only if what it depends on has moved since. `recording.py` says what was read, as a record.

**Staging.** If the result fits the storage table as it is, Spark writes to an audit branch of it, `mvbuild_<host>_<pid>_<time>_<random>`.
If columns, partitioning or sort order change, a branch is not enough, because all branches of a table share one schema. Spark then writes
to a scratch table: a copy of the storage's metadata with the new layout, registered in the namespace `mvbuild_scratch`. Publishing takes
over snapshot, schema, spec and order in the same commit; until then readers see the old schema with the old data. Names show which process
made them, and the next run removes what a dead process left (`run_id.py`, `staging_area.py`). A scratch table also reads a pinned snapshot
under the table's current schema, since `VERSION AS OF` shows the snapshot's own.

**Incremental refreshes.** `incremental.py` carries out a rewrite on the audit branch. `inputs.py` has the SQL for what it reads. A small
change is read in this process, once for all MVs of a run (`shared_rows.py`); one query returns the rows to remove and to add, which are
written in one commit without Spark (`few_rows.py`, docs/decisions/019). Rows of a large table near the keys of the change are read in this
process too (`near_rows.py`, docs/decisions/022). Otherwise it is one DELETE by position and one append. If files
were rewritten, rows on both sides of the change cancel out first: in this process if possible (docs/decisions/013), otherwise in Spark
(`net_change.py`). Rows that the query leaves out anyway are dropped before that
(`incremental/change_filters.py`). Before anything is written, Spark must confirm that the tree is the user's query (`round_trip.py`). The
storage then records this in `mvbuild.proven-query`, and only then may metadata alone decide that a change is irrelevant. If Spark does not
confirm it, or if a statement fails, the refresh is full, on the same branch. A refresh that finds no difference makes no snapshot, unless
it reads a table at several branches, which only `refresh-state` can separate: the record moves on, and readers downstream see no change.

**Steps that touch no row.** `alter.py` applies partitioning, sort order, properties, comments and the text of the view. `redefine.py` has
Spark prove that a definition with other names inside is the same query, and refreshes if it is not (docs/decisions/006). `convert.py`
changes the storage format. `advance.py` moves the record on. Each is one commit, and none makes an MV downstream stale.

**Failed data tests.** Nothing is published. `mark.py` sets one property of the storage, which the next refresh that passes removes. It is
not part of the record and never counts for freshness.

**Others.** `pending_commits.py` collects the commits of `--atomic`, which are made as one (docs/decisions/008).
"""
