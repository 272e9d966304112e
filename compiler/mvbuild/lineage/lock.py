"""Schemas <-> schemas.lock: the columns of base tables in a file under version control, so that no catalog is needed to know them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, ProjectError, error
from mvbuild.graph.model import Graph, ModelNode, TableNode, ViewNode
from mvbuild.lineage.model import Column
from mvbuild.lineage.schemas import METADATA_TABLES, Schemas, TableColumns, base_nodes
from mvbuild.lineage.types import parsed
from mvbuild.names import TableIdentifier, quote
from mvbuild.project.files import LARGEST_LOCK, decode, read_bytes
from mvbuild.project.yaml_spans import Entry, MapNode, Node, ScalarNode, read_yaml
from mvbuild.source import SourceFile

NAME = "schemas.lock"
VERSION = 1
_HEAD = "# The columns of the tables that this project reads. `mvbuild lock` writes this file: commit it.\n"
_PATH = re.compile(r"/|[A-Za-z][\w+.-]*://")
_PARTS = re.compile(r"`(?:[^`]|``)*`|[^.`]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Locked:
    """The result of `mvbuild lock`."""

    tables: int
    differences: tuple[str, ...]
    is_new: bool
    """There was no file before, or none that could be read."""
    warnings: tuple[Diagnostic, ...]


def lock_path(graph: Graph) -> Path:
    return graph.project.root / NAME


def locked(graph: Graph, schemas: Schemas) -> tuple[dict[str, TableColumns], tuple[TableNode | ViewNode, ...]]:
    """The columns of all base tables of the graph by their name in the lock, and the tables that do not exist."""
    found: dict[str, TableColumns] = {}
    missing: list[TableNode | ViewNode] = []
    for node in base_nodes(graph):
        known = schemas.of(node.identifier)
        if known is not None:
            found[lock_name(node.identifier, graph)] = known
        elif not (node.identifier.name.lower() in METADATA_TABLES and len(node.identifier.namespace) > 1):
            missing.append(node)
    return dict(sorted(found.items())), tuple(missing)


def lock_name(identifier: TableIdentifier, graph: Graph) -> str:
    """The name of a table in the lock, the same for every target: without the target's catalog, and with project paths relative."""
    if identifier.is_path:
        return _relative(identifier.name, graph.project.root)
    own = identifier.catalog.lower() == graph.project.target.catalog_name.lower()
    parts = (*identifier.namespace, identifier.name)
    return ".".join(quote(part) for part in (parts if own else (f"@{identifier.catalog}", *parts)))


def _relative(path: str, root: Path) -> str:
    if "://" in path:
        return path
    found = Path(path)
    return f"./{found.relative_to(root).as_posix()}" if found.is_relative_to(root) else path


def to_text(tables: Mapping[str, TableColumns]) -> str:
    """The text of the file: tables by name, their columns in order, one per line."""
    content = {"version": VERSION, "tables": {name: _entry(table) for name, table in tables.items()}}
    return _HEAD + yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=10_000)


def _entry(table: TableColumns) -> dict[str, Any]:
    columns = {c.name: c.type or "unknown" for c in table.columns}
    return {**({"uuid": table.uuid} if table.uuid else {}), "columns": columns}


def read_lock(graph: Graph) -> dict[str, TableColumns] | None:
    """Read the lock; None if there is none. Raises ProjectError with everything that is wrong in it."""
    path = lock_path(graph)
    if not path.exists():
        return None
    try:
        content = read_bytes(path, NAME, LARGEST_LOCK)
    except ProjectError as exc:
        raise ProjectError([error("bad-lock", d.message, d.span) for d in exc.diagnostics]) from exc
    tree, diagnostics = read_yaml(decode(NAME, content))
    problems = [*diagnostics]
    tables = _tables(tree, SourceFile(NAME, ""), problems)
    if problems:
        raise ProjectError([error("bad-lock", p.message, p.span) for p in problems])
    return tables


