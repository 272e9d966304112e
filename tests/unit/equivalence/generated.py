"""seed -> a query of the tables t (id, a, b) and u (id, x, y), a change of it, and one of the ways to write it."""

from __future__ import annotations

import random


def query(rng: random.Random) -> dict[str, object]:
    """The parts of a query, so that one can be changed."""
    return {
        "join": rng.choice(["", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT ANTI JOIN"]),
        "on": ["p.id = q.id", *rng.sample(["q.x > 1", "p.a > 0"], rng.randint(0, 1))],
        "left": rng.sample(["a > 0", "b IS NOT NULL", "a BETWEEN 1 AND 2"], rng.randint(0, 1)),
        "right": rng.sample(["x > 0", "y < 3"], rng.randint(0, 1)),
        "where": rng.sample(["p.a > 0", "p.b < 3", "p.a = 1 OR p.b = 2", "NOT (p.a > 1 AND p.b > 1)", "p.a IN (1, 2)"], rng.randint(0, 2)),
        "group": rng.random() < 0.3,
        "distinct": rng.random() < 0.2,
        "columns": rng.sample(["p.a", "p.b", "p.id"], rng.randint(1, 3)),
        "star": rng.random() < 0.15,
        "outside": rng.choice([None, None, "*", "z.*"]),
        "minus": rng.choice([None, None, None, "x > 1"]),
    }


def changed(rng: random.Random, parts: dict[str, object]) -> dict[str, object]:
    other = query(rng)
    names = rng.sample(sorted(parts), rng.randint(0, 1))
    return {**parts, **{name: other[name] for name in names}}


def text(rng: random.Random, parts: dict[str, object]) -> str:
    """One of the ways to write it."""
    p, q = rng.choice([("p", "q"), ("one", "two")])
    left = "SELECT id, a, b FROM t" + _where(parts["left"], rng)
    right = "SELECT id, x, y FROM u" + _where(parts["right"], rng)
    form = rng.choice(["cte", "subquery", "plain"])
    tables, head = (f"(\n{left}) AS p", f"({right}) AS q"), ""
    if form == "cte":
        head, tables = f"WITH l AS ({left}), r AS ({right}) ", ("l AS p", "r AS q")
    elif form == "plain" and not parts["left"] and not parts["right"]:
        tables = ("t AS p", "u AS q")
    join = f" {parts['join']} {tables[1]} ON {_all(parts['on'], rng)}" if parts["join"] else ""
    columns = list(parts["columns"])  # type: ignore[call-overload]
    shown = ", ".join(c if rng.random() < 0.5 else f"{c} AS {c[2:]}" for c in columns)
    if parts["star"] and not parts["group"]:
        shown, columns = "p.*", ["p.id", "p.a", "p.b"]
    if parts["group"]:
        shown = f"{shown}, count(*) AS n, sum(p.b) AS s"
    select = "SELECT DISTINCT" if parts["distinct"] else "SELECT"
    body = f"{select} {shown} FROM {tables[0]}{join}{_where(parts['where'], rng)}"
    if parts["group"]:
        body += f" GROUP BY {', '.join(rng.sample(columns, len(columns)))}"
    if parts["minus"] and not parts["group"]:
        body += f" EXCEPT SELECT {', '.join('x' for _ in columns)} FROM u AS v WHERE {parts['minus']}"
    if parts["outside"]:
        body = f"SELECT {parts['outside']} FROM ({body}) AS z"
    return (head + body).replace("p.", f"{p}.").replace("q.", f"{q}.").replace("AS p", f"AS {p}").replace("AS q", f"AS {q}")


def _all(conditions: object, rng: random.Random) -> str:
    known = list(conditions)  # type: ignore[call-overload]
    return " AND ".join(f"({c})" for c in rng.sample(known, len(known)))


def _where(conditions: object, rng: random.Random) -> str:
    return f" WHERE {_all(conditions, rng)}" if conditions else ""
