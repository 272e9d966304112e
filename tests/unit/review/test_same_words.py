"""A review, a plan and the run after it say the same of the same edit."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from mvbuild import api
from mvbuild.review.model import Review
from seeds import more_seeds
from unit.equivalence.edits import OTHER, SAME
from unit.equivalence.generated import changed, query, text
from unit.review.repositories import repository
from unit.worlds import Shop

SEEDS = {
    "mvbuild.yml": "name: shop\n",
    "seeds/t.csv": "id,a,b,s,day\n1,1,1,x,2026-01-01\n",
    "seeds/u.csv": "id,x,y\n1,1,1\n",
}
EDITS = {name: (old, new) for name, (old, new, *_) in {**SAME, **OTHER}.items()}


def edited(root: Path, pairs: list[tuple[str, str]]) -> tuple[Shop, Review]:
    """A catalog with the old text of each pair as a model, and the review of the new texts. Both know the columns of the seeds."""
    old, new = ({f"models/m{n}.sql": pair[at] + "\n" for n, pair in enumerate(pairs)} for at in (0, 1))
    repository(root, SEEDS | old)
    shop = Shop(root)
    assert shop.run().ok
    shop.write(new)
    return shop, api.review(api.compile(root, env={}), "main")


def by_review(review: Review) -> dict[str, str]:
    """Model -> what the review says of its text."""
    return {c.name: "; ".join(f.message for f in c.findings) for c in review.changes}


def by_plan(shop: Shop) -> dict[str, str]:
    """Model -> what the plan says of its definition."""
    reasons = ((step.node.rpartition(".")[2], reason) for step in shop.plan().steps for reason in step.reasons)
    return {name: r.message.removeprefix("its definition was changed: ") for name, r in reasons if r.code == "definition-changed"}


@pytest.mark.proof
def test_edits_as_people_make_them(tmp_path: Path) -> None:
    shop, review = edited(tmp_path, list(EDITS.values()))
    reviewed, planned = by_review(review), by_plan(shop)
    formatting = {f"m{n}" for n, name in enumerate(EDITS) if name in SAME and SAME[name][2] == "tokens"}
    assert {name: message for name, message in reviewed.items() if name not in formatting} == planned
    assert len(planned) + len(formatting) == len(EDITS) > 60
    expected = {f"m{n}": message for n, (*_, message) in enumerate({**SAME, **OTHER}.values())}
    assert reviewed == expected


def test_a_plain_view(tmp_path: Path) -> None:
    pairs = [("{{ config(materialized='view') }} " + old, "{{ config(materialized='view') }} " + new) for old, new in EDITS.values()]
    shop, review = edited(tmp_path, pairs[::5])
    planned = by_plan(shop)
    assert len(planned) > 10
    assert planned.items() <= by_review(review).items()


@pytest.mark.proof
def test_what_is_done_follows_from_what_is_said(tmp_path: Path) -> None:
    """The rows are kept for equal tokens; Spark is asked for a proof if only names differ; everything else is refreshed, and so is a sample."""
    shop, _ = edited(tmp_path, list(EDITS.values()))
    actions = shop.actions()
    for n, (name, (*_, rung, message)) in enumerate({**SAME, **OTHER}.items()):
        if "TABLESAMPLE" in EDITS[name][0]:
            continue
        expected = "alter" if rung == "tokens" else "redefine" if rung == "names" or "Spark has to prove" in message else "refresh"
        assert actions[f"m{n}"] == expected, (name, message)


@pytest.mark.proof
def test_generated_edits(tmp_path: Path) -> None:
    pairs = []
    for seed in (*range(60), *more_seeds(20)):
        rng = random.Random(seed)
        parts = query(rng)
        pairs.append((text(rng, parts), text(rng, changed(rng, parts))))
    shop, review = edited(tmp_path, pairs)
    reviewed, planned = by_review(review), by_plan(shop)
    assert {name: message for name, message in reviewed.items() if message != "only formatting and comments"} == planned
    assert len(planned) > 40
