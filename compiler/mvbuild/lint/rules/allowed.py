"""The rules on allowances themselves; `lint.allowances` finds their violations."""

from __future__ import annotations

from mvbuild.lint.model import Rule

_SQL = "SELECT name FROM {{ ref('customers') }} LIMIT 10 -- mvbuild: allow(limit-without-order)"
_RIGHT = {"models/names.sql": f"{_SQL} any ten names will do\n"}

UNUSED = Rule(
    code="unused-allowance",
    level="warning",
    title="An allowance that allows nothing.",
    why=("It would hide a later finding. Not reported for rules that are off, or that know too little to report anything."),
    help="Remove it.",
    fix="Removes it.",
    wrong={"models/names.sql": "SELECT name FROM {{ ref('customers') }} -- mvbuild: allow(select-star) they are few\n"},
    right=_RIGHT,
)
UNKNOWN = Rule(
    code="unknown-allowance",
    level="error",
    title="An allowance names an unknown rule, or cannot be parsed.",
    why="It has no effect.",
    help="Write `-- mvbuild: allow(rule) reason`.",
    wrong={"models/names.sql": "SELECT name FROM {{ ref('customers') }} -- mvbuild: allow(no-limits) any will do\n"},
    right=_RIGHT,
)
UNREASONED = Rule(
    code="allowance-without-reason",
    level="warning",
    title="An allowance without a reason.",
    why="Later readers will not know whether it still applies. The allowance still takes effect.",
    help="Write the reason after it: `-- mvbuild: allow(rule) reason`.",
    wrong={"models/names.sql": f"{_SQL}\n"},
    right=_RIGHT,
)
