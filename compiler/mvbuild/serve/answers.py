"""model | query + RunSession -> Answer: the SQL that returns the rows, every table pinned to one observation, every MV by its policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, ProjectError, error
from mvbuild.freshness.clock import columns_below
from mvbuild.freshness.leaves import Inputs, inputs, is_leaf, place_of
from mvbuild.freshness.observed import Leaf, Pin, World
from mvbuild.freshness.pins import leaf_table
from mvbuild.graph.definition import replace_reads
from mvbuild.graph.model import ModelNode, Node, NodeId, SeedNode
from mvbuild.parse.clock_reads import clock_reads, values_at, with_values
from mvbuild.parse.model import Query, Read
from mvbuild.parse.splice import cut
from mvbuild.ports.catalog import CommitConflict
from mvbuild.ports.engine import QueryError, SnapshotGone
from mvbuild.ports.session import session_of
from mvbuild.refresh.queries import diagnostic
from mvbuild.refresh.session import RunSession
from mvbuild.refresh.sql import pinned_relation, pinned_sql, pinned_table
from mvbuild.serve.outside import meet
from mvbuild.serve.policy import Served, ServingDecision, choose, read_now
from mvbuild.source import MappedText, SourceFile, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the engine has to run, and what every MV in it is served from."""

    sql: MappedText
    served: tuple[Served, ...]
    name: str
    """The name of what was requested, for messages."""
    span: Span
    """Where it was written, for errors without a place."""

    @contextmanager
    def explained(self) -> Iterator[None]:
        """QueryError -> ProjectError; CommitConflict if a pinned snapshot is gone, because reading the tables again corrects that."""
        try:
            yield
        except SnapshotGone as exc:
            raise CommitConflict(str(exc)) from exc
        except QueryError as exc:
            raise ProjectError([diagnostic(exc, self.sql, self.name, self.span)]) from exc


def of_node(session: RunSession, node: Node) -> Answer:
    """All rows of a model, seed, view or table."""
    choice = _chosen(session, [node.id])
    graph, span, expanded = session.world.graph, _span(node), choice.expanded
    node = graph.nodes[node.id]
    if isinstance(node, ModelNode) and not is_leaf(node, expanded):
        if node.id in graph.undefined:
            raise ProjectError([graph.undefined[node.id]])
        below = inputs(graph, node.query, node.reads, expanded)
        pins = _pins(session, below, {leaf: place.span for leaf in below.leaves if (place := place_of(graph, node, leaf.node))}, span)
        sql = _at_instant(session, pinned_sql(graph, node.query, node.reads, pins, session.schema_pin, expanded), below)
    else:
        query, reads = _whole(node), (node.id,)
        pins = _pins(session, inputs(graph, query, reads, expanded), {}, span)
        relation = pinned_relation(graph, node.id, query.reads[0], pins, session.schema_pin, expanded)
        sql = _text(f"SELECT * FROM {relation.text if isinstance(relation, MappedText) else relation}")
    return Answer(sql=sql, served=choice.served, name=_name(node), span=span)


def of_query(session: RunSession, query: Query, reads: tuple[NodeId, ...], loose: frozenset[NodeId]) -> Answer:
    """The rows of a query. Tables in `loose` stay as written: the catalog does not have them, but the engine may."""
    span = query.sql.span(0, len(query.sql.text))
    kept = [(read, id) for read, id in zip(query.reads, reads, strict=True) if id not in loose]
    bound = Query(sql=query.sql, reads=tuple(read for read, _ in kept), columns=query.columns)
    ids = tuple(id for _, id in kept)
    choice = _chosen(session, read_now(bound, ids))
    graph = session.world.graph
    places = {Leaf.of(id, read.travel): read.span for read, id in kept}
    pins = _pins(session, inputs(graph, bound, ids, choice.expanded), places, span)

    def relation(id_: NodeId, read: Read) -> str | MappedText:
        if id_ in loose:
            return cut(query.sql, read.start, read.travel.end if read.travel else read.end)
        return pinned_relation(graph, id_, read, pins, session.schema_pin, choice.expanded)

    sql = replace_reads(query, reads, relation)
    if not loose:
        sql = _at_instant(session, sql, inputs(graph, bound, ids, choice.expanded))
    return Answer(sql=sql, served=choice.served, name="sql", span=span)


def of_version(session: RunSession, node: ModelNode, snapshot_id: int) -> Answer:
    """The rows that an MV's storage had at one of its snapshots."""
    storage = session.world.observed.table(node.storage)
    assert storage is not None, "a snapshot has a table"
    pin = Pin(table=storage, snapshot_id=snapshot_id, ref=None, moves=False)
    sql = _text(f"SELECT * FROM {pinned_table(pin, session.schema_pin, own_version=True)}")
    return Answer(sql=sql, served=(), name=node.model.name, span=_span(node))


def _chosen(session: RunSession, roots: Iterable[NodeId]) -> ServingDecision:
    """What every MV in the query is served from, including MVs of other writers; the session gets the matching world."""
    met = meet(session.world, session.catalog, session.sources)
    choice = choose(met.world, met.freshness, roots, session.clock.now_ms())
    session.world = met.answered(choice.expanded)
    return choice


def _at_instant(session: RunSession, sql: MappedText, below: Inputs) -> MappedText:
    """The query at the instant of the observation: MVs that are read from their storage were compared with the same one."""
    columns = columns_below(session.world, below)
    names = [read.name for read in clock_reads(sql.text, columns)]
    if not names:
        return sql
    zone = session_of(session.engine.settings()).zone
    return with_values(sql, values_at(names, session.world.observed.at_ms, zone), columns)


def _pins(session: RunSession, below: Inputs, places: Mapping[Leaf, Span], span: Span) -> dict[Leaf, Pin]:
    """`places`: where leaves were named; `span` is used for all others."""
    pins = session.pins(below)
    missing = [_missing(session.world, leaf, places.get(leaf, span)) for leaf in below.leaves if leaf not in pins]
    if missing:
        raise ProjectError(missing)
    return pins


def _missing(world: World, leaf: Leaf, span: Span) -> Diagnostic:
    node, table = world.graph.nodes[leaf.node], leaf_table(world.graph, leaf)
    broken = world.observed.unreadable(table)
    if broken is not None:
        return error(broken.code, broken.reason, span, help=broken.help)
    if leaf.travel is not None and world.observed.table(table) is not None:
        return error("missing-table", f"{table} no longer has version {leaf.travel[1]!r}", span)
    help = "Build it: mvbuild run" if isinstance(node, ModelNode | SeedNode) else ""
    return error("missing-table", f"{table} does not exist", span, help=help)


def _whole(node: Node) -> Query:
    text = _text(_name(node))
    span = text.span(0, len(text.text))
    read = Read(kind="name", parts=(text.text,), start=0, end=len(text.text), span=span, alias=None, travel=None, qualifiers=())
    return Query(sql=text, reads=(read,), columns=None)


def _text(sql: str) -> MappedText:
    return MappedText.of(SourceFile("sql", sql))


def _name(node: Node) -> str:
    return node.model.name if isinstance(node, ModelNode) else str(node.identifier)


def _span(node: Node) -> Span:
    if isinstance(node, ModelNode):
        return node.model.file.line_span(1)
    return Span(SourceFile(node.seed.path if isinstance(node, SeedNode) else str(node.identifier), ""), 0, 0)
