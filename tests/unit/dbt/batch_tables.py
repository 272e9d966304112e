"""Tables and rows -> the statements that make them on DuckDB."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from unit.dbt.batch_rows import Row, Table

_Tree = dict[str, Any]
"""Column or field -> its text, or the same of a struct."""


def statements(table: Table, rows: Sequence[Row]) -> Iterator[str]:
    paths = [f.path for f in table.fields]
    columns = _nested(zip(paths, (f.type for f in table.fields), strict=True))
    yield f'CREATE OR REPLACE TEMP TABLE "{table.name}" ({", ".join(_declared(*c) for c in columns.items())})'
    if rows:
        values = (_nested(zip(paths, map(_literal, row), strict=True)).values() for row in rows)
        yield f'INSERT INTO "{table.name}" VALUES {", ".join("(" + ", ".join(map(_packed, value)) + ")" for value in values)}'


def _nested(items: Iterable[tuple[tuple[str, ...], str]]) -> _Tree:
    found: _Tree = {}
    for path, text in items:
        inner = found
        for part in path[:-1]:
            inner = inner.setdefault(part, {})
        inner[path[-1]] = text
    return found


def _declared(name: str, kind: Any) -> str:
    return f'"{name}" {kind}' if isinstance(kind, str) else f'"{name}" STRUCT({", ".join(_declared(*c) for c in kind.items())})'


def _packed(value: Any) -> str:
    return value if isinstance(value, str) else "{" + ", ".join(f"'{name}': {_packed(inner)}" for name, inner in value.items()) + "}"


def _literal(value: Any) -> str:
    if value is None or isinstance(value, bool | int | float):
        return {None: "NULL"}.get(value, str(value).lower()) if not isinstance(value, float) else f"{value}::DOUBLE"
    return "'" + str(value).replace("'", "''") + "'"
