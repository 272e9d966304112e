"""World + views of the catalog -> Removed: what mvbuild wrote for models that the project no longer has. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, error
from mvbuild.formats.properties import OWNER, TARGET_NAMESPACE
from mvbuild.freshness.observed import World
from mvbuild.graph.model import Graph, ModelNode, SeedNode
from mvbuild.names import TableIdentifier
from mvbuild.plan.dependents import Dependent, dependents
from mvbuild.ports.states import State, TableState, Unreadable, ViewState
from mvbuild.storage.names import storage_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """An MV or view without a model; or a storage table whose model is a plain view now."""

    view: ViewState | None
    storage: TableState | None
    """The storage's own entry in the catalog; an embedded one is part of the view."""
    model: str
    """Unique id of the model that it was written for."""
    note: str = ""
    help: str = ""
    dependents: tuple[Dependent, ...] = ()
    """Everything that reads it directly, including other removed entries."""
    kept_by: tuple[Dependent, ...] = ()
    """The dependents that remain: as long as there are any, it is not dropped."""
    unreadable: tuple[Unreadable, ...] = ()
    """Its entries of which only the name is known. They do not prevent dropping it, because nothing can read it as it is."""
    auxiliary: tuple[TableState, ...] = ()
    """Its auxiliary views, which are dropped with it."""

    @property
    def identifier(self) -> TableIdentifier:
        return self.entries[0].identifier

    @property
    def entries(self) -> tuple[ViewState | TableState | Unreadable, ...]:
        """Its entries in the catalog, the main one first."""
        found = (self.view, *self.unreadable, self.storage)
        return tuple(s for s in found if s is not None)

    @property
    def names(self) -> tuple[TableIdentifier, ...]:
        """The entries in the catalog."""
        return tuple(s.identifier for s in (*self.entries, *self.auxiliary))


def removed_views(world: World, views: Mapping[TableIdentifier, State], renamed: Iterable[TableIdentifier] = ()) -> tuple[ViewState, ...]:
    """Views that mvbuild wrote for this project, and whose name no model has now. `renamed` are about to get another name. None as long as
    the settings of a model are wrong: it may have any of these names, or be a new name of one."""
    if any(not n.model.knows_settings for n in world.graph.models):
        return ()
    here = [n.identifier for n in world.graph.models if n.materialized != "ephemeral"]
    kept = {i.key for i in renamed}
    prefix = f"model.{world.graph.project.name}."
    found = [s for s in views.values() if isinstance(s, ViewState) and s.properties.get(OWNER, "").startswith(prefix)]
    named = _named_by(world, here, found)
    return tuple(v for v in found if v.identifier.key not in kept and v.identifier not in named and is_of_target(world.graph, v))


def _named_by(world: World, here: Iterable[TableIdentifier], states: Iterable[TableState | ViewState]) -> set[TableIdentifier]:
    """The entries that a name of the project means. Where a catalog distinguishes letter case, names may differ in nothing else: then an
    entry is the one that has exactly the name."""
    names = set(here)
    own = {name.key: name for name in names}
    found = set()
    for state in states:
        name = state.identifier if state.identifier in names else own.get(state.identifier.key)
        exact = world.observed.states.get(name) if name is not None and name != state.identifier else None
        is_another = isinstance(exact, TableState | ViewState) and exact.uuid != state.uuid
        if name is not None and not is_another:
            found.add(state.identifier)
    return found


def of_target(graph: Graph) -> dict[str, str]:
    """The property of a view that says which target it was written for."""
    return {TARGET_NAMESPACE: ".".join(graph.project.target.namespace)}


def is_of_target(graph: Graph, view: ViewState) -> bool:
    """Whether the view was written for this target of the project, and not for another one that has its MVs in the same catalog. Older
    views do not say it: then it was, if this target has something in the same namespace."""
    if TARGET_NAMESPACE in view.properties:
        return view.properties[TARGET_NAMESPACE].lower() == of_target(graph)[TARGET_NAMESPACE].lower()
    names = (i for n in graph.models for i in (n.identifier, n.storage) if i is not None)
    here = {graph.project.target.namespace, *(name.namespace for name in names)}
    return tuple(part.lower() for part in view.identifier.namespace) in {tuple(part.lower() for part in one) for one in here}


