"""two queries + their schema -> SQL of the rows that one of them returns more often than the other. Text only.

Spark's GROUP BY treats NULL and NaN as equal to themselves, also inside structs and arrays. It also treats 0.0 and -0.0 as equal, although
they are not the same: their texts distinguish them, unless numbers that are almost equal count as equal. Maps and variants, which Spark
cannot group, are compared in a form that it can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from mvbuild.dataclass import dataclass
from mvbuild.names import quote
from mvbuild.ports.states import Schema

Type = str | Mapping[str, Any]
"""A type of an Iceberg schema in its JSON form."""

_FLOATING = ("float", "double")
_PARTS = 1_000_000
"""A sample takes an integer number of these parts of all hashes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The rows whose hash of some columns is below `share` of all hashes. With a tolerance, none of the columns may contain floats: rows
    that are almost equal must be in the sample together."""

    columns: tuple[str, ...]
    share: float
    seed: int


def differences_sql(
    storage_sql: str, query_sql: str, schema: Schema, *, tolerance: float | None = None, sample: Sample | None = None
) -> str:
    """`copies`, then the columns of `schema`: how many more copies of a row the storage has than the query, negative if it has fewer.

    With a tolerance, rows that are equal except for floats are paired in the order of these floats. A pair is equal if each two numbers
    differ by at most `tolerance` of the larger one.
    """
    columns = [(f"c{n}", f["name"], _canonical_type(f["type"])) for n, f in enumerate(schema["fields"])]
    sides = f"{_side(storage_sql, schema, 1)}\nUNION ALL\n{_side(query_sql, schema, -1)}"
    found = _exact(sides, columns, _condition(columns, sample), with_zeros=not tolerance)
    if tolerance and any(has_floats(t) for _, _, t in columns):
        found = _paired(found, [(c, t) for c, _, t in columns], tolerance)
    names = ", ".join(f"{c} AS {quote(name)}" for c, name, _ in columns)
    return f"SELECT copies, {names} FROM (\n{found}\n) AS differences"


def counts_sql(differences: str, schema: Schema) -> str:
    """A summary of `differences_sql` in one row: how many rows only the storage has, and how many only the query has."""
    extra, missing = (f"coalesce(sum(CASE WHEN copies {sign} 0 THEN abs(copies) END), 0)" for sign in "><")
    return f"SELECT {extra} AS extra, {missing} AS missing FROM (\n{differences}\n) AS differences({', '.join(_numbered(schema))})"


def ordered_sql(differences: str, schema: Schema) -> str:
    """The rows of `differences_sql` in the order of their columns, so that similar rows are neighbours."""
    copies, *columns = _numbered(schema)
    names = ", ".join(f"{c} AS {quote(f['name'])}" for c, f in zip(columns, schema["fields"], strict=True))
    order = ", ".join((*columns, copies))
    return (
        f"SELECT {copies}, {names} FROM (\n"
        f"SELECT * FROM (\n{differences}\n) AS differences({', '.join((copies, *columns))}) ORDER BY {order}\n) AS ordered"
    )


def has_floats(type_: Type) -> bool:
    """Whether a type contains floats; the keys of a map do not count, because they are compared exactly."""
    if isinstance(type_, str):
        return type_ in _FLOATING
    if type_["type"] == "struct":
        return any(has_floats(f["type"]) for f in type_["fields"])
    return has_floats(type_["element"] if type_["type"] == "list" else type_["value"])


def _numbered(schema: Schema) -> list[str]:
    return ["copies", *(f"c{n}" for n in range(len(schema["fields"])))]


# Rows that are not the same


def _side(sql: str, schema: Schema, side: int) -> str:
    columns = ", ".join(f"{canonical(quote(f['name']), f['type'])} AS c{n}" for n, f in enumerate(schema["fields"]))
    return f"SELECT {side} AS side, {columns} FROM (\n{sql}\n) AS side"


def _exact(sides: str, columns: Sequence[tuple[str, str, Type]], condition: str, *, with_zeros: bool) -> str:
    """`with_zeros`: 0.0 and -0.0 are two values. GROUP BY merges them, so the text of a zero is added."""
    zeros = {c: f"CASE WHEN {c} = 0 THEN CAST({c} AS STRING) END" for c, _, t in columns if with_zeros and t in _FLOATING}
    zeros |= {c: f"CAST({c} AS STRING)" for c, _, t in columns if with_zeros and not isinstance(t, str) and has_floats(t)}
    types = {c: t for c, _, t in columns}
    shown = (f"coalesce(CAST({zeros[c]} AS {types[c]}), {c}) AS {c}" if c in zeros and isinstance(types[c], str) else c for c in types)
    keys = ", ".join((*types, *zeros.values()))
    return f"SELECT sum(side) AS copies, {', '.join(shown)} FROM (\n{sides}\n) AS sides{condition}\nGROUP BY {keys}\nHAVING sum(side) <> 0"


def _condition(columns: Iterable[tuple[str, str, Type]], sample: Sample | None) -> str:
    if sample is None:
        return ""
    hashed = ", ".join(c for c, name, _ in columns if name in sample.columns)
    return f"\nWHERE pmod(xxhash64({sample.seed}, {hashed}), {_PARTS}) < {max(1, round(sample.share * _PARTS))}"


def _paired(exact: str, columns: Sequence[tuple[str, Type]], tolerance: float) -> str:
    """Only rows that are not the same are paired: there are few of them, and a pair of equal rows is never separated."""
    cells = ", ".join(f"'{c}', {c}" for c, _ in columns)
    skeleton = ", ".join(f"'{c}', {_skeleton(c, t)}" for c, t in columns)
    floats = ", ".join(_floats(c, t) for c, t in columns if has_floats(t))
    names = ", ".join(c for c, _ in columns)
    near = f"coalesce(forall(zip_with(stored_floats, computed_floats, (x, y) -> {_near('x', 'y', tolerance)}), near -> near), false)"
    return f"""SELECT sum(one.side) AS copies, {", ".join(f"one.cells.{c} AS {c}" for c, _ in columns)} FROM (
SELECT explode(array(named_struct('side', 1, 'cells', stored), named_struct('side', -1, 'cells', computed))) AS one FROM (
SELECT
max(CASE WHEN side > 0 THEN cells END) AS stored, max(CASE WHEN side < 0 THEN cells END) AS computed,
max(CASE WHEN side > 0 THEN floats END) AS stored_floats, max(CASE WHEN side < 0 THEN floats END) AS computed_floats
FROM (
SELECT *, row_number() OVER (PARTITION BY skeleton, side ORDER BY floats) AS place FROM (
SELECT CASE WHEN copies > 0 THEN 1 ELSE -1 END AS side, named_struct({cells}) AS cells, named_struct({skeleton}) AS skeleton,
concat({floats}) AS floats, explode(sequence(1, CAST(abs(copies) AS INT))) AS copy
FROM (
{exact}
) AS differing) AS single) AS placed
GROUP BY skeleton, place) AS paired
WHERE stored IS NULL OR computed IS NULL OR NOT {near}) AS unequal
WHERE one.cells IS NOT NULL
GROUP BY {names}"""


def _near(x: str, y: str, tolerance: float) -> str:
    """An infinity is only near itself."""
    finite = f"abs({x}) < double('Infinity') AND abs({y}) < double('Infinity')"
    return f"{x} <=> {y} OR ({finite} AND abs({x} - {y}) <= {tolerance!r}D * greatest(abs({x}), abs({y})))"


# Values


def canonical(value: str, type_: Type, depth: int = 0) -> str:
    """The value in a form that can be grouped and ordered: a map becomes its entries in the order of their keys."""
    if type_ == "variant":
        return f"to_json({value})"
    if isinstance(type_, str) or not _has_ungroupable(type_):
        return value
    each = f"e{depth}"
    if type_["type"] == "struct":
        return _struct(value, type_, lambda inner, of: canonical(inner, of, depth))
    if type_["type"] == "list":
        return f"transform({value}, {each} -> {canonical(each, type_['element'], depth + 1)})"
    key, inner = (canonical(f"{each}.{part}", type_[part], depth + 1) for part in ("key", "value"))
    return f"array_sort(transform(map_entries({value}), {each} -> named_struct('key', {key}, 'value', {inner})))"


def _has_ungroupable(type_: Type) -> bool:
    if isinstance(type_, str):
        return type_ == "variant"
    if type_["type"] == "struct":
        return any(_has_ungroupable(f["type"]) for f in type_["fields"])
    return type_["type"] == "map" or _has_ungroupable(type_["element"])


def _canonical_type(type_: Type) -> Type:
    """The type of the canonical form. The keys of a map are compared exactly, so text is enough for any type."""
    if isinstance(type_, str):
        return type_
    if type_["type"] == "struct":
        return {"type": "struct", "fields": [{**f, "type": _canonical_type(f["type"])} for f in type_["fields"]]}
    if type_["type"] == "list":
        return {"type": "list", "element": _canonical_type(type_["element"])}
    entry = [{"name": "key", "type": "string"}, {"name": "value", "type": _canonical_type(type_["value"])}]
    return {"type": "list", "element": {"type": "struct", "fields": entry}}


def _skeleton(value: str, type_: Type, depth: int = 0) -> str:
    """Everything in a canonical value that must be equal: for a float, whether there is one."""
    if not has_floats(type_):
        return value
    if isinstance(type_, str):
        return f"{value} IS NULL"
    if type_["type"] == "struct":
        return _struct(value, type_, lambda inner, of: _skeleton(inner, of, depth))
    return f"transform({value}, e{depth} -> {_skeleton(f'e{depth}', type_['element'], depth + 1)})"


def _floats(value: str, type_: Type, depth: int = 0) -> str:
    """The floats of a canonical value as one array; all values with the same skeleton have the same number of them."""
    if isinstance(type_, str):
        return f"array(CAST({value} AS DOUBLE))"
    if type_["type"] == "struct":
        inner = (_floats(f"{value}.{quote(f['name'])}", f["type"], depth) for f in type_["fields"] if has_floats(f["type"]))
        return f"concat({', '.join(inner)})"
    each = f"e{depth}"
    found = f"flatten(transform({value}, {each} -> {_floats(each, type_['element'], depth + 1)}))"
    return f"coalesce({found}, CAST(array() AS ARRAY<DOUBLE>))"


def _struct(value: str, type_: Mapping[str, Any], of: Callable[[str, Type], str]) -> str:
    fields = [(f["name"], of(f"{value}.{quote(f['name'])}", f["type"])) for f in type_["fields"]]
    inner = ", ".join(f"{_text(name)}, {field}" for name, field in fields)
    return f"CASE WHEN {value} IS NOT NULL THEN named_struct({inner}) END"


def _text(name: str) -> str:
    return "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"
