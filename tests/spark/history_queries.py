"""random numbers -> the models of a history: views, ephemeral models and MVs over base tables, of many shapes."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from unit.incremental.queries import Type, query_over

Kind = Literal["mv", "view", "ephemeral"]
Columns = Mapping[str, Type]


@dataclass(frozen=True, kw_only=True)
class Model:
    """`query` has the names of what it reads in braces; `{now}` is a time after the tables were made, as text in the session's zone."""

    name: str
    query: str
    kind: Kind = "mv"
    config: str = ""
    """In YAML's flow style."""

    @property
    def is_embedded(self) -> bool:
        return "metadata-file" in self.config


def models(chance: random.Random, tables: Mapping[str, Mapping[str, Type]], mvs: int) -> Iterator[Model]:
    """A view, an ephemeral model, MVs that others read, one of well-known shapes with odd names, and random ones over all of them."""
    if not mvs:
        return
    readable: dict[str, Mapping[str, Type]] = dict(tables)
    for name, kind in (("w", "view"), ("e", "ephemeral")):
        below = chance.choice([t for t in readable if t != "w" or chance.random() < 0.6])
        shown = {"k": "k", "v": chance.choice(("v", "coalesce(v, 1)", "v + 1"))}
        shown |= {column: column for column in readable[below] if column not in shown and chance.random() < 0.6}
        where = chance.choice(("", " WHERE k > 0", " WHERE v IS NOT NULL", " WHERE k <= 2 OR v = 1"))
        listed = ", ".join(f"{text} AS {column}" for column, text in shown.items())
        yield Model(name=name, kind=kind, query=f"SELECT {listed} FROM {{{below}}}{where}")  # type: ignore[arg-type]
        readable[name] = {column: readable[below][column] for column in shown}
    for name in ("m1", "m2"):
        query, columns = _upstream(chance, readable)
        yield Model(name=name, query=query, config=_config(chance, columns))
        readable[name] = columns
    query, columns = _template(chance, tables)
    yield Model(name="m3", query=query, config=_config(chance, columns, is_typed=True))
    for at in range(4, mvs + 1):
        below = _some(chance, readable)
        text, found, _ = query_over(chance, below)
        yield Model(name=f"m{at}", query=text, config=_config(chance, dict(found)))


def _some(chance: random.Random, readable: Mapping[str, Mapping[str, Type]]) -> dict[str, Mapping[str, Type]]:
    return {name: readable[name] for name in chance.sample(list(readable), min(len(readable), chance.choice((1, 2, 2, 3))))}


def _upstream(chance: random.Random, readable: Mapping[str, Mapping[str, Type]]) -> tuple[str, dict[str, Type]]:
    """A query that others read: it has `k` and `v`."""
    types: list[Type] = ["int", "int", *chance.sample(("string", "decimal"), chance.choice((0, 1)))]
    names = ["k", "v", *(f"more_{at}" for at in range(len(types) - 2))]
    text, columns, _ = query_over(chance, _some(chance, readable), types)
    listed = ", ".join(f"{own} AS {name}" for (own, _), name in zip(columns, names, strict=True))
    return f"SELECT {listed} FROM ({text}) AS q", dict(zip(names, types, strict=True))


