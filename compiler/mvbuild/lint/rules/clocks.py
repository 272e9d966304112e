"""Clocks, random numbers and the session in a query -> findings."""

from __future__ import annotations

from collections.abc import Iterator

from mvbuild.graph.model import ModelNode
from mvbuild.lint.facts import Facts
from mvbuild.lint.model import Found, Options, Rule
from mvbuild.parse.determinism import nondeterministic_tokens, why


def check(facts: Facts, node: ModelNode, options: Options) -> Iterator[Found]:  # noqa: ARG001
    text = node.query.sql
    found = list(nondeterministic_tokens(text.text))
    for token in found if found and facts.feeds_mv(node) else ():
        message = f"{why(token)}, so an MV that uses it is never known to be fresh"
        yield Found(message=message, span=text.span(token.start, token.end + 1))


RULE = Rule(
    code="nondeterministic-function",
    level="warning",
    title="A query stored by an MV uses the clock, a random number, the session or a user-defined function.",
    why=(
        "Its value does not come from the tables, so the freshness of the MV is unknown: every run refreshes it in full. In a view "
        "that no MV reads, it is fine."
    ),
    help="Take the value from a column, or compute it in a view over the MV.",
    check=check,
    wrong={"models/names.sql": "SELECT name, current_date() AS day FROM {{ ref('customers') }}\n"},
    right={"models/names.sql": "{{ config(materialized='view') }}\nSELECT name, current_date() AS day FROM {{ ref('customers') }}\n"},
)
