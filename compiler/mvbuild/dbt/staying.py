"""something that is refused -> the source that the new project reads in its place, while dbt continues to build its table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from mvbuild.dbt.import_state import ImportState, ModelImport, SeedImport, Staying
from mvbuild.dbt.read import get, is_of_run
from mvbuild.dbt.scorecard import Item

_TABLES = ("table", "incremental")
_NOT_IN_DBT = ("empty-sql", "template-syntax", "unresolved-ref", "unresolved-source", "missing-var", "missing-env-var")
"""Errors that dbt has too: it does not build such a model."""
_SCHEMA = re.compile(r"""\btarget_schema\s*=\s*(['"])([^'"{}]+)\1""")
_ALIAS = re.compile(r"""\balias\s*=\s*(['"])([^'"{}]+)\1""")
_HEAD = "# Tables that dbt continues to build. mvbuild must be able to read them: Iceberg tables of the catalog.\n"


def references(work: ImportState, text: str, name: str) -> list[tuple[int, int]]:
    """The calls `ref('name')` of a template that mean a model, seed or snapshot, with literals only."""
    model = work.models.get(name)
    version = model.version if model else None
    given = ""
    if version is not None:
        given = rf"""\s*,\s*(?:v|version)\s*=\s*(['"]?){re.escape(str(version.v))}\2"""
        given = f"(?:{given})?" if version.is_latest else given
    called = re.escape(version.model if version else name)
    return [found.span() for found in re.finditer(rf"""\bref\s*\(\s*(['"]){called}\1{given}\s*\)""", text, re.IGNORECASE)]


def staying(work: ImportState, name: str) -> Staying | None:
    """What to read in place of a refused model, seed or snapshot; None if it has no table, or if its name is not known."""
    thing = work.models.get(name) or work.seeds.get(name)
    found = _of_snapshot(work, name) if thing is None else _of_node(work, thing)
    if found is None:
        return None
    schema, identifier, called = found
    return Staying(name=called, source=f"dbt_{re.sub(r'[^a-z0-9_]', '_', schema.lower())}", schema=schema, identifier=identifier)


def _of_node(work: ImportState, thing: ModelImport | SeedImport) -> tuple[str, str, str] | None:
    if not thing.enabled or any(reason.code in ("schema-macro", "unreadable", "reads-itself") for reason in thing.item.reasons):
        return None
    if any(reason.message.endswith(f"({code})") for reason in thing.item.reasons for code in _NOT_IN_DBT):
        return None
    if isinstance(thing, ModelImport) and (thing.full is None or thing.config.get("materialized") not in _TABLES):
        return None
    config, own = thing.config, work.project.target.schema
    if config.get("catalog") is not None:
        return None
    custom = config.get("namespace")
    by_macro = "generate_schema_name" in work.macros
    schema = thing.override.get("schema") or (own if custom is None else str(custom) if by_macro else f"{own}_{custom}")
    called = thing.table if isinstance(thing, ModelImport) else thing.name
    return schema, thing.override.get("alias") or str(config.get("alias") or called), called


def _of_snapshot(work: ImportState, name: str) -> tuple[str, str, str] | None:
    """A snapshot in a SQL block names its schema itself."""
    item: Item | None = work.snapshots.get(name)
    if item is not None and name in work.snapshot_settings:
        return _of_declared(work, item.name, work.snapshot_settings[name])
    text = item.span.file.text if item else ""
    if item is None or text.count("endsnapshot") != 1:
        return None
    schema, alias = _SCHEMA.search(text), _ALIAS.search(text)
    block = work.snapshot_blocks.get(name)
    of_folder = block.config.get("target_schema") if block and "target_schema" not in text else None
    found = schema[2] if schema else None if is_of_run(of_folder) else of_folder
    return (str(found), alias[2] if alias else item.name, item.name) if found else None


def _of_declared(work: ImportState, name: str, config: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """A snapshot in YAML has a schema like a model, or a `target_schema`. Both are not known if the project names or configures it."""
    own = work.project.target.schema
    custom, alias = config.get("schema"), config.get("alias", name)
    schema = config.get("target_schema") or (own if custom is None else f"{own}_{custom}")
    elsewhere = any(key in config for key in ("database", "target_database")) or get(work.project.tree, "snapshots") is not None
    by_macro = any(macro in work.macros for macro in ("generate_schema_name", "generate_alias_name"))
    if elsewhere or by_macro or is_of_run(schema) or is_of_run(alias):
        return None
    return str(schema), str(alias), name


def staying_yaml(work: ImportState) -> str:
    """The YAML that declares what the models read; empty if that is nothing."""
    found = {one.name: one for model in work.models.values() if model.item.verdict != "refused" for one in model.as_sources.values()}
    sources: dict[str, dict[str, object]] = {}
    for one in sorted(found.values(), key=lambda one: (one.source, one.name)):
        source = sources.setdefault(one.source, {"name": one.source, "namespace": one.schema, "tables": []})
        tables = source["tables"]
        assert isinstance(tables, list)
        tables.append({"name": one.name, **({"identifier": one.identifier} if one.identifier != one.name else {})})
    return _HEAD + yaml.safe_dump({"sources": list(sources.values())}, sort_keys=False) if sources else ""


def read_instead(work: ImportState, model: ModelImport, name: str) -> Iterator[Staying]:
    """What the model can read in place of a refused name, if it names it itself and the table stays in dbt."""
    found = staying(work, name) if references(work, model.template.file.file.text, name) else None
    if found is not None:
        yield found
