"""World + MV -> the values of the clock that its query reads: now, and when it was refreshed; and the reasons that follow from them.

A run observes one instant, as it observes one snapshot of each table. Whatever reads the clock in this run reads that instant.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mvbuild.diagnostics import ProjectError
from mvbuild.freshness.age import allows
from mvbuild.freshness.expansion import expanded_sql
from mvbuild.freshness.leaves import Inputs, node_inputs
from mvbuild.freshness.model import Reason
from mvbuild.freshness.observed import World
from mvbuild.freshness.pins import leaf_table
from mvbuild.freshness.situation import Situation, texts_below, texts_of
from mvbuild.graph.model import ModelNode
from mvbuild.names import TableIdentifier
from mvbuild.parse.clock_reads import clock_reads, ends_ms, may_read_clock, values_at, without_clock
from mvbuild.ports.session import TIME_ZONE
from mvbuild.ports.states import TableState
from mvbuild.project.setting_values import written
from mvbuild.storage.reads import recorded_reads
from mvbuild.storage.sessions import recorded_session

MOVED = "clock-moved"


def zone_of_refreshes(world: World, storage: TableState | None) -> str:
    """The time zone of the session that reads or refreshes an MV. mvbuild's own session may take another zone from its environment than the
    project configures: then it is the one of the last refresh."""
    session = world.observed.session
    made = recorded_session(storage) if storage is not None else None
    if session.is_whole or made is None or made.configured is None:
        return session.zone
    is_same = made.configured.get(TIME_ZONE, "") == session.settings.get(TIME_ZONE, "")
    return made.session.zone if is_same else session.zone


def columns_below(world: World, below: Inputs) -> frozenset[str]:
    """The names of the columns of every table and view that a query reads."""
    tables = (world.observed.table(leaf_table(world.graph, leaf)) for leaf in below.leaves)
    views = (world.observed.view(world.graph.nodes[id].identifier) for id in below.views)
    return frozenset(field["name"] for state in (*tables, *views) if state is not None for field in state.schema["fields"])


def names_read(world: World, node: ModelNode) -> tuple[str, ...]:
    """What a query reads of the clock, if all of it can be replaced by values."""
    below = node_inputs(world.graph, node)
    if not any(may_read_clock(text) for _, text in texts_below(world.graph, node, below)):
        return ()
    try:
        text = expanded_sql(world.graph, node.query, node.reads, lambda leaf: f"`t{below.leaves.index(leaf)}`").text
    except ProjectError:
        return ()
    return tuple(dict.fromkeys(read.name for read in clock_reads(text, columns_below(world, below))))


def values_read(world: World, node: ModelNode, zone: str | None = None) -> dict[str, str]:
    """Name -> value at the instant of this observation. `zone`: of the session that runs the query, if it is known."""
    names = names_read(world, node)
    zone = zone_of_refreshes(world, world.observed.table(node.storage)) if zone is None else zone
    return values_at(names, world.observed.at_ms, zone) if names else {}


def steady_texts(s: Situation) -> Iterator[tuple[TableIdentifier, str]]:
    """The texts of the MV without the readings of the clock that are compared with recorded ones."""
    values = values_read(s.world, s.node)
    columns = columns_below(s.world, s.inputs) if values else frozenset()
    for identifier, text in texts_of(s):
        yield identifier, without_clock(text, values, columns) if values else text


def clock_moved(s: Situation) -> Iterator[Reason]:
    """The query reads another day, hour ... now than when it was refreshed."""
    if s.record is None or s.storage is None:
        return
    now = values_read(s.world, s.node)
    before = recorded_reads(s.storage) if now else {}
    for name, value in now.items():
        if name not in before:
            message = f"it reads {name}, and the record of the last refresh does not say which value that was"
            yield Reason(code="clock-not-recorded", message=message, effect="unknown")
        elif before[name] != value:
            yield _moved(s, name, before[name], value)


def _moved(s: Situation, name: str, before: str, now: str) -> Reason:
    ended = ends_ms(name, before, zone_of_refreshes(s.world, s.storage))
    lag = s.world.observed.at_ms - ended if ended is not None else None
    moved = Reason(code=MOVED, message=f"{name} is {now}; it was {before}", effect="stale", lag_ms=lag, unseen_since_ms=ended)
    window = s.node.model.config.max_staleness
    if window is None or not allows(window, [moved]):
        return moved
    return replace(moved, code="within-window", message=f"{moved.message}, within the window of {written(window)}", effect="fresh")


def next_move_ms(world: World) -> int | None:
    """When an MV first reads another value of the clock."""
    ends = (
        ends_ms(name, value, zone_of_refreshes(world, world.observed.table(node.storage)))
        for node in world.graph.views
        for name, value in values_read(world, node).items()
    )
    return min((end for end in ends if end is not None), default=None)
