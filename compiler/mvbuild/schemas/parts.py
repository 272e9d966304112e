r"""words, patterns -> the parts of which the schemas are built.

Draft 7, which editors understand. Patterns must mean the same in Python and in ECMAScript, where \w is ASCII and no flag ignores case.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

Schema = dict[str, Any]

TEMPLATE: Schema = {"description": "A template; its value is known when the project is loaded.", "type": "string", "pattern": r"\{\{"}
NULL: Schema = {"type": "null"}
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")


def ref(name: str) -> Schema:
    return {"$ref": f"#/definitions/{name}"}


def either(*schemas: Schema) -> Schema:
    """One of them; a template is always allowed."""
    return {"anyOf": [*schemas, ref("template")]}


def text(pattern: str = "") -> Schema:
    return {"type": "string", **({"pattern": pattern} if pattern else {})}


def words(known: Iterable[str]) -> Schema:
    return {"enum": list(known)}


def listed(item: Schema, **more: Any) -> Schema:
    return {"type": "array", "items": item, **more}


def mapping(keys: Mapping[str, Schema] | None = None, **more: Any) -> Schema:
    """With `keys`, only these."""
    return {"type": "object", **({"properties": dict(keys), "additionalProperties": False} if keys is not None else {}), **more}


def map_of(value: Schema) -> Schema:
    return {"type": "object", "additionalProperties": value}


def described(schema: Schema, doc: str) -> Schema:
    """With a description, in which links are reduced to their text, because they are relative to another page."""
    return {"description": _LINK.sub(r"\1", doc), **schema}


def not_both(pairs: Iterable[tuple[str, str]]) -> Schema:
    """Keys with the same meaning."""
    refused = [{"not": {"required": list(pair)}} for pair in pairs]
    return {"allOf": refused} if refused else {}


def any_case(words: Iterable[str]) -> str:
    """A pattern for words, the longest first."""
    return "|".join("".join(f"[{c}{c.upper()}]" if c.isalpha() else c for c in word) for word in sorted(words, key=len, reverse=True))


SCALAR: Schema = {"type": ["string", "number", "boolean"]}
FILLED = r"\S"
