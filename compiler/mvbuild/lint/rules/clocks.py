"""Clocks, random numbers and the session in a query -> findings."""

from __future__ import annotations

from collections.abc import Iterator

from mvbuild.graph.model import ModelNode
from mvbuild.lineage.moving_strings import moving_strings
from mvbuild.lint.facts import Facts
from mvbuild.lint.model import Found, Options, Rule
from mvbuild.parse.clock_reads import clock_reads
from mvbuild.parse.determinism import nondeterministic_tokens, why


def check(facts: Facts, node: ModelNode, options: Options) -> Iterator[Found]:  # noqa: ARG001
    text = node.query.sql
    reads = clock_reads(text.text)
    # Without the types of columns, a time may well be compared with text.
    moving = {found for found in moving_strings(text.text, dict) if ":" not in found}
    tokens = [token for token in nondeterministic_tokens(text.text, strictly=True) if token.text in moving]
    tokens += [token for token in nondeterministic_tokens(text.text) if token.text not in moving]
    found = [token for token in tokens if not any(read.start <= token.start < read.end for read in reads)]
    for token in found if found and facts.feeds_mv(node) else ():
        message = f"{why(token)}, so an MV that uses it is never known to be fresh"
        yield Found(message=message, span=text.span(token.start, token.end + 1))


RULE = Rule(
    code="nondeterministic-function",
    level="warning",
    title="A query stored by an MV uses a random number, the session, a user-defined function, or the exact time.",
    why=(
        "Its value does not come from the tables, so the freshness of the MV is unknown: every run refreshes it in full. In a view "
        "that no MV reads, it is fine, and so is the day: an MV that reads `current_date` is fresh until midnight."
    ),
    help="Take the value from a column, truncate the time (`date_trunc('HOUR', now())`), or compute it in a view over the MV.",
    check=check,
    wrong={"models/names.sql": "SELECT name, now() AS at FROM {{ ref('customers') }}\n"},
    right={"models/names.sql": "{{ config(materialized='view') }}\nSELECT name, now() AS at FROM {{ ref('customers') }}\n"},
)
