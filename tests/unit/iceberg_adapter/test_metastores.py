"""What Hive metastores and Glue have in common, without a server."""

from __future__ import annotations

import pytest

from mvbuild.adapters.iceberg.hive_names import GLUE, GLUE_UNCHECKED, HIVE
from mvbuild.adapters.iceberg.hive_types import ZONED, shown
from mvbuild.adapters.iceberg.several import UndoableStep, in_turn
from mvbuild.ports.catalog import CatalogError


@pytest.mark.parametrize(
    ("type_", "name"),
    [
        *(("long", "bigint"), ("int", "int"), ("timestamptz", "timestamp"), ("timestamp", "timestamp"), ("fixed[4]", "binary")),
        *(("uuid", "string"), ("time", "string"), ("timestamp_ns", "string"), ("variant", "string"), ("unknown", "string")),
        ("decimal(9, 2)", "decimal(9,2)"),
        ({"type": "list", "element-id": 1, "element": "long", "element-required": True}, "array<bigint>"),
        ({"type": "map", "key-id": 1, "key": "string", "value-id": 2, "value": "date", "value-required": True}, "map<string,date>"),
        (
            {
                "type": "struct",
                "fields": [
                    {"id": 1, "name": "a", "required": True, "type": "long"},
                    {"id": 2, "name": "b", "required": True, "type": {"type": "list", "element-id": 3, "element": "float"}},
                ],
            },
            "struct<a:bigint,b:array<float>>",
        ),
    ],
)
def test_types(type_: object, name: str) -> None:
    assert shown(type_) == name


def test_types_with_a_zone() -> None:
    assert shown({"type": "list", "element-id": 1, "element": "timestamptz"}, zoned=ZONED) == f"array<{ZONED}>"


def test_names() -> None:
    for names in (HIVE, GLUE, GLUE_UNCHECKED):
        assert names.can_be(("mart", "daily_2"))
        assert names.can_be(("mart", ""))
        for key in (("a.b", "t"), ("Mart", "t"), ("mart", "Täglich")):
            assert not names.can_be(key)
            with pytest.raises(CatalogError, match=r"namespace|alias"):
                names.require(key)
    assert HIVE.can_be(("mart", "größe"))
    assert not GLUE.can_be(("mart", "größe"))
    assert GLUE_UNCHECKED.can_be(("mart", "größe"))


class _Name:
    """Something that steps change one after the other."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def step(self, text: str, order: int, outcome: object = None) -> UndoableStep:
        def do() -> object:
            if isinstance(outcome, Exception):
                raise outcome
            if outcome is not False:
                self.done.append(text)
            return outcome

        return UndoableStep(do=do, undo=lambda: self.done.remove(text), order=order)


def test_what_comes_is_made_first() -> None:
    name = _Name()
    assert in_turn([name.step("gone", 2), name.step("changed", 1), name.step("made", 0)])
    assert name.done == ["made", "changed", "gone"]


def test_a_step_that_is_not_as_expected_undoes_the_others() -> None:
    name = _Name()
    assert not in_turn([name.step("gone", 2), name.step("changed", 1, outcome=False), name.step("made", 0)])
    assert name.done == []


def test_a_step_that_fails_undoes_the_others_and_is_told() -> None:
    name = _Name()
    failing = UndoableStep(do=lambda: None, undo=lambda: 1 / 0, order=1)
    with pytest.raises(ConnectionError, match="cut"):
        in_turn([name.step("made", 0), failing, name.step("gone", 2, outcome=ConnectionError("cut"))])
    assert name.done == []
