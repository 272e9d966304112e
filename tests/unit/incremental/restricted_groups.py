"""seed -> rows under a condition that are joined with the groups of an aggregate or with their keys: by a subquery, a join, IN or EXISTS."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

from unit.incremental.on_duckdb import Row, Table
from unit.incremental.queries import Generated

_KEYS: dict[str, tuple[Any, ...]] = {
    "int": (None, 0, 1, 2, 3),
    "string": (None, "", "a", "b", "1"),
    "decimal(5,2)": (None, Decimal("0.00"), Decimal("1.00"), Decimal("1.50")),
    "double": (None, 0.0, 0.5, 1.5),
    "boolean": (None, True, False),
}
_NUMBERS = (None, 0, 1, 2, 5)
_OF_GROUPS = (
    "sum({})",
    "avg({})",
    "min({})",
    "max({})",
    "count({})",
    "count(*)",
    "sum({}) + count(*)",
    "count(DISTINCT {})",
    "0.5 * sum({})",
)


def restricted_groups(seed: int) -> Generated:
    return _Maker(random.Random(seed), seed).made()


class _Maker:
    def __init__(self, rng: random.Random, seed: int) -> None:
        self.rng, self.seed = rng, seed
        self.kind = rng.choice(("int", "int", "int", "string", "decimal(5,2)", "double", "boolean"))
        # A key of another type is compared after a cast.
        self.kinds = dict.fromkeys("abc", self.kind)
        if self.kind == "decimal(5,2)" and rng.random() < 0.3:
            self.kinds["a"] = "int"

    def made(self) -> Generated:
        from_, conditions, owns = self._left()
        listed = ["b.k", "b.g", "b.v"]
        if self.rng.random() < 0.2:
            value, table = self.rng.choice(("avg(v)", "min(g)", "count(*)")), self.rng.choice("bc")
            conditions.append(f"b.v >= (SELECT {value} FROM {{{table}}} WHERE v < 5)")
        one = self.rng.choice(owns)
        for at in range(self.rng.choice((1, 1, 1, 2))):
            how = self.rng.choice(("where", "where", "select", "join", "join", "in", "exists", "exists"))
            if how == "select":
                listed.append(f"{self._subquery(one)} AS s{at or ''}")
            elif how == "join":
                joined = self._groups(one, f"n{at}")
                from_ += joined
                listed.append(f"n{at}.s AS s{at or ''}")
            else:
                conditions.append(self._condition(how, one))
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        query = self._top(f"SELECT {', '.join(listed)} FROM {from_}{where}", listed)
        return Generated(self.seed, query, self._tables(), frozenset(), "both")

    def _condition(self, how: str, one: str) -> str:
        if how == "where":
            other = self.rng.choice(("b.v", "b.g", "coalesce(b.v, 0)"))
            return f"{other} {self.rng.choice(('<', '>=', '<>', '='))} {self._subquery(one)}"
        if how == "in":
            having = self.rng.choice(("", " HAVING count(*) > 1", " HAVING sum(v) > 1"))
            return f"{one} IN (SELECT {self._key()} AS k FROM {{a}}{self._of_a()} GROUP BY {self._key()}{having})"
        rows = "{a} AS i" if self.rng.random() < 0.7 else "{a} AS i JOIN {c} AS j ON i.g = j.g"
        more = self.rng.choice(("", "", " AND i.v >= 1", " AND i.g = b.g", " AND i.v < b.v"))
        exists = f"EXISTS (SELECT 1 FROM {rows} WHERE i.k = {one}{more})"
        return self.rng.choice((exists, f"NOT {exists}", f"{one} IN (SELECT i.k FROM {rows})"))

    def _groups(self, one: str, name: str) -> str:
        kind, on, key = self.rng.choice(("LEFT JOIN", "JOIN")), self.rng.choice(("=", "=", "<=>")), self._key()
        also, more = self.rng.choice((("", ""), ("", ""), (", g", f" AND {name}.g {on} b.g"), ("", f" AND {name}.s >= b.v")))
        value = self.rng.choice(_OF_GROUPS).format("v")
        groups = f"SELECT {key} AS k{also}, {value} AS s FROM {{a}}{self._of_a()} GROUP BY {key}{also}"
        if self.rng.random() < 0.2:
            groups += " HAVING count(*) > 1"
        return f" {kind} ({groups}) AS {name} ON {name}.k {on} {one}{more}"

    def _left(self) -> tuple[str, list[str], list[str]]:
        """The rows of b under a condition, the condition, and the columns to compare with the keys of groups."""
        low = self.rng.choice(("{}.v > 0", "{}.v = 1", "({}.v IS NULL OR {}.v > 1)", "{}.g = 1"))
        of_b, of_c = low.replace("{}", "b"), low.replace("{}", "c")
        return self.rng.choice(
            [
                ("{b} AS b", [of_b], ["b.k"]),
                ("{b} AS b JOIN {c} AS c ON b.k = c.k", [of_c], ["b.k", "c.k"]),
                ("{c} AS c JOIN {b} AS b ON c.k = b.k", [of_c, of_b], ["b.k", "c.k"]),
                ("{b} AS b CROSS JOIN {c} AS c", ["b.v = c.g", of_c], ["b.k", "c.k"]),
                ("{b} AS b LEFT JOIN {c} AS c ON b.k = c.k", [of_b], ["b.k", "c.k"]),
                ("{a} AS x JOIN {b} AS b ON x.k = b.k", [of_b], ["b.k", "x.k"]),
                ("{b} AS b", ["b.k IN (SELECT k FROM {c} AS c WHERE v > 0)"], ["b.k"]),
                ("{b} AS b", ["EXISTS (SELECT 1 FROM {c} AS c WHERE c.k = b.k AND c.v > 0)"], ["b.k"]),
                ("{b} AS b", ["NOT EXISTS (SELECT 1 FROM {c} AS c WHERE c.k = b.k)"], ["b.k"]),
                ("(SELECT k AS k, g + 1 AS g, v FROM {b} WHERE v > 0) AS b", [], ["b.k"]),
            ]
        )

    def _key(self) -> str:
        return "k + 1" if self.kinds["a"] == "int" and self.seed % 5 == 0 else "k"

    def _of_a(self) -> str:
        return " WHERE v >= 1" if self.seed % 3 == 0 else ""

    def _subquery(self, own: str) -> str:
        value = self.rng.choice(_OF_GROUPS).format("i.v")
        more = self.rng.choice(("", "", " AND i.v >= 1", " AND i.g = b.g"))
        other = " JOIN {c} AS j ON j.g = i.g" if self.rng.random() < 0.2 else ""
        return f"(SELECT {value} FROM {{a}} AS i{other} WHERE i.k = {own}{more})"

    def _top(self, query: str, listed: list[str]) -> str:
        value = "s" if len(listed) > 3 else "v"
        return self.rng.choice(
            [
                query,
                query,
                f"SELECT sum(v) AS t, count(*) AS n FROM ({query}) AS q",
                f"SELECT sum({value}) / 7.0 AS t FROM ({query}) AS q",
                f"SELECT g, count(*) AS n, max({value}) AS m FROM ({query}) AS q GROUP BY g",
                f"SELECT g, avg(v) AS m FROM ({query}) AS q GROUP BY g HAVING count(*) > 1",
                f"SELECT DISTINCT k, {value} FROM ({query}) AS q",
                f"SELECT d.k, d.v FROM {{c}} AS d WHERE d.k IN (SELECT k FROM ({query}) AS q)",
            ]
        )

    def _tables(self) -> tuple[Table, ...]:
        tables = []
        for name in "abc":
            old = self._rows(name)
            new = [*old[self.rng.randrange(3) :], *self._rows(name)[: self.rng.randrange(4)]] if self.rng.random() < 0.7 else old
            tables.append(Table(name, {"k": self.kinds[name], "g": "int", "v": "int"}, old, new))
        return tuple(tables)

    def _rows(self, name: str) -> list[Row]:
        keys = _KEYS[self.kinds[name]]
        return [(self.rng.choice(keys), self.rng.choice(_NUMBERS), self.rng.choice(_NUMBERS)) for _ in range(self.rng.randrange(2, 9))]
