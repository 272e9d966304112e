"""Situation -> Reasons in the MV itself: its entries in the catalog, its definition, and the session that refreshed it."""

from __future__ import annotations

from collections.abc import Iterator

from mvbuild.formats import properties
from mvbuild.formats.record import RefreshRecord
from mvbuild.freshness import pending
from mvbuild.freshness.clock import steady_texts
from mvbuild.freshness.file_places import metadata_columns_of
from mvbuild.freshness.model import Reason
from mvbuild.freshness.pins import leaf_table
from mvbuild.freshness.situation import Situation, listed, stale, texts_of
from mvbuild.freshness.steadiness import unsteady_word
from mvbuild.freshness.zones import dependence_on_zone
from mvbuild.graph.definition import definition
from mvbuild.parse.metadata_columns import OF_ALL_SPECS
from mvbuild.ports.states import ViewState
from mvbuild.storage.marks import has_rows_of, is_recreated, wrong_marks
from mvbuild.storage.names import known_as
from mvbuild.storage.schema import changed_by_others
from mvbuild.storage.sessions import difference, recorded_session


def unreadable(s: Situation) -> Iterator[Reason]:
    for identifier in (s.node.identifier, s.node.storage):
        found = s.world.observed.unreadable(identifier)
        if found is not None:
            yield Reason(code="metadata-unreadable", message=found.reason, effect="unknown", table=identifier)


def flawed(s: Situation) -> Iterator[Reason]:
    """Errors in a metadata file that no result depends on; see `formats.metadata_certain`."""
    mv = s.storage.mv if s.storage else None
    for problem in mv.problems if mv else ():
        message = f"its metadata file breaks a rule of its format, and is read without what depends on it: {problem}"
        yield Reason(code="metadata-flawed", message=message, effect="fresh", table=s.node.identifier)


def never_refreshed(s: Situation) -> Iterator[Reason]:
    if s.storage is None and (s.is_unreadable or not s.node.model.knows_settings):
        return
    if s.storage is None:
        if s.view is not None and properties.is_materialized(s.view.properties):
            yield stale("storage-missing", f"the storage table {s.node.storage} does not exist")
        else:
            yield stale("never-refreshed", "it was never refreshed")
    elif s.stored.problem:
        yield stale("record-unreadable", f"the record of its last refresh cannot be read: {s.stored.problem}")
    elif s.record is None:
        yield stale("never-refreshed", "it was never refreshed")


def storage_changed(s: Situation) -> Iterator[Reason]:
    foreign = s.stored.foreign
    if foreign is not None and s.storage is not None:
        by = foreign.summary.get("engine-name") or foreign.summary.get("app-name")
        who = f" by {by}" if by else ""
        message = f"its storage was changed{who} after the last refresh: {foreign.operation or 'unknown'} snapshot {foreign.snapshot_id}"
        yield Reason(code="storage-changed", message=message, effect="stale", table=s.node.storage, current=foreign.snapshot_id)


def storage_schema_changed(s: Situation) -> Iterator[Reason]:
    changed = changed_by_others(s.storage) if s.storage is not None and s.record is not None else ()
    if changed:
        message = f"columns of its storage were renamed, dropped, added, moved or retyped after the last refresh: {listed(changed)}"
        yield Reason(code="storage-schema-changed", message=message, effect="stale", table=s.node.storage)


