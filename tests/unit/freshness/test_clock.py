"""MVs that read the day: fresh until midnight in the session's zone, for readers, runs, windows, and MVs that read them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from mvbuild.freshness.clock import next_move_ms
from mvbuild.freshness.rules import judge
from mvbuild.lifecycle.rollback import rollback
from mvbuild.ports.session import session_of
from mvbuild.storage.history import history
from mvbuild.storage.reads import OF_REFRESH, READ
from unit.serve.readers import session, sources
from unit.worlds import Shop, append, shop

UTC, NEW_YORK = ZoneInfo("UTC"), ZoneInfo("America/New_York")
FILES = {
    "mvbuild.yml": "name: shop\n",
    "models/recent.sql": "SELECT id FROM raw.orders WHERE id >= day(current_date)\n",
    "models/above.sql": "SELECT id FROM {{ ref('recent') }}\n",
    "models/hourly.sql": "SELECT id FROM raw.orders WHERE id >= hour(date_trunc('HOUR', now()))\n",
    "models/exact.sql": "SELECT id FROM raw.orders WHERE id >= hour(now())\n",
    "models/plain.sql": "{{ config(materialized='view') }}\nSELECT id FROM raw.orders WHERE id < day(current_date())\n",
    "models/over_view.sql": "SELECT id FROM {{ ref('plain') }}\n",
}


def at(of: Shop, *time: int, zone: ZoneInfo = UTC) -> Shop:
    of.clock.at_ms = round(datetime(*time, tzinfo=zone).timestamp() * 1000)
    return of


@pytest.fixture
def made(tmp_path: Path) -> Shop:
    found = at(shop(tmp_path, FILES), 2026, 1, 31, 12, 30)
    assert found.run().ok
    return found


def states(of: Shop) -> dict[str, tuple[str, ...]]:
    """MV -> its state and the codes of its reasons."""
    return {id.rpartition(".")[2]: (f.state, *(r.code for r in f.reasons)) for id, f in judge(of.world()).items()}


def test_it_is_fresh_until_the_day_ends(made: Shop) -> None:
    unknown = {"exact": ("unknown", "nondeterministic")}
    fresh = dict.fromkeys(("recent", "above", "hourly", "over_view"), ("fresh",))
    assert states(made) == fresh | unknown
    late = fresh | unknown | {"hourly": ("stale", "clock-moved")}
    assert states(at(made, 2026, 1, 31, 23, 59, 59)) == late
    moved = dict.fromkeys(("recent", "hourly", "over_view"), ("stale", "clock-moved")) | {"above": ("stale", "upstream-stale")}
    assert states(at(made, 2026, 2, 1)) == moved | unknown
    assert made.run().ok
    assert states(made) == fresh | unknown


def test_spark_gets_the_day_of_the_run(made: Shop) -> None:
    written = [sql for sql in made.engine.executed if "hour" not in sql.lower()]
    assert any("day(DATE '2026-01-31')" in sql for sql in written)
    assert not any("current_date" in sql for sql in written)
    assert any("hour(TIMESTAMP_LTZ '2026-01-31 12:00:00+00:00')" in sql for sql in made.engine.executed)


def test_what_was_read_is_beside_the_record(made: Shop) -> None:
    storage = made.table("main.recent__storage")
    assert storage.properties[READ + "current_date"] == "2026-01-31"
    assert storage.properties[OF_REFRESH] == "1"
    assert made.table("main.hourly__storage").properties[READ + "current_timestamp.hour"] == "2026-01-31 12:00:00+00:00"
    assert not [key for key in made.table("main.exact__storage").properties if key.startswith(READ)]


def test_the_zone_is_that_of_the_reader(made: Shop) -> None:
    world = at(made, 2026, 2, 1, 3).world()
    asked = session_of({**made.engine.session, "spark.sql.session.timeZone": "America/New_York"})
    # In New York it is still the day of the refresh, but the session differs: its midnight is another one.
    there = judge(replace(world, observed=replace(world.observed, session=asked)))["model.shop.recent"]
    assert [r.code for r in there.reasons] == ["session-differs"]
    made.engine.session = {"spark.sql.session.timeZone": "America/New_York"}
    made.run(full_refresh=True)
    assert made.table("main.recent__storage").properties[READ + "current_date"] == "2026-01-31"
    # The project configures UTC; its sessions had New York's zone, and will have it again.
    assert states(made)["recent"] == ("fresh",)
    assert states(at(made, 2026, 1, 31, 23, 59, zone=NEW_YORK))["recent"] == ("fresh",)
    assert states(at(made, 2026, 2, 1, 0, 0, zone=NEW_YORK))["recent"] == ("stale", "clock-moved")


def test_a_record_without_the_day_is_unknown(made: Shop) -> None:
    storage = made.table("main.recent__storage")
    summary = {k: v for k, v in storage.current_snapshot.summary.items() if not k.startswith(READ)}  # type: ignore[union-attr]
    bare = replace(storage.current_snapshot, summary=summary)  # type: ignore[type-var]
    kept = {k: v for k, v in storage.properties.items() if k != OF_REFRESH}
    world = made.world()
    other = replace(storage, properties=kept, snapshots={**storage.snapshots, bare.snapshot_id: bare})  # type: ignore[union-attr]
    found = judge(replace(world, observed=world.observed.updated({storage.identifier: other})))["model.shop.recent"]
    assert [(r.code, r.effect) for r in found.reasons] == [("clock-not-recorded", "unknown")]


def test_a_rollback_brings_back_the_day_of_its_refresh(made: Shop) -> None:
    append(made.catalog, "raw.orders", 5)
    at(made, 2026, 2, 1, 9).run()
    assert states(made)["recent"] == ("fresh",)
    rollback(session(made), made.world().graph.model("model.shop.recent"), 1)
    assert history(made.table("main.recent__storage"))[0].is_current
    assert "clock-moved" in states(made)["recent"]


def test_a_window_counts_from_midnight(made: Shop) -> None:
    made.write({"models/recent.sql": "{{ config(freshness={'max_staleness': '2h'}) }}\n" + FILES["models/recent.sql"]})
    made.run()
    assert states(at(made, 2026, 2, 1, 2))["recent"] == ("fresh", "within-window")
    # What reads it has no window.
    assert states(made)["above"] == ("stale", "upstream-behind")
    assert made.actions("recent") == {"recent": "reuse"}
    assert states(at(made, 2026, 2, 1, 2, 1))["recent"] == ("stale", "clock-moved")


def test_readers_get_the_storage_until_midnight(made: Shop) -> None:
    assert sources(made.world(), "recent", "above") == {"recent": "storage", "above": "storage"}
    assert sources(at(made, 2026, 2, 1).world(), "recent", "above") == {"recent": "query", "above": "query"}


def test_a_run_pins_one_instant(made: Shop) -> None:
    """Midnight passes while it runs."""
    planned = at(made, 2026, 2, 1, 23, 59).plan()
    at(made, 2026, 2, 2, 0, 1)
    assert made.run(planned=planned).ok
    assert made.table("main.recent__storage").properties[READ + "current_date"] == "2026-02-01"
    assert states(made)["recent"] == ("stale", "clock-moved")


def test_when_the_clock_moves_next(made: Shop) -> None:
    assert next_move_ms(made.world()) == round(datetime(2026, 1, 31, 13, tzinfo=ZoneInfo("UTC")).timestamp() * 1000)


@pytest.mark.proof
def test_the_days_after_each_other(made: Shop) -> None:
    for _ in range(31):
        made.clock.at_ms += round(timedelta(days=1) / timedelta(milliseconds=1))
        assert states(made)["recent"] == ("stale", "clock-moved")
        assert made.run("recent").ok
        assert states(made)["recent"] == ("fresh",)