def _tables(tree: Node | None, file: SourceFile, problems: list[Diagnostic]) -> dict[str, TableColumns]:
    if problems:
        return {}
    if not isinstance(tree, MapNode):
        problems.append(error("bad-lock", f"{NAME} must be a mapping", tree.span if tree else file.line_span(1)))
        return {}
    version, tables = tree.get("version"), tree.get("tables")
    if version is None or not isinstance(version.node, ScalarNode) or version.node.value != VERSION:
        problems.append(error("bad-lock", f"{NAME} must have version {VERSION}", version.node.span if version else tree.span))
        return {}
    found = {}
    for entry in tables.node.entries if tables and isinstance(tables.node, MapNode) else ():
        columns = entry.node.get("columns") if isinstance(entry.node, MapNode) else None
        uuid = entry.node.get("uuid") if isinstance(entry.node, MapNode) else None
        if columns is None or not isinstance(columns.node, MapNode):
            problems.append(error("bad-lock", f"The table '{entry.key}' has no columns", entry.span))
            continue
        given = tuple(_column(c, problems) for c in columns.node.entries)
        found[entry.key] = TableColumns(columns=given, uuid=str(uuid.node.value) if uuid and isinstance(uuid.node, ScalarNode) else None)
    return found


def _column(entry: Entry, problems: list[Diagnostic]) -> Column:
    type_ = entry.node.value if isinstance(entry.node, ScalarNode) else None
    if not isinstance(type_, str) or (type_ != "unknown" and parsed(type_) is None):
        problems.append(error("bad-lock", f"The column '{entry.key}' has no known type", entry.node.span))
    return Column(entry.key, type_ if isinstance(type_, str) and type_ != "unknown" else None, entry.span)


def of_lock(tables: Mapping[str, TableColumns], graph: Graph) -> Schemas:
    """The tables of the lock, under their names in the catalog of the target."""
    return Schemas(tables={_identifier(name, graph).key: table for name, table in tables.items()}, source=NAME)


def _identifier(name: str, graph: Graph) -> TableIdentifier:
    if name.startswith("./"):
        return TableIdentifier("", (), (graph.project.root / name[2:]).as_posix())
    if _PATH.match(name):
        return TableIdentifier("", (), name)
    parts = tuple(p[1:-1].replace("``", "`") if p.startswith("`") else p for p in _PARTS.findall(name))
    catalog = graph.project.target.catalog_name
    if len(parts) > 2 and parts[0].startswith("@"):
        catalog, parts = parts[0][1:], parts[1:]
    return TableIdentifier(catalog, parts[:-1], parts[-1])


def differences(lock: Mapping[str, TableColumns], now: Mapping[str, TableColumns]) -> Iterator[str]:
    """Describe how the columns in the catalog differ from those in the lock."""
    for name in sorted({*lock, *now}):
        if name not in lock:
            yield f"{name}: not in {NAME}"
        elif name not in now:
            yield f"{name}: not in the catalog, or no longer read"
        else:
            yield from (f"{name}: {what}" for what in _changes(lock[name], now[name]))


def _changes(before: TableColumns, after: TableColumns) -> Iterator[str]:
    if before.uuid and after.uuid and before.uuid != after.uuid:
        yield "is a different table with the same name (its UUID differs)"
    old, new = {c.name: c.type for c in before.columns}, {c.name: c.type for c in after.columns}
    yield from (f"column {name} {type_ or 'of unknown type'} was added" for name, type_ in new.items() if name not in old)
    yield from (f"column {name} was removed" for name in old if name not in new)
    yield from (f"column {name} was {old[name]}, and is now {type_}" for name, type_ in new.items() if name in old and old[name] != type_)
    if set(old) == set(new) and list(old) != list(new):
        yield "its columns are in a different order"


def missing_tables(nodes: Iterable[TableNode | ViewNode], graph: Graph) -> Iterator[Diagnostic]:
    """Report tables that a model reads and that the catalog does not have."""
    readers = graph.children
    for node in nodes:
        first = next((n for id in readers.get(node.id, ()) if isinstance(n := graph.nodes[id], ModelNode)), None)
        span = node.source.span if node.source is not None else None
        if span is None and first is not None:
            span = next(r.span for r, id in zip(first.query.reads, first.reads, strict=True) if id == node.id)
        yield error("missing-table", f"The catalog has no table {node.identifier}", span)
