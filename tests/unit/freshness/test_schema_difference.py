"""Two schemas of one table -> what a reader can see of the difference."""

from __future__ import annotations

from typing import Any

import pytest

from mvbuild.storage.schema_difference import difference

Fields = list[dict[str, Any]]


def column(id: int, name: str, type_: Any = "int", required: bool = False) -> dict[str, Any]:
    return {"id": id, "name": name, "type": type_, "required": required}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def array(element: Any, required: bool = False) -> dict[str, Any]:
    return {"type": "list", "element-id": 9, "element": element, "element-required": required}


CASES: dict[str, tuple[Fields, Fields, set[tuple[str, ...]]]] = {
    "another case": ([column(1, "a")], [column(1, "A")], set()),
    "one of two that differ in case has another id": (
        [column(1, "a"), column(2, "A")],
        [column(1, "b"), column(3, "a"), column(2, "A")],
        {("a",), ("b",)},
    ),
    "two that differ in case trade names": ([column(1, "a"), column(2, "A")], [column(1, "A"), column(2, "a")], {("a",), ("A",)}),
    "fields that differ in case": (
        [column(1, "s", struct(column(2, "f"), column(3, "F")))],
        [column(1, "s", struct(column(2, "f"), column(4, "F")))],
        {("s", "F")},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_columns(case: str) -> None:
    before, now, columns = CASES[case]
    assert set(difference({"fields": before}, {"fields": now}).columns) == columns


@pytest.mark.parametrize(
    ("before", "now", "required"),
    [
        (column(1, "A"), column(1, "a", required=True), ("a",)),
        (column(1, "a", struct(column(2, "f"))), column(1, "a", struct(column(2, "f", required=True))), ("a", "f")),
        (column(1, "a", array("int")), column(1, "a", array("int", True)), ("a", "element")),
        (
            column(1, "a", array(struct(column(2, "f")))),
            column(1, "a", array(struct(column(2, "f", required=True)))),
            ("a", "element", "f"),
        ),
    ],
)
def test_columns_that_may_not_be_null_any_more(before: dict[str, Any], now: dict[str, Any], required: tuple[str, ...]) -> None:
    found = difference({"fields": [before]}, {"fields": [now]})
    assert found.required == (required,)
    assert not found, "rows that are read now are the same"
    assert difference({"fields": [now]}, {"fields": [before]}).required == ()
