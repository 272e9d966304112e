"""a query with the schemas that it reads + a storage table -> whether Spark has confirmed how mvbuild reads the query.

Conclusions from metadata alone, and rewrites, rely on the tree of the query. Only Spark can confirm that the tree is the query; its mark
makes that known later without Spark.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from hashlib import sha256

import sqlglot

from mvbuild import __version__
from mvbuild.ports.states import Schema, TableState
from mvbuild.storage.sessions import settings_of

PROVEN = "mvbuild.proven-query"
"""Property of a storage table: the mark of the query, and then that of its division into auxiliary views, if there is one. Not part of any
specification."""


def mark_of(text: str, schemas: Iterable[Schema], settings: str, division: str = "") -> str:
    """A different mark if the text, the columns of a table, the settings, sqlglot or mvbuild differ. `division`: the query over its
    auxiliary views, with their queries put back."""
    columns = [[(f["name"], f["type"], bool(f.get("required"))) for f in schema["fields"]] for schema in schemas]
    value = [__version__, sqlglot.__version__, settings, text, columns, *([division] if division else [])]  # type: ignore[attr-defined]
    return sha256(json.dumps(value).encode()).hexdigest()


def marks_of(storage: TableState, text: str, schemas: Sequence[Schema], settings: str, division: str = "") -> str:
    """The property after a refresh that relied on the tree of the query, or on its division. A proof of a division is kept."""
    of_query = mark_of(text, schemas, settings)
    if division:
        return f"{of_query} {mark_of(text, schemas, settings, division)}"
    known = storage.properties.get(PROVEN, "")
    return known if known.startswith(of_query) else of_query


def is_proven(storage: TableState, text: str, schemas: Iterable[Schema], division: str = "") -> bool:
    return mark_of(text, schemas, settings_of(storage), division) in storage.properties.get(PROVEN, "").split()
