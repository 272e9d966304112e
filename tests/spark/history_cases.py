"""A seed -> a Case: base tables, materialized views over them, views of others, and rounds of steps. The same seed gives the same case."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from spark import history_features, history_queries
from spark.history_features import ELSEWHERE, FEATURES, SESSION_STEPS, SINCE_4, STORAGE_STEPS, VIEW_STEPS, CatalogView
from spark.history_queries import Model
from unit.incremental.queries import Type

MODES = ((2, "copy-on-write"), (2, "merge-on-read"), (3, "merge-on-read"))
"""Format version and write mode of the base tables; the last has deletion vectors."""
COLUMNS: Mapping[str, Type] = {
    "g": "int",
    "s": "string",
    "d": "decimal",
    "f": "boolean",
    "t": "date",
    "r": "double",
    "`a b`": "string",
    "`Größe`": "int",
}
"""Besides `k` and `v`, which every table has. Some need quoting."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """A change of one table, of an MV's storage, of a view or of the session. Its own seed determines it, so that other steps can be
    removed."""

    what: str
    on: str
    """The table, MV or view; empty for the session."""
    seed: int


@dataclass(frozen=True, kw_only=True)
class Case:
    seed: int
    version: int
    mode: str
    features: tuple[str, ...]
    tables: Mapping[str, Mapping[str, Type]]
    required: frozenset[tuple[str, str]]
    """(table, column) that cannot be NULL."""
    views: tuple[CatalogView, ...]
    models: tuple[Model, ...]
    rounds: tuple[tuple[Step, ...], ...]

    def __str__(self) -> str:
        lines = [f"seed {self.seed}, v{self.version} {self.mode}, {', '.join(self.features)}"]
        lines += [f"  {m.kind} {m.name} {{{m.config}}}: {m.query}" for m in self.models]
        lines += [f"  round {at}: {', '.join(f'{s.what} {s.on} ({s.seed})' for s in steps)}" for at, steps in enumerate(self.rounds)]
        return "\n".join(lines)


STEPS: Mapping[str, float] = {
    "append": 6,
    "append_again": 1,
    "delete": 4,
    "update": 4,
    "touch": 1,
    "merge": 3,
    "overwrite": 2,
    "compact": 2,
    "compact_deletes": 1,
    "rewrite_manifests": 0.5,
    "rollback": 1.5,
    "add_column": 0.8,
    "drop_column": 0.4,
    "rename_column": 0.6,
    "widen": 0.4,
    "evolve_partitioning": 1,
    "empty": 0.4,
    "refill": 0.7,
    "expire": 0.5,
    "recreate": 0.3,
}
SHARE_OF_FEATURES = 0.6
"""Of the steps."""


def made(
    seed: int, version: int, mode: str, *, rounds: int = 5, mvs: int = 6, features: Sequence[str] | None = None, together: int = 2
) -> Case:
    """`features`: those of the case; if none are given, as many as `together` by chance."""
    chance = random.Random(f"{seed} {version} {mode}")
    chosen = tuple(features if features is not None else chance.sample(list(FEATURES), together))
    tables = {name: _columns(chance, chosen) for name in "abc"[: chance.choice((2, 2, 3))]}
    if "moves" in chosen and chance.random() < 0.5:
        tables["b"] = tables["a"]  # so that they can swap their names
    required = frozenset((t, c) for t, columns in tables.items() for c in columns if chance.random() < 0.08)
    views = tuple(view for name in chosen for view in FEATURES[name].views)
    models = (*history_queries.models(chance, _plain(tables), mvs), *history_features.models(chance, tables, chosen))
    return Case(
        seed=seed,
        version=version,
        mode=mode,
        features=chosen,
        tables=tables,
        required=required,
        views=views,
        models=models,
        rounds=tuple(_round(chance, tables, views, models, chosen) for _ in range(rounds)),
    )


def _columns(chance: random.Random, features: Sequence[str]) -> dict[str, Type]:
    found: dict[str, Type] = {name: type_ for name, type_ in COLUMNS.items() if chance.random() < (0.15 if " " in name else 0.5)}
    return {"k": "int", "v": "int", **found, **{name: of for feature in features for name, of in FEATURES[feature].columns.items()}}


def _plain(tables: Mapping[str, Mapping[str, Type]]) -> dict[str, dict[str, Type]]:
    """Without times, of which queries may make what depends on the session, and without text that partitions of MVs could not keep."""
    return {table: {name: of for name, of in columns.items() if of not in ("timestamp", "text")} for table, columns in tables.items()}


def _round(
    chance: random.Random,
    tables: Mapping[str, Mapping[str, Type]],
    views: Sequence[CatalogView],
    models: Sequence[Model],
    features: Sequence[str],
) -> tuple[Step, ...]:
    stored = [m.name for m in models if m.kind == "mv" and not m.is_embedded]
    extra = {what: weight for name in features for what, weight in FEATURES[name].steps.items()}
    steps = []
    for _ in range(chance.choice((1, 1, 2, 3))):
        weights = extra if extra and chance.random() < SHARE_OF_FEATURES else STEPS
        (what,) = chance.choices(list(weights), weights=list(weights.values()))
        if stored and chance.random() < 0.06:
            what = chance.choice(STORAGE_STEPS[-3:])
        steps.append(Step(what=what, on=_target(chance, what, tables, views, stored), seed=chance.randrange(10**6)))
    return tuple(steps)


def _target(
    chance: random.Random, what: str, tables: Mapping[str, Mapping[str, Type]], views: Sequence[CatalogView], stored: Sequence[str]
) -> str:
    if what in SESSION_STEPS:
        return ""
    if what in STORAGE_STEPS:
        of_feature = [name for name in stored if name.startswith("storage")]
        return chance.choice(of_feature if of_feature and chance.random() < 0.6 else stored)
    if what in VIEW_STEPS:
        return chance.choice([view.name for view in views])
    return "a" if what.startswith(ELSEWHERE) or chance.random() < 0.3 else chance.choice(list(tables))


def before_spark_4(case: Case) -> Case:
    """What Spark 3.5 can play of it: without models that it cannot read, and those that read them."""
    gone = {model.name for model in case.models if any(text in model.query for text in SINCE_4)}
    while more := {m.name for m in case.models if any(f"{{{name}}}" in m.query for name in gone)} - gone:
        gone |= more
    rounds = tuple(tuple(step for step in steps if step.what != "set_bound") for steps in case.rounds)
    return replace(case, models=tuple(m for m in case.models if m.name not in gone), rounds=rounds)


def smaller(case: Case) -> Iterator[Case]:
    """The case with something taken away: a model, a round, a step, a setting."""
    for at in range(len(case.rounds) - 1, 0, -1):
        yield replace(case, rounds=case.rounds[:at])
    for model in case.models:
        if not any(f"{{{model.name}}}" in other.query for other in case.models):
            yield replace(case, models=tuple(m for m in case.models if m is not model))
    for at, steps in enumerate(case.rounds):
        yield replace(case, rounds=(*case.rounds[:at], *case.rounds[at + 1 :]))
        for step in steps if len(steps) > 1 else ():
            yield replace(case, rounds=(*case.rounds[:at], tuple(s for s in steps if s is not step), *case.rounds[at + 1 :]))
    for model in case.models:
        if model.config:
            yield replace(case, models=tuple(replace(m, config="") if m is model else m for m in case.models))
