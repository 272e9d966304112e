"""Inputs + settings of the session -> what a storage table records: how Spark reads the query, and under which settings.

Conclusions from metadata alone, and rewrites, rely on the tree of the query. Only Spark can confirm that the tree is the query; its mark
makes that known later without Spark. And rows are added to earlier rows, which must have been computed with the same settings, for example
the same time zone.
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
"""Property of a storage table. Not part of any specification."""
SETTINGS = "mvbuild.session-settings"
"""Property of a storage table: the number of a refresh, and the settings of the session that computed its rows. Not part of any
specification."""


def mark_of(given: Inputs, settings: str) -> str:
    """A different mark if the text, the columns of a table, the settings, sqlglot or mvbuild differ."""
    columns = [[(f["name"], f["type"], bool(f.get("required"))) for f in one.schema["fields"]] for one in given.inputs]
    return _hashed([__version__, sqlglot.__version__, settings, given.text.text, columns])  # type: ignore[attr-defined]


def is_proven(given: Inputs, storage: TableState) -> bool:
    return storage.properties.get(PROVEN) == mark_of(given, settings_of(storage))


def settings_mark(settings: Mapping[str, str]) -> str:
    """The time zone for people, and a hash of everything."""
    return f"{settings.get(TIME_ZONE, '')} {_hashed(sorted(settings.items()))[:12]}"


def settings_property(refresh_id: int, mark: str) -> str:
    """The value of `SETTINGS`. It includes the number of the refresh, because a rollback, or another engine's refresh, makes other rows
    current."""
    return f"{refresh_id} {mark}"


def settings_of(storage: TableState) -> str:
    """The mark of the settings under which the rows were computed; empty if it is not known."""
    number, _, mark = storage.properties.get(SETTINGS, "").partition(" ")
    return mark if number == str(current_refresh_id(storage)) else ""


def _hashed(value: object) -> str:
    return sha256(json.dumps(value).encode()).hexdigest()
