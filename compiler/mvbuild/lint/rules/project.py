"""Models in their graph -> duplicates, undeclared tables, models that are never read, and storages that have grown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mvbuild.diagnostics import Note
from mvbuild.graph.model import ModelNode, TableNode
from mvbuild.incremental.inputs import total
from mvbuild.lint.facts import Facts
from mvbuild.lint.model import Found, Option, Options, Rule
from mvbuild.lint.rules.values import bytes_of, pattern, size, texts
from mvbuild.source import Span


def duplicate(facts: Facts, node: ModelNode, options: Options) -> Iterator[Found]:  # noqa: ARG001
    if node.materialized == "ephemeral":
        return
    same = [other for other in facts.same_definition(node) if other.materialized != "ephemeral"]
    others = [other for other in same if other.id != node.id]
    # If several are linted together, the first one is not reported.
    if not others or (same[0].id == node.id and any(other.id in facts.selected for other in others)):
        return
    first = others[0]
    message = f"'{node.model.name}' is the same query as '{first.model.name}'"
    notes = (Note(message="the other", span=first.model.file.line_span(1)),)
    yield Found(message=message, span=node.model.file.line_span(1), notes=notes, of_file=True)


def undeclared(facts: Facts, node: ModelNode, options: Options) -> Iterator[Found]:  # noqa: ARG001
    for read, id in zip(node.query.reads, node.reads, strict=True):
        table = facts.graph.nodes[id]
        if isinstance(table, TableNode) and table.source is None and read.kind == "name":
            yield Found(message=f"No source declares '{'.'.join(read.parts)}'", span=read.span)


def dead(facts: Facts, node: ModelNode, options: Options) -> Iterator[Found]:
    if facts.graph.children.get(node.id) or _is_marked(node, options):
        return
    message = f"Nothing reads '{node.model.name}', and it is not marked as final"
    yield Found(message=message, span=node.model.file.line_span(1), of_file=True)


def _is_marked(node: ModelNode, options: Options) -> bool:
    config = node.model.config
    marks = options["marks"]
    names = {marks} if isinstance(marks, str) else set(marks)
    meta: Mapping[str, Any] = config.meta
    return bool(names & set(config.tags)) or any(meta.get(name) for name in names)


def unpartitioned(facts: Facts, node: ModelNode, options: Options) -> Iterator[Found]:
    storage = facts.world.observed.table(node.storage) if facts.world and node.storage else None
    if storage is None or storage.partition_by or node.model.config.partition_by:
        return
    size = total(storage, storage.current_snapshot_id, "total-files-size")
    if size > (bytes_of(options["above"]) or 0):
        message = f"The storage of '{node.model.name}' has {_shown(size)} and no partitioning"
        yield Found(message=message, span=node.model.file.line_span(1), of_file=True)


def _shown(size: float) -> str:
    units = ["B", "KB", "MB", "GB", "TB"]
    while size >= 1000 and len(units) > 1:
        size /= 1000
        units.pop(0)
    return f"{size:.4g} {units[0]}"


def model_name(facts: Facts, node: ModelNode, options: Options) -> Iterator[Found]:  # noqa: ARG001
    name = node.model.version.model if node.model.version else node.model.name
    if not re.fullmatch(options["pattern"], name):
        message = f"The name '{name}' does not match {options['pattern']}"
        yield Found(message=message, span=node.model.file.line_span(1), of_file=True)


def column_name(facts: Facts, node: ModelNode, options: Options) -> Iterator[Found]:
    known = facts.columns.get(node.id)
    named: list[tuple[str, Span | None]] = [(c.name, c.span) for c in known] if known else [(n, None) for n in node.query.columns or ()]
    for name, span in named:
        if not re.fullmatch(options["pattern"], name):
            message = f"The name of the column '{name}' does not match {options['pattern']}"
            yield Found(message=message, span=span or node.model.file.line_span(1), of_file=span is None)


_NAMES = "SELECT id, name FROM {{ ref('customers') }}\n"
_SNAKE = "[a-z][a-z0-9_]*"
_MARKED = "{{ config(meta={'final': true}) }}\n" + _NAMES

DUPLICATE = Rule(
    code="duplicate-definition",
    level="warning",
    title="Two models have the same query.",
    why="Comments and formatting aside. Both are stored and refreshed, and sooner or later only one of them is changed.",
    help="Let one of them read the other, or remove one.",
    check=duplicate,
    wrong={"models/names.sql": _NAMES, "models/people.sql": "-- All people\nselect id, name\nfrom {{ ref('customers') }}\n"},
    right={"models/names.sql": _NAMES, "models/people.sql": "SELECT id FROM {{ ref('names') }}\n"},
)
UNDECLARED = Rule(
    code="undeclared-source",
    level="warning",
    title="An undeclared table of the catalog is read.",
    why="A declared source can have a description and data tests, and is the one place to change when the table moves.",
    help="Declare it under `sources:` in a YAML file of the project, and write {{ source(...) }}.",
    check=undeclared,
    wrong={"models/names.sql": "SELECT name FROM crm.people\n"},
    right={
        "models/sources.yml": "sources: [{name: crm, tables: [{name: people}]}]\n",
        "models/names.sql": "SELECT name FROM {{ source('crm', 'people') }}\n",
    },
)
DEAD = Rule(
    code="dead-model",
    level="off",
    title="A model that nothing reads.",
    why="Off by default: people and tools outside of the project read its final models.",
    help="Remove it, or mark it: `meta: {final: true}`, or the tag `final`.",
    check=dead,
    options={"marks": Option(default=["final", "exposed"], doc="Tags, or keys of `meta`, that mark a model as final.", check=texts)},
    wrong={"models/names.sql": _NAMES},
    right={"models/names.sql": _MARKED},
)
UNPARTITIONED = Rule(
    code="unpartitioned-storage",
    level="info",
    title="A large storage has no partitioning.",
    why="Every read and every refresh must look at all files. Needs `--catalog`; reports nothing without it.",
    help="Set `partition_by`, preferably to columns of a GROUP BY or join that readers also filter by.",
    check=unpartitioned,
    needs="catalog",
    options={"above": Option(default="10GB", doc="The largest size without partitioning.", check=size)},
    wrong={"models/names.sql": _NAMES},
    right={"models/names.sql": "{{ config(partition_by=['bucket(16, id)']) }}\n" + _NAMES},
)
MODEL_NAME = Rule(
    code="model-name",
    level="warning",
    title="The name of a model does not match the naming pattern.",
    why="A folder may have its own pattern: `+lint: {model-name: {pattern: 'stg_[a-z0-9_]+'}}`.",
    help="Rename the file; `previous_name` keeps what is in the catalog.",
    check=model_name,
    options={"pattern": Option(default=_SNAKE, doc="A regular expression for the whole name.", check=pattern)},
    wrong={"models/CustomerNames.sql": _NAMES},
    right={"models/customer_names.sql": _NAMES},
)
COLUMN_NAME = Rule(
    code="column-name",
    level="off",
    title="The name of a column does not match the naming pattern.",
    why="Columns with unknown names, such as those of a star, are ignored.",
    help="Rename the column with AS.",
    check=column_name,
    options={"pattern": Option(default=_SNAKE, doc="A regular expression for the whole name.", check=pattern)},
    wrong={"models/names.sql": "SELECT id, name AS fullName FROM {{ ref('customers') }}\n"},
    right={"models/names.sql": "SELECT id, name AS full_name FROM {{ ref('customers') }}\n"},
)
