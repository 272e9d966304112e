"""The table of fields -> JSON Schema. `python -m mvbuild.formats.json_schema > docs/metadata-file.schema.json` writes the file.

Draft 2020-12, of the MV metadata file, for writers and readers other than mvbuild. It describes the structure. It cannot express that ids
are unique, that references exist, and that a decimal's scale fits its precision, see `metadata_rules`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from mvbuild.formats.metadata_fields import FILE, NESTED_TYPES
from mvbuild.formats.shapes import (
    DIGITS,
    PRIMITIVE,
    Boolean,
    ColumnType,
    Field,
    Integer,
    ListOf,
    MapOf,
    OneOf,
    Shape,
    Struct,
    Tagged,
    Text,
)

Schema = dict[str, Any]
_COLUMN_TYPE = "column-type"


def page() -> str:
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def json_schema() -> Schema:
    definitions: dict[str, Schema] = {}
    file = _struct(FILE, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Iceberg materialized view metadata, format version 1",
        **file,
        "$defs": dict(sorted(definitions.items())),
    }


def _struct(struct: Struct, definitions: dict[str, Schema]) -> Schema:
    schema: Schema = {"description": struct.doc} if struct.doc else {}
    schema |= {
        "type": "object",
        "properties": {field.name: _field(field, definitions) for field in struct.fields},
        "required": [field.name for field in struct.fields if field.required],
    }
    if struct.others is not None:
        schema["additionalProperties"] = _shape(struct.others, definitions)
    return schema


def _field(field: Field, definitions: dict[str, Schema]) -> Schema:
    schema = _shape(field.shape, definitions)
    # An empty schema accepts null as it is.
    if schema and not field.required:
        schema = {"anyOf": [schema, {"type": "null"}]}
    return {"description": field.doc, **schema}


def _shape(shape: Shape, definitions: dict[str, Schema]) -> Schema:
    if isinstance(shape, Struct):
        return _reference(shape, definitions)
    if isinstance(shape, Tagged):
        return {"oneOf": [_reference(variant, definitions) for variant in shape.variants.values()]}
    if isinstance(shape, ListOf):
        least = {"minItems": 1} if shape.filled else {}
        return {"type": "array", **least, "items": _shape(shape.of, definitions)}
    if isinstance(shape, MapOf):
        return _map(shape, definitions)
    if isinstance(shape, ColumnType):
        return _column_type(definitions)
    if isinstance(shape, OneOf):
        return {"const": shape.values[0]} if len(shape.values) == 1 else {"enum": list(shape.values)}
    return _scalar(shape)


def _map(shape: MapOf, definitions: dict[str, Schema]) -> Schema:
    patterns: Schema = {}
    for keys in shape.keys:
        start = "^" + keys.starts.replace(".", r"\.")
        patterns[f"{start}({keys.rest})$"] = _shape(keys.of, definitions)
        if keys.rest:
            patterns[f"{start}(?!({keys.rest})$)"] = False
    more = {"additionalProperties": _shape(shape.of, definitions)}
    return {"type": "object", **({"patternProperties": patterns} if patterns else {}), **more}


def _scalar(shape: Shape) -> Schema:
    if isinstance(shape, Integer):
        number: Schema = {"type": "integer", "minimum": shape.minimum, "maximum": shape.maximum}
        return {"anyOf": [number, {"type": "string", "pattern": f"^{DIGITS}$"}]} if shape.digits else number
    if isinstance(shape, Text):
        return {"type": "string", "pattern": f"^({shape.pattern})$"} if shape.pattern else {"type": "string"}
    return {"type": "boolean"} if isinstance(shape, Boolean) else {}


def _reference(struct: Struct, definitions: dict[str, Schema]) -> Schema:
    if struct.name not in definitions:
        definitions[struct.name] = {}  # Types contain types, so the name must be known before its definition is complete.
        definitions[struct.name] = _struct(struct, definitions)
    return {"$ref": f"#/$defs/{struct.name}"}


def _column_type(definitions: dict[str, Schema]) -> Schema:
    if _COLUMN_TYPE not in definitions:
        definitions[_COLUMN_TYPE] = {}
        nested = [_reference(struct, definitions) for struct in NESTED_TYPES.values()]
        definitions[_COLUMN_TYPE] = {"oneOf": [{"type": "string", "pattern": f"^({PRIMITIVE})$"}, *nested]}
    return {"$ref": f"#/$defs/{_COLUMN_TYPE}"}


if __name__ == "__main__":
    sys.stdout.write(page())
