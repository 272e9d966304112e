"""tests with `store_failures` + engine -> a table with the rows of each, written in one commit."""

from __future__ import annotations

from mvbuild.graph.model import Graph, TestNode
from mvbuild.names import TableIdentifier
from mvbuild.refresh.session import RunSession

_SUFFIX = "_dbt_test__audit"
"""As in dbt, so that what reads these tables finds them."""


def failures_table(graph: Graph, test: TestNode) -> TableIdentifier | None:
    """Where the rows of a test are stored. None on a branch: the table would have the rows of another state."""
    if not test.counting.store or graph.project.branch is not None:
        return None
    target = graph.project.target
    *above, last = target.namespace
    return TableIdentifier(target.catalog_name, (*above, f"{last}{_SUFFIX}"), test.name)


def store_failures(session: RunSession, test: TestNode, sql: str) -> str:
    """The query that counts the rows of a test: of the stored rows, if they are stored. Raises QueryError."""
    table = failures_table(session.world.graph, test)
    if table is None:
        return sql
    session.catalog.ensure_namespace(table.namespace)
    session.engine.call(f"CREATE OR REPLACE TABLE {table.sql} USING iceberg AS {sql}")
    return f"SELECT * FROM {table.sql}"
