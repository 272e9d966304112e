"""The table of rules."""

from __future__ import annotations

from mvbuild.lint.model import Rule
from mvbuild.lint.rules import clocks, ctes, described, joins, limits, project, refreshing, secrets, stars, types, windows
from mvbuild.lint.rules.allowed import UNKNOWN, UNREASONED, UNUSED

RULES: tuple[Rule, ...] = (
    clocks.RULE,
    stars.RULE,
    limits.RULE,
    joins.RULE,
    types.RULE,
    ctes.RULE,
    described.DESCRIPTION,
    described.TESTS,
    project.DUPLICATE,
    refreshing.RULE,
    windows.SHORTER,
    windows.OUTSIDE,
    project.UNPARTITIONED,
    project.MODEL_NAME,
    project.COLUMN_NAME,
    project.DEAD,
    project.UNDECLARED,
    secrets.RULE,
    UNUSED,
    UNKNOWN,
    UNREASONED,
)
BY_CODE = {rule.code: rule for rule in RULES}
