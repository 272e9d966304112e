"""A Case -> Seen: played on Spark and Iceberg, with a run after every round, and every answer judged after every step.

    case = made(seed=7, version=2, mode="merge-on-read")
    seen = played(case, directory, spark)     # how often which strategy, and every failure
    print(shrunk(case, ...))                  # the smallest case that still fails

What must hold after every step: nothing that is called fresh is stale, neither by mvbuild nor by a reader that knows only the property-based
specification, and `read` gives the rows of the query. After every run: each MV has the rows of its full query (bags, both ways), nothing is left
behind, a second run has nothing to do, and an incremental refresh wrote no more rows than differ.

The parts: `history_cases` (seeds -> cases), `history_queries` and `history_features` (the grammar), `history_tables` and `history_steps` (what others
do), `history_judge` (what must hold).
"""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog

from mvbuild import api
from mvbuild.adapters.spark.catalog_conf import catalog_conf
from mvbuild.incremental import choose, sizes
from mvbuild.incremental.strategies import COMPLETE
from mvbuild.refresh import inputs, near_rows
from spark.history_cases import MODES, Case, Step, before_spark_4, made, smaller
from spark.history_features import ELSEWHERE, SESSION_STEPS, STORAGE_STEPS, UNSTEADY, VIEW_STEPS
from spark.history_judge import Failed, Judge, Rows, filled
from spark.history_queries import Model
from spark.history_steps import auxiliary_step, begin_session, create_view, session_step, settings, storage_step, view_step
from spark.history_tables import BaseTable
from spark.projects import NoSpark, Project, messages, new_project, properties
from spark.quick import QUERIES as QUICK

__all__ = ["MODES", "Case", "Seen", "made", "played", "shrunk"]

MOST_RESULT = 400
"""An MV with more rows at the start is left out."""
REFUSED = ("session-object", "unsupported-format")
"""Codes of what no MV can be made of."""
AUXILIARY_STEPS = 0.4
"""How often others change an auxiliary view before a run."""
EXACT = ("merge", "min-max", "affected-keys", "bag", "full-diff", "append", "top-k")
"""Strategies that write the rows that differ and no other."""


