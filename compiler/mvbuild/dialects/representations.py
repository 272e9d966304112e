"""model + columns of its view + columns of what it reads -> the view's SQL in every dialect, or why it is not published in one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from sqlglot import exp
from sqlglot.dialects.dialect import Dialects

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, Note, ProjectError, did_you_mean, error
from mvbuild.dialects.judging import Refusal
from mvbuild.dialects.proven import ENGINES, proofs
from mvbuild.dialects.translation import translate
from mvbuild.graph.definition import definition
from mvbuild.graph.model import Graph, ModelNode, Node, TableNode, ViewNode
from mvbuild.graph.view_text import further_dialects, storage_select
from mvbuild.lineage.bind import bind
from mvbuild.lineage.model import Bound
from mvbuild.lineage.schemas import NO_SCHEMAS, Schemas
from mvbuild.lineage.statement import Input
from mvbuild.names import TableIdentifier
from mvbuild.parse.dialect import parse, tokenize
from mvbuild.parse.model import Query
from mvbuild.parse.sql import parse_query
from mvbuild.source import MappedText

DIALECTS = tuple(sorted({d.value for d in Dialects} - {"", "dax", "prql", "solr", "tableau"}))
"""The dialects of sqlglot that are the SQL of an engine: a view of a storage can be written in all of them."""
_INSTEAD = "Set `catalog_view: storage`, or leave the dialect out of `dialects:`."
_HELP = f"Use what docs/trino.md lists. {_INSTEAD}"
_HINTS = {
    "`avg(": "Write `CAST(sum(x) AS DOUBLE) / nullif(count(x), 0)` for integers.",
    "`double": "NaN compares differently: keep such values as decimals.",
    "`int IN (q": "Write EXISTS.",
    "`bigint IN (q": "Write EXISTS.",
    "`string IN (q": "Write EXISTS.",
    "`upper(": "Special letters differ.",
    "`lower(": "Special letters differ.",
    "`trim(string)": "Write `trim(BOTH ' ' FROM s)`, which removes spaces alone everywhere.",
    "`row_number(": "Which row comes first among equal ones is not determined; rank() is.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of the world when a definition is written for another engine."""

    schemas: Schemas = NO_SCHEMAS
    """The columns of base tables."""
    is_all: bool = False
    """Whether no more types will become known for the tables in `schemas`: anything unproven is refused then."""
    dialects_of: Callable[[ViewNode], Iterable[str]] | None = None
    """The representations of a view that mvbuild did not write."""


NOTHING_KNOWN = Known()


def representations(
    graph: Graph, node: ModelNode, columns: Sequence[str], *, of_storage: bool, known: Known = NOTHING_KNOWN
) -> dict[str, str]:
    """Dialect -> SQL. Raises ProjectError if a dialect cannot express it."""
    storage = node.storage if of_storage else None
    found = {"spark": storage_select(storage, columns) if storage else definition(graph, node).text}
    further = further_dialects(node)
    if not further:
        return found
    if storage:
        return found | {dialect: _of_storage(storage, columns, dialect) for dialect in further}
    bound = bind(graph, known.schemas, [node.id])
    problems: list[Diagnostic] = []
    for dialect in further:
        sql, wrong = _written(graph, node, dialect, bound, known)
        problems += wrong
        if sql is not None:
            found[dialect] = sql
    if problems:
        raise ProjectError(problems)
    return found


def dialect_problems(graph: Graph, nodes: Iterable[Node], known: Known = NOTHING_KNOWN) -> list[Diagnostic]:
    """Dialects that do not exist, and definitions that are not published in a dialect."""
    problems: list[Diagnostic] = []
    for node in nodes:
        if not isinstance(node, ModelNode) or node.materialized == "ephemeral" or node.id in graph.undefined:
            continue
        if not node.model.config.dialects:
            continue
        unknown = _unknown_dialects(node)
        problems += unknown
        if not unknown and node.model.config.catalog_view == "definition":
            try:
                representations(graph, node, (), of_storage=False, known=known)
            except ProjectError as exc:
                problems += exc.diagnostics
    return problems


