"""seed -> groups over a LEFT JOIN, with values of both of its sides, by themselves or below another query."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from unit.incremental.on_duckdb import Row, Table
from unit.incremental.queries import Generated

_KEYS: tuple[Any, ...] = (None, 0, 1, 2, 3)
_NUMBERS = (None, 0, 1, 2, 5)
_OF_RIGHT = (
    "count(b.v)",
    "count(b.k)",
    "sum(b.v)",
    "max(b.v)",
    "min(b.g)",
    "avg(b.v)",
    "sum(b.v * b.g)",
    "sum(b.v + a.v)",
    "count_if(b.v > 1)",
    "sum(b.v) FILTER (WHERE b.g = 1)",
    "sum(CASE WHEN b.g >= 1 AND b.v > 0 THEN b.v END)",
    "count(CASE WHEN b.v > 0 THEN a.v END)",
    "count_if(b.v > 0 AND a.g >= 1)",
    "count(CASE WHEN (b.v > 0 AND a.g >= 1) AND a.v > 0 THEN 1 END)",
)
_OF_BOTH = (
    "count(*)",
    "sum(a.v)",
    "count(a.v)",
    "sum(coalesce(b.v, 1))",
    "count_if(b.v IS NULL)",
    "sum(CASE WHEN b.v > 0 THEN 1 ELSE 2 END)",
)

_WITH_B = (
    "(SELECT a.k, a.g, b.v FROM {a} AS a JOIN {b} AS b ON b.k = a.g)",
    "(SELECT b.g AS k, a.g, a.v FROM {a} AS a LEFT JOIN {b} AS b ON b.k = a.g)",
    "(SELECT k, g, v FROM {a} UNION ALL SELECT v, g, k FROM {b})",
)
"""Left sides that read the table of the right side too."""


def groups_of_left_joins(seed: int) -> Generated:
    rng = random.Random(seed)
    left, right = _left(rng), _right(rng)
    on = rng.choice(("b.k = a.k", "b.k = a.k", "b.k <=> a.k", "b.k = a.k AND b.v > 0", "b.k = a.k AND a.g = 1", "b.k < a.k"))
    more, where = _more(rng)
    keys = rng.choice((["a.k"], ["a.k"], ["a.k", "a.g"], ["a.g"], ["a.k + 1"], ["a.k", "b.g"], ["a.k", "a.v"]))
    if rng.random() < 0.05:
        return Generated(seed, _correlated(rng), _tables(rng), frozenset(), "both")
    if rng.random() < 0.1:
        # Its new rows are new groups too.
        one = f"SELECT a.k, a.g, count(b.v) AS n FROM {rng.choice(_WITH_B)} AS a LEFT JOIN {{b}} AS b ON b.k = a.k GROUP BY a.k, a.g"
        return Generated(seed, one, _tables(rng, ("spp", "ppp")), frozenset(), "both")
    values = rng.sample(_OF_RIGHT, rng.choice((1, 1, 2, 3)))
    if rng.random() < 0.3:
        values.append(rng.choice(_OF_BOTH))
    if any(one.startswith(("sum(b.v)", "avg(b.v)")) for one in values):
        # What deletes need.
        values = list(dict.fromkeys([*values, "sum(b.v)", "count(b.v)"]))
    listed = [f"{key} AS k{at}" for at, key in enumerate(keys)] + [f"{one} AS s{at}" for at, one in enumerate(values)]
    groups = f"SELECT {', '.join(listed)} FROM {left} AS a LEFT JOIN {right} AS b ON {on}{more}{where} GROUP BY {', '.join(keys)}"
    return Generated(seed, _top(rng, groups), _tables(rng), frozenset(), "both")


def _correlated(rng: random.Random) -> str:
    """A correlated scalar subquery is a LEFT JOIN with groups."""
    subquery = f"(SELECT {rng.choice(('max(b.v)', 'sum(b.v)', 'count(b.v)'))} FROM {{b}} AS b WHERE b.k = a.k)"
    values = rng.choice(("count(s) AS n", "sum(s) AS t, count(s) AS n", "min(s) AS n", "count(*) AS n"))
    return f"SELECT g, {values} FROM (SELECT a.k, a.g, {subquery} AS s FROM {{a}} AS a) AS q GROUP BY g"


def _left(rng: random.Random) -> str:
    return rng.choice(
        (
            "{a}",
            "{a}",
            "(SELECT k, g, v FROM {a} WHERE v > 0)",
            "(SELECT k + 0 AS k, g, v FROM {a})",
            "(SELECT a.k, c.g, c.v FROM {a} AS a JOIN {c} AS c ON c.k = a.k)",
            "(SELECT k, g, v FROM {a} UNION ALL SELECT k, g, v FROM {c})",
            "(SELECT k, g, sum(v) AS v FROM {a} GROUP BY k, g)",
            *_WITH_B,
        )
    )


def _right(rng: random.Random) -> str:
    return rng.choice(
        (
            "{b}",
            "{b}",
            "(SELECT k, g, v FROM {b} WHERE g > 0)",
            "(SELECT k, coalesce(g, 1) AS g, v FROM {b})",
            "(SELECT b.k, c.g, b.v FROM {b} AS b JOIN {c} AS c ON c.k = b.k)",
            "(SELECT k, g, sum(v) AS v FROM {b} GROUP BY k, g)",
        )
    )


def _more(rng: random.Random) -> tuple[str, str]:
    # Also of tables that the right side reads.
    other = rng.choice("bc")
    joined = rng.choice(
        ("", "", "", f" JOIN {{{other}}} AS d ON d.k = a.k", f" LEFT JOIN {{{other}}} AS d ON d.k = a.g", " JOIN {c} AS d ON d.k <=> b.g")
    )
    where = rng.choice(("", "", " WHERE a.v > 0", " WHERE b.v IS NULL OR b.v > 1", f" WHERE a.k IN (SELECT k FROM {{{other}}})"))
    return joined, where


def _top(rng: random.Random, groups: str) -> str:
    return rng.choice(
        (
            groups,
            groups,
            f"SELECT s0, count(*) AS n FROM ({groups}) AS q GROUP BY s0",
            f"SELECT k0, s0 + 1 AS s FROM ({groups}) AS q",
            f"SELECT sum(s0) AS s, count(s0) AS c, count(*) AS n FROM ({groups}) AS q",
            f"SELECT k0, s0 FROM ({groups}) AS q WHERE s0 > 1",
            f"SELECT c.g, q.s0 FROM {{c}} AS c JOIN ({groups}) AS q ON q.k0 = c.k",
        )
    )


_CHANGES = ("sbs", "pbs", "pbs", "bbs", "bsb", "pbp", "sps", "ppb", "bbb", "spp")
"""For a, b and c: whether a table stays, gets rows (`p`), or also loses some (`b`)."""


def _tables(rng: random.Random, changes: Sequence[str] = _CHANGES) -> tuple[Table, ...]:
    tables = []
    for name, how in zip("abc", rng.choice(changes), strict=True):
        old = _rows(rng)
        new = old[rng.randrange(3) :] if how == "b" else list(old)
        if how != "s":
            new = [*new, *_rows(rng)[: rng.randrange(4)]]
        tables.append(Table(name, dict.fromkeys("kgv", "int"), old, new))
    return tuple(tables)


def _rows(rng: random.Random) -> list[Row]:
    return [(rng.choice(_KEYS), rng.choice(_NUMBERS), rng.choice(_NUMBERS)) for _ in range(rng.randrange(1, 8))]
