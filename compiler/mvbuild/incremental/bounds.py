"""Relation + bounds of its small tables -> the same rows, with the large tables read only within those bounds.

Iceberg skips files, and Parquet skips row groups, by literals in filters and not by the rows of another table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.incremental.algebra import Aggregate, Distinct, Filter, Join, Project, Ref, Relation, Scan, Union, conjuncts, with_children
from mvbuild.names import quote
from mvbuild.ports.changes import ValueRange

MAX_VALUES = 200
"""Iceberg compares at most this many values of an IN with the bounds of a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The bounds of a column: smallest and largest value as literals, whether there are NULLs, and all values if they are few."""

    low: exp.Expr | None
    high: exp.Expr | None
    has_null: bool
    values: tuple[exp.Expr, ...] = ()

    def holds(self, value: exp.Expr, *, null_matches: bool) -> exp.Expr | None:
        """The condition that another value can be equal to one of these; None if there are no bounds."""
        wrapped = value.copy() if isinstance(value, exp.Column) else exp.paren(value.copy())
        is_null = exp.Is(this=wrapped.copy(), expression=exp.Null())
        if self.low is None or self.high is None:
            return is_null if null_matches and self.has_null else exp.false()
        if self.values:
            found: exp.Expr = exp.In(this=wrapped, expressions=[v.copy() for v in self.values])
        else:
            found = exp.Between(this=wrapped, low=self.low.copy(), high=self.high.copy())
        return exp.paren(exp.or_(found, is_null)) if null_matches and self.has_null else found


Known = Mapping[tuple[str, str], Bounds]
"""(name of an earlier statement, or of a table and its version, column) -> bounds."""


def scan_name(scan: Scan) -> str:
    return f"{scan.leaf} {scan.version}"


def bounded(relation: Relation, known: Known) -> Relation:
    """Add a filter to each side of a join that is compared with bounded columns of the other side."""
    children = tuple(bounded(child, known) for child in relation.children)
    relation = with_children(relation, children)
    if not isinstance(relation, Join) or relation.kind in ("full", "null-aware-anti"):
        return relation
    left, right = relation.left, relation.right
    right_filters = _filters(relation, right, left, known)
    left_filters = _filters(relation, left, right, known) if relation.kind in ("inner", "semi") else []
    return replace(relation, left=_filtered(left, left_filters), right=_filtered(right, right_filters))


def _filters(join: Join, side: Relation, other: Relation, known: Known) -> list[exp.Expr]:
    """Conditions that a row of `side` must satisfy to match."""
    if isinstance(side, Ref):
        return []
    found = []
    for part in join.equalities:  # with a cast there are no bounds: as text '10' is less than '9', as a number it is greater
        for own, theirs in ((part.left.unnest(), part.right.unnest()), (part.right.unnest(), part.left.unnest())):
            if not isinstance(theirs, exp.Column) or theirs.name not in other.columns:
                continue
            if not all(c.name in side.columns for c in own.find_all(exp.Column)):
                continue
            bounds = bounds_of(other, theirs.name, known)
            condition = bounds.holds(own, null_matches=part.is_null_safe) if bounds else None
            if condition is not None:
                found.append(condition)
    return found


def bounds_of(relation: Relation, name: str, known: Known) -> Bounds | None:
    """The bounds of a column, if they are known for the table that it comes from."""
    if isinstance(relation, Ref):
        return known.get((relation.name, name))
    if isinstance(relation, Scan):
        source = next((source for own, source in relation.sources if own == name), "")
        return known.get((scan_name(relation), source))
    if isinstance(relation, Project):
        item = next((i for i in relation.items if i.name == name), None)
        if item is None or not isinstance(item.expression, exp.Column):
            return None
        return bounds_of(relation.child, item.expression.name, known)
    if isinstance(relation, Aggregate):
        key = next((k for k in relation.keys if k.name == name), None)
        return bounds_of(relation.child, key.expression.name, known) if key and isinstance(key.expression, exp.Column) else None
    if isinstance(relation, Filter | Distinct):
        return bounds_of(relation.child, name, known)
    if isinstance(relation, Union):
        at = relation.columns.index(name)
        found = [bounds_of(part, part.columns[at], known) for part in relation.parts]
        return _of_any([one for one in found if one]) if all(found) else None
    if isinstance(relation, Join) and relation.kind in ("inner", "semi", "anti"):
        side = relation.left if name in relation.left.columns else relation.right
        return bounds_of(side, name, known) or _of_partner(relation, name, known)
    return None


def _of_any(parts: Sequence[Bounds]) -> Bounds | None:
    """Bounds of values from one of several sources. None if their types differ, because the order depends on the type."""
    lows, highs = ([v for part in parts if (v := getattr(part, end)) is not None] for end in ("low", "high"))
    has_null = any(part.has_null for part in parts)
    if not lows:
        return Bounds(low=None, high=None, has_null=has_null)
    if len({_type_of(value) for value in (*lows, *highs)}) > 1:
        return None
    values = tuple({v.sql(): v for part in parts for v in part.values}.values())
    few = len(values) <= MAX_VALUES and all(part.values or part.low is None for part in parts)
    return Bounds(low=_outermost(exp.Least, lows), high=_outermost(exp.Greatest, highs), has_null=has_null, values=values if few else ())


def _type_of(bound: exp.Expr) -> exp.Expr:
    """Of a literal, or of the least or greatest of several."""
    while isinstance(bound, exp.Least | exp.Greatest):
        bound = bound.this
    found: exp.Expr = bound.args["to"]
    return found


def _outermost(which: type[exp.Least | exp.Greatest], values: Sequence[exp.Expr]) -> exp.Expr:
    copies = [value.copy() for value in {v.sql(): v for v in values}.values()]
    return copies[0] if len(copies) == 1 else which(this=copies[0], expressions=copies[1:])


def _of_partner(join: Join, name: str, known: Known) -> Bounds | None:
    """Bounds of the column that it is equal to; here NULL equals nothing."""
    if join.kind == "anti":
        return None
    for part in join.equalities:
        if not part.is_null_safe and isinstance(part.left, exp.Column) and isinstance(part.right, exp.Column):
            pair = (part.left.name, part.right.name)
            if name in pair:
                other = pair[1] if pair[0] == name else pair[0]
                side = join.left if other in join.left.columns else join.right
                if name not in side.columns:
                    return bounds_of(side, other, known)
    return None


def _filtered(relation: Relation, conditions: Sequence[exp.Expr]) -> Relation:
    for condition in conditions:
        relation = Filter(relation, condition)
    return relation


def equal_names(relation: Relation) -> frozenset[str]:
    """Names of columns that joins in the tree compare with other columns."""
    found: set[str] = set()
    pending = [relation]
    while pending:
        node = pending.pop()
        pending.extend(node.children)
        if isinstance(node, Join):
            for part in conjuncts(node.on):
                if isinstance(part, exp.EQ | exp.NullSafeEQ):
                    found.update(c.name for c in part.find_all(exp.Column))
    return frozenset(found)


# --- queries for bounds --------------------------------------------------------------------------------------------------------

_TYPES = ("tinyint", "smallint", "int", "bigint", "date", "string")


def bounds_sql(tables: Sequence[tuple[str, Sequence[str]]]) -> str:
    """A query with a row for each table: its number, its row count, and for each column its type, count of values, smallest and largest as
    text. Texts are returned as bytes, because strings may contain invalid ones."""
    return " UNION ALL ".join(_bounds_of_table(at, table, columns) for at, (table, columns) in enumerate(tables))


def _bounds_of_table(at: int, table: str, columns: Sequence[str]) -> str:
    parts = (f"struct(typeof(min({one})), count({one}), {_bytes(f'min({one})')}, {_bytes(f'max({one})')})" for one in map(quote, columns))
    return f"SELECT {at} AS place, count(*) AS row_count, array({', '.join(parts)}) AS bounds FROM {table}"


def values_sql(table: str, columns: Sequence[str]) -> str:
    """The query for the values themselves, as the bytes of their text."""
    return f"SELECT {', '.join(f'{_bytes(quote(name))} AS {quote(name)}' for name in columns)} FROM {table}"


def _bytes(value: str) -> str:
    return f"hex(CAST({value} AS STRING))"


def bounds_from(rows: int, bounds: Sequence[Sequence[Any]], columns: Sequence[str], values: Sequence[Sequence[Any]]) -> dict[str, Bounds]:
    """The results of the two queries -> bounds, for columns whose order and text mean the same in Spark and in the statistics of files.
    Timestamps as text depend on the session's time zone, and floats have values without an order."""
    found = {}
    for at, name in enumerate(columns):
        type_, count, low, high = bounds[at]
        if type_ not in _TYPES and not str(type_).startswith("decimal"):
            continue
        try:
            if low is not None and is_julian(_decoded(low), type_):
                continue
            found[name] = Bounds(
                low=None if low is None else _literal(_decoded(low), type_),
                high=None if high is None else _literal(_decoded(high), type_),
                has_null=count < rows,
                values=tuple(_literal(_decoded(one), type_) for one in sorted({value[at] for value in values if value[at] is not None})),
            )
        except UnicodeDecodeError:
            continue  # Iceberg compares text, so values that are not valid text have no position
    return found


def _decoded(digits: str) -> str:
    return bytes.fromhex(digits).decode()


def is_julian(low: str, type_: str) -> bool:
    """Whether it is a date from before the calendar of today. Iceberg's reader of ORC files does not find such rows by a condition."""
    return type_ == "date" and low < "1582-10-16"


def bounds_of_range(found: ValueRange) -> Bounds:
    """The range of a column as bounds."""
    type_ = {"long": "bigint"}.get(found.type, found.type)
    low, high = (None if value is None else _literal(_text(value), type_) for value in (found.low, found.high))
    return Bounds(low=low, high=high, has_null=found.has_null, values=tuple(_literal(_text(value), type_) for value in found.values))


def _text(value: Any) -> str:
    return format(value, "f") if isinstance(value, Decimal) else str(value)


_PLAIN = re.compile(r"[A-Za-z0-9 _.:/+-]*")
"""Texts that have the same meaning in quotes under all settings of Spark: it may replace `${names}` and backslashes there."""


def _literal(text: str, type_: str) -> exp.Expr:
    literal = exp.Literal.string(text) if _PLAIN.fullmatch(text) else exp.HexString(this=text.encode().hex().upper())
    return exp.cast(literal, type_, dialect="spark")
