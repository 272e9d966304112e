"""FailedTests <-> a property of an MV's storage: a refresh whose data tests failed, and what it had read. Not part of any specification.

It says nothing about the rows of the storage, which are those of the last good refresh. The next refresh that passes its tests removes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field

from mvbuild.dataclass import dataclass
from mvbuild.formats.record import Properties, RefreshRecord

KEY = "mvbuild.failed-tests"
_MANY = 20
"""How many tests the property names: some catalogs limit the size of a property."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedTests:
    """The newest data of an MV that failed its tests, and so was never published."""

    tests: tuple[str, ...]
    """`not_null_daily_id: 3 rows break its rule`; empty if another writer made the property unreadable."""
    at_ms: int | None = None
    """When that refresh began."""
    definition: str = ""
    """The fingerprint of the definition that was computed."""
    reads: Mapping[str, int] = field(default_factory=dict)
    """UUID of each table that was read, with the branch or tag if it was not `main` -> snapshot."""

    def is_of(self, record: RefreshRecord, definition: str) -> bool:
        """Whether the record describes the data that failed."""
        return self.definition == definition and dict(self.reads) == reads_of(record)


def reads_of(record: RefreshRecord) -> dict[str, int]:
    return {t.uuid if t.ref is None else f"{t.uuid}@{t.ref}": t.snapshot_id for t in record.base_tables}


def encode(failed: FailedTests) -> dict[str, str]:
    more = len(failed.tests) - _MANY
    tests = [*failed.tests[:_MANY], *([f"and {more} more"] if more > 0 else [])]
    value = {"at-ms": failed.at_ms, "tests": tests, "definition": failed.definition, "reads": dict(failed.reads)}
    return {KEY: json.dumps(value, separators=(",", ":"))}


def decode(properties: Properties) -> FailedTests | None:
    """None if there is no such property. An unreadable property still means that tests failed."""
    if KEY not in properties:
        return None
    try:
        value = json.loads(properties[KEY])
        return FailedTests(
            tests=tuple(str(test) for test in value["tests"]),
            at_ms=None if value["at-ms"] is None else int(value["at-ms"]),
            definition=str(value["definition"]),
            reads={str(uuid): int(snapshot) for uuid, snapshot in value["reads"].items()},
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return FailedTests(tests=())
