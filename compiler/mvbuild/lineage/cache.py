"""BoundQueries <-> the cache: a query is bound again only if its text or the schemas changed."""

from __future__ import annotations

import json
from collections.abc import Sequence

from mvbuild.cache.keys import digest
from mvbuild.cache.store import Table
from mvbuild.lineage.statement import BoundQuery, Input, OutputColumn, bind_query
from mvbuild.lineage.values import Base, Finding
from mvbuild.parse.model import Query


def bind_once(cache: Table, query: Query, inputs: Sequence[Input]) -> BoundQuery:
    """`bind_query`, through the cache."""
    key = _key(query, inputs)
    text = cache.get(key)
    found = _loaded(text) if text is not None else None
    if found is None:
        found = bind_query(query, inputs)
        cache.put(key, _dumped(found))
    return found


def _key(query: Query, inputs: Sequence[Input]) -> str:
    reads = [(r.start, r.kind, r.parts, r.alias) for r in query.reads]
    given = [(i.complete, i.spellings, [(c.name, c.type) for c in i.columns]) for i in inputs]
    return digest("bound", query.sql.text, reads, given)


def _dumped(found: BoundQuery) -> str:
    plain = [
        [[c.name, c.type, c.place] for c in found.columns],
        found.complete,
        [sorted(bases) for bases in found.values],
        sorted(found.rows),
        sorted(found.unsure),
        [[f.code, f.message, f.start, f.end, f.help, f.severity] for f in found.findings],
    ]
    return json.dumps(plain, separators=(",", ":"))


def _loaded(text: str) -> BoundQuery | None:
    """A cached result; None if no version of this module wrote the text."""
    try:
        columns, complete, values, rows, unsure, findings = json.loads(text)
        return BoundQuery(
            columns=tuple(OutputColumn(name=n, type=t, place=(p[0], p[1]) if p is not None else None) for n, t, p in columns),
            complete=bool(complete),
            values=tuple(frozenset(Base(*b) for b in bases) for bases in values),
            rows=frozenset(Base(*b) for b in rows),
            unsure=frozenset(unsure),
            findings=tuple(Finding(*f) for f in findings),
        )
    except (TypeError, ValueError, IndexError, KeyError):
        return None