_TEMPLATES: Sequence[tuple[str, dict[str, Type]]] = (
    (
        "SELECT x.k, count(*) AS `count(*)`, sum(x.v) AS `sum of v`, count(x.v) AS `Count`, min(x.v) AS least FROM {%a} x GROUP BY x.k",
        {"k": "int"},
    ),
    (
        "SELECT k AS `the k`, count(*) AS n, sum(v) AS total, count(v) AS vs, avg(v) AS mean FROM {%a} GROUP BY k",
        {"`the k`": "int", "n": "int"},
    ),
    ("SELECT x.k, x.v AS `Größe`, y.v AS `select` FROM {%a} x JOIN {%b} y ON x.k = y.k WHERE x.v > 0 OR y.v > 0", {"k": "int"}),
    ("SELECT DISTINCT k, v FROM {%a} UNION ALL SELECT k, v FROM {%b} WHERE k IS NOT NULL", {"k": "int", "v": "int"}),
    ("SELECT x.k, x.v, y.v AS other FROM {%a} x LEFT JOIN {%b} y ON x.k = y.k AND y.v > 0", {"k": "int", "v": "int"}),
    ("SELECT coalesce(x.k, y.k) AS k, x.v, y.v AS other FROM {%a} x FULL JOIN {%b} y ON x.k = y.k", {"k": "int"}),
    ("SELECT k, v, rank() OVER (PARTITION BY k ORDER BY v DESC) AS `rank 1` FROM {%a}", {"k": "int", "v": "int"}),
    ("SELECT k, count(DISTINCT v) AS n, max(v) AS most FROM {%a} GROUP BY k HAVING count(*) > 1", {"k": "int"}),
    ("SELECT k, v FROM {%a} WHERE k NOT IN (SELECT k FROM {%b} WHERE k IS NOT NULL AND v > 1)", {"k": "int"}),
    ("SELECT * FROM {%a} WHERE EXISTS (SELECT 1 FROM {%b} y WHERE y.v = 1)", {"k": "int", "v": "int"}),
    (
        "WITH sums AS (SELECT k, sum(v) AS v, count(*) AS n FROM {%a} GROUP BY k) "
        "SELECT v, count(*) AS `how many`, max(n) AS most FROM sums GROUP BY v",
        {"v": "int"},
    ),
    ("SELECT x.k, (SELECT max(y.v) FROM {%b} y WHERE y.k = x.k) AS most FROM {%a} x", {"k": "int"}),
    ("SELECT count(*) AS n, sum(v) AS total, count(v) AS vs FROM {%a}", {"n": "int"}),
    ("SELECT x.k, count(*) AS n FROM {%a} x JOIN {%a} y ON x.k = y.v GROUP BY x.k", {"k": "int"}),
)


def _template(chance: random.Random, tables: Mapping[str, Any]) -> tuple[str, dict[str, Type]]:
    query, columns = chance.choice(_TEMPLATES)
    one, other = chance.sample(list(tables), 2)
    return query.replace("%a", one).replace("%b", other), columns


def _config(chance: random.Random, columns: Mapping[str, Type], *, is_typed: bool = False) -> str:
    """Set operators may have widened a column to a floating-point number, of which Iceberg has no buckets, unless it `is_typed`."""
    parts = []
    if chance.random() < 0.35:
        fit = {name: type_ for name, type_ in columns.items() if type_ in ("int", "string", "date", "decimal") and "`" not in name}
        if fit:
            name = chance.choice(list(fit))
            field_ = f"{chance.choice(('day', 'month', 'year'))}({name})" if fit[name] == "date" and chance.random() < 0.6 else name
            is_bucket = chance.random() >= 0.85 and is_typed
            parts.append(f"partition_by: ['{f'bucket(3, {name})' if is_bucket else field_}']")
    if chance.random() < 0.2:
        parts.append(f"sort_by: ['{chance.choice([n for n in columns if '`' not in n] or ['k'])} desc']")
    properties = [f"write.{of}.mode: copy-on-write" for of in ("delete", "update", "merge")] if chance.random() < 0.35 else []
    properties += [f"write.format.default: {chance.choice(('avro', 'orc'))}"] if chance.random() < 0.1 else []
    properties += [f"format-version: {chance.choice((1, 3))}"] if chance.random() < 0.15 else []
    if properties:
        parts.append(f"table_properties: {{{', '.join(properties)}}}")
    if chance.random() < 0.15 and not any("format-version" in one for one in properties):  # which the metadata-file format does not allow
        parts.append("storage: {format: metadata-file}")
    return ", ".join(parts)
