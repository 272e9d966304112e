"""mvbuild: a declarative project compiler for Apache Iceberg materialized views.

>>> mvbuild.read(spark, "mart.orders_daily")                  # doctest: +SKIP
>>> mvbuild.sql(spark, "SELECT * FROM mart.orders_daily")     # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_OF_API = ("read", "served", "sql")


def __getattr__(name: str) -> Any:
    """Import the functions for notebooks when they are used, so that `mvbuild --version` does not pay for them."""
    if name in _OF_API:
        return getattr(import_module("mvbuild.api"), name)
    raise AttributeError(f"module 'mvbuild' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted((*globals(), *_OF_API))
