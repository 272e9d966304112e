"""Pinned + StrategyChoice -> Prepared: the query as Spark reads it, and everything that is known before a row is computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mvbuild.dataclass import dataclass
from mvbuild.formats.record import RefreshRecord
from mvbuild.freshness.clock import values_read
from mvbuild.graph.model import TestNode
from mvbuild.incremental.choice import StrategyChoice
from mvbuild.ports.commits import TableLayout, ViewCommit
from mvbuild.ports.engine import PreparedQuery
from mvbuild.ports.session import session_of
from mvbuild.refresh import queries
from mvbuild.refresh.choosing import possible
from mvbuild.refresh.configured_properties import with_properties
from mvbuild.refresh.data_tests import require_columns
from mvbuild.refresh.pinned import Pinned
from mvbuild.refresh.recording import record_of
from mvbuild.refresh.session import RunSession
from mvbuild.refresh.sql import pinned_query
from mvbuild.refresh.views import mv_commit
from mvbuild.storage.commits import require_recordable
from mvbuild.storage.format import is_embedded
from mvbuild.storage.layout import storage_layout
from mvbuild.storage.sessions import SESSION_KEY, encode_session, settings_mark


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A refresh that is ready to write."""

    pinned: Pinned
    choice: StrategyChoice
    """The strategy, unless it turns out to be impossible while it is carried out."""
    sql: str
    """The user's query, with every table at its pinned snapshot."""
    query: PreparedQuery
    layout: TableLayout
    """What the storage table must look like."""
    view: ViewCommit | None
    """The change of the view that is published with the rows, if it needs one."""
    record: RefreshRecord
    settings: str
    """The mark of the session's settings."""
    session_property: Mapping[str, str]


def prepare(session: RunSession, pinned: Pinned, choice: StrategyChoice, tests: Sequence[TestNode]) -> Prepared:
    """Raises ProjectError for a query that Spark refuses, or a result that cannot be stored, tested or recorded."""
    node, world = pinned.node, pinned.world
    conf = session.engine.settings()
    pinned = replace(pinned, clock=values_read(world, node, session_of(conf).zone))
    pinned, sql = pinned_query(pinned, session.schema_pin)
    query = queries.prepare(session.engine, sql, node)
    layout = storage_layout(node, query.schema)
    require_columns(world.graph, node, tests, query.schema)
    choice = possible(pinned, choice, layout, conf)
    pinned = replace(pinned, world=with_properties(session, node, world))
    view = mv_commit(pinned.world, node, layout.schema)
    version = view.version_id if view and view.version_id else world.observed.view(node.identifier).version_id  # type: ignore[union-attr]
    record = record_of(pinned, version)
    if is_embedded(node, pinned.storage):
        require_recordable(node, record)
    return Prepared(
        pinned=pinned,
        choice=choice,
        sql=sql.text,
        query=query,
        layout=layout,
        view=view,
        record=record,
        settings=settings_mark(conf),
        session_property={SESSION_KEY: encode_session(session_of(conf), world.observed.session)},
    )
