from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mvbuild.lineage.types import Array, Decimal, Map, Struct, Type, arithmetic, common, of_iceberg, parsed, stored, text

plain = st.sampled_from(
    ["boolean", "tinyint", "int", "bigint", "float", "double", "string", "binary", "date", "timestamp", "timestamp_ntz"]
)
decimals = st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: Decimal(p, s)))
names = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6)
types: st.SearchStrategy[Type] = st.recursive(
    plain | decimals,
    lambda inner: (
        inner.map(Array)
        | st.tuples(inner, inner).map(lambda two: Map(*two))
        | st.lists(st.tuples(names, inner), min_size=1, max_size=3).map(lambda fields: Struct(tuple(fields)))
    ),
    max_leaves=6,
)


@given(types)
def test_the_simple_form_is_read_as_the_same_type(type_: Type) -> None:
    assert parsed(text(type_) or "") == type_


@given(types, types)
def test_a_common_type_does_not_depend_on_the_order(one: Type, two: Type) -> None:
    assert common([one, two]) == common([two, one])
    assert common([one, one, "void"]) == one


@given(decimals, decimals, st.sampled_from("+-*/%"))
def test_arithmetic_stays_within_38_digits(one: Decimal, two: Decimal, sign: str) -> None:
    found = arithmetic(sign, one, two)
    assert isinstance(found, Decimal)
    assert 0 <= found.scale <= found.precision <= 38


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("BIGINT", "bigint"),
        ("long", "bigint"),
        (" Numeric( 10 , 2 ) ", "decimal(10,2)"),
        ("decimal", "decimal(10,0)"),
        ("varchar(10)", "string"),
        ("ARRAY<STRUCT<a: INT, `b c`: MAP<STRING, DECIMAL(3,1)>>>", "array<struct<a:int,`b c`:map<string,decimal(3,1)>>>"),
        ("struct<a int not null, b string comment 'x'>", "struct<a:int,b:string>"),
        ("timestamp_ltz", "timestamp"),
    ],
)
def test_types_as_people_write_them(written: str, expected: str) -> None:
    assert text(parsed(written)) == expected


@pytest.mark.parametrize(
    "written", ["", "int8", "decimal(39,1)", "decimal(2,3)", "array<>", "array<int", "map<int>", "struct<a>", "struct<:int>"]
)
def test_what_is_no_type(written: str) -> None:
    assert parsed(written) is None


def test_types_of_iceberg() -> None:
    nested = {
        "type": "list",
        "element": {"type": "struct", "fields": [{"name": "a", "type": "timestamptz"}, {"name": "b", "type": "uuid"}]},
    }
    assert text(of_iceberg(nested)) == "array<struct<a:timestamp,b:string>>"
    assert text(of_iceberg("decimal(12, 2)")) == "decimal(12,2)"
    assert of_iceberg("time") is None
    assert stored("smallint") == "int"


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        (["int", "bigint"], "bigint"),
        (["int", "decimal(5,2)"], "decimal(12,2)"),
        (["float", "bigint"], None),
        (["string", "int"], None),
        (["date", "timestamp"], "timestamp"),
        (["decimal(38,0)", "decimal(5,2)"], None),
        (["array<int>", "array<bigint>"], "array<bigint>"),
    ],
)
def test_common_types(types: list[str], expected: str | None) -> None:
    assert text(common(parsed(t) for t in types)) == expected
