"""ImportState -> the names of tables: dbt's names are written to settings where mvbuild's default differs."""

from __future__ import annotations

from mvbuild.dbt.import_state import ImportState, ModelImport, SeedImport
from mvbuild.dbt.models import setting_of
from mvbuild.dbt.read import YamlFile, entries_of, get, items_of, text_of
from mvbuild.dbt.rendering import Renderings
from mvbuild.dbt.versions import declared_in
from mvbuild.project.yaml_spans import Entry, MapNode, Node, ScalarNode

_SCHEMA = ("schema", "+schema", "namespace", "+namespace")
_CUSTOM = ("generate_schema_name", "generate_alias_name")


def name_tables(work: ImportState, renderings: Renderings) -> None:
    if any(macro in work.macros for macro in _CUSTOM):
        _by_macro(work, renderings)
    if "generate_schema_name" not in work.macros:
        for file in work.project.yamls:
            for section, things in (("models", work.models), ("seeds", work.seeds)):
                for node in items_of(file.tree, section):
                    versions = declared_in(work, node) if section == "models" else []
                    for one in versions:
                        _spell_out(work, file, get(node, "config"), work.models.get(one.version.name.lower()))
                        _spell_out(work, file, get(one.item, "config"), work.models.get(one.version.name.lower()))
                    if not versions:
                        _spell_out(work, file, get(node, "config"), things.get((text_of(node, "name") or "").lower()))


def _spell_out(work: ImportState, file: YamlFile, config: Node | None, thing: ModelImport | SeedImport | None) -> None:
    for entry in entries_of(config):
        if thing and entry.key in _SCHEMA and (new := prefixed(work, entry.node)):
            work.replace(file.file.path, entry.node, new)
            thing.item.add("schema-spelled-out", f"The schema is '{new}', as in dbt", entry.node.span)


def prefixed(work: ImportState, node: Node) -> str | None:
    """dbt's name for a custom schema: the target's schema, an underscore and the custom one."""
    if isinstance(node, ScalarNode) and isinstance(node.value, str):
        return f"{work.project.target.schema}_{node.value}"
    return None


def schema_entries(node: MapNode | None, *, depth: int = 0) -> list[Entry]:
    """Every schema in the folder configuration of the project file."""
    found: list[Entry] = []
    for entry in entries_of(node):
        if entry.key in _SCHEMA and isinstance(entry.node, ScalarNode):
            found.append(entry)
        elif isinstance(entry.node, MapNode) and depth < 50:
            found += schema_entries(entry.node, depth=depth + 1)
    return found


def _by_macro(work: ImportState, renderings: Renderings) -> None:
    things: list[tuple[str, ModelImport | SeedImport, str]] = []
    things += [("model", m, m.template.path) for m in work.models.values() if m.enabled]
    things += [("seed", s, s.file.path) for s in work.seeds.values() if s.enabled]
    for kind, thing, path in things:
        schema, alias = (thing.config.get(key) for key in ("namespace", "alias"))
        schema, alias = (str(v) if v is not None else None for v in (schema, alias))
        version = thing.version if isinstance(thing, ModelImport) else None
        own, v = (version.model, version.v) if version else (thing.name, None)
        named = renderings.names.named(renderings.renderer, kind, own, path, schema, alias, v)
        place = setting_of(thing.layers, "schema", "namespace") or setting_of(thing.layers, "alias")
        span = work.origin(place.span) if place else thing.item.span
        if named.schema is None or named.alias is None:
            thing.item.add("schema-macro", f"The project's macros that name tables cannot be applied to it: {named.problem}", span)
            continue
        if named.schema != (schema if schema is not None else work.project.target.schema):
            thing.override["schema"] = named.schema
        table = thing.table if isinstance(thing, ModelImport) else thing.name
        if named.alias != (alias if alias is not None else table):
            thing.override["alias"] = named.alias
        if thing.override:
            names = " and ".join(f"{key} '{value}'" for key, value in thing.override.items())
            thing.item.add("name-spelled-out", f"The project's macros give it the {names}, which is written out", span)
