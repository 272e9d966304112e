"""A generated case -> what each strategy did with it: refused by a code, right, or wrong, which is shown as a test with few rows.

Right means that the storage holds the rows of the full query at the new versions, as bags. Any error other than Refused is wrong.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp

from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.strategies import STRATEGIES
from unit.incremental.on_duckdb import OnDuckDB, Row, Table, connected
from unit.incremental.queries import Generated

ACCEPTED = "accepted"


@dataclass(frozen=True)
class Wrong:
    """A case that fails. `problem` is what went wrong in one line."""

    seed: int
    strategy: str
    query: str
    tables: tuple[Table, ...]
    problem: str

    def __str__(self) -> str:
        return f"seed {self.seed}, {self.strategy}: {self.problem}\n\n{as_test(self)}"


@dataclass(frozen=True)
class Seen:
    """`codes`: strategy -> ACCEPTED or the code of its refusal; empty where nothing changed."""

    codes: Mapping[str, str] = field(default_factory=dict)
    wrong: tuple[Wrong, ...] = ()
    moves: bool = False
    """Whether the result is another one than before."""
    is_refused: bool = False
    """DuckDB does not take the query itself: it knows a grouping expression again only where it is written the same way."""


def seen(case: Generated, connection: duckdb.DuckDBPyConnection, strategies: Sequence[str] = ()) -> Seen:
    """All strategies on one case."""
    if not any(table.is_changed for table in case.tables) and "{today}" not in case.query:
        return Seen()
    chosen = strategies or tuple(STRATEGIES)
    try:
        ready = OnDuckDB(case.query, case.tables, connection)
    except duckdb.BinderException:
        return Seen(is_refused=True)
    codes: dict[str, str] = {}
    wrong = []
    want = ready.full()
    for strategy in chosen:
        code, problem = _outcome(ready, strategy, want)
        codes[strategy] = code
        if problem:
            wrong.append(Wrong(case.seed, strategy, case.query, case.tables, problem))
    return Seen(codes, tuple(wrong), want != ready.before)


def _outcome(ready: OnDuckDB, strategy: str, want: Counter[Row]) -> tuple[str, str]:
    """The code and what is wrong, if anything."""
    try:
        got = ready.refreshed(strategy)
    except Refused as exc:
        return exc.code, ""
    except Exception as exc:  # noqa: BLE001 any error is what is looked for
        return "error", f"{type(exc).__name__}: {str(exc).splitlines()[0] if str(exc) else ''}"
    if got == want or ready.is_full(got):
        return ACCEPTED, ""
    return ACCEPTED, f"too many: {_few(got - want)}, missing: {_few(want - got)}"


def outcomes(
    strategy: str, made: Callable[[int, duckdb.DuckDBPyConnection], Generated], seeds: Iterable[int]
) -> tuple[Counter[str], list[Wrong]]:
    """How often a strategy had each outcome on cases that are made of seeds, and what was wrong. DuckDB does not take all of them."""
    connection, codes, wrong = connected(), Counter[str](), list[Wrong]()
    for seed in seeds:
        with suppress(duckdb.BinderException):
            found = seen(made(seed, connection), connection, [strategy])
            codes.update(found.codes.values())
            wrong.extend(found.wrong)
    return codes, wrong


def _few(rows: Mapping[Row, int]) -> str:
    shown = [_python(row) + (f" x{n}" if n > 1 else "") for row, n in list(rows.items())[:3]]
    return ", ".join(shown) or "none"


# --- making it small ---------------------------------------------------------------------------------------------------------------


def shrunk(wrong: Wrong, connection: duckdb.DuckDBPyConnection, *, seconds: float = 15) -> Wrong:
    """The same failure with fewer changes, fewer rows and less of the query."""
    until = time.monotonic() + seconds

    def fails(other: Wrong) -> Wrong | None:
        try:
            ready = OnDuckDB(other.query, other.tables, connection)
            _, problem = _outcome(ready, other.strategy, ready.full())
        except (duckdb.Error, sqlglot.errors.SqlglotError, KeyError):
            return None  # no query any more
        return replace(other, problem=problem) if problem and _kind(problem) == _kind(wrong.problem) else None

    smaller = True
    while smaller and time.monotonic() < until:
        smaller = False
        for other in _smaller(wrong):
            found = fails(other) if time.monotonic() < until else None
            if found is not None:
                wrong, smaller = found, True
                break
    return wrong


def _kind(problem: str) -> str:
    return problem.partition(":")[0]


def _smaller(wrong: Wrong) -> Iterator[Wrong]:
    for query in _simpler(wrong.query):
        yield replace(wrong, query=query, tables=tuple(t for t in wrong.tables if "{" + t.name + "}" in query))
    for at, table in enumerate(wrong.tables):
        for other in _with_less(table):
            yield replace(wrong, tables=(*wrong.tables[:at], other, *wrong.tables[at + 1 :]))


def _with_less(table: Table) -> Iterator[Table]:
    if table.is_changed:
        yield replace(table, new=table.old, carried=())
    if table.carried:
        yield replace(table, carried=())
    for row in dict.fromkeys(_hashable(table.old)):
        if row in table.new:
            yield replace(table, old=_without(table.old, row), new=_without(table.new, row), carried=())
    for row in dict.fromkeys(_hashable(table.old)):
        yield replace(table, old=_without(table.old, row), carried=())
    for row in dict.fromkeys(_hashable(table.new)):
        yield replace(table, new=_without(table.new, row), carried=())


def _hashable(rows: Sequence[Row]) -> list[Row]:
    return list(rows)


def _without(rows: Sequence[Row], row: Row) -> list[Row]:
    left = list(rows)
    left.remove(row)
    return left


def _simpler(query: str) -> Iterator[str]:
    """The query with one part less."""
    marked = query.replace("{", "mvbuild_").replace("}", "_table")
    tree = sqlglot.parse_one(marked, read="spark")
    for number, node in enumerate(tree.walk()):
        for change in _changes(node):
            copy = tree.copy()
            target = list(copy.walk())[number]
            change_result = change(target)
            text = (change_result if target is copy and change_result is not None else copy).sql("spark")
            yield text.replace("mvbuild_", "{").replace("_table", "}")


def _changes(node: exp.Expr) -> Iterator[Any]:
    if isinstance(node, exp.Select):
        for key in ("where", "having", "qualify", "group", "distinct", "with_", "joins"):
            if node.args.get(key):
                yield lambda found, key=key: found.set(key, None)
        for at in range(len(node.args.get("joins") or ())):
            yield lambda found, at=at: found.set("joins", [j for i, j in enumerate(found.args["joins"]) if i != at])
        if len(node.expressions) > 1:
            for at in range(len(node.expressions)):
                yield lambda found, at=at: found.set("expressions", [e for i, e in enumerate(found.expressions) if i != at])
    elif isinstance(node, (exp.SetOperation, exp.And | exp.Or)):
        yield lambda found: _put(found, found.left)
        yield lambda found: _put(found, found.right)
    elif isinstance(node, exp.Case):
        yield lambda found: _put(found, found.args["ifs"][0].args["true"])
    elif isinstance(node, exp.Filter | exp.Coalesce):
        yield lambda found: _put(found, found.this)


def _put(found: exp.Expr, value: exp.Expr) -> exp.Expr:
    value = value.unnest() if isinstance(value, exp.Subquery) else value
    return found.replace(value) if found.parent is not None else value


# --- showing it --------------------------------------------------------------------------------------------------------------------


def as_test(wrong: Wrong) -> str:
    """A function that can be put among the tests as it is."""
    lines = [
        "from datetime import date, datetime",
        "from decimal import Decimal",
        "",
        "from unit.incremental.on_duckdb import OnDuckDB, Table",
        "",
        "",
        f"def test_seed_{wrong.seed}() -> None:",
        "    tables = [",
    ]
    for table in wrong.tables:
        lines.append(f"        Table({table.name!r}, {dict(table.columns)!r},")
        lines.append(f"              old={_python(list(table.old))},")
        lines.append(f"              new={_python(list(table.new))},")
        lines.append(f"              required=frozenset({sorted(table.required)!r}), carried={_python(list(table.carried))}),")
    return "\n".join(
        [
            *lines,
            "    ]",
            f'    case = OnDuckDB("""{wrong.query}""", tables)',
            f"    assert case.refreshed({wrong.strategy!r}) == case.full()",
            "",
        ]
    )


def _python(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_python(one) for one in value)}]"
    if isinstance(value, tuple):
        return f"({', '.join(_python(one) for one in value)}{',' if len(value) == 1 else ''})"
    if isinstance(value, datetime):
        return f"datetime({value.year}, {value.month}, {value.day}, {value.hour}, {value.minute})"
    if isinstance(value, date):
        return f"date({value.year}, {value.month}, {value.day})"
    return f'float("{value}")' if isinstance(value, float) else repr(value)
