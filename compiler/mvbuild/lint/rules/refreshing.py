"""Refresh policies that request incremental refreshes -> the MVs that can never have one, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp
from sqlglot.errors import SqlglotError

from mvbuild.diagnostics import Note
from mvbuild.freshness.expansion import expanded_sql
from mvbuild.freshness.leaves import node_inputs
from mvbuild.freshness.observed import Leaf
from mvbuild.graph.model import ModelNode, TableNode
from mvbuild.incremental.algebra import leaves as leaves_of
from mvbuild.incremental.building import LeafColumns
from mvbuild.incremental.clock import with_calls
from mvbuild.incremental.cuts import divisions
from mvbuild.incremental.from_clause import MARKER
from mvbuild.incremental.hypothetical import answers
from mvbuild.incremental.inputs import span_of
from mvbuild.incremental.reasons import CODES, Refused
from mvbuild.incremental.shape import Shape, readable, shape_of
from mvbuild.lineage.expression_type import Types
from mvbuild.lineage.types import Type, parsed
from mvbuild.lint.facts import Facts
from mvbuild.lint.model import Found, Options, Rule
from mvbuild.lint.rules.windows import is_foreign
from mvbuild.lint.statement import relations, selects
from mvbuild.parse.clock_reads import clock_reads
from mvbuild.parse.determinism import nondeterministic_tokens, why
from mvbuild.parse.respelling import trees_of
from mvbuild.ports.states import Partition
from mvbuild.source import MappedText, Span

_ASKING = ("incremental", "incremental_strict")
_OF_OTHER_QUERIES = ("not-linear", "no-aggregate", "no-partitions", "no-children", "rows-removed", "no-key")
"""Codes that only say that a strategy is for other queries."""
_ANY = "bigint"
"""The most permissive type, for a column of unknown type."""


def check(facts: Facts, node: ModelNode, options: Options) -> Iterator[Found]:  # noqa: ARG001
    if node.storage is None or node.model.config.refresh_policy not in _ASKING:
        return
    leaves = node_inputs(facts.graph, node).leaves
    numbers = {leaf: at for at, leaf in enumerate(leaves)}
    text = expanded_sql(facts.graph, node.query, node.reads, lambda leaf: f"`{MARKER}{numbers[leaf]}`")
    refused = _refusal(facts, node, leaves, text)
    if refused is None:
        return
    code, message, span = refused
    policy = node.model.config.refresh_policy
    sentence = f"'{node.model.name}' can never be refreshed incrementally, and its policy is {policy} ({code}): {message}"
    own = node.model.file
    notes = () if span is None or span.file is own else (Note(message="here", span=span),)
    place = span if span is not None and span.file is own else node.model.config.spans.get("refresh_policy") or own.line_span(1)
    yield Found(message=sentence, span=place, help=CODES[code][1], notes=notes, of_file=True)


def _refusal(facts: Facts, node: ModelNode, leaves: Sequence[Leaf], text: MappedText) -> tuple[str, str, Span | None] | None:
    """The reason that certainly prevents every strategy, whatever changes: a code, a message and a place."""
    reads = clock_reads(text.text)
    tokens = nondeterministic_tokens(text.text)
    clock = next((token for token in tokens if not any(read.start <= token.start < read.end for read in reads)), None)
    if clock is not None:
        return "nondeterministic", why(clock), text.span(clock.start, clock.end + 1)
    tables = [facts.graph.nodes[leaf.node] for leaf in leaves]
    if tables and all(isinstance(table, TableNode) and is_foreign(table) for table in tables):
        return "non-iceberg-source", "changes in a table of another format cannot be read", None
    try:
        guessed = _guessed(text)
    except (SqlglotError, RecursionError):
        return None
    known = {at: found for at, leaf in enumerate(leaves) if (found := _known(facts, leaf)) is not None}
    columns = [LeafColumns(types=known.get(at, guessed.get(at, {}))) for at in range(len(leaves))]
    try:
        return _refused_by_all(node, facts, shape_of(with_calls(text.text), columns, None), text)
    except Refused as exc:
        is_sure = len(known) == len(leaves) or isinstance(exc.node, (exp.With, exp.Func))
        return (exc.code, exc.message, span_of(text, exc)) if is_sure else _limited(node, facts, text)
    except RecursionError:
        return None


def _limited(node: ModelNode, facts: Facts, text: MappedText) -> tuple[str, str, Span | None] | None:
    """A LIMIT of the result needs no columns to be found; without ORDER BY, or with OFFSET, only an MV that others read has a strategy."""
    (tree,) = trees_of(text.text)
    while isinstance(tree, exp.Subquery) and not tree.args.get("limit"):
        tree = tree.this
    limit, offset, order = (tree.args.get(key) if tree is not None else None for key in ("limit", "offset", "order"))
    if limit is None or (order is not None and offset is None) or _has_children(node, facts) or _keeps_views(node):
        return None
    refused = Refused("limit", "LIMIT depends on every row", limit)
    return refused.code, refused.message, span_of(text, refused)


def _keeps_views(node: ModelNode) -> bool:
    return node.model.config.auxiliary_views != "never"


def _has_children(node: ModelNode, facts: Facts) -> bool:
    return any(isinstance(facts.graph.nodes[child], ModelNode) for child in facts.graph.children[node.id])


def _refused_by_all(node: ModelNode, facts: Facts, shape: Shape, text: MappedText) -> tuple[str, str, Span | None] | None:
    """Each table is tried alone, with new rows only: the change that allows most strategies."""
    if _keeps_views(node) and any(divisions(shape, len(node_inputs(facts.graph, node).leaves))):
        return None
    has_children = _has_children(node, facts)
    partitions = tuple(
        Partition(column=p.column, transform=p.transform if p.width is None else f"{p.transform}[{p.width}]")
        for p in node.model.config.partition_by
    )
    found: list[Refused] = []
    for leaf in sorted(leaves_of(shape.root)):
        asked = answers(
            shape,
            "inserts",
            changed=frozenset({leaf}),
            partition_by=partitions,
            float_tolerance=node.model.config.float_tolerance,
            has_children=has_children,
        )
        for one in asked:
            if one.refused is None:
                return None
            found.append(one.refused)
    if not found:
        return None
    telling = next((one for one in found if one.code not in _OF_OTHER_QUERIES), found[-1])
    return telling.code, readable(telling.message, shape), span_of(text, telling)


def _known(facts: Facts, leaf: Leaf) -> Types | None:
    columns = facts.columns.get(leaf.node) if leaf.travel is None else None
    return {column.name: parsed(column.type) if column.type else _ANY for column in columns} if columns else None


def _guessed(text: MappedText) -> Mapping[int, Types]:
    """Leaf -> the columns that the query itself shows it to have."""
    (tree,) = trees_of(text.text)
    found: dict[int, dict[str, Type | None]] = {}
    for select in selects(tree) if tree is not None else ():
        tables = relations(select)
        by_name = {t.alias_or_name.lower(): _leaf(t) for t in tables}
        for column in select.find_all(exp.Column):
            own = column.find_ancestor(exp.Select) is select
            name = column.table.lower() or (tables[0].alias_or_name.lower() if len(tables) == 1 and own else "")
            leaf = by_name.get(name)
            if leaf is not None and isinstance(column.this, exp.Identifier):
                found.setdefault(leaf, {})[column.name] = _ANY
    return found


def _leaf(table: exp.Expr) -> int | None:
    name = table.name if isinstance(table, exp.Table) else ""
    return int(name[len(MARKER) :]) if name.startswith(MARKER) else None


_RECENT = "SELECT id, amount FROM {{ ref('orders') }} ORDER BY amount DESC, id LIMIT 10 OFFSET 10\n"

RULE = Rule(
    code="never-incremental",
    level="warning",
    title="The refresh policy of an MV asks for incremental refreshes, and its query never allows one.",
    why=(
        "With `incremental` every refresh is a full one with a warning, with `incremental_strict` an error. Not reported if it "
        "depends on what changes. [incremental.md](incremental.md) explains the reasons; `mvbuild explain` shows the query as "
        "mvbuild sees it."
    ),
    help="Change the query, or set `refresh_policy: auto`.",
    check=check,
    wrong={"models/largest.sql": "{{ config(refresh_policy='incremental') }}\n" + _RECENT},
    right={"models/largest.sql": "{{ config(refresh_policy='auto') }}\n" + _RECENT},
)
