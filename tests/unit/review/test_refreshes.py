"""What a change refreshes, and why, if the catalog is known."""

from __future__ import annotations

from pathlib import Path

from mvbuild import api
from mvbuild.review.model import NodeChange, Review
from mvbuild.review.refreshes import concerned, of_plan
from mvbuild.review.text import review_text
from mvbuild.serve.words import size
from unit.review.repositories import commit, git, repository
from unit.worlds import PROJECT, Shop, append, base_table


def changed(root: Path) -> Review:
    return api.review(api.compile(root, env={}), "main")


def test_what_follows_from_the_change_and_nothing_else(tmp_path: Path) -> None:
    repository(tmp_path, PROJECT | {"models/other.sql": "SELECT id FROM raw.customers\n"})
    shop = Shop(tmp_path)
    base_table(shop.catalog, "raw.orders")
    base_table(shop.catalog, "raw.customers")
    assert shop.run().ok
    append(shop.catalog, "raw.customers")
    shop.write({"models/daily.sql": "SELECT id FROM {{ ref('orders_clean') }} WHERE id > 5\n"})
    review = changed(tmp_path)
    assert [c.kind for c in review.changes] == ["filter-narrowed"]
    planned = shop.plan()
    found = of_plan(planned, concerned(planned.world.graph, review.changes))
    # `other` is stale as well, and not because of the change.
    assert [(r.relation, r.action) for r in found] == [("lake.main.daily", "refresh"), ("lake.main.monthly", "refresh")]
    assert "its definition was changed" in found[0].why
    assert found[0].strategy == "full"


def test_documentation_refreshes_nothing_below(tmp_path: Path) -> None:
    repository(tmp_path, PROJECT)
    Shop(tmp_path).write({"models/s.yml": "models: [{name: orders_clean, description: Clean.}]\n"})
    review = changed(tmp_path)
    assert [(c.name, c.kind) for c in review.changes] == [("orders_clean", "documentation")]
    assert concerned(api.compile(tmp_path, env={}), review.changes) == {"model.shop.orders_clean"}


def test_a_catalog_that_cannot_be_reached(tmp_path: Path) -> None:
    target = "targets: {dev: {catalog: {type: rest, uri: 'http://127.0.0.1:9'}, namespace: main}}\n"
    root = repository(tmp_path, PROJECT | {"mvbuild.yml": f"name: shop\n{target}"})
    git(root, "checkout", "-q", "-b", "feature")
    Shop(root).write({"models/daily.sql": "SELECT id FROM {{ ref('orders_clean') }} WHERE id > 5\n"})
    commit(root)
    review = changed(root)
    assert review.unknown
    assert [r.why for r in review.refreshes] == ["its definition was changed", "it reads daily"]
    assert f"(how is unknown: {review.unknown})" in review_text(review, size)


def test_what_was_removed_concerns_nobody_who_is_left(tmp_path: Path) -> None:
    gone = NodeChange(id="model.shop.gone", name="gone", path="models/gone.sql", what="removed")
    graph = api.compile(repository(tmp_path, PROJECT), env={})
    assert concerned(graph, [gone]) == frozenset()
