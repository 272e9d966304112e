"""the user's query + its tree, written as SQL again -> whether Spark reads them as the same query.

Rewrites are made from the tree, and conclusions from metadata rely on it. If the tree is not the query, all of that is wrong.
"""

from __future__ import annotations

from mvbuild.equivalence.lifted_aggregates import with_lifted_aggregates
from mvbuild.equivalence.spark_proof import plan_difference, with_plain_columns
from mvbuild.equivalence.values_text import with_selects_of_values
from mvbuild.incremental.column_pruning import pruned
from mvbuild.incremental.emit import Source, sql_of
from mvbuild.incremental.inputs import Input, marked, shape_of_inputs
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.shape import Shape
from mvbuild.incremental.table_changes import conditions_of
from mvbuild.ports.engine import Engine, QueryError
from mvbuild.ports.states import Schema
from mvbuild.refresh.pinned import Pinned
from mvbuild.refresh.session import RunSession
from mvbuild.refresh.sql import pinned_table
from mvbuild.storage.proof import PROVEN, mark_of


def round_trip_difference(engine: Engine, written: str, shape: Shape, source: Source) -> str:
    """Empty if both have the same optimized plan; otherwise why that is not certain."""
    outputs = [(name, f"column_{at}") for at, (name, _) in enumerate(shape.outputs)]
    generated = sql_of(pruned(shape.root), source, outputs=outputs)
    plain = with_selects_of_values(written)
    try:
        made = engine.explain(with_plain_columns(generated, len(outputs)), physical=False)
        found = _difference(engine, plain, made, len(outputs))
    except QueryError as exc:
        return f"Spark cannot plan it: {exc}"
    lifted = with_lifted_aggregates(plain) if found else plain
    try:
        return found if lifted == plain else _difference(engine, lifted, made, len(outputs)) and found
    except QueryError:
        return found


def _difference(engine: Engine, sql: str, made: str, count: int) -> str:
    return plan_difference(engine.explain(with_plain_columns(sql, count), physical=False), made, physical=False)


def mark_for_later(session: RunSession, pinned: Pinned, written: str, schema: Schema, settings: str) -> str:
    """The mark of the proof, if later changes could be found irrelevant; otherwise empty: an incremental refresh asks Spark itself."""
    node, pins, storage = pinned.node, pinned.pins, pinned.storage
    if session.changes is None or node.model.config.refresh_policy == "full":
        return ""
    given = marked(pinned.world, node, lambda leaf: Input(leaf=leaf, pin=pins[leaf], old=pins[leaf].snapshot_id))
    mark = mark_of(given.text.text, given.schemas, settings)
    known = storage.properties.get(PROVEN, "") if storage is not None else ""
    if known.startswith(mark):
        return known
    try:
        shape = shape_of_inputs(given, [field["name"] for field in schema["fields"]])
    except Refused:
        return ""
    if not any(conditions_of(shape, given).values()):
        return ""

    def source(read) -> str:  # type: ignore[no-untyped-def]
        one = given.inputs[read.leaf]
        return pinned_table(one.pin, session.schema_pin, own_version=one.leaf.travel is not None)

    return "" if round_trip_difference(session.engine, written, shape, source) else mark
