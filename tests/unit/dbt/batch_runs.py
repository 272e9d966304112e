"""An incremental model -> Played: dbt's table after three batches and the query of the MV, on an engine, for random rows.

dbt's side is its query with is_incremental() false in the first run and true in the others, merged into its own table as the strategy says.
The MV's side is the imported query over the tables as they are at the end. What "equal" means is in docs/proofs/dbt-batches.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from sqlglot.errors import SqlglotError

from mvbuild.dbt.takeover import IncrementalModel
from unit.dbt.batch_columns import THIS, Reader
from unit.dbt.batch_engines import DuckDb, Engine, Limit, NotRunnable, Result, unpacked
from unit.dbt.batch_rows import BATCHES, KINDS, History, Plan, Row, Table, history, subsets
from unit.dbt.batch_tables import tables_of, typed
from unit.dbt.batch_texts import last_day, parsed, played, run_days

MOST_LATE = 12
MOST_SECONDS = {"DuckDB": 20, "Spark": 60}
"""For the search of types. None on DuckDB for a model whose two queries are the same text."""
MOST_SECONDS_OF_A_MODEL = {"DuckDB": 60, "Spark": 240}
"""Then the engine stops what it does: a join without its condition can take hours."""
MOST_SEEDS = 4
"""How many histories are made for each that is compared, at most."""
DELTA = "delta"


@dataclass
class Played:
    """What became of one model.

    `counts`: kind of history -> how many were compared. `differs`: the first difference of each kind; `said`: one that the import names.
    """

    engine: str = ""
    counts: Counter[str] = field(default_factory=Counter)
    changed: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    differs: dict[str, str] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    reason: str = ""
    """Why it could not be compared; or, if it was, why there are no more histories."""
    by_text: bool = False
    """Whether they are equal without a run."""

    @property
    def verdict(self) -> str:
        if self.differs:
            return "differs"
        if not self.changed:
            return "same text" if self.by_text else "not runnable"
        return "agrees, noted" if self.said else "agrees"


def play(
    model: IncrementalModel,
    trials: int,
    adapter: str = "spark",
    kinds: Sequence[str] = KINDS,
    engines: Sequence[Callable[[], Engine]] = (DuckDb,),
) -> Played:
    """On the first engine that can run it. One history of each kind is enough on the second if each run replaces the whole table."""
    reasons = []
    for at, engine in enumerate(engines):
        found = _on(engine(), model, 1 if at and is_rebuilt(model) else trials, adapter, kinds)
        if found.changed or found.differs:
            return found
        reasons.append(f"{found.engine}: {found.reason}")
    return replace(found, reason="; ".join(reasons))


def _on(engine: Engine, model: IncrementalModel, trials: int, adapter: str, kinds: Sequence[str]) -> Played:
    found = Played(engine=engine.name, by_text=is_rebuilt(model))
    limit = Limit(MOST_SECONDS_OF_A_MODEL[engine.name], engine.stop)
    try:
        run = Run(model, adapter, engine)
        open_kinds = [kind for kind in KINDS if kind in kinds and run.has(kind)]
        for seed in range(trials * MOST_SEEDS):
            for kind in open_kinds:
                if found.counts[kind] < trials and kind not in found.differs and kind not in found.said:
                    run.trial(history(run.tables, kind, seed, run.plan), found)
        if not found.changed and not found.differs:
            found.reason = _most(found.skipped) or "generated rows do not reach the result"
    except NotRunnable as exc:
        found.reason = str(exc)
    finally:
        limit.end()
    return found


def is_rebuilt(model: IncrementalModel) -> bool:
    """Whether each run of dbt replaces the whole table by the rows of the query that the MV has: then they are equal without a run."""
    whole = model.config.get("incremental_strategy") == "insert_overwrite" and not model.config.get("partition_by")
    return whole and len({" ".join(text.split()) for text in (model.full, model.guarded, model.written)}) == 1


def _most(skipped: Counter[str]) -> str:
    return skipped.most_common(1)[0][0] if skipped else ""


class Run:
    """One model: its queries for an engine, and the tables that they read."""

    def __init__(self, model: IncrementalModel, adapter: str, engine: Engine) -> None:
        self.model = model
        self.engine = engine
        self.name = model.item.name
        config = model.config
        self.strategy = str(config.get("incremental_strategy") or ("merge" if adapter == "databricks" else "append")).lower()
        self.keys = _names(config.get("unique_key"))
        self.partitions = _names(config.get("partition_by"))
        self.plan = Plan()
        self._texts: dict[tuple[str, int, Plan], str] = {}
        self._loaded: dict[str, tuple[Table, list[Row]]] = {}
        try:
            full, guarded, written = (Reader(parsed(getattr(model, side)), self.name) for side in ("full", "guarded", "written"))
            self.inputs = written.tables()
            self.read = tables_of(full, guarded, written, self.keys, self.partitions)
        except (SqlglotError, RecursionError, AttributeError, KeyError) as exc:
            raise NotRunnable(f"sqlglot: {type(exc).__name__}") from exc
        self.tables = self.read.tables
        seconds = 0 if is_rebuilt(model) and engine.name == "DuckDB" else MOST_SECONDS[engine.name]
        self.tables, wrong = typed(self.tables, self._wrong_with, seconds)
        if wrong:
            raise NotRunnable(wrong)
        self.plan = self._best_plan()

    def has(self, kind: str) -> bool:
        """Whether a kind of history says something about the model."""
        if kind == "others":
            return any(not table.guarded for table in self.tables)
        if kind == "updates":
            return self.strategy == "merge" and bool(self.keys) and not self.read.keyed & self.read.bounded
        return True

    def trial(self, played: History, found: Played) -> None:
        """Play the batches, and compare. Adds to `found`."""
        try:
            first, table = self._dbt(played)
        except _Skip as exc:
            found.skipped[str(exc)] += 1
            return
        mv = self._query("written", played, BATCHES[-1])
        late = played.late if played.kind == "late" else []
        some = (skipped for skipped in subsets(late, MOST_LATE) if skipped)
        if table != mv and not any(table == self._query("written", played, BATCHES[-1], skipped) for skipped in some):
            is_said = self._is_join_noted(played) or any(self._is_kept(table, played, skipped) for skipped in subsets(late, MOST_LATE))
            (found.said if is_said else found.differs)[played.kind] = f"dbt alone {_shown(table - mv)}; MV alone {_shown(mv - table)}"
        found.counts[played.kind] += 1
        found.changed += mv != first

    def _is_join_noted(self, played: History) -> bool:
        """The import says that dbt keeps joined values, and what is joined changes in this history."""
        changes = played.kind == "others" or len(self.inputs) > len({*self.inputs})
        return changes and any(reason.code == "joined-tables" for reason in self.model.item.reasons)

    def _is_kept(self, table: Counter[Row], played: History, skipped: frozenset[int]) -> bool:
        """The import says that dbt keeps rows, and all that dbt has more are rows that its query returned earlier."""
        if all(reason.code != "kept-rows" for reason in self.model.item.reasons):
            return False
        mv = self._query("written", played, BATCHES[-1], skipped)
        earlier = [self._query("written", played, batch, skipped) for batch in BATCHES[:-1]]
        return not mv - table and all(any(row in rows for rows in earlier) for row in table - mv)

    # dbt

    def _dbt(self, played: History) -> tuple[Counter[Row], Counter[Row]]:
        """dbt's table after the first and after the last batch."""
        self._load(played.rows(1))
        self.engine.keep(THIS, self._sql("full", 1))
        first = _bag(self.engine.query(f"SELECT * FROM {THIS}"))
        if not first:
            raise _Skip("dbt's first table is empty: the bound is the NULL of no rows from then on")
        if self.strategy == "merge" and self.keys:
            for batch in BATCHES:
                self._require_unique(self._result("full", played, batch))
            self._load(played.rows(1))
        for batch in BATCHES[1:]:
            self._load(played.rows(batch))
            self.engine.keep(DELTA, self._sql("guarded", batch))
            self.engine.keep(THIS, f"SELECT * FROM {THIS} WHERE {self._stays()} UNION ALL SELECT * FROM {DELTA}")
        return first, _bag(self.engine.query(f"SELECT * FROM {THIS}"))

    def _stays(self) -> str:
        """Which rows of the table a run does not replace."""
        if self.strategy in ("merge", "delete+insert") and self.keys:
            keys = ", ".join(f"`{k}`" for k in self.keys)
            if self.strategy == "merge" and self.engine.query(f"SELECT 1 FROM {DELTA} GROUP BY {keys} HAVING count(*) > 1 LIMIT 1").rows:
                raise _Skip("a merge that finds two rows with a key fails")
            # As in SQL, a NULL in a key equals nothing.
            return f"NOT EXISTS (SELECT 1 FROM {DELTA} AS d WHERE {' AND '.join(f'd.`{k}` = {THIS}.`{k}`' for k in self.keys)})"
        if self.strategy == "insert_overwrite":
            same = " AND ".join(f"d.`{p}` <=> {THIS}.`{p}`" for p in self.partitions)
            return f"NOT EXISTS (SELECT 1 FROM {DELTA} AS d WHERE {same})" if same else "false"
        if self.strategy not in ("append", "merge"):
            raise NotRunnable(f"strategy {self.strategy}")
        return "true"

    def _require_unique(self, result: Result) -> None:
        if any(key not in result.columns for key in self.keys):
            raise NotRunnable("a key is not a column of the query")
        at = [result.columns.index(key) for key in self.keys]
        if any(row[i] is None for row in result.rows for i in at):
            raise _Skip("a key is NULL: dbt adds such a row again in each run")
        counted = Counter(tuple(unpacked(row[i]) for i in at) for row in result.rows)
        if any(n > 1 for n in counted.values()):
            raise _Skip("generated keys are not unique in the result")

    # The queries

    def _query(self, side: str, played: History, batch: int, skipped: frozenset[int] = frozenset()) -> Counter[Row]:
        return _bag(self._result(side, played, batch, skipped))

    def _result(self, side: str, played: History, batch: int, skipped: frozenset[int] = frozenset()) -> Result:
        self._load(played.rows(batch, skipped))
        return self.engine.query(self._sql(side, batch))

    def _sql(self, side: str, batch: int) -> str:
        """With the clock of a batch."""
        key = side, batch, self.plan
        if key not in self._texts:
            days: Mapping[str, timedelta] = run_days(self.model.run_values) if side == "guarded" else {}
            self._texts[key] = played(getattr(self.model, side), self.name, self.plan.clock(batch), days)
        return self._texts[key]

    def _load(self, rows: Mapping[str, list[Row]]) -> None:
        for table in self.tables:
            loaded = table, rows[table.name]
            if self._loaded.get(table.name) != loaded:
                self.engine.load(*loaded)
                self._loaded[table.name] = loaded

    # The tables

    def _wrong_with(self, tables: tuple[Table, ...]) -> str:
        """Why the engine refuses the queries of these tables, or nothing."""
        self.tables = tables
        try:
            self._load({table.name: [] for table in tables})
            self.engine.keep(THIS, self._sql("full", 1))
            self._load(history(tables, "inserts", 0, self.plan).rows(BATCHES[-1]))
            for side in ("full", "guarded", "written"):
                self.engine.query(self._sql(side, 2))
        except NotRunnable as exc:
            return str(exc)
        return ""

    def _best_plan(self) -> Plan:
        """The one with which dbt's first table has rows most often; days after those that a query names meet its lower bounds."""
        best, most = self.plan, 0
        for plan in self._plans():
            self.plan = plan
            filled = sum(bool(self._query("full", history(self.tables, "inserts", seed, plan), 1)) for seed in range(2))
            if filled == 2:
                return plan
            if filled > most:
                best, most = plan, filled
        return best

    def _plans(self) -> Iterator[Plan]:
        named = last_day(self.model.full)
        later = replace(self.plan, day=named + timedelta(days=5)) if named and named >= self.plan.day else None
        for plan in (self.plan, later):
            if plan:
                yield from (plan, replace(plan, rows=18), replace(plan, rows=18, ages=(1, 30, 60)))


class _Skip(Exception):
    """A history says nothing about the model."""


def _names(value: Any) -> tuple[str, ...]:
    names = value if isinstance(value, (list, tuple)) else [value] if value else []
    return tuple(str(name).strip().strip("`").lower() for name in names)


def _bag(result: Result) -> Counter[Row]:
    return Counter(unpacked(row) for row in result.rows)


def _shown(rows: Counter[Row]) -> str:
    return "; ".join(str(tuple(str(v) for v in row)) for row in list(rows.elements())[:2]) or "nothing"
