"""Clocks, random numbers and the session in a query -> findings."""

from __future__ import annotations

from collections.abc import Iterator

from mvbuild.graph.model import ModelNode
from mvbuild.lint.facts import Facts
from mvbuild.lint.model import Found, Options, Rule
from mvbuild.parse.steadiness import unsteady_tokens


def check(facts: Facts, node: ModelNode, options: Options) -> Iterator[Found]:  # noqa: ARG001
    text = node.query.sql
    found = list(unsteady_tokens(text.text))
    for token in found if found and facts.feeds_mv(node) else ():
        written = text.text[token.start : token.end + 1]
        what = "TABLESAMPLE takes other rows" if written.lower() == "tablesample" else f"{written} gives another value"
        message = f"{what} each time, so that an MV with it is never known to be fresh"
        yield Found(message=message, span=text.span(token.start, token.end + 1))


RULE = Rule(
    code="nondeterministic-function",
    level="warning",
    title="A query that an MV stores asks the clock, a random number or the session.",
    why=(
        "Its value is not that of the tables, so that the freshness of the MV is unknown: every run refreshes it, and in full. In a view "
        "that no MV reads it is fine."
    ),
    help="Take the value from a column, or ask where the MV is read: in a view over it.",
    check=check,
    wrong={"models/names.sql": "SELECT name, current_date() AS day FROM {{ ref('customers') }}\n"},
    right={"models/names.sql": "{{ config(materialized='view') }}\nSELECT name, current_date() AS day FROM {{ ref('customers') }}\n"},
)
