"""name | SQL text + the reader's session -> a DataFrame of the engine, with what each MV in it is served from."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from mvbuild.diagnostics import ProjectError
from mvbuild.freshness.observed import World
from mvbuild.graph.model import Graph, ModelNode, ViewNode
from mvbuild.graph.time_travel import bad_travel
from mvbuild.names import TableIdentifier
from mvbuild.parse.sql import parse_query
from mvbuild.refresh.session import RunSession
from mvbuild.serve import answers
from mvbuild.serve.answers import Answer
from mvbuild.serve.as_of import AsOf, snapshot_as_of
from mvbuild.serve.lookup import find_observed, resolve, with_name
from mvbuild.serve.outside import meet
from mvbuild.serve.policy import Served
from mvbuild.serve.words import caution, origin
from mvbuild.source import MappedText, SourceFile

Ask = Callable[[RunSession], Answer]

_LOG = logging.getLogger("mvbuild")
_SERVED: WeakKeyDictionary[Any, tuple[Served, ...]] = WeakKeyDictionary()
"""Beside the DataFrames and not in them: an attribute would hide a column of its name, or be hidden by it."""


def named(graph: Graph, name: str, as_of: AsOf | None) -> tuple[Graph, Ask]:
    """The graph with what has that name, to observe; and how to request all of its rows: a model, seed, source, view or table."""

    def ask(session: RunSession) -> Answer:
        node = find_observed(session.world, name)
        if as_of is None:
            return answers.of_node(session, node)
        session.world = meet(session.world, session.catalog, session.sources).world
        node = session.world.graph.nodes[node.id]
        snapshot = snapshot_as_of(session.world, node, as_of)
        assert isinstance(node, ModelNode), "only MVs have refreshes"
        return answers.of_version(session, node, snapshot.snapshot_id)

    return with_name(graph, name), ask


def names_in(text: str) -> tuple[str, ...]:
    """The tables of a query as written; none if the SQL is wrong, which `asked` reports."""
    query, _ = parse_query(MappedText.of(SourceFile("sql", text)))
    return tuple(".".join(read.parts) for read in query.reads) if query else ()


def asked(graph: Graph, text: str) -> tuple[Graph, Ask]:
    """The graph with the further tables of the query, to observe; and how to request the rows then. Raises ProjectError if the SQL is
    wrong."""
    query, problems = parse_query(MappedText.of(SourceFile("sql", text)))
    if query is None or problems:
        raise ProjectError(problems)
    reads, new = resolve(graph, query)

    def ask(session: RunSession) -> Answer:
        world = session.world
        loose = frozenset(id for id in new if _is_loose(world, world.graph.nodes[id].identifier))
        whole = ViewNode(id="sql", identifier=TableIdentifier("", (), "sql"), query=query, columns=(), source=None, reads=reads)
        wrong = tuple(bad_travel({**world.graph.nodes, whole.id: whole}))
        if wrong:
            raise ProjectError(wrong)
        return answers.of_query(session, query, reads, loose)

    return replace(graph, nodes={**new, **graph.nodes}), ask


def frame(session: RunSession, ask: Ask) -> Any:
    """The DataFrame. Logs one line for each MV in it, and a warning for each whose newest data failed its tests."""
    answer = ask(session)
    with answer.explained():
        found = session.engine.frame(answer.sql.text)
    _SERVED[found] = answer.served
    for one in answer.served:
        _LOG.info("%s: from the %s", one.identifier, origin(one))
        if one.failed:
            _LOG.log(logging.WARNING, "%s", caution(one))
    return found


def served(frame: Any) -> tuple[Served, ...]:
    """What each MV in a DataFrame from `read` or `sql` was served from."""
    if frame not in _SERVED:
        raise ValueError("This DataFrame does not come from mvbuild.read or mvbuild.sql: use the one that it was derived from.")
    return _SERVED[frame]


def _is_loose(world: World, identifier: TableIdentifier) -> bool:
    return identifier not in world.observed.states
