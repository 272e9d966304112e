"""the tables of keys -> a JSON Schema for each kind of YAML file. `mvbuild schema --output docs/schemas` writes the copies in docs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from mvbuild.project.keys import PROJECT, PROPERTIES
from mvbuild.project.settings import MODEL_SETTINGS, SEED_SETTINGS
from mvbuild.schemas import blocks, settings
from mvbuild.schemas.parts import TEMPLATE, Schema
from mvbuild.schemas.selectors import selectors_schema

_DRAFT = "http://json-schema.org/draft-07/schema#"


def schema(name: str) -> Schema:
    """`name` is one of SCHEMAS."""
    title, make = SCHEMAS[name]
    return {"$schema": _DRAFT, "title": title, **make()}


def page(name: str) -> str:
    return json.dumps(schema(name), indent=2, ensure_ascii=True) + "\n"


def file_name(name: str) -> str:
    return f"{name}.schema.json"


def write_all(folder: Path) -> tuple[Path, ...]:
    """Raises OSError if that is not possible."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in SCHEMAS:
        path = folder / file_name(name)
        path.write_text(page(name), encoding="utf-8", newline="\n")
        paths.append(path)
    return tuple(paths)


def _project() -> Schema:
    definitions: dict[str, Schema] = {
        "template": TEMPLATE,
        **settings.definitions(),
        "model-folder": settings.folder(MODEL_SETTINGS, "model-folder"),
        "seed-folder": settings.folder(SEED_SETTINGS, "seed-folder"),
    }
    return {**blocks.block_schema(PROJECT, definitions), "definitions": dict(sorted(definitions.items()))}


def _properties() -> Schema:
    definitions: dict[str, Schema] = {
        "template": TEMPLATE,
        **settings.definitions(),
        "model-config": settings.config(MODEL_SETTINGS),
        "seed-config": settings.config(SEED_SETTINGS),
    }
    blocks.tests(definitions)
    file = blocks.block_schema(PROPERTIES, definitions)
    return {**file, "definitions": dict(sorted(definitions.items()))}


SCHEMAS: Mapping[str, tuple[str, Callable[[], Schema]]] = {
    "mvbuild": ("mvbuild.yml", _project),
    "properties": ("YAML of models, seeds and sources", _properties),
    "selectors": ("selectors.yml", selectors_schema),
}
"""Name -> title, and the function that makes it."""
