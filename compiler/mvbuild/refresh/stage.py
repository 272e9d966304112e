"""Prepared + StagingArea -> Staged: the new rows in a snapshot that readers do not see; or Unchanged, if the rows are the same."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from mvbuild.dataclass import dataclass
from mvbuild.incremental.choice import StrategyChoice
from mvbuild.incremental.inputs import Inputs
from mvbuild.ports.catalog import Catalog, CommitConflict
from mvbuild.ports.states import Snapshot, TableState
from mvbuild.refresh import incremental
from mvbuild.refresh.auxiliary_views import ViewPlaces, WrittenView, write_from_views
from mvbuild.refresh.choosing import fallen_back, summary_of_choice
from mvbuild.refresh.prepare import Prepared
from mvbuild.refresh.round_trip import mark_for_later
from mvbuild.refresh.session import RunSession
from mvbuild.refresh.staging_area import StagingArea, drop_branches
from mvbuild.refresh.write_outcome import NotIncremental, WriteOutcome
from mvbuild.storage.commits import summary_of
from mvbuild.storage.history import AUXILIARY_VIEWS, STRATEGY, next_refresh_id
from mvbuild.storage.proof import marks_of
from mvbuild.storage.reads import read_summary
from mvbuild.storage.schema_difference import difference


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """A refresh whose rows are written, but neither tested nor published."""

    prepared: Prepared
    choice: StrategyChoice
    """The strategy that was carried out."""
    place: StagingArea
    written: TableState
    """The staged table: the storage with the audit branch, or the scratch table."""
    outcome: WriteOutcome | None
    """What an incremental refresh wrote; None for a full one."""
    mark: str
    """The mark of the proof that Spark reads the query as mvbuild does; empty without a proof."""
    views: tuple[WrittenView, ...] = ()
    """The auxiliary views from which the rows were computed."""

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot with the new rows."""
        return self.written.snapshots[self.place.head(self.written)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unchanged:
    """An incremental refresh found no difference: nothing is staged."""

    choice: StrategyChoice
    mark: str
    views: tuple[WrittenView, ...] = ()
    """The auxiliary views from which the rows were computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """What a strategy left; see `Staged`."""

    choice: StrategyChoice
    outcome: WriteOutcome | None
    given: Inputs | None = None
    """The tables of the query that Spark confirmed; None for a full refresh, which needs no proof."""
    division: str = ""
    """The division of the query that Spark confirmed."""
    mark: str = ""
    """Of the proof that Spark made beside a full refresh."""
    views: tuple[WrittenView, ...] = ()


def stage(session: RunSession, prepared: Prepared, place: StagingArea, places: ViewPlaces) -> Staged | Unchanged:
    """Raises CommitConflict if another writer interferes."""
    done = _write(session, prepared, place, places)
    choice, outcome = done.choice, done.outcome
    if outcome is not None and outcome.is_empty:
        drop_branches(session.catalog, place.before, (place.branch,) if place.branch else ())
        return Unchanged(choice=choice, mark=_marks(done, place.before, prepared.settings), views=done.views)
    mark = done.mark if done.given is None else _marks(done, place.before, prepared.settings)
    written = _written(session.catalog, place)
    return Staged(prepared=prepared, choice=choice, place=place, written=written, outcome=outcome, mark=mark, views=done.views)


def _write(session: RunSession, prepared: Prepared, place: StagingArea, places: ViewPlaces) -> _Written:
    """Write with the chosen strategy, or in full if that turns out to be impossible. What an attempt left on the branch is replaced."""
    choice, node = prepared.choice, prepared.pinned.node
    summary = _summary(prepared, place)
    try:
        if choice.auxiliary is not None:
            session.on_stage(node.id, "reading")
            kept = {AUXILIARY_VIEWS: str(len(choice.auxiliary.views))}
            found = write_from_views(session, prepared, place, places, {**summary, **kept})
            return _Written(
                choice=found.choice, outcome=found.outcome, given=choice.auxiliary.given, division=found.division, views=found.views
            )
        if choice.is_incremental:
            session.on_stage(node.id, "reading")
            done = incremental.write(session, node, choice, prepared.sql, place, {**summary, **summary_of_choice(choice)})
            return _Written(choice=choice, outcome=done, given=choice.inputs)
    except NotIncremental as exc:
        places.discard(exc)
        choice = fallen_back(node, choice, exc)
    session.on_stage(node.id, "writing")
    # The proof takes as long as the write of a small MV, and neither needs the other.
    with ThreadPoolExecutor(max_workers=1) as beside:
        proof = beside.submit(mark_for_later, session, prepared.pinned, prepared.sql, prepared.query.schema, prepared.settings)
        prepared.query.overwrite(place.table, place.branch, {**summary, STRATEGY: choice.strategy, **summary_of_choice(choice)})
    return _Written(choice=choice, outcome=None, mark=proof.result())


def _summary(prepared: Prepared, place: StagingArea) -> Mapping[str, str]:
    number = next_refresh_id(place.before)
    of_record = summary_of(prepared.record, number, prepared.choice.strategy, prepared.pinned.definition_mark)
    return {**of_record, **prepared.session_property, **read_summary(prepared.pinned.clock), **prepared.pinned.schemas}


def _marks(done: _Written, before: TableState, settings: str) -> str:
    """Of the proof that an incremental refresh relies on."""
    assert done.given is not None
    return marks_of(before, done.given.text.text, done.given.schemas, settings, done.division)


def _written(catalog: Catalog, place: StagingArea) -> TableState:
    """The state of the staged table with the new snapshot."""
    written = catalog.load([place.table]).get(place.table)
    if not isinstance(written, TableState) or (place.branch is not None and place.branch not in written.refs):
        raise CommitConflict(f"the audit branch of {place.before.identifier} was removed while it was written")
    if place.branch is not None and difference(place.before.schema, written.schema):
        raise CommitConflict(f"the columns of {place.before.identifier} were changed while it was written")
    return written
