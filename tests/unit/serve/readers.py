"""a shop + a request -> the choice of each MV's source, or the SQL for the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path

from mvbuild.freshness.observe import observe
from mvbuild.freshness.observed import World
from mvbuild.freshness.rules import judge
from mvbuild.refresh.run_id import RunId
from mvbuild.refresh.session import RunSession
from mvbuild.serve import frames
from mvbuild.serve.policy import ServingDecision, choose
from unit.worlds import Shop, compiled, name, shop

BASE = {
    "mvbuild.yml": "name: shop\nmodels: {mart: {+namespace: mart}}\n",
    "models/mart/a.sql": "SELECT id FROM raw.orders\n",
    "models/mart/b.sql": "SELECT id FROM {{ ref('a') }} JOIN raw.customers USING (id)\n",
}
"""raw.orders -> MV mart.a -> MV mart.b <- raw.customers."""


_NONCES = count()


def chain(root: Path, a: str = "", b: str = "", more: Mapping[str, str] | None = None) -> Shop:
    """The chain with settings of its MVs, after a run."""
    files = dict(BASE)
    for model, settings in (("a", a), ("b", b)):
        if settings:
            files[f"models/mart/{model}.sql"] = f"{{{{ config({settings}) }}}}\n" + files[f"models/mart/{model}.sql"]
    made = shop(root, {**files, **(more or {})})
    made.run()
    return made


def lagging(world: World, table: str, ms: int) -> World:
    """The same world, but for the time that the current snapshot of a table was made after its parent."""
    state = world.observed.table(name(table))
    assert state is not None
    now = state.current_snapshot
    assert now is not None
    assert now.parent_id is not None
    later = replace(now, timestamp_ms=state.snapshots[now.parent_id].timestamp_ms + ms)
    moved = replace(state, snapshots={**state.snapshots, now.snapshot_id: later})
    return replace(world, observed=world.observed.updated({name(table): moved}))


def without(world: World, table: str) -> World:
    """The same world without a table: what reads it is unknown."""
    states = {i: s for i, s in world.observed.states.items() if i != name(table)}
    return replace(world, observed=replace(world.observed, states=states))


def choice(world: World, *models: str, now_ms: int = 0) -> ServingDecision:
    return choose(world, judge(world), [f"model.shop.{m}" for m in models], now_ms)


def sources(world: World, *models: str) -> dict[str, str]:
    """Model -> what it is served from."""
    return {s.name: s.source for s in choice(world, *models).served}


def session(of: Shop, world: World | None = None) -> RunSession:
    run = RunId(host="here", pid=1, started_ms=of.clock.at_ms, nonce=f"{next(_NONCES):06x}")
    return RunSession(
        catalog=of.catalog,
        clock=of.clock,
        run=run,
        world=world or of.world(),
        start_engine=lambda: of.engine,
        is_alive=of.alive,
    )


def read(of: Shop, model: str, as_of: int | str | None = None) -> frames.Any:
    graph, ask = frames.named(compiled(of.root), model, as_of)
    return frames.frame(session(of, observe(graph, of.catalog, at_ms=of.clock.at_ms)), ask)


def sql(of: Shop, text: str) -> frames.Any:
    graph, ask = frames.asked(compiled(of.root), text)
    return frames.frame(session(of, observe(graph, of.catalog, at_ms=of.clock.at_ms)), ask)
