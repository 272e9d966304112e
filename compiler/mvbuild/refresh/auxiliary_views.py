"""Prepared + a plan for auxiliary views -> the auxiliary views on audit branches, and the rows of the MV computed from them.

Each view is written before what reads it, and read at the snapshot that was written. All of it is published with the MV, the views first: a
run that is killed in between leaves views that are ahead of their MV, which names the snapshots that its rows were computed from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Any

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import ProjectError
from mvbuild.freshness.observed import World
from mvbuild.incremental.algebra import projected
from mvbuild.incremental.auxiliary_views import choice_of_query, choice_of_view, computed_now, query_in_full
from mvbuild.incremental.choice import AuxiliaryPlan, PlannedView, StrategyChoice
from mvbuild.incremental.choose import Question
from mvbuild.incremental.column_pruning import pruned
from mvbuild.incremental.cost import Cost
from mvbuild.incremental.division import Cut
from mvbuild.incremental.emit import sql_of
from mvbuild.incremental.kept_views import KeptInput
from mvbuild.incremental.rewrite import Append, Bag
from mvbuild.incremental.row_query import RowQuery, row_query
from mvbuild.incremental.strategies import FULL, refused_by_settings
from mvbuild.names import TableIdentifier
from mvbuild.plan.question import question
from mvbuild.plan.strictness import strict_error
from mvbuild.ports.catalog import AlreadyExists, CatalogError, ChangeRefused, CommitConflict
from mvbuild.ports.commits import TableCommit, TableLayout
from mvbuild.ports.engine import QueryError
from mvbuild.ports.states import Schema, TableState, Unreadable
from mvbuild.refresh.choosing import summary_of_choice
from mvbuild.refresh.few_rows import may_be_few
from mvbuild.refresh.incremental import carried_out, write_values
from mvbuild.refresh.inputs import RefreshInputs
from mvbuild.refresh.prepare import Prepared
from mvbuild.refresh.round_trip import round_trip_difference
from mvbuild.refresh.run_id import left_over
from mvbuild.refresh.session import RunSession
from mvbuild.refresh.staging_area import StagingArea, drop_branches, place_in
from mvbuild.refresh.write_outcome import NotIncremental, WriteOutcome
from mvbuild.storage.auxiliary_views import COMPUTED, OWNED_BY, NamedView, computed_from, computed_summary, listed_views, views_of_rows
from mvbuild.storage.history import REASON, STRATEGY
from mvbuild.storage.layout import STORAGE_DEFAULTS, same_columns
from mvbuild.storage.proof import is_proven
from mvbuild.storage.sessions import settings_of
from mvbuild.storage.stored import stored

_INEXACT = ("tinyint", "smallint", "char(", "varchar(", "interval", "void", "collate")
"""Types that a column of an Iceberg table does not have: reading it back would give another type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenView:
    """An auxiliary view after it was brought up to date: what a later query reads, and the commit that publishes it."""

    input: KeptInput
    named: NamedView
    choice: StrategyChoice
    outcome: WriteOutcome | None
    """None if it was computed in full."""
    commit: TableCommit | None
    """None if there is nothing to publish."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FromViews:
    """What was written of an MV that is refreshed from auxiliary views."""

    choice: StrategyChoice
    outcome: WriteOutcome | None
    """None if the whole query was computed over them."""
    views: tuple[WrittenView, ...]
    division: str
    """As Spark confirmed it, see `storage/proof.py`."""


@dataclass(frozen=True, slots=True)
class ViewPlaces:
    """The private places in which auxiliary views are written; they remain until the MV is published."""

    stack: ExitStack

    def of(self, session: RunSession, table: TableState, layout: TableLayout) -> StagingArea:
        return self.stack.enter_context(place_in(session, table, layout))

    def discard(self, failure: NotIncremental) -> None:
        """Remove what was written, because the MV is refreshed without it."""
        with suppress(NotIncremental), self.stack.pop_all():
            raise failure


@contextmanager
def view_places() -> Iterator[ViewPlaces]:
    with ExitStack() as stack:
        yield ViewPlaces(stack)


def write_from_views(
    session: RunSession, prepared: Prepared, place: StagingArea, places: ViewPlaces, summary: Mapping[str, str]
) -> FromViews:
    """Raises NotIncremental if Spark does not confirm the division of the query, or fails to run a part of it."""
    plan = prepared.choice.auxiliary
    assert plan is not None
    try:
        return _Refresh(session=session, prepared=prepared, plan=plan, place=place, places=places).written(summary)
    except ChangeRefused as exc:
        raise NotIncremental(exc.code, str(exc)) from exc
    except QueryError as exc:
        raise NotIncremental("incremental-failed", str(exc)) from exc


def publish_views(session: RunSession, world: World, views: Iterable[WrittenView]) -> None:
    """Make them current, before the MV names them."""
    for view in views:
        if view.commit is not None:
            session.publish([view.commit], world, view.input.table)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refresh:
    session: RunSession
    prepared: Prepared
    plan: AuxiliaryPlan
    place: StagingArea
    places: ViewPlaces

    def written(self, summary: Mapping[str, str]) -> FromViews:
        division = self._prove()
        kept: dict[int, KeptInput] = {}
        views: list[WrittenView] = []
        for planned in self.plan.views:
            views.append(self._view(planned, kept))
            kept[planned.cut.leaf] = views[-1].input
        choice = _with_cost_of(views, self._choice(views, kept), self.prepared.choice.full)
        if choice.strategy != FULL:
            outcome = WriteOutcome(added=0, removed=0, statements=())
            if not choice.is_no_change:
                outcome = self._query(choice, views, {**summary, STRATEGY: choice.strategy, **summary_of_choice(choice)})
            return FromViews(choice=choice, outcome=outcome, views=tuple(views), division=division)
        refused = strict_error(self.prepared.pinned.node, choice)
        if refused:
            raise ProjectError([refused])
        self._in_full(choice, summary)
        return FromViews(choice=choice, outcome=None, views=tuple(views), division=division)

    @property
    def _question(self) -> Question:
        pinned, changes = self.prepared.pinned, self.session.changes
        assert changes is not None
        return question(pinned.world, pinned.node, (), pinned.pins, changes)

    def _prove(self) -> str:
        """The query over the views, with their queries put back, is the user's: Spark's optimizer produces the same plan for both. The
        text of the former."""
        given, whole = self.plan.given, self.plan.division.whole
        text = sql_of(pruned(whole.root), lambda scan: f"table_{scan.leaf}")  # type: ignore[union-attr]
        is_same_session = settings_of(self.place.before) == self.prepared.settings
        if is_same_session and is_proven(self.place.before, given.text.text, given.schemas, text):
            return text
        choice = StrategyChoice(strategy=FULL, code="", message="", inputs=given, shape=whole)
        source = self._inputs(choice, self.place).source
        difference = round_trip_difference(self.session.engine, self.prepared.sql, whole, source)
        if difference:
            raise NotIncremental("round-trip-unproven", difference)
        return text

    def _inputs(
        self, choice: StrategyChoice, place: StagingArea, view: TableIdentifier | None = None, above: RowQuery | None = None
    ) -> RefreshInputs:
        node = self.prepared.pinned.node.id
        return RefreshInputs(session=self.session, node=node, choice=choice, place=place, view=view, above=above)

    # --- one view -----------------------------------------------------------------------------------------------------------------

    def _view(self, planned: PlannedView, kept: Mapping[int, KeptInput]) -> WrittenView:
        cut, name = planned.cut, planned.name
        table = self._table(name)
        computed = computed_now(cut, self.plan.given, kept, self.prepared.settings)
        choice = self._choice_of_view(planned, table, kept)
        if self._has_failed:
            choice = replace(choice, strategy=FULL, code="incremental-failed", message="the last refresh failed with it")
        if choice.strategy == FULL or table is None or _is_refused(choice.strategy, self._conf, table.schema):
            return self._whole_view(cut, name, table, choice, computed_summary(computed), computed.definition)
        summary = computed_summary(computed)
        if choice.is_no_change:
            return self._same(table, choice, summary, computed.definition)
        place = self.places.of(self.session, table, _layout(table.schema))
        # The rows that the query loses are those at the earlier time, if that has moved.
        above = row_query(self.plan.division.shape, cut.leaf) if not self.plan.given.moved else None
        outcome = carried_out(self._inputs(choice, place, name, above), summary)
        if outcome.is_empty:
            drop_branches(self.session.catalog, table, (place.branch,) if place.branch else ())
            return replace(self._same(table, choice, summary, computed.definition), outcome=outcome)
        return self._changed(table, place, choice, outcome, computed.definition)

    def _choice_of_view(self, planned: PlannedView, table: TableState | None, kept: Mapping[int, KeptInput]) -> StrategyChoice:
        """The plan's choice, unless something that it depends on has changed since: choosing again takes as long as a small read."""
        is_followed = self.prepared.choice.strategy != FULL
        seen, computed = self.prepared.pinned.world.observed.table(planned.name), computed_from(table) if table is not None else None
        is_same_view = table is not None and seen is not None and _rows_of(table) == _rows_of(seen)
        is_same_session = computed is not None and computed.settings == self.prepared.settings
        if is_same_view and is_same_session and is_followed == self.plan.is_followed and not planned.cut.reads & kept.keys():
            return planned.choice
        return choice_of_view(self._question, self.plan.given, planned.cut, table, kept, self.prepared.settings, is_followed=is_followed)

    @property
    def _has_failed(self) -> bool:
        """Whether the last refresh could not use the views: a file of one may be gone."""
        last = self.place.before.current_snapshot
        return last is not None and last.summary.get(REASON) == "incremental-failed"

    @property
    def _conf(self) -> Mapping[str, str]:
        return self.session.engine.settings()

    def _table(self, name: TableIdentifier) -> TableState | None:
        """As it is now: other runs may have changed it since the plan."""
        found = self.session.load([name]).get(name)
        if found is None:
            return None
        if isinstance(found, Unreadable):
            raise NotIncremental("auxiliary-name-taken", f"{name} cannot be read: {found.reason}")
        if not isinstance(found, TableState) or OWNED_BY not in found.properties:
            raise NotIncremental("auxiliary-name-taken", f"{name} exists, and is not an auxiliary view of mvbuild")
        owner, graph = found.properties[OWNED_BY], self.session.world.graph
        is_left = owner not in graph.nodes and owner.startswith(f"model.{graph.project.name}.")
        if owner != self.prepared.pinned.node.id and not is_left and not self._is_listed(name):
            # Two storages can have names that differ only in the suffix.
            raise NotIncremental("auxiliary-name-taken", f"{name} is an auxiliary view of {owner}")
        return found

    def _is_listed(self, name: TableIdentifier) -> bool:
        storage = self.session.world.observed.table(self.prepared.pinned.node.storage)
        return storage is not None and any(one.name == name for one in listed_views(storage))

    def _whole_view(
        self, cut: Cut, name: TableIdentifier, table: TableState | None, choice: StrategyChoice, summary: Mapping[str, str], definition: str
    ) -> WrittenView:
        """Computed in full, in a table that has its columns."""
        engine = self.session.engine
        columns = [column for _, column in cut.shape.outputs]
        sql = self._inputs(choice, self.place, name).sql(projected(cut.shape.root, columns), columns)
        for _, type_, *_ in engine.call(f"DESCRIBE QUERY {sql}").rows:
            if any(word in str(type_).lower() for word in _INEXACT):
                raise NotIncremental("auxiliary-type", f"an inner result has the type {type_}, which an Iceberg table does not have")
        query = engine.prepare(sql)
        layout = _layout(query.schema)
        if table is None:
            table = self._created(name, layout)
        place = self.places.of(self.session, table, layout)
        query.overwrite(place.table, place.branch, summary)
        return self._changed(table, place, replace(choice, strategy=FULL), None, definition)

    def _created(self, name: TableIdentifier, layout: TableLayout) -> TableState:
        """The MV can be refreshed without it, if the catalog refuses it: the right to create tables may have ended with the first run."""
        catalog, properties = self.session.catalog, {**STORAGE_DEFAULTS, OWNED_BY: self.prepared.pinned.node.id}
        try:
            catalog.ensure_namespace(name.namespace)
            return catalog.create_table(name, layout, properties)
        except AlreadyExists as exc:
            raise CommitConflict(f"another run created {name}") from exc
        except CatalogError as exc:
            if exc.unreachable or isinstance(exc, CommitConflict):
                raise
            raise NotIncremental("auxiliary-view-refused", f"{name} cannot be created: {exc}") from exc

    def _same(self, table: TableState, choice: StrategyChoice, summary: Mapping[str, str], definition: str) -> WrittenView:
        """The rows stay; what they were computed from moves on."""
        assert table.current_snapshot_id is not None
        before = computed_from(table)
        is_recorded = before is not None and computed_summary(before) == summary
        commit = replace(self._commit(table), restate=summary) if not is_recorded else None
        return self._written(table, table, table.current_snapshot_id, choice, None, commit, definition)

    def _changed(
        self, table: TableState, place: StagingArea, choice: StrategyChoice, outcome: WriteOutcome | None, definition: str
    ) -> WrittenView:
        found = self.session.catalog.load([place.table]).get(place.table)
        if not isinstance(found, TableState) or (place.branch is not None and place.branch not in found.refs):
            raise CommitConflict(f"the audit branch of {table.identifier} was removed while it was written")
        head = place.head(found)
        if COMPUTED not in found.snapshots[head].summary:
            raise CommitConflict(f"{table.identifier} was changed while it was written")
        commit = replace(
            self._commit(table),
            set_snapshot_id=head,
            staged=None if place.branch else place.table,
            drop_branches=((place.branch,) if place.branch else ()) + left_over(table.branches, self.session.run, self.session.is_alive),
        )
        return self._written(table, found, head, choice, outcome, commit, definition)

    def _commit(self, table: TableState) -> TableCommit:
        owner = self.prepared.pinned.node.id
        return TableCommit(
            identifier=table.identifier,
            expect_uuid=table.uuid,
            expect_snapshot_id=table.current_snapshot_id,
            set_properties={OWNED_BY: owner} if table.properties.get(OWNED_BY) != owner else {},
        )

    def _written(
        self,
        table: TableState,
        found: TableState,
        head: int,
        choice: StrategyChoice,
        outcome: WriteOutcome | None,
        commit: TableCommit | None,
        definition: str,
    ) -> WrittenView:
        named = NamedView(name=table.identifier, uuid=table.uuid, snapshot_id=head, definition=definition)
        kept = KeptInput(table=found, snapshot_id=head, uuid=table.uuid)
        return WrittenView(input=kept, named=named, choice=choice, outcome=outcome, commit=commit)

    # --- the query over the views ---------------------------------------------------------------------------------------------------

    def _choice(self, views: Sequence[WrittenView], kept: Mapping[int, KeptInput]) -> StrategyChoice:
        """In full if the rows of the storage are not those of these views at earlier snapshots."""
        planned, storage = self.prepared.choice, self.place.before
        record = stored(storage).record
        full = query_in_full(self.plan, kept)
        code = planned.code or "auxiliary-views-built"
        if planned.strategy == FULL or record is None:
            return replace(full, code=code, message=planned.message)
        before = {one.name: one for one in views_of_rows(storage, record)}
        named: dict[int, int] = {}
        for cut, view in zip(self.plan.division.cuts, views, strict=True):
            known = before.get(view.named.name)
            if known is None or (known.uuid, known.definition) != (view.named.uuid, view.named.definition):
                return replace(full, code=code, message="its rows were not computed from these auxiliary views")
            named[cut.leaf] = known.snapshot_id
        last = views[-1].outcome
        is_computed = last is not None and last.change_above is not None
        choice = choice_of_query(self._question, storage, self.plan, kept, named, is_computed=is_computed)
        if choice.strategy == FULL or _is_refused(choice.strategy, self._conf, storage.schema):
            return replace(full, code=choice.code or "auxiliary-views-built", message=choice.message)
        return choice

    def _query(self, choice: StrategyChoice, views: Sequence[WrittenView], summary: Mapping[str, str]) -> WriteOutcome:
        inputs, rows = self._inputs(choice, self.place), self._computed_with(views[-1], choice)
        done = write_values(inputs, summary, *rows) if rows is not None and may_be_few(inputs) else None
        return done if done is not None else carried_out(inputs, summary)

    def _computed_with(self, view: WrittenView, choice: StrategyChoice) -> tuple[Any, Any] | None:
        """The rows that the query loses and gets, if they were computed with the last view: from the snapshot of it that the MV names, and
        nothing else that the query reads has changed."""
        assert choice.inputs is not None
        assert choice.rewrite is not None
        leaf = self.plan.division.cuts[-1].leaf
        if view.outcome is None or view.commit is None or set(choice.changes) != {leaf}:
            return None
        is_since = choice.inputs.inputs[leaf].old == view.commit.expect_snapshot_id
        return view.outcome.change_above if is_since and isinstance(choice.rewrite.write, Append | Bag) else None

    def _in_full(self, choice: StrategyChoice, summary: Mapping[str, str]) -> None:
        shape = self.plan.division.shape
        names = [field["name"] for field in self.prepared.query.schema["fields"]]
        if len(names) != len(shape.outputs):
            raise NotIncremental("incremental-failed", "the query over the auxiliary views has other columns")
        rows = projected(shape.root, [name for name, _ in shape.outputs])
        query = self.session.engine.prepare(self._inputs(choice, self.place).sql(rows, names))
        if not same_columns(query.schema, self.prepared.query.schema):
            raise NotIncremental("auxiliary-type", "the query over the auxiliary views has columns of other types")
        query.overwrite(self.place.table, self.place.branch, {**summary, STRATEGY: FULL, **summary_of_choice(choice)})


def _with_cost_of(views: Sequence[WrittenView], choice: StrategyChoice, full: Cost | None) -> StrategyChoice:
    """The expected cost of the query with that of its views, beside that of a full refresh from base tables."""
    costs = [view.choice.expected for view in views if view.choice.expected is not None]
    if choice.expected is None or choice.strategy == FULL:
        return choice
    return replace(choice, expected=sum(costs, choice.expected), full=full)


def _layout(schema: Schema) -> TableLayout:
    return TableLayout(schema=schema)


def _rows_of(view: TableState) -> tuple[object, ...]:
    """What rows the view has, and what they were computed from. Not its metadata file: a REST server may leave out where that is."""
    return view.uuid, view.current_snapshot_id, view.current_schema_id, computed_from(view)


def _is_refused(strategy: str, conf: Mapping[str, str], schema: Schema) -> bool:
    return refused_by_settings(strategy, conf, (field["type"] for field in schema["fields"])) is not None
