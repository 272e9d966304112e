"""The rules on allowances themselves; `lint.allowances` says where they are broken."""

from __future__ import annotations

from mvbuild.lint.model import Rule

_SQL = "SELECT name FROM {{ ref('customers') }} LIMIT 10 -- mvbuild: allow(limit-without-order)"
_RIGHT = {"models/names.sql": f"{_SQL} any ten names will do\n"}

UNUSED = Rule(
    code="unused-allowance",
    level="warning",
    title="An allowance allows what no rule finds.",
    why=(
        "It would hide the finding that somebody brings in later. It says nothing of rules that are off, or that know too little to say "
        "anything."
    ),
    help="Remove it.",
    fix="Removes it.",
    wrong={"models/names.sql": "SELECT name FROM {{ ref('customers') }} -- mvbuild: allow(select-star) they are few\n"},
    right=_RIGHT,
)
UNKNOWN = Rule(
    code="unknown-allowance",
    level="error",
    title="An allowance names a rule that does not exist, or cannot be read.",
    why="It allows nothing.",
    help="Write `-- mvbuild: allow(rule) reason`.",
    wrong={"models/names.sql": "SELECT name FROM {{ ref('customers') }} -- mvbuild: allow(no-limits) any will do\n"},
    right=_RIGHT,
)
UNREASONED = Rule(
    code="allowance-without-reason",
    level="warning",
    title="An allowance does not say why.",
    why="Who reads it later cannot tell whether it still holds. It allows what it names all the same.",
    help="Write the reason behind it: `-- mvbuild: allow(rule) reason`.",
    wrong={"models/names.sql": f"{_SQL}\n"},
    right=_RIGHT,
)
