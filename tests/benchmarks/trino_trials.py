"""the expressions that are tried on Spark and on Trino: groups of queries, each group for one more signature.

Expressions with several right results are not tried, since two engines may agree by chance: sums and averages of floats, whose last digit
depends on the order of the rows (an average of integers is one too), their groups and minima, where 0.0 and -0.0 are one value, approximate
functions, and everything that depends on which of several equal rows comes first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

TABLE = "lake.proof.v"
COLUMNS: Mapping[str, str] = {
    "b1": "boolean",
    "b2": "boolean",
    "i1": "int",
    "i2": "int",
    "i3": "int",
    "l1": "bigint",
    "l2": "bigint",
    "l3": "bigint",
    "d1": "decimal(10,2)",
    "d2": "decimal(10,2)",
    "e1": "decimal(18,4)",
    "e2": "decimal(18,4)",
    "h1": "decimal(38,10)",
    "h2": "decimal(38,10)",
    "w1": "decimal(5,0)",
    "w2": "decimal(5,0)",
    "q1": "decimal(15,7)",
    "x1": "double",
    "x2": "double",
    "f1": "float",
    "f2": "float",
    "s1": "string",
    "s2": "string",
    "s3": "string",
    "t1": "date",
    "t2": "date",
    "t3": "date",
    "z1": "timestamp",
    "z2": "timestamp",
    "n1": "timestamp_ntz",
    "n2": "timestamp_ntz",
    "y1": "binary",
    "y2": "binary",
}
PAIRS = {
    "boolean": [("b1", "b2")],
    "int": [("i1", "i2")],
    "bigint": [("l1", "l2")],
    "decimal": [("d1", "d2"), ("e1", "e2"), ("h1", "h2"), ("w1", "w2"), ("d1", "e2"), ("w1", "e1")],
    "double": [("x1", "x2")],
    "float": [("f1", "f2")],
    "string": [("s1", "s2")],
    "date": [("t1", "t2")],
    "timestamp": [("z1", "z2")],
    "timestamp_ntz": [("n1", "n2")],
    "binary": [("y1", "y2")],
}
"""Columns of each kind, two by two."""
_FRACTIONS = ("double", "float")
_DECIMALS = ("d1", "e1", "h1", "w1")


def groups() -> Iterator[list[str]]:
    """In an order in which each needs nothing but what is in those before it."""
    yield from _casts()
    yield from _comparisons()
    yield from _arithmetic()
    yield from _choices()
    yield from _texts()
    yield from _numbers()
    yield from _times()
    yield from _rows()
    yield from _aggregates()
    yield from _windows()


def _row(*expressions: str) -> list[str]:
    return [f"SELECT id, {e} AS r FROM {TABLE} AS v" for e in expressions]


def _group(*expressions: str) -> list[str]:
    return [f"SELECT g, {e} AS r FROM {TABLE} AS v GROUP BY g" for e in expressions] + [
        f"SELECT 1 AS k, {e} AS r FROM {TABLE} AS v" for e in expressions
    ]


def _first(kind: str) -> list[str]:
    return list(_DECIMALS) if kind == "decimal" else [PAIRS[kind][0][0]]


def _small(kind: str) -> list[str]:
    """Columns whose sums do not overflow."""
    return {"int": ["i1"], "bigint": ["CAST(i1 AS BIGINT)"], "decimal": ["d1", "e1", "w1", "q1"]}[kind]


def _casts() -> Iterator[list[str]]:
    for one in PAIRS:
        if one in ("string", "binary"):
            # Few texts are numbers or dates: that they all give null in both would show nothing.
            continue
        for two in ("boolean", "int", "bigint", "double", "float", "string", "date", "timestamp", "timestamp_ntz", "binary"):
            if one != two:
                yield from _cast(one, two)
    yield _row(
        *(f"CAST({c} AS DECIMAL({p}, {s}))" for c in ("i1", "i3") for p, s in ((10, 0), (12, 2), (5, 2))),
        "CAST(7 AS DECIMAL(1,0))",
    )
    yield _row(*(f"CAST({c} AS DECIMAL({p}, {s}))" for c in ("l1", "l3") for p, s in ((20, 0), (22, 2), (5, 2))))
    yield _row(*(f"CAST({c} AS DECIMAL({p}, {s}))" for c in _DECIMALS for p, s in ((10, 0), (12, 1), (38, 10), (20, 4), (4, 1))))
    yield _row(*(f"CAST({c} AS DECIMAL({p}, {s}))" for c in ("x1",) for p, s in ((10, 0), (20, 2))))
    for kind, to in (("bigint", "INT"), ("int", "BIGINT"), ("string", "BOOLEAN"), ("double", "INT")):
        yield _row(*(f"TRY_CAST({c} AS {to})" for c in PAIRS[kind][0]))


def _cast(one: str, two: str) -> Iterator[list[str]]:
    columns = [c for pair in PAIRS[one] for c in pair]
    if one == "decimal" and two == "double":
        yield _row("CAST(d1 AS DOUBLE)", "CAST(w1 AS DOUBLE)", "CAST(d2 AS DOUBLE)", "CAST(w2 AS DOUBLE)", "CAST(q1 AS DOUBLE)")
        yield _row("CAST(e1 AS DOUBLE)", "CAST(h1 AS DOUBLE)")
    else:
        yield _row(*(f"CAST({c} AS {two.upper()})" for c in dict.fromkeys(columns)))


def _comparisons() -> Iterator[list[str]]:
    for pairs in PAIRS.values():
        for operator in ("=", "<>", "<", "<=", ">", ">=", "<=>"):
            yield _row(*(f"{a} {operator} {b}" for a, b in pairs))
        yield _row(*(f"{a} BETWEEN {b} AND {a}" for a, b in pairs), *(f"{a} NOT BETWEEN {b} AND NULL" for a, b in pairs))
        yield _row(*(f"{a} IN ({b}, NULL)" for a, b in pairs), *(f"{a} NOT IN ({b}, {b})" for a, b in pairs))
        yield [
            f"SELECT id, {a} {no}IN (SELECT w.{b} FROM {TABLE} AS w{where}) AS r FROM {TABLE} AS v"
            for a, b in pairs[:4]
            for no in ("", "NOT ")
            for where in ("", f" WHERE w.{b} IS NOT NULL")
        ]


def _arithmetic() -> Iterator[list[str]]:
    for kind in ("int", "bigint", "double", "float"):
        for operator in "+-*":
            yield _row(*(f"{a} {operator} {b}" for a, b in PAIRS[kind]))
        yield _row(f"-{_first(kind)[0]}")
        yield _row(f"abs({_first(kind)[0]})")
    small = [("d1", "d2"), ("e1", "d1"), ("w1", "w2"), ("w1", "e2"), ("d1", "w1")]
    for operator in "+-":
        yield _row(*(f"{a} {operator} {b}" for a, b in (*small, ("e1", "e2"))), f"d1 {operator} 1", f"w1 {operator} i1")
    yield _row(*(f"{a} * {b}" for a, b in (*small, ("e1", "e2"))), "d1 * 2", "w1 * i1", "e1 * 1.5")
    yield _row("h1 + h2")
    yield _row("h1 * h2", "h1 * e1")
    yield _row(*(f"-{c}" for c in ("d1", "e1", "w1", "q1")))
    yield _row("-h1")
    yield _row(*(f"abs({c})" for c in _DECIMALS))
    yield _row("i1 % i2")
    yield _row("l1 % l2")
    yield _row("x1 % x2")
    yield _row("d1 % d2", "d1 % e1")
    yield _row("i1 % 7")
    yield _row("l1 % 7")
    yield _row("x1 / x2")
    yield _row("i1 div 7")
    yield _row("d1 / d2", "d1 / e1")
    yield _row("d1 / 3", "e1 / 7")


def _choices() -> Iterator[list[str]]:
    for kind, pairs in PAIRS.items():
        yield _row(*(f"CASE WHEN b1 THEN {a} WHEN b2 THEN {b} END" for a, b in pairs[:4]), *(f"if(b1, {a}, NULL)" for a, _ in pairs[:4]))
        yield _row(*(f"coalesce({a}, {b})" for a, b in pairs[:4]))
        if kind != "boolean":
            yield _row(*(f"nullif({a}, {b})" for a, b in pairs[:4]))
    yield _row("x1 / 2", "x1 / 0.3", "l1 / nullif(i1, 0)", "l1 / nullif(l2, 0)", "i1 / nullif(i2, 0)", "i1 / 3")
    yield _row("i1 % nullif(i2, 0)")
    yield _row("l1 % nullif(l2, 0)")
    yield _row("greatest(i1, i2)")
    yield _row("least(i1, i2)")
    yield _row("greatest(s1, s2)")
    yield _row("b1 AND b2 OR NOT b1 AND (b2 IS NULL)", "i1 IS NOT NULL AND s1 IS NULL")
    yield _row(
        "d1 = 0.1", "d1 > 5", "i1 = l1", "t1 >= DATE '2000-02-29'", "n1 < TIMESTAMP_NTZ '2024-06-01 12:00:00.5'", "s1 = 'ab'", "x1 IS NULL"
    )


def _texts() -> Iterator[list[str]]:
    yield _row("length(s1)")
    for name in ("upper", "lower", "trim", "ltrim", "rtrim", "reverse", "ascii", "initcap", "md5", "hex"):
        yield _row(f"{name}(s1)")
    yield _row("trim(BOTH ' ' FROM s1)", "trim(BOTH 'ab' FROM s1)")
    yield _row("s1 || s2", "s1 || 'x' || s2")
    yield _row("concat(s1, s2)")
    yield _row("concat(s1, s2, s3)", "concat(s1, '-', s2)")
    yield _row("substring(s1, 1, 2)", "substring(s1, 3, 10)", "substr(s1, 2, 1)")
    yield _row("substring(s1, 2)", "substring(s1, 9)", "substr(s1, 1)")
    yield _row("substring(s1, 0, 2)")
    yield _row("substring(s1, 1, 0)")
    yield _row("substring(s1, -3, 2)", "substring(s1, -9, 2)")
    yield _row("substring(s1, -3)")
    yield _row("substring(s1, i1, i2)")
    yield _row("substring(s1, i1)")
    yield _row("left(s1, 2)")
    yield _row("right(s1, 2)")
    yield _row("replace(s1, 'a', 'bb')", "replace(s1, 'ab', 'é')")
    yield _row("replace(s1, 'a', '')")
    yield _row("replace(s1, '', 'x')")
    yield _row("replace(s1, s2, s3)")
    yield _row(
        *(
            f"s1 LIKE '{p}'"
            for p in ("a%", "%b", "_b%", "", "%", "a%b_c", "%😀%", "_", "__", "%é%x", "A%", "%.%", "%(%", "a.c", "[a]%", "%-%")
        )
    )
    yield _row("s1 LIKE s2")
    yield _row("startswith(s1, s2)")
    yield _row("startswith(s1, 'a')")
    yield _row("instr(s1, s2)")
    yield _row("instr(s1, 'b')", "position('b' IN s1)", "locate('b', s1)")
    yield _row("split_part(s1, 'b', 1)")
    yield _row("concat_ws('-', s1, s2)")
    yield _row("s1 || i1")


def _numbers() -> Iterator[list[str]]:
    yield _row("round(d1, 1)", "round(e1, 2)", "round(w1, 2)", "round(q1, 3)")
    yield _row("round(d1)", "round(e1)", "round(w1)", "round(q1)")
    yield _row("round(h1, 3)")
    yield _row("round(x1, 2)")
    yield _row("round(x1)")
    for name in ("ceil", "floor"):
        yield _row(f"{name}(d1)", f"{name}(e1)", f"{name}(w1)", f"{name}(q1)")
        yield _row(f"{name}(h1)")
    for name in ("ceil", "floor", "ln", "sqrt", "sign"):
        yield _row(f"{name}(x1)")
    yield _row("ceil(i1)")
    yield _row("floor(i1)")
    yield _row("isnan(x1)")


def _times() -> Iterator[list[str]]:
    parts = ("YEAR", "MONTH", "DAY", "QUARTER", "WEEK", "HOUR", "MINUTE", "SECOND", "DOW", "DOY")
    for part in parts:
        yield _row(f"extract({part} FROM t1)")
        yield _row(f"extract({part} FROM n1)")
        yield _row(f"extract({part} FROM z1)")
    yield _row("datediff(t1, t2)")
    yield _row("date_add(t1, i1)", "date_add(t1, 3)", "date_sub(t1, 3)")
    for unit in ("DAY", "MONTH", "YEAR", "WEEK", "HOUR"):
        for operator in "+-":
            yield _row(f"t1 {operator} INTERVAL 1 {unit}", f"t1 {operator} INTERVAL 13 {unit}", f"t2 {operator} INTERVAL '2' {unit}")
            yield _row(f"n1 {operator} INTERVAL 1 {unit}", f"n1 {operator} INTERVAL 13 {unit}")
    for part in ("year", "month", "day", "dayofmonth", "quarter", "weekofyear", "dayofweek", "dayofyear", "last_day"):
        yield _row(f"{part}(t1)")
    for part in ("year", "month", "hour", "minute", "second"):
        yield _row(f"{part}(n1)")
        yield _row(f"{part}(z1)")
    for unit in ("YEAR", "QUARTER", "MONTH", "WEEK"):
        yield _row(f"trunc(t1, '{unit}')")
        yield _row(f"date_trunc('{unit}', t1)")
        yield _row(f"date_trunc('{unit}', n1)")
    yield _row("add_months(t1, 1)")
    yield _row("months_between(t1, t2)")
    yield _row("date_format(t1, 'yyyy')")
    yield _row("t1 - t2")
    yield _row("current_date()")


def _rows() -> Iterator[list[str]]:
    yield [f"SELECT 1 AS k, count(*) AS r FROM {TABLE} AS v"]
    for pairs in (pairs for kind, pairs in PAIRS.items() if kind not in _FRACTIONS):
        columns = dict.fromkeys(a for a, _ in pairs)
        yield [f"SELECT {c} AS k, count(*) AS r FROM {TABLE} AS v GROUP BY {n}" for c in columns for n in (c, "1")]
        yield [f"SELECT DISTINCT {c} AS r FROM {TABLE} AS v" for c in columns]
    for word in ("UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"):
        yield [f"SELECT {a} AS r FROM {TABLE} AS v {word} SELECT {b} AS r FROM {TABLE} AS v" for a, b in (("i1", "i2"), ("s1", "s2"))]
    joins = [
        f"SELECT v.id, w.s2 AS r FROM {TABLE} AS v {side} JOIN {TABLE} AS w ON v.i1 = w.i2" for side in ("INNER", "LEFT", "RIGHT", "FULL")
    ]
    joins += [f"SELECT v.id, w.s2 AS r FROM {TABLE} AS v LEFT JOIN {TABLE} AS w ON v.t1 < w.t2 AND v.i1 = w.i1"]
    joins += [f"SELECT v.id, w.id AS r FROM {TABLE} AS v CROSS JOIN {TABLE} AS w WHERE v.s1 = w.s2"]
    joins += [
        f"SELECT v.id, 1 AS r FROM {TABLE} AS v WHERE {no}EXISTS (SELECT * FROM {TABLE} AS w WHERE w.i1 = v.i2)" for no in ("", "NOT ")
    ]
    joins += [
        f"WITH a AS (SELECT id, s1 FROM {TABLE} AS v), b (k, m) AS (SELECT * FROM a) SELECT k, m AS r FROM b WHERE m IS NOT NULL ORDER BY k"
    ]
    joins += [f"SELECT q.k, q.n AS r FROM (SELECT s1 AS k, count(*) AS n FROM {TABLE} AS v GROUP BY s1 HAVING count(*) > 3) AS q"]
    yield joins


def _aggregates() -> Iterator[list[str]]:
    for kind in PAIRS:
        yield _group(*(f"count({c})" for c in _first(kind)))
        if kind not in _FRACTIONS:
            yield _group(*(f"count(DISTINCT {c})" for c in _first(kind)))
            for name in ("min", "max"):
                yield _group(*(f"{name}({c})" for c in _first(kind)))
    for kind in ("int", "bigint", "decimal"):
        yield _group(*(f"sum({c})" for c in _small(kind)))
        yield _group(*(f"sum(DISTINCT {c})" for c in _small(kind)))
    yield _group(*(f"avg({c})" for c in _DECIMALS))
    yield _group("count(DISTINCT i1, i2)")
    yield _group("bool_and(b1)")
    yield _group("bool_or(b1)")
    for kind in ("int", "bigint", "decimal"):
        yield _group(*(f"sum({c}) FILTER (WHERE b1)" for c in _small(kind)))
    yield _group("count(*) FILTER (WHERE b1 AND i1 > 0)")
    for kind in ("int", "bigint", "string", "date"):
        yield _group(*(f"count({c}) FILTER (WHERE b1)" for c in _first(kind)))
        for name in ("min", "max"):
            yield _group(*(f"{name}({c}) FILTER (WHERE b1)" for c in _first(kind)))


def _windows() -> Iterator[list[str]]:
    for kind in ("int", *(k for k in PAIRS if k != "int")):
        orders = [f"{c} {how}" for c in _first(kind) for how in ("", "DESC", "ASC NULLS LAST", "DESC NULLS FIRST")]
        yield _row(*(f"rank() OVER (ORDER BY {o})" for o in orders), *(f"rank() OVER (PARTITION BY g ORDER BY {o})" for o in orders))
    yield _row("dense_rank() OVER (ORDER BY i1)", "dense_rank() OVER (PARTITION BY g ORDER BY s1 DESC, i1)")
    yield _row("percent_rank() OVER (ORDER BY i1)")
    yield _row("cume_dist() OVER (ORDER BY i1)")
    over = ("OVER ()", "OVER (PARTITION BY g)", "OVER (PARTITION BY b1 ORDER BY i2)", "OVER (ORDER BY s1 DESC, g)")
    yield _row(*(f"count(*) {o}" for o in over))
    for kind in ("int", "bigint", "decimal"):
        for name in ("sum", "min", "max", "count"):
            yield _row(*(f"{name}({c}) {o}" for c in _small(kind) for o in over))
    for kind in ("string", "date", "timestamp", "timestamp_ntz"):
        for name in ("min", "max", "count"):
            yield _row(*(f"{name}({c}) {o}" for c in _first(kind) for o in over))
