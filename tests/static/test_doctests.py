"""The examples in docstrings -> what they print: every module with an example that can run without Spark."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

from mvbuild.incremental.strategies import STRATEGIES

ROOT = Path(__file__).parents[2] / "compiler"
FILES = [path for path in sorted(ROOT.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]
NAMES = [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in FILES]


@pytest.mark.parametrize("name", NAMES)
def test_examples_print_what_they_show(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert result.failed == 0


RULES = ("algebra", "delta", "restrict", "push_filters", "column_pruning", "scan_conditions", "statements", "emit")


def test_every_rule_of_the_algebra_and_every_strategy_has_an_example() -> None:
    wanted = {f"mvbuild.incremental.{rule}" for rule in RULES} | {rewrite.__module__ for rewrite in STRATEGIES.values()}
    assert sorted(wanted - set(NAMES)) == []
