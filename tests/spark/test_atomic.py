"""`run --atomic` with ten MVs on a real catalog: what readers see while it is published, and what a kill or a foreign commit leaves."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from time import monotonic

import pytest

from mvbuild.refresh.result import Event, Message
from spark.conftest import Lake
from spark.projects import ENVIRONMENT, NoSpark, Project, messages, named, order, orders
from spark.shop import MakeProject

pytestmark = pytest.mark.proof

MVS = {
    "by_day": "SELECT order_date, sum(amount) AS amount, count(*) AS orders FROM raw.orders GROUP BY order_date",
    "by_customer": "SELECT customer_id, sum(amount) AS amount, count(*) AS orders FROM raw.orders GROUP BY customer_id",
    "large": "SELECT * FROM {{ ref('recent') }} WHERE amount > 5",
    "named": "SELECT o.order_id, c.name FROM raw.orders o JOIN {{ ref('names') }} c ON o.customer_id = c.customer_id",
    "by_name": "SELECT name, count(*) AS orders FROM {{ ref('named') }} GROUP BY name",
    "by_month": "SELECT month(order_date) AS month, sum(amount) AS amount, count(*) AS days FROM {{ ref('by_day') }} GROUP BY 1",
    "best": "SELECT max(amount) AS amount FROM {{ ref('by_customer') }}",
    "count_large": "SELECT count(*) AS orders FROM {{ ref('large') }}",
    "in_a_file": "SELECT customer_id, max(order_date) AS last, count(*) AS orders FROM raw.orders GROUP BY customer_id",
    "of_the_file": "SELECT last, count(*) AS customers FROM {{ ref('in_a_file') }} GROUP BY last",
}
FILES = {
    "mvbuild.yml": "name: shop\n",
    **{f"models/{name}.sql": f"{sql}\n" for name, sql in MVS.items()},
    "models/recent.sql": "{{ config(materialized='view') }}\nSELECT * FROM raw.orders WHERE order_date > DATE '2025-01-01'\n",
    "models/all.yml": "models:\n  - {name: in_a_file, config: {storage: {format: metadata-file}}}\n",
    "seeds/names.csv": "customer_id,name\n1,Ada\n2,Bo\n",
    "seeds/names.yml": "seeds: [{name: names, config: {column_types: {customer_id: bigint}}}]\n",
}
RECENT = "(SELECT * FROM lake.raw.orders WHERE order_date > DATE '2025-01-01')"


def made_of(make: MakeProject, remote: str | None = None) -> Project:
    project = make(FILES)
    if remote:
        project.over(remote)
    project.make("raw.orders", orders((1, 1, "2026-01-05", "10.00"), (2, 2, "2026-01-05", "5.50"), (3, 1, "2026-02-01", "1.25")))
    return project


def pointers(of: Project) -> Mapping[str, str]:
    """Every metadata location of the project, read in one transaction as a careful reader would."""
    with closing(sqlite3.connect(of.root / ".mvbuild" / "catalog.db", timeout=60)) as db:
        found = db.execute("SELECT table_name, metadata_location FROM iceberg_tables WHERE table_namespace = 'main'").fetchall()
    return dict(found)


def snapshot(location: str) -> object:
    """What a reader gets there: the current snapshot of a table, the version of a view, and for an embedded storage its file."""
    raw = json.loads(Path(location.removeprefix("file://").removeprefix("file:")).read_text(encoding="utf-8"))
    if "current-version-id" not in raw:
        return raw.get("current-snapshot-id"), raw.get("properties")
    return raw["current-version-id"], raw["properties"].get("materialized-view.metadata-location")


def visible(of: Project) -> dict[str, object]:
    return {name: snapshot(location) for name, location in pointers(of).items()}


@contextmanager
def polled(of: Project) -> Iterator[list[Mapping[str, str]]]:
    """The states that a reader sees who asks a hundred times a second."""
    seen: list[Mapping[str, str]] = []
    end = threading.Event()

    def poll() -> None:
        while not end.wait(0.01):
            seen.append(pointers(of))

    reader = threading.Thread(target=poll)
    reader.start()
    try:
        yield seen
    finally:
        end.set()
        reader.join()


def assert_right(of: Project) -> None:
    for name, sql in MVS.items():
        full = sql.replace("{{ ref('recent') }}", RECENT).replace("{{ ref('names') }}", "lake.main.names").replace("raw.", "lake.raw.")
        full = full.replace("lake.lake.", "lake.")
        for other, inner in MVS.items():
            while f"{{{{ ref('{other}') }}}}" in full:
                inlined = inner.replace("{{ ref('recent') }}", RECENT).replace("{{ ref('names') }}", "lake.main.names")
                full = full.replace(f"{{{{ ref('{other}') }}}}", f"({inlined.replace('FROM raw.', 'FROM lake.raw.')})")
        assert rows_of(of, name) == of.bag(full), name


def rows_of(of: Project, name: str) -> Counter[str]:
    if name == "in_a_file":
        return of.bag(f"SELECT * FROM ({MVS[name].replace('raw.', 'lake.raw.')})")  # what reads it shows its rows
    return of.bag(f"SELECT * FROM lake.main.{name}__storage")


def change(of: Project) -> None:
    of.append("raw.orders", order(4, 2, "2026-03-01", "7.00"), order(5, 3, "2026-03-02", "2.00"))
    of.write({"seeds/names.csv": "customer_id,name\n1,Ada\n2,Bo\n3,Cy\n"})


def test_readers_never_see_a_mixture(project: MakeProject) -> None:
    made = made_of(project)
    assert made.run(atomic=True).ok
    assert_right(made)
    change(made)
    # A new layout goes through a scratch table, and what reads it must find it there.
    by_day = MVS["by_day"].replace("count(*) AS orders", "count(*) AS orders, max(amount) AS most")
    made.write({"models/by_day.sql": by_day})
    before = visible(made)
    with polled(made) as seen:
        result = made.run(atomic=True)
    assert result.ok, messages(result)
    after = visible(made)
    changed = {name for name in after if before.get(name) != after[name]}
    assert len([name for name in changed if name.endswith("__storage")]) >= 9
    assert "names" in changed
    distinct = {tuple(sorted((n, loc) for n, loc in one.items() if n in changed)) for one in seen}
    for one in distinct:
        found = {name: snapshot(location) for name, location in one}
        is_old = {name: found[name] == before[name] for name in found}
        is_new = {name: found[name] == after[name] for name in found}
        assert all(is_old.values()) or all(is_new.values()), {n: (is_old[n], is_new[n]) for n in found}
    assert made.only_reused()
    made.assert_tidy()
    made.write({"models/by_day.sql": MVS["by_day"] + "\n"})
    assert made.run(atomic=True).ok
    assert_right(made)


def unmarked(of: Project) -> dict[str, object]:
    """What is visible but for the note of the failed test, which must be there."""
    seen = visible(of)
    _, properties = seen["by_customer__storage"]  # type: ignore[misc]
    assert "no_third" in properties.pop("mvbuild.failed-tests")
    return seen


def test_a_failed_data_test_publishes_nothing(project: MakeProject, lake: Lake) -> None:
    made = made_of(project, lake.remote)
    made.write({"tests/no_third.sql": "SELECT * FROM {{ ref('by_customer') }} WHERE customer_id = 3\n"})
    assert made.run(atomic=True).ok
    change(made)
    before = visible(made)
    result = made.run(atomic=True)
    assert not result.ok
    # Readers get a warning about the failed test, and the earlier rows.
    assert unmarked(made) == before
    assert "not-published" in {d.code for d in result.diagnostics}
    assert named(result)["by_customer"] == "error"
    made.assert_tidy()
    told = made.command("run", "--atomic")
    assert told.returncode == 1
    assert "not published" in told.stdout + told.stderr
    assert "Traceback" not in told.stdout + told.stderr
    assert unmarked(made) == before


def test_a_foreign_commit_stops_all_of_it(project: MakeProject) -> None:
    made = made_of(project)
    assert made.run(atomic=True).ok
    change(made)
    before = visible(made)

    def touch(event: Event) -> None:
        if isinstance(event, Message) and event.message.startswith("publishing"):
            table = made.table("main.best__storage")
            table.append(table.scan().to_arrow())

    result = made.run(atomic=True, on_event=touch)
    assert not result.ok
    assert [d.code for d in result.diagnostics] == ["commit-conflict"]
    after = visible(made)
    assert {name for name in after if after[name] != before[name]} == {"best__storage"}
    made.assert_tidy()
    assert made.run(atomic=True).ok
    assert_right(made)


KILLED = """
import os, signal, sqlite3, sys
from mvbuild import api
from mvbuild.refresh.pending_commits import PendingCommits

