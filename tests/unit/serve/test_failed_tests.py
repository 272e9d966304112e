"""A refresh whose data tests failed -> what readers get until one passes."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from mvbuild.adapters.memory import MemoryCatalog
from mvbuild.diagnostics import ProjectError
from mvbuild.formats import failed_tests
from mvbuild.formats.failed_tests import FailedTests
from mvbuild.freshness.model import Freshness
from mvbuild.freshness.rules import judge
from mvbuild.ports.catalog import CatalogError, CommitConflict
from mvbuild.refresh.result import RunResult
from mvbuild.serve import frames
from mvbuild.serve.rows import choose_rows
from other_programs import drop
from unit.serve.readers import BASE, chain, choice, lagging, read, session, sources, sql
from unit.worlds import Shop, append, base_table, name, shop

TEST = {"models/mart/a.yml": "models:\n  - name: a\n    columns:\n      - {name: id, data_tests: [not_null]}\n"}
FORMATS = ("table-properties", "metadata-file")


def failing(of: Shop) -> RunResult:
    """A run whose test of `a` finds three rows."""
    of.engine.failures = {"IS NULL": 3}
    result = of.run()
    of.engine.failures = {}
    assert not result.ok
    return result


def refused(root: Path, a: str = "", b: str = "") -> Shop:
    """The chain after a good run, new rows, and a run whose test refused them."""
    of = chain(root, a, b, more=TEST)
    append(of.catalog, "raw.orders")
    failing(of)
    return of


def freshness(of: Shop, model: str = "a") -> Freshness:
    return judge(of.world())[f"model.shop.{model}"]


def code(of: Shop, model: str = "a") -> tuple[str, str]:
    with pytest.raises(ProjectError) as refusal:
        choice(of.world(), model)
    (one,) = refusal.value.diagnostics
    return one.code, one.message


@pytest.mark.parametrize("storage_format", FORMATS)
def test_readers_get_the_last_good_refresh_until_one_passes(tmp_path: Path, storage_format: str) -> None:
    of = refused(tmp_path, f"storage={{'format': '{storage_format}'}}")
    good = of.world().observed.table(name("mart.a__storage"))
    assert good is not None
    assert sources(of.world(), "a") == {"a": "storage"}
    assert freshness(of).state == "stale"
    append(of.catalog, "raw.orders")  # what was refused is in the tables still
    assert sources(of.world(), "a") == {"a": "storage"}
    assert of.run().ok
    after = of.world().observed.table(name("mart.a__storage"))
    assert after is not None
    assert failed_tests.KEY not in after.properties
    append(of.catalog, "raw.orders")
    assert sources(of.world(), "a") == {"a": "query"}
    assert (freshness(of).state, freshness(of).failed) == ("stale", None)


def test_read_sql_and_show_serve_it_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    of = refused(tmp_path)
    good = of.table("mart.a__storage").current_snapshot_id
    with caplog.at_level(logging.WARNING, "mvbuild"):
        assert read(of, "a").sql == f"SELECT * FROM lake.mart.a__storage VERSION AS OF {good}"
        found = sql(of, "SELECT id FROM mart.a")
        assert f"lake.mart.a__storage VERSION AS OF {good}" in found.sql
    (told, again) = [r.message for r in caplog.records]
    assert told == again
    assert told.startswith("lake.mart.a: its newest data failed its tests at ")
    assert "not_null_a_id: 3 rows violate its rule" in told
    assert told.endswith("these rows are of its last good refresh")
    (served,) = frames.served(found)
    assert served.failed is not None
    assert served.failed.tests == ("not_null_a_id: 3 rows violate its rule",)
    shown = choose_rows(session(of), "a", 10)
    assert shown.own is not None
    assert (shown.own.source, shown.own.failed) == ("storage", served.failed)
    assert shown.rows.rows == ((1,),)


def test_what_reads_the_mv_reads_its_last_good_refresh(tmp_path: Path) -> None:
    of = refused(tmp_path)
    assert sources(of.world(), "b") == {"b": "query", "a": "storage"}
    append(of.catalog, "raw.customers")
    of.run("b")
    orders = of.table("raw.orders")
    assert f"lake.raw.orders VERSION AS OF {orders.current_snapshot_id}" not in of.engine.executed[-1]
    assert "lake.mart.a__storage" in of.engine.executed[-1]


def test_a_reader_of_another_project_gets_the_last_good_refresh(tmp_path: Path) -> None:
    of = refused(tmp_path / "own", b="when_tests_fail='fail'")
    other = Shop(tmp_path / "other", catalog=of.catalog).write({"mvbuild.yml": "name: other\n"})
    (served,) = frames.served(read(other, "mart.a"))
    assert (served.source, served.failed is not None) == ("storage", True)
    of.write({"models/mart/b.yml": TEST["models/mart/a.yml"].replace("name: a", "name: b")})
    append(of.catalog, "raw.customers")
    failing(of)
    assert of.run("a").ok
    failing(of)
    with pytest.raises(ProjectError, match="tests-failed"):
        read(other, "mart.b")


POLICIES = [
    ("query", "serve", "storage"),
    ("query", "query", "query"),
    ("query", "fail", "tests-failed"),
    ("serve", "serve", "storage"),
    ("serve", "query", "storage"),
    ("serve", "fail", "tests-failed"),
    ("fail", "serve", "stale"),
    ("fail", "query", "stale"),
    ("fail", "fail", "stale"),
]


@pytest.mark.parametrize(("when_stale", "when_tests_fail", "expected"), POLICIES)
def test_every_policy(tmp_path: Path, when_stale: str, when_tests_fail: str, expected: str) -> None:
    of = refused(tmp_path, f"when_stale='{when_stale}', when_tests_fail='{when_tests_fail}'")
    if expected in ("storage", "query"):
        assert sources(of.world(), "a")["a"] == expected
    else:
        assert code(of)[0] == expected


def test_a_first_refresh_that_fails_has_nothing_to_serve(tmp_path: Path) -> None:
    of = shop(tmp_path, {**BASE, **TEST})
    failing(of)
    assert code(of) == ("tests-failed", "the newest data of 'a' failed its tests, and it has no good refresh to serve")
    assert freshness(of).has("never-refreshed")
    of.write({"models/mart/a.sql": "{{ config(when_tests_fail='query') }}\nSELECT id FROM raw.orders\n"})
    assert sources(of.world(), "a") == {"a": "query"}
    assert of.run().ok
    assert sources(of.world(), "a") == {"a": "storage"}
    assert freshness(of).failed is None


def test_an_edited_definition_whose_data_fails_is_not_run_by_readers(tmp_path: Path) -> None:
    of = chain(tmp_path, more=TEST)
    of.write({"models/mart/a.sql": "SELECT id + 1 AS id FROM raw.orders\n"})
    assert sources(of.world(), "a") == {"a": "query"}  # no test has seen its rows yet
    failing(of)
    assert freshness(of).has("definition-changed")
    assert sources(of.world(), "a") == {"a": "storage"}
    of.write({"models/mart/a.sql": BASE["models/mart/a.sql"]})  # undone: the storage is exactly its query again
    assert (freshness(of).state, freshness(of).failed) == ("fresh", None)


@pytest.mark.parametrize("edit", ["storage-changed", "view-missing"])
def test_rows_of_another_writer_are_no_good_refresh(tmp_path: Path, edit: str) -> None:
    of = refused(tmp_path)
    if edit == "storage-changed":
        append(of.catalog, "mart.a__storage")
    else:
        drop(of.catalog, name("mart.a"))
    assert freshness(of).has(edit)
    assert code(of)[0] == "tests-failed"


def test_a_mark_makes_nothing_fresh_and_nothing_stale(tmp_path: Path) -> None:
    of = chain(tmp_path, *["freshness={'max_staleness': '10s'}"] * 2, more=TEST)
    before, record = of.table("mart.a__storage"), freshness(of).record
    append(of.catalog, "raw.orders")
    of.engine.failures = {"IS NULL": 3}
    of.run(full_refresh=True)
    after = of.table("mart.a__storage")
    assert (after.current_snapshot_id, after.snapshot_log) == (before.current_snapshot_id, before.snapshot_log)
    assert freshness(of).record == record
    inside = lagging(of.world(), "raw.orders", 10_000)
    assert judge(inside)["model.shop.a"].state == "fresh"
    assert judge(inside)["model.shop.b"].state == "fresh"
    assert choice(inside, "a").served[0].failed is not None
    assert judge(lagging(inside, "raw.orders", 10_001))["model.shop.a"].state == "stale"


def test_a_table_that_was_put_back_leaves_nothing_to_warn_of(tmp_path: Path) -> None:
    of = refused(tmp_path)
    world = of.world()
    orders = world.observed.table(name("raw.orders"))
    assert orders is not None
    assert freshness(of).failed is not None
    first = min(orders.snapshots.values(), key=lambda s: s.sequence_number).snapshot_id
    back = replace(world, observed=world.observed.updated({name("raw.orders"): replace(orders, current_snapshot_id=first)}))
    assert (judge(back)["model.shop.a"].state, judge(back)["model.shop.a"].failed) == ("fresh", None)


def test_published_rows_that_a_new_test_refuses_are_told_and_stay(tmp_path: Path) -> None:
    of = chain(tmp_path, more=TEST)
    of.engine.failures = {"IS NULL": 3}
    assert not of.run(full_refresh=True).ok
    assert freshness(of).is_fresh
    assert freshness(of).failed is not None
    assert sources(of.world(), "a") == {"a": "storage"}


def test_a_test_of_severity_warn_refuses_nothing(tmp_path: Path) -> None:
    of = chain(tmp_path, more={"models/mart/a.yml": TEST["models/mart/a.yml"].replace("[not_null]", "[not_null: {severity: warn}]")})
    append(of.catalog, "raw.orders")
    of.engine.failures = {"IS NULL": 3}
    assert of.run().ok
    assert failed_tests.KEY not in of.table("mart.a__storage").properties


def test_an_atomic_run_marks_what_failed_and_nothing_else(tmp_path: Path) -> None:
    of = chain(tmp_path, more={"models/mart/b.yml": TEST["models/mart/a.yml"].replace("name: a", "name: b")})
    append(of.catalog, "raw.orders")
    of.engine.failures = {"IS NULL": 3}
    assert not of.run(atomic=True).ok
    assert freshness(of).failed is None
    assert freshness(of, "b").failed is not None
    assert sources(of.world(), "b") == {"b": "storage"}
    of.engine.failures = {}
    assert of.run(atomic=True).ok
    assert freshness(of, "b").failed is None


def test_a_failure_on_a_branch_is_the_branchs_alone(tmp_path: Path) -> None:
    of = chain(tmp_path, more=TEST)
    append(of.catalog, "raw.orders")
    production = of.catalog
    of.catalog = of.engine.catalog = production.on_branch("dev")  # type: ignore[assignment]
    failing(of)
    assert freshness(of).failed is not None
    assert sources(of.world(), "a") == {"a": "storage"}
    of.catalog = production
    assert freshness(of).failed is None
    assert sources(of.world(), "a") == {"a": "query"}


def test_a_run_whose_record_alone_moves_on_removes_the_mark(tmp_path: Path) -> None:
    of = refused(tmp_path)
    of.write({"models/mart/a.yml": "models:\n  - name: a\n"})
    assert of.run().ok
    assert freshness(of).failed is None


@pytest.mark.parametrize("read_the_same", [True, False])
def test_a_run_that_published_meanwhile_is_marked_only_if_it_read_less(tmp_path: Path, read_the_same: bool) -> None:
    of = chain(tmp_path, more=TEST)
    append(of.catalog, "raw.orders")
    earlier = of.plan()
    append(of.catalog, "raw.orders")
    winners = [of.plan() if read_the_same else earlier]

    def race(_: object) -> None:
        if winners:
            assert of.run(planned=winners.pop()).ok
            of.engine.failures = {"IS NULL": 3}

    of.engine.before_write = race
    assert not of.run().ok
    assert (failed_tests.KEY in of.table("mart.a__storage").properties) != read_the_same
    assert sources(of.world(), "a") == {"a": "storage"}


class _Refusing(MemoryCatalog):
    error: CatalogError | None = None

    def commit(self, changes):  # type: ignore[no-untyped-def]
        if self.error and any(failed_tests.KEY in getattr(c, "set_properties", ()) for c in changes):
            raise self.error
        return super().commit(changes)


@pytest.mark.parametrize("error", [CatalogError("the disk is full"), CommitConflict("raced")])
def test_a_mark_that_cannot_be_written_is_told(tmp_path: Path, error: CatalogError) -> None:
    of = Shop(tmp_path, catalog=_Refusing("lake")).write({**BASE, **TEST})
    base_table(of.catalog, "raw.orders")
    base_table(of.catalog, "raw.customers")
    of.run()
    append(of.catalog, "raw.orders")
    of.catalog.error = error  # type: ignore[attr-defined]
    found = {d.code: d for r in failing(of).results for d in r.diagnostics}
    assert set(found) == {"test-failed", "failure-not-recorded"}
    assert found["failure-not-recorded"].severity == "warning"


def test_a_mark_that_nobody_can_read_protects_readers_too() -> None:
    for text in ("", "[]", "{}", '{"tests": 3}', "null", "[" * 10_000):
        assert failed_tests.decode({failed_tests.KEY: text}) == FailedTests(tests=())
    assert failed_tests.decode({}) is None
    many = FailedTests(tests=tuple(f"t{i}" for i in range(30)), at_ms=1, definition="d", reads={"u": 2, "v@dev": -1})
    again = failed_tests.decode(failed_tests.encode(many))
    assert again is not None
    assert again.tests[-1] == "and 10 more"
    assert (again.reads, again.definition, again.at_ms) == (many.reads, "d", 1)
    assert len(json.loads(failed_tests.encode(many)[failed_tests.KEY])["tests"]) == 21
