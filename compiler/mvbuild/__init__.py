"""mvbuild: a declarative project compiler for Apache Iceberg materialized views."""

from __future__ import annotations

__version__ = "0.1.0"
