"""Plan + RunSession -> the catalog with the new names: one commit per rename, with everything that refers to the name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mvbuild.diagnostics import Diagnostic, error
from mvbuild.formats.properties import OWNER
from mvbuild.freshness.indirect import indirect
from mvbuild.freshness.observed import World
from mvbuild.graph.model import NodeId
from mvbuild.names import TableIdentifier
from mvbuild.plan.model import Plan
from mvbuild.plan.renames import Followed, Rename, followed, moved_records, new_properties
from mvbuild.ports.catalog import Catalog, CatalogError, CommitConflict
from mvbuild.ports.commits import Change, TableCommit, ViewCommit
from mvbuild.ports.states import State, TableState, ViewState
from mvbuild.refresh.session import RunSession
from mvbuild.storage.auxiliary_views import OWNED_BY, possible_views, renamed_views, view_name
from mvbuild.storage.commits import recorded
from mvbuild.storage.history import current_refresh_id
from mvbuild.storage.names import storage_name


def rename(session: RunSession, planned: Plan) -> Plan:
    """Carry out the renames. The returned plan blocks the models whose rename failed."""
    world = planned.before
    if not planned.renames or world is None:
        return planned
    failed: dict[NodeId, Diagnostic] = {}
    for one in planned.renames:
        states = world.observed.states
        now = _as_it_is(one, states)
        try:
            for identifier in now.names.values():
                session.catalog.ensure_namespace(identifier.namespace)
            views = auxiliary_renames(session.catalog, now)
            made = {s.identifier: s for s in session.catalog.commit(changes(world, now, views)).values()}
        except CommitConflict as exc:
            failed[one.node] = error("commit-conflict", f"{one.view.identifier} was not renamed: {exc}")
        except CatalogError as exc:
            code = "catalog-unreachable" if exc.unreachable else "catalog-error"
            failed[one.node] = error(code, f"{one.view.identifier} was not renamed: {exc}")
        else:
            left = {i: s for i, s in states.items() if i not in now.names}
            world = replace(world, observed=replace(world.observed, states={**left, **made}))
            session.observe(made)
    return replace(
        planned,
        renames=tuple(r for r in planned.renames if r.node not in failed),
        steps=tuple(replace(s, action="blocked", diagnostics=(failed[s.node],)) if s.node in failed else s for s in planned.steps),
    )


def changes(world: World, one: Rename, auxiliary: Sequence[TableCommit] = ()) -> list[Change]:
    """The commit of one rename. `auxiliary`: those of its auxiliary views."""
    texts = {f.view.identifier: f for f in followed(world, [one])}
    views = {identifier: _view_commit(f.view, f) for identifier, f in texts.items()}
    renamed = views.get(one.view.identifier) or _view_commit(one.view, None)
    views[one.view.identifier] = replace(
        renamed,
        properties={**renamed.properties, **new_properties(one, world.graph)},
        storage_table=one.storage_to or renamed.storage_table,
        rename_to=one.view_to if one.view_to != one.view.identifier else None,
    )
    tables = {
        _entry(m.storage): recorded(
            m.node, m.storage, m.record, current_refresh_id(m.storage), indirect=indirect(world, m.node, m.record, m.view_uuid)
        )
        for m in moved_records(world, [one], texts.values())
    }
    storage = one.storage or one.view.storage
    if storage is not None:
        commit = tables.get(_entry(storage)) or _table_commit(storage)
        target = one.storage_to if one.storage is not None and one.storage_to != one.storage.identifier else None
        moved = renamed_views(storage, {view.identifier: view.rename_to for view in auxiliary if view.rename_to is not None})
        tables[_entry(storage)] = replace(commit, set_properties={**commit.set_properties, **moved, OWNER: one.node}, rename_to=target)
    return [*auxiliary, *views.values(), *tables.values()]


def auxiliary_renames(catalog: Catalog, one: Rename) -> list[TableCommit]:
    """The auxiliary views of a renamed MV, which get names after its new one if these are free."""
    storage = one.storage or one.view.storage
    near = catalog.list_names(storage.identifier.namespace) if storage is not None else ()
    found = possible_views(storage, near) if storage is not None else {}
    # In one file, the MV and its storage have one name.
    place = one.storage_to or one.view_to
    names = {old: view_name(place, at) for at, old in enumerate(found, 1)}
    states = catalog.load([*names, *names.values()]) if names else {}
    return [
        TableCommit(
            identifier=old,
            expect_uuid=table.uuid,
            expect_snapshot_id=table.current_snapshot_id,
            set_properties={OWNED_BY: one.node},
            rename_to=new,
        )
        for old, new in names.items()
        if isinstance(table := states.get(old), TableState) and _owns(one, table, is_listed=found[old]) and new not in states
    ]


def _owns(one: Rename, table: TableState, *, is_listed: bool) -> bool:
    owner = table.properties.get(OWNED_BY)
    return owner is not None and (is_listed or owner in (one.node, one.view.properties.get(OWNER)))


def _as_it_is(one: Rename, states: Mapping[TableIdentifier, State]) -> Rename:
    """An earlier rename of this run may have changed the text of the view."""
    view, storage = states.get(one.view.identifier), states.get(one.storage.identifier) if one.storage else None
    return replace(
        one, view=view if isinstance(view, ViewState) else one.view, storage=storage if isinstance(storage, TableState) else one.storage
    )


def _entry(table: TableState) -> tuple[str, TableIdentifier]:
    return ("view", table.of_view) if table.of_view else ("table", table.identifier)


def _view_commit(view: ViewState, text: Followed | None) -> ViewCommit:
    return ViewCommit(
        identifier=view.identifier,
        expect_metadata_location=view.metadata_location,
        version_id=view.last_version_id + 1 if text else None,
        schema=view.schema,
        representations=text.representations if text else view.representations,
        default_namespace=view.default_namespace,
        default_catalog=view.default_catalog,
        properties=text.properties if text else {},
        storage_table=storage_name(view),
    )


def _table_commit(table: TableState) -> TableCommit:
    return TableCommit(
        identifier=table.of_view or table.identifier,
        expect_uuid=table.uuid,
        expect_snapshot_id=table.current_snapshot_id,
        of_view=table.of_view,
    )
