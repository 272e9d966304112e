"""seed -> a join of three or four tables, named in any order, with conditions between any of them; a query that reads an inner result twice; and
rows that are limited by a condition, with what other rows say of them."""

from __future__ import annotations

import random

from unit.incremental.on_duckdb import Row, Table
from unit.incremental.queries import Generated


def random_case(seed: int) -> Generated:
    rng = random.Random(seed)
    names = "abcd"[: rng.choice((3, 4, 4))]
    columns = [f"{name}.{column}" for name in names for column in "kv"]
    tree = [f"{one}.{rng.choice('kv')} = {rng.choice(names[:at])}.{rng.choice('kv')}" for at, one in enumerate(names) if at]
    more = [f"{one} {rng.choice(('<', '=', '<>'))} {other}" for one, other in [rng.sample(columns, 2) for _ in range(rng.randrange(3))]]
    conditions = [*tree[rng.random() < 0.2 :], *more, *(["a.v >= 0"] if rng.random() < 0.5 else [])]
    rng.shuffle(conditions)
    order = rng.sample(names, len(names))
    from_ = f"{{{order[0]}}} AS {order[0]}"
    for at, name in enumerate(order[1:], 1):
        if at == 1 and rng.random() < 0.4:
            from_ += f" LEFT JOIN {{{name}}} AS {name} ON {order[0]}.k = {name}.k"
            # Otherwise a row without a match would not remain.
            conditions = [one for one in conditions if f"{name}." not in one]
            continue
        on = next((c for c in conditions if set(c) & set(names) <= {*order[: at + 1]}), None) if rng.random() < 0.3 else None
        if on is None:
            from_ += f" CROSS JOIN {{{name}}} AS {name}"
        else:
            from_ += f" {'LEFT' if rng.random() < 0.4 else ''} JOIN {{{name}}} AS {name} ON {on}"
            conditions.remove(on)
    picked = rng.sample(columns, 3)
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    grouped = rng.random() < 0.5
    listed = ", ".join(f"{one} AS c{at}" for at, one in enumerate(picked)) + (", count(*) AS n" if grouped else "")
    query = f"SELECT {listed} FROM {from_}{where}" + (f" GROUP BY {', '.join(picked)}" if grouped else "")

    def rows() -> list[Row]:
        return [(rng.choice((None, 0, 1, 2)), rng.choice((None, 0, 1, 2))) for _ in range(rng.randrange(2, 7))]

    tables = []
    for name in names:
        old = rows()
        new = [*old[rng.randrange(2) :], *rows()[: rng.randrange(3)]] if rng.random() < 0.6 else old
        tables.append(Table(name, {"k": "int", "v": "int"}, old, new))
    return Generated(seed, query, tuple(tables), frozenset(), "both")


def read_twice(seed: int) -> Generated:
    """Values of groups beside the largest or smallest value of the same groups, or of groups that differ in one thing."""
    rng = random.Random(seed)
    parts = [rng.choice(("k", "k", "v")), rng.choice(("sum(v)", "sum(v)", "count(v)", "max(v)")), rng.choice(("v >= 0", "k >= 0"))]
    others = list(parts)
    if rng.random() < 0.6:
        at = rng.choice((0, 1, 2, 2))
        others[at] = ("v" if parts[0] == "k" else "k", "count(k)", rng.choice(("v > 0", "k > 0")))[at]
    one, other = (f"SELECT {key} AS k, {value} AS s FROM {{a}} WHERE {where} GROUP BY {key}" for key, value, where in (parts, others))
    of_all = rng.choice(("max", "max", "min", "count"))
    query = f"SELECT b.v, one.s FROM {{b}} AS b JOIN one ON b.k = one.k WHERE one.s >= (SELECT {of_all}(s) FROM other)"

    def rows() -> list[Row]:
        return [(rng.choice((None, 0, 1, 2)), rng.choice((None, 0, 1, 2))) for _ in range(rng.randrange(2, 7))]

    tables = []
    for name in "ab":
        old = rows()
        tables.append(Table(name, {"k": "int", "v": "int"}, old, [*old[rng.randrange(3) :], *rows()[: rng.randrange(3)]]))
    return Generated(seed, f"WITH one AS ({one}), other AS ({other}) {query}", tuple(tables), frozenset(), "both")


_PARTNERS = (
    "SELECT b.k, b.v, n.s FROM {left} LEFT JOIN (SELECT k, {value} AS s FROM {{a}} GROUP BY k) AS n ON b.k = n.k WHERE {where}",
    "SELECT b.k, b.v FROM {left} WHERE {where} AND EXISTS (SELECT 1 FROM {{a}} AS a WHERE a.k = b.k AND a.v >= 0)",
    "SELECT b.k, b.v FROM {left} WHERE {where} AND NOT EXISTS (SELECT 1 FROM {{a}} AS a WHERE a.k = b.k AND a.v >= 0)",
    "SELECT b.k, b.v FROM {left} WHERE {where} AND b.v <= (SELECT sum(a.v) FROM {{a}} AS a WHERE a.k = b.k)",
    "SELECT b.k, b.v FROM {left} WHERE {where} AND b.k IN (SELECT k FROM {{a}} GROUP BY k HAVING count(*) > 1)",
    "SELECT b.k, count(a.v) AS v FROM {left} LEFT JOIN {{a}} AS a ON b.k = a.k AND a.v >= 0 WHERE {where} GROUP BY b.k",
    "SELECT b.k, n.s AS v FROM {left} JOIN (SELECT k, {value} AS s FROM {{a}} GROUP BY k) AS n ON b.k = n.k WHERE {where}",
)
_LEFT = ("{b} AS b", "{b} AS b JOIN {c} AS c ON b.v = c.k", "{c} AS c JOIN {b} AS b ON b.v = c.k", "{a} AS c JOIN {b} AS b ON b.k = c.k")


def with_partners(seed: int) -> Generated:
    """Rows of `b` under a condition, with a value or the existence of rows of `a`; `b` changes in three of ten cases."""
    rng = random.Random(seed)
    where = rng.choice(("b.v >= 1", "b.k = 1", "(b.v = 0 OR b.v IS NULL)", "b.k >= 1"))
    value = rng.choice(("sum(v)", "max(v)", "count(*)"))
    query = rng.choice(_PARTNERS).format(left=rng.choice(_LEFT), value=value, where=where)
    if rng.random() < 0.3:
        query = f"SELECT k, count(*) AS n FROM ({query}) AS q GROUP BY k"

    def rows() -> list[Row]:
        return [(rng.choice((None, 0, 1, 2)), rng.choice((None, 0, 1, 2))) for _ in range(rng.randrange(2, 7))]

    tables = []
    for name, chance in (("a", 1.0), ("b", 0.3), ("c", 0.5)):
        old = rows()
        new = [*old[rng.randrange(3) :], *rows()[: rng.randrange(3)]] if rng.random() < chance else old
        tables.append(Table(name, {"k": "int", "v": "int"}, old, new))
    return Generated(seed, query, tuple(tables), frozenset(), "both")
