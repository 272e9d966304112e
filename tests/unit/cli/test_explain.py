"""`mvbuild explain`, and what `plan`, `run` and `history` report about strategies: text and JSON, without Spark."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click import unstyle
from click.testing import CliRunner, Result

from mvbuild import api
from mvbuild.api import sessions
from mvbuild.cli.main import group
from mvbuild.incremental import sizes
from mvbuild.incremental.table_changes import Changes
from mvbuild.ports.commits import TableLayout
from unit.worlds import Shop, name

PLAN = "== Optimized Logical Plan ==\nRelationV2[id#1] orders\n\n== Physical Plan ==\nBatchScan orders[id#1]\n"
WHATEVER_IT_COSTS = {"mvbuild.yml": "name: shop\nmodels: {+refresh_policy: incremental}\n"}
TOTAL = r"Plan: 2 to refresh. Takes about \d\.\ds instead of 4\d\.\ds of processor time; reads and writes \d+ B instead of 1.0 MB, and 1 refresh of unknown size."
SPENDING = """SELECT customer_id, sum(id) AS total, count(*) AS n
FROM raw.orders
GROUP BY customer_id
"""


def schema(**columns: str) -> dict[str, object]:
    fields = [{"id": at, "name": column, "type": type_, "required": False} for at, (column, type_) in enumerate(columns.items(), 1)]
    return {"type": "struct", "schema-id": 0, "fields": fields}


def write(of: Shop, *ids: int, size: int = 1_000_000, operation: str = "append") -> None:
    """The whole content of raw.orders. A table of a megabyte counts as one with many rows, so that a full refresh of it takes long."""
    columns = {"id": list(ids), "customer_id": [one % 3 for one in ids]}
    of.catalog.append_snapshot(
        name("raw.orders"), columns, operation=operation, summary={"total-files-size": str(size), "total-records": str(100 * size)}
    )


@pytest.fixture
def of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """An MV that was never refreshed."""
    made = Shop(tmp_path).write({"mvbuild.yml": "name: shop\n", "models/spending.sql": SPENDING})
    made.catalog.ensure_namespace(("raw",))
    made.catalog.create_table(name("raw.orders"), TableLayout(schema=schema(id="long", customer_id="long")), {})
    write(made, *range(100))
    made.changes = Changes(made.catalog.changes)
    made.engine.schema = schema(customer_id="long", total="long", n="long")
    monkeypatch.setattr(sessions, "open_catalog", lambda *_, **__: made.catalog)
    return made


@pytest.fixture
def built(of: Shop) -> Shop:
    assert of.run().ok
    return of


def call(of: Shop, *arguments: str) -> Result:
    done = CliRunner().invoke(group, [*arguments, "--project-dir", str(of.root)], standalone_mode=False)
    assert done.exception is None, done.exception
    return done


def lines(of: Shop, *arguments: str) -> list[str]:
    """Snapshot ids are S."""
    return re.sub(r"\d{15,}", "S", unstyle(call(of, *arguments).stdout)).splitlines()


def section(found: list[str], title: str) -> list[str]:
    start = next(at for at, line in enumerate(found) if line.startswith(title))
    rest = found[start:]
    return rest[: rest.index("")] if "" in rest else rest


ADDED = [
    "If rows are only added",
    "    no   append         not-linear: the query has more than projections, filters, inner joins and UNION ALL of what changed",
    "    yes  merge",
    "    yes  affected-keys  by customer_id",
]


def test_before_the_first_refresh(of: Shop) -> None:
    found = lines(of, "explain", "spending")
    assert section(found, "Query") == ["Query", "    aggregate by customer_id: sum(id), count(*)", "      scan lake.raw.orders"]
    assert section(found, "Changes")[1:] == ["    lake.raw.orders: never-refreshed: there was no refresh yet"]
    assert section(found, "Next refresh") == [
        "Next refresh: full, never-refreshed: it was never refreshed",
        "    no   all others     never-refreshed: it was never refreshed",
        "    yes  full           chosen",
    ]
    assert section(found, "If rows are only added")[:4] == ADDED


def test_a_fresh_one(built: Shop) -> None:
    found = lines(built, "explain", "spending")
    assert found[0] == "lake.main.spending  fresh"
    assert section(found, "Changes")[1:] == ["    lake.raw.orders: nothing"]
    assert section(found, "Next refresh") == ["Next refresh: nothing to do"]
    assert section(found, "If rows are only added")[:4] == ADDED
    removed = section(found, "If rows are also updated")
    assert removed[2:7] == [
        "    no   merge          deletes-need-count: count(id) is needed beside SUM(id) to know when no value is left",
        "           --> models/spending.sql:1:21",
        "           1 | SELECT customer_id, sum(id) AS total, count(*) AS n",
        "             |                     ^^^^^^^",
        "           help: Add count(*) (and count(x)) to the outputs.",
    ]


def test_what_changed(built: Shop) -> None:
    write(built.write(WHATEVER_IT_COSTS), *range(3, 100), 200, 203)
    found = lines(built, "explain", "spending")
    changed = "1 file with 2 rows (2 B) added, 1 file with 3 rows (3 B) removed"
    assert section(found, "Changes")[1:] == [f"    lake.raw.orders  snapshot S -> S: {changed}"]
    decided = section(found, "Next refresh")
    took, read = r"about \d+\.\ds of processor time", r"reads and writes \d+ kB instead of 1.0 MB, about [\d,]+ rows"
    assert re.fullmatch(f"Next refresh: affected-keys: refresh_policy is incremental; {took}; {read}", decided[0])
    assert any(re.search(r"; \d+\.\ds \(\d+\.\ds for statements, \d+\.\ds for rows\), ", line) for line in decided)
    assert any(line.startswith("    yes  affected-keys  chosen by customer_id; ") for line in decided)


def test_the_last_refresh_and_why_it_was_full(built: Shop) -> None:
    (first,) = section(lines(built, "explain", "spending"), "Last refresh")[:1]
    assert re.fullmatch(r"Last refresh: full \(never-refreshed\), at \S+Z, .*", first)
    write(built.write(WHATEVER_IT_COSTS), *range(103))
    built.run("spending")
    # The engine in memory proves nothing about SQL.
    last, meaning, help = section(lines(built, "explain", "spending"), "Last refresh")
    assert re.fullmatch(r"Last refresh: full \(round-trip-unproven\), at \S+Z, .*", last)
    assert meaning == "    At that time: Spark did not prove that the rewritten query is equivalent to yours."
    assert help.startswith("      help: Write the expression in another way")
    assert json.loads(call(built, "explain", "spending", "--output", "json").stdout)["last_refresh"]["reason"] == "round-trip-unproven"


def test_an_mv_that_is_fresh_after_an_edit_is_not_told_as_edited_since(built: Shop) -> None:
    assert built.write({"models/spending.sql": SPENDING.replace("sum(id)", "max(id)")}).run().ok
    found = lines(built, "explain", "spending")
    assert found[0].endswith("  fresh")
    assert section(found, "Last refresh")[1:] == ["    At that time: The query has changed since the last refresh."]


def test_before_a_refresh_there_is_no_last_one(of: Shop) -> None:
    assert not any(line.startswith("Last refresh") for line in lines(of, "explain", "spending"))
    assert json.loads(call(of, "explain", "spending", "--output", "json").stdout)["last_refresh"] is None


def test_what_was_only_compacted(built: Shop) -> None:
    write(built, *range(100), operation="replace")
    found = lines(built, "explain", "spending")
    assert section(found, "Changes")[1:] == ["    lake.raw.orders  snapshot S -> S: only compacted: same rows"]
    assert section(found, "Next refresh") == ["Next refresh: only the record is updated"]


def test_snapshots_that_cancel_out(built: Shop) -> None:
    write(built, *range(50), operation="overwrite")
    write(built, *range(100), operation="overwrite")
    assert section(lines(built, "explain", "spending"), "Changes")[1:] == [
        "    lake.raw.orders  snapshot S -> S: newer snapshots, same rows"
    ]


def test_a_query_without_a_tree(of: Shop) -> None:
    of.write({"models/spending.sql": "SELECT customer_id, count(*) AS n FROM raw.orders GROUP BY ROLLUP (customer_id), customer_id, ()\n"})
    found = section(lines(of, "explain", "spending"), "Query")
    assert found[1] == "    unknown: GROUP BY has the same grouping set twice"
    assert found[2].startswith("      --> models/spending.sql:1:")


def test_a_query_without_a_tree_that_is_fresh(of: Shop) -> None:
    of.write({"models/spending.sql": "SELECT customer_id, count(*) AS n FROM raw.orders GROUP BY ROLLUP (customer_id), customer_id, ()\n"})
    of.run("spending")
    found = lines(of, "explain", "spending")
    assert section(found, "Next refresh") == ["Next refresh: nothing to do"]
    assert section(found, "If rows")[1:] == ["    full: mvbuild cannot follow changes through this query, see above"]


def test_an_upstream_that_does_not_exist(of: Shop) -> None:
    of.write({"models/top.sql": "SELECT max(total) AS total FROM {{ ref('spending') }}\n"})
    found = lines(of, "explain", "top")
    assert section(found, "Query") == ["Query", "    unknown: lake.main.spending does not exist yet"]
    assert section(found, "Next refresh")[0] == "Next refresh: full, never-refreshed: it was never refreshed"


def test_a_name_that_is_no_mv(of: Shop) -> None:
    assert call(of, "explain", "orders").return_value == 2


def test_as_json_and_as_a_value(built: Shop) -> None:
    write(built.write(WHATEVER_IT_COSTS), *range(3, 100), 200)
    found = json.loads(call(built, "explain", "spending", "--output", "json").stdout)
    assert (found["relation"], found["state"], found["action"], found["strategy"]) == (
        "lake.main.spending",
        "stale",
        "refresh",
        "affected-keys",
    )
    assert found["query"][0] == {"depth": 0, "operator": "aggregate by customer_id: sum(id), count(*)"}
    (table,) = found["tables"]
    assert (table["changed"], table["added"], table["removed"]["rows"]) == ("changed", {"files": 1, "rows": 1, "bytes": 1}, 3)
    by_name = {one["strategy"]: one for one in found["strategies"]}
    assert (by_name["merge"]["code"], by_name["merge"]["at"]["line"], by_name["merge"]["at"]["column"]) == ("deletes-need-count", 1, 21)
    assert by_name["affected-keys"]["keys"] == ["customer_id"]
    assert [one["strategy"] for one in found["strategies"] if one["chosen"]] == ["affected-keys"]
    assert found["supposed"].keys() == {"inserts", "deletes"}
    assert api.explain(built.root, "spending").choice.strategy == "affected-keys"  # type: ignore[union-attr]


# --- plan --------------------------------------------------------------------------------------------------------------------------


def test_a_plan_tells_bytes(built: Shop) -> None:
    built.write({"models/top.sql": "SELECT customer_id FROM {{ ref('spending') }} ORDER BY total LIMIT 1\n"})
    built.engine.schema = schema(customer_id="long")
    assert built.run("top").ok
    write(built, *range(103))
    found = lines(built, "plan")
    assert re.fullmatch(r"refresh \(merge, about \d\.\ds instead of \d+\.\ds, \d+ B instead of 1.0 MB\)  lake.main.spending", found[0])
    assert "refresh (depends on lake.main.spending)  lake.main.top" in found
    assert re.fullmatch(TOTAL, found[-1])
    planned = json.loads(call(built, "plan", "--output", "json").stdout)
    spending, top = planned["steps"]
    assert (spending["strategy"], spending["reason"]) == ("merge", None)
    assert {one["strategy"]: one["code"] for one in spending["considered"]}["append"] == "not-linear"
    assert (top["strategy"], top["expected"], top["depends_on"]) == (None, None, ["lake.main.spending"])
    assert planned["summary"]["expected"] == spending["expected"]
    assert planned["summary"]["full"] == spending["full"]
    assert spending["full"]["bytes"] == 1_000_000


def test_a_plan_shows_what_stays_stale(built: Shop) -> None:
    built.write({"models/top.sql": "SELECT customer_id FROM {{ ref('spending') }} ORDER BY total LIMIT 1\n"})
    built.engine.schema = schema(customer_id="long")
    assert built.run("top").ok
    write(built, *range(103))
    found = lines(built, "plan", "--select", "top")
    assert found[0] == "reuse  lake.main.top"
    assert found[1] == "    upstream-stale: it reads lake.main.spending, which is stale"
    assert found[-1] == "Plan: 1 to reuse."


def test_a_plan_tells_why_it_is_full(built: Shop) -> None:
    write(built, *range(3), size=10)
    found = lines(built, "plan")
    assert found[0] == "refresh (full, about 0.6s, 10 B)  lake.main.spending"
    why = "a full refresh takes about 0.6s of processor time, and this "
    assert next(line for line in found if "not-cheaper" in line).startswith(f"    full because not-cheaper: {why}")
    (step,) = json.loads(call(built, "plan", "--output", "json").stdout)["steps"]
    assert step["reason"]["code"] == "not-cheaper"
    assert step["reason"]["message"].startswith(why)


def test_a_plan_says_why_a_way_is_chosen_that_is_not_cheaper(built: Shop) -> None:
    built.write({"models/top.sql": "SELECT customer_id FROM {{ ref('spending') }} ORDER BY total LIMIT 1\n"})
    write(built, *range(3), size=10)
    found = lines(built, "plan", "--select", "spending")
    assert re.fullmatch(r"refresh \(full-diff, about \d\.\ds, \d+ B\)  lake.main.spending", found[0])
    assert "    full-diff: only the rows that differ are written, so that the MVs that read this one have little to do" in found
    assert re.fullmatch(r"Plan: 1 to refresh. Takes about \d\.\ds of processor time; reads and writes \d+ B.", found[-1])


# --- run and history ---------------------------------------------------------------------------------------------------------------


def test_a_run_tells_its_strategy_and_history_what_came_of_it(of: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "SEARCHED_BYTES", -1)  # as for a large storage: its rows are found by the engine
    of.write({"models/spending.sql": "SELECT id, customer_id FROM raw.orders WHERE id >= 0\n"})
    of.engine.schema = schema(id="long", customer_id="long")
    of.engine.plans = {"": PLAN}
    assert of.run().results[0].message == "1 row"
    write(of, *range(101))
    result = of.run().results[0]
    assert result.message == "append: +1 -0, 1 row"
    assert {key: result.details[key] for key in ("strategy", "reason", "expected_bytes", "full_bytes", "changed_rows", "rows_removed")} == {
        "strategy": "append",
        "reason": None,
        "expected_bytes": 1,
        "full_bytes": 1_000_000,
        "changed_rows": 1,
        "rows_removed": 0,
    }
    write(of, *range(10), size=5)
    assert of.run().results[0].message == "full: not-cheaper, 1 row"
    full, append, first = json.loads(call(of, "history", "spending", "--output", "json").stdout)[::-1]
    assert (first["strategy"], first["reason"], first["expected_bytes"]) == ("full", "never-refreshed", None)
    assert (append["strategy"], append["reason"], append["expected_bytes"], append["full_bytes"]) == ("append", None, 1, 1_000_000)
    assert (full["strategy"], full["reason"]) == ("full", "not-cheaper")
    text = lines(of, "history", "spending")
    assert "  append  1 row added, 0 removed  1 B of 1.0 MB expected  " in next(line for line in text if "refresh 2" in line)
    assert "  full (not-cheaper)  " in text[0]