def _unknown_dialects(node: ModelNode) -> list[Diagnostic]:
    """One diagnostic for each unknown dialect."""
    config = node.model.config
    unknown = [d for d in config.dialects if d.lower() not in DIALECTS]
    return [
        error("bad-config", f"Unknown SQL dialect '{d}'", config.spans.get("dialects"), help=did_you_mean(d.lower(), DIALECTS))
        for d in unknown
    ]


def _of_storage(storage: TableIdentifier, columns: Sequence[str], dialect: str) -> str:
    """Only names, without the catalog, for which each engine has its own name."""
    text = storage_select(storage, columns)
    (tree,) = parse(tokenize(text), text)
    assert tree is not None
    for table in tree.find_all(exp.Table):
        table.set("catalog", None)
    return tree.sql(dialect)


def _written(graph: Graph, node: ModelNode, dialect: str, bound: Bound, known: Known) -> tuple[str | None, list[Diagnostic]]:
    if dialect not in ENGINES:
        message = f"The definition of '{node.model.name}' is not published for {dialect}: its results there are not proven"
        span = node.model.config.spans.get("dialects") or node.model.file.line_span(1)
        return None, [error("unsupported-dialect", message, span, help=_INSTEAD)]
    text = definition(graph, node)
    query, _ = parse_query(text)
    if query is None:
        return None, [_diagnostic(node, dialect, text, Refusal("this query", 0, len(text.text)))]
    by_key = {n.identifier.key: n for n in graph.nodes.values() if not (isinstance(n, ModelNode) and n.materialized == "ephemeral")}
    reads = [by_key.get(TableIdentifier(node.identifier.catalog, r.parts[1:-1], r.parts[-1]).key) for r in query.reads]
    inputs = [_input(read, query, i, bound) for i, read in enumerate(reads)]
    found = translate(query, inputs, node.identifier.catalog, proofs(dialect), is_stored=node.storage is not None)
    wrong = [*_unreadable(query, reads, dialect, known), *found.refusals]
    below = (graph.nodes[id] for id in graph.ancestors([node.id]))
    if known.is_all and all(known.schemas.of(n.identifier) for n in below if isinstance(n, TableNode)):
        wrong += [Refusal(f"{r.what}, whose types are not known", r.start, r.end) for r in found.unknown]
    return found.sql, [_diagnostic(node, dialect, query.sql, refusal) for refusal in wrong]


def _input(node: Node | None, query: Query, index: int, bound: Bound) -> Input:
    read = query.reads[index]
    spellings = (tuple(p.lower() for p in read.parts),)
    if node is None or read.travel is not None:
        return Input(columns=(), complete=False, spellings=spellings)
    return Input(columns=bound.known(node.id), complete=node.id in bound.columns, spellings=spellings)


def _unreadable(query: Query, reads: Sequence[Node | None], dialect: str, known: Known) -> Iterable[Refusal]:
    """Views that this definition reads and the engine cannot read."""
    for read, node in zip(query.reads, reads, strict=True):
        if isinstance(node, ModelNode):
            has = dialect in further_dialects(node)
        elif isinstance(node, ViewNode) and known.dialects_of is not None:
            has = dialect in known.dialects_of(node)
        else:
            continue
        if not has:
            help = f"Add `dialects: [{dialect}]` to it." if isinstance(node, ModelNode) else _INSTEAD
            yield Refusal(f"{'.'.join(read.parts[1:])}, a view that has no SQL for {dialect}", read.start, read.end, help)


def _diagnostic(node: ModelNode, dialect: str, text: MappedText, refusal: Refusal) -> Diagnostic:
    message = f"'{node.model.name}' is not published for {dialect}, which may return different results for {refusal.what}"
    help = refusal.help or next((hint for start, hint in _HINTS.items() if refusal.what.startswith(start)), "")
    asked = node.model.config.spans.get("dialects")
    notes = (Note(message=f"{dialect} is asked for here", span=asked),) if asked else ()
    return error(
        "unsupported-dialect", message, text.span(refusal.start, refusal.end), help=f"{help} {_INSTEAD}" if help else _HELP, notes=notes
    )
