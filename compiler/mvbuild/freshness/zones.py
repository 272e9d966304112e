"""SQL texts + the columns of the tables below -> the expressions whose results depend on the session's time zone.

A column of type timestamp with a zone is an instant. The session's zone affects its value only when it becomes a date, a text, a number or
a timestamp without a zone, or is compared with one. Anything not listed here counts as dependent on the zone: a wrong guess costs a reader
time, and only if the zones differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError, TokenError

from mvbuild.dataclass import dataclass
from mvbuild.parse.dialect import parse, tokenize
from mvbuild.ports.states import Schema

_ZONED = re.compile(r"timestamptz|variant", re.IGNORECASE)
_CLAUSES = """Select From Join Where Group Having Order Ordered Limit Offset Subquery With CTE TableAlias Alias Column Identifier Star Table
    Version Union Intersect Except Distinct Literal Null Boolean Paren Tuple Window WindowSpec Exists In Between Filter Qualify Cube Rollup
    GroupingSets Hint Var"""
_VALUES = """And Or Not Xor EQ NEQ LT LTE GT GTE Is NullSafeEQ NullSafeNEQ Like ILike RLike RegexpLike StartsWith EndsWith Contains Add Sub
    Mul Div Mod IntDiv Neg Case If Coalesce Nullif Concat ConcatWs DPipe Lower Upper Trim Length Substring Left Right Replace Abs Ceil Floor
    Round Greatest Least Sign Sqrt Pow Ln Log Exp Count CountIf Sum Avg Min Max AnyValue First Last FirstValue LastValue RowNumber Rank
    DenseRank Lag Lead Year Month Day Quarter DayOfMonth DayOfWeek DayOfYear WeekOfYear Cast TryCast DataType DataTypeParam Escape
    TsOrDsToDate DateTrunc AddMonths LastDay LogicalAnd LogicalOr IgnoreNulls RespectNulls"""
_FREE = tuple(
    found for name in f"{_CLAUSES} {_VALUES}".split() if isinstance(found := getattr(exp, name, None), type) and issubclass(found, exp.Expr)
)
"""Expressions with the same result in every zone, as long as no instant is in them. Not included: intervals (a date and some hours are an
instant), `date_trunc` (an instant; `trunc` is a date), formats, and literals of type timestamp."""
_FREE_TYPES = frozenset(
    "BOOLEAN TINYINT SMALLINT INT BIGINT FLOAT DOUBLE DECIMAL VARCHAR TEXT CHAR BINARY VARBINARY DATE TIMESTAMPNTZ".split()
)
_KEEPS = (exp.Paren, exp.Min, exp.Max, exp.AnyValue, exp.First, exp.Last, exp.FirstValue, exp.LastValue, exp.Filter, exp.IgnoreNulls)
"""Expressions that return an instant for an instant."""
_COMPARES = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ)


def dependence_on_zone(texts: Iterable[str], schemas: Iterable[Schema]) -> str:
    """The text of the first expression that may depend on the zone; empty if there is none."""
    zoned, plain, inner = _columns(schemas)
    try:
        trees = [tree for text in texts for tree in parse(tokenize(text), text) if tree is not None]
    except (SqlglotError, TokenError, RecursionError):
        return "what cannot be parsed"
    names = _Names.of(trees, zoned, plain, inner)
    found = next((node for tree in trees for node in _dependent(tree, names)), None)
    if isinstance(found, exp.Column | exp.Star | exp.DataType) and found.parent is not None:
        found = found.parent
    return "" if found is None else found.sql("spark")


def _columns(schemas: Iterable[Schema]) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """The names of columns, and of their fields, that contain instants; of columns that do not; and of fields that do not."""
    zoned, plain, inner = set[str](), set[str](), set[str]()
    for schema in schemas:
        for field in schema["fields"]:
            if _ZONED.search(str(field["type"])):
                zoned.update((field["name"].lower(), *(name for name, _ in _fields(field["type"]))))
            else:
                plain.add(field["name"].lower())
            inner.update(name for name, type_ in _fields(field["type"]) if not _ZONED.search(str(type_)))
    return frozenset(zoned), frozenset(plain), frozenset(inner)


def _fields(type_: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(type_, Mapping):
        for field in type_.get("fields", ()):
            yield field["name"].lower(), field["type"]
            yield from _fields(field["type"])
        for key in ("element", "key", "value"):
            yield from _fields(type_.get(key))


@dataclass(frozen=True, slots=True)
class _Names:
    zoned: frozenset[str]
    plain: frozenset[str]
    inner: frozenset[str]
    relations: frozenset[str]
    """Names of tables and aliases: used as a column, such a name is a whole row."""

    @staticmethod
    def of(trees: list[exp.Expr], zoned: frozenset[str], plain: frozenset[str], inner: frozenset[str]) -> _Names:
        """With the aliases of expressions that contain an instant."""
        aliases = [alias for tree in trees for alias in tree.find_all(exp.Alias)]
        known = frozenset[str]()
        while known != zoned:
            known = zoned
            zoned = known | {a.alias.lower() for a in aliases if any(_named(c, known) for c in a.find_all(exp.Column))}
        plain |= {a.alias.lower() for a in aliases if not any(_named(c, zoned) for c in a.find_all(exp.Column))}
        relations = {t.alias_or_name.lower() for tree in trees for t in tree.find_all(exp.Table, exp.Subquery, exp.CTE)}
        return _Names(zoned, plain, inner, frozenset(relations))

    def is_instant(self, node: exp.Expr) -> bool:
        """Whether it is certainly an instant, and nothing else."""
        return isinstance(node, exp.Column) and node.name.lower() in self.zoned - self.plain - self.inner


def _named(column: exp.Column, names: frozenset[str]) -> bool:
    return any(part.name.lower() in names for part in column.parts)


def _dependent(tree: exp.Expr, names: _Names) -> Iterator[exp.Expr]:
    for node in tree.walk(prune=lambda n: isinstance(n, exp.Hint)):
        check = _CHECKS.get(type(node))
        if not isinstance(node, _FREE) or (check is not None and not check(node, names)):
            yield node


def _is_free_column(node: exp.Expr, names: _Names) -> bool:
    assert isinstance(node, exp.Column)
    if not names.zoned:
        return True
    if isinstance(node.this, exp.Star):
        return _is_free_star(node, names)
    if node.name.lower() in names.relations - names.plain - names.zoned:
        return False
    if not _named(node, names.zoned):
        return True
    return names.is_instant(node) and _only_passes(node, names)


def _only_passes(node: exp.Expr, names: _Names) -> bool:
    """Whether an instant goes into the result unchanged, is counted, grouped or sorted by, or compared with another instant."""
    parent = node.parent
    if isinstance(parent, exp.Count | exp.Group | exp.Ordered | exp.Null):
        return True
    if isinstance(parent, exp.Distinct | exp.Tuple | exp.Cube | exp.Rollup):
        return isinstance(parent.parent, exp.Count | exp.Group)
    if isinstance(parent, exp.Is):
        return isinstance(parent.expression, exp.Null)
    if isinstance(parent, _COMPARES):
        return all(names.is_instant(side.unnest()) for side in (parent.left, parent.right))
    if isinstance(parent, exp.Window):
        return node.arg_key == "partition_by" or (node.arg_key == "this" and _only_passes(parent, names))
    if isinstance(parent, exp.Alias):
        return isinstance(parent.parent, exp.Select) and _is_relation(parent.parent)
    if isinstance(parent, exp.Select):
        return _is_relation(parent)
    return isinstance(parent, _KEEPS) and node.arg_key == "this" and _only_passes(parent, names)


def _is_relation(select: exp.Expr) -> bool:
    """Whether a SELECT is the query or a table of it, and not a value or a side of a set operation, which converts types."""
    parent = select.parent
    while isinstance(parent, exp.Subquery) and parent.parent is not None:
        if isinstance(parent.parent, exp.From | exp.Join):
            return True
        parent = parent.parent
    return parent is None or isinstance(parent, exp.CTE | exp.Exists | exp.Subquery)


def _is_free_star(node: exp.Expr, names: _Names) -> bool:
    parent = node.parent.parent if isinstance(node.parent, exp.Column) else node.parent
    if isinstance(node, exp.Column):
        parent = node.parent
    return not names.zoned or isinstance(parent, exp.Count) or (isinstance(parent, exp.Select) and _is_relation(parent))


def _is_free_list(node: exp.Expr, names: _Names) -> bool:
    """Columns that get other names by position."""
    return not (names.zoned and node.args.get("columns"))


def _is_free_join(node: exp.Expr, names: _Names) -> bool:
    shared = {one.name.lower() for one in node.args.get("using") or ()}
    mixed = names.zoned & names.plain
    return not (shared & mixed) and not (mixed and node.args.get("method") == "NATURAL")


def _is_free_type(node: exp.Expr, names: _Names) -> bool:  # noqa: ARG001
    assert isinstance(node, exp.DataType)
    return isinstance(node.this, exp.DType) and node.this.name in _FREE_TYPES


def _has_no_format(node: exp.Expr, names: _Names) -> bool:  # noqa: ARG001
    """With a format, Spark converts to an instant first."""
    return node.args.get("format") is None


_CHECKS: Mapping[type[exp.Expr], Callable[[exp.Expr, _Names], bool]] = {
    exp.Column: _is_free_column,
    exp.Star: _is_free_star,
    exp.TableAlias: _is_free_list,
    exp.Join: _is_free_join,
    exp.DataType: _is_free_type,
    exp.TsOrDsToDate: _has_no_format,
    exp.Cast: _has_no_format,
    exp.TryCast: _has_no_format,
}
