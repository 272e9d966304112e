"""A fault at each single call to the catalog and to storage: no wrong record, nothing lost, and the next run corrects everything."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from mvbuild.diagnostics import ProjectError
from mvbuild.formats import properties
from mvbuild.names import TableIdentifier
from mvbuild.ports.catalog import CatalogError
from mvbuild.ports.states import State, TableState, Unreadable, ViewState
from mvbuild.refresh.result import RunResult
from unit.worlds import PROJECT, Shop, append, shop

pytestmark = pytest.mark.proof

EVERY = int(os.environ.get("MVBUILD_FAULT_EVERY", "4"))
"""1 for a fault at each single call, which takes a minute; else the calls in turn, from one that the day chooses."""
FIRST = int(os.environ.get("MVBUILD_FAULT_FIRST", time.time() // 86400))
When = Literal["before", "after"]
FILES = PROJECT | {
    "models/all.yml": "models:\n  - {name: in_a_file, config: {storage: {format: metadata-file}}}\n",
    "models/in_a_file.sql": "SELECT id FROM {{ ref('daily') }}\n",
    "seeds/regions.csv": "id\n1\n2\n",
    "models/regional.sql": "SELECT id FROM {{ ref('regions') }}\n",
}


class ServiceUnavailableError(Exception):
    """A 503: by its name the catalog counts as unreachable."""


class CommitStateUnknownException(Exception):
    """A 500 or a lost answer of a REST catalog."""


FAULTS: dict[str, Callable[[], Exception]] = {
    "time-out": lambda: TimeoutError("timed out"),
    "connection reset": lambda: ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"),
    "disk full": lambda: OSError(errno.ENOSPC, "No space left on device"),
    "503": lambda: ServiceUnavailableError("503 Service Unavailable"),
    "state unknown": lambda: CommitStateUnknownException("500 Internal Server Error"),
}


@dataclass
class Faulty:
    """Replaces an object of the adapter: one of its calls fails, before or after it did its work."""

    real: Any
    plan: Plan

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.real, name)
        return self.plan.around(found, name) if callable(found) and not name.startswith("_") else found


@dataclass
class Plan:
    """Which call fails, counted over all objects of one catalog."""

    at: int
    when: When
    fault: Callable[[], Exception]
    calls: list[str] = field(default_factory=list)

    def around(self, call: Callable[..., Any], name: str) -> Callable[..., Any]:
        def made(*arguments: Any, **options: Any) -> Any:
            number = len(self.calls)
            self.calls.append(name)
            if number == self.at and self.when == "before":
                raise self.fault()
            found = call(*arguments, **options)
            if number == self.at:
                raise self.fault()
            return found

        return made


@contextmanager
def faults(of: Shop, plan: Plan) -> Iterator[None]:
    publisher: Any = of.catalog._publisher
    real = publisher.pointers, publisher.files
    of.settled.is_on = False  # the calls of a run are counted, and none of a check of it
    publisher.pointers, publisher.files = Faulty(real[0], plan), Faulty(real[1], plan)
    try:
        yield
    finally:
        publisher.pointers, publisher.files = real
        of.settled.is_on = True


def everything(of: Shop) -> dict[TableIdentifier, State]:
    return dict(of.catalog.load([*of.catalog.list_names(("main",)), *of.catalog.list_names(("raw",))]))


def rows(of: Shop, table: TableState) -> Any:
    return of.catalog.files.rows(table, 10)


def attempted(of: Shop, *, atomic: bool) -> RunResult | None:
    """A run ends with a result, or with the error that the command line shows the user."""
    try:
        return of.run(atomic=atomic)
    except (CatalogError, ProjectError):
        return None


def assert_nothing_is_wrong(of: Shop, before: dict[TableIdentifier, State]) -> None:
    after = everything(of)
    assert not [s for s in after.values() if isinstance(s, Unreadable)]
    assert before.keys() <= after.keys()
    for state in after.values():
        table = state.storage if isinstance(state, ViewState) else state
        if not isinstance(table, TableState) or table.current_snapshot_id is None:
            continue
        rows(of, table)
        written = table.properties.get(properties.REFRESH_SNAPSHOT)
        # The record is of the rows that are there: both moved, or neither.
        assert written is None or int(written) == table.current_snapshot_id, table.identifier
        if state.identifier in before and before[state.identifier] != state and table.identifier.name.endswith("__storage"):
            old = before[state.identifier]
            assert isinstance(old, TableState)
            assert old.current_snapshot_id is None or old.current_snapshot_id in table.snapshots


def calls_of_a_run(root: Path, prepare: Callable[[Shop], None], *, atomic: bool) -> list[str]:
    made = shop(root, FILES)
    prepare(made)
    plan = Plan(at=-1, when="before", fault=FAULTS["time-out"])
    with faults(made, plan):
        assert made.run(atomic=atomic).ok
    return plan.calls


def nothing(_: Shop) -> None:
    """A first run."""


def changed(of: Shop) -> None:
    assert of.run().ok
    append(of.catalog, "raw.orders")
    append(of.catalog, "raw.customers")
    of.write({"seeds/regions.csv": "id\n1\n2\n3\n"})


@pytest.mark.parametrize("atomic", [False, True], ids=["each", "atomic"])
@pytest.mark.parametrize("prepare", [nothing, changed], ids=["first run", "refresh"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_fault_at_every_call(tmp_path: Path, when: When, prepare: Callable[[Shop], None], atomic: bool) -> None:
    calls = calls_of_a_run(tmp_path / "dry", prepare, atomic=atomic)
    assert {"find", "swap", "write"} <= set(calls)
    kinds = list(FAULTS)
    for at in range(FIRST % EVERY, len(calls), EVERY):
        call, fault = calls[at], kinds[at % len(kinds)]
        made = shop(tmp_path / f"{at}", FILES)
        prepare(made)
        before = everything(made)
        with faults(made, Plan(at=at, when=when, fault=FAULTS[fault])):
            result = attempted(made, atomic=atomic)
        told = f"{fault} {when} call {at}, {call} (MVBUILD_FAULT_EVERY={EVERY} MVBUILD_FAULT_FIRST={FIRST})"
        assert_nothing_is_wrong(made, before)
        if result is not None:
            codes = {d.code for d in result.diagnostics} | {d.code for r in result.results for d in r.diagnostics}
            assert "internal" not in codes, told
            assert result.ok or codes, told
        made.alive = lambda pid: False  # what could not be removed goes when its process has ended
        again = made.run(atomic=atomic)
        assert again.ok, (told, [(r.node, r.message) for r in again.results])
        assert set(made.statuses().values()) == {"reused"}, told
        assert made.catalog.list_names(("mvbuild_scratch",)) == (), told