def is_of_another_target(graph: Graph, view: ViewState) -> bool:
    """Whether the view certainly was not written for this target. Where an older view does not say it, the rule for namespaces decides."""
    target = graph.project.target
    own, there = ([part.lower() for part in one] for one in (target.namespace, view.identifier.namespace))
    if TARGET_NAMESPACE in view.properties:
        return not is_of_target(graph, view)
    if target.namespaces == "as_written" or there == own:
        return False
    at = len(own) - 1
    is_prefixed = there[:at] == own[:at] and len(there) > at and there[at].startswith(f"{own[at]}_")
    return not (target.namespaces == "prefixed" and is_prefixed)


def pointers(world: World, views: Iterable[ViewState]) -> tuple[TableIdentifier, ...]:
    """Names of the storage tables that removed views, and views that were MVs before, point to."""
    former = [v for n in world.graph.models if _is_view(n) and (v := world.observed.view(n.identifier))]
    return tuple(dict.fromkeys(p for v in (*views, *former) if (p := storage_name(v))))


def _is_view(node: ModelNode) -> bool:
    return node.materialized == "view" and node.model.knows_settings


def removed(world: World, gone: Iterable[ViewState], storages: Mapping[TableIdentifier, State]) -> tuple[Removed, ...]:
    """Without what reads them. `storages` has the tables named by `pointers`."""
    gone = tuple(gone)
    tables = [s for s in storages.values() if isinstance(s, TableState)]
    taken = _named_by(world, [n.storage for n in world.graph.views if n.storage], tables)
    items = [_of_view(world.graph, v, _own_storage(v, storages, taken)) for v in gone]
    for node in world.graph.models:
        view = world.observed.view(node.identifier) if _is_view(node) else None
        storage = _own_storage(view, storages, taken) if view else None
        if storage is not None:
            note = f"storage of the model '{node.model.name}', which is now a view"
            items.append(Removed(view=None, storage=storage, model=node.id, note=note))
    return tuple(items)


def named(world: World, view: ViewState, storages: Mapping[TableIdentifier, State]) -> Removed:
    """A view of any model, as if the model had been removed."""
    names = [n.storage for n in world.graph.views if n.storage and n.identifier.key != view.identifier.key]
    others = _named_by(world, names, [s for s in storages.values() if isinstance(s, TableState)])
    pointer = storage_name(view)
    broken = storages.get(pointer) if pointer and pointer.key not in {name.key for name in names} else None
    return Removed(
        view=view,
        storage=_own_storage(view, storages, others),
        model=view.properties[OWNER],
        unreadable=(broken,) if isinstance(broken, Unreadable) else (),
    )


def unreadable(world: World, node: ModelNode, broken: Unreadable) -> Removed:
    """A model's entry that cannot be read, with its storage if that can be read."""
    storage = world.observed.table(node.storage)
    is_own = storage is not None and storage.of_view is None and storage.properties.get(OWNER) == node.id
    return Removed(view=None, storage=storage if is_own else None, model=node.id, unreadable=(broken,))


