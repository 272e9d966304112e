"""The queries of an incremental model -> the tables that they read, with keys and times, and with types that an engine accepts."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from unit.dbt.batch_columns import DOMAINS, Columns, Leaf, Reader
from unit.dbt.batch_rows import IN_ARRAY, IN_MAP, Field, Table


@dataclass(frozen=True)
class Read:
    """What the queries of a model read. `keyed`: what the unique key comes from; `bounded`: what the guard bounds."""

    tables: tuple[Table, ...]
    keyed: frozenset[Leaf]
    bounded: frozenset[Leaf]


def tables_of(full: Reader, guarded: Reader, written: Reader, keys: Sequence[str], partitions: Sequence[str]) -> Read:
    columns = Columns()
    readers = (full, guarded, written)
    known = set().union(*(reader.know() for reader in readers))
    for reader in readers:
        reader.known = known
        reader.collect(columns)
    for name in (*keys, *partitions):
        for leaf in full.output(name):
            columns.leaves[leaf] = None
            columns.passive.discard(leaf)
    bounded = _bounded(full, guarded)
    keyed = {leaf for name in keys for leaf in full.output(name)}
    found: dict[str, list[Leaf]] = {name: [] for name in full.tables()}
    for leaf in columns.leaves:
        found.setdefault(leaf.table, []).append(leaf)
    bounded_tables = {leaf.table for leaf in bounded}
    made = _Tables(columns, keyed, bounded)
    tables = tuple(
        made.table(name, leaves or [Leaf(name, ("id",))], not bounded or name in bounded_tables) for name, leaves in found.items()
    )
    return Read(tables, frozenset(keyed), frozenset(bounded))


@dataclass(frozen=True)
class _Tables:
    columns: Columns
    keyed: set[Leaf]
    bounded: set[Leaf]

    def table(self, name: str, leaves: list[Leaf], guarded: bool) -> Table:
        leaves = list(dict.fromkeys(_in_arrays(leaf, leaves) for leaf in leaves))
        leaves = [leaf for leaf in leaves if not any(o != leaf and o.path[: len(leaf.path)] == leaf.path for o in leaves)]
        own = {leaf for leaf in leaves if leaf in (self.keyed if guarded else self.columns.joined)}
        own = own or {leaf for leaf in leaves if leaf in self.keyed} or {leaf for leaf in leaves if leaf.path[-1] == "id"}
        return Table(name=name, fields=tuple(self._field(leaf, leaf in own) for leaf in sorted(leaves)), guarded=guarded)

    def _field(self, leaf: Leaf, is_key: bool) -> Field:
        share = self._share(leaf)
        return Field(
            path=leaf.path,
            type=self.columns.type_of(leaf),
            ordered=leaf in self.bounded,
            key=is_key,
            required=leaf in self.keyed,
            passive=leaf in self.columns.passive and leaf not in self.bounded,
            # Those that the query names would be in each of several tables.
            values=tuple(self.columns.values_of(leaf)) if share[1] == 1 else (),
            size=9 if is_key else 3,
            joined=leaf in self.columns.joined and any(o.table != leaf.table for o in self.columns.joined if self._same(o, leaf)),
            kin=str(self.columns.of(leaf)),
            share=share,
        )

    def _same(self, one: Leaf, other: Leaf) -> bool:
        return self.columns.of(one) == self.columns.of(other)

    def _share(self, leaf: Leaf) -> tuple[int, int]:
        """Where the branches of a UNION read the key from different tables."""
        tables = sorted({other.table for other in self.keyed if other.path == leaf.path})
        return (tables.index(leaf.table), len(tables)) if leaf in self.keyed else (0, 1)


def _in_arrays(leaf: Leaf, leaves: Sequence[Leaf]) -> Leaf:
    """A field of an array of structs is the array of the fields: `labels.key` is read of the elements of `labels`."""
    for at in range(1, len(leaf.path)):
        array = (*leaf.path[:at], IN_ARRAY)
        if leaf.path[at] not in (IN_ARRAY, IN_MAP) and any(other.path[: at + 1] == array for other in leaves):
            rest = leaf.path[at:-1] if leaf.path[-1] == IN_ARRAY else leaf.path[at:]
            return replace(leaf, path=(*array, *rest))
    return leaf


def _bounded(full: Reader, guarded: Reader) -> set[Leaf]:
    """What the conditions bound that only the query with its guard has."""
    known = {condition.sql() for scope in full.scopes for condition in _conditions(scope.expression)}
    found: set[Leaf] = set()
    for scope in guarded.scopes:
        for condition in _conditions(scope.expression):
            if condition.sql() not in known:
                for column in condition.walk(prune=lambda n: isinstance(n, exp.Query)):
                    if isinstance(column, exp.Column):
                        found.update(guarded.leaves(scope, column))
    return found


def _conditions(select: exp.Expr) -> Iterator[exp.Expr]:
    """Those of WHERE and of the ON of joins."""
    if not isinstance(select, exp.Select):
        return
    where = select.args.get("where")
    for clause in (where and where.this, *(join.args.get("on") for join in select.args.get("joins") or ())):
        if clause is not None:
            yield from clause.flatten() if isinstance(clause, exp.And) else (clause,)


def typed(tables: tuple[Table, ...], wrong_with: Callable[[tuple[Table, ...]], str], seconds: float) -> tuple[tuple[Table, ...], str]:
    """Try other types while an engine refuses the queries, one column after the other. The tables, and what is still wrong.

    `wrong_with`: the message of the engine with these tables, or nothing.
    """
    seen: set[str] = set()
    until = time.monotonic() + seconds
    wrong = wrong_with(tables)
    while wrong and wrong not in seen:
        seen.add(wrong)
        for other in _others(tables, wrong):
            if time.monotonic() > until:
                return tables, wrong
            found = wrong_with(other)
            if found not in seen:
                tables, wrong = other, found
                break
    return tables, wrong


def _others(tables: tuple[Table, ...], wrong: str) -> Iterator[tuple[Table, ...]]:
    """The same tables with another type of a column, and of those that are compared with it; first those that a message names."""
    names = {name.lower() for name in re.findall(r"\w+", wrong)}
    kins: dict[str, list[Field]] = {}
    for table in tables:
        for f in table.fields:
            kins.setdefault(f.kin, []).append(f)
    for kin, fields in sorted(kins.items(), key=lambda item: all(f.path[-1] not in names for f in item[1])):
        for kind in DOMAINS:
            if kind != fields[0].type:
                yield tuple(replace(t, fields=tuple(replace(f, type=kind) if f.kin == kin else f for f in t.fields)) for t in tables)
