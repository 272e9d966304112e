"""the table of trials -> docs/trino.md: `python -m mvbuild.dialects.reference > docs/trino.md`."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from mvbuild.dialects.proven import Proofs, proofs

_HEAD = """# Definitions in Trino

With [`dialects: [trino]`](serving.md#other-dialects) the definition of a model is published for Trino too. An engine that reads a view
must get the rows that Spark gets, so a definition is translated only if every expression in it is on the list below. The list was made by
trials: each expression was computed by Spark and by Trino {version} over the same Iceberg table, with edge values, all pairs of them, and
random values, and with another time zone in each session. What is not on the list is refused with the error `unsupported-dialect`, at
its place in your SQL: by `mvbuild compile` where [schemas.lock](columns.md) has the types, otherwise by `mvbuild plan` and `mvbuild run`,
which read them from the catalog. What no type makes right is refused by `mvbuild compile` in any case.

The names in the list are those of the types that Spark gives the arguments. Where Trino's result has another type it is cast to Spark's,
and each column of the view is cast to the type that the view declares. What Spark casts by itself (`int + bigint`, a literal beside a
decimal) is cast in the text, if that cast is on the list. `'…'` is a literal text that is not empty, `1..` a literal number above 0.

Besides expressions these are understood: columns and literals, `SELECT`, `WITH`, subqueries in `FROM`, `WHERE`, `GROUP BY` of expressions
and numbers, `HAVING`, `DISTINCT`, inner, cross and outer joins with `ON`, set operations whose branches have the same types, and
`EXISTS`. An `ORDER BY` of the whole query is left out, since it says nothing of the rows. These are always refused:

| refused | instead |
|---|---|
| `SELECT *` of a table, whose columns can move | list the columns; `*` of a WITH clause is fine |
| a name of the SELECT list in WHERE, GROUP BY, HAVING or another item | write the expression again, or use a WITH clause |
| `JOIN ... USING`, `NATURAL JOIN` | `ON` |
| `IN (SELECT ...)`: the two differ on nulls | `EXISTS` |
| `avg`, sums of floating point: the last digit depends on the order of rows | `CAST(sum(n) AS DOUBLE) / nullif(count(n), 0)` of integers |
| comparisons, groups and minima of floating point: NaN, 0.0 and -0.0 | decimals |
| `LEFT ANTI JOIN`, `LEFT SEMI JOIN` | `NOT EXISTS`, `EXISTS` |
| `LIMIT`, `row_number()`, `lag()`, `ROWS` frames: which row comes first among equal ones is not determined | `rank()`, aggregates |
| a text compared with a date or a number | a typed literal, `DATE '2024-02-29'`, or a cast of the column |
| strings with a backslash or a doubled quote | double quotes around single ones: `"it's"` |
| time zones: literals of TIMESTAMP, parts and casts of it, the current time | columns of the type TIMESTAMP_NTZ |
| a struct's field, an array's element, a scalar subquery | a model below that is stored, and takes it apart |
| a view that has no SQL for Trino | `dialects: [trino]` there |

A column of the Iceberg type `uuid` is text in Spark and not in Trino: cast it to STRING in a model that is stored.

Where a definition cannot be published, [`catalog_view: storage`](serving.md#engines-that-know-no-mvs) gives every engine the rows of the
last refresh. Definitions are published for no other engine: there is no such list for them.

The list is made again, against a real Trino, by `.venv/bin/python tests/benchmarks/trino_proof.py`, and this page by `python -m
mvbuild.dialects.reference`.
"""


def page(found: Proofs) -> str:
    """The page in Markdown."""
    proven, differs = sorted(found.proven), sorted(found.differs.items())
    lines = [_HEAD.format(version=found.version), f"## The same in Spark and Trino {found.version}\n"]
    lines += [
        f"### {title}\n\n{_listed([s for s in proven if _section(s) == title])}\n"
        for title in _SECTIONS
        if any(_section(s) == title for s in proven)
    ]
    lines += ["## Tried, and not the same\n", "| expression | the first difference |", "|---|---|"]
    lines += [f"| `{_cell(signature)}` | {_cell(_plain(difference))} |" for signature, difference in differs]
    return "\n".join(lines) + "\n"


_SECTIONS = (
    "Casts",
    "Comparisons",
    "Arithmetic",
    "CASE, coalesce, nullif",
    "Grouping, ordering, set operations",
    "Aggregates",
    "Windows",
    "Functions",
)
_STARTS: Mapping[str, str] = {
    "CAST(": "Casts",
    "TRY_CAST(": "Casts",
    "GROUP BY": "Grouping, ordering, set operations",
    "ORDER BY": "Grouping, ordering, set operations",
    "DISTINCT": "Grouping, ordering, set operations",
    "UNION": "Grouping, ordering, set operations",
    "INTERSECT": "Grouping, ordering, set operations",
    "EXCEPT": "Grouping, ordering, set operations",
    "CASE": "CASE, coalesce, nullif",
    "coalesce": "CASE, coalesce, nullif",
    "nullif": "CASE, coalesce, nullif",
    **dict.fromkeys(("count(", "sum(", "min(", "max(", "avg(", "logical_"), "Aggregates"),
}


def _section(signature: str) -> str:
    if signature.endswith(" OVER"):
        return "Windows"
    start = next((title for start, title in _STARTS.items() if signature.startswith(start)), None)
    if start is not None:
        return start
    if any(f" {word} " in signature for word in ("=", "<>", "<", "<=", ">", ">=", "<=>", "BETWEEN", "IN", "LIKE")):
        return "Comparisons"
    return "Arithmetic" if signature.startswith("-") or any(f" {word} " in signature for word in "+-*/%") else "Functions"


def _listed(signatures: list[str]) -> str:
    return ", ".join(f"`{s}`" for s in signatures)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _plain(difference: str) -> str:
    return difference.replace("<", "&lt;").replace("\n", " ")


if __name__ == "__main__":
    sys.stdout.write(page(proofs("trino")))
