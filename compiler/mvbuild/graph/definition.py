"""Graph + node -> the definition of its view: the user's SQL with full table names, and ephemeral models and named windows inlined."""

from __future__ import annotations

import re
from collections.abc import Callable

from mvbuild.cache.keys import digest
from mvbuild.diagnostics import ProjectError
from mvbuild.formats.record import TableType
from mvbuild.graph.model import Graph, ModelNode, Node, NodeId, TableNode
from mvbuild.names import TableIdentifier, quote
from mvbuild.parse.model import Query, Read
from mvbuild.parse.splice import Replacement, splice
from mvbuild.source import MappedText, Segment, SourceMap, Span

_WINDOW = re.compile(r"\bwindow\b(?!\s*\()", re.IGNORECASE)
_FINGERPRINT = re.compile("[0-9a-f]{64}")
Relation = Callable[[NodeId, Read], "str | MappedText"]
"""The text for a node that a query reads: a name, or a subquery in parentheses."""


def definition(graph: Graph, node: ModelNode) -> MappedText:
    """The SQL of the node's view as it goes into the catalog, made once per graph. Raises ProjectError for one that is `undefined`."""
    if node.id in graph.undefined:
        raise ProjectError([graph.undefined[node.id]])
    found = graph.definitions.get(node.id)
    if found is None:
        found = graph.definitions[node.id] = _definition(graph, node)
    return found


def fingerprint_of(graph: Graph, node: ModelNode) -> str:
    """The fingerprint of the node's definition."""
    sql = definition(graph, node)
    key = fingerprint_key(sql)
    found = graph.project.cache.fingerprints.get(key)
    if found is None or not _FINGERPRINT.fullmatch(found):
        from mvbuild.parse.fingerprint import fingerprint

        found = fingerprint(sql.text)
        graph.project.cache.fingerprints.put(key, found)
    return found


def fingerprint_key(sql: MappedText) -> str:
    """The key of a definition's fingerprint in the cache."""
    return digest("fingerprint", sql.text)


def _definition(graph: Graph, node: ModelNode) -> MappedText:
    def relation(id_: NodeId, read: Read) -> str | MappedText:
        parent = graph.nodes[id_]
        if isinstance(parent, ModelNode) and parent.materialized == "ephemeral":
            return parenthesized(definition(graph, parent))
        return _name(parent) + _travel(read)

    made = replace_reads(node.query, node.reads, relation, keep_names=True)
    if not _WINDOW.search(made.text):
        return made
    # Imported here because most queries name no window, and a run with nothing to do parses none.
    from mvbuild.parse.named_windows import without_named_windows

    return without_named_windows(made)


def _name(node: Node) -> str:
    outside = node.outside if isinstance(node, TableNode) else None
    return table_sql(outside.type, outside.identifier) if outside else node.identifier.sql


def table_sql(kind: TableType, identifier: TableIdentifier) -> str:
    """A table for Spark SQL, valid in any session that knows its catalog or its format.

    Spark finds formats through its session catalog, which a view must name: otherwise the view's own catalog would be asked for `delta`. No
    SQL of Spark reads an Iceberg table by its path; the name only identifies the table for people.
    """
    if kind == "iceberg-metastore":
        return identifier.sql
    # Hadoop's file systems know S3 only as s3a.
    path = identifier.name.replace("s3://", "s3a://", 1) if identifier.name.startswith("s3://") else identifier.name
    return f"spark_catalog.{kind.partition('-')[0].removesuffix('lake')}.{quote(path)}"


def replace_reads(query: Query, reads: tuple[NodeId, ...], relation: Relation, *, keep_names: bool = False) -> MappedText:
    """The query with `relation` in place of every table. With `keep_names`, an alias is added only if columns need it."""
    last_names = [r.parts[-1].lower() for r in query.reads if r.alias is None]
    replacements = {}
    for index, (read, id_) in enumerate(zip(query.reads, reads, strict=True)):
        text = relation(id_, read)
        replacements[index] = Replacement(text=text, alias=_alias(read, text, last_names, keep_names))
    return splice(query, replacements)


def parenthesized(sql: MappedText) -> MappedText:
    """`(sql)`, with a line break before the bracket so that a trailing comment does not hide it."""
    first, last = sql.map.segments[0].origin, sql.map.segments[-1].origin
    segments = (
        Segment(0, Span(first.file, first.start, first.start), verbatim=False),
        *(Segment(s.offset + 1, s.origin, s.verbatim) for s in sql.map.segments),
        Segment(len(sql.text) + 1, Span(last.file, last.end, last.end), verbatim=False),
    )
    return MappedText(f"({sql.text}\n)", SourceMap(segments))


def _alias(read: Read, text: str | MappedText, last_names: list[str], keep_names: bool) -> str | None:
    """The name by which the rest of the query refers to the table, if its replacement does not provide it."""
    if read.alias is not None:
        return None
    name = read.parts[-1]
    if keep_names and isinstance(text, str) and not read.qualifiers and text.split(" ")[0].endswith("." + quote(name)):
        return None
    return name if last_names.count(name.lower()) == 1 else "_".join(read.parts)


def _travel(read: Read) -> str:
    if read.travel is None:
        return ""
    value = read.travel.value if isinstance(read.travel.value, int) else "'" + read.travel.value.replace("'", "\\'") + "'"
    return f" {read.travel.kind.upper()} AS OF {value}"
