"""settings of a Spark session -> Session: what of them changes the meaning of SQL, as far as it is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

TIME_ZONE = "spark.sql.session.timeZone"
ANSI = "spark.sql.ansi.enabled"
SUBSTITUTE = "spark.sql.variable.substitute"
MEANING: Mapping[str, str] = {
    TIME_ZONE: "",
    ANSI: "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.groupByAliases": "true",
    "spark.sql.orderByOrdinal": "true",
    SUBSTITUTE: "true",
    "spark.sql.function.concatBinaryAsString": "false",
    "spark.sql.function.eltOutputAsString": "false",
    "spark.sql.readSideCharPadding": "true",
    "spark.sql.charAsVarchar": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
}
"""With the defaults of Spark 4. The time zone has none: it is that of the machine."""
MEANING_OF_ALL = ("spark.sql.ansi.", "spark.sql.parser.", "spark.sql.legacy.", "spark.sql.session.collation")
"""Settings whose names begin so count where they are set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The settings of a session that change what SQL means, but for those that have Spark's default."""

    settings: Mapping[str, str]
    is_whole: bool
    """Whether the session itself was asked. If not these are what the project configures, and others may come from the environment."""

    @property
    def zone(self) -> str:
        return self.settings.get(TIME_ZONE, "")

    @property
    def substitutes(self) -> bool:
        """Whether Spark replaces `${name}` in SQL."""
        return self.settings.get(SUBSTITUTE, "true").lower() != "false"


def session_of(settings: Mapping[str, str]) -> Session:
    """Of all settings that a session has."""
    return Session(settings=_of_meaning(settings), is_whole=True)


def configured_session(config: Mapping[str, str]) -> Session:
    """Of a session of mvbuild's own that is not started yet: its time zone is UTC unless it is configured."""
    return Session(settings=_of_meaning({TIME_ZONE: "UTC", **config}), is_whole=False)


def _of_meaning(settings: Mapping[str, str]) -> dict[str, str]:
    found = {k: v for k, v in settings.items() if k in MEANING or k.startswith(MEANING_OF_ALL)}
    return {k: v for k, v in found.items() if v and v.lower() != MEANING.get(k, "").lower()}
