"""YAML files below the model and seed paths -> Described: what they declare about models, seeds and sources."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import field
from typing import Any

from mvbuild.cache.codec import Codec
from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, Note, error
from mvbuild.project.counting import Counting
from mvbuild.project.data_tests import Tested, read_tests, told_apart
from mvbuild.project.folders import layer_of, repeated_settings, setting_of
from mvbuild.project.groups import read_group
from mvbuild.project.key_types import check
from mvbuild.project.keys import PROPERTIES
from mvbuild.project.loaded import Column, DataTest, Deprecation, Group, ModelVersion, Properties, SourceTable
from mvbuild.project.model_versions import default_alias, deprecation_of, versions_of
from mvbuild.project.setting import EMPTY, Layer, Setting
from mvbuild.project.source_freshness import SourceFreshness, source_freshness
from mvbuild.project.source_types import place_of
from mvbuild.project.yaml_spans import ListNode, MapNode, Node, ScalarNode, is_empty, plain
from mvbuild.source import SourceFile, Span

NOT_RENDERED = frozenset(("description", "data_tests", "tests", "unit_tests", "exposures"))
"""Keys whose values are not rendered in this stage: text for people, expressions for the graph."""

_SETTINGS_AT_THE_TOP = ("tags", "meta", "enabled", "group", "access")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What YAML declares about one model or seed. `types` are the declared types of its columns."""

    name: str
    span: Span
    layers: tuple[Layer, ...]
    properties: Properties
    types: Mapping[str, Setting]
    version: ModelVersion | None = None


@dataclass(slots=True)
class Described:
    """All files together; names in lower case, because Spark ignores case."""

    models: dict[str, Entry] = field(default_factory=dict)
    seeds: dict[str, Entry] = field(default_factory=dict)
    sources: dict[tuple[str, str], SourceTable] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    """Names as they are written: as in dbt, case matters."""
    files: list[SourceFile] = field(default_factory=list)

    def of_files(self, stems: Collection[str]) -> Mapping[str, Entry]:
        """File of a model -> what YAML declares about it. As in dbt, the latest version may be in a file without a version in its name.

        `stems` are the names of the files; all names are in lower case."""
        found: dict[str, Entry] = {}
        for entry in self.models.values():
            version = entry.version
            file = (entry.name if version is None else version.file).lower()
            if version is not None and version.is_latest and file not in stems:
                file = version.model.lower()
            found.setdefault(file, entry)
        return found

    @property
    def tests(self) -> Iterator[DataTest]:
        everything: tuple[Entry | SourceTable, ...] = (*self.models.values(), *self.seeds.values(), *self.sources.values())
        for described in everything:
            yield from described.properties.tests

    def add(self, kind: str, declared: Entry | SourceTable | Group, report: list[Diagnostic]) -> None:
        """The first declaration counts."""
        if isinstance(declared, Group):
            group = self.groups.setdefault(declared.name, declared)
            if group is not declared:
                report.append(_twice(f"group '{declared.name}'", declared.span, group.span))
            return
        if isinstance(declared, SourceTable):
            table = self.sources.setdefault((declared.source.lower(), declared.name.lower()), declared)
            if table is not declared:
                report.append(_twice(f"source table '{declared.source}.{declared.name}'", declared.span, table.span))
            return
        other = (self.models if kind == "models" else self.seeds).setdefault(declared.name.lower(), declared)
        if other is not declared:
            report.append(_twice(f"entry for the {kind[:-1]} '{declared.name}'", declared.span, other.span))


NamedEntry = tuple[str, Entry | SourceTable | Group]
"""`models`, `seeds`, `sources` or `groups`, and what the file declares about one of them."""
CODEC = Codec((Setting, Column, Deprecation, ModelVersion, Counting, DataTest, Properties, Entry, SourceFreshness, SourceTable, Group))


def read_properties(file: SourceFile, tree: Node, report: list[Diagnostic]) -> Iterator[NamedEntry]:
    """What one file declares, in its order."""
    report.extend(check(tree, PROPERTIES))
    for kind in ("models", "seeds"):
        for node in _items(tree, kind):
            for entry in _described(file, node, report):
                yield kind, entry
    for node in _items(tree, "sources"):
        for table in _source(file, node, report):
            yield "sources", table
    for node in _items(tree, "groups"):
        group = read_group(node, report)
        if group is not None:
            yield "groups", group


def _described(file: SourceFile, node: MapNode, report: list[Diagnostic]) -> Iterator[Entry]:
    """The entry of a model or seed; one for each version of a model that has versions."""
    name, span = _name(node)
    if name is None:
        return
    top = {e.key: setting_of(e.node, e) for e in node.entries if e.key in _SETTINGS_AT_THE_TOP and not is_empty(e.node)}
    report.extend(repeated_settings(_get(node, "config")))
    config = layer_of(_get(node, "config"))
    versions = list(versions_of(node, report))
    for model, item, version in versions:
        own = {e.key: setting_of(e.node, e) for e in item.entries if e.key == "access"}
        report.extend(repeated_settings(_get(item, "config")))
        layers = (default_alias(version), top, config, own, layer_of(_get(item, "config")))
        properties, types = _properties(file, model, Tested("", f"{name}_v{version.v}"), report)
        yield Entry(
            name=version.name,
            span=version.span,
            layers=tuple(layer for layer in layers if layer),
            properties=properties,
            types=types,
            version=version,
        )
    if not versions and next(_items(node, "versions"), None) is None:
        properties, types = _properties(file, node, Tested("", name), report)
        yield Entry(name=name, span=span, layers=tuple(layer for layer in (top, config) if layer), properties=properties, types=types)


