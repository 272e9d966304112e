"""Key, Block -> schema: what `project.key_types.check` accepts in a mapping; requirements beyond the kind of a key are in `_MORE`."""

from __future__ import annotations

from collections.abc import Mapping

from mvbuild.project.exposures import MATURITIES
from mvbuild.project.exposures import TYPES as EXPOSURE_TYPES
from mvbuild.project.key_types import Block, Key, Kind
from mvbuild.project.keys import (
    COLUMN,
    EXPOSURE,
    PROJECT,
    SEED,
    SOURCE,
    SOURCE_AGE,
    SOURCE_TABLE,
    SPARK,
    TARGET,
    TEST_ARGUMENTS,
    TEST_CONFIG,
    TESTS,
)
from mvbuild.project.loaded import NAMESPACE_RULES
from mvbuild.project.source_freshness import PERIODS
from mvbuild.project.source_types import DEFAULT, TYPES
from mvbuild.schemas.parts import NULL, SCALAR, Schema, any_case, described, either, listed, map_of, mapping, not_both, ref, text, words
from mvbuild.schemas.settings import NAMESPACE_TEXT

_SCALARS = either(map_of({"anyOf": [SCALAR, NULL]}), NULL)
_SEVERITY = either(words(["error", "warn"]), text(f"^(?:{any_case(['error', 'warn'])})$"), NULL)

_KINDS: Mapping[Kind, Schema] = {
    "scalar": {"type": ["string", "number", "null"]},
    "flag": either({"type": ["boolean", "null"]}),
    "count": either({"type": "integer", "minimum": 1}, NULL),
    "texts": either(text(), listed(text()), NULL),
    "namespace": either(text(NAMESPACE_TEXT), listed(text(), minItems=1), NULL),
    "mapping": either(mapping(), NULL),
    "constants": {"anyOf": [listed(SCALAR, minItems=1), NULL]},
    "any": {},
}

_MORE: Mapping[tuple[str, str], Schema] = {
    (PROJECT.what, "name"): either(text(r"^[A-Za-z_][A-Za-z0-9_]*$")),
    (PROJECT.what, "publish"): either(words(["each", "atomic"]), NULL),
    (EXPOSURE.what, "type"): either(words(list(EXPOSURE_TYPES))),
    (EXPOSURE.what, "maturity"): either(words(list(MATURITIES)), NULL),
    (PROJECT.what, "namespaces"): either(words(list(NAMESPACE_RULES)), NULL),
    (SOURCE_AGE.what, "period"): either(words(list(PERIODS))),
    (PROJECT.what, "models"): either(ref("model-folder"), NULL),
    (PROJECT.what, "seeds"): either(ref("seed-folder"), NULL),
    (PROJECT.what, "lint"): either(ref("lint"), NULL),
    (TARGET.what, "catalog"): _SCALARS,
    (SPARK.what, "config"): _SCALARS,
    (SEED.what, "config"): either(ref("seed-config"), NULL),
    **{(block.what, "type"): either(words(TYPES), NULL) for block in (SOURCE, SOURCE_TABLE)},
    **{(block.what, "properties"): _SCALARS for block in (SOURCE, SOURCE_TABLE)},
    **{(block.what, "severity"): _SEVERITY for block in (TEST_CONFIG, *TESTS.values())},
}
"""(what, key) -> its schema."""


def name_of(block: Block) -> str:
    """`a model's config` -> `model-config`."""
    words = block.what.replace("'s ", " ").replace("'", "").replace("`", "").replace(".", "-").split()
    return "-".join(word for word in words if word not in ("a", "the", "of"))


def of_block(block: Block, definitions: dict[str, Schema]) -> Schema:
    """A reference to the schema of a block, which is added to `definitions`."""
    name = name_of(block)
    if name not in definitions:
        definitions[name] = {}
        definitions[name] = block_schema(block, definitions)
    return ref(name)


def block_schema(block: Block, definitions: dict[str, Schema]) -> Schema:
    own = {name: _key(block, name, key, definitions) for name, key in block.keys.items()}
    for alias, name in block.aliases.items():
        own[alias] = {**own[name], "description": f"Alias of `{name}`."}
    required = [name for name, key in block.keys.items() if key.required]
    found = mapping(own, **({"required": required} if required else {}), **not_both(block.aliases.items()))
    if block is SOURCE_TABLE:
        # For a table with its own type; a schema cannot express what the source's type requires without repeating it.
        outside = {"type": words([t for t in TYPES if t != DEFAULT])}
        condition = {"properties": outside, "required": ["type"]}
        found |= {"if": condition, "then": {"required": ["path"], "properties": {"identifier": NULL}}}
    return found


def _key(block: Block, name: str, key: Key, definitions: dict[str, Schema]) -> Schema:
    return described(_MORE.get((block.what, name)) or _of_kind(block, key, definitions), key.doc)


def _of_kind(block: Block, key: Key, definitions: dict[str, Schema]) -> Schema:
    if key.kind == "text":
        return text() if key.required else {"type": ["string", "null"]}
    if key.kind == "tests":
        return either(listed(ref("column-test" if block is COLUMN else "table-test")), NULL)
    if key.kind == "settings":
        return either(ref("model-config"), NULL)
    if key.block is None:
        return _KINDS[key.kind]
    inner = of_block(key.block, definitions)
    if key.kind == "blocks":
        inner = listed(inner)
    elif key.kind == "named blocks":
        inner = map_of(either(inner, NULL))
    return either(inner, NULL)


def tests(definitions: dict[str, Schema]) -> None:
    """`column-test` and `table-test`, which must name its column; and tests of the project's own kinds, with any arguments."""
    for name, needed in (("column-test", ()), ("table-test", ("column_name",))):
        alone = [kind for kind in TESTS if not (_needed(kind) or needed)]
        named = mapping({kind: _test(kind, needed, definitions) for kind in TESTS}, minProperties=1, maxProperties=1)
        own = {"not": {"enum": list(TESTS)}}
        other = {"type": "object", "minProperties": 1, "maxProperties": 1, "propertyNames": own}
        other["additionalProperties"] = {"type": ["object", "null"]}
        definitions[name] = {"anyOf": [*([words(alone)] if alone else []), named, {"type": "string", **own}, other]}


def _test(kind: str, more: tuple[str, ...], definitions: dict[str, Schema]) -> Schema:
    """Arguments are beside the settings of a test, or below `arguments`."""
    needed = (*_needed(kind), *more)
    inner = of_block(TESTS[kind], definitions)
    places = [{"anyOf": [{"required": [n]}, {"required": ["arguments"], "properties": {"arguments": {"required": [n]}}}]} for n in needed]
    return {"allOf": [inner, *places]} if needed else {"anyOf": [inner, NULL]}


def _needed(kind: str) -> tuple[str, ...]:
    return tuple(name for name, key in TEST_ARGUMENTS[kind].items() if key.required)
