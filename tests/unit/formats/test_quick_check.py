"""The fast check of MV metadata files against the one that says what is wrong: nothing passes the first that does not pass the second."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mvbuild.formats import metadata_check, metadata_fields, quick_check
from mvbuild.formats.record import RecordError
from unit.formats.metadata_files import everything

ODD = (None, True, -1, "", [{}])


def damaged(value: Any) -> Iterator[Any]:
    """The value with one thing in it replaced, left out, said twice or added."""
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


def passes(raw: Any) -> bool:
    try:
        metadata_check.check("", raw, metadata_fields.FILE)
    except RecordError:
        return False
    return True


def test_what_is_right_passes_at_once() -> None:
    assert quick_check.of_file()(everything())


def test_the_fast_check_lets_nothing_more_pass() -> None:
    fits, tried = quick_check.of_file(), 0
    for raw in damaged(everything()):
        tried += 1
        if fits(raw):
            assert passes(raw), raw
    assert tried > 1000
