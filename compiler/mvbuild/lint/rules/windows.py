"""Staleness windows and policies of MVs -> those that the tables below cannot keep."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from mvbuild.diagnostics import Note
from mvbuild.graph.model import Graph, ModelNode, NodeId, TableNode
from mvbuild.lint.facts import Facts
from mvbuild.lint.model import Found, Options, Rule
from mvbuild.project.setting_values import written
from mvbuild.source import Span

_NONE = timedelta()


def shorter(facts: Facts, node: ModelNode, options: Options) -> Iterator[Found]:  # noqa: ARG001
    if node.storage is None:
        return
    config = node.model.config
    own = config.max_staleness or _NONE
    parents = {id: span for id, span in _below(facts.graph, node) if isinstance(facts.graph.nodes[id], ModelNode)}
    for id, read in parents.items():
        parent = facts.graph.model(id)
        window = parent.model.config.max_staleness or _NONE
        if window <= own:
            continue
        mine = f"may be {written(own)} old" if own else "has no window, so it must be up to date"
        message = f"'{node.model.name}' {mine}, and '{parent.model.name}', which it reads, may be {written(window)} old"
        notes = (Note(message=f"the window of '{parent.model.name}'", span=parent.model.config.spans.get("max_staleness")),)
        yield Found(message=message, span=config.spans.get("max_staleness") or read, notes=notes, of_file=True)


def outside(facts: Facts, node: ModelNode, options: Options) -> Iterator[Found]:  # noqa: ARG001
    if node.storage is None or node.model.config.max_staleness:
        return
    for id, read in _below(facts.graph, node):
        table = facts.graph.nodes[id]
        if isinstance(table, TableNode) and table.source and is_foreign(table):
            name = f"{table.source.source}.{table.source.name}"
            yield Found(message=f"Every commit to '{name}', a table of type {table.source.type}, causes a full refresh", span=read)


def is_foreign(table: TableNode) -> bool:
    """Whether it is not an Iceberg table, so that its changes are unknown."""
    return table.source is not None and not table.source.type.startswith("iceberg")


def _below(graph: Graph, node: ModelNode) -> Iterator[tuple[NodeId, Span]]:
    """What a model reads, through views and ephemeral models, and where its query names it; each once."""
    seen: set[NodeId] = set()
    waiting = [(id, read.span) for id, read in zip(reversed(node.reads), reversed(node.query.reads), strict=True)]
    while waiting:
        id, span = waiting.pop()
        if id in seen:
            continue
        seen.add(id)
        found = graph.nodes[id]
        if isinstance(found, ModelNode) and found.storage is None:
            waiting += ((below, span) for below in reversed(found.reads))
        else:
            yield id, span


_FILES = {"models/parent.sql": "{{ config(freshness={'max_staleness': '1h'}) }}\nSELECT id FROM {{ ref('customers') }}\n"}
_DELTA = {"models/sources.yml": "sources: [{name: files, tables: [{name: prices, type: deltalake-filesystem, path: prices}]}]\n"}

SHORTER = Rule(
    code="window-shorter-than-parent",
    level="warning",
    title="An MV has a shorter staleness window than an MV that it reads.",
    why=(
        "It reads the storage of the other MV, which is not refreshed while it is inside its own window: the shorter window is not "
        "kept. An MV without a window must be up to date."
    ),
    help="Give it a window at least as long as that of what it reads, or shorten the other.",
    check=shorter,
    wrong={**_FILES, "models/child.sql": "{{ config(freshness={'max_staleness': '10m'}) }}\nSELECT id FROM {{ ref('parent') }}\n"},
    right={**_FILES, "models/child.sql": "{{ config(freshness={'max_staleness': '2h'}) }}\nSELECT id FROM {{ ref('parent') }}\n"},
)
OUTSIDE = Rule(
    code="source-without-window",
    level="warning",
    title="An MV without a staleness window reads a table that is not an Iceberg table.",
    why="Changes in such a table cannot be read, so every commit to it causes a full refresh.",
    help="Set `freshness: {max_staleness: ...}` to how old the MV may be, or keep the table in Iceberg.",
    check=outside,
    wrong={**_DELTA, "models/prices.sql": "SELECT price FROM {{ source('files', 'prices') }}\n"},
    right={
        **_DELTA,
        "models/prices.sql": "{{ config(freshness={'max_staleness': '6h'}) }}\nSELECT price FROM {{ source('files', 'prices') }}\n",
    },
)
