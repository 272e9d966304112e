"""The table of rules: each with an example that violates it and one that does not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mvbuild.diagnostics import CODES
from mvbuild.lint.model import LEVELS, Rule
from mvbuild.lint.rules import BY_CODE, RULES
from unit.lint.linted import findings, fixed, report

TABLED = [rule for rule in RULES if rule.needs != "catalog"]


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.code)
def test_a_rule_is_complete(rule: Rule) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.code)
    assert rule.code not in CODES
    assert rule.level in LEVELS
    assert rule.title.endswith(".")
    assert rule.why.endswith(".")
    assert rule.help.endswith(".") or rule.help.endswith("`.")
    assert not (rule.check and rule.check_file)
    for option in rule.options.values():
        assert option.check(option.default) == ""
        assert option.doc.endswith(".")


def test_codes_are_unique() -> None:
    assert len(BY_CODE) == len(RULES)


@pytest.mark.parametrize("rule", TABLED, ids=lambda r: r.code)
def test_the_wrong_example_is_found(rule: Rule, tmp_path: Path) -> None:
    assert {f.code for f in findings(tmp_path, rule.wrong, rule.code, *_allowed(rule))} == {rule.code}


@pytest.mark.parametrize("rule", TABLED, ids=lambda r: r.code)
def test_the_right_example_is_not(rule: Rule, tmp_path: Path) -> None:
    assert findings(tmp_path, rule.right, rule.code, *_allowed(rule)) == ()


@pytest.mark.parametrize("rule", [r for r in TABLED if r.fix], ids=lambda r: r.code)
def test_the_wrong_example_is_mended(rule: Rule, tmp_path: Path) -> None:
    after = fixed(tmp_path, rule.wrong, rule.code, *_allowed(rule))
    assert list(after.counts.values()) == [1]
    assert report(after.graph, rules=(rule.code, *_allowed(rule))).findings == ()


def _allowed(rule: Rule) -> tuple[str, ...]:
    """Allowances are judged by rules that run."""
    return ("limit-without-order", "select-star") if "allowance" in rule.code else ()
