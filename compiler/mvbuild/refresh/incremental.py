"""StrategyChoice + StagingArea -> the rows of the storage brought up to date on the audit branch, by deleting positions and appending rows.

This works for classic Spark and Connect, and for v2 and v3. A MERGE could not store in its snapshot what the refresh did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from mvbuild.dataclass import dataclass
from mvbuild.graph.model import ModelNode
from mvbuild.incremental.algebra import Ref, Relation, walk
from mvbuild.incremental.choice import StrategyChoice
from mvbuild.incremental.rewrite import OverwritePartitions
from mvbuild.incremental.sizes import StorageSize
from mvbuild.incremental.statements import Difference, condition_of
from mvbuild.names import quote
from mvbuild.ports.catalog import CatalogError, ChangeRefused
from mvbuild.ports.engine import QueryError
from mvbuild.refresh.few_rows import FewRows, fetched, fetched_by_value, is_better_fetched, may_be_few, of_values
from mvbuild.refresh.inputs import RefreshInputs
from mvbuild.refresh.partition_writes import MAX_PARTITIONS, partition_condition
from mvbuild.refresh.round_trip import round_trip_difference
from mvbuild.refresh.session import RunSession
from mvbuild.refresh.skipped_values import require_no_skipped_values
from mvbuild.refresh.staging_area import StagingArea
from mvbuild.refresh.write_outcome import NotIncremental, WriteOutcome
from mvbuild.storage.history import ROWS_REMOVED, rows_in_files
from mvbuild.storage.proof import is_proven


def write(
    session: RunSession, node: ModelNode, choice: StrategyChoice, user_sql: str, place: StagingArea, summary: Mapping[str, str]
) -> WriteOutcome:
    """Raises NotIncremental if Spark does not confirm the rewrite or fails to run it; then the refresh is full."""
    inputs = RefreshInputs(session=session, node=node.id, choice=choice, place=place)
    return carried_out(inputs, summary, lambda: _prove(inputs, user_sql))


def carried_out(inputs: RefreshInputs, summary: Mapping[str, str], prove: Callable[[], None] = lambda: None) -> WriteOutcome:
    """Carry out the strategy of a choice. Raises NotIncremental if `prove` does, or if Spark fails to run it."""

    def written() -> _Rows:
        _read_changes(inputs)
        require_no_skipped_values(inputs)
        prove()
        return _Writer(inputs, summary).write()

    return _outcome(inputs, written)


def _read_changes(inputs: RefreshInputs) -> None:
    """A full refresh does not read what could not be read here, and nothing is written yet."""
    try:
        inputs.read_changes()
    except CatalogError as exc:
        if exc.unreachable or isinstance(exc, ChangeRefused):
            raise
        raise NotIncremental("incremental-failed", str(exc)) from exc


def write_values(inputs: RefreshInputs, summary: Mapping[str, str], removed: Any, added: Any) -> WriteOutcome | None:
    """Remove and add few rows that are known, as tables with the columns of the storage. None if the rows to remove are not found."""
    is_searched = not removed.num_rows or StorageSize(table=inputs.place.before).is_searched_here
    few = of_values(inputs, removed, added) if is_searched else None
    return _outcome(inputs, lambda: _Writer(inputs, summary).write_few(few)) if few is not None else None


def _outcome(inputs: RefreshInputs, write: Callable[[], _Rows]) -> WriteOutcome:
    try:
        with inputs.names():
            added, removed = write()
    except ChangeRefused as exc:
        raise NotIncremental(exc.code, str(exc)) from exc
    except QueryError as exc:
        raise NotIncremental("incremental-failed", str(exc)) from exc
    return WriteOutcome(added=added, removed=removed, statements=tuple(inputs.statements), change_above=inputs.change_above)


def _prove(inputs: RefreshInputs, user_sql: str) -> None:
    """The tree is the query: Spark's optimizer produces the same plan for both."""
    choice = inputs.choice
    assert choice.shape is not None
    assert choice.inputs is not None
    if is_proven(inputs.place.before, choice.inputs.text.text, choice.inputs.schemas):
        return
    difference = round_trip_difference(inputs.session.engine, user_sql, choice.shape, inputs.source)
    if difference:
        raise NotIncremental("round-trip-unproven", difference)


_Rows = tuple[int | None, int | None]
"""How many rows were added and removed; None: the summary of the snapshot has it."""


