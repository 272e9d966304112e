"""SQL + tables -> BoundQuery: the basis of the tests of names, types and origins."""

from __future__ import annotations

from mvbuild.lineage.model import Column
from mvbuild.lineage.statement import BoundQuery, Input, bind_query
from mvbuild.parse.project import parse_text

TABLES = {
    "t": "id bigint, a int, b string, c double, d date, ts timestamp, p decimal(12,2), arr array<int>, m map<string,int>, "
    "s struct<x:int,y:struct<z:string>>, items array<struct<sku:string,qty:int>>, ok boolean",
    "u": "id bigint, a int, e string, t_id bigint",
    "v": "id bigint, w string",
}
"""Any other table exists, with unknown columns."""


def table(text: str) -> Input:
    parts, depth, start = [], 0, 0
    for i, char in enumerate(text):
        depth += (char in "<(") - (char in ">)")
        if char == "," and not depth:
            parts.append(text[start:i])
            start = i + 1
    columns = tuple(Column(*part.strip().split(" ", 1)) for part in (*parts, text[start:]))
    return Input(columns=columns, complete=True)


def bound(sql: str, tables: dict[str, str] | None = None) -> BoundQuery:
    query = parse_text("q.sql", sql)
    known = {name: table(text) for name, text in (TABLES | (tables or {})).items()}
    inputs = []
    for read in query.reads:
        name = read.parts[-1].lower()
        spellings = (tuple(p.lower() for p in read.parts), ("lake", "raw", name))
        found = known.get(name, Input(columns=(), complete=False))
        inputs.append(Input(columns=found.columns, complete=found.complete, spellings=spellings))
    return bind_query(query, inputs)


def columns(sql: str, tables: dict[str, str] | None = None) -> str:
    """`name type, ...`, a `?` for what is not known, and `...` at the end where there may be more."""
    found = bound(sql, tables)
    shown = [f"{c.name or '?'} {c.type or '?'}" for c in found.columns]
    return ", ".join([*shown, *([] if found.complete else ["..."])])


def origins(sql: str, tables: dict[str, str] | None = None) -> dict[str, str]:
    """Column -> its base columns; a `?` at the end where there may be others."""
    query = parse_text("q.sql", sql)
    found = bound(sql, tables)
    names = [read.parts[-1].lower() for read in query.reads]
    out = {}
    for i, (column, bases) in enumerate(zip(found.columns, found.values, strict=True)):
        shown = sorted({f"{names[b.read]}.{b.column}" for b in bases})
        out[column.name or f"?{i}"] = " ".join([*shown, *(["?"] if i in found.unsure else [])])
    return out


def rows(sql: str, tables: dict[str, str] | None = None) -> str:
    query = parse_text("q.sql", sql)
    names = [read.parts[-1].lower() for read in query.reads]
    return " ".join(sorted({f"{names[b.read]}.{b.column}" for b in bound(sql, tables).rows}))


def findings(sql: str, tables: dict[str, str] | None = None) -> list[str]:
    """`code: what it points at`."""
    text = parse_text("q.sql", sql).sql.text
    return [f"{f.code}: {text[f.start : f.end]}" for f in bound(sql, tables).findings]
