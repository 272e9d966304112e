"""Random projects with random mistakes: what is wrong, what reads it, and what a test that cannot run should have stopped are not built.
All others are."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from seeds import seeds
from unit.worlds import append, shop

KINDS = ("materialized_view", "view", "ephemeral")
MISTAKES = {
    "open tag": ("{%% if true %%} {{ config(materialized='%s') }}", False),
    "unknown name": ("{{ config(materialized='%s') }} {{ nothing }}", False),
    "unknown setting": ("{{ config(materialized='%s', materialised='view') }}", False),
    "not parsed": ("{{ config(materialized='%s') }} SELECT v:a[0].b FROM (", True),
}
"""The beginning of the file, and whether it says what kind of model it is."""
ROUNDS = 6


@dataclass(frozen=True)
class Model:
    kind: str
    reads: tuple[str, ...]

    def text(self, mistake: str | None) -> str:
        begin = MISTAKES[mistake][0] if mistake else "{{ config(materialized='%s') }}"
        tables = [f"{{{{ ref('{name}') }}}}" for name in self.reads] or ["raw.orders"]
        return f"{begin % self.kind}\n" + "\nUNION ALL\n".join(f"SELECT id FROM {table}" for table in tables)


def models(choose: random.Random) -> dict[str, Model]:
    found: dict[str, Model] = {}
    for number in range(choose.randint(4, 9)):
        reads = choose.sample(sorted(found), min(len(found), choose.choice((0, 1, 1, 2))))
        found[f"m{number}"] = Model(kind=choose.choice((*KINDS, KINDS[0])), reads=tuple(reads))
    return found


def below(tested: str, of: Mapping[str, Model], wrong: Mapping[str, str]) -> tuple[set[str], bool]:
    """The MVs whose rows a test reads, and whether it can run. What may be a view is read like one."""
    mvs, can_run, edge = set(), True, [tested]
    while edge:
        name = edge.pop()
        is_certain = name not in wrong or MISTAKES[wrong[name]][1]
        if of[name].kind == KINDS[0] or not is_certain:
            mvs.add(name)
        if of[name].kind != KINDS[0] or not is_certain:
            can_run = can_run and name not in wrong
            edge += of[name].reads
    return mvs, can_run


def not_built(of: Mapping[str, Model], tested: Collection[str], wrong: Mapping[str, str]) -> set[str]:
    stopped = set(wrong)
    for name in tested:
        mvs, can_run = below(name, of, wrong)
        stopped |= set() if can_run else mvs
    for name, model in of.items():  # in topological order
        if stopped & set(model.reads):
            stopped.add(name)
    return stopped


@pytest.mark.proof
@pytest.mark.parametrize("seed", seeds(40))
def test_what_a_mistake_stops(tmp_path: Path, seed: int) -> None:
    choose = random.Random(seed)
    of = models(choose)
    tested = choose.sample(sorted(of), 2)
    tests = {f"tests/t_{name}.sql": f"SELECT id FROM {{{{ ref('{name}') }}}} WHERE id < 0\n" for name in tested}
    right = {f"models/{name}.sql": model.text(None) for name, model in of.items()}
    made = shop(tmp_path, {"mvbuild.yml": "name: shop\n", **right, **tests})
    mvs = {name for name, model in of.items() if model.kind == KINDS[0]}
    assert {name for name, status in made.statuses().items() if status == "success"} >= mvs
    for _ in range(ROUNDS):
        wrong = {name: choose.choice(sorted(MISTAKES)) for name in choose.sample(sorted(of), choose.choice((0, 1, 1, 2)))}
        made.write({**right, **{f"models/{name}.sql": of[name].text(mistake) for name, mistake in wrong.items()}})
        append(made.catalog, "raw.orders")
        built = {name for name, status in made.statuses().items() if status == "success"} & mvs
        assert built == mvs - not_built(of, tested, wrong), (wrong, of, tested)
