"""Difference + RefreshInputs -> the rows to remove and to add, fetched by one query, if they are few: then no engine has to write them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.incremental.algebra import Ref, Relation, column
from mvbuild.incremental.row_query import RowQuery
from mvbuild.incremental.sizes import FEW, LITTLE, StorageSize
from mvbuild.incremental.statements import Difference, condition_of
from mvbuild.lineage.types import of_iceberg, text
from mvbuild.names import quote
from mvbuild.ports.changes import RowChange, is_plain
from mvbuild.refresh.inputs import RefreshInputs

MAX_ROWS = FEW
"""The limit of rows that are fetched."""
MAX_ROW_BYTES = 2_000
"""The limit of the average size of a row in a storage that is not small: all rows are in memory at once."""
_REMOVED, _ADDED = "is_removed", "is_added"
_SIDES = ("loses", "gets")
_PLACE = ("stored_at_0v", "stored_at_1v")


@dataclass(frozen=True, slots=True, kw_only=True)
class FewRows:
    """What a refresh changes in the storage."""

    change: RowChange
    expected: int | None
    """How many rows must be removed, if that is known."""

    @property
    def added(self) -> int:
        return int(self.change.added.num_rows)

    @property
    def removed(self) -> int:
        return int(self.change.removed.num_rows)


def may_be_few(inputs: RefreshInputs) -> bool:
    """Whether it is worth trying: a small change below can still affect many rows."""
    if inputs.choice.inputs is not None and inputs.choice.inputs.moved:
        return False  # how many rows a clock lets in or out is not known
    return can_be_fetched(inputs) and StorageSize(table=inputs.place.before).changes_in_few(inputs.rows_changed)


def can_be_fetched(inputs: RefreshInputs) -> bool:
    """Whether few rows of this storage can be fetched: in what they hold, and in their size."""
    size = StorageSize(table=inputs.place.before)
    is_plain_row = all(is_plain(field["type"]) for field in inputs.place.before.schema["fields"])
    return is_plain_row and size.bytes <= max(LITTLE, MAX_ROW_BYTES * size.rows)


def is_better_fetched(inputs: RefreshInputs) -> bool:
    """Whether rows that the engine keeps, if they are few, are fetched and written in one commit faster than by its statements."""
    return StorageSize(table=inputs.place.before).is_written_here and can_be_fetched(inputs)


def fetched(inputs: RefreshInputs, difference: Difference) -> FewRows | None:
    """Computes and fetches all of them; None if they are not few."""
    came = _came(inputs)
    sql = _sql(inputs, difference, came)
    inputs.statements.append(sql)
    rows = inputs.session.engine.fetch(sql, MAX_ROWS)
    if rows is None:
        return None
    if _computes_above(inputs, difference):
        lost, got = (rows.filter(rows[_flag(side)]).select(_values(inputs.above, side)) for side in _SIDES)
        inputs.change_above = lost, got
    removed, added = rows.filter(rows[_REMOVED]), rows.filter(rows[_ADDED])
    expected = rows.num_rows - removed.num_rows - added.num_rows if difference.removes is not None else None
    return FewRows(change=RowChange(removed=removed.select([0, 1]), added=added.select(came)), expected=expected)


def fetched_by_value(inputs: RefreshInputs, valued: Difference) -> FewRows | None:
    """The same for a storage in which this process finds the rows to remove. None if there are many, or it does not find all of them."""
    values = [f"value_{at}v" for at in range(len(inputs.place.before.schema["fields"]))]
    if valued.is_whole:
        return _whole(inputs, valued, values)
    sides = ((f"true AS {_REMOVED}, false AS {_ADDED}", valued.gone), (f"false AS {_REMOVED}, true AS {_ADDED}", valued.came))
    parts = [f"SELECT {flags}, {', '.join(map(quote, values))} FROM {_source(inputs, side)}" for flags, side in sides if side is not None]
    sql = " UNION ALL ".join(parts)
    inputs.statements.append(sql)
    rows = inputs.session.engine.fetch(sql, MAX_ROWS)
    if rows is None:
        return None
    return of_values(inputs, *(rows.filter(rows[flag]).select(values) for flag in (_REMOVED, _ADDED)))


def _whole(inputs: RefreshInputs, valued: Difference, values: list[str]) -> FewRows | None:
    """All rows, compared with those of the storage."""
    assert valued.came is not None
    sql = f"SELECT {', '.join(map(quote, values))} FROM {_source(inputs, valued.came)}"
    inputs.statements.append(sql)
    rows = inputs.session.engine.fetch(sql, MAX_ROWS)
    change = inputs.session.catalog.changes.replaced(inputs.stored_rows, rows) if rows is not None else None
    return _named(inputs, change) if change is not None else None


def of_values(inputs: RefreshInputs, removed: Any, added: Any) -> FewRows | None:
    """Rows with the columns of the storage, in order. None if this process does not find those to remove."""
    change = inputs.session.catalog.changes.positions(inputs.place.before, removed, added)
    return _named(inputs, change) if change is not None else None


def _named(inputs: RefreshInputs, change: RowChange) -> FewRows:
    """With the names that statements use, if only the engine can write to the storage."""
    removed, added = change.removed.rename_columns(list(_PLACE)), change.added.rename_columns(_came(inputs))
    return FewRows(change=RowChange(removed=removed, added=added), expected=None)


def _came(inputs: RefreshInputs) -> list[str]:
    return [f"came_{at}v" for at in range(len(inputs.place.before.schema["fields"]))]


def _sql(inputs: RefreshInputs, difference: Difference, came: list[str]) -> str:
    """A row has the position of a row to remove, or the values of one to add, or both; with neither, it is one that must be removed."""
    together = difference.together
    gone = difference.gone.columns if difference.gone is not None else _PLACE
    columns, place = ", ".join(map(quote, came)), ", ".join(map(quote, gone))
    if together is not None and difference.gone is not None and difference.came is not None:
        flags = f"{condition_of(difference.gone).sql('spark')} AS {_REMOVED}, {condition_of(difference.came).sql('spark')} AS {_ADDED}"
        more = "".join(f", {one}" for one in _of_above(inputs, difference))
        return f"SELECT {place}, {flags}, {columns}{more} FROM {inputs.relations[together.name]}"
    no_place = ", ".join(f"NULL AS {quote(name)}" for name in gone)
    no_values = ", ".join(f"NULL AS {quote(name)}" for name in came)
    parts = []
    if difference.came is not None:
        parts.append(f"SELECT {no_place}, false AS {_REMOVED}, true AS {_ADDED}, {columns} FROM {_source(inputs, difference.came)}")
    if difference.gone is not None:
        parts.append(f"SELECT {place}, true AS {_REMOVED}, false AS {_ADDED}, {no_values} FROM {_source(inputs, difference.gone)}")
    if difference.removes is not None:
        must = inputs.relations[difference.removes.name]
        parts.append(f"SELECT {no_place}, false AS {_REMOVED}, false AS {_ADDED}, {no_values} FROM {must}")
    return " UNION ALL ".join(parts)


def _computes_above(inputs: RefreshInputs, difference: Difference) -> bool:
    together = difference.together
    return inputs.above is not None and together is not None and set(inputs.stored.values) <= set(together.relation.columns)


def _of_above(inputs: RefreshInputs, difference: Difference) -> Iterator[str]:
    """Whether the query over the written rows loses or gets a row, and its values."""
    if inputs.above is None or not _computes_above(inputs, difference):
        return
    assert difference.gone is not None
    assert difference.came is not None
    types = inputs.stored.types
    old = dict(zip(types, map(column, inputs.stored.values), strict=True))
    new = {name: _read_again(came, types[name]) for name, came in zip(types, _came(inputs), strict=True)}
    for side, values, rows in zip(_SIDES, (old, new), (difference.gone, difference.came), strict=True):
        names = (_flag(side), *_values(inputs.above, side))
        for name, one in zip(names, inputs.above.of(values, condition_of(rows)), strict=True):
            yield f"{one.sql('spark', comments=False)} AS {name}"


def _read_again(came: str, type_: Any) -> exp.Expr:
    """The value as the storage returns it."""
    return exp.Cast(this=column(came), to=exp.DataType.build(str(text(of_iceberg(type_))), dialect="spark"))


def _flag(side: str) -> str:
    return f"above_{side}"


def _values(above: RowQuery | None, side: str) -> list[str]:
    return [f"{side}_{at}v" for at in range(len(above.outputs))] if above is not None else []


def _source(inputs: RefreshInputs, relation: Relation) -> str:
    return inputs.relations[relation.name] if isinstance(relation, Ref) else f"({inputs.sql(relation)})"
