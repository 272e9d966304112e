"""nodes and their edges -> batches; results -> when to try again."""

from __future__ import annotations

from pathlib import Path

from mvbuild.watch.due import batches
from mvbuild.watch.retries import FIRST_MS, LONGEST_MS, Retries
from unit.watch.watched import mv
from unit.worlds import compiled

TEST = "SELECT x.id FROM {{ ref('b') }} x JOIN {{ ref('d') }} y ON x.id = y.id\n"


def groups(root: Path, files: dict[str, str], *names: str) -> list[str]:
    graph = compiled(root, {"mvbuild.yml": "name: shop\n", **files})
    found = batches(graph, [f"model.shop.{name}" for name in names])
    return sorted(" ".join(sorted(id.rpartition(".")[2] for id in group)) for group in found)


def test_nodes_are_together_if_one_reads_the_other_through_whatever_is_between(tmp_path: Path) -> None:
    files = {
        "models/a.sql": mv(),
        "models/v.sql": "{{ config(materialized='view') }}\nSELECT id FROM {{ ref('a') }}\n",
        "models/b.sql": mv(reads="v"),
        "models/c.sql": mv(reads="b"),
        "models/d.sql": mv(),
        "models/e.sql": mv(reads="c, d"),
    }
    assert groups(tmp_path, files, "a", "b", "d") == ["a b", "d"]
    assert groups(tmp_path, files, "a", "b", "c", "d", "e") == ["a b c d e"]
    # The storage of c stays as it is.
    assert groups(tmp_path, files, "a", "d", "e") == ["a", "d e"]


def test_nodes_are_together_if_a_data_test_reads_both(tmp_path: Path) -> None:
    files = {"models/b.sql": mv(), "models/d.sql": mv(), "models/e.sql": mv(), "tests/both.sql": TEST}
    assert groups(tmp_path, files, "b", "d", "e") == ["b d", "e"]


def test_waits_double_up_to_a_limit_and_a_success_ends_them() -> None:
    retries = Retries()
    waits = [retries.failed("a", 0) for _ in range(12)]
    assert waits[:3] == [FIRST_MS, 2 * FIRST_MS, 4 * FIRST_MS]
    assert waits[-1] == LONGEST_MS
    assert retries.succeeded("a", 0)
    assert not retries.succeeded("a", 0)
    assert retries.failed("a", 0) == FIRST_MS
