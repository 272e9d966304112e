"""the catalog, the lock, seeds and YAML -> Schemas: the columns of each base table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import ProjectError
from mvbuild.graph.model import Graph, Node, SeedNode, TableNode, ViewNode
from mvbuild.lineage.model import Column
from mvbuild.lineage.types import of_iceberg, parsed, text
from mvbuild.names import TableIdentifier
from mvbuild.ports.states import Schema, State, Unreadable
from mvbuild.project.csv_rows import CsvError, records
from mvbuild.project.files import LARGEST_SEED, decode, read_bytes
from mvbuild.project.loaded import Properties, Seed
from mvbuild.project.seed_types import seed_type

METADATA_TABLES = frozenset(
    "all_data_files all_delete_files all_entries all_files all_manifests data_files delete_files entries files history manifests "
    "metadata_log_entries partitions position_deletes refs snapshots changes".split()
)
"""Metadata tables of Iceberg, which can follow a table's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumns:
    """The columns of a table, in order. There may be others if `complete` is False."""

    columns: tuple[Column, ...]
    complete: bool = True
    uuid: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Schemas:
    """Columns by `TableIdentifier.key`."""

    tables: Mapping[tuple[str, ...], TableColumns] = field(default_factory=dict)
    source: str | None = None
    """The source that lists every table. None if a table that is not in `tables` may still exist."""

    def of(self, identifier: TableIdentifier) -> TableColumns | None:
        return self.tables.get(identifier.key)

    def misses(self, identifier: TableIdentifier) -> bool:
        """Whether it is certain that the table does not exist."""
        if self.source is None or identifier.key in self.tables:
            return False
        key = identifier.key
        return not (key[-1] in METADATA_TABLES and key[:-1] in self.tables) and not key[-1].startswith(("branch_", "tag_", "snapshot_id_"))


NO_SCHEMAS = Schemas()


def of_states(states: Mapping[TableIdentifier, State]) -> Schemas:
    """The schemas of tables and views that were observed."""
    tables = {i.key: TableColumns(columns=of_schema(s.schema), uuid=s.uuid) for i, s in states.items() if not isinstance(s, Unreadable)}
    return Schemas(tables=tables)


def of_schema(schema: Schema) -> tuple[Column, ...]:
    return tuple(Column(f["name"], text(of_iceberg(f["type"]))) for f in schema["fields"])


def base_nodes(graph: Graph) -> Iterator[TableNode | ViewNode]:
    """The tables and views of the catalog that the project does not create."""
    return (n for n in graph.nodes.values() if isinstance(n, TableNode | ViewNode))


def of_node(node: Node, schemas: Schemas) -> TableColumns | None:
    """The columns of a node without a query: from the schemas, otherwise as the project declares them."""
    if isinstance(node, SeedNode):
        return of_seed(node.seed)
    if not isinstance(node, TableNode):
        return None
    known = schemas.of(node.identifier)
    if known is not None or node.source is None or not node.source.properties.columns:
        return known
    return TableColumns(columns=tuple(_declared(node.source.properties)), complete=False)


def _declared(properties: Properties) -> Iterable[Column]:
    """The declared columns; a source need not declare every column."""
    return (Column(c.name, text(parsed(c.data_type)) if c.data_type else None, c.span) for c in properties.columns)


def of_seed(seed: Seed) -> TableColumns | None:
    """The header of the file, with the declared types. None if it cannot be read, which is reported elsewhere."""
    try:
        header = next(iter(records(decode(seed.path, read_bytes(seed.file, seed.path, LARGEST_SEED)).text, seed.config.delimiter)), None)
    except (CsvError, ProjectError):
        return None
    if header is None:
        return None
    types = {name.lower(): seed_type(str(setting.value)) for name, setting in seed.config.column_types.items()}
    names = [(value or "").strip() for value in header.values]
    spans = {c.name.lower(): c.span for c in seed.properties.columns}
    found = []
    for name in names:
        type_ = types.get(name.lower())
        found.append(Column(name, text(of_iceberg(type_.name)) if type_ else "string", spans.get(name.lower())))
    return TableColumns(columns=tuple(found))
