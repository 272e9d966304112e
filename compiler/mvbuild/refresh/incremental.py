"""Choice + Workplace -> the rows of the storage brought up to date on the audit branch, by deleting positions and appending rows.

The statements read tables at pinned snapshots, and what changed in them through scratch tables that list files. What is read more than
once is computed once. Nothing depends on the session's configuration, which other threads share: one way for classic Spark and Connect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256

from mvbuild.freshness.observed import Pin
from mvbuild.graph.model import ModelNode
from mvbuild.incremental.algebra import Ref, Relation, Scan, walk
from mvbuild.incremental.bounds import MAX_VALUES, Bounds, bounded, bounds_from, bounds_sql, equal_names, scan_name, values_sql
from mvbuild.incremental.choose import Choice
from mvbuild.incremental.delta import Let
from mvbuild.incremental.emit import sql_of
from mvbuild.incremental.inputs import columns_read
from mvbuild.incremental.prune import pruned
from mvbuild.incremental.rewrite import Upsert
from mvbuild.incremental.statements import STORAGE
from mvbuild.names import TableIdentifier, quote
from mvbuild.ports.engine import QueryError
from mvbuild.refresh.change_sql import change_sql
from mvbuild.refresh.round_trip import round_trip_difference
from mvbuild.refresh.session import RunSession
from mvbuild.refresh.sql import pinned_table
from mvbuild.refresh.workplace import Workplace


class NotIncremental(Exception):
    """The strategy that was chosen cannot be carried out; nothing was published. `code` is one of incremental.reasons."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What an incremental refresh wrote; without either nothing was, and there is no new snapshot."""

    added: int | None
    """None: the summary of the snapshot tells."""
    removed: int
    statements: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        return self.added == 0 and not self.removed

    def counted(self, summary: Mapping[str, str]) -> Written:
        """With what the summary of its snapshot tells."""
        return replace(self, added=int(summary.get("added-records", "0"))) if self.added is None else self


def write(session: RunSession, node: ModelNode, choice: Choice, user_sql: str, place: Workplace, summary: Mapping[str, str]) -> Written:
    """NotIncremental where Spark does not prove the rewrite or fails to run it: a full refresh is the answer then."""
    writer = _Writer(session=session, node=node, choice=choice, place=place)
    try:
        with writer.names():
            writer.prove(user_sql)
            return writer.write(summary)
    except QueryError as exc:
        raise NotIncremental("incremental-failed", str(exc)) from exc


