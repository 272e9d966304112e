"""settings of a Spark session -> Session: the settings that are known to affect the meaning of SQL."""

from __future__ import annotations

from collections.abc import Mapping

from mvbuild.dataclass import dataclass

TIME_ZONE = "spark.sql.session.timeZone"
ANSI = "spark.sql.ansi.enabled"
SUBSTITUTE = "spark.sql.variable.substitute"
SPARK_VERSION = "mvbuild.spark-version"
"""In `Engine.settings`: the minor version, such as 4.1. It is not a setting, and rows stay fresh if it changes; but an incremental refresh
does not add rows to those of another version."""
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
    "spark.sql.preserveCharVarcharTypeInfo": "false",
    "spark.sql.icu.caseMappings.enabled": "true",
    "spark.sql.chunkBase64String.enabled": "true",
    "spark.sql.columnNameOfCorruptRecord": "_corrupt_record",
    "spark.sql.jsonGenerator.ignoreNullFields": "true",
    "spark.sql.jsonGenerator.writeNullIfWithDefaultValue": "true",
    "spark.sql.json.enablePartialResults": "true",
    "spark.sql.json.enableExactStringParsing": "true",
    "spark.sql.variant.allowDuplicateKeys": "false",
}
"""With the defaults of Spark 4. The time zone has no default here: Spark takes that of the machine."""
_UTC = frozenset(("etc/utc", "etc/uct", "uct", "etc/universal", "universal", "etc/zulu", "zulu"))
"""Other names of UTC, which images of Linux and Java use. Not GMT: `date_format` can write the name."""
DEFAULTS: Mapping[str, Mapping[str, str]] = {"3.5": {ANSI: "false"}}
"""Minor version of Spark -> its defaults that differ from those of Spark 4."""
MEANING_OF_ALL = ("spark.sql.ansi.", "spark.sql.parser.", "spark.sql.legacy.", "spark.sql.session.collation")
"""Settings with these prefixes count if they are set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The settings of a session that affect the meaning of SQL, without those at Spark's default."""

    settings: Mapping[str, str]
    is_whole: bool
    """Whether the session itself was asked. If not, these are the settings of the project, and others may come from the environment."""

    @property
    def zone(self) -> str:
        return self.settings.get(TIME_ZONE, "")

    @property
    def substitutes(self) -> bool:
        """Whether Spark replaces `${name}` in SQL."""
        return self.settings.get(SUBSTITUTE, "true").lower() != "false"


def session_of(settings: Mapping[str, str]) -> Session:
    """The session with all of these settings."""
    return Session(settings=_of_meaning(settings), is_whole=True)


def configured_session(config: Mapping[str, str], spark_version: str = "") -> Session:
    """A session that mvbuild will start itself: its time zone is UTC unless another one is configured. `spark_version`: the minor version
    of the installed Spark, if there is one."""
    return Session(settings=_of_meaning({TIME_ZONE: "UTC", **DEFAULTS.get(spark_version, {}), **config}), is_whole=False)


def with_one_utc(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings with one name for UTC: the zone of a machine in UTC is also called Etc/UTC."""
    is_utc = settings.get(TIME_ZONE, "").lower() in _UTC
    return {**settings, TIME_ZONE: "UTC"} if is_utc else dict(settings)


def _of_meaning(settings: Mapping[str, str]) -> dict[str, str]:
    found = {k: v for k, v in with_one_utc(settings).items() if k in MEANING or k.startswith(MEANING_OF_ALL)}
    return {k: v for k, v in found.items() if v and v.lower() != MEANING.get(k, "").lower()}
