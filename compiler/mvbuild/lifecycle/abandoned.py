"""World + catalog -> storage tables of MVs that never had a successful refresh: no view points to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mvbuild.formats.properties import OWNER
from mvbuild.freshness.observed import World
from mvbuild.graph.model import ModelNode
from mvbuild.names import STORAGE_SUFFIX, TableIdentifier
from mvbuild.plan.removed import Removed
from mvbuild.ports.catalog import Catalog
from mvbuild.ports.commits import BRANCH_PROPERTY
from mvbuild.ports.states import State, TableState, ViewState
from mvbuild.storage.names import storage_name

_MOST_LOADED = 50
"""The limit of other tables in the namespaces of the project. If there are more, only those with the usual name of a storage are checked.
"""


def abandoned(world: World, catalog: Catalog, views: Mapping[TableIdentifier, State]) -> Iterator[Removed]:
    """The storage tables of models that were removed, are not MVs any more, or have another storage."""
    taken = {i.key for n in world.graph.models for i in (n.identifier, n.storage) if i is not None}
    for state in _candidates(world, catalog, views):
        if state.identifier.key not in taken and is_abandoned(world, state, views):
            yield removed_storage(state)


def never_refreshed(world: World, views: Mapping[TableIdentifier, State], node: ModelNode) -> Removed | None:
    """The storage table of a model that has no view yet."""
    state = world.observed.table(node.storage)
    is_own = state is not None and state.properties.get(OWNER) == node.id
    return removed_storage(state) if state is not None and is_own and is_abandoned(world, state, views) else None


def is_abandoned(world: World, state: TableState, views: Mapping[TableIdentifier, State]) -> bool:
    """Whether mvbuild created a table for this project, nothing was ever published in it, and neither a view nor a branch uses it."""
    pointed = {p.key for s in views.values() if isinstance(s, ViewState) and (p := storage_name(s))}
    on_a_branch = bool(state.branches - {"main"}) or any(key.startswith(BRANCH_PROPERTY) for key in state.properties)
    is_ours = state.properties.get(OWNER, "").startswith(f"model.{world.graph.project.name}.")
    is_empty = state.of_view is None and state.current_snapshot_id is None
    return is_ours and is_empty and not on_a_branch and state.identifier.key not in pointed


def removed_storage(state: TableState) -> Removed:
    owner = state.properties[OWNER]
    return Removed(view=None, storage=state, model=owner, note=f"storage of {owner}, which never had a successful refresh")


def _candidates(world: World, catalog: Catalog, views: Mapping[TableIdentifier, State]) -> list[TableState]:
    """Tables that the project does not name, in the namespaces of its MVs."""
    target = world.graph.project.target.namespace
    namespaces = {target, *(i.namespace for n in world.graph.models for i in (n.identifier, n.storage) if i is not None)}
    known = {i.key for i in (*world.observed.states, *views)}
    names = [i for namespace in sorted(namespaces) for i in catalog.list_names(namespace) if i.key not in known]
    wanted = names if len(names) <= _MOST_LOADED else [i for i in names if i.name.endswith(STORAGE_SUFFIX)]
    found = catalog.load(wanted) if wanted else {}
    return [s for s in found.values() if isinstance(s, TableState)]