@dataclass(frozen=True, slots=True)
class _Writer:
    inputs: RefreshInputs
    summary: Mapping[str, str]

    def write(self) -> _Rows:
        inputs, difference = self.inputs, self.inputs.difference
        if not inputs.bound_changes() or difference.is_empty:
            return 0, 0
        is_tried = difference.partitions is None and may_be_few(inputs)
        few = self._by_value() if is_tried else None
        if few is not None:
            return self.write_few(few)
        self._prepare(difference, is_fetched=is_tried)
        if difference.partitions is not None and difference.came is not None:
            return self._overwrite_partitions(difference.partitions, difference.came)
        few = fetched(inputs, difference) if is_tried else None
        if few is not None:
            return self.write_few(few)
        if is_tried and difference.together is not None:
            inputs.keep(difference.together, at_once=False)
        if difference.gone is None and difference.came is not None:
            # Directly from the query to the storage: there may be many rows, and they are needed once.
            self._insert(inputs.sql(difference.came, self._columns()), self.summary)
            return None, 0
        gone, came = inputs.cached("gone", difference.gone), inputs.cached("came", difference.came)
        few = fetched(inputs, difference) if is_better_fetched(inputs) and not is_tried else None
        if few is not None:
            return self.write_few(few)
        removed, added = self._counts(difference, gone, came)
        self._write(gone, came, removed, added)
        return added, removed

    def _by_value(self) -> FewRows | None:
        """The few rows that this process finds in the storage by their values."""
        valued = self.inputs.by_value
        if valued is None or (valued.is_whole and self.inputs.stored_rows is None):
            return None
        self._prepare(valued, is_fetched=True)
        return fetched_by_value(self.inputs, valued)

    def write_few(self, few: FewRows) -> _Rows:
        """In one commit of this process; by the engine if only it can write to this table."""
        inputs, added, removed = self.inputs, few.added, few.removed
        if few.expected is not None and few.expected != removed:
            raise NotIncremental(*inputs.difference.mismatch)
        if added or removed:
            summary = {**self.summary, ROWS_REMOVED: str(removed)}
            place = inputs.place
            if inputs.session.catalog.change_rows(place.table, place.branch, few.change, summary):
                inputs.statements.append(f"-- {inputs.target}: {removed:,} rows removed and {added:,} added, in one commit of mvbuild")
            else:
                gone = inputs.supplied("gone", few.change.removed) if removed else None
                # In one file, as the few rows that they are.
                came = f"(SELECT /*+ COALESCE(1) */ * FROM {inputs.supplied('came', few.change.added)})" if added else None
                self._write(gone, came, removed, added)
        return added, removed

    def _write(self, gone: str | None, came: str | None, removed: int, added: int) -> None:
        """By statements of the engine. `gone` and `came` are names of relations."""
        summary = {**self.summary, ROWS_REMOVED: str(removed)}
        if removed and removed == self._stored_rows():
            # No row remains: whole files are removed, without marking rows in them.
            self._overwrite(self._came(came), summary, "true")
        elif added or removed:
            if gone is not None and removed:
                self._delete(gone)
            # Last, even without rows: this snapshot records what the refresh did.
            self._insert(self._came(came), summary)

    def _prepare(self, difference: Difference, *, is_fetched: bool) -> None:
        """The earlier statements; relations used once are inlined. `is_fetched`: all rows are fetched by one query."""
        reads = Counter(n.name for relation in difference.relations for n in walk(relation) if isinstance(n, Ref))
        # Both the removed and the added rows are counted first.
        reads.update(r.name for r in (difference.gone, difference.came) if isinstance(r, Ref))
        together = difference.together
        for cte in difference.ctes:
            if cte.name in self.inputs.relations:
                continue
            is_cheap = self.inputs.is_cheap(cte.relation)
            is_once = reads[cte.name] <= 1 and not cte.at_once
            is_once = is_once or (is_fetched and cte is together) or ((is_fetched or cte.at_once) and is_cheap)
            if is_once and not self.inputs.narrows(cte):
                self.inputs.inline(cte)
            else:
                self.inputs.keep(cte, at_once=cte is not together)

    def _counts(self, difference: Difference, gone: str | None, came: str | None) -> tuple[int, int]:
        """How many rows are removed and added, in one query. Raises NotIncremental if fewer can be removed than expected."""
        together, relations = difference.together, self.inputs.relations
        if together is not None:
            parts = [f"count_if({condition_of(side).sql('spark')})" for side in (difference.gone, difference.came) if side is not None]
            sql = f"SELECT {parts[0]} AS gone, {parts[1]} AS came FROM {relations[together.name]}"
        else:
            names = {"gone": gone, "came": came, "must": relations[difference.removes.name] if difference.removes is not None else None}
            counts = (f"(SELECT count(*) FROM {name}) AS {what}" if name else f"0 AS {what}" for what, name in names.items())
            sql = f"SELECT {', '.join(counts)}"
        row = self.inputs.session.engine.rows(sql, 1).rows[0]
        if difference.removes is not None and row[0] != row[2]:
            raise NotIncremental(*difference.mismatch)
        return int(row[0]), int(row[1])

    def _stored_rows(self) -> int | None:
        """The rows in files, including those hidden by deletes: how many these are is unknown after another writer compacted the table and
        left deletes of files that are gone. A refresh never removes that many rows while some are hidden."""
        before = self.inputs.place.before
        snapshot = before.snapshots.get(before.current_snapshot_id) if before.current_snapshot_id is not None else None
        return rows_in_files(snapshot) if snapshot is not None else None

    # --- writing ------------------------------------------------------------------------------------------------------------------

    def _overwrite_partitions(self, write: OverwritePartitions, came: Relation) -> _Rows:
        """By a condition that names them, so that a partition without rows is emptied too."""
        keys = ", ".join(f"hex(CAST({quote(name)} AS STRING))" for *_, name in write.partitions)
        inputs = self.inputs
        found = inputs.session.engine.rows(f"SELECT {keys} FROM {inputs.relations[write.keys.name]}", MAX_PARTITIONS + 1).rows
        if len(found) > MAX_PARTITIONS:
            raise NotIncremental("incremental-failed", f"more than {MAX_PARTITIONS} partitions are affected")
        if not found:
            return 0, 0
        types = {field["name"]: field["type"] for field in inputs.place.before.schema["fields"]}
        where = " OR ".join(partition_condition(write.partitions, row, types) for row in found)
        self._overwrite(inputs.sql(came, self._columns()), self.summary, where)
        return None, None

    def _overwrite(self, sql: str, summary: Mapping[str, str], where: str) -> None:
        inputs = self._writes()
        inputs.statements.append(f"INSERT INTO {inputs.target} REPLACE WHERE {where} {sql}")
        inputs.session.engine.prepare(sql).overwrite(inputs.place.table, inputs.place.branch, summary, where=where)

    def _delete(self, gone: str) -> None:
        inputs = self._writes()
        storage = StorageSize(table=inputs.place.before)
        if storage.refuses_deletes or (storage.rewrites_files and not inputs.session.engine.copies_by_position):
            self._overwrite(self._remaining(gone), {}, "true")
            return
        sql = f"DELETE FROM {inputs.target} WHERE (_file, _pos) IN (SELECT stored_at_0v, stored_at_1v FROM {gone})"
        inputs.statements.append(sql)
        inputs.session.engine.call(sql)

    def _insert(self, sql: str, summary: Mapping[str, str]) -> None:
        inputs = self._writes()
        inputs.statements.append(f"INSERT INTO {inputs.target} {sql}")
        inputs.session.engine.prepare(sql).append(inputs.place.table, inputs.place.branch, summary)

    def _writes(self) -> RefreshInputs:
        """The inputs, when a statement begins that writes."""
        self.inputs.session.on_stage(self.inputs.node, "writing")
        return self.inputs

    def _remaining(self, gone: str) -> str:
        """The rows of the storage that are not removed."""
        columns = ", ".join(f"held.{quote(name)}" for name in self._columns())
        is_gone = "held._file = gone.stored_at_0v AND held._pos = gone.stored_at_1v"
        return f"SELECT {columns} FROM {self.inputs.target} AS held LEFT ANTI JOIN {gone} AS gone ON {is_gone}"

    def _came(self, came: str | None) -> str:
        """The added rows, with the columns of the storage."""
        names = self._columns()
        if came is None:
            return f"SELECT {', '.join(map(quote, names))} FROM {self.inputs.target} WHERE false"
        return f"SELECT {', '.join(f'came_{at}v AS {quote(name)}' for at, name in enumerate(names))} FROM {came}"

    def _columns(self) -> list[str]:
        return [field["name"] for field in self.inputs.place.before.schema["fields"]]
