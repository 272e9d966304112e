"""World + catalog -> Removed: what removed models left, and what a name refers to; one listing of the catalog's views."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from mvbuild.diagnostics import Diagnostic, ProjectError, did_you_mean, error
from mvbuild.formats.properties import OWNER
from mvbuild.freshness.observed import World
from mvbuild.graph.model import ModelNode
from mvbuild.lifecycle.abandoned import abandoned, never_refreshed
from mvbuild.names import STORAGE_SUFFIX, TableIdentifier
from mvbuild.plan.removed import Removed, is_of_target, named, ordered, pointers, removed, removed_views, unreadable, with_dependents
from mvbuild.ports.catalog import Catalog
from mvbuild.ports.states import State, TableState, Unreadable, ViewState
from mvbuild.storage.auxiliary_views import OWNED_BY, possible_views


def find_removed(world: World, catalog: Catalog, renamed: Iterable[TableIdentifier] = ()) -> tuple[Removed, ...]:
    """Everything of this project, readers first. `renamed` are about to get another name."""
    views = _views(world, catalog)
    gone = removed_views(world, views, renamed)
    found = removed(world, gone, _load(catalog, pointers(world, gone)))
    known = {name.key for item in found for name in item.names}
    left = [item for item in abandoned(world, catalog, views) if item.identifier.key not in known]
    return ordered(_with_all(world, catalog, views, (*found, *left)))


def find_named(world: World, catalog: Catalog, name: str) -> Removed:
    """The view or MV that mvbuild wrote under a model's name or a name of the catalog. Raises ProjectError if there is none."""
    views = _views(world, catalog)
    found = _named(world, catalog, views, name)
    if found.unreadable:
        return _with_auxiliary_views(catalog, (found,))[0]
    return _with_all(world, catalog, views, (found,))[0]


def _with_all(world: World, catalog: Catalog, views: Mapping[TableIdentifier, State], items: tuple[Removed, ...]) -> tuple[Removed, ...]:
    """With their auxiliary views, and with what reads any of their entries."""
    return with_dependents(_with_auxiliary_views(catalog, items), views, world.graph)


def _with_auxiliary_views(catalog: Catalog, items: tuple[Removed, ...]) -> tuple[Removed, ...]:
    """With the tables that are auxiliary views of theirs."""
    storages = [item.storage or (item.view.storage if item.view else None) for item in items]
    near = {space: catalog.list_names(space) for space in sorted({s.identifier.namespace for s in storages if s is not None})}
    names = [possible_views(storage, near[storage.identifier.namespace]) if storage is not None else {} for storage in storages]
    states = _load(catalog, tuple(dict.fromkeys(name for of in names for name in of)))
    found = [
        tuple(s for name, is_listed in of.items() if isinstance(s := states.get(name), TableState) and _owns(item, s, is_listed))
        for item, of in zip(items, names, strict=True)
    ]
    return tuple(replace(item, auxiliary=tables) if tables else item for item, tables in zip(items, found, strict=True))


def _owns(item: Removed, table: TableState, is_listed: bool) -> bool:
    owner = table.properties.get(OWNED_BY)
    return owner is not None and (is_listed or owner == item.model)


def _named(world: World, catalog: Catalog, views: Mapping[TableIdentifier, State], name: str) -> Removed:
    broken = _broken(world, views, name)
    if broken is not None:
        return broken
    try:
        view = _view(world, views, name)
    except ProjectError:
        storage = _storage(world, catalog, views, name)
        if storage is None:
            raise
        return storage
    if OWNER not in view.properties:
        raise ProjectError(
            [error("unknown-name", f"{view.identifier} was not written by mvbuild", help="Drop it with the tool that made it.")]
        )
    return named(world, view, _load(catalog, pointers(world, [view])))


def _views(world: World, catalog: Catalog) -> Mapping[TableIdentifier, State]:
    """All views of the catalog; those of the project were just observed. A view that cannot be expanded still has a text, which names what
    it reads."""
    listed = catalog.list_views()
    known = {i: s for i in listed if isinstance(s := world.observed.states.get(i), ViewState)}
    found = {**known, **_load(catalog, tuple(i for i in listed if i not in known))}
    return {i: found[i] for i in listed if i in found}


def _broken(world: World, views: Mapping[TableIdentifier, State], name: str) -> Removed | None:
    """For an entry that cannot be read, only the name shows that it is mvbuild's."""
    nodes = [n for n in world.graph.models if n.materialized != "ephemeral"]
    wanted = next((n.identifier for n in nodes if n.model.name == name), None)
    wanted = wanted or TableIdentifier.parse(name, world.graph.project.target.catalog_name)
    found = next((s for s in views.values() if isinstance(s, Unreadable) and s.identifier.key == wanted.key), None)
    if found is None:
        return None
    node = next((n for n in nodes if n.identifier.key == wanted.key), None)
    if node is None:
        message = f"{found.identifier} belongs to no model and cannot be read, so it is unknown whether mvbuild wrote it: {found.reason}"
        raise ProjectError([error("unreadable-metadata", message, help="Restore the file, or drop the entry with the tool that made it.")])
    return unreadable(world, node, found)


def _storage(world: World, catalog: Catalog, views: Mapping[TableIdentifier, State], name: str) -> Removed | None:
    """The storage table of an MV that has no view, because it never had a successful refresh: by its own name, the MV's, or the model's."""
    models = [n for n in world.graph.views if n.model.name == name]
    wanted = TableIdentifier.parse(name, world.graph.project.target.catalog_name)
    keys = {n.identifier.key for n in models} or {wanted.key}
    for node in world.graph.views:
        if node.identifier.key in keys or (node.storage and node.storage.key in keys):
            return never_refreshed(world, views, node)
    owner = f"model.{world.graph.project.name}.{name}"
    by_name = {wanted.key, TableIdentifier(wanted.catalog, wanted.namespace, f"{wanted.name}{STORAGE_SUFFIX}").key}
    found = [i for i in abandoned(world, catalog, views) if i.model == owner or i.identifier.key in by_name]
    return found[0] if len(found) == 1 else None


def _view(world: World, views: Mapping[TableIdentifier, State], name: str) -> ViewState:
    found = [s for s in views.values() if isinstance(s, ViewState)]
    models = [n for n in world.graph.models if n.model.name == name and n.materialized != "ephemeral"]
    wanted = models[0].identifier if models else TableIdentifier.parse(name, world.graph.project.target.catalog_name)
    owner = f"model.{world.graph.project.name}.{name}"
    by_name = [v for v in found if v.identifier.key == wanted.key]
    by_name = [v for v in by_name if v.identifier == wanted] or by_name
    chosen = by_name or [v for v in found if v.properties.get(OWNER) == owner and is_of_target(world.graph, v)]
    if len(chosen) == 1:
        return chosen[0]
    raise ProjectError([_unknown(world, found, name, models)])


def _unknown(world: World, views: Iterable[ViewState], name: str, models: list[ModelNode]) -> Diagnostic:
    if models:
        return error("unknown-name", f"'{name}' is not in the catalog: there is nothing to drop", help="See `mvbuild status`.")
    ours = [v.identifier.dotted for v in views if OWNER in v.properties]
    message = f"'{name}' is not a view or materialized view that mvbuild wrote"
    return error("unknown-name", message, help=did_you_mean(name, [*ours, *(n.model.name for n in world.graph.models)]))


def _load(catalog: Catalog, names: tuple[TableIdentifier, ...]) -> Mapping[TableIdentifier, State]:
    return catalog.load(names) if names else {}
