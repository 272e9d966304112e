"""Choice + Workplace -> the rows of the storage brought up to date on the audit branch, by deleting positions and appending rows.

The statements read tables at pinned snapshots, and what changed in them through scratch tables that list files. What is read more than
once is computed once. Nothing depends on the session's configuration, which other threads share: one way for classic Spark and Connect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256

from sqlglot import exp

from mvbuild.freshness.history import ROWS_REMOVED, live_rows
from mvbuild.freshness.observed import Pin
from mvbuild.graph.model import ModelNode
from mvbuild.incremental.algebra import Filter, Project, Ref, Relation, Scan, walk
from mvbuild.incremental.bounds import (
    MAX_VALUES,
    Bounds,
    bounded,
    bounds_from,
    bounds_of_range,
    bounds_sql,
    equal_names,
    scan_name,
    values_sql,
)
from mvbuild.incremental.choose import Choice
from mvbuild.incremental.delta import KEYS, Let
from mvbuild.incremental.emit import sql_of
from mvbuild.incremental.inputs import columns_read, total
from mvbuild.incremental.proof import is_proven
from mvbuild.incremental.prune import pruned
from mvbuild.incremental.rewrite import OverwritePartitions, Upsert
from mvbuild.incremental.statements import STORAGE, Difference
from mvbuild.names import TableIdentifier, quote
from mvbuild.ports.catalog import ChangeRefused, TableChange
from mvbuild.ports.engine import QueryError
from mvbuild.refresh.change_sql import change_sql
from mvbuild.refresh.partition_writes import MAX_PARTITIONS, partition_condition
from mvbuild.refresh.round_trip import round_trip_difference
from mvbuild.refresh.session import RunSession
from mvbuild.refresh.sql import pinned_table
from mvbuild.refresh.workplace import Workplace
from mvbuild.refresh.written import NotIncremental, Written


def write(session: RunSession, node: ModelNode, choice: Choice, user_sql: str, place: Workplace, summary: Mapping[str, str]) -> Written:
    """NotIncremental where Spark does not prove the rewrite or fails to run it: a full refresh is the answer then."""
    writer = _Writer(session=session, node=node, choice=choice, place=place)
    try:
        with writer.names():
            writer.prove(user_sql)
            return writer.write(summary)
    except ChangeRefused as exc:
        raise NotIncremental(exc.code, str(exc)) from exc
    except QueryError as exc:
        raise NotIncremental("incremental-failed", str(exc)) from exc


WORTH_NARROWING = 32 * 1024 * 1024
"""Bytes that Spark reads in the time of a small statement."""
NET_ROWS = 1_000_000
"""Rows of a change that are compared with each other though no file was written again: an update may set what was there."""


@dataclass
class _Writer:
    session: RunSession
    node: ModelNode
    choice: Choice
    place: Workplace
    known: dict[tuple[str, str], Bounds] = field(default_factory=dict)
    relations: dict[str, str] = field(default_factory=dict)
    """Scan or let -> what stands for it in the statements after: the name of what was kept, or a query."""
    made: list[str] = field(default_factory=list)
    """The names of what was kept, each after those that it is made of."""
    statements: list[str] = field(default_factory=list)
    nothing_changed: bool = False
    """The columns that the query reads have the same rows as before."""

    @contextmanager
    def names(self) -> Iterator[None]:
        """Temporary names and scratch tables go at the end, whatever happens."""
        scratch: list[TableIdentifier] = []
        try:
            for leaf, change in self.choice.changes.items():
                staged = self.session.catalog.stage_change(change, self.session.new_scratch)
                scratch.extend(staged.tables)
                self._define_change(leaf, change, change_sql(staged, sorted(self._used(leaf))))
            yield
        finally:
            for name in reversed(self.made):  # what is made of others first: Spark resolves a view by its text
                self.session.engine.forget(name)
            for table in scratch:
                self.session.catalog.drop_scratch(table)

    def prove(self, user_sql: str) -> None:
        """The tree is the query: Spark's optimizer makes the same of both."""
        shape = self.choice.shape
        assert shape is not None
        assert self.choice.inputs is not None
        if is_proven(self.choice.inputs, self.place.before):
            return
        difference = round_trip_difference(self.session.engine, user_sql, shape, self._source)
        if difference:
            raise NotIncremental("round-trip-unproven", difference)

    def write(self, summary: Mapping[str, str]) -> Written:
        difference = self.choice.difference
        assert difference is not None
        relations = difference.relations
        self._bound_changes(relations)
        if self.nothing_changed:
            return Written(added=0, removed=0, statements=tuple(self.statements))
        reads = Counter(n.name for relation in relations for n in walk(relation) if isinstance(n, Ref))
        # What goes and what comes is counted first.
        reads.update(r.name for r in (difference.gone, difference.came) if isinstance(r, Ref))
        counted = _counted_at_once(difference)
        for let in difference.lets:
            if reads[let.name] == 1 and not self._narrows(let):
                self._inline(let)
            else:
                self._keep(let, at_once=let.name != counted)
        if difference.partitions is not None and difference.came is not None:
            return self._overwrite_partitions(difference.partitions, difference.came, summary)
        if difference.gone is None and difference.came is not None:
            return self._insert_only(difference.came, summary)
        gone = self._kept("gone", difference.gone)
        came = self._kept("came", difference.came)
        removed, added = self._counts(difference, gone, came)
        told = {**summary, ROWS_REMOVED: str(removed)}
        if removed and removed == self._stored_rows():
            # Not one row stays: files go as they are, and nothing is marked in them.
            self._replace_all(came, told)
        elif added or removed:
            if gone is not None and removed:
                self._delete(gone)
            # Last, also without rows: this snapshot says what the refresh was.
            self._append(came, told)
        return Written(added=added, removed=removed, statements=tuple(self.statements))

    def _insert_only(self, came: Relation, summary: Mapping[str, str]) -> Written:
        """Rows that go straight from the query to the storage: they may be many, and are needed once."""
        columns = list(zip(came.columns, self._columns(), strict=True))
        self._insert(sql_of(bounded(pruned(came), self.known), self._source, outputs=columns), summary)
        return Written(added=None, removed=0, statements=tuple(self.statements))

    def _overwrite_partitions(self, write: OverwritePartitions, came: Relation, summary: Mapping[str, str]) -> Written:
        """By a condition that names them, so that one that has no rows any more is emptied too."""
        keys = ", ".join(f"CAST({quote(name)} AS STRING)" for *_, name in write.partitions)
        found = self.session.engine.rows(f"SELECT {keys} FROM {self.relations[write.keys.name]}", MAX_PARTITIONS + 1).rows
        if len(found) > MAX_PARTITIONS:
            raise NotIncremental("incremental-failed", f"more than {MAX_PARTITIONS} partitions are affected")
        if not found:
            return Written(added=0, removed=0, statements=tuple(self.statements))
        types = {field["name"]: field["type"] for field in self.place.before.schema["fields"]}
        where = " OR ".join(partition_condition(write.partitions, row, types) for row in found)
        columns = list(zip(came.columns, self._columns(), strict=True))
        sql = sql_of(bounded(pruned(came), self.known), self._source, outputs=columns)
        self._say(f"INSERT INTO {self._target()} REPLACE WHERE {where} {sql}")
        self.session.engine.prepare(sql).overwrite(self.place.table, self.place.branch, summary, where=where)
        return Written(added=None, removed=None, statements=tuple(self.statements))

    # --- names --------------------------------------------------------------------------------------------------------------------

    def _used(self, leaf: int) -> frozenset[str]:
        shape = self.choice.shape
        assert shape is not None
        return columns_read(shape.root).get(leaf, frozenset())

    def _define_change(self, leaf: int, change: TableChange, sides: tuple[str | None, str | None]) -> None:
        plus, minus = sides
        is_small = bool(change.removed.files) or change.rows <= NET_ROWS
        if plus and minus and is_small and self._is_comparable(leaf):
            plus, minus = self._net(leaf, plus, minus)
        for version, sql in (("plus", plus), ("minus", minus)):
            if sql is not None:
                self.relations[f"{leaf} {version}"] = f"({sql})"

    def _is_comparable(self, leaf: int) -> bool:
        shape = self.choice.shape
        assert shape is not None
        used = self._used(leaf)
        return all(shape.kinds[name] != "uncomparable" for name, (of, source) in shape.origins.items() if of == leaf and source in used)

    def _net(self, leaf: int, plus: str, minus: str) -> tuple[str, str]:
        """Rows that did not change are on both sides where files were written again, or a row was set to what it was: they cancel out."""
        columns = ", ".join(map(quote, sorted(self._used(leaf))))
        both = f"SELECT *, 1 AS mvbuild_weight FROM ({plus}) UNION ALL SELECT *, -1 AS mvbuild_weight FROM ({minus})"
        sql = f"SELECT {columns}, sum(mvbuild_weight) AS mvbuild_weight FROM ({both}) GROUP BY {columns} HAVING sum(mvbuild_weight) <> 0"
        net = self._cache(f"net_{leaf}", sql)

        def side(weight: str) -> str:
            copies = f"LATERAL VIEW explode(array_repeat(1, CAST({weight} AS INT))) copies AS mvbuild_copy"
            return f"SELECT {columns} FROM {net} {copies} WHERE {weight} > 0"

        return side("mvbuild_weight"), side("-mvbuild_weight")

    def _source(self, read: Scan | Ref) -> str:
        if isinstance(read, Ref):
            return self.relations[read.name]
        if read.leaf == STORAGE:
            return self._stored()
        assert self.choice.inputs is not None
        one = self.choice.inputs.inputs[read.leaf]
        if read.version in ("plus", "minus"):
            name = self.relations.get(scan_name(read))
            if name is not None:
                return name
            columns = ", ".join(map(quote, sorted(self._used(read.leaf))))
            return f"(SELECT {columns} FROM {self._at(one.pin)} WHERE false)"
        return self._at(replace(one.pin, snapshot_id=one.old) if read.version == "old" else one.pin, own=one.leaf.travel is not None)

    def _at(self, pin: Pin, *, own: bool = False) -> str:
        return pinned_table(pin, self.session.schema_pin, own_version=own)

    def _stored(self) -> str:
        """The storage before the refresh: Spark computes what was kept again once the table that it was made of is written to."""
        before = self.place.before
        if before.current_snapshot_id is None:
            return self._target()
        return self._at(Pin(table=before, snapshot_id=before.current_snapshot_id, ref=None, moves=True))

    def _target(self) -> str:
        place = self.place
        return place.table.sql if place.branch is None else f"{place.table.sql}.{quote(f'branch_{place.branch}')}"

    # --- statements ---------------------------------------------------------------------------------------------------------------

    def _sql(self, relation: Relation) -> str:
        names = [(name, name) for name in relation.columns]
        return sql_of(bounded(pruned(relation), self.known), self._source, outputs=names)

    def _keep(self, let: Let, *, at_once: bool = True) -> None:
        """Computed once; with its bounds where that narrows down what comes after."""
        columns = self._bounded_columns(let) if self._narrows(let) else ()
        kept = self.relations[let.name] = self._cache(let.name, self._sql(let.relation), at_once=at_once and not columns)
        if columns:
            _, bounds = self._bounds(kept, columns)
            self.known.update({(let.name, column): found for column, found in bounds.items()})

    def _inline(self, let: Let) -> None:
        """For what is read once, or made of what is kept."""
        self.relations[let.name] = f"({self._sql(let.relation)})"

    def _cache(self, what: str, sql: str, *, at_once: bool = True) -> str:
        """The name by which others read it. If not at once: the next statement computes it, and reads nothing else."""
        own = sha256(self.node.id.encode()).hexdigest()[:8]
        name = f"{self.session.run.branch}_{own}_{what}"
        self._say(f"CACHE TABLE {quote(name)} AS {sql}")
        self.made.append(name)
        self.session.engine.keep(name, sql, at_once=at_once)
        return quote(name)

    def _kept(self, what: str, relation: Relation | None) -> str | None:
        """The name of a relation that is read more than once."""
        if relation is None:
            return None
        if isinstance(relation, Ref):
            return self.relations[relation.name]
        if any(isinstance(node, Scan) for node in walk(relation)):
            self._keep(Let(what, relation))
        else:
            self._inline(Let(what, relation))
        return self.relations[what]

    def _narrows(self, let: Let) -> bool:
        """Whether knowing its keys first leaves out enough of what is read afterwards to be worth a statement of its own."""
        if not self._bounded_columns(let):
            return False
        if let.name.startswith(KEYS):
            return self._read_bytes() >= WORTH_NARROWING
        before = self.place.before
        return total(before, before.current_snapshot_id, "total-files-size") >= WORTH_NARROWING

    def _read_bytes(self) -> int:
        """Of the tables that are read whole, but for what is known of their keys."""
        inputs, difference = self.choice.inputs, self.choice.difference
        assert inputs is not None
        assert difference is not None
        pending, found = difference.relations, 0
        while pending:
            node = pending.pop()
            if isinstance(node, Scan) and node.version in ("old", "new") and node.leaf != STORAGE:
                found += inputs.inputs[node.leaf].bytes
            if not (isinstance(node, Filter) and node.predicate == exp.false()):
                pending.extend(node.children)
        return found

    def _bounded_columns(self, let: Let) -> Sequence[str]:
        """Those by which later statements look up rows in large tables."""
        write = self.choice.rewrite.write if self.choice.rewrite else None
        if let.name.startswith(KEYS):
            return let.relation.columns
        if let.name == "delta" and isinstance(write, Upsert):
            return [column for _, column in write.keys]
        if let.name in ("minus", "net_minus"):
            return let.relation.columns
        return ()

    def _bound_changes(self, relations: list[Relation]) -> None:
        """What changed is kept where it is read more than once, or can narrow down what it is joined with."""
        compared = frozenset().union(*(equal_names(relation) for relation in relations)) if relations else frozenset()
        reads: dict[str, list[Scan]] = {}
        for relation in relations:
            for node in walk(relation):
                if isinstance(node, Scan) and scan_name(node) in self.relations:
                    reads.setdefault(scan_name(node), []).append(node)
        large = self._read_bytes() >= WORTH_NARROWING
        counted: list[int | None] = []
        for key, scans in reads.items():
            columns = sorted({source for scan in scans for name, source in scan.sources if name in compared}) if large else []
            if (len(scans) < 2 and not columns) or self._is_told_by_files(scans[0], columns):
                counted.append(None)
                continue
            sql = f"SELECT * FROM {self.relations[key]}"
            kept = self.relations[key] = self._cache(key.replace(" ", "_"), sql, at_once=not columns)
            rows, bounds = self._bounds(kept, columns) if columns else (None, {})
            counted.append(rows)
            self.known.update({(key, column): found for column, found in bounds.items()})
        self.nothing_changed = bool(counted) and all(rows == 0 for rows in counted)

    def _is_told_by_files(self, scan: Scan, columns: Sequence[str]) -> bool:
        """Whether the metadata of a few files that were added has its bounds: reading them twice costs less than a statement."""
        change = self.choice.changes[scan.leaf]
        if scan.version != "plus" or not change.is_insert_only or change.bytes >= WORTH_NARROWING or change.rows <= MAX_VALUES:
            return False
        ranges = self.session.catalog.added_ranges(change, columns)
        self.known.update({(scan_name(scan), name): bounds_of_range(found) for name, found in ranges.items()})
        return True

    def _bounds(self, table: str, columns: Sequence[str]) -> tuple[int, dict[str, Bounds]]:
        """The number of rows, and the bounds of some columns."""
        row = self.session.engine.rows(bounds_sql(table, columns), 1).rows[0]
        few = columns and 0 < row[0] <= MAX_VALUES
        values = self.session.engine.rows(values_sql(table, columns), MAX_VALUES).rows if few else ()
        return row[0], bounds_from(row, columns, values)

    def _counts(self, difference: Difference, gone: str | None, came: str | None) -> tuple[int, int]:
        """How many rows go and come, in one query. NotIncremental if fewer can go than must."""
        together = _counted_at_once(difference)
        if together is not None:
            parts = [f"count_if({_condition(side)})" for side in (difference.gone, difference.came) if side is not None]
            sql = f"SELECT {parts[0]} AS gone, {parts[1]} AS came FROM {self.relations[together]}"
        else:
            must = self.relations[difference.removes.name] if difference.removes is not None else None
            names = {"gone": gone, "came": came, "must": must}
            sql = ", ".join(f"(SELECT count(*) FROM {name}) AS {what}" if name else f"0 AS {what}" for what, name in names.items())
            sql = f"SELECT {sql}"
        row = self.session.engine.rows(sql, 1).rows[0]
        if difference.removes is not None and row[0] != row[2]:
            raise NotIncremental("incremental-failed", "the storage does not have the rows that are to be removed")
        return int(row[0]), int(row[1])

    def _stored_rows(self) -> int | None:
        before = self.place.before
        snapshot = before.snapshots.get(before.current_snapshot_id) if before.current_snapshot_id is not None else None
        return live_rows(snapshot) if snapshot is not None else None

    def _delete(self, gone: str) -> None:
        sql = f"DELETE FROM {self._target()} WHERE (_file, _pos) IN (SELECT stored_at_0, stored_at_1 FROM {gone})"
        self._say(sql)
        self.session.engine.call(sql)

    def _replace_all(self, came: str | None, summary: Mapping[str, str]) -> None:
        sql = self._came(came)
        self._say(f"INSERT INTO {self._target()} REPLACE WHERE true {sql}")
        self.session.engine.prepare(sql).overwrite(self.place.table, self.place.branch, summary)

    def _append(self, came: str | None, summary: Mapping[str, str]) -> None:
        self._insert(self._came(came), summary)

    def _came(self, came: str | None) -> str:
        """The rows that come, as the storage has them."""
        names = self._columns()
        if came is None:
            return f"SELECT {', '.join(map(quote, names))} FROM {self._target()} WHERE false"
        return f"SELECT {', '.join(f'came_{at} AS {quote(name)}' for at, name in enumerate(names))} FROM {came}"

    def _columns(self) -> list[str]:
        return [field["name"] for field in self.place.before.schema["fields"]]

    def _insert(self, sql: str, summary: Mapping[str, str]) -> None:
        self._say(f"INSERT INTO {self._target()} {sql}")
        self.session.engine.prepare(sql).append(self.place.table, self.place.branch, summary)

    def _say(self, statement: str) -> None:
        self.statements.append(statement)


def _counted_at_once(difference: Difference) -> str | None:
    """The name of the statement that has both what goes and what comes, told apart by a condition."""
    if difference.removes is not None or difference.gone is None or difference.came is None:
        return None
    sides = [_filtered_ref(side) for side in (difference.gone, difference.came)]
    names = {side.name for side in sides if side is not None}
    return names.pop() if None not in sides and len(names) == 1 else None


def _filtered_ref(relation: Relation) -> Ref | None:
    below = relation.child.child if isinstance(relation, Project) and isinstance(relation.child, Filter) else None
    return below if isinstance(below, Ref) else None


def _condition(relation: Relation) -> str:
    assert isinstance(relation, Project)
    assert isinstance(relation.child, Filter)
    return str(relation.child.predicate.sql("spark"))
