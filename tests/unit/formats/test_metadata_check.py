"""The check of the fields of MV metadata files: what is right passes, and each damage is reported with its path."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mvbuild.formats import metadata_check, metadata_fields
from mvbuild.formats.record import RecordError
from unit.formats.metadata_files import everything

ODD = (None, True, -1, "", [{}])


def damaged(value: Any) -> Iterator[Any]:
    """The value with one thing in it replaced, left out, repeated or added."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield {other: one for other, one in value.items() if other != name}
            yield from ({**value, name: one} for one in (*ODD, *damaged(inner)))
        yield {**value, "iceberg.child.view.version.1": "x"}
        yield {**value, 1: "x"}
    elif isinstance(value, list):
        yield [*value, *value]
        for at, inner in enumerate(value):
            yield from ([*value[:at], one, *value[at + 1 :]] for one in (*ODD, *damaged(inner)))


def test_what_is_right_passes() -> None:
    metadata_check.check("", everything(), metadata_fields.FILE)


def test_every_damage_is_reported_where_it_is() -> None:
    """One value was damaged at a time: the path leads to it, or to the field that is missing."""
    found: dict[str, int] = {}
    for raw in damaged(everything()):
        try:
            metadata_check.check("", raw, metadata_fields.FILE)
        except RecordError as problem:
            found[str(problem)] = found.get(str(problem), 0) + 1
    assert len(found) > 400
    assert sum(found.values()) > 1000
    for expected in (
        "snapshots[0].snapshot-id: is missing",
        "snapshots[0].snapshot-id: must not be null",
        "format-version: must be an integer of at least 1, not True",
    ):
        assert expected in found, sorted(found)[:40]
