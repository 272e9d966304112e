"""the user's query + the tree of it, written as SQL again -> whether Spark takes them for one query.

The rewrites are made of the tree. Where the tree is not the query, whatever is made of it is wrong.
"""

from __future__ import annotations

from mvbuild.ports.engine import Engine, QueryError
from mvbuild.refresh.equivalence import plan_difference, with_plain_columns


def round_trip_difference(engine: Engine, written: str, generated: str, columns: int) -> str:
    """Empty if both have the same optimized plan; else why that is not known."""
    try:
        one, other = (engine.explain(with_plain_columns(sql, columns)) for sql in (written, generated))
    except QueryError as exc:
        return f"Spark cannot plan it: {exc}"
    return plan_difference(one, other, physical=False)
