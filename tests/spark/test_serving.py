"""read, sql and show against real Spark: each MV by its policy, and the rows to prove it."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import mvbuild
from mvbuild import api
from mvbuild.diagnostics import ProjectError
from spark.projects import NoSpark, Project, bag, customers, messages, new_project, order, orders
from spark.shop import MakeProject

pytestmark = pytest.mark.proof

YML = {"mvbuild.yml": "name: shop\nmodels: {mart: {+namespace: mart}}\n"}
WINDOW_MS = 3_600_000
JOINED = "SELECT o.order_id, c.country FROM raw.orders o JOIN raw.customers c ON o.customer_id = c.customer_id"
POLICIES = ("query", "serve", "fail")


def model(policy: str, sql: str, window: str = "1h") -> str:
    return f"{{{{ config(when_stale='{policy}', freshness={{'max_staleness': '{window}'}}) }}}}\n{sql}\n"


def base(made: Project) -> Project:
    made.make("raw.orders", orders((1, 1, "2026-01-05", "10.00"), (2, 2, "2026-01-06", "5.50")))
    made.make("raw.customers", customers((1, "DE", True), (2, "FR", True)))
    return made


def built(made: Project) -> Project:
    result = made.run()
    assert result.ok, messages(result)
    return made


def refused(error: ProjectError) -> list[str]:
    assert {d.code for d in error.diagnostics} == {"stale"}
    return [d.message.split("'")[1] for d in error.diagnostics]


def rows(frame: Any) -> Any:
    return bag(tuple(row) for row in frame.collect())


def how(frame: Any) -> dict[str, str]:
    return {s.name: s.source for s in mvbuild.served(frame)}


def set_lag(made: Project, name: str, ms: int) -> None:
    """Make the difference of timestamps between the current snapshot of a table and its parent exactly this, in the metadata file."""
    file = made.catalog_file(name)
    raw = json.loads(file.read_bytes())
    by_id = {s["snapshot-id"]: s for s in raw["snapshots"]}
    now = by_id[raw["current-snapshot-id"]]
    by_id[now["parent-snapshot-id"]]["timestamp-ms"] = now["timestamp-ms"] - ms
    file.write_text(json.dumps(raw), encoding="utf-8")


CHANGES = {
    "raw.orders": (
        {"order_id": 3, "customer_id": 1, "order_date": order(3, 1, "2026-01-07", "1.00")["order_date"], "amount": None},
        (3, "DE"),
    ),
    "raw.customers": ({"customer_id": 2, "country": "IT", "active": True}, (2, "IT")),
}
"""A new row of each base table -> the row that it makes in the MV."""


@pytest.mark.parametrize("table", CHANGES)
def test_when_stale_at_each_side_of_each_window(project: MakeProject, table: str) -> None:
    files = {f"models/mart/{p}_it.sql": model(p, JOINED) for p in POLICIES}
    made = built(base(project({**YML, **files})))
    old = bag([(1, "DE"), (2, "FR")])
    row, added = CHANGES[table]
    made.append(table, row)
    new = old + bag([added])
    for ms, expected in (
        (WINDOW_MS - 1, {"query": ("storage", old), "serve": ("storage", old), "fail": ("storage", old)}),
        (WINDOW_MS, {"query": ("storage", old), "serve": ("storage", old), "fail": ("storage", old)}),
        (WINDOW_MS + 1, {"query": ("query", new), "serve": ("storage", old), "fail": None}),
    ):
        set_lag(made, table, ms)
        for policy, answer in expected.items():
            name = f"{policy}_it"
            if answer is None:
                for ask in (
                    lambda name=name: mvbuild.read(made.spark, name, project=made.root),
                    lambda name=name: mvbuild.sql(made.spark, f"SELECT * FROM mart.{name}", project=made.root),
                    lambda name=name: api.show(made.root, name, spark=made.spark),
                ):
                    with pytest.raises(ProjectError) as refusal:
                        ask()
                    assert refused(refusal.value) == [name]
                    assert f"lake.{table} has new data" in refusal.value.diagnostics[0].message
                continue
            source, wanted = answer
            read = mvbuild.read(made.spark, name, project=made.root)
            queried = mvbuild.sql(made.spark, f"SELECT * FROM {name}", project=made.root)
            shown = api.show(made.root, name, spark=NoSpark() if source == "storage" else made.spark)
            for frame in (read, queried):
                assert how(frame) == {name: source}, (table, ms, policy)
                assert rows(frame) == wanted, (table, ms, policy)
                assert mvbuild.served(frame)[0].behind_ms == ms
            assert shown.origin.startswith(source)
            assert bag(shown.rows.rows) == wanted
    # A run does what the policies say is needed, and then all are fresh.
    assert made.refreshed() == {f"{p}_it" for p in POLICIES}
    for policy in POLICIES:
        frame = mvbuild.read(made.spark, f"mart.{policy}_it", project=made.root)
        assert how(frame) == {f"{policy}_it": "storage"}
        assert rows(frame) == new


def test_mvs_of_different_policies_in_one_query(project: MakeProject, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "mvbuild")
    files = {
        "models/mart/live.sql": "SELECT order_id, customer_id FROM raw.orders\n",
        "models/mart/kept.sql": "{{ config(when_stale='serve') }}\nSELECT order_id FROM raw.orders\n",
        "models/mart/strict.sql": "{{ config(when_stale='fail') }}\nSELECT customer_id, country FROM raw.customers\n",
        "models/mart/below.sql": "SELECT live.order_id, kept.order_id AS seen FROM {{ ref('live') }} LEFT JOIN {{ ref('kept') }} USING (order_id)\n",
        "models/over.sql": "{{ config(materialized='view') }}\nSELECT order_id AS id FROM {{ ref('kept') }}\n",
    }
    made = built(base(project({**YML, **files})))
    made.append("raw.orders", order(3, 1, "2026-01-07", "1.00"))
    made.spark.createDataFrame([(1, "x"), (3, "y")], "order_id long, word string").createOrReplaceTempView("words")
    graph = api.compile(made.root)

    def sql(text: str) -> Any:
        return mvbuild.sql(made.spark, text, project=graph)

    joined = sql(
        "WITH n AS (SELECT l.order_id, s.country FROM live l JOIN lake.mart.strict s ON l.customer_id = s.customer_id)\n"
        "SELECT n.order_id, n.country, k.order_id AS seen, words.word FROM n LEFT JOIN MART.Kept k ON k.order_id = n.order_id\n"
        "LEFT JOIN words ON words.order_id = n.order_id"
    )
    assert how(joined) == {"live": "query", "strict": "storage", "kept": "storage"}
    assert rows(joined) == bag([(1, "DE", 1, "x"), (2, "FR", 2, None), (3, "DE", None, "y")])
    lines = [m for m in caplog.messages if m.startswith("lake.mart.")]
    assert lines[0] == "lake.mart.live: from the query: stale (lake.raw.orders has new data)"
    assert any(
        m.startswith("lake.mart.kept: from the storage lake.mart.kept__storage: stale (lake.raw.orders has new data), refreshed ")
        for m in lines
    )

    below = sql("SELECT * FROM below")
    assert how(below) == {"below": "query", "live": "query", "kept": "storage"}
    assert rows(below) == bag([(1, 1), (2, 2), (3, None)])
    assert rows(sql("SELECT id FROM over")) == bag([(1,), (2,)])
    assert rows(sql("SELECT count(*) FROM raw.orders WHERE orders.order_id > 0")) == bag([(3,)])
    assert rows(sql("SELECT word FROM words")) == bag([("x",), ("y",)])
    assert rows(sql("SELECT count(*) FROM lake.raw.orders.snapshots")) == bag([(2,)])
    assert rows(sql("TABLE live")) == bag([(1, 1), (2, 2), (3, 1)])

    first = made.table("mart.live__storage").metadata.current_snapshot_id
    travelled = sql(f"SELECT n.order_id, o.order_id FROM live n LEFT JOIN mart.live VERSION AS OF {first} o USING (order_id)")
    assert how(travelled) == {"live": "query"}
    assert len(travelled.collect()) == 3
    assert rows(sql(f"SELECT count(*) FROM mart.live VERSION AS OF {first}")) == bag([(2,)])
    assert rows(mvbuild.read(made.spark, "live", project=graph, as_of=1)) == bag([(1, 1), (2, 2)])
    assert rows(mvbuild.read(made.spark, "live", project=graph, as_of=first)) == bag([(1, 1), (2, 2)])

    made.append("raw.customers", {"customer_id": 9, "country": "ES", "active": True})
    with pytest.raises(ProjectError) as refusal:
        sql("SELECT 1 FROM live, strict, kept")
    assert refused(refusal.value) == ["strict"]
    assert len(sql("SELECT * FROM live").collect()) == 3  # only what is read matters


def test_errors_of_the_text_have_their_place(project: MakeProject) -> None:
    made = built(base(project({**YML, "models/mart/m.sql": "SELECT order_id FROM raw.orders\n"})))
    for text, code, place in (
        ("SELECT order_id\nFROM m WHERE nothing = 1", "query-failed", "sql:2:14"),
        ("SELECT order_id FROM mart.missing", "query-failed", "sql:1:22"),
        ("SELECT order_id FROM", "sql-syntax", "sql:1:17"),
    ):
        with pytest.raises(ProjectError) as caught:
            mvbuild.sql(made.spark, text, project=made.root)
        assert [(d.code, str(d.span)) for d in caught.value.diagnostics] == [(code, place)], text


def test_all_reads_of_one_answer_are_of_one_moment(project: MakeProject) -> None:
    made = built(base(project({**YML, "models/mart/m.sql": "SELECT order_id FROM raw.orders\n"})))
    made.append("raw.orders", order(3, 1, "2026-01-07", "1.00"))
    frame = mvbuild.sql(made.spark, "SELECT m.order_id, o.order_id FROM m FULL JOIN raw.orders o USING (order_id)", project=made.root)
    made.append("raw.orders", order(4, 1, "2026-01-08", "1.00"))
    made.run()
    assert rows(frame) == bag([(1, 1), (2, 2), (3, 3)])
    assert len(frame.filter("true").collect()) == 3


def test_what_a_frame_reads_lives_as_long_as_the_process(project: MakeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    at_exit = exit_calls(monkeypatch)
    made = built(base(project({**YML, "models/mart/m.sql": "SELECT order_id FROM raw.orders\n"})))
    assert rows(mvbuild.read(made.spark, "m", project=made.root)) == bag([(1,), (2,)])
    assert at_exit == []
    made.append("raw.orders", order(3, 1, "2026-01-07", "1.00"))
    made.sql("ALTER TABLE lake.raw.orders ADD COLUMN note STRING")
    made.write({"models/mart/m.sql": "SELECT order_id, note FROM raw.orders\n"})
    frame = mvbuild.read(made.spark, "m", project=made.root)
    for _ in range(3):
        mvbuild.read(made.spark, "m", project=made.root)
    assert len(made.catalog.list_tables("mvbuild_scratch")) == 1
    assert made.refreshed() == {"m"}  # clears up after dead runs, and this one lives
    assert rows(frame) == bag([(1, None), (2, None), (3, None)])
    assert len(frame.select("order_id").collect()) == 3
    let_go(at_exit)
    made.assert_tidy()


def test_unknown(project: MakeProject) -> None:
    made = built(base(project({**YML, "models/mart/m.sql": "{{ config(serve_unknown=true) }}\nSELECT order_id FROM raw.orders\n"})))
    made.sql("DROP TABLE lake.raw.orders")
    frame = mvbuild.read(made.spark, "m", project=made.root)
    assert mvbuild.served(frame)[0].state == "unknown"
    assert rows(frame) == bag([(1,), (2,)])
    made.write({"models/mart/m.sql": "SELECT order_id FROM raw.orders\n"})
    with pytest.raises(ProjectError, match=r"lake.raw.orders does not exist"):
        mvbuild.read(made.spark, "m", project=made.root)


def test_show_and_status_say_how_old(project: MakeProject) -> None:
    files = {
        "models/mart/m.sql": model("query", "SELECT order_id FROM raw.orders"),
        "models/mart/n.sql": "SELECT order_id FROM m JOIN raw.customers USING (customer_id)\n".replace("USING (customer_id)", "ON true"),
    }
    made = built(base(project({**YML, **files})))
    made.append("raw.orders", order(3, 1, "2026-01-07", "1.00"))
    set_lag(made, "raw.orders", WINDOW_MS - 1)
    shown = made.command("show", "m", "--output", "json")
    assert sorted(json.loads(shown.stdout), key=str) == [{"order_id": 1}, {"order_id": 2}]
    assert "from the storage lake.mart.m__storage: fresh (lake.raw.orders changed within the window of 1h), refreshed " in shown.stderr
    assert "59m 59s behind its tables, changes unseen for " in shown.stderr
    status = made.command("status", "--select", "m").stdout
    assert "59m 59s later), unseen for " in status


def test_a_view_of_the_storage(project: MakeProject) -> None:
    files = {"models/mart/m.sql": "{{ config(catalog_view='storage', dialects=['trino']) }}\nSELECT order_id, 1 AS `a b` FROM raw.orders\n"}
    made = built(base(project({**YML, **files})))
    said = {r["dialect"]: r["sql"] for r in made.view("mart.m")["versions"][-1]["representations"]}
    assert said == {"spark": "SELECT order_id, `a b` FROM lake.mart.m__storage", "trino": 'SELECT order_id, "a b" FROM mart.m__storage'}
    assert made.view("mart.m")["properties"]["mvbuild.definition"] == "SELECT order_id, 1 AS `a b` FROM lake.raw.orders"
    made.append("raw.orders", order(3, 1, "2026-01-07", "1.00"))
    assert made.bag("SELECT * FROM lake.mart.m") == bag([(1, 1), (2, 1)])  # an engine that knows no MVs has the storage
    assert rows(mvbuild.read(made.spark, "m", project=made.root)) == bag([(1, 1), (2, 1), (3, 1)])
    assert made.refreshed() == {"m"}
    assert made.bag("SELECT * FROM lake.mart.m") == bag([(1, 1), (2, 1), (3, 1)])
    assert made.only_reused()


def test_a_view_of_the_storage_in_another_project(project: MakeProject, tmp_path: Path) -> None:
    files = {"models/mart/m.sql": "{{ config(catalog_view='storage') }}\nSELECT order_id FROM raw.orders\n"}
    made = built(base(project({**YML, **files})))
    other = new_other(made, tmp_path, {"mvbuild.yml": "name: other\n", "models/o.sql": "SELECT order_id FROM mart.m\n"})
    assert api.run(other, spark=made.spark).ok
    made.append("raw.orders", order(3, 1, "2026-01-07", "1.00"))
    assert how(mvbuild.read(made.spark, "o", project=other)) == {"o": "storage"}
    assert made.refreshed() == {"m"}
    assert how(mvbuild.read(made.spark, "o", project=other)) == {"o": "query", "m": "storage"}
    assert rows(mvbuild.read(made.spark, "o", project=other)) == bag([(1,), (2,), (3,)])


def test_a_storage_without_an_entry_of_its_own(project: MakeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    at_exit = exit_calls(monkeypatch)
    settings = "storage={'format': 'metadata-file'}"
    files = {
        "models/mart/m.sql": f"{{{{ config({settings}, when_stale='serve') }}}}\nSELECT order_id FROM raw.orders\n",
        "models/mart/n.sql": f"{{{{ config({settings}) }}}}\nSELECT order_id + 1 AS next FROM {{{{ ref('m') }}}}\n",
    }
    made = built(base(project({**YML, **files})))
    made.append("raw.orders", order(3, 1, "2026-01-07", "1.00"))
    for name, source, wanted in (("m", "storage", [(1,), (2,)]), ("n", "query", [(2,), (3,)])):
        frame = mvbuild.read(made.spark, name, project=made.root)
        assert how(frame)[name] == source
        assert how(frame)["m"] == "storage"
        assert rows(frame) == bag(wanted)
        assert rows(mvbuild.sql(made.spark, f"SELECT * FROM mart.{name}", project=made.root)) == bag(wanted)
    assert bag(api.show(made.root, "m", spark=NoSpark()).rows.rows) == bag([(1,), (2,)])
    assert len(at_exit) == 1
    let_go(at_exit)
    made.assert_tidy()


def test_rows_that_a_data_test_refused_are_not_served(project: MakeProject, caplog: pytest.LogCaptureFixture) -> None:
    tested = "models:\n  - name: {}\n    columns:\n      - {{name: customer_id, data_tests: [not_null]}}\n"
    query = "SELECT order_id, customer_id FROM raw.orders\n"
    files = {
        "models/mart/m.sql": query,
        "models/mart/m.yml": tested.format("m"),
        "models/mart/s.sql": "{{ config(catalog_view='storage') }}\n" + query,
        "models/mart/s.yml": tested.format("s"),
    }
    made = built(base(project({**YML, **files})))
    good, wrong = [(1, 1), (2, 2)], {**order(3, 1, "2026-01-07", "1.00"), "customer_id": None}
    made.append("raw.orders", wrong)
    assert not made.run().ok
    with caplog.at_level(logging.WARNING, "mvbuild"):
        for name in ("m", "s"):
            assert rows(mvbuild.read(made.spark, name, project=made.root)) == bag(good)
            assert rows(mvbuild.sql(made.spark, f"SELECT * FROM mart.{name}", project=made.root)) == bag(good)
            assert bag(api.show(made.root, name, spark=NoSpark()).rows.rows) == bag(good)
    assert all(
        "failed its tests" in r.message and "not_null_m_customer_id: 1 row violates its rule" in r.message for r in caplog.records[:2]
    )
    # What README, init and docs/serving.md say of engines that know no MVs.
    assert made.bag("SELECT * FROM lake.mart.m") == bag([*good, (3, None)])
    assert made.bag("SELECT * FROM lake.mart.s") == bag(good)
    told = made.command("show", "m")
    assert "warning[tests-failed]: lake.mart.m: its newest data failed its tests at " in told.stderr
    assert "from the storage lake.mart.m__storage: stale (lake.raw.orders has new data)" in told.stderr
    for command in (["status", "--select", "m"], ["plan", "--select", "m"], ["explain", "m"]):
        said = made.command(*command)
        assert "    tests-failed: its newest data failed its tests at " in said.stdout
        found = json.loads(made.command(*command, "--output", "json").stdout)
        one = {"status": lambda f: f[0], "plan": lambda f: f["steps"][0], "explain": lambda f: f}[command[0]](found)
        assert one["failed_tests"]["tests"] == ["not_null_m_customer_id: 1 row violates its rule"]
    made.sql("UPDATE lake.raw.orders SET customer_id = 2 WHERE customer_id IS NULL")
    assert rows(mvbuild.read(made.spark, "m", project=made.root)) == bag(good)  # until a run has tested that
    assert made.refreshed() == {"m", "s"}
    assert rows(mvbuild.read(made.spark, "m", project=made.root)) == bag([*good, (3, 2)])
    assert "tests-failed" not in made.command("status").stdout


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory without a project."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MVBUILD_PROJECT_DIR", raising=False)


@pytest.mark.usefixtures("nowhere")
def test_the_catalog_is_enough_to_serve_by_the_policy(project: MakeProject) -> None:
    as_file = "storage={'format': 'metadata-file'}, when_stale='serve'"
    files = {f"models/mart/{policy}_it.sql": model(policy, JOINED) for policy in POLICIES}
    files["models/mart/file_it.sql"] = f"{{{{ config({as_file}) }}}}\n{JOINED}\n"
    files["models/mart/view_it.sql"] = f"{{{{ config(catalog_view='storage') }}}}\n{JOINED}\n"
    files["models/mart/over_it.sql"] = "SELECT order_id FROM {{ ref('query_it') }}\n"
    made = built(base(project({**YML, **files})))
    names = [Path(file).stem for file in files]

    def answers(of_project: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name in names:
            try:
                found[name] = how(mvbuild.read(made.spark, f"lake.mart.{name}", project=of_project))
            except ProjectError as error:
                found[name] = refused(error)
        return found

    for lag in (None, WINDOW_MS, WINDOW_MS + 1):
        if lag is not None:
            made.append("raw.orders", order(3 + lag, 1, "2026-01-07", "1.00"))
            set_lag(made, "raw.orders", lag)
        found = answers(None)
        assert found == answers(made.root), lag
    assert (found["fail_it"], found["file_it"], found["view_it"]) == (["fail_it"], {"file_it": "storage"}, {"view_it": "query"})
    for name, count in (("file_it", 2), ("view_it", 4)):
        assert len(mvbuild.read(made.spark, f"lake.mart.{name}").collect()) == count
    made.sql("USE lake.mart")
    assert how(mvbuild.read(made.spark, "serve_it")) == {"serve_it": "storage"}
    joined = mvbuild.sql(made.spark, "SELECT q.country FROM query_it q JOIN serve_it USING (order_id)")
    assert how(joined) == {"query_it": "query", "serve_it": "storage"}
    assert len(joined.collect()) == 2
    made.sql("USE spark_catalog.default")


@pytest.mark.usefixtures("nowhere")
def test_an_mv_of_another_engine_is_read_from_its_storage_while_that_is_right(project: MakeProject) -> None:
    made = base(project({"mvbuild.yml": "name: shop\n"}))
    made.sql("CREATE NAMESPACE IF NOT EXISTS lake.mart")
    made.sql(
        "CREATE VIEW lake.mart.other (id, place) TBLPROPERTIES ('iceberg.materialized.view' = 'true',"
        " 'iceberg.materialized.view.storage.table' = 'mart.other_data') AS SELECT o.order_id, c.country"
        " FROM lake.raw.orders o JOIN lake.raw.customers c USING (customer_id)"
    )

    def refresh() -> None:
        made.sql("CREATE OR REPLACE TABLE lake.mart.other_data AS SELECT * FROM lake.mart.other")
        tables = [made.table(f"raw.{name}").metadata for name in ("orders", "customers")]
        record = {f"iceberg.base.snapshot.{t.table_uuid}": t.current_snapshot_id for t in tables} | {"iceberg.view.version": 1}
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in record.items())
        made.sql(f"ALTER TABLE lake.mart.other_data SET TBLPROPERTIES ({listed})")

    def answer() -> tuple[str, Any]:
        frames = [mvbuild.read(made.spark, "lake.mart.other", project=at) for at in (made.root, None)]
        frames.append(mvbuild.sql(made.spark, "SELECT * FROM mart.other", project=made.root))
        (source,) = {how(frame)["other"] for frame in frames}
        (found,) = {tuple(sorted(rows(frame).items())) for frame in frames}
        assert {tuple(frame.columns) for frame in frames} == {("id", "place")}
        return source, dict(found)

    refresh()
    assert answer() == ("storage", bag([(1, "DE"), (2, "FR")]))
    assert f"{api.show(made.root, 'mart.other', spark=NoSpark()).origin}".startswith("storage lake.mart.other_data: fresh")
    made.append("raw.orders", order(3, 1, "2026-01-07", "1.00"))
    assert answer() == ("query", bag([(1, "DE"), (2, "FR"), (3, "DE")]))
    refresh()
    assert answer() == ("storage", bag([(1, "DE"), (2, "FR"), (3, "DE")]))
    made.sql("ALTER TABLE lake.mart.other_data RENAME COLUMN place TO country")
    assert answer() == ("query", bag([(1, "DE"), (2, "FR"), (3, "DE")]))


def exit_calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What mvbuild wants to be called at the end of the process."""
    calls: list[Any] = []
    monkeypatch.setattr("mvbuild.api.frames.atexit", SimpleNamespace(register=lambda *call: calls.append(call)))
    return calls


def let_go(calls: list[Any]) -> None:
    for function, *arguments in calls:
        function(*arguments)


def new_other(made: Project, root: Path, files: dict[str, str]) -> Path:
    """A second project on the same catalog."""
    other = new_project(root, files, None)
    (root / ".mvbuild").rename(root / "unused")
    (root / ".mvbuild").symlink_to(made.root / ".mvbuild")
    other.catalog.close()
    return root