when, root = sys.argv[1], sys.argv[2]

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

class Dying(sqlite3.Connection):
    updates = 0
    def execute(self, sql, *rest):
        found = super().execute(sql, *rest)
        if sql.startswith("UPDATE iceberg_tables"):
            Dying.updates += 1
            if Dying.updates == 5:
                die()
        return found

real = PendingCommits.commit

def commit(held):
    if when == "before":
        die()
    if when == "inside":
        connect = sqlite3.connect
        sqlite3.connect = lambda *a, **k: connect(*a, factory=Dying, **k)
    real(held)
    die()

PendingCommits.commit = commit
api.run(root, atomic=True)
"""


@pytest.mark.parametrize("when", ["before", "inside", "after"])
def test_killed(project: MakeProject, lake: Lake, when: str) -> None:
    made = made_of(project, lake.remote)
    assert made.run(atomic=True).ok
    change(made)
    before = visible(made)
    began = monotonic()
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, when, str(made.root)], env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=300
    )
    assert killed.returncode == -signal.SIGKILL, (killed.stdout, killed.stderr, monotonic() - began)
    after = visible(made)
    if when == "after":
        assert {name for name in before if name.endswith("__storage") and after[name] == before[name]} == set()
        assert set(made.statuses(spark=NoSpark()).values()) == {"reused"}
    else:
        assert after == before
        assert made.run(atomic=True).ok
    assert_right(made)
    assert made.run().ok
    made.assert_tidy()
