"""Every field of the metadata file: missing, of another type, duplicated -> refused by name; and the JSON Schema agrees."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mvbuild.formats import json_schema, metadata_file
from mvbuild.formats.metadata_fields import FILE, NESTED_TYPES
from mvbuild.formats.record import RecordError
from mvbuild.formats.shapes import Anything, Boolean, ColumnType, Integer, ListOf, MapOf, OneOf, Shape, Struct, Tagged, Text
from unit.formats.metadata_files import CHILD, Parts, Place, everything, parts, places

ROOT = Path(__file__).parents[3]
SCHEMA = json_schema.json_schema()
MISSING = object()
SCALE = "decimal(9,10)"
CHILD_VERSION = "iceberg.child.view.version."
REFRESH_START = "mvbuild.refresh-start-timestamp-ms"
WRONG_PROPERTIES: tuple[dict[str, str], ...] = (
    *({CHILD_VERSION + rest: "1"} for rest in ("", "v", "0" * 36, CHILD + "0", "x" + CHILD)),
    *({CHILD_VERSION + CHILD: value} for value in ("", "new", "1.0", "1 ", "1_0", "9" * 20)),
    *({REFRESH_START: value} for value in ("", "now", "1.5", "-1", "1e3")),
)
TRANSFORMS = ("bucket[0]", "bucket[-1]", "truncate[0]", "truncate[000]", "bucket[]", "bucket", "years")
WRONG_TEXTS: dict[tuple[str, str], tuple[str, ...]] = {
    ("materialized-view-metadata", "location"): ("mart/daily", "./mart", "a", ":a", "1x:/a", "s3:"),
    ("partition-field", "transform"): TRANSFORMS,
    ("sort-field", "transform"): TRANSFORMS,
    ("iceberg-metastore", "identifier"): (" ", "\n"),
    ("iceberg-filesystem", "identifier"): ("items", "a.b", "C:\\items"),
    ("deltalake-filesystem", "identifier"): ("items", "s3:items"),
}
SAMPLES: dict[str, Any] = {
    "boolean": True,
    "integer": 3,
    "number": 1.5,
    "string": "?",
    "array": [{"x": 1}],
    "object": {"x": []},
    "null": None,
}


def structs(shape: Shape, seen: dict[str, Struct]) -> dict[str, Struct]:
    """Every struct of the table of fields, by name."""
    if isinstance(shape, (ListOf, MapOf)):
        structs(shape.of, seen)
    for struct in (
        [*shape.variants.values()] if isinstance(shape, Tagged) else [*NESTED_TYPES.values()] if isinstance(shape, ColumnType) else [shape]
    ):
        if isinstance(struct, Struct) and struct.name not in seen:
            seen[struct.name] = struct
            for field in struct.fields:
                structs(field.shape, seen)
    return seen


def wrong_values(place: Place) -> Iterator[Any]:
    """Values that the field must not have: of every other JSON type, and some of its own."""
    shape, right = place.field.shape, place.owner[place.field.name]
    allowed = {
        Integer: {"integer"} | ({"string"} if isinstance(shape, Integer) and shape.digits else set()),
        Text: {"string"},
        OneOf: {"string"},
        Boolean: {"boolean"},
        ListOf: {"array"},
        MapOf: {"object"},
        Struct: {"object"},
        ColumnType: {"string", "object"},
        Anything: {*SAMPLES},
    }[type(shape)] | (set() if place.field.required else {"null"})
    yield from (value for kind, value in SAMPLES.items() if kind not in allowed)
    if isinstance(shape, Integer):
        yield from (2**63, -(2**63) - 1, 10**5000, shape.minimum - 1, shape.maximum + 1)
        yield from ("12a", "", "9" * 30) if shape.digits else ()
    if isinstance(shape, (OneOf, ColumnType)) or (isinstance(shape, Text) and shape.pattern):
        yield ""
    if isinstance(shape, ColumnType):
        yield from ("text", {"type": "set"}, {"fields": []}, "decimal(0,0)", "decimal(39,2)", "decimal(9,39)", SCALE, "decimal(9)")
    if isinstance(shape, ListOf) and shape.filled:
        yield []
    if isinstance(shape, MapOf) and shape.keys:
        yield from ({**right, **more} for more in WRONG_PROPERTIES)
    yield from WRONG_TEXTS.get((place.struct.name, place.field.name), ())
    if isinstance(shape, (ListOf, MapOf)) and not isinstance(shape.of, Anything):
        yield [1.5] if isinstance(shape, ListOf) else {"k": 1.5}


def refused(raw: Any, name: str) -> None:
    with pytest.raises(RecordError) as caught:
        metadata_file.check(raw)
    assert name in str(caught.value)
    assert name in caught.value.field


def test_the_sample_has_every_field() -> None:
    raw = everything()
    metadata_file.check(raw)
    stated = {(struct.name, field.name) for struct in structs(FILE, {}).values() for field in struct.fields}
    assert stated - {(place.struct.name, place.field.name) for place in places(raw)} == set()


def test_no_required_field_may_be_missing() -> None:
    raw = everything()
    for place in [place for place in places(raw) if place.field.required]:
        value = place.owner.pop(place.field.name)
        refused(raw, place.field.name)
        place.owner[place.field.name] = None
        refused(raw, place.field.name)
        place.owner[place.field.name] = value
    metadata_file.check(raw)


def test_every_optional_field_may_be_null() -> None:
    raw = everything()
    kept = {"current-snapshot-id", "snapshots"}  # others refer to them
    for place in [place for place in places(raw) if not place.field.required and place.field.name not in kept]:
        value = place.owner[place.field.name]
        place.owner[place.field.name] = None
        metadata_file.check(raw)
        place.owner[place.field.name] = value


def test_no_field_may_be_of_another_type() -> None:
    raw = everything()
    for place in list(places(raw)):
        right = place.owner[place.field.name]
        for wrong in wrong_values(place):
            place.owner[place.field.name] = wrong
            refused(raw, place.field.name)
        place.owner[place.field.name] = right
    metadata_file.check(raw)


def test_no_id_may_be_there_twice() -> None:
    raw = everything()
    lists = [place for place in places(raw) if isinstance(place.field.shape, ListOf) and place.field.shape.identity]
    assert len({(place.struct.name, place.field.name) for place in lists}) == 11
    for place in lists:
        values = place.owner[place.field.name]
        place.owner[place.field.name] = [*values, copy.deepcopy(values[0])]
        refused(raw, place.field.shape.identity)  # type: ignore[union-attr]
        place.owner[place.field.name] = values


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(parts(), st.data())
def test_any_file_with_one_broken_field_is_refused(given_parts: Parts, data: st.DataObject) -> None:
    raw = json.loads(metadata_file.write(given_parts.compose()))
    place = data.draw(st.sampled_from([place for place in places(raw) if not isinstance(place.field.shape, Anything)]))
    wrong = data.draw(st.sampled_from([*([MISSING] if place.field.required else []), *wrong_values(place)]))
    if wrong is MISSING:
        del place.owner[place.field.name]
    else:
        place.owner[place.field.name] = wrong
    refused(raw, place.field.name)


RIGHT: tuple[tuple[str, str, tuple[Any, ...]], ...] = (
    ("column", "type", ("decimal(1,0)", "decimal(38,38)", "decimal( 9, 02 )", "decimal(05,5)", "decimal(10,9)", "fixed[16]")),
    ("partition-field", "transform", ("bucket[1]", "truncate[007]", "truncate[100]", "void")),
    ("materialized-view-metadata", "location", ("/", "/a b", "s3://b/c", "file:/a", "abfss://c@a.x/y", "C:\\lake")),
    ("materialized-view-metadata", "last-updated-ms", (2**63 - 1,)),
    ("snapshot", "timestamp-ms", (0,)),
    ("version", "timestamp-ms", (0,)),
)


def test_what_is_within_the_bounds_is_taken() -> None:
    raw = everything()
    for struct, field, values in RIGHT:
        found = [place for place in places(raw) if (place.struct.name, place.field.name) == (struct, field)]
        assert found
        for place in found:
            before = place.owner[field]
            for value in values:
                place.owner[field] = value
                metadata_file.check(raw)
                assert valid(SCHEMA, raw), value
            place.owner[field] = before
    raw["properties"] |= {CHILD_VERSION + CHILD.upper(): "-1", REFRESH_START: "0", REFRESH_START + ".x": "y", "iceberg.child": "z"}
    metadata_file.check(raw)
    assert valid(SCHEMA, raw)


def test_other_writers_may_add_fields() -> None:
    raw = everything()
    for place in list(places(raw)):
        if place.struct.others is None:
            place.owner["x-other"] = {"anything": [1, None]}
    assert metadata_file.read(metadata_file.write(metadata_file.check(raw))).raw == raw


def valid(schema: Any, value: Any) -> bool:
    """Whether a value is valid, by those keywords of JSON Schema that ours has."""
    if isinstance(schema, bool):
        return schema
    assert schema.keys() <= {
        *("description", "$ref", "anyOf", "oneOf", "const", "enum", "type", "properties", "required", "additionalProperties"),
        *("items", "minItems", "pattern", "patternProperties", "minimum", "maximum", "$schema", "title", "$defs"),
    }
    if "$ref" in schema and not valid(SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")], value):
        return False
    if "anyOf" in schema and not any(valid(inner, value) for inner in schema["anyOf"]):
        return False
    if "oneOf" in schema and sum(valid(inner, value) for inner in schema["oneOf"]) != 1:
        return False
    if value not in schema.get("enum", [schema.get("const", value)]):
        return False
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool, "null": type(None)}
    if "type" in schema and not (isinstance(value, kinds[schema["type"]]) and isinstance(value, bool) == (schema["type"] == "boolean")):
        return False
    if isinstance(value, str):
        return re.search(schema.get("pattern", ""), value) is not None
    if isinstance(value, list):
        return len(value) >= schema.get("minItems", 0) and all(valid(schema.get("items", {}), inner) for inner in value)
    if isinstance(value, dict):
        return {*schema.get("required", ())} <= value.keys() and all(valid(s, v) for k, v in value.items() for s in of_key(schema, k))
    return not isinstance(value, int) or schema.get("minimum", value) <= value <= schema.get("maximum", value)


def of_key(schema: dict[str, Any], key: str) -> list[Any]:
    """The schemas that the value of a key must fit."""
    found = [schema["properties"][key]] if key in schema.get("properties", {}) else []
    found += [inner for pattern, inner in schema.get("patternProperties", {}).items() if re.search(pattern, key)]
    return found or [schema.get("additionalProperties", {})]


def test_the_published_schema_is_current() -> None:
    """`python -m mvbuild.formats.json_schema > docs/metadata-file.schema.json` writes it."""
    assert (ROOT / "docs/metadata-file.schema.json").read_text(encoding="utf-8") == json_schema.page()


def test_the_schema_describes_every_field() -> None:
    described = json_schema.page()
    for struct in structs(FILE, {}).values():
        for field in struct.fields:
            assert field.doc
            assert json.dumps(field.doc, ensure_ascii=False) in described


@pytest.mark.proof
def test_the_schema_takes_and_refuses_what_the_check_does() -> None:
    raw = everything()
    assert valid(SCHEMA, raw)
    for place in list(places(raw)):
        right = place.owner.pop(place.field.name)
        assert valid(SCHEMA, raw) == (not place.field.required), place.field.name
        place.owner[place.field.name] = right
        for wrong in [value for value in wrong_values(place) if value not in ("9" * 30, SCALE)]:
            place.owner[place.field.name] = wrong
            assert not valid(SCHEMA, raw), (place.field.name, str(wrong)[:20] if not isinstance(wrong, int) else "")
        place.owner[place.field.name] = right
