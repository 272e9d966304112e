"""name + RunSession -> Shown: some rows of a model, and where they come from."""

from __future__ import annotations

from mvbuild.dataclass import dataclass
from mvbuild.freshness.readable import require_readable
from mvbuild.graph.model import Node
from mvbuild.ports.engine import Rows
from mvbuild.ports.states import TableState
from mvbuild.refresh.session import RunSession
from mvbuild.serve import answers
from mvbuild.serve.as_of import AsOf, snapshot_as_of
from mvbuild.serve.lookup import find_observed
from mvbuild.serve.outside import meet, storage_of
from mvbuild.serve.policy import Served
from mvbuild.serve.words import origin, utc
from mvbuild.storage.names import known_as


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Rows of one model, seed, view or table."""

    rows: Rows
    origin: str
    """`storage lake.mart.daily__storage: fresh, refreshed 5m 2s ago`, `query: stale (...)`, `table lake.main.countries`."""
    own: Served | None
    """What the model itself was served from, if it is an MV."""
    upstream: tuple[Served, ...]
    """The MVs that its query read."""


def choose_rows(session: RunSession, name: str, limit: int, as_of: AsOf | None = None) -> Shown:
    """Rows of anything that the project knows. Stored rows are read without the engine, including those of an MV `as_of` a time."""
    node = find_observed(session.world, name)
    require_readable(session.world, node)
    if as_of is not None:
        return _as_of(session, node, limit, as_of)
    answer = answers.of_node(session, node)
    own = next((s for s in answer.served if s.node == node.id), None)
    upstream = tuple(s for s in answer.served if s is not own)
    stored = _stored(session, node, own)
    if stored is not None:
        columns, rows = session.catalog.files.rows(stored, limit)
        found, source = Rows(columns=columns, rows=tuple(rows)), f"table {stored.identifier}"
    else:
        with answer.explained():
            found, source = session.engine.rows(answer.sql.text, limit), "query"
    return Shown(rows=found, origin=origin(own) if own else source, own=own, upstream=upstream)


def _as_of(session: RunSession, node: Node, limit: int, as_of: AsOf) -> Shown:
    session.world = meet(session.world, session.catalog, session.sources).world
    node = session.world.graph.nodes[node.id]
    snapshot = snapshot_as_of(session.world, node, as_of)
    storage = storage_of(session.world, node)
    assert storage is not None, "snapshot_as_of found a snapshot of it"
    columns, rows = session.catalog.files.rows(storage, limit, snapshot.snapshot_id)
    source = f"storage {known_as(storage)} as of {utc(snapshot.timestamp_ms)}"
    return Shown(rows=Rows(columns=columns, rows=tuple(rows)), origin=source, own=None, upstream=())


def _stored(session: RunSession, node: Node, own: Served | None) -> TableState | None:
    """The table with these rows, if they are those of one table of the catalog."""
    if own is not None and own.source == "query":
        return None
    found = storage_of(session.world, session.world.graph.nodes[node.id])
    return found if found is not None and node.identifier not in session.world.graph.outside else None