@dataclass
class Seen:
    """Of one case or many."""

    histories: int = 0
    runs: int = 0
    refreshes: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(strategy, reason)."""
    auxiliary: Counter[tuple[str, str]] = field(default_factory=Counter)
    """The same of auxiliary views."""
    steps: Counter[str] = field(default_factory=Counter)
    checked: Counter[str] = field(default_factory=Counter)
    """What was compared with the truth after steps."""
    blocked: Counter[str] = field(default_factory=Counter)
    """Codes of MVs that a run could not refresh, as Spark could not compute their query either."""
    failures: list[str] = field(default_factory=list)
    unproven: list[str] = field(default_factory=list)
    """Queries whose round trip Spark does not prove."""
    operators: Counter[str] = field(default_factory=Counter)
    verified: int = 0
    log: list[str] = field(default_factory=list)

    def add(self, other: Seen) -> None:
        self.histories += other.histories
        self.runs += other.runs
        self.refreshes.update(other.refreshes)
        self.auxiliary.update(other.auxiliary)
        self.steps.update(other.steps)
        self.checked.update(other.checked)
        self.blocked.update(other.blocked)
        self.failures.extend(other.failures)
        self.unproven.extend(other.unproven)
        self.verified += other.verified


def played(
    case: Case, root: Path, spark: Any, *, quick: bool = True, verify_every: int = 3, auxiliary: str = "auto", large: bool | None = None
) -> Seen:
    """Everything goes into `root`, which must not exist. A failure ends the case. `auxiliary`: the setting `auxiliary_views`; unless it is
    never, others change auxiliary views too. `large`: whether tables are refreshed as if they were large; by default if the seed is odd."""
    large = bool(case.seed % 2) if large is None else large
    if spark.version.startswith("3."):
        case = before_spark_4(case)
    player = _Player(case=case, project=new_project(root, {}, spark), verify_every=verify_every, auxiliary=auxiliary)
    player.seen.histories = 1
    if quick:
        for key, value in QUICK.items():
            player.project.spark.conf.set(key, value)
    try:
        with as_if_large(many_changed=case.seed % 4 == 3) if large else nullcontext():
            player.play()
    except Failed as exc:
        player.seen.failures.append(f"{exc}\n{case}")
    except Exception as exc:  # noqa: BLE001  whatever it is, it is this case's
        player.seen.failures.append(f"{type(exc).__name__}: {str(exc)[:1500]}\n{case}")
    finally:
        player.seen.checked.update(player.judge.checked)
        player.project.spark.catalog.clearCache()
        player.project.catalog.close()
        shutil.rmtree(root, ignore_errors=True)
    return player.seen


@contextmanager
def as_if_large(*, many_changed: bool = False) -> Iterator[None]:
    """A few rows are refreshed like many: with bounds of keys, including those from metadata, with their rows
    read in this process, without tables that have none, with large
    tables restricted to the keys of a change, and never by computing everything if there is another way. `many_changed`: so many rows
    changed that it is not known beforehand whether few rows of the storage do."""

    def expensive(made: Any, *arguments: Any, **options: Any) -> Any:
        found = cost_of(made, *arguments, **options)
        return replace(found, work=found.work + 1000) if made.strategy in COMPLETE else found

    cost_of = choose.cost_of
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choose, "cost_of", expensive)
        for module, name in (
            (sizes, "LITTLE"),
            (inputs, "LITTLE"),
            (near_rows, "LITTLE"),
            (inputs, "MAX_VALUES"),
            (choose, "LARGE"),
            (sizes, "WORTH_A_STATEMENT"),
            (sizes, "FEW_STORED"),
            (inputs, "READ_TWICE"),
        ):
            patch.setattr(module, name, 0)
        if many_changed:
            patch.setattr(sizes.StorageSize, "changes_in_few", lambda *_: False)
        yield


class _OnlySettings(NoSpark):
    """The settings of a session change what SQL means: a run asks for them before it knows that there is nothing to do."""

    def __init__(self, session: Any) -> None:
        self.conf = session.conf


@dataclass
class _Player:
    case: Case
    project: Project
    verify_every: int
    auxiliary: str = "auto"
    seen: Seen = field(default_factory=Seen)
    tables: dict[str, BaseTable] = field(default_factory=dict)
    """By name; those of the second catalog begin with `elsewhere_`."""
    texts: Counter[str] = field(default_factory=Counter)
    """View -> which of its texts it has."""
    stored: dict[str, Rows | None] = field(default_factory=dict)
    judge: Judge = field(init=False)

    def __post_init__(self) -> None:
        self.judge = Judge(project=self.project, models=[], names={})

    def play(self) -> None:
        chance = random.Random(self.case.seed)
        begin_session(self.project, self.case.features, chance, self.seen.log)
        self._create_tables(chance)
        for view in self.case.views:
            create_view(self.project, view, 0, self.seen.log)
        self._name()
        for table in self.tables.values():
            table.append(chance)
        self._take_models()
        self._write_files()
        self._refresh("at first")
        for at, steps in enumerate(self.case.rounds):
            for number, step in enumerate(steps):
                if self._step(step):
                    self.seen.steps[step.what] += 1
                    self.judge.check(f"round {at} after step {number} ({step.what} {step.on})", random.Random(step.seed))
                    self.judge.forget()
            if self.auxiliary != "never" and chance.random() < AUXILIARY_STEPS:
                self.seen.steps[auxiliary_step(self.project, chance, self.seen.log) or "no auxiliary view"] += 1
            self._refresh(f"round {at}")
            if self.verify_every and at % self.verify_every == self.verify_every - 1:
                self._verify()

    # --- what there is at first ---

    def _create_tables(self, chance: random.Random) -> None:
        catalogs = {"": "lake"}
        if "catalogs" in self.case.features:
            catalogs[ELSEWHERE] = "second"
            self._second_catalog()
        for prefix, catalog in catalogs.items():
            self.project.sql(f"CREATE NAMESPACE IF NOT EXISTS {catalog}.raw")
            for name, columns in self.case.tables.items():
                self.tables[prefix + name] = BaseTable(
                    name=name,
                    columns=columns,
                    required=frozenset(c for t, c in self.case.required if t == name),
                    version=self.case.version,
                    mode=self.case.mode,
                    project=self.project,
                    log=self.seen.log,
                    catalog=catalog,
                )
                self.tables[prefix + name].create(chance)

    def _second_catalog(self) -> None:
        root = self.project.root / "second"
        (root / ".mvbuild" / "warehouse").mkdir(parents=True)
        load_catalog("second", **properties(root)).close()
        for key, value in catalog_conf("second", properties(root)).items():
            self.project.spark.conf.set(key, value)

    def _name(self) -> None:
        (now,) = self.project.sql("SELECT date_format(now(), 'yyyy-MM-dd HH:mm:ss.SSS')")[0]
        self.judge.names = {name: f"lake.raw.{name}" for name in self.case.tables}
        self.judge.names |= {view.name: view.full_name for view in self.case.views} | {"now": now}

    def _take_models(self) -> None:
        """Those that Spark understands, and that do not explode."""
        for model in self.case.models:
            try:
                self.project.spark.sql(self.judge.expanded(model.query))
            except Exception as exc:  # noqa: BLE001
                self.seen.log.append(f"-- {model.name} is left out: {str(exc)[:200]}")
                continue
            self.judge.models.append(model)
        counts = [
            f"SELECT '{m.name}' AS mv, count(*) AS n FROM (SELECT 1 FROM ({self.judge.expanded(m.query)}) AS q LIMIT {MOST_RESULT + 1}) AS r"
            for m in self.judge.models
        ]
        large = {row[0] for row in self.project.sql(" UNION ALL ".join(counts)) if row[1] > MOST_RESULT}
        for model in list(self.judge.models):
            if model.name in large or any(f"{{{name}}}" in model.query for name in large):
                large.add(model.name)
                self.judge.models.remove(model)

    def _write_files(self) -> None:
        names = {name: text.removeprefix("lake.") for name, text in self.judge.names.items()}
        names |= {m.name: f"{{{{ ref('{m.name}') }}}}" for m in self.judge.models}
        files = {"mvbuild.yml": f"name: histories\nmodels: {{+refresh_policy: incremental, +auxiliary_views: {self.auxiliary}}}\n"}
        kinds = {"mv": "", "view": "{{ config(materialized='view') }}\n", "ephemeral": "{{ config(materialized='ephemeral') }}\n"}
        entries = []
        for model in self.judge.models:
            files[f"models/{model.name}.sql"] = kinds[model.kind] + filled(model.query, names) + "\n"
            entries.append(f"  - {{name: {model.name}, config: {{{model.config}}}}}\n" if model.config else "")
        listed = "models:\n" + "".join(entries) if any(entries) else ""
        if "catalogs" in self.case.features:
            options = ", ".join(f'{key}: "{value}"' for key, value in properties(self.project.root / "second").items())
            tables = ", ".join(f"{{name: {name}}}" for name in self.case.tables)
            listed += f"sources:\n  - {{name: outer, namespace: raw, catalog: second, properties: {{{options}}}, tables: [{tables}]}}\n"
        if listed:
            files["models/all.yml"] = listed
        self.project.write(files)

    # --- steps and runs ---

    def _step(self, step: Step) -> bool:
        chance = random.Random(step.seed)
        self.judge.truths.clear()
        if step.what in SESSION_STEPS:
            session_step(self.project, step.what, chance, self.seen.log)
        elif step.what in VIEW_STEPS:
            self.texts[step.on] += 1
            view = next(view for view in self.case.views if view.name == step.on)
            view_step(self.project, step.what, view, self.texts[step.on], self.seen.log)
        elif step.what not in STORAGE_STEPS:
            is_elsewhere = step.what.startswith(ELSEWHERE)
            table = self.tables[ELSEWHERE + step.on if is_elsewhere else step.on]
            if step.what == "swap_tables":
                return self._swap(step.on)
            table.do(step.what.removeprefix(ELSEWHERE), chance)
        elif self.project.catalog.table_exists(f"main.{step.on}__storage"):
            storage_step(self.project, step.what, step.on, chance, self.seen.log)
            self.judge.altered.add(step.on)
        else:
            return False
        return True

    def _swap(self, name: str) -> bool:
        """The table and another one with the same columns get each other's name."""
        alike = [
            n for n, t in self.tables.items() if n != name and t.catalog == "lake" and list(t.columns) == list(self.tables[name].columns)
        ]
        if not alike:
            return False
        for before, after in ((name, "swapped"), (alike[0], name), ("swapped", alike[0])):
            self.seen.log.append(f"ALTER TABLE lake.raw.{before} RENAME TO raw.{after}")
            self.project.sql(self.seen.log[-1])
        one, other = self.tables[name], self.tables[alike[0]]
        one.name, other.name = other.name, one.name
        self.tables[one.name], self.tables[other.name] = one, other
        return True

    def _refresh(self, when: str) -> None:
        self.seen.log.append(f"-- run {when}")
        result = self.project.run(threads=2)
        self.seen.runs += 1
        details = {r.node.rpartition(".")[2]: r for r in result.results}
        failing = self._failing(when, result, details)
        for name, one in details.items():
            self._note(when, name, one)
        self._compare(when, details, failing)
        self._nothing_left(when, failing)

    def _failing(self, when: str, result: Any, details: Mapping[str, Any]) -> set[str]:
        """MVs that cannot be refreshed, as Spark cannot compute their query either."""
        failed = {name for name, one in details.items() if one.status in ("error", "skipped")}
        if failed:
            refused = {name for name in failed if any(d.code in REFUSED for d in details[name].diagnostics)}
            self.judge.refused |= refused
            truth = self.judge.wanted([m for m in self.judge.models if m.name in failed - refused])
            if any(rows is not None for rows in truth.values()):
                raise Failed(f"{when}: the run failed: {messages(result)}")
            self.seen.blocked.update(d.code for name in failed for d in details[name].diagnostics)
        return failed

    def _note(self, when: str, name: str, one: Any) -> None:
        model = next(m for m in self.judge.models if m.name == name)
        strategy = one.details.get("strategy")
        if one.status == "success":
            self.judge.refreshed_in[name] = settings(self.project, model.query)
        if not strategy:
            return
        reason = one.details.get("reason") or ""
        self.seen.refreshes[(strategy, reason)] += 1
        self.seen.checked["written without Spark"] += (one.sql or "").endswith("in one commit of mvbuild")
        self.seen.checked["read near the change"] += "_near_" in (one.sql or "")
        for view in one.details.get("auxiliary_views", ()):
            self.seen.auxiliary[(view["strategy"], view["reason"] or "")] += 1
        if reason in ("incremental-failed", "internal"):
            raise Failed(f"{when}: {name}: {one.details.get('reason_message')}")
        if reason == "round-trip-unproven":
            self.seen.unproven.append(f"{model.query}\n{one.details.get('reason_message')}")

    def _compare(self, when: str, details: Mapping[str, Any], failing: set[str]) -> None:
        mvs = [m for m in self.judge.mvs if m.name not in failing and not self.judge.is_of_other_session(m)]
        wanted, stored = self.judge.wanted(mvs), self.judge.stored(mvs)
        for model in mvs:
            name = model.name
            one, truth, rows = details.get(name), wanted[name], stored[name]
            how = f"{one.status}, {one.details.get('strategy')}, {one.details.get('reason')}, {one.message}" if one else "not in the run"
            if truth is None:
                continue
            if rows is None:
                raise Failed(f"{when}: {name} ({how}) cannot be read")
            if rows != truth:
                lacks, more = truth - rows, rows - truth
                raise Failed(f"{when}: {name} ({how}) lacks {dict(lacks)} and has {dict(more)} too much\n{one.sql if one else ''}")
            before = self.stored.get(name)
            if (
                one
                and one.status == "success"
                and before is not None
                and name not in self.judge.altered
                and one.details.get("strategy") in EXACT
            ):
                differing = (before - rows).total(), (rows - before).total()
                # A zero that got another sign is another value, and has the same text here.
                unseen = sum(number for row, number in (before + rows).items() if "0.0" in row.split("|"))
                wrote = one.details.get("rows_removed"), one.details.get("rows_added")
                if None in wrote or sum(wrote) > sum(differing) + unseen:
                    raise Failed(f"{when}: {name} ({how}) removed and added {wrote} rows, but {differing} differ\n{one.sql}")
        self.stored = stored
        self.judge.altered.clear()

    def _nothing_left(self, when: str, failing: set[str]) -> None:
        self.project.assert_tidy()
        self.judge.forget()
        views = [t.name for t in self.project.spark.catalog.listTables() if t.isTemporary]
        if views:
            raise Failed(f"{when}: temporary views are left: {views}")
        settled = [m for m in self.judge.mvs if m.name not in failing and not _is_unsteady(m)]
        names = [m.name for m in settled]
        statuses = self.project.statuses(*names, spark=_OnlySettings(self.project.spark)) if names else {}
        if set(statuses.values()) - {"reused"}:
            answers = self.judge.freshness()
            why = {name: [r.message for r in answers[name].reasons] for name, status in statuses.items() if status != "reused"}
            raise Failed(f"{when}: a second run has something to do: {why}")
        self.judge.check(f"{when} after the run", random.Random(self.seen.runs))
        self.judge.forget()

    def _verify(self) -> None:
        found = api.verify(self.project.root, spark=self.project.spark)
        wrong = [r for r in found.results if r.status not in ("same", "unverifiable")]
        self.seen.verified += len(found.results)
        if wrong:
            raise Failed(f"verify does not agree: {wrong}")


def _is_unsteady(model: Model) -> bool:
    return any(word in model.query for word in UNSTEADY)


def shrunk(case: Case, fails: Callable[[Case], bool], *, seconds: float) -> Case:
    """The smallest case that still fails, as far as the time allows: fewer MVs, rounds and steps, one after another."""
    end = time.monotonic() + seconds
    goes_on = True
    while goes_on and time.monotonic() < end:
        goes_on = False
        for other in smaller(case):
            if time.monotonic() > end:
                break
            if fails(other):
                case, goes_on = other, True
                break
    return case
