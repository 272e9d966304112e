"""Inputs + settings of the session -> what a storage table notes: how Spark reads the query, and under which settings.

What is told from metadata alone, and rewrites, rest on the tree of the query. That the tree is the query needs Spark to be shown; its mark
is there without. And rows that came are put beside rows of before, which another time zone, say, would have made others of.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256

import sqlglot

from mvbuild import __version__
from mvbuild.freshness.history import current_refresh_id
from mvbuild.incremental.inputs import Inputs
from mvbuild.ports.session import TIME_ZONE
from mvbuild.ports.states import TableState

PROVEN = "mvbuild.proven-query"
"""Property of a storage table. Not of any specification."""
SETTINGS = "mvbuild.session-settings"
"""Property of a storage table: the number of a refresh, and the settings of the session that made its rows. Not of any specification."""


def mark_of(given: Inputs, settings: str) -> str:
    """Another one whenever the text, the columns of a table, the settings, sqlglot or mvbuild are others."""
    columns = [[(f["name"], f["type"], bool(f.get("required"))) for f in one.schema["fields"]] for one in given.inputs]
    return _hashed([__version__, sqlglot.__version__, settings, given.text.text, columns])  # type: ignore[attr-defined]


def is_proven(given: Inputs, storage: TableState) -> bool:
    return storage.properties.get(PROVEN) == mark_of(given, settings_of(storage))


def settings_mark(settings: Mapping[str, str]) -> str:
    """The time zone for people to read, and a hash of all."""
    return f"{settings.get(TIME_ZONE, '')} {_hashed(sorted(settings.items()))[:12]}"


def settings_property(refresh_id: int, mark: str) -> str:
    """For `SETTINGS`. With the number of the refresh: a rollback, or another engine's refresh, makes other rows current."""
    return f"{refresh_id} {mark}"


def settings_of(storage: TableState) -> str:
    """The mark of the settings under which the rows were made; empty where nothing tells."""
    number, _, mark = storage.properties.get(SETTINGS, "").partition(" ")
    return mark if number == str(current_refresh_id(storage)) else ""


def _hashed(value: object) -> str:
    return sha256(json.dumps(value).encode()).hexdigest()
