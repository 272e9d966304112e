"""MV + a time or the number of a refresh -> the snapshot of its storage with its rows at that time."""

from __future__ import annotations

from datetime import datetime

from mvbuild.diagnostics import ProjectError, error
from mvbuild.freshness.observed import World
from mvbuild.freshness.readable import require_readable
from mvbuild.graph.model import ModelNode, Node
from mvbuild.parse.wall_clock import instant_ms, zone_of
from mvbuild.ports.states import Snapshot, TableState
from mvbuild.storage.history import at_time, history

AsOf = int | str | datetime
"""A refresh by its number (see `mvbuild history`) or by the id of its snapshot; or a time, in the session's time zone unless it names
another one."""


def snapshot_as_of(world: World, node: Node, as_of: AsOf) -> Snapshot:
    """Raises ProjectError if it is not an MV, or if the requested state no longer exists."""
    require_readable(world, node)
    storage = world.observed.table(node.storage) if isinstance(node, ModelNode) and node.storage else None
    if storage is None:
        raise ProjectError([error("unknown-refresh", f"{node.identifier} has no refresh to go back to")])
    text = as_of.strip() if isinstance(as_of, str) else as_of
    if isinstance(text, int) or (isinstance(text, str) and text.isdigit()):
        found = _numbered(storage, int(text))
    else:
        found = at_time(storage, _milliseconds(text, world.observed.session.zone))
    if found is None:
        raise ProjectError([error("unknown-refresh", f"{node.identifier} has no refresh as of {as_of} in its history")])
    return found


def _numbered(storage: TableState, number: int) -> Snapshot | None:
    past = next((p for p in history(storage) if p.refresh_id == number), None)
    return past.snapshot if past else storage.snapshots.get(number)


def _milliseconds(value: str | datetime, zone: str) -> int:
    known = instant_ms(value, zone) if isinstance(value, str) else None
    if known is not None:
        return known
    try:
        at = value if isinstance(value, datetime) else datetime.fromisoformat(value.replace("Z", "+00:00"))
    except ValueError as exc:
        message = f"'{value}' is neither an ISO time nor the number of a refresh"
        raise ProjectError([error("unknown-refresh", message)]) from exc
    where = at.tzinfo or zone_of(zone)
    if where is None:
        message = f"'{value}' names no time zone, and that of the session, '{zone}', is not known here"
        raise ProjectError([error("unknown-refresh", message, help="Write the time with an offset, as in 2026-01-31T12:00:00Z.")])
    return int(at.replace(tzinfo=where).timestamp() * 1000)
