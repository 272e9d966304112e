"""A random generator + names of tables with integers k and v -> a query in which the operators of incremental refreshes are mixed.

Every part of it has two columns of integers, k and v, so that any part can be below any other one. Where only some rows are taken, rows with
equal order keys are the same, so that there is one right result.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

_AGGREGATES = (
    "sum(v)",
    "sum(v)",
    "count(*)",
    "count(v)",
    "count(DISTINCT v)",
    "max(v)",
    "min(v)",
    "count(*) FILTER (WHERE v > 1)",
    "sum(v) FILTER (WHERE v <> 1)",
    "sum(DISTINCT v)",
    "coalesce(sum(v), 0)",
    "sum(v) + count(*)",
    "max(v) - min(v)",
    "CAST(sum(CAST(v AS DOUBLE)) AS INT)",
    "CAST(avg(v) * 10 AS INT)",
    "count_if(v > 1)",
)
_HAVING = ("", "", "", " HAVING count(*) > 1", " HAVING sum(v) > 2", " HAVING count(v) = 0", " HAVING max(v) IS NOT NULL")
_ORDERS = (
    "v, k",
    "v DESC, k",
    "v NULLS LAST, k NULLS LAST",
    "v DESC NULLS FIRST, k DESC NULLS FIRST",
    "k + v, k, v",
    "coalesce(v, 2), v, k",
    "1, 2",
)
_CONDITIONS = ("v > 1", "v IS NULL", "v IS NOT NULL", "k <> 1", "k IS NULL OR v = 1", "k <= v", "k IN (1, 2)", "k > 99")


@dataclass
class Mixed:
    random: random.Random
    tables: Sequence[str]
    operators: set[str]
    common: str = ""
    """The name of a common table expression."""
    _numbers: list[int] = field(default_factory=lambda: [0])

    def query(self) -> str:
        self.operators.add("mixed")
        with_ = ""
        if self.random.random() < 0.35:
            with_ = f"WITH w AS ({self.part(1)}) "
            self.common = "w"
        return with_ + self.top()

    def top(self) -> str:
        depth = self.random.choice((1, 2, 2, 3))
        kind = self.random.random()
        if kind < 0.2:
            return f"SELECT k, sum(v) AS s, count(*) AS n, count(v) AS m FROM {self.source(depth)} GROUP BY k"
        if kind < 0.3:
            return f"SELECT sum(v) AS s, count(*) AS n, count(v) AS m, count(DISTINCT k) AS d FROM {self.source(depth)}"
        if kind < 0.4:
            if self.random.random() < 0.3:
                return f"SELECT k + 1 AS k, v, sum(v) AS s, count(*) AS n FROM {self.source(depth)} GROUP BY {self.one_of(('ROLLUP', 'CUBE'))} (k + 1, v)"
            return f"SELECT k, grouping_id(k, v) AS g, v, count(*) AS n FROM {self.source(depth)} GROUP BY {self.sets()}"
        if kind < 0.5:
            return f"SELECT k, {self.one_of(_AGGREGATES)} AS x, {self.one_of(_AGGREGATES)} AS y FROM {self.source(depth)} GROUP BY k{self.one_of(_HAVING)}"
        return self.part(depth)

    def one_of(self, several: Sequence[str]) -> str:
        return self.random.choice(several)

    def name(self) -> str:
        self._numbers[0] += 1
        return f"q{self._numbers[0]}"

    def source(self, depth: int) -> str:
        """What can be behind FROM."""
        if depth <= 0 or self.random.random() < 0.2:
            named = self.common if self.common and self.random.random() < 0.5 else "{" + self.one_of(self.tables) + "}"
            return f"{named} AS {self.name()}"
        return f"({self.part(depth - 1)}) AS {self.name()}"

    def part(self, depth: int) -> str:
        """A query with the columns k and v."""
        makers: Sequence[tuple[str, Callable[[int], str]]] = (
            ("filter", self.filtered),
            ("group by", self.grouped),
            ("group by", self.grouped),
            ("grouping sets", self.grouping_sets),
            ("newest row", self.newest),
            ("pivot", self.pivoted),
            ("global aggregate", self.of_all),
            ("limit", self.limited),
            ("set operation", self.combined),
            ("window", self.windowed),
            ("not in", self.not_in),
            ("in", self.listed),
            ("scalar subquery", self.scalar),
            ("join", self.joined),
            ("join", self.joined),
            ("exists", self.exists),
            ("distinct", self.distinct),
        )
        operator, make = self.random.choice(makers)
        self.operators.add(operator)
        return make(depth)

    def filtered(self, depth: int) -> str:
        return f"SELECT k, {self.one_of(('v', 'v + 1', 'k', 'coalesce(v, 7)'))} AS v FROM {self.source(depth)} WHERE {self.one_of(_CONDITIONS)}"

    def grouped(self, depth: int) -> str:
        return f"SELECT k, {self.one_of(_AGGREGATES)} AS v FROM {self.source(depth)} GROUP BY k{self.one_of(_HAVING)}"

    def sets(self) -> str:
        return self.one_of(("ROLLUP (k, v)", "CUBE (k, v)", "GROUPING SETS ((k), (v), ())", "GROUPING SETS ((k, v), (k))", "k, ROLLUP (v)"))

    def grouping_sets(self, depth: int) -> str:
        shown = self.one_of(("k", "coalesce(k, -1)", "k", "grouping(k)", "grouping_id(k, v)"))
        value = self.one_of(("v", "count(*)", "sum(v)", "count(DISTINCT v)", "max(k)", "grouping(v)", "count(*) FILTER (WHERE v > 1)"))
        having = self.one_of(
            ("", "", " HAVING grouping(v) = 0", " HAVING count(*) > 1", " HAVING grouping(k) = 1 OR sum(v) > 1", " HAVING k IS NULL")
        )
        return f"SELECT {shown} AS k, {value} AS v FROM {self.source(depth)} GROUP BY {self.sets()}{having}"

    def newest(self, depth: int) -> str:
        order = self.one_of(("v DESC", "v", "v NULLS LAST"))
        rank, most = self.one_of_pairs((("row_number", "= 1"), ("row_number", "<= 2"), ("rank", "= 1")))
        numbered = f"SELECT k, v, {rank}() OVER (PARTITION BY k ORDER BY {order}) AS place FROM {self.source(depth)}"
        return f"SELECT k, v FROM ({numbered}) AS {self.name()} WHERE place {most}"

    def one_of_pairs(self, several: Sequence[tuple[str, str]]) -> tuple[str, str]:
        return self.random.choice(several)

    def pivoted(self, depth: int) -> str:
        function = self.one_of(("sum", "max", "min", "avg"))
        shown = self.one_of(("one", "two", "coalesce(one, two)", "one + two"))
        shown = f"CAST({shown} AS INT)" if function == "avg" else shown
        below = f"SELECT k, v AS b, {self.one_of(('v', 'v + 1', 'k + v'))} AS x FROM {self.source(depth)}"
        return f"SELECT k, {shown} AS v FROM ({below}) PIVOT ({function}(x) FOR b IN (1 AS one, 2 AS two))"

    def of_all(self, depth: int) -> str:
        first = self.one_of(("count(DISTINCT k)", "count(*)", "min(k)", "sum(k)", "avg(k) > 1", "count(k)"))
        first = f"CAST({first} AS INT)" if ">" in first else first
        return (
            f"SELECT {first} AS k, {self.one_of(('count(DISTINCT v)', *_AGGREGATES))} AS v FROM {self.source(depth)}{self.one_of(_HAVING)}"
        )

    def limited(self, depth: int) -> str:
        most = self.one_of((" LIMIT 1", " LIMIT 2", " LIMIT 3", " LIMIT 2 OFFSET 1", " OFFSET 2", " LIMIT 0"))
        return f"SELECT k, v FROM {self.source(depth)} ORDER BY {self.one_of(_ORDERS)}{most}"

    def combined(self, depth: int) -> str:
        kind = self.one_of(("UNION ALL", "UNION", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL"))
        return f"SELECT k, v FROM {self.source(depth)} {kind} SELECT k, v FROM {self.source(depth - 1)}"

    def windowed(self, depth: int) -> str:
        if self.random.random() < 0.3:
            keys = self.one_of((("k", "v"), ("k", "k + v"), ("v % 2", "k"), ("k + 1", "k + 1"), ("k, v", "v + 1")))
            values = [f"{self.one_of(('sum(v)', 'count(*)', 'max(k)'))} OVER (PARTITION BY {key})" for key in keys]
            return f"SELECT {values[0]} AS k, {values[1]} AS v FROM {self.source(depth)}"
        over = self.one_of(
            (
                "PARTITION BY k",
                "PARTITION BY k ORDER BY v",
                "PARTITION BY k + v",
                "PARTITION BY v % 2 ORDER BY k",
                "ORDER BY v",
                "ORDER BY k",
                "",
            )
        )
        function = self.one_of(
            ("sum(v)", "count(*)", "max(v)", "rank()", "dense_rank()") if "ORDER" in over else ("sum(v)", "count(*)", "min(v)")
        )
        return f"SELECT k, {function} OVER ({over}) AS v FROM {self.source(depth)}"

    def listed(self, depth: int) -> str:
        """IN with two columns, and IN as a part of a value."""
        below = self.source(depth - 1)
        if self.random.random() < 0.4:
            pair = self.one_of(("k, v", "v, k", "k, k", "k, max(v)"))
            groups = " GROUP BY k" if "max" in pair else ""
            return f"SELECT k, v FROM {self.source(depth)} WHERE (k, v) IN (SELECT {pair} FROM {below}{groups})"
        test = f"{self.one_of(('k', 'v', 'k + 1'))} IN (SELECT {self.one_of(('k', 'v'))} FROM {below})"
        if self.random.random() < 0.3:
            return f"SELECT k, {self.one_of(('sum', 'max'))}(CASE WHEN {test} THEN 1 ELSE v END) AS v FROM {self.source(depth)} GROUP BY k"
        return f"SELECT k, CASE WHEN {self.one_of(('', 'v > 1 OR ', 'k = 1 AND '))}{test} THEN 1 ELSE v END AS v FROM {self.source(depth)}"

    def not_in(self, depth: int) -> str:
        return f"SELECT k, v FROM {self.source(depth)} WHERE {self.one_of(('k', 'v', 'v + 1'))} NOT IN (SELECT {self.one_of(('k', 'v'))} FROM {self.source(depth - 1)})"

    def scalar(self, depth: int) -> str:
        value = self.one_of(("max(v)", "max(v)", "min(k)", "count(DISTINCT v)", "sum(k)", "count(*)", "min(v) + 1"))
        subquery = f"(SELECT {value} FROM {self.source(depth - 1)}{self.one_of(('', '', '', ' HAVING count(*) > 2'))})"
        if self.random.random() < 0.3:
            subquery = f"(SELECT v FROM {self.source(depth - 1)} WHERE {self.one_of(_CONDITIONS)} ORDER BY v, k LIMIT 1)"
        if self.random.random() < 0.5:
            compared = f"{self.one_of(('v', 'k'))} {self.one_of(('<', '>=', '=', '=', '<>', 'IS NOT DISTINCT FROM'))} {subquery}"
            compared = compared.replace(subquery, f"coalesce({subquery}, 1)") if self.random.random() < 0.1 else compared
            compared += self.one_of(("", "", "", " + 1", " OR k = 1"))
            return f"SELECT k, v FROM {self.source(depth)} WHERE {self.one_of(('', '', 'NOT '))}({compared})"
        return f"SELECT k, {self.one_of(('coalesce', 'greatest'))}(v, {subquery}) AS v FROM {self.source(depth)}"

    def compared(self) -> str:
        """A condition on the value of a subquery, which may have no row."""
        self.operators.add("compared value")
        value, having = self.one_of(("max(v)", "max(v)", "min(v)", "min(k)", "count(*)")), self.one_of(("", " HAVING count(*) > 2"))
        below = self.source(self.random.choice((0, 0, 1)))
        subquery = f"(SELECT {value} FROM {below} WHERE {self.one_of(_CONDITIONS)}{having})"
        if self.random.random() < 0.25:
            subquery = f"(SELECT v FROM {below} WHERE {self.one_of(_CONDITIONS)} ORDER BY v, k LIMIT 1)"
        around = self.one_of(("{0}", "{0}", "{0}", "coalesce({0}, 1)", "{0} + 1", "nullif({0}, 1)", "greatest({0}, 2)"))
        test = f"{self.one_of(('v', 'k', 'coalesce(v, 0)', 'k + v'))} {self.one_of(('=', '=', '<=>', '<>', '<', '>='))} {around.format(subquery)}"
        if self.random.random() < 0.3:
            test = self.one_of((f"NOT ({test})", f"{test} OR k = 1", f"{test} AND v > 0", f"{test} IS NULL"))
        rows = f"SELECT k, v FROM {self.source(self.random.choice((0, 0, 1)))} WHERE {test}"
        return rows if self.random.random() < 0.7 else f"SELECT k, sum(v) AS s, count(*) AS n, count(v) AS m FROM ({rows}) AS q GROUP BY k"

    def positions(self) -> str:
        """Window functions that depend on the order of rows, over rows of which few or none are equal for ORDER BY."""
        self.operators.add("positions")
        source = self.source(self.random.choice((0, 0, 1)))
        if self.random.random() < 0.5:
            sides = [self.source(0).rpartition(" AS ")[0] for _ in range(2)]
            source = f"(SELECT l.k, l.v FROM {sides[0]} AS l JOIN {sides[1]} AS r ON l.k = r.k) AS j"
        below = self.one_of(
            (
                f"SELECT k, v, 1 AS a FROM {source}",
                f"SELECT k, v, count(*) AS a FROM {source} GROUP BY k, v",
                f"SELECT k, v, count(*) AS a FROM {source} GROUP BY k, v HAVING count(*) > 1",
                f"SELECT k, max(v) AS v, count(*) AS a FROM {source} GROUP BY k",
                f"SELECT DISTINCT k, v, v + 1 AS a FROM {source}",
                f"SELECT k, v, 1 AS a FROM {source} INTERSECT SELECT k, v, 1 AS a FROM {self.source(0)}",
                f"SELECT k, v, 1 AS a FROM {source} UNION ALL SELECT k, v, 2 FROM {self.source(0)}",
            )
        )
        partition, order = self.one_of_pairs(
            (("k", "v"), ("v", "k"), ("a", "k, v"), ("a", "v DESC, k"), ("k", "v, a"), ("a", "k"), ("k", "a"), ("v", "a"))
        )
        function = self.one_of(("lag(v)", "lead(k)", "row_number()", "first_value(a)", "sum(a)", "ntile(2)", "sum(CAST(a AS DOUBLE))"))
        frame = "" if "(v)" in function or "(k)" in function or "()" in function or "ntile" in function else " ROWS 1 PRECEDING"
        rows = f"SELECT k, v, {function} OVER (PARTITION BY {partition} ORDER BY {order}{frame}) AS x FROM ({below}) AS b"
        if self.random.random() < 0.4:
            return rows
        if self.random.random() < 0.3:
            return f"SELECT k, v FROM ({rows}) AS r WHERE x = 1"
        return f"SELECT {self.one_of(('k', 'v', 'x'))} AS g, count(*) AS n, sum(x) AS s, count(x) AS m FROM ({rows}) AS r GROUP BY 1"

    def joined(self, depth: int) -> str:
        kind = self.one_of(("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"))
        on = (
            ""
            if kind == "CROSS JOIN"
            else f" ON {self.one_of(('l.k = r.k', 'l.k = r.v', 'l.k = r.k AND l.v < r.v', 'l.k <=> r.k', 'l.v = r.v AND l.k = r.k'))}"
        )
        shown = self.one_of(("l.k AS k, r.v AS v", "coalesce(l.k, r.k) AS k, l.v AS v", "r.k AS k, l.v + r.v AS v"))
        sides = [self.source(depth).rpartition(" AS ")[0], self.source(depth - 1).rpartition(" AS ")[0]]
        return f"SELECT {shown} FROM {sides[0]} AS l {kind} {sides[1]} AS r{on}"

    def exists(self, depth: int) -> str:
        outer, inner = self.source(depth).rpartition(" AS ")[0], self.source(depth - 1).rpartition(" AS ")[0]
        negated = self.one_of(("", "NOT "))
        return (
            f"SELECT o.k, o.v FROM {outer} AS o WHERE {negated}EXISTS (SELECT 1 FROM {inner} AS i WHERE i.{self.one_of(('k', 'v'))} = o.k)"
        )

    def distinct(self, depth: int) -> str:
        return f"SELECT DISTINCT k, v FROM {self.source(depth)}"
