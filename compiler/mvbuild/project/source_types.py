"""a source and its table in YAML -> TableLocation: the type of the table, and where it is if not in the target's catalog."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import get_args

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, did_you_mean, error
from mvbuild.formats.record import TableType
from mvbuild.project.targets import strings
from mvbuild.project.yaml_spans import Entry, MapNode, ScalarNode, is_empty
from mvbuild.source import Span

TYPES: tuple[TableType, ...] = get_args(TableType)
DEFAULT: TableType = "iceberg-metastore"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLocation:
    """The location keys of a table, after the table's keys have overridden the source's."""

    type: TableType
    path: str | None
    options: Mapping[str, str]
    spans: Mapping[str, Span]
    """Where `catalog`, `path` and `properties` were written."""


def place_of(source: MapNode, table: MapNode, name: Span, report: list[Diagnostic]) -> TableLocation:
    """What the YAML declares about one table. Keys that contradict its type go to `report`."""
    outer = _type(source, report) or DEFAULT
    kind = _type(table, report) or outer
    entries = {key: found for key in ("path", "properties", "identifier") if (found := _entry(table, key))}
    # Properties of a source's metastore are not options of a path, and the other way round.
    shared = _entry(source, "properties") if kind == outer else None
    catalog = _entry(source, "catalog") or _entry(source, "database")
    options: dict[str, str] = {}
    for entry in (shared, entries.get("properties")):
        options |= strings(entry.node if entry else None, "A property of a source", report)
    report.extend(_contradictions(kind, entries, catalog, entries.get("properties") or shared, name))
    places = {"path": entries.get("path"), "properties": entries.get("properties") or shared, "catalog": catalog}
    path = _text(entries.get("path")) if kind != DEFAULT else None
    return TableLocation(type=kind, path=path, options=options, spans={key: entry.span for key, entry in places.items() if entry})


def _contradictions(
    kind: TableType, table: Mapping[str, Entry], catalog: Entry | None, properties: Entry | None, name: Span
) -> Iterator[Diagnostic]:
    if kind == DEFAULT:
        if "path" in table:
            message = f"'path' only applies to tables of type {TYPES[1]} and {TYPES[2]}; this one has type {kind}"
            yield error("bad-config", message, table["path"].span, help="Set the `type:` of the table, or remove `path`.")
        if properties and catalog is None:
            message = "'properties' describe another metastore, which has no name here"
            yield error("bad-config", message, properties.span, help="Name it with `catalog:` of the source: Spark knows it by that name.")
        return
    if not _text(table.get("path")):
        yield error("missing-key", f"Missing key 'path' in a table of type {kind}", name, help="Set it to the directory of the table.")
    if "identifier" in table:
        message = f"'identifier' is a name in a catalog, and a table of type {kind} is in no catalog"
        yield error("bad-config", message, table["identifier"].span, help="Remove it: `path` identifies the table.")


def _type(node: MapNode, report: list[Diagnostic]) -> TableType | None:
    entry = _entry(node, "type")
    word = _text(entry)
    found = next((t for t in TYPES if t == word), None)
    if entry and word and found is None:
        # Not the value itself, which may come from the environment.
        diagnostic = error("wrong-type", f"'type' must be one of {', '.join(TYPES)}", entry.node.span, help=did_you_mean(word, TYPES))
        if diagnostic not in report:
            report.append(diagnostic)
    return found


def _entry(node: MapNode, key: str) -> Entry | None:
    entry = node.get(key)
    return entry if entry and not is_empty(entry.node) else None


def _text(entry: Entry | None) -> str | None:
    value = entry.node if entry else None
    return value.value if isinstance(value, ScalarNode) and isinstance(value.value, str) else None