@dataclass
class _Writer:
    session: RunSession
    node: ModelNode
    choice: Choice
    place: Workplace
    known: dict[tuple[str, str], Bounds] = field(default_factory=dict)
    relations: dict[str, str] = field(default_factory=dict)
    """Scan or let -> the name under which Spark knows it."""
    statements: list[str] = field(default_factory=list)

    @contextmanager
    def names(self) -> Iterator[None]:
        """Temporary names and scratch tables go at the end, whatever happens."""
        scratch: list[TableIdentifier] = []
        try:
            for leaf, change in self.choice.changes.items():
                staged = self.session.catalog.stage_change(change, self.session.new_scratch)
                scratch.extend(staged.tables)
                self._define_change(leaf, change_sql(staged, sorted(self._used(leaf))))
            yield
        finally:
            for name in self.relations.values():
                self.session.engine.forget(name)
            for table in scratch:
                self.session.catalog.drop_scratch(table)

    def prove(self, user_sql: str) -> None:
        """The tree is the query: Spark's optimizer makes the same of both."""
        shape = self.choice.shape
        assert shape is not None
        outputs = [(name, f"column_{at}") for at, (name, _) in enumerate(shape.outputs)]
        generated = sql_of(pruned(shape.root), self._source, outputs=outputs)
        difference = round_trip_difference(self.session.engine, user_sql, generated, len(outputs))
        if difference:
            raise NotIncremental("round-trip-unproven", difference)

    def write(self, summary: Mapping[str, str]) -> Written:
        difference = self.choice.difference
        assert difference is not None
        relations = [let.relation for let in difference.lets]
        self._bound_changes([*relations, *(r for r in (difference.gone, difference.came) if r is not None)])
        for let in difference.lets:
            self._keep(let)
        if difference.gone is None and difference.came is not None:
            return self._insert_only(difference.came, summary)
        gone = self._kept("gone", difference.gone)
        came = self._kept("came", difference.came)
        removed, added = self._count(gone), self._count(came)
        if difference.removes is not None and removed != self._count(self.relations[difference.removes.name]):
            raise NotIncremental("incremental-failed", "the storage does not have the rows that are to be removed")
        if gone is not None and removed:
            self._delete(gone)
        if added or removed:
            # Last, also without rows: this snapshot says what the refresh was.
            self._append(came, summary)
        return Written(added=added, removed=removed, statements=tuple(self.statements))

    def _insert_only(self, came: Relation, summary: Mapping[str, str]) -> Written:
        """Rows that go straight from the query to the storage: they may be many, and are needed once."""
        columns = list(zip(came.columns, self._columns(), strict=True))
        self._insert(sql_of(bounded(pruned(came), self.known), self._source, outputs=columns), summary)
        return Written(added=None, removed=0, statements=tuple(self.statements))

    # --- names --------------------------------------------------------------------------------------------------------------------

    def _name(self, what: str) -> str:
        own = sha256(self.node.id.encode()).hexdigest()[:8]
        return f"{self.session.run.branch}_{own}_{what}"

    def _used(self, leaf: int) -> frozenset[str]:
        shape = self.choice.shape
        assert shape is not None
        return columns_read(shape.root).get(leaf, frozenset())

    def _define_change(self, leaf: int, sides: tuple[str | None, str | None]) -> None:
        for version, sql in zip(("plus", "minus"), sides, strict=True):
            if sql is None:
                continue
            name = self._name(f"{version}_{leaf}")
            self.relations[f"{leaf} {version}"] = name
            self._say(f"CREATE TEMPORARY VIEW {quote(name)} AS {sql}")
            self.session.engine.define(name, sql)

    def _source(self, read: Scan | Ref) -> str:
        if isinstance(read, Ref):
            return quote(self.relations[read.name])
        if read.leaf == STORAGE:
            return self._target()
        assert self.choice.inputs is not None
        one = self.choice.inputs.inputs[read.leaf]
        if read.version in ("plus", "minus"):
            name = self.relations.get(scan_name(read))
            if name is not None:
                return quote(name)
            columns = ", ".join(map(quote, sorted(self._used(read.leaf))))
            return f"(SELECT {columns} FROM {self._at(one.pin)} WHERE false)"
        return self._at(replace(one.pin, snapshot_id=one.old) if read.version == "old" else one.pin, own=one.leaf.travel is not None)

    def _at(self, pin: Pin, *, own: bool = False) -> str:
        return pinned_table(pin, self.session.schema_pin, own_version=own)

    def _target(self) -> str:
        place = self.place
        return place.table.sql if place.branch is None else f"{place.table.sql}.{quote(f'branch_{place.branch}')}"

    # --- statements ---------------------------------------------------------------------------------------------------------------

    def _sql(self, relation: Relation) -> str:
        names = [(name, name) for name in relation.columns]
        return sql_of(bounded(pruned(relation), self.known), self._source, outputs=names)

    def _keep(self, let: Let) -> None:
        name = self.relations[let.name] = self._name(let.name)
        sql = self._sql(let.relation)
        self._say(f"CACHE TABLE {quote(name)} AS {sql}")
        self.session.engine.keep(name, sql)
        columns = self._bounded_columns(let)
        for column, bounds in self._bounds(name, columns).items():
            self.known[(let.name, column)] = bounds

    def _kept(self, what: str, relation: Relation | None) -> str | None:
        """The name of a relation that is read more than once."""
        if relation is None:
            return None
        if isinstance(relation, Ref):
            return self.relations[relation.name]
        self._keep(Let(what, relation))
        return self.relations[what]

    def _bounded_columns(self, let: Let) -> Sequence[str]:
        """Those by which later statements look up rows in large tables."""
        write = self.choice.rewrite.write if self.choice.rewrite else None
        if let.name.startswith("keys_"):
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
        for key, scans in reads.items():
            columns = sorted({source for scan in scans for name, source in scan.sources if name in compared})
            if len(scans) < 2 and not columns:
                continue
            name = f"{self.relations[key]}_kept"
            sql = f"SELECT * FROM {quote(self.relations[key])}"
            self.relations[f"{key} view"] = self.relations[key]
            self.relations[key] = name
            self._say(f"CACHE TABLE {quote(name)} AS {sql}")
            self.session.engine.keep(name, sql)
            for column, bounds in self._bounds(name, columns).items():
                self.known[(key, column)] = bounds

    def _bounds(self, table: str, columns: Sequence[str]) -> dict[str, Bounds]:
        if not columns:
            return {}
        row = self.session.engine.rows(bounds_sql(table, columns), 1).rows[0]
        values = self.session.engine.rows(values_sql(table, columns), MAX_VALUES).rows if row[0] <= MAX_VALUES else ()
        return bounds_from(row, columns, values)

    def _count(self, name: str | None) -> int:
        if name is None:
            return 0
        return int(self.session.engine.rows(f"SELECT count(*) AS n FROM {quote(name)}", 1).rows[0][0])

    def _delete(self, gone: str) -> None:
        sql = f"DELETE FROM {self._target()} WHERE (_file, _pos) IN (SELECT stored_at_0, stored_at_1 FROM {quote(gone)})"
        self._say(sql)
        self.session.engine.call(sql)

    def _append(self, came: str | None, summary: Mapping[str, str]) -> None:
        names = self._columns()
        if came is None:
            sql = f"SELECT {', '.join(map(quote, names))} FROM {self._target()} WHERE false"
        else:
            sql = f"SELECT {', '.join(f'came_{at} AS {quote(name)}' for at, name in enumerate(names))} FROM {quote(came)}"
        self._insert(sql, summary)

    def _columns(self) -> list[str]:
        return [field["name"] for field in self.place.before.schema["fields"]]

    def _insert(self, sql: str, summary: Mapping[str, str]) -> None:
        self._say(f"INSERT INTO {self._target()} {sql}")
        self.session.engine.prepare(sql).append(self.place.table, self.place.branch, summary)

    def _say(self, statement: str) -> None:
        self.statements.append(statement)
