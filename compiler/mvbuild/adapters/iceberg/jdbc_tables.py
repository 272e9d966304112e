"""The two tables of a JDBC catalog as SQL, and a Statement that changes one of their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mvbuild.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

TABLES = (
    "CREATE TABLE IF NOT EXISTS iceberg_tables (catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL, "
    "table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), "
    "iceberg_type VARCHAR(5), PRIMARY KEY (catalog_name, table_namespace, table_name))",
    "CREATE TABLE IF NOT EXISTS iceberg_namespace_properties (catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL, "
    "property_key VARCHAR(255) NOT NULL, property_value VARCHAR(1000) NOT NULL, PRIMARY KEY (catalog_name, namespace, property_key))",
)
PROBE = "SELECT iceberg_type FROM iceberg_tables WHERE 1 = 0"
ADD_TYPE = "ALTER TABLE iceberg_tables ADD COLUMN iceberg_type VARCHAR(5)"
"""Catalogs of the older schema V0 have only tables, and no column for the kind."""


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL that must affect exactly one row, with `:name` parameters."""

    sql: str
    params: Mapping[str, str]


def untyped(sql: str) -> str:
    """A query for a catalog of the schema V0, which is not upgraded until something is written."""
    return sql.replace("iceberg_type", "'TABLE'")
