"""What a history has at a moment -> Failed if something stale is called fresh, or the rows that readers get are not those of the query.

The expected result is the query over the base tables, computed by plain Spark in the session as it is. If Spark cannot compute it, nothing
is compared.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import spec_reader
from mvbuild import api
from mvbuild.api import frames
from mvbuild.formats import metadata_file
from mvbuild.freshness.model import Freshness
from spark.history_queries import Model
from spark.history_steps import settings
from spark.projects import Project

Rows = Counter[str]
_WITHOUT_SNAPSHOT = (
    *("base-table-schema-changed", "storage-schema-changed", "session-differs", "session-not-recorded"),
    *("base-table-not-recorded", "base-table-recreated", "child-view-not-recorded", "child-view-recreated"),
)
"""Reasons of staleness that make neither a snapshot nor a version: the rules of the specification cannot see them. The last ones are those
of tables and views that swapped their names, which the specification knows by their UUIDs."""


class Failed(Exception):
    pass


@dataclass
class Judge:
    project: Project
    models: list[Model]
    """Those that are in the project."""
    names: dict[str, str]
    """The name in braces in queries -> the table, view or text that it means."""
    refreshed_in: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """MV -> what of the session its rows depend on, as it was when they were written."""
    refused: set[str] = field(default_factory=set)
    """MVs that mvbuild does not make."""
    altered: set[str] = field(default_factory=set)
    """MVs whose storage others have changed since the last run."""
    checked: Counter[str] = field(default_factory=Counter)
    """What was compared with the truth, how often."""
    truths: dict[str, Rows | None] = field(default_factory=dict)
    """Query over the base tables -> its rows. Valid until the next step; empty it then."""

    @property
    def mvs(self) -> list[Model]:
        return [m for m in self.models if m.kind == "mv"]

    def check(self, when: str, chance: random.Random) -> None:
        """What is called fresh, by mvbuild or by a reader of the specification, and what `read` gives of one MV."""
        answers = self.freshness()
        entries = spec_reader.read(self.project.catalog)
        by_specification = {m.name for m in self.mvs if spec_reader.fresh(entries, f"main.{m.name}")}
        claimed = [m for m in self.mvs if m.name in by_specification or answers[m.name].is_fresh]
        wanted, stored = self.wanted(claimed), self.stored(claimed)
        for model in claimed:
            name, truth = model.name, wanted[model.name]
            if truth is None or self.is_of_other_session(model):
                continue
            answer = answers[name]
            if answer.is_fresh:
                self.checked["fresh"] += 1
                _require_same(f"{when}: {name} is called fresh", stored[name], truth)
            if name in by_specification and not self._is_excused(name, answers):
                self.checked["fresh by the specification"] += 1
                _require_same(f"{when}: {name} is fresh by the specification", stored[name], truth)
                if answer.state == "stale":
                    raise Failed(f"{when}: {name} is fresh by the specification, and stale: {[r.code for r in answer.reasons]}")
        self._served(when, chance.choice(self.mvs))

    def _served(self, when: str, model: Model) -> None:
        truth = self.wanted([model])[model.name]
        if truth is None or model.name in self.refused:
            return
        frame = api.read(self.project.spark, model.name, project=self.project.root)
        frame.createOrReplaceTempView("served")
        try:
            self.checked["served"] += 1
            _require_same(f"{when}: {model.name} as it is served", self.rows({model.name: "served"})[model.name], truth)
        finally:
            self.project.spark.catalog.dropTempView("served")
            self._drop_scratch()

    def _drop_scratch(self) -> None:
        """What `read` keeps for a lazy DataFrame until the process ends."""
        for tables in frames._SHARED_SCRATCH.values():
            for identifier in tables.values():
                if self.project.catalog.table_exists(identifier.parts[1:]):
                    self.project.catalog.drop_table(identifier.parts[1:])
            tables.clear()

    def freshness(self) -> dict[str, Freshness]:
        _, answers = api.status(api.compile(self.project.root))
        return {id_.rpartition(".")[2]: answer for id_, answer in answers.items()}

    def is_of_other_session(self, model: Model) -> bool:
        """Whether the rows were written in a session with other settings: what is called fresh is asked for without a session."""
        return self.refreshed_in.get(model.name) != settings(self.project, model.query)

    def _is_excused(self, name: str, answers: Mapping[str, Freshness]) -> bool:
        stale = [r for r in answers[name].reasons if r.effect != "fresh"]
        return bool(stale) and all(
            r.code in _WITHOUT_SNAPSHOT
            or (r.code.startswith("upstream-") and r.table is not None and self._is_excused(r.table.name, answers))
            for r in stale
        )

    # --- rows ---

    def wanted(self, models: Sequence[Model]) -> dict[str, Rows | None]:
        queries = {m.name: self.expanded(m.query) for m in models}
        unknown = {name: query for name, query in queries.items() if query not in self.truths}
        for name, rows in self.rows({name: f"({query})" for name, query in unknown.items()}).items():
            self.truths[unknown[name]] = rows
        return {name: self.truths[query] for name, query in queries.items()}

    def stored(self, models: Sequence[Model]) -> dict[str, Rows | None]:
        return self.rows({m.name: self._storage(m) for m in models})

    def expanded(self, query: str) -> str:
        """The query over the base tables alone."""
        names = dict(self.names)
        for model in self.models:
            names[model.name] = f"({filled(model.query, names)})"
        return filled(query, names)

    def rows(self, sources: Mapping[str, str]) -> dict[str, Rows | None]:
        """MV -> its rows as text, all in one query where Spark's optimizer can make a plan of it; None where Spark cannot read it."""
        parts = {}
        for name, source in sources.items():
            try:
                fields = self.project.spark.sql(f"SELECT * FROM {source} AS q").schema.fields
            except Exception:  # noqa: BLE001  the query is wrong by now
                continue
            parts[name] = _as_text(name, source, sorted(fields, key=lambda f: f.name))
        return self._computed(sources, parts)

    def _computed(self, sources: Mapping[str, str], parts: Mapping[str, str]) -> dict[str, Rows | None]:
        found: dict[str, Rows | None] = {name: Counter() if name in parts else None for name in sources}
        try:
            rows = self.project.sql(" UNION ALL ".join(parts.values())) if parts else []
        except Exception:  # noqa: BLE001  one of them fails, or PushProjectionThroughUnion loses a column of some unions of unions
            rows = []
            for name, part in parts.items():
                try:
                    rows += self.project.sql(part)
                except Exception:  # noqa: BLE001
                    found[name] = None
        for name, row in rows:
            counted = found[name]
            assert counted is not None
            counted[bytes.fromhex(row).decode("utf-8", "backslashreplace")] += 1
        return found

    def _storage(self, model: Model) -> str:
        if not model.is_embedded:
            return f"lake.main.{model.name}__storage"
        pointer = self.project.view(f"main.{model.name}")["properties"].get(metadata_file.METADATA_LOCATION)
        if pointer is None:
            return "nothing"
        file = metadata_file.read(Path(pointer.removeprefix("file://")).read_bytes())
        name = f"embedded_{model.name}"
        self.project.spark.read.format("iceberg").load(file.storage_metadata_location).createOrReplaceTempView(name)
        return name

    def forget(self) -> None:
        """The names of embedded storages."""
        for model in self.models:
            if model.is_embedded:
                self.project.spark.catalog.dropTempView(f"embedded_{model.name}")


def filled(query: str, names: Mapping[str, str]) -> str:
    for name, text in names.items():
        query = query.replace(f"{{{name}}}", text)
    return query


def _as_text(name: str, source: str, fields: Sequence[Any]) -> str:
    """Hexadecimal, as text that is not valid UTF-8 does not reach Python. `0.0` and `-0.0` are one value."""
    columns = [f"q.`{f.name}`" for f in fields]
    values = [f"round({c}, 9) + 0.0D" if f.dataType.typeName() in ("double", "float") else c for c, f in zip(columns, fields, strict=True)]
    listed = ", ".join(f"coalesce(CAST({value} AS STRING), 'NULL')" for value in values)
    return f"SELECT '{name}' AS mv, hex(CAST(concat_ws('|', {listed}) AS BINARY)) AS row FROM {source} AS q"


def _require_same(what: str, found: Rows | None, truth: Rows) -> None:
    if found is None:
        raise Failed(f"{what}, and cannot be read")
    if found != truth:
        raise Failed(f"{what}: it lacks {dict(truth - found)} and has {dict(found - truth)} too much")