def definition_changed(s: Situation) -> Iterator[Reason]:
    wrong = s.world.graph.undefined.get(s.node.id)
    if wrong is not None:
        yield stale("not-compiled", f"it does not compile: {wrong.message}")
        return
    above = s.world.graph.blocked.get(s.node.id)
    if above is not None:
        yield stale("not-compiled", above.message)
    if s.record is None:
        return
    if s.view is None and s.is_unreadable:
        return
    if s.view is None:
        yield stale("view-missing", f"the view {s.node.identifier} does not exist")
    elif not s.same_definition:
        yield pending.definition_changed(s.world, s.node, s.view)
    elif s.record.view_version_id is None:
        message = "the record does not say which version of the view was refreshed"
        yield Reason(code="view-version-not-recorded", message=message, effect="unknown", table=s.node.identifier)
    elif s.record.view_version_id != s.view.version_id:
        yield Reason(
            code="view-version-differs",
            message=f"it was refreshed for version {s.record.view_version_id} of the view, which is now at version {s.view.version_id}",
            effect="stale",
            table=s.node.identifier,
            recorded=s.record.view_version_id,
            current=s.view.version_id,
            heals=_has_rows_of_view(s, s.view, s.record),
        )


def marks(s: Situation) -> Iterator[Reason]:
    """The marks by which other engines find the MV and its rows. If the definition changed, they are written with the next rows."""
    if s.record is None or s.view is None or s.storage is None or not s.same_definition:
        return
    found = list(wrong_marks(s.view, s.storage))
    if is_recreated(s.view, s.storage):
        found.append(("view-recreated", f"the view {s.node.identifier} was dropped and created again"))
    heals = bool(found) and _has_rows_of_view(s, s.view, s.record)
    for code, message in found:
        yield Reason(code=code, message=message, effect="stale", table=s.node.identifier, heals=heals)


def _has_rows_of_view(s: Situation, view: ViewState, record: RefreshRecord) -> bool:
    return s.storage is not None and has_rows_of(view, s.storage, record, definition(s.world.graph, s.node).text)


def nondeterministic(s: Situation) -> Iterator[Reason]:
    """Nothing shows whether a query that depends on more than tables and the day still returns the same rows."""
    if s.record is None:
        return
    for identifier, text in steady_texts(s):
        word = unsteady_word(s.world, s.inputs, text, substituted=_is_substituted(s))
        if word:
            message = f"its rows do not depend on its tables alone: {identifier} uses {word}"
            yield Reason(code="nondeterministic", message=message, effect="unknown", table=identifier)
        if OF_ALL_SPECS in text.lower():
            yield from _partitioned(s, text)


def _partitioned(s: Situation, text: str) -> Iterator[Reason]:
    for leaf in s.inputs.leaves:
        table = s.world.observed.table(leaf_table(s.world.graph, leaf))
        if table is not None and OF_ALL_SPECS in metadata_columns_of((text,), table):
            message = f"{OF_ALL_SPECS} depends on every partition spec of {known_as(table)}, and a new spec makes no snapshot"
            yield Reason(code="nondeterministic", message=message, effect="unknown", table=table.identifier)


def _is_substituted(s: Situation) -> bool:
    """Whether Spark replaces variables in the SQL, or did so when the rows were computed."""
    made = recorded_session(s.storage) if s.storage is not None else None
    return s.world.observed.session.substitutes or made is None or made.session.substitutes


def session_differs(s: Situation) -> Iterator[Reason]:
    """The same query returns other rows in another time zone, or under other rules of SQL."""
    if s.record is None or s.storage is None:
        return
    made, session = recorded_session(s.storage), s.world.observed.session
    if made is None:
        what = _zone_dependence(s)
        if what and not any(nondeterministic(s)):
            message = f"its rows depend on a time zone, and the zone in which they were computed is not recorded: {what}"
            yield Reason(code="session-not-recorded", message=message, effect="unknown")
        return
    found = difference(made, session, depends_on_zone=lambda: _zone_dependence(s))
    if found:
        yield stale("session-differs", f"it was refreshed by a session with other settings: {found}")


def _zone_dependence(s: Situation) -> str:
    observed = s.world.observed
    tables = (observed.table(leaf_table(s.world.graph, leaf)) for leaf in s.inputs.leaves)
    views = (observed.view(s.world.graph.nodes[id].identifier) for id in s.inputs.views)
    return dependence_on_zone((text for _, text in texts_of(s)), [one.schema for one in (*tables, *views) if one is not None])
