"""Question + StrategyChoice -> the choice with auxiliary views: which views the refresh keeps, and how each of them is brought up to date.

Everything here is pure. `refresh/auxiliary_views.py` carries it out, and chooses the strategy of the query again when it knows what changed
in the auxiliary views.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import chain, count, islice
from math import inf

from mvbuild.dataclass import dataclass
from mvbuild.incremental.algebra import leaves
from mvbuild.incremental.auxiliary_cost import cost_of_views, least_seconds
from mvbuild.incremental.choice import NO_CHANGE, AuxiliaryPlan, Considered, PlannedView, StrategyChoice
from mvbuild.incremental.choose import Question, cheapest_of, main_reason, without_rows_alone
from mvbuild.incremental.clock import without_calls
from mvbuild.incremental.cost import CHEAPER
from mvbuild.incremental.cuts import divisions, follows_changes
from mvbuild.incremental.division import Cut, Division
from mvbuild.incremental.emit import sql_of
from mvbuild.incremental.hypothetical import answers
from mvbuild.incremental.inputs import Input, Inputs, changes_of, columns_read, marked, shape_of_inputs, total
from mvbuild.incremental.kept_views import KeptInput, over
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.shape import Shape
from mvbuild.incremental.strategies import FULL, MAY_FALL_SHORT
from mvbuild.names import TableIdentifier
from mvbuild.parse.determinism import nondeterministic_word, variables
from mvbuild.ports.states import TableState
from mvbuild.storage.auxiliary_views import Computed, computed_from, doubted_views, listed_views, view_name, views_of_rows
from mvbuild.storage.stored import stored

_WITHOUT = ("nondeterministic", "metadata-columns", "forced", "round-trip-unproven", "text-not-kept")
"""Reasons for a full refresh after which an auxiliary view would have no use."""
MUCH, LESS = 0.25, 0.6
"""Where a change is already followed, and that takes more than `MUCH` of a full refresh, other views are computed if the refresh then costs
at most the share `LESS` of that: this saves a tenth of a full refresh or more each time, so that the views pay for themselves after ten."""


def with_auxiliary_views(question: Question, found: StrategyChoice) -> StrategyChoice:
    """The choice with a plan for auxiliary views, if the model keeps them and the query has a part that is worth it."""
    node, graph = question.node, question.world.graph
    wanted = node.model.config.auxiliary_views
    if wanted == "never" or question.policy == "full" or graph.project.branch is not None or found.is_no_change or found.code in _WITHOUT:
        return found
    if wanted == "auto" and question.policy == "auto" and not _may_pay(question, found):
        return found
    given, shape = found.inputs, found.shape
    try:
        if given is None or shape is None:
            pins = question.pins
            given = marked(question.world, node, lambda leaf: Input(leaf=leaf, pin=pins[leaf], old=pins[leaf].snapshot_id))
            shape = shape_of_inputs(given, None)
        without_rows_alone(given)
    except (Refused, KeyError):
        return found
    if nondeterministic_word(without_calls(given.text.text)) or any(variables(given.text.text)):
        # A view does not record the user or the variables with which it was computed.
        return found
    storage = question.world.observed.table(node.storage)
    ways = [_way(question, given, one, storage if shape is found.shape else None) for one in divisions(shape, len(given.inputs))]
    chosen = _chosen(question, found, shape, given, ways) if ways else None
    if chosen is None:
        return found
    plan = _planned(question, given, chosen)
    return _expected(question, replace(found, auxiliary=plan), plan)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """A way to divide a query, with the tables of its views. `is_followed` as in `AuxiliaryPlan`."""

    division: Division
    views: tuple[tuple[Cut, TableIdentifier], ...]
    is_followed: bool


def _way(question: Question, given: Inputs, division: Division, storage: TableState | None) -> _Way:
    """`storage`: if its rows can be compared with what the views say."""
    views = tuple(zip(division.cuts, view_names(question, len(division.cuts)), strict=True))
    return _Way(division=division, views=views, is_followed=storage is not None and _names(question, storage, given, views))


def _planned(question: Question, given: Inputs, way: _Way) -> AuxiliaryPlan:
    views = []
    for cut, name in way.views:
        table = question.world.observed.table(name)
        # A view that reads another one of this refresh can be judged only when that is written.
        is_later = any(leaf >= len(given.inputs) for leaf in cut.reads)
        unknown = StrategyChoice(strategy="", code="", message="depends on the views before it")
        choice = unknown if is_later else choice_of_view(question, given, cut, table, {}, is_followed=way.is_followed)
        rows, size = [total(table, table.current_snapshot_id, of) if table else None for of in ("total-records", "total-files-size")]
        views.append(PlannedView(cut=cut, name=name, choice=choice, rows=rows, bytes=size))
    return AuxiliaryPlan(division=way.division, given=given, views=tuple(views), is_followed=way.is_followed)


def _may_pay(question: Question, found: StrategyChoice) -> bool:
    """Whether the changes that were seen would need a full refresh or a good share of one, or the MV has auxiliary views, and whether the
    least that these cost is cheaper: known before the query is divided, which takes longer than many a small refresh gains."""
    storage = question.world.observed.table(question.node.storage)
    has_moved = found.inputs is not None and bool(found.inputs.moved)
    if storage is None or found.full is None or found.shape is None or not (found.changes or has_moved):
        return False
    now, has_views = _share_without(found), bool(listed_views(storage))
    most = CHEAPER if has_views else min(CHEAPER, now * LESS)
    return (now > MUCH or has_views) and least_seconds(found.shape.root, found.changes.keys()) < most * found.full.seconds


def _chosen(question: Question, found: StrategyChoice, shape: Shape, given: Inputs, ways: Sequence[_Way]) -> _Way | None:
    """With `always`, the one with most views. With `auto`: under `incremental`, the simplest, whatever it costs, where deletes cannot be
    followed otherwise; under `auto`, the cheapest, where the changes that were seen would need a full refresh and are clearly cheaper to
    follow with it, or where it makes a refresh that takes a good share of a full one much cheaper. Views that are there are kept as long
    as they are cheaper than a full refresh: without them, the next change that needs them would compute them again."""
    followed = [one for one in ways if one.is_followed]
    if question.node.model.config.auxiliary_views == "always":
        return (followed or ways)[-1]
    if question.policy != "auto":
        return (followed or ways)[0] if not follows_changes(shape) else None
    kept = [(share, one) for one in ways if one.is_followed and (share := _share(question, found, given, one)) < CHEAPER]
    now = min([_share_without(found), *(share for share, _ in kept)])
    if now > MUCH:
        others = [(_share(question, found, given, one), one) for one in ways if not one.is_followed]
        share, best = min(others, key=lambda other: other[0], default=(inf, None))
        if share < min(CHEAPER, now * LESS):
            return best
    return kept[0][1] if kept else None


def _share_without(found: StrategyChoice) -> float:
    """The cost of the refresh without auxiliary views as a share of a full one; infinite if it is a full one."""
    if not found.is_incremental or found.expected is None or found.full is None:
        return inf
    return found.expected.share_of(found.full)


def _share(question: Question, found: StrategyChoice, given: Inputs, way: _Way) -> float:
    """The cost as a share of a full refresh; infinite if a view would be computed in full."""
    storage = question.world.observed.table(question.node.storage)
    assert storage is not None
    assert found.full is not None
    states = (question.world.observed.table(name) for _, name in way.views)
    tables = [None if _is_doubted(question, table) else table for table in states]
    cost = cost_of_views(question, storage, given, way.division, tables, found.changes)
    return cost.share_of(found.full) if cost is not None else inf


def _expected(question: Question, found: StrategyChoice, plan: AuxiliaryPlan) -> StrategyChoice:
    """The choice with the strategy that is expected: the changes of the auxiliary views are known only when these are written."""
    storage = question.world.observed.table(question.node.storage)
    if storage is None or not plan.is_followed:
        # The rows of the storage cannot be the start: other ones, or those of a refresh without auxiliary views.
        is_first = found.code != "" and not found.changes
        code = found.code if is_first else "auxiliary-views-built"
        message = found.message if is_first else _NOT_OF_THESE
        return replace(found, strategy=FULL, code=code, message=message, rewrite=None, difference=None, expected=found.full)
    shape = plan.division.shape
    changed = frozenset(leaf for leaf in leaves(shape.root) if leaf in found.changes or leaf >= len(plan.given.inputs))
    types = {field["name"]: field["type"] for field in storage.schema["fields"]}
    against = []
    moved = plan.given.moved
    for one in answers(shape, "deletes", changed=changed, types=types, partition_by=storage.partition_by, has_children=True, clock=moved):
        if one.refused is not None:
            against.append(Considered(strategy=one.strategy, code=one.refused.code, message=one.refused.message))
        elif one.strategy not in MAY_FALL_SHORT:
            return replace(found, strategy=one.strategy, code="", message=_FROM_VIEWS, span=None, rewrite=None, difference=None)
    code, message, _ = main_reason(against)
    return replace(found, strategy=FULL, code=code, message=message, span=None, rewrite=None, difference=None)


_FROM_VIEWS = "from its auxiliary views"
_NOT_OF_THESE = "its rows were not computed from its current auxiliary views, so all rows are computed from them once"


def _names(question: Question, storage: TableState, given: Inputs, views: Iterable[tuple[Cut, TableIdentifier]]) -> bool:
    """Whether the rows of a storage were computed from these views, as they are defined now, and these still have the rows of then."""
    record = stored(storage).record
    named = {one.name: one for one in views_of_rows(storage, record)} if record is not None else {}
    for cut, name in views:
        known, table = named.get(name), question.world.observed.table(name)
        if known is None or known.definition != definition_of(cut, given) or table is None:
            return False
        if table.uuid != known.uuid or known.snapshot_id not in table.snapshots:
            return False
    return True


def view_names(question: Question, number: int) -> tuple[TableIdentifier, ...]:
    """Those that the storage names, and new ones for the others."""
    node = question.node
    assert node.storage is not None
    storage = question.world.observed.table(node.storage)
    known = dict.fromkeys(one.name for one in listed_views(storage)) if storage is not None else {}
    # `maintain` may have dropped any of them, not only the last.
    fresh = (name for at in count(1) if (name := view_name(node.storage, at)) not in known)
    return tuple(islice(chain(known, fresh), number))


def choice_of_view(
    question: Question,
    given: Inputs,
    cut: Cut,
    table: TableState | None,
    kept: Mapping[int, KeptInput],
    settings: str | None = None,
    *,
    is_followed: bool,
) -> StrategyChoice:
    """How an auxiliary view is brought from what it was computed from to what this refresh reads. `kept`: the views before it, by their
    number. `settings`: of the session, if they are known. `is_followed`: whether the MV is refreshed by the change of the view, which must
    be small then, and not computed in full from its rows."""
    definition = definition_of(cut, given)
    computed = computed_from(table) if table is not None else None
    try:
        if _is_doubted(question, table):
            raise Refused("forced", "a full refresh was requested while the MV was fresh, so it is computed again")
        if computed is None and table is not None and table.current_snapshot_id is not None:
            raise Refused("storage-changed-by-others", "another writer changed its rows or columns")
        inputs = _inputs_since(given, cut, computed, kept, definition, settings)
        assert table is not None
        changes = changes_of(inputs, cut.shape, question.read)
    except Refused as exc:
        read = {leaf: _identity(given, kept, leaf)[2] for leaf in cut.reads}
        return replace(_full(exc.code, exc.message), inputs=over(given, kept, read), shape=cut.shape)
    if not changes:
        return StrategyChoice(strategy=NO_CHANGE, code="", message="no row was added or removed", inputs=inputs, shape=cut.shape)
    # If the MV is computed from all its rows, it does not help to know which of them changed: a comparison only costs.
    if not is_followed:
        return cheapest_of(replace(question, has_children=False), table, inputs, cut.shape, changes, may_be_full=True)
    return cheapest_of(replace(question, has_children=True), table, inputs, cut.shape, changes)


def _is_doubted(question: Question, view: TableState | None) -> bool:
    storage = question.world.observed.table(question.node.storage)
    return view is not None and storage is not None and view.uuid in doubted_views(storage)


def choice_of_query(
    question: Question,
    storage: TableState,
    plan: AuxiliaryPlan,
    kept: Mapping[int, KeptInput],
    named: Mapping[int, int],
    *,
    is_computed: bool,
) -> StrategyChoice:
    """How the MV is refreshed from its auxiliary views, after these were written. `named`: the snapshot of each from which the rows of the
    storage were computed. `is_computed`: the rows that the query loses and gets are known, so computing all of it is not cheaper."""
    shape, given = plan.division.shape, plan.given
    read = columns_read(shape.root)
    since = {at: one.old for at, one in enumerate(given.inputs) if at in read} | {leaf: named[leaf] for leaf in kept if leaf in read}
    inputs = over(given, kept, since)
    try:
        changes = changes_of(inputs, shape, question.read)
    except Refused:
        # Of a base table, this would have been found before. The views are right again now.
        what = "another writer changed an auxiliary view, so its change since the last refresh is unknown"
        return replace(_full("auxiliary-views-built", what), inputs=inputs, shape=shape)
    if not changes and not inputs.moved:
        return StrategyChoice(strategy=NO_CHANGE, code="", message="no row was added or removed", inputs=inputs, shape=shape)
    return cheapest_of(replace(question, has_children=not is_computed), storage, inputs, shape, changes)


def query_in_full(plan: AuxiliaryPlan, kept: Mapping[int, KeptInput]) -> StrategyChoice:
    """The whole query over its auxiliary views."""
    return StrategyChoice(strategy=FULL, code="", message="", inputs=over(plan.given, kept, {}), shape=plan.division.shape)


def definition_of(cut: Cut, given: Inputs) -> str:
    """Another text if the query of the view, a table that it reads, or a column of such a table is another one."""
    read = columns_read(cut.shape.root)
    tables = [
        (leaf, one.pin.table.uuid, one.pin.ref, [(f["id"], f["name"], f["type"]) for f in one.schema["fields"] if f["name"] in read[leaf]])
        for leaf, one in enumerate(given.inputs)
        if leaf in read
    ]
    text = sql_of(cut.shape.root, lambda scan: f"table_{scan.leaf}", outputs=cut.shape.outputs)  # type: ignore[union-attr]
    return sha256(json.dumps([text, tables], default=str).encode()).hexdigest()[:32]


def computed_now(cut: Cut, given: Inputs, kept: Mapping[int, KeptInput], settings: str) -> Computed:
    """What the auxiliary view is computed from in this refresh."""
    read = {leaf: _identity(given, kept, leaf) for leaf in sorted(cut.reads)}
    return Computed(definition=definition_of(cut, given), settings=settings, read=read)


def _identity(given: Inputs, kept: Mapping[int, KeptInput], leaf: int) -> tuple[str, str | None, int]:
    if leaf in kept:
        return kept[leaf].uuid, None, kept[leaf].snapshot_id
    pin = given.inputs[leaf].pin
    return pin.table.uuid, pin.ref, pin.snapshot_id


def _inputs_since(
    given: Inputs, cut: Cut, computed: Computed | None, kept: Mapping[int, KeptInput], definition: str, settings: str | None
) -> Inputs:
    """Raises Refused if the view must be computed in full."""
    if computed is None:
        raise Refused("never-refreshed", "it has no rows of mvbuild's yet")
    if computed.definition != definition:
        raise Refused("definition-changed", "its query has changed")
    if settings is not None and computed.settings != settings:
        raise Refused("session-changed", "the settings of the session have changed")
    since = {}
    for leaf in cut.reads:
        uuid, ref, snapshot = _identity(given, kept, leaf)
        before = computed.read.get(leaf)
        is_fixed = leaf < len(given.inputs) and not given.inputs[leaf].pin.moves
        if before is None or before[:2] != (uuid, ref) or (is_fixed and before[2] != snapshot):
            raise Refused("record-incomplete", "it was computed from another table, branch or version")
        since[leaf] = before[2]
    return over(given.timeless, kept, since)


def _full(code: str, message: str) -> StrategyChoice:
    return StrategyChoice(strategy=FULL, code=code, message=message)
