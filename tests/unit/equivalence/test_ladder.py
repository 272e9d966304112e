"""The rung of an edit, and what is said of it; never a rung that nothing shows."""

from __future__ import annotations

import random

import pytest

from mvbuild.equivalence.ladder import compare, proven
from mvbuild.ports.engine import Engine
from seeds import more_seeds
from spark.test_equivalence import CASE, DIFFERENT
from unit.equivalence.edits import NAMES, OTHER, SAME
from unit.equivalence.generated import changed, query, text

SCHEMA = {"T": ("id", "a", "b", "s", "day"), "u": ("id", "x", "y")}


@pytest.mark.parametrize("name", SAME)
def test_the_same_query(name: str) -> None:
    old, new, rung, message = SAME[name]
    for edit in (compare(old, new, SCHEMA), compare(new, old, SCHEMA)):
        assert (edit.rung, edit.message) == (rung, message)
        assert edit.kind == ("formatting" if rung == "tokens" else "equal")
        assert edit.only_names == (rung == "names")


@pytest.mark.parametrize("name", OTHER)
def test_another_query_or_perhaps_one(name: str) -> None:
    old, new, kind, message = OTHER[name]
    edit = compare(old, new, SCHEMA)
    assert (edit.rung, edit.kind, edit.message) == ("different", kind, message)
    assert compare(new, old, SCHEMA).rung == "different"
    assert edit.only_names == ("Spark has to prove" in message)


@pytest.mark.parametrize(
    ("old", "new"), [("SELECT a FROM t", "(("), ("SELECT 'a", "SELECT 'b"), ("", "SELECT 1"), ("DROP TABLE t", "SELECT 1")]
)
def test_what_cannot_be_parsed_is_different(old: str, new: str) -> None:
    assert compare(old, new).message == compare(new, old).message == "the query as a whole"
    assert compare(old, new).rung == "different"


def test_deep_and_unusual_queries_raise_nothing() -> None:
    deep = "SELECT " + "(" * 5000 + "1" + ")" * 5000
    assert compare(deep, deep + " AS x").rung == "different"
    assert compare("FROM t |> WHERE a > 1", "FROM t |> WHERE a > 2").rung == "different"


@pytest.mark.parametrize("pairs", [DIFFERENT, CASE], ids=["different", "case"])
def test_no_text_shows_what_spark_refutes(pairs: dict[str, tuple[str, str]]) -> None:
    """Pairs of which Spark's plans show that they are different, or that look the same there and are not."""
    schema = {"T": ("id", "a", "b", "s", "d", "f", "day", "k", "arr", "m", "st"), "U": ("id", "a", "name")}
    found = {name: compare(*pair, known).rung for name, pair in pairs.items() for known in ({}, schema)}
    assert {name for name, rung in found.items() if rung != "different"} == set()


def test_another_version_of_a_table_may_have_other_columns() -> None:
    assert compare("SELECT * FROM u", "SELECT id, x, y FROM u", SCHEMA).rung == "rewriting"
    assert compare("SELECT * FROM u VERSION AS OF 1", "SELECT id, x, y FROM u VERSION AS OF 1", SCHEMA).rung == "different"


def test_a_proof_is_a_rung_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    engine: Engine = None  # type: ignore[assignment]
    edit = compare("SELECT o.a FROM t o", "SELECT x.a FROM t x")
    monkeypatch.setattr("mvbuild.equivalence.ladder.missing_proof", lambda *_, **__: "Spark's plans differ")
    assert proven(edit, engine, "", "") == edit
    monkeypatch.setattr("mvbuild.equivalence.ladder.missing_proof", lambda *_, **__: "")
    found = proven(edit, engine, "", "")
    assert (found.rung, found.kind, found.message) == ("proof", "equal", NAMES)


def test_a_proof_of_what_no_text_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new, *_ = OTHER["the alias of a LATERAL VIEW"]
    monkeypatch.setattr("mvbuild.equivalence.ladder.missing_proof", lambda *_, **__: "")
    assert proven(compare(old, new), None, old, new).message == NAMES  # type: ignore[arg-type]


@pytest.mark.proof
def test_generated_edits_are_on_one_rung_in_both_directions() -> None:
    """And knowing the columns of the tables takes no edit off its rung."""
    schema = {"t": ("id", "a", "b"), "u": ("id", "x", "y")}
    shown = 0
    for seed in (seeds := (*range(40), *more_seeds(40))):
        rng = random.Random(seed)
        parts = query(rng)
        old, same, new = text(rng, parts), text(rng, parts), text(rng, changed(rng, parts))
        assert compare(old, f"/* {seed} */ {old}\n").rung == "tokens"
        shown += compare(old, same, schema).rung != "different"
        for one, other in ((old, same), (old, new)):
            assert compare(one, other).rung == compare(other, one).rung
            if compare(one, other).rung != "different":
                assert compare(one, other, schema).rung != "different", (one, other)
    assert shown > len(seeds) / 2