def with_dependents(items: Iterable[Removed], views: Mapping[TableIdentifier, State], graph: Graph) -> tuple[Removed, ...]:
    """Add what reads them, and which readers remain. A reader that prevents dropping one of them also protects everything that this one
    reads."""
    items = tuple(items)
    former = {i.storage.identifier: i for i in items if i.view is None and i.storage is not None}
    states = [s for s in views.values() if isinstance(s, ViewState)]
    found = dependents({i.identifier: i.names for i in items}, states, graph)
    for identifier, item in former.items():
        # The view that was the MV still has the pointer, but no longer reads the table.
        own = {n.identifier.key for n in graph.models if n.id == item.model}
        found[identifier] = tuple(d for d in found[identifier] if not (d.identifier.key in own and d.why == "has it as its storage"))
    taken = _readers_of_seeds(graph)
    found = {id: tuple(d for d in ds if d.identifier.key not in taken.get(id.key, ())) for id, ds in found.items()}
    staying: dict[TableIdentifier, tuple[Dependent, ...]] = {}
    going = {i.identifier.key for i in items}
    while True:
        kept = {id: tuple(d for d in found[id] if d.is_model or d.identifier.key not in going) for id in found}
        staying = {id: ds for id, ds in kept.items() if ds}
        smaller = going - {id.key for id in staying}
        if smaller == going:
            return tuple(replace(i, dependents=found[i.identifier], kept_by=staying.get(i.identifier, ())) for i in items)
        going = smaller


def _readers_of_seeds(graph: Graph) -> dict[tuple[str, ...], set[tuple[str, ...]]]:
    """Name of a seed -> names of the models that read it. If a removed MV has the name, they read the seed from the next run on, which can
    only be loaded when the MV is gone."""
    seeds = {node.id: node.identifier.key for node in graph.nodes.values() if isinstance(node, SeedNode)}
    found: dict[tuple[str, ...], set[tuple[str, ...]]] = {name: set() for name in seeds.values()}
    for node in graph.models if seeds else ():
        for id in seeds.keys() & set(node.reads):
            found[seeds[id]].add(node.identifier.key)
    return found


def ordered(items: Iterable[Removed]) -> tuple[Removed, ...]:
    """Readers before what they read. Views cannot form a cycle, so there is always one without readers."""
    left = {i.identifier.key: i for i in items}
    out: list[Removed] = []
    while left:
        read = {k for k, item in left.items() if any(d.identifier.key in left for d in item.dependents)}
        out += [left.pop(key) for key in sorted(set(left) - read) or sorted(left)]
    return tuple(out)


def refusal(item: Removed, kept_by: tuple[Dependent, ...] = ()) -> Diagnostic:
    """Why it is not dropped."""
    kept_by = kept_by or item.kept_by
    names = ", ".join(str(d) for d in kept_by)
    return error("has-dependents", f"{item.identifier} is not dropped, because it is read by {names}")


def _of_view(graph: Graph, view: ViewState, storage: TableState | None) -> Removed:
    owner = view.properties[OWNER]
    model = graph.nodes.get(owner)
    former = view.identifier._replace(namespace=graph.project.target.as_configured(view.identifier.namespace))
    if isinstance(model, ModelNode) and model.materialized == "ephemeral":
        return Removed(view=view, storage=storage, model=owner, note=f"{owner} is ephemeral now")
    if model is not None:
        name = model.identifier
        note = f"{owner} now has another name: {name}" if name != view.identifier else ""
        help = f"If it is the same MV, keep its data with `previous_name: {former.dotted}`."
        return Removed(view=view, storage=storage, model=owner, note=note, help=help)
    note, named = f"{owner} is no longer in the project", view.identifier.name
    if any(node.model.config.previous_name == named and node.identifier.namespace != view.identifier.namespace for node in graph.models):
        help = f"If it moved to another namespace, write `previous_name: {former.dotted}`."
        return Removed(view=view, storage=storage, model=owner, note=note, help=help)
    return Removed(view=view, storage=storage, model=owner, note=note)


def _own_storage(view: ViewState, storages: Mapping[TableIdentifier, State], taken: set[TableIdentifier]) -> TableState | None:
    """Only what mvbuild wrote for the same project, and what no current model uses as storage."""
    pointer = storage_name(view)
    state = storages.get(pointer) if pointer else None
    if not isinstance(state, TableState) or state.identifier in taken:
        return None
    project = view.properties.get(OWNER, "").rpartition(".")[0]
    return state if project and state.properties.get(OWNER, "").startswith(f"{project}.") else None
