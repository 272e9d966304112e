"""Trino's `dependsOnTables` -> RefreshRecord."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mvbuild.formats import trino
from mvbuild.formats.record import NO_SNAPSHOT, BaseTable, RecordError, RefreshRecord


def table(snapshot_id: int, name: str = "orders") -> BaseTable:
    return BaseTable(uuid="", snapshot_id=snapshot_id, namespace=("raw",), name=name)


@pytest.mark.parametrize(
    ("value", "tables", "incomplete"),
    [
        ("raw.orders=7", (table(7),), False),
        ("raw.orders=7,raw.items=8659180182390563871", (table(7), table(8659180182390563871, "items")), False),
        ("raw.orders=", (table(NO_SNAPSHOT),), False),
        ("lake.raw.orders=7", (table(7),), False),
        ("raw.orders=7,raw.orders=7", (table(7),), False),
        ("raw.orders=7,raw.orders=8", (table(7), table(8)), False),
        ("raw.orders=7,UNKNOWN", (table(7),), True),
        ("UNKNOWN,raw.orders=7", (table(7),), True),
        ("UNKNOWN", (), True),
        ("", (), True),
    ],
)
def test_what_trino_writes(value: str, tables: tuple[BaseTable, ...], incomplete: bool) -> None:
    assert trino.decode(value) == RefreshRecord(view_version_id=None, base_tables=tables, incomplete=incomplete)


@pytest.mark.parametrize(
    "value", ["orders=7", "a.b.c.d=7", "raw.orders", "raw.orders=x", "raw.orders=1=2", "raw.=1", "raw.orders=7,", "raw.orders=1_0"]
)
def test_what_trino_would_refuse(value: str) -> None:
    with pytest.raises(RecordError) as caught:
        trino.decode(value)
    assert caught.value.field == "dependsOnTables"


@given(st.text() | st.text(alphabet="a.=,1UNKOW "))
def test_no_text_breaks_the_reader(value: str) -> None:
    with suppress(RecordError):
        trino.decode(value)
