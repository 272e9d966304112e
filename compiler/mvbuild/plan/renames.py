"""World + former states -> Renames, and the world after them. Pure.

A rename includes everything that names the renamed entry: the views of this project get the new name in their text, which means the same,
and records that name their versions move on with them. So nothing becomes stale, and nothing reads a name that no longer exists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, error
from mvbuild.formats import properties
from mvbuild.formats.properties import OWNER
from mvbuild.formats.record import RefreshRecord
from mvbuild.freshness.observed import World
from mvbuild.freshness.view_names import name_in_view
from mvbuild.graph.model import Graph, ModelNode, NodeId
from mvbuild.graph.view_text import DEFINITION, DIALECTS
from mvbuild.names import TableIdentifier
from mvbuild.parse.renaming import with_new_names, with_new_names_in_text
from mvbuild.plan.removed import is_of_another_target, of_target
from mvbuild.ports.commits import BRANCH_PROPERTY
from mvbuild.ports.states import State, TableState, ViewState
from mvbuild.storage.embedded import with_embedded
from mvbuild.storage.names import former_name, storage_name
from mvbuild.storage.stored import stored

Names = Mapping[TableIdentifier, TableIdentifier]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename:
    """A model whose view, storage table or both have a former name."""

    node: NodeId
    view: ViewState
    view_to: TableIdentifier
    storage: TableState | None = None
    """The storage's own entry, if it gets another name."""
    storage_to: TableIdentifier | None = None

    @property
    def names(self) -> dict[TableIdentifier, TableIdentifier]:
        """Old -> new, for names that change."""
        pairs = [(self.view.identifier, self.view_to)]
        if self.storage is not None and self.storage_to is not None:
            pairs.append((self.storage.identifier, self.storage_to))
        return {old: new for old, new in pairs if old != new}


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """A view of this project whose text names a renamed entry."""

    view: ViewState
    representations: Mapping[str, str]
    properties: Mapping[str, str]
    """The definition stored by a view that selects from its storage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedRecord:
    """A record whose MV's view, or whose child views, get a new version with the new names."""

    node: ModelNode
    storage: TableState
    record: RefreshRecord
    view_uuid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Renames, and the errors that prevent others."""

    renames: tuple[Rename, ...] = ()
    refused: Mapping[NodeId, tuple[Diagnostic, ...]] = field(default_factory=dict)


@dataclass
class _Search:
    world: World
    former: Mapping[TableIdentifier, State]
    claims: Mapping[TableIdentifier, Sequence[str]]
    """Former name -> the models that have it."""
    renames: list[Rename] = field(default_factory=list)
    refused: dict[NodeId, tuple[Diagnostic, ...]] = field(default_factory=dict)


def find_renames(world: World, former: Mapping[TableIdentifier, State], selected: frozenset[NodeId]) -> Found:
    """The renames of the selected models. A `previous_name` whose view was renamed already, or never existed, is ignored. A model
    whose settings are not known is left where it is."""
    search = _Search(world=world, former=former, claims=_claims(world))
    for node in world.graph.models:
        if node.id in selected and node.id not in world.settled and node.materialized != "ephemeral" and node.model.knows_settings:
            _look(search, node)
    return Found(renames=tuple(search.renames), refused=search.refused)


def beside_former(graph: Graph, former: Mapping[TableIdentifier, State]) -> Iterator[tuple[ModelNode, ViewState]]:
    """The models that a run without a branch would rename, and the views that they are now. A branch renames nothing: there such a model
    is a new one, beside its former view."""
    for node in graph.models:
        old = former_name(graph, node)
        view = former.get(old) if old is not None and old != node.identifier else None
        if not isinstance(view, ViewState) or is_of_another_target(graph, view):
            continue
        owner = view.properties.get(OWNER, "")
        if owner.startswith(_prefix(graph)) and (owner == node.id or owner not in graph.nodes):
            yield node, view


def _claims(world: World) -> dict[TableIdentifier, list[str]]:
    """Which models were not renamed yet, or may not have been, because what they are called now is not known."""
    claims: dict[TableIdentifier, list[str]] = {}
    for node in world.graph.models:
        if node.id in world.settled:  # by its name
            continue
        old = former_name(world.graph, node)
        if old is not None and (node.identifier not in world.observed.states or not node.model.knows_settings):
            claims.setdefault(old, []).append(node.model.name)
    return claims


def _look(search: _Search, node: ModelNode) -> None:
    old = former_name(search.world.graph, node)
    state = search.former.get(old) if old is not None and old != node.identifier else None
    graph = search.world.graph
    if isinstance(state, ViewState) and state.properties.get(OWNER, "").startswith(_prefix(graph)) and is_of_another_target(graph, state):
        # A developer's run renames nothing of production, whose MV has the same model.
        state = None
    if isinstance(state, ViewState):
        _of_view(search, node, state)
    elif state is None and (own := search.world.observed.view(node.identifier)):
        _of_storage(search, node, own)


def _of_view(search: _Search, node: ModelNode, view: ViewState) -> None:
    owner, graph = view.properties.get(OWNER, ""), search.world.graph
    name, of_other = node.model.name, owner in graph.nodes and owner != node.id
    if of_other:
        other = graph.model(owner).model.name
        _refuse(
            search,
            node,
            f"{view.identifier} is the model '{other}', which is still in the project",
            "Set it to the model's former name, or remove the key if the rename is done and another model has taken the name.",
        )
    elif node.identifier in search.world.observed.states:
        if owner.startswith(_prefix(graph)):
            _refuse(
                search,
                node,
                f"'{name}' is in the catalog under both names: {view.identifier} and {node.identifier}",
                f"Drop the one that you do not want: `mvbuild drop {view.identifier.dotted}`; or remove `previous_name`.",
            )
    elif not owner.startswith(_prefix(graph)):
        _refuse(search, node, f"{view.identifier} was not written by mvbuild for this project", "")
    elif others := [other for other in search.claims[view.identifier] if other != name]:
        _refuse(search, node, f"{view.identifier} is also the previous name of '{others[0]}'", "")
    else:
        _add(search, node, view)


def _of_storage(search: _Search, node: ModelNode, view: ViewState) -> None:
    """The view keeps its name, but its storage table has another name in the configuration."""
    if view.properties.get(OWNER) == node.id and node.storage not in (None, storage_name(view)):
        storage = _former_storage(search, view)
        if storage is not None and node.storage not in search.world.observed.states:
            search.renames.append(Rename(node=node.id, view=view, view_to=node.identifier, storage=storage, storage_to=node.storage))


def _add(search: _Search, node: ModelNode, view: ViewState) -> None:
    storage = _former_storage(search, view) if node.storage is not None else None
    there = search.world.observed.states.get(node.storage) if node.storage is not None else None
    if storage is not None and storage.identifier != node.storage and there is not None:
        properties_there = there.properties if isinstance(there, TableState) else {}
        branch = next((key.removeprefix(BRANCH_PROPERTY) for key in properties_there if key.startswith(BRANCH_PROPERTY)), "")
        by = f"branch '{branch}' has built as a new table" if branch else "already exists"
        help = f"`mvbuild branch drop {branch}` drops it. After the next run, build the branch again." if branch else ""
        _refuse(search, node, f"the storage {storage.identifier} cannot be renamed to {node.storage}, which {by}", help)
        return
    search.renames.append(
        Rename(node=node.id, view=view, view_to=node.identifier, storage=storage, storage_to=node.storage if storage else None)
    )


def _former_storage(search: _Search, view: ViewState) -> TableState | None:
    pointer = storage_name(view)
    state = search.former.get(pointer) or search.world.observed.states.get(pointer) if pointer else None
    is_ours = isinstance(state, TableState) and state.properties.get(OWNER) == view.properties.get(OWNER)
    return state if is_ours and isinstance(state, TableState) else None


def _refuse(search: _Search, node: ModelNode, message: str, help: str) -> None:
    span = node.model.config.spans.get("previous_name") or node.model.file.line_span(1)
    found = error("bad-previous-name", f"`previous_name` of '{node.model.name}': {message}", span, help=help)
    search.refused[node.id] = (*search.refused.get(node.id, ()), found)


def _prefix(graph: Graph) -> str:
    return f"model.{graph.project.name}."


# --- consequences of the renames --------------------------------------------------------------------------------------------------


def renamed_text(view: ViewState, names: Names) -> dict[str, str] | None:
    """The representations of a view with the new names; None if it contains none of them. If another engine's SQL needs the change but
    writes the name in its own way, it would refer to something else: it is removed."""
    sql = view.representations.get("spark")
    spark = with_new_names(sql, lambda read: name_in_view(read, view), names) if sql else None
    texts = {dialect: with_new_names_in_text(text, names) for dialect, text in view.representations.items() if dialect != "spark"}
    if spark is not None and spark != sql:
        own = view.properties.get(DIALECTS, "").split(",")
        texts = {dialect: text for dialect, text in texts.items() if dialect in own or text != view.representations[dialect]}
    changed = {**texts, **({"spark": spark or sql} if sql else {})}
    return changed if changed != dict(view.representations) else None


def renamed_properties(view: ViewState, names: Names) -> dict[str, str]:
    """The definition property of a view that selects from its storage, with the new names."""
    kept = view.properties.get(DEFINITION)
    renamed = with_new_names(kept, lambda read: name_in_view(read, view), names) if kept else None
    return {DEFINITION: renamed} if renamed else {}


def followed(world: World, renames: Iterable[Rename]) -> tuple[Followed, ...]:
    """Views of this project that name a renamed entry, including views that are renamed themselves."""
    renames = tuple(renames)
    names = _names(renames)
    views = {s.identifier: s for s in world.observed.states.values() if isinstance(s, ViewState)}
    views.update({r.view.identifier: r.view for r in renames})
    ours = [v for v in views.values() if v.properties.get(OWNER, "").startswith(_prefix(world.graph))]
    found = ((v, renamed_text(v, names), renamed_properties(v, names)) for v in ours)
    return tuple(
        Followed(view=view, representations=texts or view.representations, properties=kept) for view, texts, kept in found if texts or kept
    )


def moved_records(world: World, renames: Iterable[Rename], changed: Iterable[Followed]) -> tuple[MovedRecord, ...]:
    """The records of refreshes with the view versions that the renames replace by equal ones."""
    versions = {f.view.uuid: (f.view.version_id, f.view.last_version_id + 1) for f in changed}
    if not versions:
        return ()
    renames = tuple(renames)
    seen, graph = world.observed, world.graph
    views = {n.id: v for n in graph.views if (v := seen.view(n.identifier) or seen.view(former_name(graph, n)))}
    views.update({r.node: r.view for r in renames})
    storages = {r.storage.identifier: r.storage for r in renames if r.storage}
    moved = []
    for id_, view in views.items():
        pointer = storage_name(view)
        state = view.storage or (storages.get(pointer) or world.observed.table(pointer) if pointer else None)
        record = _moved(stored(state).record, view, versions) if state else None
        if state is not None and record is not None:
            moved.append(MovedRecord(node=world.graph.model(id_), storage=state, record=record, view_uuid=view.uuid))
    return tuple(moved)


def _moved(record: RefreshRecord | None, view: ViewState, versions: Mapping[str, tuple[int, int]]) -> RefreshRecord | None:
    if record is None:
        return None
    own = versions.get(view.uuid, (None, None))
    children = tuple(
        replace(v, version_id=versions[v.uuid][1]) if versions.get(v.uuid, (None,))[0] == v.version_id else v for v in record.child_views
    )
    version = own[1] if own[0] is not None and own[0] == record.view_version_id else record.view_version_id
    moved = replace(record, view_version_id=version, child_views=children)
    return moved if moved != record else None


def renamed_world(world: World, renames: Iterable[Rename]) -> World:
    """The future world, for judging: the same states under their new names. Versions do not change, nor do the records that name them."""
    renames = tuple(renames)
    if not renames:
        return world
    states: dict[TableIdentifier, State] = {i: s for i, s in world.observed.states.items() if i not in _names(renames)}
    texts = {f.view.identifier: f.representations for f in followed(world, renames)}
    kept = {f.view.identifier: f.properties for f in followed(world, renames)}
    for view in [s for s in states.values() if isinstance(s, ViewState) and s.identifier in texts]:
        named = {**view.properties, **kept[view.identifier]}
        states[view.identifier] = replace(view, representations=texts[view.identifier], properties=named)
    for rename in renames:
        view, storage = rename.view, rename.view.storage
        if storage is not None:
            owned = {**storage.properties, OWNER: rename.node}
            storage = replace(storage, identifier=rename.view_to, of_view=rename.view_to, properties=owned)
        states[rename.view_to] = replace(
            view,
            identifier=rename.view_to,
            representations=texts.get(view.identifier, view.representations),
            properties={**view.properties, **kept.get(view.identifier, {}), **new_properties(rename, world.graph)},
            storage=storage,
        )
        if rename.storage is not None and rename.storage_to is not None:
            owned = {**rename.storage.properties, OWNER: rename.node}
            states[rename.storage_to] = replace(rename.storage, identifier=rename.storage_to, properties=owned)
    return replace(world, observed=replace(world.observed, states=with_embedded(world.graph, states)))


def new_properties(rename: Rename, graph: Graph) -> dict[str, str]:
    """The view's properties under its new name."""
    pointer = properties.view_properties(rename.storage_to) if rename.storage_to else {}
    return {OWNER: rename.node, **of_target(graph), **pointer}


def _names(renames: Iterable[Rename]) -> dict[TableIdentifier, TableIdentifier]:
    return {old: new for r in renames for old, new in r.names.items()}
