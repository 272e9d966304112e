"""World + a text that an MV's query consists of -> the first word that makes its rows depend on more than its tables and the day."""

from __future__ import annotations

from collections.abc import Iterator

from mvbuild.freshness.clock import columns_below
from mvbuild.freshness.leaves import Inputs
from mvbuild.freshness.observed import World
from mvbuild.freshness.pins import leaf_table
from mvbuild.lineage.moving_strings import moving_strings
from mvbuild.lineage.types import MOMENTS, Type, of_iceberg
from mvbuild.parse.determinism import may_be_bare, nondeterministic_word


def unsteady_word(world: World, below: Inputs, text: str, *, substituted: bool = True) -> str:
    """Empty if there is none. `below`: what the query reads, whose columns decide what `user` and `'today'` mean. `substituted`: whether
    Spark replaces `${name}`."""
    columns = columns_below(world, below) if may_be_bare(text) else None
    word = nondeterministic_word(text, substituted=substituted, columns=columns)
    return word or next((f"'{found}'" for found in moving_strings(text, lambda: _types_below(world, below))), "")


def _types_below(world: World, below: Inputs) -> dict[str, Type | None]:
    """Name in lower case -> the type of a column; that of a date or a timestamp, if columns of several types have the name."""
    found: dict[str, Type | None] = {}
    for name, type_ in _columns(world, below):
        if found.get(name.lower()) not in MOMENTS:
            found[name.lower()] = type_
    return found


def _columns(world: World, below: Inputs) -> Iterator[tuple[str, Type | None]]:
    tables = (world.observed.table(leaf_table(world.graph, leaf)) for leaf in below.leaves)
    views = (world.observed.view(world.graph.nodes[id].identifier) for id in below.views)
    for state in (*tables, *views):
        for field in state.schema["fields"] if state is not None else ():
            yield field["name"], of_iceberg(field["type"])
