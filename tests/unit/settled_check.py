"""graph + catalog -> nothing, or an assertion: what earlier observations found settled is what the rules say now.

`Shop` calls this at each observation, so every test that changes a catalog and looks again also tests what a run does not read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from mvbuild.cache.store import FILE, Cache
from mvbuild.diagnostics import ProjectError
from mvbuild.freshness.observe import observe
from mvbuild.freshness.observed import World
from mvbuild.freshness.rules import judge
from mvbuild.graph.model import CachedGraph, Graph
from mvbuild.names import TableIdentifier
from mvbuild.plan.build import build_plan
from mvbuild.plan.model import Plan
from mvbuild.plan.settle import settle
from mvbuild.ports.catalog import Catalog
from mvbuild.ports.sources import Sources
from mvbuild.ports.states import State, TableState
from mvbuild.storage.auxiliary_views import OWNED_BY


@dataclass
class SettledCheck:
    """Remembers, as the commands do, what was settled."""

    root: Path
    is_on: bool = True
    found: int = 0
    """How many models were settled in all observations."""

    def same(self, graph: Graph, catalog: Catalog, sources: Sources | None, world: World) -> None:
        """Assert that an observation that reads only what changed has the same result as `world`."""
        if not self.is_on or graph.problems or graph.warnings or graph.project.branch is not None:
            return
        # Another command has another cache object, and finds in the file what the last one saved.
        folder = self.root.parent / f"{self.root.name}.settled"
        folder.mkdir(exist_ok=True)
        known = CachedGraph(key=_key(self.root), changed=frozenset(), nodes=graph.nodes, contracts=graph.contracts)
        project = replace(graph.project, cache=Cache(folder / FILE))
        lazy = observe(replace(graph, project=project, outlined=known), catalog, sources, at_ms=world.observed.at_ms, lazily=True)
        self.found += len(lazy.settled)
        ours, theirs = _plan(lazy), _plan(world)
        assert _shown(lazy, ours) == _shown(world, theirs)
        if ours is not None:
            settle(ours)
        assert _read(lazy) == _read(world)


def _read(world: World) -> dict[TableIdentifier, State]:
    """Without auxiliary views, which only the refresh of an MV that is not settled needs."""
    return {i: s for i, s in world.observed.states.items() if not (isinstance(s, TableState) and OWNED_BY in s.properties)}


def _key(root: Path) -> str:
    files = sorted((str(path.relative_to(root)), path.read_bytes()) for path in root.rglob("*") if path.is_file())
    return sha256(repr(files).encode()).hexdigest()


def _plan(world: World) -> Plan | None:
    try:
        return build_plan(world, frozenset(n.id for n in world.graph.models))
    except ProjectError:
        return None


def _shown(world: World, plan: Plan | None) -> str:
    freshness = {id: (f.state, f.reasons, f.unseen, f.failed, f.refreshed_ms, f.was_refreshed, f.record) for id, f in judge(world).items()}
    steps = [(s.node, s.action, s.reasons, s.diagnostic) for s in plan.steps] if plan else None
    return json.dumps([freshness, steps, plan.warnings if plan else ()], default=repr, indent=1)
