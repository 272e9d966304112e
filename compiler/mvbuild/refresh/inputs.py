"""StrategyChoice + StagingArea -> SQL for what a refresh reads: pinned tables, and their changes as scratch tables that list files.

What is read more than once is computed once, and large tables are read within the bounds of what they are joined with. Nothing depends on
the session's configuration, which other threads share.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from functools import cached_property
from hashlib import sha256
from typing import Any

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.freshness.observed import Pin
from mvbuild.incremental.algebra import Aggregate, Filter, Join, Project, Ref, Relation, Scan, Union, walk
from mvbuild.incremental.bounds import (
    MAX_VALUES,
    Bounds,
    bounded,
    bounds_from,
    bounds_of,
    bounds_of_range,
    bounds_sql,
    equal_names,
    is_julian,
    scan_name,
    values_sql,
)
from mvbuild.incremental.change_filters import change_filters
from mvbuild.incremental.choice import StrategyChoice
from mvbuild.incremental.column_pruning import pruned
from mvbuild.incremental.delta import KEYS, Cte
from mvbuild.incremental.emit import sql_of
from mvbuild.incremental.empty_parts import EmptyParts, without_empty_parts
from mvbuild.incremental.inputs import columns_read, total
from mvbuild.incremental.rewrite import Upsert
from mvbuild.incremental.row_query import RowQuery
from mvbuild.incremental.sizes import LITTLE, StorageSize, rows_that_differ
from mvbuild.incremental.statements import Difference, by_value
from mvbuild.incremental.stored_rows import STORAGE, Stored
from mvbuild.names import TableIdentifier, quote
from mvbuild.ports.changes import NetRows, ReadRows, TableChange, ValueRange
from mvbuild.refresh.change_sql import change_sql
from mvbuild.refresh.near_rows import NearRows
from mvbuild.refresh.net_change import is_comparable, net_side, net_sql
from mvbuild.refresh.session import RunSession
from mvbuild.refresh.skipped_values import compared_floats
from mvbuild.refresh.sql import pinned_table
from mvbuild.refresh.staging_area import StagingArea

NET_ROWS = 1_000_000
"""Up to this many rows of a change are compared with each other although no file was rewritten: an update may have set an equal value."""


READ_TWICE = 300_000
"""Up to this many rows of tables are read twice, instead of keeping what is computed from them."""


@dataclass
class RefreshInputs:
    """The inputs of one refresh. Errors are the engine's and the catalog's."""

    session: RunSession
    node: str
    """The id of the MV."""
    choice: StrategyChoice
    place: StagingArea
    view: TableIdentifier | None = None
    """The auxiliary view that is refreshed, if it is not the MV itself."""
    above: RowQuery | None = None
    """A query over the storage. If few rows of the storage change, its own change is computed in the same statement."""
    change_above: tuple[Any, Any] | None = None
    """The rows that this query loses and gets, after they were computed."""
    known: dict[tuple[str, str], Bounds] = field(default_factory=dict)
    relations: dict[str, str] = field(default_factory=dict)
    """Scan or let -> its replacement in later statements: the name of a cached relation, or a query."""
    made: list[str] = field(default_factory=list)
    """The names of cached relations, each after those that it is computed from."""
    read: dict[str, ReadRows] = field(default_factory=dict)
    """Scan -> the rows of a change that were read in this process."""
    statements: list[str] = field(default_factory=list)
    scratch: list[TableIdentifier] = field(default_factory=list)
    """Tables that list the files of changes."""

    @cached_property
    def difference(self) -> Difference:
        """Without what is known to have no rows: only used after the changes were read."""
        assert self.choice.difference is not None
        found = without_empty_parts(self.choice.difference, self.empty)
        return found.with_stored(self.stored.values) if self.above is not None else found

    @property
    def stored(self) -> Stored:
        """The names of the storage's columns in statements."""
        return Stored(types={field["name"]: field["type"] for field in self.place.before.schema["fields"]})

    @cached_property
    def by_value(self) -> Difference | None:
        """The same by the values of the rows, if this process finds them in the storage."""
        found = by_value(self.choice.rewrite, StorageSize(table=self.place.before)) if self.choice.rewrite is not None else None
        return without_empty_parts(found, self.empty) if found is not None else None

    @cached_property
    def stored_rows(self) -> Any | None:
        """The rows of a small storage; None if the engine reads them."""
        before = self.place.before
        return self.session.catalog.changes.stored_rows(before) if StorageSize(table=before).is_read_here else None

    @cached_property
    def empty(self) -> EmptyParts:
        """What has no rows, as far as they were read in this process."""
        return EmptyParts(self._has_no_rows)

    def _has_no_rows(self, scan: Scan) -> bool:
        rows = self.read.get(scan_name(scan))
        return rows is not None and not rows.count

    @property
    def rows_changed(self) -> int:
        """Below: those that were read in this process, and those that are expected of other tables."""
        return sum(self._rows_changed(leaf, change) for leaf, change in self.choice.changes.items())

    def _rows_changed(self, leaf: int, change: TableChange) -> int:
        sides = [self.read[key].count for version in ("plus", "minus") if (key := f"{leaf} {version}") in self.read]
        return sum(sides) if sides else rows_that_differ(change)

    @cached_property
    def wanted(self) -> dict[int, exp.Expr]:
        """Leaf -> the condition on the rows of its change that are read."""
        assert self.choice.difference is not None
        return change_filters(self.choice.difference.relations)

    @property
    def target(self) -> str:
        """The branch of the storage that is written."""
        place = self.place
        return place.table.sql if place.branch is None else f"{place.table.sql}.{quote(f'branch_{place.branch}')}"

    @contextmanager
    def names(self) -> Iterator[None]:
        """Temporary names and scratch tables are always removed at the end."""
        try:
            yield
        finally:
            for name in reversed(self.made):  # dependent ones first: Spark resolves a view by its text
                self.session.engine.forget(name)
            for table in self.scratch:
                self.session.catalog.drop_scratch(table)

    def read_changes(self) -> None:
        """In this process where it can; the engine reads the others."""
        for leaf, change in self.choice.changes.items():
            columns = sorted(self._used(leaf))
            net = self.session.shared_rows.of(self.session.catalog.changes, change, columns)
            if net is not None:
                self._supply(leaf, net)
                continue
            staged = self.session.catalog.changes.stage(change, self.session.new_scratch)
            self.scratch.extend(staged.tables)
            plus, minus = change_sql(staged, columns)
            if self._is_auxiliary_view(leaf):
                plus, minus = (_opaque(f"({side})", self._types(leaf)) if side is not None else None for side in (plus, minus))
            self._define_change(leaf, change, (plus, minus))

    def source(self, read: Scan | Ref) -> str:
        if isinstance(read, Ref):
            return self.relations[read.name]
        if read.leaf == STORAGE:
            return self._stored
        assert self.choice.inputs is not None
        one = self.choice.inputs.inputs[read.leaf]
        if read.version in ("plus", "minus"):
            name = self.relations.get(scan_name(read))
            if name is not None:
                return name
            columns = ", ".join(map(quote, sorted(self._used(read.leaf))))
            return f"(SELECT {columns} FROM {self._at(one.pin)} WHERE false)"
        table = self._at(replace(one.pin, snapshot_id=one.old) if read.version == "old" else one.pin, own=one.leaf.travel is not None)
        return _opaque(table, {field["name"]: field["type"] for field in one.schema["fields"]}) if one.is_auxiliary_view else table

    def _at(self, pin: Pin, *, own: bool = False) -> str:
        return pinned_table(pin, self.session.schema_pin, own_version=own)

    @cached_property
    def _stored(self) -> str:
        """The storage before the refresh: Spark recomputes cached rows after a write to the table that they come from."""
        before = self.place.before
        if self.stored_rows is not None:
            return self.supplied("stored", self.stored_rows)
        if before.current_snapshot_id is None:
            return self.target
        return self._at(Pin(table=before, snapshot_id=before.current_snapshot_id, ref=None, moves=True))

    def sql(self, relation: Relation, columns: Sequence[str] = ()) -> str:
        """`columns`: the names of its columns."""
        names = list(zip(relation.columns, columns or relation.columns, strict=True))
        return sql_of(self._narrowed(relation), self.source, outputs=names)

    def _narrowed(self, relation: Relation) -> Relation:
        """The same rows, with less to read."""
        return self.empty.without(self.near.of(bounded(pruned(relation), self.known)))

    @cached_property
    def near(self) -> NearRows:
        """Reads the rows of large tables within bounds."""
        assert self.choice.inputs is not None
        inputs = self.choice.inputs.inputs
        floats = compared_floats(self.choice.shape, inputs) if self.choice.shape is not None else {}
        return NearRows(self.session.catalog.changes, inputs, self._supply_near, floats)

    def _supply_near(self, rows: Any) -> Ref:
        found = Ref(f"near_{len(self.made)}", tuple(rows.column_names))
        self.relations[found.name] = self.supplied(found.name, rows)
        if not rows.num_rows:
            self.empty.names.add(found.name)
        return found

    def keep(self, cte: Cte, *, at_once: bool = True) -> None:
        """Compute it once; with its bounds if they restrict what comes after."""
        if self._has_none(cte):
            self.inline(cte)
            return
        self._pass_on(cte)
        columns = self._bounded_columns(cte) if self.narrows(cte) else ()
        bounds = {column: found for column in columns if (found := bounds_of(cte.relation, column, self.known))}
        cached = self.relations[cte.name] = self._cache(cte.name, self.sql(cte.relation), at_once=at_once and not columns)
        if len(bounds) < len(columns):
            ((_, bounds),) = self._bounds([(cached, columns)])
        self.known.update({(cte.name, column): found for column, found in bounds.items()})

    def inline(self, cte: Cte) -> None:
        """For a relation that is used once, is computed from a cached one, or has no rows."""
        self._has_none(cte)
        self._pass_on(cte)
        self.relations[cte.name] = f"({self.sql(cte.relation)})"

    def _has_none(self, cte: Cte) -> bool:
        """Whether it cannot have rows; then other statements need not read it either."""
        if not self.empty.has_no_rows(self._narrowed(cte.relation)):
            return False
        self.empty.names.add(cte.name)
        return True

    def _pass_on(self, cte: Cte) -> None:
        """The bounds of what it reads hold for its own columns: a large table is read within them, also when a statement is in between."""
        found = {(cte.name, column): bounds_of(cte.relation, column, self.known) for column in cte.relation.columns}
        self.known.update({key: bounds for key, bounds in found.items() if bounds is not None})

    def _cache(self, what: str, sql: str, *, at_once: bool = True) -> str:
        """The name by which others read it. If not at once: the next statement computes it, and reads nothing else."""
        name = self._name(what)
        self.statements.append(f"CACHE TABLE {quote(name)} AS {sql}")
        self.session.engine.keep(name, sql, at_once=at_once)
        return quote(name)

    def _name(self, what: str) -> str:
        """A new temporary name, different from those of other refreshes of this session."""
        own = sha256(f"{self.node} {self.view or ''}".encode()).hexdigest()[:8]
        self.made.append(f"{self.session.run.branch}_{own}_{what}")
        return self.made[-1]

    def cached(self, what: str, relation: Relation | None) -> str | None:
        """The name of a relation that is used more than once."""
        if relation is None:
            return None
        if isinstance(relation, Ref):
            return self.relations[relation.name]
        if any(isinstance(node, Scan) for node in walk(relation)):
            self.keep(Cte(what, relation))
        else:
            self.inline(Cte(what, relation))
        return self.relations[what]

    def _supply(self, leaf: int, net: NetRows) -> None:
        for version, rows in (("plus", net.plus), ("minus", net.minus)):
            key = f"{leaf} {version}"
            self.read[key] = rows
            if rows.count:
                self.relations[key] = self.supplied(key.replace(" ", "_"), rows.data)

    def supplied(self, what: str, rows: Any) -> str:
        """The name of rows that are in this process."""
        name = self._name(what)
        self.statements.append(f"-- {quote(name)}: {rows.num_rows:,} rows, read by mvbuild")
        self.session.engine.supply(name, rows)
        return quote(name)

    def _define_change(self, leaf: int, change: TableChange, sides: tuple[str | None, str | None]) -> None:
        plus, minus = sides
        is_small = bool(change.removed.files) or change.rows <= NET_ROWS
        if plus and minus and is_small and self._is_comparable(leaf):
            plus, minus = self._net(leaf, plus, minus)
        for version, sql in (("plus", plus), ("minus", minus)):
            if sql is not None:
                self.relations[f"{leaf} {version}"] = f"({sql})"

    def _net(self, leaf: int, plus: str, minus: str) -> tuple[str, str]:
        """If files were rewritten, or a row was set to equal values, unchanged rows are on both sides: they cancel out."""
        types, condition = self._types(leaf), self.wanted.get(leaf)
        if condition is not None:
            names, where = ", ".join(map(quote, types)), condition.sql("spark", comments=False)
            plus, minus = (f"SELECT {names} FROM ({side}) WHERE {where}" for side in (plus, minus))
        net = self._cache(f"net_{leaf}", net_sql(plus, minus, types))
        return net_side(net, "plus", types), net_side(net, "minus", types)

    def _is_comparable(self, leaf: int) -> bool:
        return all(map(is_comparable, self._types(leaf).values()))

    def _types(self, leaf: int) -> dict[str, Any]:
        """The Iceberg types of the columns that are read, by name."""
        assert self.choice.inputs is not None
        types = {field["name"]: field["type"] for field in self.choice.inputs.inputs[leaf].schema["fields"]}
        return {name: types[name] for name in sorted(self._used(leaf))}

    def _is_ordered(self, leaf: int, column: str) -> bool:
        """Whether Spark can ask for the smallest value: a map and a variant have none."""
        type_ = self._types(leaf).get(column)
        return type_ is None or is_comparable(type_) or type_ in ("float", "double")

    def _is_auxiliary_view(self, leaf: int) -> bool:
        assert self.choice.inputs is not None
        return self.choice.inputs.inputs[leaf].is_auxiliary_view

    def _used(self, leaf: int) -> frozenset[str]:
        shape = self.choice.shape
        assert shape is not None
        return columns_read(shape.root).get(leaf, frozenset())

    def bound_changes(self) -> bool:
        """A change is cached if it is read more than once, or can restrict what it is joined with. Returns whether anything changed: the
        columns that the query reads may have the same rows as before."""
        # For every table: a strategy need not read the changes, so what it reads may not show them.
        sides = [self.read.get(f"{leaf} {version}") for leaf in self.choice.changes for version in ("plus", "minus")]
        moves = self.choice.inputs is not None and bool(self.choice.inputs.moved)
        if not moves and sides and all(rows is not None and not rows.count for rows in sides):
            return False
        relations = self.difference.relations
        compared = frozenset().union(*(equal_names(relation) for relation in relations)) if relations else frozenset()
        reads: dict[str, list[Scan]] = {}
        for relation in relations:
            for node in walk(relation):
                if isinstance(node, Scan) and scan_name(node) in self.relations:
                    reads.setdefault(scan_name(node), []).append(node)
        large = self._read_bytes() >= LITTLE
        counted: list[int | None] = []
        asked: list[tuple[str, str, Sequence[str]]] = []
        for key, scans in reads.items():
            named = {source for scan in scans for name, source in scan.sources if name in compared} if large else set()
            columns = sorted(name for name in named if self._is_ordered(scans[0].leaf, name))
            if key in self.read:
                self._know(key, {name: found for name, found in self.read[key].ranges.items() if name in columns})
                counted.append(self.read[key].count)
                continue
            if (len(scans) < 2 and not columns) or self._is_known_from_files(scans[0], columns):
                counted.append(None)
                continue
            sql = f"SELECT * FROM {self.relations[key]}"
            cached = self.relations[key] = self._cache(key.replace(" ", "_"), sql, at_once=not columns)
            if columns:
                asked.append((key, cached, columns))
            else:
                counted.append(None)
        for (key, *_), (rows, bounds) in zip(asked, self._bounds([(cached, columns) for _, cached, columns in asked]), strict=True):
            counted.append(rows)
            self.known.update({(key, column): found for column, found in bounds.items()})
        return moves or not counted or any(rows != 0 for rows in counted)

    def _is_known_from_files(self, scan: Scan, columns: Sequence[str]) -> bool:
        """Whether the metadata of a few added files has its bounds: reading them twice costs less than a statement."""
        change = self.choice.changes[scan.leaf]
        if scan.version != "plus" or not change.is_insert_only or change.bytes >= LITTLE or change.rows <= MAX_VALUES:
            return False
        ranges = self.session.catalog.changes.value_ranges(change, "plus", columns)
        self._know(scan_name(scan), ranges)
        return True

    def _know(self, name: str, ranges: Mapping[str, ValueRange]) -> None:
        usable = {column: found for column, found in ranges.items() if found.low is None or not is_julian(str(found.low), found.type)}
        self.known.update({(name, column): bounds_of_range(found) for column, found in usable.items()})

    def _bounds(self, tables: Sequence[tuple[str, Sequence[str]]]) -> list[tuple[int, dict[str, Bounds]]]:
        """The row count of each, and the bounds of some columns."""
        if not tables:
            return []
        engine, found = self.session.engine, []
        for place, rows, bounds in sorted(engine.rows(bounds_sql(tables), len(tables)).rows):
            table, columns = tables[place]
            values = engine.rows(values_sql(table, columns), MAX_VALUES).rows if 0 < rows <= MAX_VALUES else ()
            found.append((rows, bounds_from(rows, bounds, columns, values)))
        return found

    def narrows(self, cte: Cte) -> bool:
        """Whether knowing its keys first saves enough reading to be worth a statement of its own."""
        if not self._bounded_columns(cte):
            return False
        if cte.name.startswith(KEYS):
            return self._read_bytes() >= LITTLE
        before = self.place.before
        return total(before, before.current_snapshot_id, "total-files-size") >= LITTLE

    def is_cheap(self, relation: Relation) -> bool:
        """Whether it only groups, picks or joins rows that are in this process, or few: computing it again is less work than a statement
        that keeps it."""
        scans = [node for node in walk(relation) if isinstance(node, Scan)]
        is_simple = all(isinstance(node, Aggregate | Filter | Join | Project | Scan | Union) for node in walk(relation))
        return is_simple and sum(map(self._rows_to_read, scans)) <= READ_TWICE

    def _rows_to_read(self, scan: Scan) -> int:
        assert self.choice.inputs is not None
        if scan_name(scan) in self.read:
            return 0
        is_whole = scan.leaf != STORAGE and scan.version in ("old", "new")
        return self.choice.inputs.inputs[scan.leaf].rows if is_whole else READ_TWICE + 1

    def _read_bytes(self) -> int:
        """The bytes of tables that would be read completely without knowledge of their keys."""
        assert self.choice.inputs is not None
        pending, found = self.difference.relations, 0
        while pending:
            node = pending.pop()
            if isinstance(node, Scan) and node.version in ("old", "new") and node.leaf != STORAGE:
                found += self.choice.inputs.inputs[node.leaf].bytes
            if not (isinstance(node, Filter) and node.predicate == exp.false()):
                pending.extend(node.children)
        return found

    def _bounded_columns(self, cte: Cte) -> Sequence[str]:
        """The columns by which later statements look up rows in large tables."""
        write = self.choice.rewrite.write if self.choice.rewrite else None
        if cte.name.startswith(KEYS):
            return cte.relation.columns
        if cte.name == "delta" and isinstance(write, Upsert):
            return [column for _, column in write.keys]
        if cte.name in ("minus", "net_minus"):
            return cte.relation.columns
        return ()


def _opaque(table: str, types: Mapping[str, Any]) -> str:
    """Rows of an auxiliary view. Conditions on its floats are left to Spark: Iceberg would skip files with NaN and -0.0, which the query
    without the view has."""
    if not {"float", "double"} & {type_ for type_ in types.values() if isinstance(type_, str)}:
        return table
    columns = (f"nanvl({quote(n)}, {quote(n)}) AS {quote(n)}" if t in ("float", "double") else quote(n) for n, t in types.items())
    return f"(SELECT {', '.join(columns)} FROM {table})"
