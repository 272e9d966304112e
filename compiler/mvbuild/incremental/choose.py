"""Query + what changed -> StrategyChoice: the strategy of a refresh, why the others were not chosen, and its cost."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mvbuild.dataclass import dataclass
from mvbuild.formats.record import RefreshRecord
from mvbuild.freshness.file_places import metadata_columns_of
from mvbuild.freshness.model import Reason
from mvbuild.freshness.observed import Leaf, Pin, World
from mvbuild.graph.model import ModelNode
from mvbuild.incremental.algebra import Join, Scan, walk
from mvbuild.incremental.choice import NO_CHANGE, Considered, StrategyChoice
from mvbuild.incremental.cost import CHEAPER, LARGE, Cost, cost_of, full_cost
from mvbuild.incremental.experience import corrections, often_falls_short, took_longer
from mvbuild.incremental.inputs import Inputs, ReadChange, changes_of, inputs_of, shape_of_inputs, span_of
from mvbuild.incremental.key_ranges import Ranges, without_empty
from mvbuild.incremental.narrowed_joins import with_narrowed_joins
from mvbuild.incremental.reasons import GENERAL, UNINFORMATIVE, Refused
from mvbuild.incremental.rewrite import Rewrite, StrategyInput
from mvbuild.incremental.shape import Shape, readable, with_lifted_readings
from mvbuild.incremental.shared_joins import with_shared_joins
from mvbuild.incremental.shared_reads import Changed, with_shared_reads
from mvbuild.incremental.sizes import READ_ONCE, Sizes, StorageSize
from mvbuild.incremental.statements import Difference, difference
from mvbuild.incremental.stored_rows import Stored
from mvbuild.incremental.strategies import COMPLETE, FULL, MAY_FALL_SHORT, STRATEGIES, WORTH
from mvbuild.ports.catalog import ChangeRefused
from mvbuild.ports.changes import TableChange
from mvbuild.ports.states import TableState
from mvbuild.project.settings import RefreshPolicy
from mvbuild.source import Span
from mvbuild.storage.history import history
from mvbuild.storage.names import known_as
from mvbuild.storage.proof import is_proven
from mvbuild.storage.stored import stored

_OF_REASON: Mapping[str, str] = {
    "never-refreshed": "never-refreshed",
    "storage-missing": "never-refreshed",
    "record-unreadable": "never-refreshed",
    "storage-changed": "storage-changed-by-others",
    "storage-schema-changed": "storage-changed-by-others",
    "definition-changed": "definition-changed",
    "view-missing": "definition-changed",
    "view-version-not-recorded": "definition-changed",
    "view-version-differs": "definition-changed",
    "view-recreated": "definition-changed",
    "nondeterministic": "nondeterministic",
    "session-differs": "session-changed",
    "session-not-recorded": "session-changed",
    "base-table-schema-changed": "column-changed",
    "base-table-rewritten": "metadata-columns",
    "base-table-not-recorded": "record-incomplete",
    "clock-not-recorded": "record-incomplete",
    "metadata-unreadable": "never-refreshed",
    "forced": "forced",
}
"""Reason of staleness -> why it makes a refresh full. Any other reason that is not about rows may mean another query."""
_OF_ROWS = (
    "base-table-changed",
    "base-table-emptied",
    "base-table-empty",
    "base-table-recreated",
    "base-table-rolled-back",
    "clock-moved",
    "seed-changed",
    "snapshot-expired",
)
"""The query is the same, but what it reads is different."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """An MV to refresh, and why."""

    world: World
    node: ModelNode
    reasons: tuple[Reason, ...]
    pins: Mapping[Leaf, Pin]
    has_children: bool
    same_layout: bool
    policy: RefreshPolicy
    """`full` also if a full refresh was requested."""
    read: ReadChange


def choose(question: Question) -> StrategyChoice:
    """The cheapest strategy that is right; never a guess."""
    try:
        storage, record = _refreshed_before(question)
        given = inputs_of(question.world, question.node, record, question.pins)
        without_rows_alone(given)
    except Refused as exc:
        return in_full(exc)
    if not given.moved and _same_files(given, question.read):
        return StrategyChoice(strategy=NO_CHANGE, code="", message=_SAME, expected=Cost(bytes=0, rows=0), inputs=given)
    try:
        shape = shape_of_inputs(given, [f["name"] for f in storage.schema["fields"]])
        changes = changes_of(given, shape, question.read)
        _require_kept_text(storage, question.read)
    except Refused as exc:
        return in_full(exc, given)
    return _Choosing(question=question, storage=storage, given=given, shape=shape, changes=changes).choice()


def cheapest_of(
    question: Question, storage: TableState, given: Inputs, shape: Shape, changes: Mapping[int, TableChange], *, may_be_full: bool = False
) -> StrategyChoice:
    """The cheapest strategy for a query that Spark has confirmed and for tables that have changed; none that may fall short, because the
    tables are auxiliary views, which any other strategy reads cheaply. `may_be_full`: whether a full refresh may be cheaper."""
    choosing = _Choosing(question=question, storage=storage, given=given, shape=shape, changes=changes, may_be_full=may_be_full)
    return choosing._cheapest(changes, is_proven=True, without=MAY_FALL_SHORT)


def without_rows_alone(given: Inputs) -> None:
    """Raise Refused if the query reads metadata columns of files: a change of rows does not include changes of their files."""
    for one in given.inputs:
        columns = metadata_columns_of((given.text.text,), one.pin.table)
        if columns:
            raise Refused("metadata-columns", f"{', '.join(columns)} depends on the files of {known_as(one.pin.table)}")


def _require_kept_text(storage: TableState, read: ReadChange) -> None:
    """Raise Refused if rows of the storage may not be found again by their text."""
    if read.replaces_text(storage):
        columns = ", ".join(one.column for one in storage.partition_by)
        raise Refused(
            "text-not-kept", f"the storage is partitioned by {columns}, where some text has U+FFFD in place of bytes that are not UTF-8"
        )


_SAME = "no row was added or removed"


def _same_files(given: Inputs, read: ReadChange) -> bool:
    """Whether every table has the same rows as before, under the same schema: then the query does not matter."""
    try:
        return all(one.old == one.new or (one.has_same_schema and read(one.pin.table, one.old, one.new).is_empty) for one in given.inputs)
    except ChangeRefused:
        return False


def _refreshed_before(question: Question) -> tuple[TableState, RefreshRecord]:
    """Raise Refused if there is no previous result to start from."""
    for reason in question.reasons:
        if reason.effect != "fresh" and not reason.heals and reason.code not in _OF_ROWS and not reason.code.startswith("upstream-"):
            raise Refused(_OF_REASON.get(reason.code, "definition-changed"), reason.message)
    if question.policy == "full":
        raise Refused("forced", "refresh_policy is full")
    storage = question.world.observed.table(question.node.storage)
    record = stored(storage).record if storage else None
    if storage is None or record is None:
        raise Refused("never-refreshed", "it was never refreshed")
    if not question.same_layout:
        raise Refused("layout-changed", "columns, partitioning or sort order of the storage change")
    return storage, record


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choosing:
    question: Question
    storage: TableState
    given: Inputs
    shape: Shape
    changes: Mapping[int, TableChange]
    may_be_full: bool = True
    """Whether it is full where no strategy is clearly cheaper, unless the policy is `incremental`."""

    def choice(self) -> StrategyChoice:
        # Nothing else here prevents a misread query from leading to wrong rows.
        known = is_proven(self.storage, self.given.text.text, self.given.schemas)
        # A row that does not matter now may have mattered at another time.
        asks = known and not self.given.moved
        without = self.question.read.irrelevant(self.shape, self.given, self.changes) if asks else {}
        changes = {leaf: change for leaf, change in self.changes.items() if leaf not in without}
        if not changes and not self.given.moved:
            what = "; ".join(dict.fromkeys(without.values())) or _SAME
            return replace(self, changes={})._choice_with(NO_CHANGE, "", what, (), expected=Cost(bytes=0, rows=0))
        # For the query, a leaf whose change is irrelevant is the same at both snapshots.
        return replace(self, changes=changes)._cheapest(changes, is_proven=known)

    def _cheapest(self, changes: Mapping[int, TableChange], *, is_proven: bool, without: Collection[str] = ()) -> StrategyChoice:
        known = self._sizes_of(changes)
        past = history(self.storage)
        full, factors = full_cost(self.shape.root, known), corrections(past)
        case = self._case(known)
        possible: dict[str, tuple[Rewrite, Difference, Cost]] = {}
        against: list[Considered] = []
        for name, strategy in STRATEGIES.items():
            if name in without:
                continue
            if self.question.policy == "auto" and often_falls_short(name, past):
                against.append(Considered(strategy=name, code=MAY_FALL_SHORT[name], message="recent refreshes fell short"))
                continue
            if self.question.policy == "auto" and self.may_be_full and (why := took_longer(name, past)):
                against.append(Considered(strategy=name, code="not-cheaper", message=why))
                continue
            try:
                made = strategy(case)
            except Refused as exc:
                message, span = readable(exc.message, self.shape), span_of(self.given.text, exc)
                against.append(Considered(strategy=name, code=exc.code, message=message, span=span))
                continue
            ways = [self._costed(one, known, is_proven=is_proven) for one in _ways_to_write(made, known, case)]
            made, change, work = min(ways, key=lambda one: one[2].seconds)
            possible[name] = made, change, work.corrected(factors.get(name, 1.0))
        return self._weighed(possible, against, full)

    def _costed(self, rewrite: Rewrite, known: Sizes, *, is_proven: bool) -> tuple[Rewrite, Difference, Cost]:
        stored_rows = Stored(types=self._types, is_large=known.storage.rows >= LARGE)
        change = without_empty(difference(rewrite, stored_rows), known)
        return rewrite, change, cost_of(rewrite, change, self.shape.root, known, is_proven=is_proven)

    def _weighed(self, possible: dict[str, tuple[Rewrite, Difference, Cost]], against: list[Considered], full: Cost) -> StrategyChoice:
        is_incremental = self.question.policy in ("incremental", "incremental_strict")
        tolerant = is_incremental or not self.may_be_full
        # Whatever it costs: to compute everything is the last resort.
        partial = [name for name in possible if name not in COMPLETE] if is_incremental else []
        best = min(partial or possible, key=lambda name: possible[name][2].share_of(full), default=None)
        chosen = best if best and (tolerant or possible[best][2].share_of(full) < CHEAPER) else None
        if chosen is None:
            chosen = next((name for name in possible if name in WORTH and possible[name][2].share_of(full) <= WORTH[name]), None)
        for name, (_, _, work) in possible.items():
            if name != chosen:
                code, message = ("dearer", f"{best} is {_better(best, name)}") if chosen else ("not-cheaper", _not_cheaper(work, full))
                against.append(Considered(strategy=name, code=code, message=message, work=work))
        order = [*STRATEGIES, FULL]
        if chosen is None:
            against.sort(key=lambda c: order.index(c.strategy))
            code, message, span = main_reason(against)
            return self._choice_with(FULL, code, message, tuple(against), expected=full, full=full, span=span)
        rewrite, change, work = possible[chosen]
        listed = [*against, Considered(strategy=chosen, code="", message="", work=work)]
        why = "" if work.share_of(full) < CHEAPER else self._advantage(chosen)
        listed.append(Considered(strategy=FULL, code="dearer", message=why or f"{chosen} is cheaper", work=full))
        listed.sort(key=lambda c: order.index(c.strategy))
        return self._choice_with(chosen, "", why, tuple(listed), expected=work, full=full, rewrite=rewrite, difference=change)

    def _advantage(self, chosen: str) -> str:
        """Why it is chosen although it is not clearly cheaper than a full refresh."""
        if self.question.policy in ("incremental", "incremental_strict"):
            return f"refresh_policy is {self.question.policy}"
        if chosen in COMPLETE:
            return "only the rows that differ are written, so that the MVs that read this one have little to do"
        return "it reads auxiliary views"

    def _sizes_of(self, changes: Mapping[int, TableChange]) -> Sizes:
        held = StorageSize(table=self.storage)
        return Sizes(inputs=self.given.inputs, changes=changes, storage=held, read=self.question.read, moved=bool(self.given.moved))

    @property
    def _types(self) -> Mapping[str, Any]:
        return {field["name"]: field["type"] for field in self.storage.schema["fields"]}

    def _case(self, known: Sizes) -> StrategyInput:
        moved, changes = self.given.moved, known.changes
        return StrategyInput(
            shape=with_lifted_readings(self.shape, moved) if moved else self.shape,
            plus=frozenset(leaf for leaf, change in changes.items() if _adds(change)),
            minus=frozenset(leaf for leaf, change in changes.items() if not change.is_insert_only),
            types=self._types,
            partition_by=self.storage.partition_by,
            float_tolerance=self.question.node.model.config.float_tolerance,
            has_children=self.question.has_children,
            clock=moved,
            few_rows=not known.has_many_changes,
            narrow_keys=any(known.is_large(scan) for scan in walk(self.shape.root) if isinstance(scan, Scan) and scan.leaf in changes),
        )

    def _choice_with(
        self,
        strategy: str,
        code: str,
        message: str,
        considered: tuple[Considered, ...],
        *,
        expected: Cost,
        full: Cost | None = None,
        span: Span | None = None,
        rewrite: Rewrite | None = None,
        difference: Difference | None = None,
    ) -> StrategyChoice:
        return StrategyChoice(
            strategy=strategy,
            code=code,
            message=message,
            span=span,
            considered=considered,
            expected=expected,
            full=full,
            shape=self.shape,
            rewrite=rewrite,
            difference=difference,
            inputs=self.given,
            changes=self.changes,
        )


def _ways_to_write(rewrite: Rewrite, known: Sizes, case: StrategyInput) -> Iterator[Rewrite]:
    """With the tables that several terms join read once, and with each term reading only what its own keys leave; each also with
    one read of a large table for both of its versions."""
    changed = Changed(plus=case.plus, minus=case.minus, types=case.shape.types)
    for one in (with_shared_joins(rewrite), rewrite):
        if one is not None:
            narrowed = with_narrowed_joins(one, known.is_large) or one
            yield narrowed
            if (shared := with_shared_reads(narrowed, changed, _is_read_once(narrowed, known))) is not None:
                yield shared


def _is_read_once(rewrite: Rewrite, known: Sizes) -> Callable[[Join], bool]:
    """Whether a table that is joined with keys is large, and has few rows with these keys."""
    ranges = Ranges(known)
    for cte in rewrite.ctes:
        ranges.cte(cte.name, cte.relation)
    return lambda semi: known.is_large(semi.left) and ranges.rows_with_keys(semi) <= READ_ONCE


def _better(best: str | None, other: str) -> str:
    return "incremental" if other in COMPLETE and best not in COMPLETE else "cheaper"


def _not_cheaper(work: Cost, full: Cost) -> str:
    if work.seconds < full.seconds:
        return "a full refresh takes about as long"
    return f"a full refresh takes about {full.seconds:.1f}s of processor time, and this {work.seconds:.1f}s"


def _adds(change: TableChange) -> bool:
    """Whether rows may have been added: files, or rows that deletes had hidden."""
    return bool(change.added.files) or change.may_restore


def main_reason(against: Sequence[Considered]) -> tuple[str, str, Span | None]:
    """The most informative reason against all strategies: if one could be used, cost decided."""
    cost = next((c for c in against if c.code == "not-cheaper"), None)
    telling = [c for c in against if c.code not in UNINFORMATIVE]
    chosen = cost or next((c for c in telling if c.code not in GENERAL), None) or next(iter(telling), against[0])
    return chosen.code, chosen.message, chosen.span


def in_full(refused: Refused, given: Inputs | None = None) -> StrategyChoice:
    """A full refresh, for a reason against every strategy."""
    span = span_of(given.text, refused) if given else None
    against = tuple(Considered(strategy=name, code=refused.code, message=refused.message, span=span) for name in STRATEGIES)
    return StrategyChoice(strategy=FULL, code=refused.code, message=refused.message, span=span, considered=against, inputs=given)
