"""a table's identifier -> the URI of its asset in Airflow."""

from __future__ import annotations

from mvbuild.names import TableIdentifier


def asset_uri(identifier: TableIdentifier) -> str:
    """`mvbuild://lake/mart/revenue_daily`: the asset of a table or MV, to schedule a DAG on."""
    return f"mvbuild://{'/'.join((identifier.catalog, *identifier.namespace, identifier.name))}"
