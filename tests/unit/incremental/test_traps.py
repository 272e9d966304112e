"""The known traps of incremental refreshes in the algebra, one readable case each."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest

from mvbuild.incremental.reasons import Refused
from unit.incremental.on_duckdb import OnDuckDB, Row, Table, connected

KVS = {"k": "int", "v": "int", "s": "string"}


@dataclass(frozen=True)
class Trap:
    """`expected`: strategy -> "" if it must accept, else the code of its refusal; what is accepted must be right in any case."""

    name: str
    query: str
    tables: list[Table]
    expected: dict[str, str] = field(default_factory=dict)


def table(name: str, old: list[Row], new: list[Row], *, carried: list[Row] | None = None, required: str = "", **columns: str) -> Table:
    return Table(name, columns or KVS, old, new, frozenset(required.split()), carried or [])


A, B, C = (1, 1, "x"), (1, 2, "y"), (2, 3, None)
NULL = (None, None, None)
TRAPS = [
    Trap("duplicates", "SELECT k, s FROM {a}", [table("a", [A, A, A, B], [A, B, B])], {"bag": "", "affected-keys": "", "append": "rows-removed"}),
    Trap("one of many copies goes", "SELECT k FROM {a}", [table("a", [A, A, A], [A, A])], {"bag": "", "affected-keys": ""}),
    Trap("rows of NULL only", "SELECT * FROM {a}", [table("a", [NULL, NULL, A], [NULL, B])], {"bag": "", "affected-keys": ""}),
    Trap("a group whose key is NULL", "SELECT k, count(*) n, sum(v) t, count(v) c FROM {a} GROUP BY k", [table("a", [NULL, (None, 2, "x")], [(None, 2, "x")])], {"merge": "", "affected-keys": "", "bag": ""}),
    Trap("a sum that becomes NULL", "SELECT k, count(*) n, sum(v) t, count(v) c FROM {a} GROUP BY k", [table("a", [(1, 5, "x"), (1, None, "x")], [(1, None, "x")])], {"merge": ""}),
    Trap("a sum that is NULL gets a value", "SELECT k, sum(v) t FROM {a} GROUP BY k", [table("a", [(1, None, "x")], [(1, None, "x"), A])], {"merge": ""}),
    Trap("a sum of zero is no empty group", "SELECT k, count(*) n, sum(v) t, count(v) c FROM {a} GROUP BY k", [table("a", [(1, 5, "x"), (1, 5, "y"), (1, -5, "z")], [(1, 5, "x"), (1, -5, "z")])], {"merge": ""}),
    Trap("a group becomes empty", "SELECT k, count(*) n FROM {a} GROUP BY k", [table("a", [A, B, C], [C])], {"merge": "", "affected-keys": "", "bag": ""}),
    Trap("a group comes back", "SELECT k, count(*) n FROM {a} GROUP BY k", [table("a", [C], [A, C])], {"merge": ""}),
    Trap("a group goes and comes in one change", "SELECT k, count(*) n FROM {a} GROUP BY k", [table("a", [A], [B])], {"merge": ""}),
    Trap("deletes without count(*)", "SELECT k, sum(v) t FROM {a} GROUP BY k", [table("a", [A, B], [A])], {"merge": "deletes-need-count", "affected-keys": ""}),
    Trap("deletes with count(*), but not of the value", "SELECT k, count(*) n, sum(v) t FROM {a} GROUP BY k", [table("a", [A, B], [A])], {"merge": "deletes-need-count"}),
    Trap("deletes with count(*) and a required value", "SELECT k, count(*) n, sum(v) t FROM {a} GROUP BY k", [table("a", [A, B], [A], required="v")], {"merge": ""}),
    Trap("a required value behind a left join may be NULL", "SELECT a.k, count(*) n, sum(b.v) t FROM {a} a LEFT JOIN {b} b ON a.k = b.k GROUP BY a.k", [table("a", [A, C], [A, C]), table("b", [A, B], [], required="v")], {"merge": "deletes-need-count", "affected-keys": ""}),
    Trap("max under deletes", "SELECT k, count(*) n, max(v) m FROM {a} GROUP BY k", [table("a", [A, B], [A])], {"merge": "rows-removed", "affected-keys": ""}),
    Trap("max of new rows", "SELECT k, max(v) m, min(v) l FROM {a} GROUP BY k", [table("a", [A], [A, B, (1, None, "x")])], {"merge": ""}),
    Trap("an average needs its sum", "SELECT k, count(*) n, count(v) c, avg(v) m FROM {a} GROUP BY k", [table("a", [A], [A, B])], {"merge": "not-mergeable"}),
    Trap("an average of its sum and count", "SELECT k, count(*) n, count(v) c, sum(v) t, avg(v) m FROM {a} GROUP BY k", [table("a", [A, B], [B, (1, None, "q")])], {"merge": ""}),
    Trap("floats are not added", "SELECT k, count(*) n, count(v) c, sum(v) t FROM {a} GROUP BY k", [table("a", [(1, 0.5)], [(1, 0.5), (1, 0.25)], k="int", v="double")], {"merge": "float-sum"}),
    Trap("decimals keep their scale", "SELECT k, count(*) n, count(v) c, sum(v) t FROM {a} GROUP BY k", [table("a", [(1, Decimal("0.01")), (1, Decimal("1.10"))], [(1, Decimal("1.10")), (1, Decimal("2.22"))], k="int", v="decimal(10, 2)")], {"merge": ""}),
    Trap("count(DISTINCT) is not merged", "SELECT k, count(*) n, count(DISTINCT v) d FROM {a} GROUP BY k", [table("a", [A, A], [A, B])], {"merge": "not-mergeable", "affected-keys": ""}),
    Trap("a global aggregate of nothing", "SELECT count(*) n, sum(v) t, count(v) c FROM {a}", [table("a", [A, B], [])], {"merge": "", "bag": "global-aggregate", "affected-keys": "no-key"}),
    Trap("a global aggregate that gets its first rows", "SELECT count(*) n, sum(v) t, count(v) c FROM {a}", [table("a", [], [A, B])], {"merge": ""}),
    Trap("a global aggregate that nobody reads", "SELECT 1 AS one FROM (SELECT count(*) AS n FROM {a}) AS q", [table("a", [A, B], [A, B, C])], {"full-diff": ""}),
    Trap("EXISTS of a global aggregate always holds", "SELECT k FROM {a} WHERE EXISTS (SELECT count(*) FROM {b})", [table("a", [A], [A, B]), table("b", [], [])], {"append": "", "bag": ""}),
    Trap("the mark of IN, which may be NULL, is no key", "SELECT a.k, a.v FROM {a} AS a WHERE (a.v = 1 OR a.k IN (SELECT b.k FROM {b} AS b)) AND EXISTS (SELECT 1 FROM {c} AS c WHERE c.v > a.v)", [table("a", [(5, 1)], [(5, 1)], k="int", v="int"), table("b", [(None, 0)], [(None, 0), (5, 0)], k="int", v="int"), table("c", [(1, 9)], [(1, 9), (1, -9)], k="int", v="int")], {"bag": "", "affected-keys": ""}),
    Trap("a constant key does not reach below a global aggregate", "SELECT 'a' AS src, count(*) AS n FROM {a} UNION ALL SELECT 'b', count(*) FROM {b}", [table("a", [A], [A, B]), table("b", [A], [A])], {"affected-keys": ""}),
    Trap("a constant key of GROUP BY", "SELECT 1 AS one, k, count(*) AS n FROM {a} GROUP BY k, one", [table("a", [A], [A, B, C])], {"merge": "", "bag": "", "affected-keys": ""}),
    Trap("self-join", "SELECT x.k, y.v FROM {a} x JOIN {a} y ON x.k = y.k", [table("a", [A, B], [A, C])], {"bag": "", "affected-keys": ""}),
    Trap("a table twice with other conditions", "SELECT x.v AS p, y.v AS q FROM {a} x, {a} y WHERE x.v = y.k AND x.s = 'x'", [table("a", [A, (5, 1, "x")], [A, B, (2, 1, "x")])], {"bag": ""}),
    Trap("both sides of a join at once", "SELECT a.k, b.v FROM {a} a JOIN {b} b ON a.k = b.k", [table("a", [A], [A, A]), table("b", [A], [A, B])], {"append": "", "bag": ""}),
    Trap("one side loses what the other gets", "SELECT a.k, b.v FROM {a} a JOIN {b} b ON a.k = b.k", [table("a", [A], []), table("b", [], [A])], {"bag": "", "affected-keys": ""}),
    Trap("keys that are NULL do not join", "SELECT a.k, b.v FROM {a} a LEFT JOIN {b} b ON a.k = b.k", [table("a", [NULL], [NULL, A]), table("b", [NULL], [NULL, NULL])], {"bag": "", "affected-keys": ""}),
    Trap("keys that are NULL join by <=>", "SELECT a.k, b.v FROM {a} a LEFT JOIN {b} b ON a.k <=> b.k", [table("a", [NULL], [NULL, A]), table("b", [], [NULL])], {"bag": "", "affected-keys": ""}),
    Trap("a row finds a match", "SELECT a.k, b.v FROM {a} a LEFT JOIN {b} b ON a.k = b.k", [table("a", [A, C], [A, C]), table("b", [], [B])], {"append": "not-linear", "bag": "", "affected-keys": ""}),
    Trap("a row loses its match", "SELECT a.k, b.v FROM {a} a LEFT JOIN {b} b ON a.k = b.k", [table("a", [A, C], [A, C]), table("b", [B], [])], {"bag": "", "affected-keys": ""}),
    Trap("a left join whose right side is the same", "SELECT a.k, b.v FROM {a} a LEFT JOIN {b} b ON a.k = b.k", [table("a", [A], [A, C]), table("b", [B], [B])], {"append": ""}),
    Trap("a full join by its common key", "SELECT coalesce(a.k, b.k) AS k, a.v, b.v AS w FROM {a} a FULL JOIN {b} b ON a.k = b.k", [table("a", [A, C, NULL], [A, (3, 3, "z")]), table("b", [B, NULL], [C])], {"affected-keys": "", "bag": ""}),
    Trap("a full join with USING", "SELECT k, a.v, b.v AS w FROM {a} a FULL JOIN {b} b USING (k)", [table("a", [A], []), table("b", [A], [A, C])], {"affected-keys": "", "bag": ""}),
    Trap("a full join with one column in two equalities", "SELECT a.k, b.v AS w FROM {a} a FULL JOIN {b} b ON a.k = b.k AND a.k = b.v", [table("a", [A, (3, 3, "z")], [A]), table("b", [A, B], [A, (3, 3, "z")])], {"bag": ""}),
    Trap("NOT IN with a NULL that comes", "SELECT k FROM {a} WHERE k NOT IN (SELECT k FROM {b})", [table("a", [A, C], [A, C]), table("b", [A], [A, NULL])], {"bag": "", "affected-keys": ""}),
    Trap("NOT IN whose subquery gets its first row", "SELECT k FROM {a} WHERE k NOT IN (SELECT k FROM {b})", [table("a", [A, NULL], [A, NULL]), table("b", [], [C])], {"bag": "", "affected-keys": ""}),
    Trap("NOT IN with a NULL that goes", "SELECT k, v FROM {a} WHERE v NOT IN (SELECT v FROM {b})", [table("a", [A, C, NULL], [A, C, NULL]), table("b", [A, NULL], [A])], {"bag": "", "affected-keys": ""}),
    Trap("NOT IN whose subquery stays", "SELECT k FROM {a} WHERE k NOT IN (SELECT k FROM {b})", [table("a", [A], [A, C, NULL]), table("b", [A], [A])], {"append": "", "bag": ""}),
    Trap("NOT EXISTS turns", "SELECT k FROM {a} a WHERE NOT EXISTS (SELECT 1 FROM {b} b WHERE b.k = a.k AND b.v > a.v)", [table("a", [A, C, NULL], [A, C, NULL]), table("b", [A], [B, NULL])], {"bag": "", "affected-keys": ""}),
    Trap("EXISTS with a clause that nobody thought of", "SELECT k FROM {a} a WHERE EXISTS (SELECT 1 FROM {b} b WHERE b.k = a.k QUALIFY row_number() OVER (ORDER BY b.v) = 1)", [table("a", [A], [A, C]), table("b", [A], [A])], dict.fromkeys(("append", "merge", "affected-keys", "bag", "full-diff"), "unsupported-operator")),
    Trap("HAVING starts and stops to hold", "SELECT k, count(*) n FROM {a} GROUP BY k HAVING count(*) > 1", [table("a", [A, B, C], [A, C, C])], {"merge": "having", "affected-keys": "", "bag": ""}),
    Trap("DISTINCT keeps a row of which one copy goes", "SELECT DISTINCT k FROM {a}", [table("a", [A, B], [A])], {"bag": "", "affected-keys": ""}),
    Trap("UNION", "SELECT k FROM {a} UNION SELECT k FROM {b}", [table("a", [A], []), table("b", [A, NULL], [A, NULL, NULL])], {"bag": "", "affected-keys": ""}),
    Trap("EXCEPT ALL", "SELECT k FROM {a} EXCEPT ALL SELECT k FROM {b}", [table("a", [A, A, NULL], [A, A, NULL, NULL]), table("b", [A], [NULL])], {"bag": "", "affected-keys": ""}),
    Trap("INTERSECT with NULL", "SELECT k FROM {a} INTERSECT SELECT k FROM {b}", [table("a", [NULL], [NULL, A]), table("b", [A], [NULL])], {"bag": "", "affected-keys": ""}),
    Trap("a set operation of strings and numbers", "SELECT k FROM {a} EXCEPT SELECT s FROM {b}", [table("a", [A], [A, C]), table("b", [(1, 1, "1")], [(1, 1, "1")])], {"bag": ""}),
    Trap("a string that equals a number is another key", "SELECT a.s, b.v FROM {a} a LEFT JOIN {b} b ON a.s = b.k", [table("a", [(1, 1, "01")], [(1, 1, "01")]), table("b", [(1, 7, "x")], [])], {"bag": "", "affected-keys": ""}),
    Trap("an update of key and value", "SELECT k, count(*) n, sum(v) t, count(v) c FROM {a} GROUP BY k", [table("a", [A, B], [A, (2, 9, "y")])], {"merge": "", "bag": ""}),
    Trap("a delete and re-insert of the same row", "SELECT k, v FROM {a}", [table("a", [A, B], [A, B], carried=[A])], {"bag": "", "affected-keys": "", "append": "rows-removed"}),
    Trap("rows that are carried over cancel", "SELECT a.k, b.v FROM {a} a JOIN {b} b ON a.k = b.k", [table("a", [A, C], [A], carried=[A]), table("b", [A, B], [B, C], carried=[B])], {"bag": ""}),
    Trap("a group that is there for no row", "SELECT a.k, count(*) n FROM {a} a JOIN {b} b ON a.k = b.k GROUP BY a.k", [table("a", [A], []), table("b", [], [A])], {"merge": ""}),
    Trap("a correlated count of nothing is 0", "SELECT a.k, (SELECT count(*) FROM {b} b WHERE b.k = a.k) AS n FROM {a} a", [table("a", [A, C, NULL], [A, C, NULL]), table("b", [A], [])], {"bag": "", "affected-keys": ""}),
    Trap("a correlated value that is made of nothing", "SELECT a.k, (SELECT coalesce(max(b.v), 7) + count(*) FROM {b} b WHERE b.k = a.k) AS n FROM {a} a", [table("a", [A, C], [A, C]), table("b", [A], [C])], {"bag": "", "affected-keys": ""}),
    Trap("a correlated count with FILTER", "SELECT a.k, (SELECT count(*) FILTER (WHERE b.v > 1) FROM {b} b WHERE b.k = a.k) AS n FROM {a} a", [table("a", [A, C], [A, C]), table("b", [A], [B])], {"bag": ""}),
    Trap("the value of a subquery changes", "SELECT k, v > (SELECT avg(v) FROM {b}) AS high FROM {a}", [table("a", [A, B, C], [A, B, C]), table("b", [A], [A, C])], {"bag": "scalar-subquery-changed", "affected-keys": "scalar-subquery-changed", "full-diff": ""}),
    Trap("a limit that moves", "SELECT k FROM {a} WHERE v > (SELECT min(v) + 0 FROM {b})", [table("a", [A, B, C], [A, B, C]), table("b", [A], [A, C])], {"bag": "", "affected-keys": ""}),
    Trap("a limit that is NULL after its rows went", "SELECT k FROM {a} WHERE NOT v < (SELECT max(v) FROM {b}) + 0", [table("a", [A, B, C, C], [A, C, C]), table("b", [A, B], [])], {"bag": "", "affected-keys": ""}),
    Trap("a value in place of none", "SELECT k FROM {a} WHERE v = coalesce((SELECT max(v) + 5 FROM {b}), 1)", [table("a", [A, B, C, C], [B, C]), table("b", [A, B], [A])], {"bag": "scalar-subquery-changed"}),
    Trap("a value in place of none, of a table that stays", "SELECT k FROM {a} WHERE v = coalesce((SELECT max(v) + 5 FROM {b}), 1)", [table("a", [A, B, C, C], [B, C]), table("b", [A, B], [A, B])], {"bag": "", "affected-keys": ""}),
    Trap("a limit that was NULL", "SELECT k FROM {a} WHERE v IS DISTINCT FROM (SELECT max(v) FROM {b})", [table("a", [A, B, C, C], [A, C, C]), table("b", [], [B])], {"bag": "", "affected-keys": ""}),
    Trap("a subquery whose table stays is a constant", "SELECT k FROM {a} WHERE v > (SELECT avg(v) FROM {b})", [table("a", [A], [A, B, C]), table("b", [A], [A])], {"append": ""}),
    Trap("the same table around a subquery and in it", "SELECT k FROM {a} a WHERE v >= (SELECT max(v) FROM {a} b WHERE b.k = a.k)", [table("a", [A, C], [A, B, C])], {"bag": "", "affected-keys": ""}),
    Trap("a common table expression twice", "WITH c AS (SELECT k, sum(v) t FROM {a} GROUP BY k) SELECT x.k, y.t FROM c x JOIN c y ON x.k = y.t", [table("a", [A, (2, 1, "x")], [A, B, (2, 2, "x")])], {"bag": "", "affected-keys": ""}),
    Trap("a common table expression that nobody reads", "WITH c AS (SELECT k FROM {b}) SELECT k, count(*) n FROM {a} GROUP BY k", [table("a", [A], [A]), table("b", [A], [A, B])], {"append": "", "merge": "", "affected-keys": "", "bag": ""}),
    Trap("aggregate of an aggregate", "SELECT n, count(*) m FROM (SELECT k, count(*) n FROM {a} GROUP BY k) q GROUP BY n", [table("a", [A, B, C], [A, C, C])], {"merge": "", "affected-keys": "", "bag": ""}),
    Trap("ranks of a partition", "SELECT k, v, rank() OVER (PARTITION BY k ORDER BY v) r FROM {a}", [table("a", [A, B, C], [(1, 0, "z"), A, B, C])], {"affected-keys": "", "bag": ""}),
    Trap("a window of everything", "SELECT k, rank() OVER (ORDER BY v) r FROM {a}", [table("a", [A, B], [A, C])], {"bag": "window-without-partition", "full-diff": ""}),
    Trap("QUALIFY", "SELECT k, v FROM {a} QUALIFY rank() OVER (PARTITION BY k ORDER BY v DESC) = 1", [table("a", [A, B, C], [A, C])], {"affected-keys": "", "bag": ""}),
    Trap("LIMIT", "SELECT k, v FROM {a} ORDER BY v DESC, k LIMIT 2", [table("a", [A, B], [A, B, C])], {"bag": "limit", "full-diff": ""}),
    Trap("LIMIT in the order of what SELECT computes", "SELECT x.k, sum(v) AS v FROM {a} x GROUP BY x.k ORDER BY SUM(v) DESC, X.k LIMIT 2", [table("a", [A, B], [A, B, C])], {"bag": "limit", "full-diff": ""}),
    Trap("a function of no row", "SELECT k, rand() AS r FROM {a}", [table("a", [A], [A, B])], {"append": "unsupported-operator"}),
    Trap("GROUP BY ROLLUP", "SELECT k, s, count(*) n FROM {a} GROUP BY ROLLUP (k, s)", [table("a", [A], [A, B])], {"merge": "no-key", "affected-keys": "", "bag": ""}),
    Trap("the total of everything", "SELECT k, grouping_id(k) AS g, count(*) n FROM {a} GROUP BY CUBE (k)", [table("a", [A], [A, B, C])], {"merge": "", "affected-keys": "", "bag": ""}),
    Trap("all is deleted", "SELECT a.k, count(*) n FROM {a} a JOIN {b} b ON a.k = b.k GROUP BY a.k", [table("a", [A, B], []), table("b", [A], [])], {"merge": "", "affected-keys": ""}),
    Trap("all is new", "SELECT a.k, b.v FROM {a} a JOIN {b} b ON a.k = b.k", [table("a", [], [A, B]), table("b", [], [A])], {"append": ""}),
]  # fmt: skip


@pytest.fixture(scope="module")
def connection() -> Any:
    return connected()


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.name.replace(" ", "-"))
@pytest.mark.parametrize("strategy", ["append", "merge", "affected-keys", "bag", "full-diff"])
def test_trap(trap: Trap, strategy: str, connection: Any) -> None:
    case = OnDuckDB(trap.query, trap.tables, connection)
    code = ""
    try:
        after = case.refreshed(strategy)
    except Refused as exc:
        code = exc.code
    assert trap.expected.get(strategy, code) == code
    if not code:
        assert after == case.full()


def test_a_strategy_that_is_asked_though_nothing_changed_does_nothing(connection: Any) -> None:
    case = OnDuckDB("SELECT k, count(*) n FROM {a} GROUP BY k", [table("a", [A], [A])], connection)
    for strategy in ("merge", "affected-keys", "bag", "append"):
        assert case.refreshed(strategy) == case.full()
