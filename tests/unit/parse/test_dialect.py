"""SQL -> a tree in which every negation is a NOT."""

from __future__ import annotations

import pytest
from sqlglot import exp

from mvbuild.parse.dialect import parse, tokenize


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("a NOT LIKE 'x%'", "NOT a LIKE 'x%'"),
        ("a NOT ILIKE b", "NOT a ILIKE b"),
        ("NOT (a NOT LIKE 'x')", "NOT (NOT a LIKE 'x')"),
        ("a NOT LIKE 'x!' ESCAPE '!'", "NOT a LIKE 'x!' ESCAPE '!'"),
        ("a NOT LIKE 'x' AND b IS NOT NULL", "NOT a LIKE 'x' AND NOT b IS NULL"),
        # Whether one of the patterns does not match, not whether none does.
        ("a NOT LIKE ANY ('x', 'y')", "a NOT LIKE ANY ('x', 'y')"),
        ("a LIKE 'x'", "a LIKE 'x'"),
    ],
)
def test_a_negation(written: str, read: str) -> None:
    sql = f"SELECT 1 FROM t WHERE {written}"
    (tree,) = parse(tokenize(sql), sql)
    assert tree is not None
    assert tree.args["where"].this.sql("spark") == read
    assert all(isinstance(one.expression, exp.Any) for one in tree.find_all(exp.Like, exp.ILike, exp.Is) if one.args.get("negate"))
