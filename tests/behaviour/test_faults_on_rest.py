"""A fault at each request of a run to a REST server: no wrong record, nothing lost, and the next run corrects everything.

The same for every call to the files and pointers of the other catalogs, in memory: tests/unit/refresh/test_faults.py.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

from mvbuild.adapters import open_catalog
from mvbuild.diagnostics import ProjectError
from mvbuild.formats import properties
from mvbuild.names import TableIdentifier
from mvbuild.ports.catalog import CatalogError
from mvbuild.ports.states import State, TableState, Unreadable
from mvbuild.refresh.result import RunResult
from servers.proxy import between
from servers.rest import RestServer
from unit.worlds import PROJECT, RecordingEngine, Shop, name

pytestmark = pytest.mark.proof

EVERY = int(os.environ.get("MVBUILD_FAULT_EVERY", "24"))
"""1 for a fault at each request; else the requests in turn, from one that the day chooses."""
FIRST = int(os.environ.get("MVBUILD_FAULT_FIRST", time.time() // 86400))
IDS = pa.schema([("id", pa.int64())])
FAULTS: Mapping[str, Mapping[str, Any]] = {
    "503 before": {"forwarded": False, "lost": True, "status": 503},
    "reset after": {"lost": True},
    "500 before": {"forwarded": False, "lost": True, "status": 500},
    "504 after": {"lost": True, "status": 504},
    "reset before": {"forwarded": False, "lost": True},
    "500 after": {"lost": True, "status": 500},
    "409 before": {"forwarded": False, "lost": True, "status": 409},
}


@dataclass
class Writer:
    """What an engine writes goes to the server without accidents."""

    catalog: Any

    def append_snapshot(
        self,
        identifier: TableIdentifier,
        columns: Mapping[str, Sequence[Any]],
        *,
        branch: str = "main",
        operation: str = "append",
        summary: Mapping[str, str] | None = None,
    ) -> None:
        table = self.catalog.load_table((*identifier.namespace, identifier.name))
        table.append(pa.table(columns, schema=IDS), snapshot_properties=dict(summary or {}), branch=branch)


@pytest.fixture
def direct(rest_server: RestServer) -> Any:
    rest_server.clear()
    catalog: Any = load_catalog("lake", **rest_server.properties)
    yield catalog
    catalog.close()


def made(root: Path, direct: Any, uri: str) -> Shop:
    """The project on the server, with its two base tables as they are at first."""
    found = Shop(root, catalog=open_catalog("lake", {"type": "rest", "uri": uri}, embedded=False)).write(PROJECT)  # type: ignore[arg-type]
    found.engine = RecordingEngine(Writer(direct))  # type: ignore[arg-type]
    direct.create_namespace_if_not_exists("raw")
    for table in ("raw.orders", "raw.customers"):
        direct.create_table(table, IDS)
    changed(direct)
    return found


def changed(direct: Any) -> None:
    for table in ("raw.orders", "raw.customers"):
        direct.load_table(table).append(pa.table({"id": [1]}, schema=IDS))


def everything(of: Shop) -> dict[TableIdentifier, State]:
    return dict(of.catalog.load([*of.catalog.list_names(("main",)), *of.catalog.list_names(("raw",))]))


def attempted(of: Shop) -> RunResult | None:
    try:
        return of.run()
    except (CatalogError, ProjectError):
        return None


def assert_nothing_is_wrong(of: Shop, before: Mapping[TableIdentifier, State]) -> None:
    after = everything(of)
    assert not [s for s in after.values() if isinstance(s, Unreadable)]
    assert before.keys() <= after.keys()
    for state in after.values():
        if isinstance(state, TableState) and state.current_snapshot_id is not None:
            of.catalog.files.rows(state, 10)
            written = state.properties.get(properties.REFRESH_SNAPSHOT)
            assert written is None or int(written) == state.current_snapshot_id, state.identifier


@pytest.mark.parametrize("first", [True, False], ids=["first run", "refresh"])
def test_a_fault_at_every_request(tmp_path: Path, rest_server: RestServer, direct: Any, first: bool) -> None:
    with between(rest_server.uri) as proxy:

        def prepared(at: str) -> Shop:
            rest_server.clear()
            of = made(tmp_path / at, direct, proxy.uri)
            if not first:
                assert of.run().ok
                changed(direct)
            proxy.seen.clear()
            return of

        assert prepared("dry").run().ok
        requests = list(proxy.seen)
        assert any(request.startswith("POST") for request in requests)
        for at in range(FIRST % EVERY, len(requests), EVERY):
            kind = list(FAULTS)[at % len(FAULTS)]
            of = prepared(str(at))
            before = everything(of)
            proxy.expect("", skip=at, **FAULTS[kind])
            result = attempted(of)
            proxy.accidents.clear()
            told = f"{kind} request {at}, {requests[at]} (MVBUILD_FAULT_EVERY={EVERY} MVBUILD_FAULT_FIRST={FIRST})"
            assert_nothing_is_wrong(of, before)
            if result is not None:
                codes = {d.code for d in result.diagnostics} | {d.code for r in result.results for d in r.diagnostics}
                assert "internal" not in codes, told
                assert result.ok or codes, told
            of.alive = lambda pid: False  # what could not be removed goes when its process has ended
            again = of.run()
            assert again.ok, (told, [(r.node, r.message) for r in again.results])
            assert set(of.statuses().values()) == {"reused"}, told
            assert of.catalog.list_names(("mvbuild_scratch",)) == (), told
            assert of.table("main.daily__storage").current_snapshot_id is not None
            assert name("main.monthly") in everything(of)