def _properties(file: SourceFile, node: MapNode, tested: Tested, report: list[Diagnostic]) -> tuple[Properties, Mapping[str, Setting]]:
    columns: dict[str, Column] = {}
    types: dict[str, Setting] = {}
    tests: list[DataTest] = list(read_tests(_tests_node(node), tested, None, report))
    for item in _items(node, "columns"):
        column = _column(item)
        if column is None:
            continue
        other = columns.setdefault(column.name.lower(), column)
        if other is not column:
            report.append(_twice(f"column '{column.name}'", column.span, other.span))
            continue
        type_node = _get(item, "data_type")
        if type_node is not None and column.data_type is not None:
            types[column.name] = setting_of(type_node)
        tests.extend(read_tests(_tests_node(item), tested, column.name, report))
    properties = Properties(
        description=_text(node, "description") or "",
        columns=tuple(columns.values()),
        tests=tuple(told_apart(tests, tested, report)),
        deprecation=deprecation_of(node, report),
        patch_path=file.path,
    )
    return properties, types


def _column(node: MapNode) -> Column | None:
    name, span = _name(node)
    if name is None:
        return None
    config = _get(node, "config")
    return Column(
        name=name,
        description=_text(node, "description") or "",
        data_type=_text(node, "data_type"),
        tags=_union(_tags(node), _tags(config)),
        meta={**_meta(node), **_meta(config)},
        span=span,
    )


def _source(file: SourceFile, node: MapNode, report: list[Diagnostic]) -> Iterator[SourceTable]:
    source, _ = _name(node)
    if source is None:
        return
    config = _get(node, "config")
    namespace = _get(node, "namespace") or _get(node, "schema")
    for item in _items(node, "tables"):
        name, span = _name(item)
        inner = _get(item, "config")
        if name is None or _is_disabled(config, inner):
            continue
        properties, _ = _properties(file, item, Tested("source_", f"{source}_{name}"), report)
        place = place_of(node, item, span, report)
        yield SourceTable(
            source=source,
            name=name,
            catalog=_text(node, "catalog") or _text(node, "database"),
            namespace=_levels(namespace) or (source,),
            identifier=_text(item, "identifier") or name,
            type=place.type,
            path=place.path,
            options=place.options,
            properties=properties,
            tags=_union(_tags(node), _tags(config), _tags(item), _tags(inner)),
            meta={**_meta(node), **_meta(config), **_meta(item), **_meta(inner)} or EMPTY,
            span=span,
            places=place.spans,
            freshness=source_freshness(
                (_get(node, "freshness"), _get(config, "freshness"), _get(item, "freshness"), _get(inner, "freshness")), report
            ),
        )


def _is_disabled(outer: Node | None, inner: Node | None) -> bool:
    values = [v.value for config in (inner, outer) if isinstance(v := _get(config, "enabled"), ScalarNode)]
    return bool(values) and values[0] is False


def _tests_node(node: MapNode) -> Node | None:
    return _get(node, "data_tests") or _get(node, "tests")


def _twice(what: str, span: Span, first: Span) -> Diagnostic:
    notes = (Note(message="first defined here", span=first),)
    return error("duplicate-name", f"Duplicate {what}", span, help="Remove one of the two.", notes=notes)


def _items(node: Node, key: str) -> Iterator[MapNode]:
    items = _get(node, key)
    for item in items.items if isinstance(items, ListNode) else ():
        if isinstance(item, MapNode):
            yield item


def _get(node: Node | None, key: str) -> Node | None:
    entry = node.get(key) if isinstance(node, MapNode) else None
    return entry.node if entry else None


def _name(node: MapNode) -> tuple[str | None, Span]:
    value = _get(node, "name")
    return (value.value, value.span) if isinstance(value, ScalarNode) and isinstance(value.value, str) else (None, node.span)


def _text(node: Node | None, key: str) -> str | None:
    value = _get(node, key)
    return value.value if isinstance(value, ScalarNode) and isinstance(value.value, str) else None


def _levels(node: Node | None) -> tuple[str, ...]:
    value = plain(node) if node else None
    parts = value.split(".") if isinstance(value, str) else value
    return tuple(p.strip() for p in parts if isinstance(p, str)) if isinstance(parts, list) else ()


def _tags(node: Node | None) -> tuple[str, ...]:
    value = _get(node, "tags")
    found = plain(value) if value else []
    return tuple(t for t in (found if isinstance(found, list) else [found]) if isinstance(t, str))


def _union(*tags: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tag for part in tags for tag in part))


def _meta(node: Node | None) -> Mapping[str, Any]:
    value = _get(node, "meta")
    return plain(value) if isinstance(value, MapNode) else {}
