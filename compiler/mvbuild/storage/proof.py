"""a query with the schemas that it reads + a storage table -> whether Spark has confirmed how mvbuild reads the query.

Conclusions from metadata alone, and rewrites, rely on the tree of the query. Only Spark can confirm that the tree is the query; its mark
makes that known later without Spark.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import sha256

import sqlglot

from mvbuild import __version__
from mvbuild.ports.states import Schema, TableState
from mvbuild.storage.sessions import settings_of

PROVEN = "mvbuild.proven-query"
"""Property of a storage table. Not part of any specification."""


def mark_of(text: str, schemas: Iterable[Schema], settings: str) -> str:
    """A different mark if the text, the columns of a table, the settings, sqlglot or mvbuild differ."""
    columns = [[(f["name"], f["type"], bool(f.get("required"))) for f in schema["fields"]] for schema in schemas]
    value = [__version__, sqlglot.__version__, settings, text, columns]  # type: ignore[attr-defined]
    return sha256(json.dumps(value).encode()).hexdigest()


def is_proven(storage: TableState, text: str, schemas: Iterable[Schema]) -> bool:
    return storage.properties.get(PROVEN) == mark_of(text, schemas, settings_of(storage))
