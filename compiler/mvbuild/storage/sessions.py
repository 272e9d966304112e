"""storage table + session -> the settings under which its rows were computed, and whether other settings may give other rows.

The summary of a snapshot has the settings that affect results. A property has a mark of all settings: an incremental refresh adds rows to
earlier rows, which must have been computed with the same settings, for example the same time zone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from hashlib import sha256

from mvbuild.dataclass import dataclass
from mvbuild.ports.session import MEANING, SPARK_VERSION, SUBSTITUTE, TIME_ZONE, Session, with_one_utc
from mvbuild.ports.states import TableState
from mvbuild.storage.history import SETTINGS, current_refresh_id, refreshed_at

SESSION_KEY = "mvbuild.session"
"""Key of a snapshot's summary, and property of a storage table: the settings of the session that computed the rows, as JSON. The property
serves when the snapshot has expired. Not part of any specification."""
_OF_WRITES = ("spark.sql.storeAssignmentPolicy", "spark.sql.charAsVarchar", "spark.sql.readSideCharPadding", SUBSTITUTE)
"""These settings do not affect the result of a query on Iceberg tables; the last one shows in the text of the query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSession:
    """The settings under which rows were computed."""

    session: Session
    configured: Mapping[str, str] | None
    """The settings that the project had configured; None for a session of the caller."""


def encode_session(actual: Session, expected: Session) -> str:
    """The value of `SESSION_KEY`. `expected`: what was known of the session before it was asked."""
    found = {"settings": dict(actual.settings)}
    return json.dumps(found if expected.is_whole else {**found, "configured": dict(expected.settings)}, sort_keys=True)


def recorded_session(storage: TableState) -> RecordedSession | None:
    """None if the writer of the rows did not record it."""
    current = storage.current_snapshot
    text = refreshed_at(storage, current).summary.get(SESSION_KEY) if current is not None else None
    if text is None and settings_of(storage):
        text = storage.properties.get(SESSION_KEY)
    if text is None:
        return None
    try:
        found = json.loads(text)
        configured = _texts(found["configured"]) if "configured" in found else None
        return RecordedSession(session=Session(settings=_texts(found["settings"]), is_whole=True), configured=configured)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _texts(found: Mapping[str, object]) -> dict[str, str]:
    return with_one_utc({str(key): str(value) for key, value in found.items()})


def difference(made: RecordedSession, session: Session, *, depends_on_zone: Callable[[], str]) -> str:
    """The settings that differ and may give other rows; empty if there are none. `depends_on_zone` is only called if the zones differ."""
    # What mvbuild's own session gets from its environment is not known before it starts; until then, the configured settings are compared.
    is_asked = session.is_whole or made.configured is None
    before, now = made.session.settings if is_asked else made.configured or {}, session.settings
    for key in sorted({*before, *now} - {*_OF_WRITES, TIME_ZONE}):
        default = MEANING.get(key, "unset")
        old, new = before.get(key, default), now.get(key, default)
        if old.lower() != new.lower():
            return f"{key} was different ({old} then, {new} now)"
    old, new = before.get(TIME_ZONE, ""), session.zone
    what = depends_on_zone() if old != new else ""
    if not what:
        return ""
    return f"its time zone was different ({old or 'unknown'} then, {new or 'unknown'} now), and {what} may have a different value"


def settings_mark(settings: Mapping[str, str]) -> str:
    """The time zone for people, and a hash of everything."""
    # The marks that exist were made when 4.1 was the only version.
    settings = {key: value for key, value in with_one_utc(settings).items() if (key, value) != (SPARK_VERSION, "4.1")}
    return f"{settings.get(TIME_ZONE, '')} {sha256(json.dumps(sorted(settings.items())).encode()).hexdigest()[:12]}"


def settings_property(refresh_id: int, mark: str) -> str:
    """The value of `SETTINGS`. It includes the number of the refresh, because a rollback, or another engine's refresh, makes other rows
    current."""
    return f"{refresh_id} {mark}"


def settings_of(storage: TableState) -> str:
    """The mark of the settings under which the rows were computed; empty if it is not known."""
    number, _, mark = storage.properties.get(SETTINGS, "").partition(" ")
    return mark if number == str(current_refresh_id(storage)) else ""
